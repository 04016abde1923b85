"""`episodes scenarios new`: new social tasks from inspirational prompts, by a model or by a template.

A prompt is used once. What it became is one line of `generation.jsonl`, written before the next prompt is begun, so a
killed generation goes on. A task counts only if it can be cast, is none that there is already, and is no evaluation
task: a model must not be trained on what it is tested with.
"""

from __future__ import annotations

import csv
import hashlib
import os
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import NoStore, SeatCaller
from nodes.episodes.dialogue.prompt import TEXT, json_object
from nodes.episodes.scenarios.library import Library, make
from nodes.episodes.scenarios.lint import placeholder_in
from nodes.episodes.scenarios.profiles import ProfileError, Relationship, Scenario
from nodes.episodes.scenarios.sampling import allowed_casts
from nodes.models.chat_format import ModelAnswer
from nodes.models.json_reading import UnreadableError, read_object
from nodes.models.servers import Servers
from runtime.errors import UserError, writing
from runtime.operating_system.whole_file import write_whole

GENERATION, REVIEWS = "generation.jsonl", "reviews.jsonl"
ALIKE = 0.5
"""Tasks of which so many word triples are the same (Jaccard) are one task."""

TASK_TOKENS = 1500


_Line = TypeVar("_Line", "Generated", "Review")


class Prompt(msgspec.Struct, frozen=True):
    """One inspirational prompt, and the data set that it is from."""

    text: str
    source: str = ""

    @property
    def key(self) -> str:
        """The same for the same words."""
        return hashlib.sha256(" ".join(self.text.lower().split()).encode()).hexdigest()[:12]


