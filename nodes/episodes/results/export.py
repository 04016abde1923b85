"""`episodes export` and `import`: JSONL in the shape of the sotopia package's EpisodeLog, or plain; or tables as CSV.

An EpisodeLog has one message group per turn, each message (sender, receiver, text), and per agent a reward: (overall,
{dimension: value}). Where no evaluation succeeded the reward is the number 0.0, which that package reads as "failed".
It holds no facts: of an imported run checks of deals and of what was learned find nothing. Characters and scenarios go
into the package's local store as FOLDER/CLASS/ID.json, where its readers look them up.
"""

from __future__ import annotations

import argparse
import csv
import re
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan, GroundTruth
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.evaluation.dimensions import NOT_JUDGED, PUBLISHED, mean_scores, overall
from nodes.episodes.results.card import card_of
from nodes.episodes.results.show import episode_data
from nodes.episodes.results.store import EpisodeRow, Store
from nodes.episodes.scenarios.library import AGENT_FIELDS, Library, json_lines
from nodes.episodes.scenarios.profiles import Character, Scenario
from nodes.msgs.episode import ActKind, Briefing, Outcome, Score, Scores, Turn
from runtime.command_line.arguments import check_new
from runtime.errors import UserError, writing
from runtime.serialization.toml_errors import read_text


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
    files: dict[str, dict[str, object]] = {
        f"AgentProfile/{one.id}.json": {"pk": one.id, **{key: getattr(one, ours) for ours, key in AGENT_FIELDS.items()}}
        for one in played.characters.values()
    }
    files |= {f"EnvironmentProfile/{one.id}.json": _environment_profile(one) for one in played.scenarios.values()}
    written = {folder / name: msgspec.json.format(msgspec.json.encode(one), indent=1) for name, one in files.items()}
    with writing(f"--profiles {folder}"):
        for path, text in written.items():
            if path.exists() and path.read_bytes() != text:  # a store may hold those of other runs
                raise UserError(f"--profiles {path}: another one is there already; name another folder")
        for path, text in written.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    return len(files)


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


ENVIRONMENT = "Environment"
_CLASSES = {"rules": "RulesBrain", "scripted": "RulesBrain", "human": "PersonAtTerminal"}


def export(asked: argparse.Namespace) -> int:
    """Write one line per episode that is done."""
    if asked.out is not None:
        check_new(asked.out)
    with Store.read(asked.run) as store:
        if asked.format == "csv":
            return _tables(store, asked.out)
        rows = [row for row in store.episodes() if row.state == "done"]
        lines = (episode_log(store, row) if asked.format == "sotopia" else episode_data(store, row) for row in rows)
        texts = (msgspec.json.encode(line).decode() + "\n" for line in lines)
        if asked.out is None:
            sys.stdout.writelines(texts)
        else:
            with writing(f"--out {asked.out}"), open(asked.out, "w", encoding="utf-8") as file:
                file.writelines(texts)
        if asked.profiles is not None:
            write_profiles(store.spec, asked.profiles)
    return 0


_OF_EPISODE = "e.id AS episode, e.task, e.scenario, e.seed, e.transparency AS mode, e.turn_order AS 'order', e.state"
_AGENT = (
    "(SELECT a.value FROM json_each(e.names) n JOIN json_each(e.agents) a USING (key) WHERE n.value = t.{}) AS agent"
)
_TABLES = {
    "turns": f"""t.idx AS 'index', t.number AS turn, t.speaker, {_AGENT.format("speaker")}, t.kind, t.argument,
        (SELECT group_concat(value, '; ') FROM json_each(t.recipients)) AS 'to', t.at_s, t.fault, t.note
        FROM episodes e JOIN turns t ON t.episode = e.id ORDER BY e.number, t.idx""",
    "scores": f"""t.judge, j.state AS judged, t.name, {_AGENT.format("name")}, t.dimension, t.score, t.reasoning
        FROM episodes e JOIN evaluations t ON t.episode = e.id JOIN judgements j USING (episode, judge)
        ORDER BY e.number, t.judge, t.name, t.dimension""",
    "turn_scores": """t.turn AS 'index', t.judge, t.dimension, t.score
        FROM episodes e JOIN turn_scores t ON t.episode = e.id ORDER BY e.number, t.turn, t.judge, t.dimension""",
    "ratings": f"""t.rater, t.name, {_AGENT.format("name")}, t.dimension, t.score, r.text AS reasoning
        FROM episodes e JOIN ratings t ON t.episode = e.id
        LEFT JOIN rationales r USING (episode, rater, name, dimension) ORDER BY e.number, rater, name, dimension""",
}
"""Name of the file, and what stands in it."""


