"""The table of docs/models.md: what each seat does about each behaviour, by the nodes and commands that ship.

`python -m tests.nodes.models.server_table [SECTION]` writes it anew. Planner and VLM run in virtual time,
an episode and a judge by their command, the realtime planner over a WebSocket. All ask one server; an address is a
behaviour and a seat.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np

from nodes.episodes.command import main as episodes
from nodes.episodes.results.store import Store
from nodes.msgs import Image, Subtask, Utterance
from nodes.planner.model_prompt import words as planner_words
from nodes.planner.realtime_api import RealtimePlanner
from nodes.vlm.eyes.model_prompt import words as vlm_words
from nodes.vlm.openai_api import OpenAIVLM
from runtime import RELIABLE, Node, Publisher, Simulation, Subscription, every, on, run
from tests.nodes.planner.openai_planner_table import REQUEST, Table, picture, put
from tests.support.servers.behaviours import MARK, SECTIONS, Row
from tests.support.servers.fake_openai_server import Behaviour, FakeOpenAI, Request
from tests.support.servers.realtime_server import Answer, RealtimeServer

PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
BEGIN, END = "<!-- measured: begin, written by make models -->", "<!-- measured: end -->"
DEADLINE_S = 2.0
"""Of one question in the table: what never comes is waited for so long."""
TASK = "cello-with-a-crack"
SCORES = {"BEL": 8, "REL": 3, "KNO": 3, "SEC": -2, "SOC": 0, "FIN": 1, "GOAL": 6}
SEEN = f"I see a red block {MARK} on."
PLANNED = f"Put the cups in the bin {MARK} on"
SAID = f"I could do 310 {MARK} on."
GOOD = {
    "planner": put("blue", text=PLANNED, learned=[]),
    "vlm": json.dumps(
        {
            "objects": [{"label": "block", "colour": "red", "u": 40, "v": 20, "is_place": False}],
            "target": -1, "place": -1, "skill": "", "done": False, "say": SEEN,
        }
    ),
    "act": json.dumps({"action_type": "speak", "argument": SAID, "to": []}),
}  # fmt: skip
"""What a model answers that is well."""


def good_judge(names: Sequence[str]) -> str:
    """Every score, with its reason."""
    one = {dimension: {"reasoning": f"It seemed so {MARK} on.", "score": score} for dimension, score in SCORES.items()}
    return json.dumps({"evaluations": dict.fromkeys(names, one)})


class Server(FakeOpenAI):
    """At `address(row, seat)` it behaves as that row, for that seat; `asked` says how often it was."""

    def __init__(self, rows: Sequence[Row], deadline_s: float) -> None:
        super().__init__(self._dispatch)
        self.rows = list(rows)
        self.deadline_s = deadline_s
        self.limits = (f"{max(BATCH_DEADLINE_S, deadline_s)}", "--timeout", "300")
        self.names: Sequence[str] = ()  # whom a judge is asked about
        self._made: dict[tuple[int, str], Behaviour] = {}

    def address(self, row: Row, seat: str) -> str:
        """The base URL."""
        return self.url.replace("/v1", f"/{self.rows.index(row)}/{seat}/v1")

    def model(self, row: Row, seat: str) -> str:
        """The name of the model there."""
        return "m"

    def spec(self, row: Row, seat: str) -> str:
        """The same for a command."""
        return f"{self.model(row, seat)}@{self.address(row, seat)}"

    def asked(self, row: Row, seat: str) -> int:
        """So many requests came."""
        start = self.address(row, seat).partition("/")[2].partition("/")[2].partition("/")[2]
        return sum(one.target.startswith(f"/{start}/") for one in self.requests)

    async def _dispatch(self, request: Request, writer: object) -> None:
        number, seat = request.target.split("/")[1:3]
        at = (int(number), seat)
        if at not in self._made:
            self._made[at] = self.rows[at[0]].serve(GOOD[seat] if seat in GOOD else good_judge(self.names))
        await self._made[at](request, writer)  # type: ignore[arg-type]  # a StreamWriter


class _Log(logging.Handler):
    """Keeps the warnings of a run."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def warnings() -> Iterator[list[str]]:
    """What is warned of within the block."""
    log, root = _Log(), logging.getLogger()
    root.addHandler(log)
    try:
        yield log.lines
    finally:
        root.removeHandler(log)


