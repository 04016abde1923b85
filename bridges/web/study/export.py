"""The sessions of a folder as tidy tables: one row a session, trial, answer, event, utterance or act of a wizard."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bridges.web.http.private_files import open_private, private_folder, write_private
from bridges.web.study.journal import kept_protocol, read_events
from bridges.web.study.protocol import Protocol, keep, read_kept
from bridges.web.study.session import Event, SessionProgress
from bridges.web.study.steps import SessionStep
from runtime.errors import UserError, writing
from runtime.extras import install

Cell = str | int | float
Row = dict[str, Cell]


class Column(NamedTuple):
    """A column of a table, for the codebook."""

    name: str
    unit: str
    meaning: str


_WHO = (Column("participant", "", "what stands for the participant"),)
_WHERE = (
    *_WHO,
    Column("trial", "", "number of the trial in this session, from 1; empty outside trials"),
    Column("attempt", "", "of that trial: one that was aborted or interrupted is started again"),
    Column("task", "", "id of the task"),
    Column("condition", "", "id of the condition"),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "sessions": (
        *_WHO,
        Column("number", "", "the participant's number, which decides the order"),
        Column("protocol", "", "how the SHA-256 of the protocol's text begins; the text is protocol-THIS.toml"),
        Column("began_at", "UTC", "when the session began"),
        Column("ended_at", "UTC", "when the last event of it was kept"),
        Column("outcome", "", "finished, withdrawn, or unfinished"),
        Column("withdrew_at_step", "", "the step at which the participant stopped"),
        Column(
            "trials_completed",
            "",
            "trials that ended by themselves or by their time, but for those of which nothing was recorded",
        ),
    ),
    "trials": (
        *_WHERE,
        Column("practice", "", "yes: a practice trial, which is no part of the design"),
        Column("started_at", "UTC", "when the experimenter started it"),
        Column("ended_at", "UTC", "when it ended; empty where the files do not say"),
        Column("duration_s", "s", "from start to end; empty where a clock was set back between them"),
        Column("paused_s", "s", "of that, how long it was paused"),
        Column("robot_stopped_s", "s", "of that, how long the guard had the robot stopped, without the pauses"),
        Column("recorder", "", "whole: recorded from start to end; parts; none; empty where no recorder told anything"),
        Column("unrecorded_s", "s", "of that, how long nothing was recorded"),
        Column("outcome", "", "completed, time, aborted, interrupted (by a crash), or unfinished"),
        Column("condition_lost", "", "yes: a seat was not as the condition wants it for some time"),
    ),
    "answers": (
        *_WHERE,
        Column("questionnaire", "", "its id"),
        Column("agent", "", "whom it asks about"),
        Column("item", "", "id of the item"),
        Column("value", "see the item in this codebook", "the last answer that was given"),
        Column("answered_at", "UTC", "when that was"),
        Column("screen_width_px", "px", "how wide the page was on which the questionnaire was handed in"),
    ),
    "events": (
        *_WHERE,
        Column("at", "UTC", "when it happened"),
        Column("step", "", "where the session was"),
        Column("what", "", "consent, submit, skip, mark, note, condition, pause, robot, recorder, withdraw"),
        Column("by", "", "who did it"),
        Column("item", "", "the mark's label, or the seat that a condition is about"),
        Column(
            "value",
            "",
            "statements ticked, the seat's holder, the page's width in px where one was handed in, or for how many "
            "seconds before it was so already: robot, recorder",
        ),
        Column(
            "how",
            "",
            "set, undone, lost: a condition; on, off: a pause; stopped, free: the robot; heard: a wizard's mark",
        ),
        Column("text", "", "words of a mark or note"),
    ),
    "utterances": (
        *_WHERE,
        Column("at", "UTC", "when it had been said"),
        Column("by", "", "who spoke"),
        Column("heard_by", "", "robot: people spoke to it; people: the robot spoke"),
        Column("text", "", "the words"),
        Column("after_s", "s", "of the robot's first words after a person's: how long these waited"),
    ),
    "wizard": (
        *_WHERE,
        Column("at", "UTC", "when the wizard acted"),
        Column("by", "", "the wizard's name at the console"),
        Column("act", "", "what the act was: say, act, plan, decide, drive, stop"),
        Column("after_s", "s", "from the end of the participant's last words to the wizard's first act"),
    ),
}


@dataclass(slots=True)
class Tables:
    """All rows, by table; and the protocols that the sessions were begun with."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    protocols: dict[str, Protocol] = field(default_factory=dict)


