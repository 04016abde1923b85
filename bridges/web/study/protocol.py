"""A study's protocol: consent, tasks, conditions in counterbalanced order, questionnaires, marks; from a TOML file."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec

from bridges.web.http.private_files import write_private
from bridges.web.questionnaire.questionnaire import Questionnaire, questionnaire_of, shipped, shipped_names
from bridges.web.study.condition import Allowed, StudyCondition
from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import Table, convert, parse_toml, read_text

EXAMPLE = Path(__file__).with_name("clear-the-table.toml")
MEDIA = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
"""What participants can be shown, by the end of the file's name."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


Language = Literal["en", "de", "es", "ja"]


class Consent(Table, frozen=True):
    """What a participant reads first, and the statements that each need a tick.

    `shares_words`: one of them says that what the participant says may be passed on with the data.
    """

    text: str
    statements: tuple[str, ...]
    shares_words: bool = False


class StudyTask(Table, frozen=True):
    """What is to be done; `notes` are for the experimenter alone. `limit_s` 0: no limit."""

    id: str
    title: str
    text: str
    notes: str = ""
    limit_s: float = 0.0
    practice: bool = False  # before the trials, once, and nothing is asked after it
    media: tuple[str, ...] = ()  # pictures and videos of the participant's page, found from the protocol's folder
    when: dict[str, str | int] = msgspec.field(default_factory=dict)  # only after these answers, "questionnaire/item"


class Design(Table, frozen=True):
    """`paired`: a trial for each condition, tasks dealt out in turn; `crossed`: each task under each condition;
    `between`: each participant has one condition, and every task under it; `drawn`: each task once, its condition drawn
    (each as often as can be)."""

    trials: Literal["paired", "crossed", "between", "drawn"] = "paired"
    conditions: Order = "latin-square"
    tasks: Order = "fixed"
    seed: int = 0


class When(Table, frozen=True):
    """Which questionnaires come when, by id."""

    before: tuple[str, ...] = ()
    after_trial: tuple[str, ...] = ()
    end: tuple[str, ...] = ()


class ForWizards(Table, frozen=True):
    """What the console lets operators do while a trial runs."""

    voices: tuple[Literal["robot", "collaborator"], ...] = ("robot", "collaborator")
    lock: tuple[Literal["drive", "act", "plan", "gestures", "free text", "robot", "voice"], ...] = ()


class ForExperimenters(Table, frozen=True):
    """What the experimenter's page shows."""

    sees_answers: bool = True
    sees_condition: bool = True


class MarkKey(Table, frozen=True):
    """A kind of event that is marked with one key."""

    key: str
    label: str


class Written(Table, frozen=True):
    """What stands in a protocol's file."""

    title: str
    consent: Consent
    task: tuple[StudyTask, ...]
    condition: tuple[StudyCondition, ...]
    code: str = "P{number:02}"
    language: Language = "en"  # of the participant's page; texts of the protocol are in it already
    thanks: str = "Thank you. You are done; please call the experimenter."
    agents: tuple[str, ...] = ("the robot",)
    design: Design = Design()
    participant: Allowed = Allowed()
    wizard: ForWizards = ForWizards()
    experimenter: ForExperimenters = ForExperimenters()
    # whom participants are shown, instead of the name under which somebody speaks
    names: dict[str, str] = msgspec.field(default_factory=dict)
    questionnaires: When = When()
    questionnaire: tuple[Questionnaire, ...] = ()
    mark: tuple[MarkKey, ...] = ()