BATCH_DEADLINE_S = 8.0
"""The same for what one command asks side by side."""


@dataclass(frozen=True)
class Cell:
    """What a seat did, after how many requests, and what it said of them."""

    what: str
    asked: int = 1
    why: str = ""

    def __str__(self) -> str:
        is_answered = self.what.startswith(("plans", "sees", "plays", "scores", "asks"))
        return f"{self.what} ({self.asked})" if is_answered and self.asked != 1 else self.what


NONE = Cell("–")


def holds(text: str) -> bool:
    """Whether it is what the good answer says, whatever stands in the middle of it."""
    return re.search(r"\band\b.*\bso on", text, re.DOTALL) is not None


def until(sim: Simulation, is_so: Callable[[], object], seconds: int) -> None:
    """Run until that is so, and no longer than that in virtual time."""
    for _ in range(seconds):
        if is_so() or sim.outcome is not None:
            return
        sim.run(seconds=1.0)


def planner(server: Server, row: Row) -> Cell:
    """A person asks for something while the camera shows something."""
    says = planner_words().say
    with warnings() as log:
        os.environ["OPENAI_BASE_URL"] = server.address(row, "planner")
        at = cast(FakeOpenAI, _At(server.address(row, "planner")))
        with Table(at, model=server.model(row, "planner"), deadline_s=server.deadline_s, stream=row.stream) as table:
            table.sim.publish("head/image", picture())
            table.hear(REQUEST)

            def told(text: str) -> bool:
                return any(one.text == text for one in table.said)

            until(table.sim, lambda: table.subtasks or told(says.unusable) or told(says.giving_up), 90)
            how = " without the image" if told(says.blind) else ""
            if table.subtasks and table.subtasks[-1].state == "work":
                how += ", after a pause" if told(says.failing) else ""
                what = f"plans{how}" if holds(table.subtasks[-1].text) else f"plans{how} {table.subtasks[-1].text!r}"
            elif told(says.unusable):
                what = f"asks the person{how}"
            else:
                is_given_up = any(one.text == says.giving_up for one in table.said)
                what = "gives up" if is_given_up else "does nothing"
    return Cell(what, server.asked(row, "planner"), _why(log))


class Eyes(Node):
    """A camera in front of something red, with one picture of it."""

    image = Publisher(Image, "head/image")

    @every(hz=10)
    def tick(self) -> None:
        rgb = np.zeros((48, 64, 3), np.uint8)
        rgb[:, 32:, 0] = 255
        self.image.publish(Image(camera="head", captured_ns=1, rgb=rgb))


def vlm(server: Server, row: Row) -> Cell:
    """It looks, without a subtask."""
    address = server.address(row, "vlm")
    node = OpenAIVLM(model=server.model(row, "vlm"), base_url=address, deadline_s=server.deadline_s, stream=row.stream)
    with warnings() as log:
        sim = Simulation(Eyes(), node)
        said = sim.record(OpenAIVLM.said)
        try:
            until(sim, lambda: said, 12)
        finally:
            sim.close()
    texts = [one.text for one in said]
    if any(holds(text) for text in texts):
        what = "sees"
    elif vlm_words().say.unusable in texts:
        what = "asks the person"
    else:
        what = "is blind" if node.model.is_blind else f"sees nothing {texts}"
    return Cell(what, server.asked(row, "vlm"), _why(log))


class _At:
    """An address, for what takes a server."""

    def __init__(self, url: str) -> None:
        self.url = url


BEGINS = re.compile(
    r"^[^:]*?(?:in a row\)|be used|questions|left out from now on): "
    r"(?:the model's answer is not what was asked for: )?"
)


