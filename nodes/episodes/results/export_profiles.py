"""Characters and scenarios in the shape of the sotopia package's local store, so that its readers find them.

A run keeps those that it played. The package looks up the identifiers of an EpisodeLog as FOLDER/CLASS/ID.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Character, Scenario
from runtime.errors import UserError


class PlayedProfiles(msgspec.Struct, frozen=True):
    """Who and what a run played, by identifier."""

    characters: dict[str, Character]
    scenarios: dict[str, Scenario]


def played_profiles(library: Library, plans: Iterable[EpisodePlan]) -> PlayedProfiles:
    """Those of the plans."""
    plans = list(plans)
    return PlayedProfiles(
        characters={truth.character: library.characters[truth.character] for plan in plans for truth in plan.truths},
        scenarios={plan.scenario: library.scenarios[plan.scenario] for plan in plans},
    )


def write_profiles(spec: Mapping[str, Any], folder: Path) -> int:
    """One JSON file a profile; how many. Raises UserError for a run that kept none, or a folder that cannot be."""
    if "profiles" not in spec:
        raise UserError("--profiles: this run kept no profiles; those that are begun with this version do")
    played = msgspec.convert(spec["profiles"], PlayedProfiles)
    files = {f"AgentProfile/{one.id}.json": _agent_profile(one) for one in played.characters.values()}
    files |= {f"EnvironmentProfile/{one.id}.json": _environment_profile(one) for one in played.scenarios.values()}
    written = {folder / name: msgspec.json.format(msgspec.json.encode(one), indent=1) for name, one in files.items()}
    try:
        for path, text in written.items():
            if path.exists() and path.read_bytes() != text:  # a store may hold those of other runs
                raise UserError(f"--profiles {path}: another one is there already; name another folder")
        for path, text in written.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    except OSError as problem:
        raise UserError(f"--profiles {folder}: cannot be written: {problem.strerror}") from problem
    return len(files)


def _agent_profile(character: Character) -> dict[str, object]:
    return {
        "pk": character.id,
        "first_name": character.first_name,
        "last_name": character.last_name,
        "age": character.age,
        "occupation": character.occupation,
        "gender": character.gender,
        "gender_pronoun": character.pronouns,
        "public_info": character.public_info,
        "big_five": character.big_five,
        "moral_values": character.moral_values,
        "schwartz_personal_values": character.schwartz_values,
        "personality_and_values": character.personality,
        "decision_making_style": character.decision_style,
        "secret": character.secret,
        "model_id": character.model,
        "mbti": character.mbti,
        "tag": character.tag,
    }


def _environment_profile(scenario: Scenario) -> dict[str, object]:
    return {
        "pk": scenario.id,
        "codename": scenario.codename or scenario.id,
        "source": scenario.source,
        "scenario": scenario.context,
        "agent_goals": scenario.goals,
        "relationship": scenario.relationship.value,
        "age_constraint": str([tuple(ages) for ages in scenario.ages]) if scenario.ages else None,
        "occupation_constraint": str([list(one) for one in scenario.occupations]) if scenario.occupations else None,
        "agent_constraint": [list(one) for one in scenario.characters] or None,
        "tag": scenario.tag,
    }