class Protocol(Written, frozen=True):
    """The whole study, with the questionnaires that it names."""

    sha: str = ""  # of the file's text, and of the questionnaires' that it names
    files: dict[str, str] = msgspec.field(default_factory=dict)  # questionnaires from files: name -> text
    text: str = ""  # of the file: each session keeps it
    path: str = ""  # of the file

    def code_of(self, number: int) -> str:
        """What stands for a participant in all data."""
        return self.code.format(number=number)

    @property
    def folder(self) -> Path:
        """Where the files that it names are found from."""
        return Path(self.path).parent

    def questionnaire_of(self, name: str) -> Questionnaire:
        """The questionnaire of that id."""
        return next(one for one in self.questionnaire if one.id == name)

    def practice_of(self, number: int) -> list[tuple[StudyTask, StudyCondition]]:
        """The practice trials of a participant, under the condition of their first trial."""
        trials = self.trials_of(number)
        return [(task, trials[0][1]) for task in self.task if task.practice]

    @property
    def media(self) -> dict[str, Path]:
        """The pictures and videos that it names: name -> file."""
        names = [*(name for task in self.task for name in task.media)]
        names += [item.media for asked in self.questionnaire for item in asked.item if item.media]
        return {name: self.folder / name for name in names}

    def trials_of(self, number: int) -> list[tuple[StudyTask, StudyCondition]]:
        """The trials of a participant (numbered from 1), in their order."""
        design, own = self.design, tuple(task for task in self.task if not task.practice)
        conditions = order_of(len(self.condition), number, design.conditions, design.seed)
        # Tasks move on once per round of the conditions, so that no task sticks to a condition.
        tasks = order_of(len(own), 1 + (number - 1) // rows_of(len(self.condition)), design.tasks, design.seed + 1)
        if design.trials == "between":
            return [(own[task], self.condition[conditions[0]]) for task in tasks]
        if design.trials == "drawn":
            drawn = drawn_for(len(tasks), len(self.condition), number, design.seed)
            return [(own[task], self.condition[place]) for task, place in zip(tasks, drawn, strict=True)]
        if design.trials == "crossed":
            return [(own[task], self.condition[place]) for place in conditions for task in tasks]
        return [(own[tasks[at % len(tasks)]], self.condition[place]) for at, place in enumerate(conditions)]


def read_protocol(path: Path) -> Protocol:
    """The protocol of a file. Raises UserError in a sentence that names file, table and what was expected."""
    return _read(path, has_files=True)


def read_kept(path: Path) -> Protocol:
    """The protocol that sessions keep beside them, without the files that it names. Raises UserError."""
    return _read(path, has_files=False)


def _read(path: Path, *, has_files: bool) -> Protocol:
    text = read_text(path)
    tables = parse_toml(text, path)
    if "nodes" in tables:
        raise UserError(f"{path}: is a launch file, not a study's protocol; an example of one: {EXAMPLE}")
    found = convert(tables, Written, str(path))
    own = found.questionnaire
    for one in own:
        if problem := one.problem():
            raise UserError(f"{path}: [[questionnaire]] {one.id!r} {problem}")
    by_id = {one.id: one for one in own}
    when = found.questionnaires
    files: dict[str, str] = {}
    for name in (*when.before, *when.after_trial, *when.end):
        if name.endswith(".toml"):
            kept = kept_beside(path, name)
            where = kept if kept.exists() or not has_files else path.parent / name
            files[name] = read_text(where)
            by_id[name] = questionnaire_of(parse_toml(files[name], where), str(where))
            continue
        asked = by_id.get(name) or shipped(name)
        if asked is None:
            known = ", ".join(sorted({*by_id, *shipped_names()}))
            raise UserError(f"{path}: [questionnaires] names {name!r}, which there is not; known: {known}")
        by_id[name] = asked
    digest = hashlib.sha256("".join((text, *(files[name] for name in sorted(files)))).encode()).hexdigest()
    ids = {name: by_id[name].id for name in by_id}
    named = When(*(tuple(ids[name] for name in names) for names in (when.before, when.after_trial, when.end)))
    whole = {**msgspec.structs.asdict(found), "questionnaire": tuple(by_id.values()), "questionnaires": named}
    protocol = Protocol(**whole, sha=digest, files=files, text=text, path=str(path))
    if problem := _problem(protocol, has_files=has_files):
        raise UserError(f"{path}: {problem}")
    return protocol


def keep(protocol: Protocol, kept: Path) -> None:
    """Write its text to that file, and those of the questionnaires that it names beside it. Raises OSError."""
    write_private(kept, protocol.text)
    for name, text in protocol.files.items():
        write_private(kept_beside(kept, name), text)


def kept_beside(kept: Path, name: str) -> Path:
    """Where the questionnaire of that name stands beside a kept protocol."""
    return kept.with_name(f"{kept.stem}-{name.replace('/', '-')}")


def _problem(protocol: Protocol, *, has_files: bool) -> str:
    """What is wrong with it, as the rest of a sentence; "" for nothing."""
    found = chain(_in_texts(protocol), _in_trials(protocol, has_files=has_files), _in_conduct(protocol))
    return next(found, "")


def _in_texts(protocol: Protocol) -> Iterator[str]:
    """What is wrong with what participants read."""
    if not protocol.title.strip():
        yield "title is empty"
    if not protocol.consent.text.strip() or not protocol.consent.statements:
        yield "[consent] needs a text and statements = [...] to agree to"
    for name, shown in protocol.names.items():
        if not shown.strip():
            yield f"[names] {name} is empty; expected what participants are shown instead"
    needs_agents = any(protocol.questionnaire_of(name).per_agent for name in _asked(protocol.questionnaires))
    if needs_agents and not protocol.agents:
        yield "agents is empty, and a questionnaire asks about each of them"


def _in_trials(protocol: Protocol, *, has_files: bool) -> Iterator[str]:
    """What is wrong with tasks and conditions, and when they come."""
    for name, things in (("task", protocol.task), ("condition", protocol.condition)):
        yield from _in_ids(name, [thing.id for thing in things])
    if has_files:
        yield from filter(None, (condition.problem(protocol.folder) for condition in protocol.condition))
        yield from _in_media(protocol)
    if all(task.practice for task in protocol.task):
        yield "every [[task]] is practice = true; expected one or more of the trials themselves"
    known = {f"{asked.id}/{item.id}" for asked in protocol.questionnaire for item in asked.item}
    branches = [("task", task.id, task.when) for task in protocol.task]
    branches += [("questionnaire", asked.id, asked.when) for asked in protocol.questionnaire]
    for what, ident, when in branches:
        for unknown in when.keys() - known:
            yield f'[[{what}]] {ident}: when names {unknown!r}; expected "questionnaire/item" of this protocol'
    for task in protocol.task:
        if not 0 <= task.limit_s < float("inf"):
            yield f"[[task]] {task.id}: limit_s is {task.limit_s}; expected 0 (none) or a positive number"


def _in_ids(name: str, ids: list[str]) -> Iterator[str]:
    if not ids:
        yield f"there is no [[{name}]]; expected one or more"
    for one in ids:
        if not _ID.fullmatch(one):
            yield f"[[{name}]] id is {one!r}; expected letters, digits, - and _, at most 40"
        if ids.count(one) > 1:
            yield f"[[{name}]] id {one!r} stands there twice"


def _in_media(protocol: Protocol) -> Iterator[str]:
    for name, file in protocol.media.items():
        if file.suffix.lower() not in MEDIA:
            yield f"media {name!r} has a form that no page shows; expected {choices(MEDIA)}"
        if not file.is_file():
            yield f"media {name!r} is not there; expected it at {file}"


def _in_conduct(protocol: Protocol) -> Iterator[str]:
    """What is wrong with how experimenters and wizards work with it."""
    if not protocol.wizard.voices:
        yield '[wizard] voices is empty; expected "robot", "collaborator" or both'
    try:
        codes = {protocol.code_of(number) for number in (1, 2)}
    except (KeyError, IndexError, ValueError):
        codes = set()
    if len(codes) != 2 or not all(_ID.fullmatch(code) for code in codes):
        yield f'code is {protocol.code!r}; expected a name with {{number}} in it, like "P{{number:02}}"'
    keys = [mark.key for mark in protocol.mark]
    for mark in protocol.mark:
        if not re.fullmatch(r"[1-9]", mark.key) or keys.count(mark.key) > 1 or not mark.label.strip():
            yield f"[[mark]] {mark.label!r} has the key {mark.key!r}; expected a digit from 1 to 9 of its own"


def _asked(when: When) -> tuple[str, ...]:
    return (*when.before, *when.after_trial, *when.end)


Order = Literal["latin-square", "fixed", "random"]


def balanced_square(size: int) -> list[list[int]]:
    """Rows in which each condition is in each place equally often, and follows each other one equally often.

    Williams' design: `size` rows for an even size, twice as many for an odd one.
    """
    first = [0]
    for step in range(1, size):
        first.append((step + 1) // 2 if step % 2 else size - step // 2)
    rows = [[(place + shift) % size for place in first] for shift in range(size)]
    if size % 2 and size > 1:
        rows += [row[::-1] for row in rows]
    return rows


def drawn_for(trials: int, conditions: int, participant: int, seed: int) -> list[int]:
    """A condition for each trial, at random, each as often as the others or once more."""
    chance = random.Random(f"{seed}/{participant}/drawn")
    found: list[int] = []
    while len(found) < trials:
        found += chance.sample(range(conditions), conditions)
    found = found[:trials]
    chance.shuffle(found)
    return found


def rows_of(size: int) -> int:
    """After how many participants the square begins anew."""
    return 2 * size if size % 2 and size > 1 else size


def order_of(count: int, participant: int, order: Order, seed: int) -> list[int]:
    """The order of `count` things for a participant (numbered from 1)."""
    if order == "fixed" or count < 2:
        return list(range(count))
    if order == "random":
        return random.Random(f"{seed}/{participant}").sample(range(count), count)
    names = random.Random(f"{seed}/names").sample(range(count), count)  # which condition is which letter of the square
    rows = balanced_square(count)
    return [names[place] for place in rows[(participant - 1) % len(rows)]]