def _why(log: Sequence[str]) -> str:
    """The last reason, without its beginning."""
    said = [BEGINS.sub("", one) for one in log if "took up to" not in one]
    return said[-1] if said else ""


def players(server: Server, rows: Sequence[Row], folder: Path, *, stream: bool) -> list[Cell]:
    """Each row's model plays both seats of an episode of four turns, by one command where none ends a batch."""
    if any(row.ends_batch for row in rows):
        alone = {row.name: _played(server, [row], folder, stream=stream) for row in rows if row.ends_batch}
        others = iter(players(server, [row for row in rows if not row.ends_batch], folder, stream=stream))
        return [alone[row.name][0] if row.ends_batch else next(others) for row in rows]
    return _played(server, rows, folder, stream=stream)


def _played(server: Server, rows: Sequence[Row], folder: Path, *, stream: bool) -> list[Cell]:
    run_file = folder / f"acts{stream}{server.rows.index(rows[0])}.sqlite"
    who = [part for row in rows for part in ("--agents", server.spec(row, "act"))]
    asked = ["run", "--task", TASK, *who, "--judges", "rules", "--turns", "4", "--out", str(run_file)]
    with redirect_stdout(StringIO()):
        episodes(
            [
                *asked,
                "--deadline",
                f"{max(BATCH_DEADLINE_S, server.deadline_s)}",
                "--timeout",
                "300",
                *(["--stream"] if stream else []),
            ]
        )
    cells: list[Cell] = []
    with Store.read(run_file) as store:
        played = {row.agents[0]: row for row in store.episodes()}
        for row in rows:
            episode = played[server.spec(row, "act")]
            turns = store.turns(episode.id)
            faults = {turn.fault for turn in turns if turn.fault}
            if not faults and episode.state == "done":
                other = {turn.argument for turn in turns if not holds(turn.argument)}
                what = "plays" if not other else f"plays {', '.join(sorted(other))!r}"
            elif episode.state == "done":
                what = f"plays, turns {', '.join(sorted(faults))}"
            else:
                what = f"fails, turns {', '.join(sorted(faults))}" if faults else "fails"
            asked_for = server.asked(row, "act")
            notes = [turn.note for turn in turns if turn.fault]
            cells.append(
                Cell(
                    what,
                    1 if asked_for == len(turns) else asked_for,
                    episode.reason if episode.state != "done" else "".join(notes[:1]),
                )
            )
    return cells


def judges(server: Server, rows: Sequence[Row], folder: Path, *, stream: bool) -> list[Cell]:
    """Each row's model judges the same episode, all by one command."""
    run_file = folder / f"judged{stream}.sqlite"
    with redirect_stdout(StringIO()):
        episodes(["run", "--task", TASK, "--agents", "rules", "--turns", "4", "--out", str(run_file)])
        with Store.read(run_file) as store:
            server.names = store.episodes()[0].names
        who = ",".join(server.spec(row, "judge") for row in rows)
        asked = [
            "score",
            str(run_file),
            "--judges",
            who,
            "--deadline",
            f"{max(BATCH_DEADLINE_S, server.deadline_s)}",
            "--timeout",
            "300",
        ]
        episodes([*asked, *(["--stream"] if stream else [])])
    cells: list[Cell] = []
    with Store.read(run_file) as store:
        made = {one.judge: one for one in store.scores(store.episodes()[0].id)}
    for row in rows:
        one = made[server.spec(row, "judge")]
        other = {f"{had.dimension} {had.score:g}" for had in one.scores if had.score != SCORES[had.dimension]}
        what = f"scores {', '.join(sorted(other))}".strip() if one.state == "done" else "gives none"
        cells.append(Cell(what, server.asked(row, "judge"), one.why))
    return cells