def _tables(store: Store, folder: Path | None) -> int:
    """One CSV file a table, one observation a row; failed episodes say so."""
    if folder is None:
        raise UserError("--to csv writes several tables: expected a folder for them, like --out tables")
    with writing(f"--out {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, columns in _TABLES.items():
            try:
                found = store.db.execute(f"SELECT {_OF_EPISODE}, {columns}")
            except sqlite3.OperationalError:  # an older file has no such table
                continue
            with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(column[0] for column in found.description)
                writer.writerows(found)
    return 0


def episode_log(store: Store, row: EpisodeRow) -> dict[str, Any]:
    """One episode as an EpisodeLog."""
    plan, turns = store.plan(row.id), store.turns(row.id)
    evaluations = store.scores(row.id)
    means = mean_scores(evaluations)
    comments = [
        f"{one.judge}, {score.name}, {score.dimension}: {score.reasoning}"
        for one in evaluations
        for score in one.scores
    ]
    judges = sorted({one.judge for one in evaluations if one.state == "done"})
    named = sorted({dimension for scores in means.values() for dimension in scores})
    mean_of = [f"rewards are means of the scores by {', '.join(judges)} on {', '.join(named)}"] if named else []
    is_partly = any(scores and overall(scores) is None for scores in means.values())
    partly = ["overall_score is no mean of the seven: not all of them were judged"] if is_partly else []
    return {
        "pk": row.id,
        "environment": plan.scenario,
        "agents": [truth.character for truth in plan.truths],
        "tag": f"polyrhythm {plan.transparency}",
        "models": [",".join(one.judge for one in evaluations) or "none", *row.agents],
        "agent_classes": [_CLASSES.get(agent, "ModelBrain") for agent in row.agents],
        "messages": message_groups(plan.names, [b.background for b in plan.briefings], turns),
        "reasoning": "\n".join([*mean_of, *partly, *comments]),
        "rewards": [_reward(means.get(name, {})) for name in plan.names],
        "rewards_prompt": "",
    }


def message_groups(names: tuple[str, ...], backgrounds: list[str], turns: list[Turn]) -> list[list[list[str]]]:
    """Group 0: what each was told; then one group per turn."""
    groups = [[[ENVIRONMENT, name, background] for name, background in zip(names, backgrounds, strict=True)]]
    numbers = sorted({turn.number for turn in turns})
    for number in numbers:
        groups.append([[turn.speaker, ENVIRONMENT, _text(turn)] for turn in turns if turn.number == number])
    return groups


def _text(turn: Turn) -> str:
    private = f"[private to {', '.join(turn.to)}] " if turn.to else ""
    words = {
        "none": "did nothing",
        "speak": f'said: "{turn.argument}"',
        "non-verbal communication": f"[non-verbal communication] {turn.argument}",
        "action": f"[action] {turn.argument}",
        "leave": "left the conversation",
    }[turn.kind]
    return private + words


def _reward(scores: dict[str, float]) -> Any:
    if not scores:
        return 0.0
    whole = overall(scores)
    if whole is None:  # the shape wants a number; `reasoning` says what it is
        whole = sum(scores.values()) / len(scores)
    named = {PUBLISHED.get(dimension, dimension): value for dimension, value in scores.items()}
    return [whole, {**named, "overall_score": whole}]


class LoggedEpisode(msgspec.Struct, frozen=True):
    """What is read of one line; other keys are ignored."""

    environment: str
    agents: tuple[str, ...]
    messages: tuple[tuple[tuple[str, str, str], ...], ...]
    pk: str | None = None
    models: tuple[str, ...] | None = None
    tag: str | None = None
    reasoning: str = ""
    rewards: tuple[tuple[float, dict[str, float]] | float, ...] = ()


_ACTS: tuple[tuple[ActKind, re.Pattern[str]], ...] = (
    ("none", re.compile(r"did nothing$")),
    ("leave", re.compile(r"left the conversation$")),
    ("speak", re.compile(r'said: "?(?P<text>.*?)"?$', re.S)),
    ("non-verbal communication", re.compile(r"\[non-verbal communication\] (?P<text>.*)$", re.S)),
    ("action", re.compile(r"\[action\] (?P<text>.*)$", re.S)),
)
_PRIVATE = re.compile(r"^\[private to \[?(?P<names>[^\]]*)\]+ ")
_GOAL = re.compile(r"goal:?\s*(?P<goal>.+)$", re.I | re.M)


def import_logs(asked: argparse.Namespace) -> int:
    """Make a run of the lines that can be read; the others are named and left out."""
    found: list[tuple[EpisodePlan, list[Turn], LoggedEpisode]] = []
    left_out = 0
    for where, line in json_lines(asked.file, read_text(asked.file)):
        try:
            log = msgspec.json.decode(line, type=LoggedEpisode)
            found.append((*read_log(log, int(where.rpartition(":")[2])), log))
        except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
            left_out += 1
            print(f"left out: {where}: {problem}", file=sys.stderr)
    if not found:
        raise UserError(f"{asked.file}: holds no episode; expected one EpisodeLog as JSON a line")
    out = asked.out or asked.file.with_suffix(".sqlite")
    with Store.create(out, {"judges": [], "dimensions": [], "is_imported": True}) as store:
        store.add(plan for plan, _, _ in found)
        store.set_card(card_of([plan for plan, _, _ in found], []) | {"imported": asked.file.name})
        for plan, turns, log in found:
            outcome = Outcome(episode=plan.id, state="done", reason="imported", turns=len(turns))
            store.save_played(plan.id, turns, (), outcome)
            for scores in scores_of(log, plan):
                store.save_scores(scores)
    print(f"{len(found)} episodes, {left_out} left out\n\nrun: {out}")
    return 0


def read_log(log: LoggedEpisode, number: int) -> tuple[EpisodePlan, list[Turn]]:
    """Plan and turns of a log. Raises ValueError where it tells of fewer than two who act."""
    told = (
        {receiver: text for sender, receiver, text in log.messages[0] if sender == ENVIRONMENT} if log.messages else {}
    )
    speakers = [sender for group in log.messages for sender, _, _ in group if sender != ENVIRONMENT]
    names = tuple(dict.fromkeys([name for name in told if name != ENVIRONMENT] + speakers))
    if len(names) < 2:
        raise ValueError(f"expected messages of two participants or more, found {len(names)}")
    turns: list[Turn] = []
    for place, group in enumerate(log.messages):
        for sender, _, text in group:
            if sender != ENVIRONMENT and (act := act_of(text)) is not None:
                kind, argument, to = act
                number = max(1, place)
                turns.append(Turn(index=len(turns), number=number, speaker=sender, kind=kind, argument=argument, to=to))
    models = log.models or ()
    agents = tuple(models[1:]) if len(models) == len(names) + 1 else ("unknown",) * len(names)
    texts = [told.get(name, "") for name in names]
    goals = [found["goal"] if (found := _GOAL.search(text)) else "(not in the log)" for text in texts]
    context = next((line for line in texts[0].split("\n") if "scenario" in line.lower()), "")
    scenario = re.sub(r"[^a-z0-9_-]", "-", log.environment.lower())[:64] or "unknown"
    plan = EpisodePlan(
        id=re.sub(r"[^\w.-]", "-", log.pk or f"{scenario}-{number}"),
        task=scenario,
        scenario=scenario,
        context=context.strip(),
        kind="",
        relationship="",
        briefings=tuple(
            Briefing(
                seat=seat, name=name, scenario=context, participants=names, goal=goals[seat], background=texts[seat]
            )
            for seat, name in enumerate(names)
        ),
        truths=tuple(
            GroundTruth(name=name, character=who, goal=goal, profile=text)
            for name, who, goal, text in zip(names, (*log.agents, *[""] * len(names)), goals, texts, strict=False)
        ),
        rules=EpisodeRules(max_turns=max(1, len(log.messages))),
        agents=agents,
        seed=number,
        tags=(log.tag,) if log.tag else (),
    )
    return plan, turns


def act_of(text: str) -> tuple[ActKind, str, tuple[str, ...]] | None:
    """The act in a log's words; None where they are none."""
    text = text.strip()
    to: tuple[str, ...] = ()
    if private := _PRIVATE.match(text):
        to = tuple(name.strip(" '\"") for name in private["names"].split(",") if name.strip())
        text = text[private.end() :]
    for kind, pattern in _ACTS:
        if found := pattern.match(text):
            return kind, found.groupdict().get("text") or "", to
    return None


def scores_of(log: LoggedEpisode, plan: EpisodePlan) -> list[Scores]:
    """The log's rewards as an evaluation by the judge that it names; a bare number is a failed one."""
    judge = (log.models[0] if log.models else "") or "imported"
    names = {published: own for own, published in PUBLISHED.items()}
    line = re.compile(rf"^{re.escape(judge)}, ({'|'.join(map(re.escape, plan.names))}), ([\w-]+): (.*)$", re.M)
    why = {(name, dimension): text for name, dimension, text in line.findall(log.reasoning)}  # of our own exports
    found: list[Score] = []
    for name, reward in zip(plan.names, log.rewards, strict=False):
        if isinstance(reward, tuple):
            values: dict[str, Any] = {names.get(key, key): value for key, value in reward[1].items()}
            values.pop("overall_score", None)
            found += [
                Score(name=name, dimension=key, score=value, reasoning=why.pop((name, key), ""))
                for key, value in values.items()
            ]
    found += [
        Score(name=name, dimension=dimension, score=None, reasoning=text)
        for (name, dimension), text in why.items()
        if text.startswith(NOT_JUDGED)
    ]
    if not log.rewards:
        return []
    if not found:
        return [Scores(episode=plan.id, judge=judge, state="failed", scores=(), why="the log has no scores")]
    return [Scores(episode=plan.id, judge=judge, state="done", scores=tuple(found))]
