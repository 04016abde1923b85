"""`PackagePrompts`: what the sotopia package tells its models, read from an installed copy or a file, and filled in.

None of its text stands in this project. A run keeps what it used, so that it can be resumed and shown without it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.scenarios.visibility import EVERYONE, Cast, Mode, text_for
from nodes.msgs.episode import ActKind, Briefing, Observation, Turn
from runtime.errors import UserError
from runtime.serialization.toml_errors import read_text

VERSIONS = ("0.1.5", "0.1.4")
"""Those whose rules are known here."""

EXTRACT_S = 180.0
"""How long the package may take to start."""

_PLACE = re.compile("⟦([^⟧]+)⟧")
_FIELDS = "name first_name last_name age occupation pronouns public_info personality secret"


class PackagePrompts(msgspec.Struct, frozen=True):
    """The texts of one version, with places to fill in, as `extract_package_prompts.py` prints them."""

    version: str
    genders: dict[str, str]
    first: dict[
        str, tuple[str, str, str]
    ]  # by mode and number of the relationship, "AGENTS 3": seat 0's, seat 1's, the judge's
    act: str
    act_schema: dict[str, object]
    acts: dict[ActKind, str]
    turn: str
    judge: str
    judge_schema: dict[str, object]  # {}: the package asks that judge for no schema
    judge_turn: str

    @property
    def name(self) -> str:
        """As `--like` names it."""
        return f"sotopia-{self.version}"

    def first_texts(self, cast: Cast, goals: Sequence[str], mode: Mode, *, name_only: bool) -> tuple[str, str, str]:
        """What each seat is told first, and what the judge is; `goals` as their owners see them.

        Raises UserError for what the package does not play.
        """
        if len(cast.people) != 2 or mode not in ("AGENTS", "MINDREADERS"):
            raise UserError(
                f"--like {self.name}: task {cast.scenario.id} has {len(cast.people)} seats in mode {mode}; expected "
                "two seats in mode AGENTS or MINDREADERS"
            )
        values = {"SCENARIO": text_for(cast.scenario.context, EVERYONE)}
        for seat, person in enumerate(cast.people):
            of_person = {field.upper(): str(getattr(person, field)) for field in _FIELDS.split()}
            of_person |= {"GENDER": self.genders.get(person.gender, ""), "GOAL": goals[seat]}
            values |= {f"{name}_{seat}": value for name, value in of_person.items()}
        relationship = cast.scenario.relationship.value  # the package counts them as we do
        first, second, whole = self.first[f"{'NAMES' if name_only else mode} {relationship}"]
        return _filled(first, values), _filled(second, values), _filled(whole, values)

    def act_prompt(self, briefing: Briefing, turns: Sequence[Turn], observation: Observation) -> str:
        """The whole prompt of one ask: the first text, each turn so far, and the question."""
        before = observation.turn - 1
        told = [briefing.background]
        for number in range(1, before + 1):
            acts = ";".join(
                f"{turn.speaker} {self._act_text(turn)}"
                for turn in turns
                if turn.number == number and turn.kind != "none"
            )
            told.append(_filled(self.turn, {"BEFORE": str(number - 1), "ACTS": acts}))
        return _filled(self.act, {"AGENT": briefing.name, "HISTORY": "\n".join(told), "TURN": str(before)})

    def judge_prompt(self, plan: EpisodePlan, turns: Sequence[Turn]) -> str:
        """The whole prompt of an evaluation of all seven dimensions.

        Whatever holds the words for silence is left out, as there: a background that happens to hold them, too.
        """
        told = [plan.whole_background]
        for number in range(1, max((turn.number for turn in turns), default=0) + 1):
            told.append(_filled(self.judge_turn, {"TURN": str(number)}))
            told += [f"{turn.speaker} {self._act_text(turn)}" for turn in turns if turn.number == number]
        return _filled(self.judge, {"HISTORY": "\n".join(text for text in told if self.acts["none"] not in text)})

    def _act_text(self, turn: Turn) -> str:
        return _filled(self.acts[turn.kind], {"ARGUMENT": turn.argument})


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Each place filled in once; one whose name came out in lower case is of a value that the package lowers."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return values[name] if name in values else values[name.upper()].lower()

    return _PLACE.sub(value, text)


def read_prompts(text: str) -> PackagePrompts:
    """The prompts that `--like` names: "sotopia-0.1.5" or "-0.1.4", with "@FILE.json" or "@PYTHON" (that has it).

    Raises UserError.
    """
    name, _, where = text.partition("@")
    version = name.removeprefix("sotopia-")
    if name == version or version not in VERSIONS:
        known = ", ".join(f"sotopia-{each}" for each in VERSIONS)
        raise UserError(f"--like {text[:80]!r}: unknown; expected {known}, with @FILE.json or @PYTHON where it is")
    data = read_text(Path(where)) if where.endswith(".json") else _from_python(where or sys.executable)
    try:
        prompts = msgspec.json.decode(data, type=PackagePrompts)
    except msgspec.MsgspecError as problem:
        raise UserError(f"--like {text[:80]}: holds no prompts of the sotopia package: {problem}") from problem
    if prompts.version != version:
        raise UserError(f"--like {text[:80]}: there it is sotopia {prompts.version}")
    return prompts


def prompts_in(spec: Mapping[str, Any]) -> PackagePrompts | None:
    """Those that a run keeps in its file; None where it used our own."""
    return msgspec.convert(spec["like"], PackagePrompts) if "like" in spec else None


def _from_python(python: str) -> bytes:
    script = Path(__file__).with_name("extract_package_prompts.py")
    try:
        done = subprocess.run([python, "-I", str(script)], capture_output=True, timeout=EXTRACT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UserError(f"--like: {python}: cannot be asked: {problem}") from problem
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]
        raise UserError(
            f"--like: {python} cannot read the sotopia package ({last[:200]}); expected an interpreter that has it, "
            "as in: --like sotopia-0.1.5@/path/to/venv/bin/python"
        )
    return done.stdout