class Person(Node):
    """Asks one thing after the other, each when the one before was answered."""

    heard = Publisher(Utterance, "heard", qos=RELIABLE)
    said = Subscription(Utterance, "said")
    subtask = Subscription(Subtask, "subtask")

    def __init__(self, count: int, is_open: Callable[[], bool]) -> None:
        self.count = count
        self.is_open = is_open
        self.number = -1
        self.answers: list[str] = []
        self.known = ""

    @every(hz=20)
    def ask(self) -> None:
        if self.number + 1 > len(self.answers) or not self.is_open():
            return
        self.number += 1
        if self.number == self.count:
            self.finish(ok=True, reason="")
        else:
            self.heard.publish(Utterance(speaker="ann", text=f"request {self.number}"))

    @on(subtask)
    def planned(self, subtask: Subtask) -> None:
        if subtask.id != self.known:
            self.known = subtask.id
            self._answered("plans" if holds(subtask.text) else f"plans {subtask.text!r}")

    @on(said)
    def spoken(self, utterance: Utterance) -> None:
        if utterance.text == planner_words().say.unusable:
            self._answered("asks the person")

    def _answered(self, what: str) -> None:
        if self.number == len(self.answers):
            self.answers.append(what)


def spoken(rows: Sequence[Row]) -> dict[str, Cell]:
    """What a realtime planner makes of the words, as arguments of its tool, in one session."""
    odd = [row for row in rows if row.text is not None and not row.judge]

    def answer(_: object, __: int) -> Answer:
        number = person.number
        if not (0 <= number < len(odd)) or number < len(person.answers):
            return Answer()
        other: dict[str, Any] = {"things": [{"label": "cup", "colour": "", "count": 1 + number % 99, "id": ""}]}
        plan = json.loads(put("blue", text=PLANNED, **other))
        text = cast(Callable[[str], str], odd[number].text)(json.dumps({k: plan[k] for k in plan if k != "say"}))
        return Answer("", 0.0, (text,))

    with RealtimeServer(answer) as server:
        person = Person(len(odd), lambda: bool(server.sessions and server.sessions[0].of("session.update")))
        planner_node = RealtimePlanner(base_url=server.url, model="voice", sees=False)
        outcome = run(planner_node, person, seconds=20.0 + 3 * len(odd))
        assert outcome == (True, ""), (outcome, len(person.answers))
    return {row.name: Cell(what) for row, what in zip(odd, person.answers, strict=True)}


@dataclass(frozen=True)
class Spoken:
    """What a realtime server does with the first requests for an answer, and how it is otherwise."""

    name: str
    first: Answer
    times: int = 1
    is_beta: bool = False
    takes_images: bool = True


REALTIME = (
    Spoken("it calls its tool", Answer(calls=(put("blue", text=PLANNED),))),
    Spoken("it speaks and calls its tool", Answer("I do it.", 0.2, (put("blue", text=PLANNED),))),
    Spoken(
        "the Beta's names of events and form of a session", Answer(calls=(put("blue", text=PLANNED),)), is_beta=True
    ),
    Spoken("it takes no images", Answer(calls=(put("blue", text=PLANNED),)), takes_images=False),
    Spoken("an answer is refused: rate_limit_exceeded", Answer(refused="rate_limit_exceeded")),
    Spoken("an answer is refused: another one is active", Answer(refused="conversation_already_has_active_response")),
    Spoken("an answer never begins", Answer(refused="silence")),
    Spoken("an answer fails", Answer(fails="the engine burns")),
    Spoken("an answer fails each time", Answer(fails="the engine burns"), times=99),
    Spoken("a text that is no JSON", Answer(garbage="<html>", calls=(put("blue", text=PLANNED),))),
    Spoken(
        "an event of a kind that nobody knows", Answer(garbage='{"type": "hm"}', calls=(put("blue", text=PLANNED),))
    ),
    Spoken("an event that is a list", Answer(garbage="[]", calls=(put("blue", text=PLANNED),))),
    Spoken("an event with half a character", Answer(garbage='{"type": "\\ud83d"}', calls=(put("blue", text=PLANNED),))),
)