def gather(folder: Path, given: Sequence[Protocol] = ()) -> Tables:
    """The tables of a folder of sessions. `given`: protocols of sessions that kept none.

    Raises UserError where there is no session, or one whose protocol is not to be had.
    """
    files = sorted(path for path in folder.glob("*.jsonl") if "." not in path.stem)
    if not files:
        raise UserError(f"{folder}: has no session of a study; expected files like P01.jsonl")
    tables = Tables(protocols={one.sha: one for one in given})
    for path in files:
        events = read_events(path)
        if events:
            _add(tables, _protocol(tables, folder, path, events[0].protocol), path.stem, events)
    return tables


def _protocol(tables: Tables, folder: Path, path: Path, sha: str) -> Protocol:
    kept = kept_protocol(folder, sha)
    if sha not in tables.protocols and kept.is_file():
        tables.protocols[sha] = read_kept(kept)
    if sha not in tables.protocols:
        raise UserError(
            f"{path.name} was begun with a protocol that is not here ({kept.name}); name its file: --protocol FILE"
        )
    return tables.protocols[sha]


class _Place:
    """Where a session is while its events are gone through."""

    def __init__(self, code: str, progress: SessionProgress) -> None:
        self.code, self.progress = code, progress
        self.trials = {step.trial: step for step in progress.steps if step.kind == "trial"}

    def row(self, trial: int, attempt: int) -> Row:
        step = self.trials.get(trial)
        return {
            "participant": self.code,
            "trial": trial or "",
            "attempt": attempt or "",
            "task": step.task.id if step is not None and step.task is not None else "",
            "condition": step.condition.id if step is not None and step.condition is not None else "",
        }

    def here(self) -> Row:
        """Of an event now: in a trial only while it runs."""
        step = self.progress.step
        return self.row(step.trial, self.progress.attempt) if self.progress.phase == "running" else self.row(0, 0)


def _add(tables: Tables, protocol: Protocol, code: str, events: list[Event]) -> None:
    progress = SessionProgress.of(protocol, events[0])
    place, rows = _Place(code, progress), tables.rows
    answered: dict[tuple[str, str], float] = {}
    widths: dict[str, Cell] = {}
    trial: Row = {}
    began_s = 0.0
    heard_s = 0.0  # when a person last spoke to the robot, and nothing has been said since
    for event in events[1:]:
        at, where = _utc(event.at_s), place.here()
        if event.what == "trial" and event.how == "started":
            trial = place.row(event.number, event.attempt)
            step = progress.step
            trial |= {
                "practice": "yes" if step.is_practice else "",
                "started_at": at,
                "ended_at": "",
                "duration_s": "",
                "paused_s": 0.0,
                "robot_stopped_s": 0.0,
                "recorder": "",
                "unrecorded_s": "",
                "outcome": "unfinished",
                "condition_lost": "",
            }
            rows["trials"].append(trial)
            began_s, heard_s = event.at_s, 0.0
        elif event.what == "trial":
            took_s = event.at_s - began_s  # less than nothing: the next run's clock was set back
            trial |= {"ended_at": at, "duration_s": round(took_s, 3) if took_s >= 0 else "", "outcome": event.how}
            trial |= {name: round(span.by(event.at_s), 3) for name, span in progress.spans.items()}
            trial["recorder"] = event.text
            trial["unrecorded_s"] = trial["unrecorded_s"] if event.text else ""
        elif event.what == "said":
            after = round(event.at_s - heard_s, 3) if event.how == "said" and heard_s else ""
            heard_s = event.at_s if event.how == "heard" else 0.0
            heard_by = "robot" if event.how == "heard" else "people"
            spoken = {"at": at, "by": event.by, "heard_by": heard_by, "text": event.text, "after_s": after}
            rows["utterances"].append({**where, **spoken})
        elif event.what == "wizard":
            rows["wizard"].append({**where, "at": at, "by": event.by, "act": event.how, "after_s": event.value})
        elif event.what == "answer":
            answered[event.step, event.item] = event.at_s
        elif event.what == "submit":
            widths[event.step] = event.value
        else:
            if event.what == "condition" and event.how == "lost":
                trial["condition_lost"] = "yes"
            told = {"at": at, "step": event.step, "what": event.what, "by": event.by, "item": event.item}
            rows["events"].append({**where, **told, "value": event.value, "how": event.how, "text": event.text})
        progress.apply(event)
    rows["answers"] += _answers(place, answered, widths)
    recorded = [one for one in rows["trials"] if one["participant"] == code and one["recorder"] != "none"]
    ways = [one["outcome"] for one in recorded]
    outcome = "withdrawn" if progress.has_withdrawn else "finished" if progress.is_over else "unfinished"
    rows["sessions"].append(
        {
            "participant": code,
            "number": events[0].number,
            "protocol": protocol.sha[:12],
            "began_at": _utc(events[0].at_s),
            "ended_at": _utc(events[-1].at_s),
            "outcome": outcome,
            "withdrew_at_step": progress.step.ident if progress.has_withdrawn else "",
            "trials_completed": sum(way in ("completed", "time") for way in ways),
        }
    )