class Generated(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one prompt."""

    key: str
    prompt: str
    state: Literal["accepted", "refused", "unreadable"]
    why: str = ""
    scenario: Scenario | None = None


class Review(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a person decided on a generated task."""

    id: str
    state: Literal["accepted", "refused"]
    why: str = ""
    scenario: Scenario | None = None  # as it was edited; accepted ones have it


def read_prompts(path: Path) -> list[Prompt]:
    """The rows of a CSV file with a column `prompt` and perhaps `source`; doubles once. Raises UserError."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            if "prompt" not in (rows.fieldnames or ()):
                raise UserError(f"{path}: has the columns {', '.join(rows.fieldnames or ())}; expected prompt[,source]")
            found = [Prompt(row["prompt"].strip(), (row.get("source") or "").strip()) for row in rows if row["prompt"]]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise UserError(f"{path}: cannot be read: {problem}") from problem
    return list({prompt.key: prompt for prompt in found if prompt.text}.values())


def generated_in(folder: Path) -> list[Generated]:
    """What earlier calls made of their prompts; a line that a kill cut short does not count."""
    return _lines_of(folder / GENERATION, Generated)


def accepted_in(folder: Path) -> tuple[list[Scenario], dict[str, Review]]:
    """The tasks that `--tasks` takes, all until a person has decided on one, then the accepted; and the decisions."""
    made = {one.scenario.id: one.scenario for one in generated_in(folder) if one.scenario is not None}
    reviews = {one.id: one for one in _lines_of(folder / REVIEWS, Review)}
    if not reviews:
        return list(made.values()), {}
    return [one.scenario for name in made if (one := reviews.get(name)) and one.scenario is not None], reviews


def _lines_of(path: Path, kind: type[_Line]) -> list[_Line]:
    if not path.is_file():
        return []
    found = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            found.append(msgspec.json.decode(line, type=kind))
        except msgspec.MsgspecError as problem:
            raise UserError(f"{path}: is no file of generated tasks: {problem}") from problem
    return found


async def generate(
    prompts: Sequence[Prompt],
    folder: Path,
    count: int,
    library: Library,
    *,
    model: str = "",
    evaluation: Iterable[Scenario] = (),
    earlier: Sequence[Path] = (),
    seed: int = 0,
) -> list[Generated]:
    """Generate until `count` tasks are accepted or the prompts are used up; all that stands in the folder then.

    Characters come from the library; `earlier` are folders whose prompts and tasks are not used again. Raises UserError
    where the folder cannot be written, OutageError where the model cannot be asked.
    """
    done = generated_in(folder)
    used = {one.key for one in done} | {one.key for path in earlier for one in generated_in(path)}
    known = {scenario.id: ("the evaluation task", scenario) for scenario in evaluation}
    for path in earlier:
        known |= {one.scenario.id: ("the task", one.scenario) for one in generated_in(path) if one.scenario}
    known |= {one.scenario.id: ("the task", one.scenario) for one in done if one.scenario}
    servers = Servers()
    if model:
        AgentSpec.parse(model).check_model(servers)
    async with servers:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            accepted = sum(one.state == "accepted" for one in done)
            for prompt in prompts:
                if accepted >= count:
                    break
                if prompt.key in used:
                    continue
                try:
                    scenario = await _by_model(prompt, model, servers) if model else by_template(prompt, seed)
                    why = refusal(scenario, library, known)
                    one = Generated(prompt.key, prompt.text, "refused" if why else "accepted", why,
                                    None if why else scenario)  # fmt: skip
                except (UnreadableError, ProfileError) as problem:
                    one = Generated(prompt.key, prompt.text, "unreadable", str(problem))
                keep_line(folder / GENERATION, one)
                done.append(one)
                if one.scenario is not None:
                    accepted += 1
                    known[one.scenario.id] = ("the task", one.scenario)
            write_rows(folder, "characters", list(library.characters.values()))
            write_rows(folder, "relationships", list(library.bonds))
            write_rows(folder, "scenarios", accepted_in(folder)[0])
    return done


def refusal(scenario: Scenario, library: Library, known: dict[str, tuple[str, Scenario]]) -> str:
    """Why a task is not taken, as a sentence; "" where it is."""
    if scenario.seats != 2:
        return f"it has {scenario.seats} seats; expected 2"
    if scenario.id in known:
        return f"it is {known[scenario.id][0]} {scenario.id}"
    if found := placeholder_in(scenario.context, *scenario.goals):
        return f"{found!r} stands for a name that nobody filled in"
    words = _triples(scenario)
    for kind, other in known.values():
        others = _triples(other)
        share = len(words & others) / (len(words | others) or 1)  # Jaccard's
        if share >= ALIKE:
            return f"it is like {kind} {other.id}: {share:.0%} of their word triples are the same"
    if not allowed_casts(library, scenario, random.Random(0)):
        return (
            f"nobody in {library.name} can play it: no two people stand as {scenario.relationship.word} at these ages"
        )
    return ""


def _triples(scenario: Scenario) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", " ".join((scenario.context, *scenario.goals)).lower())
    return set(zip(words, words[1:], words[2:], strict=False))


_ASK = """Write one social task for two people, inspired by this: "{prompt}"

"context" is what both see: place, time, what is going on, without names. "goals" are two private goals that can \
conflict, each addressed with "You want to ...". "relationship" is how the two stand to each other: {relations}. \
"ages" are two ranges of years of who may play it. Do not copy the inspiration.

Answer with one JSON object and nothing else: {{"context": "...", "goals": ["...", "..."], "relationship": "...", \
"ages": [[18, 70], [18, 70]]}}"""
_SCHEMA = json_object({
    "context": TEXT,
    "goals": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2},
    "relationship": {"type": "string", "enum": [one.word for one in Relationship]},
    "ages": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
})  # fmt: skip


async def _by_model(prompt: Prompt, model: str, servers: Servers) -> Scenario:
    """The model's task; after an unreadable answer one re-ask, then UnreadableError."""
    caller = SeatCaller(AgentSpec.parse(model), servers, NoStore(), 0, tokens=TASK_TOKENS)
    text = _ASK.format(prompt=prompt.text, relations=", ".join(one.word for one in Relationship))

    def read(answer: ModelAnswer) -> Scenario:
        try:
            return _scenario(prompt, read_object(answer.text))
        except ProfileError as problem:
            raise UnreadableError(str(problem)) from problem

    return await caller.ask_for(text, _SCHEMA, "task", read)


def _scenario(prompt: Prompt, found: dict[str, Any]) -> Scenario:
    fields = {key: found[key] for key in ("context", "goals", "relationship", "ages") if found.get(key)}
    return make(f"prompt {prompt.key}", {"id": f"new-{prompt.key}", "source": prompt.source[:60], **fields}, Scenario)


_PLACES = (
    "A flea market before noon", "A half-empty flat on the day of a move", "The yard behind a workshop",
    "A tram stop in the rain", "The hall of a youth club", "A garden with the gate open",
    "A second-hand shop near closing time", "The steps of a town library", "A harbour kiosk in the off season",
    "A kitchen with boxes on every chair",
)  # fmt: skip
_THINGS = (
    ("bicycle trailer", 180), ("record player", 140), ("carved chess set", 90), ("tent for four", 120),
    ("sewing machine", 160), ("pair of oars", 70), ("telescope", 260), ("box of comics", 60), ("leather coat", 110),
    ("workbench", 210), ("accordion", 420), ("cargo bike", 900), ("wood stove", 540), ("set of copper pans", 130),
    ("oak table", 380), ("kayak", 460), ("typewriter", 80), ("garden swing", 150), ("loom", 620), ("coffee mill", 95),
)  # fmt: skip


def by_template(prompt: Prompt, seed: int = 0) -> Scenario:
    """A task without a model: two people bargain over a thing while the prompt is on their minds."""
    chance = random.Random(f"task {seed} {prompt.key}")
    thing, worth = chance.choice(_THINGS)
    opening = round(worth * chance.uniform(0.9, 1.6) / 5) * 5
    reserve, limit = (round(opening * chance.uniform(*span) / 5) * 5 for span in ((0.55, 0.7), (0.75, 0.95)))
    hope, wish = (round(opening * chance.uniform(*span) / 5) * 5 for span in ((0.92, 1.0), (0.45, 0.6)))
    wish = min(wish, limit)
    fact = {
        "context": f"{chance.choice(_PLACES)}. A {thing} is for sale for {opening} euros; one of the two people owns "
        f"it, the other has come about it. On the way here both have heard somebody say: {prompt.text}",
        "goals": [
            f"You want to sell the {thing} for about {hope} euros, and for no less than {reserve}.",
            f"You want to buy the {thing} for about {wish} euros; {limit} is all that you have.",
        ],
        "kind": "negotiation",
        "deal": {"about": f"the {thing}", "unit": "EUR", "opening": opening, "step": 5},
        "facts": [
            {"role": "seller", "wants": "high", "target": hope, "reserve": reserve},
            {"role": "buyer", "wants": "low", "target": wish, "reserve": limit},
        ],
    }
    where = f"prompt {prompt.key}"
    return make(where, {"id": f"new-{prompt.key}", "source": prompt.source[:60], "tag": "template", **fact}, Scenario)


def keep_line(path: Path, record: Generated | Review) -> None:
    """Add a line, which is on the disk when this returns; what a kill left of the last one is dropped."""
    if path.is_file() and (data := path.read_bytes()) and not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)
    with open(path, "ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def write_rows(folder: Path, stem: str, rows: Sequence[object]) -> None:
    """One table of a folder as `--tasks` reads it; it appears whole."""
    write_whole(folder / f"{stem}.jsonl", b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