def heard_once(row: Spoken) -> Cell:
    """A person asks for one thing."""
    good = Answer(calls=(put("blue", text=PLANNED),))

    def answer(_: object, number: int) -> Answer:
        return row.first if number < row.times else good

    with warnings() as log, RealtimeServer(answer, is_beta=row.is_beta, takes_images=row.takes_images) as server:
        person = Person(1, lambda: bool(server.sessions and server.sessions[0].of("session.update")))
        outcome = run(RealtimePlanner(base_url=server.url, model="voice"), Eyes(), person, seconds=60.0)
        assert outcome == (True, ""), (row.name, log)
        said = " without the image" if not row.takes_images else ""
    return Cell(person.answers[0] + said, why=_why(log))


def measured(
    rows: Sequence[Row], heard_rows: Sequence[Spoken] = (), *, deadline_s: float = DEADLINE_S, realtime: bool = True
) -> dict[str, str]:
    """Each row's line of the table, by its name."""
    with mock.patch.dict(os.environ):  # what is set here is nobody else's
        os.environ.setdefault("OPENAI_API_KEY", "sk-of-a-test")
        os.environ.setdefault("REALTIME_API_KEY", "rt-of-a-test")
        seats: dict[str, list[Cell]] = {}
        with Server(rows, deadline_s) as server, tempfile.TemporaryDirectory() as folder:
            for stream in (False, True):
                if part := [row for row in rows if row.stream is stream]:
                    judged = judges(server, part, Path(folder), stream=stream)
                    others = [row for row in part if not row.judge]
                    acted = iter(players(server, others, Path(folder), stream=stream) if others else ())
                    for row, score in zip(part, judged, strict=True):
                        seats[row.name] = [NONE, NONE, NONE, score]
                        if not row.judge:
                            seats[row.name] = [planner(server, row), vlm(server, row), next(acted), score]
        heard = spoken(rows) if realtime else {}
        lines = {name: _line(name, [*cells, heard.get(name, NONE)]) for name, cells in seats.items()}
        return lines | {row.name: _line(row.name, [NONE] * 4 + [heard_once(row)]) for row in heard_rows}


def _line(name: str, cells: Sequence[Cell]) -> str:
    why = next((cell.why for cell in cells if cell.why), "")
    shown = name.replace("|", "\\|")
    said = re.sub(r"127\.0\.0\.1:\d+", "HOST", why).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    said = said if len(said) <= 160 else f"{said[:157]}..."
    return f"| {' | '.join((shown, *map(str, cells), said))} |"


SPOKEN = "What a realtime server does"
HEAD = "| behaviour | planner | VLM | episode | judge | realtime | what is said |\n|---|---|---|---|---|---|---|"


def table(lines: dict[str, str]) -> str:
    """All sections."""
    parts = []
    names = {title: [row.name for row in rows] for title, rows in SECTIONS.items()}
    for title, listed in (names | {SPOKEN: [row.name for row in REALTIME]}).items():
        if found := [lines[name] for name in listed if name in lines]:
            parts.append("\n".join([f"### {title}", "", HEAD, *found]))
    return "\n\n".join(parts)


def all_rows() -> list[Row]:
    """Every behaviour but those of realtime servers."""
    return [row for rows in SECTIONS.values() for row in rows]


def on_the_page() -> str:
    """What the page says between its marks."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip()


def lines_of(text: str) -> dict[str, str]:
    """Lines of a table by their first cell; bars within a cell are escaped."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return {line[2:].partition(" | ")[0].replace("\\|", "|"): line for line in rows}


def main(wanted: Collection[str]) -> int:
    """Measure the rows of these sections, of all where none is named, and write them into the page."""
    titles = wanted or [*SECTIONS, SPOKEN]
    rows = [row for title in titles for row in SECTIONS.get(title, ())]
    lines = lines_of(on_the_page()) | measured(rows, REALTIME if SPOKEN in titles else ())
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(lines)}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