def _answers(place: _Place, answered: dict[tuple[str, str], float], widths: dict[str, Cell]) -> Iterable[Row]:
    for step in place.progress.steps:
        if step.questionnaire is None:
            continue
        given = step.questionnaire.asked(place.progress.answers.get(step.ident, {}))
        for item in step.questionnaire.item:
            value = given.get(item.id, "")
            if value == "":
                continue
            at = _utc(answered[step.ident, item.id])
            about = {"questionnaire": step.questionnaire.id, "agent": step.agent, "item": item.id}
            told = {"value": value, "answered_at": at, "screen_width_px": widths.get(step.ident, "")}
            yield {**place.row(step.trial, 0), **about, **told}


def _utc(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def codebook(tables: Tables) -> list[Row]:
    """What each column, and each item of each questionnaire, means."""
    rows: list[Row] = [
        {"table": table, "name": column.name, "unit": column.unit, "meaning": column.meaning}
        for table, columns in TABLES.items()
        for column in columns
    ]
    seen: set[str] = set()
    for protocol in tables.protocols.values():
        for asked in protocol.questionnaire:
            for item in asked.item:
                name = f"{asked.id}/{item.id}"
                ends = f"{item.low} ({item.low_label}) to {item.high} ({item.high_label})"
                unit = {
                    "scale": f"{ends} in steps of {item.step}",
                    "number": f"{item.low} to {item.high}",
                    "choice": " | ".join(item.choices),
                    "text": "free text",
                }[item.kind]
                if f"{name} {unit} {item.text}" not in seen:
                    seen.add(f"{name} {unit} {item.text}")
                    rows.append({"table": "answers", "name": name, "unit": unit, "meaning": item.text})
    return rows


def write(tables: Tables, out: Path, *, parquet: bool = False, excel: bool = False) -> list[Path]:
    """Write every table as CSV (UTF-8, `parquet`: so, too), the codebook, and the protocols. Raises UserError.

    `excel`: with the byte order mark by which Excel knows UTF-8.
    """
    written = []
    if parquet:
        check_parquet()
    with writing(out):
        private_folder(out)
        named = {name: [column.name for column in columns] for name, columns in TABLES.items()}
        for name, columns, rows in (
            *((name, columns, tables.rows[name]) for name, columns in named.items()),
            ("codebook", ["table", "name", "unit", "meaning"], codebook(tables)),
        ):
            path = out / f"{name}.csv"
            text = io.StringIO()
            table = csv.DictWriter(text, columns, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
            write_private(path, text.getvalue(), "utf-8-sig" if excel else "utf-8")
            written.append(path)
            if parquet:
                open_private(path.with_suffix(".parquet")).close()
                write_parquet(rows, columns, path.with_suffix(".parquet"))
                written.append(path.with_suffix(".parquet"))
        for one in tables.protocols.values():
            path = kept_protocol(out, one.sha)
            keep(one, path)
            written.append(path)
    return written


def step_words(step: SessionStep) -> str:
    """A step of a session, for people."""
    about = f" under {step.condition.id}, task {step.task.id}" if step.condition is not None and step.task else ""
    return f"{step.kind}: {step.title}{about}"


TEXT = ("value",)
"""Columns whose cells may be numbers and words: text in all rows."""


def check_parquet() -> None:
    """Raise UserError where pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as problem:
        raise UserError(f"--parquet needs pyarrow: {install('nodes[export]')}; CSV needs nothing") from problem


def write_parquet(rows: Sequence[Mapping[str, str | int | float]], columns: Sequence[str], path: Path) -> None:
    """Write a table; an empty cell is null. Raises OSError."""
    import pyarrow
    import pyarrow.parquet

    table = {}
    for name in columns:
        cells = [None if row[name] == "" else row[name] for row in rows]
        numbers = [cell for cell in cells if cell is not None]
        is_number = numbers and name not in TEXT and all(isinstance(cell, int | float) for cell in numbers)
        if not is_number:
            cells = [None if cell is None else str(cell) for cell in cells]
        kind = None if is_number else pyarrow.string()
        table[name] = pyarrow.array(cells, type=kind)
    pyarrow.parquet.write_table(pyarrow.table(table), path)
