"""`Grade`: what somebody who looks says of a trial, apart from the score that its graph gave.

`--grade operator` asks the person at the terminal; `--grade MODEL@URL` a model, which is shown the trial's pictures.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from nodes.evaluation.trials import Result
from nodes.models.address import key_problem, url_problem
from nodes.models.answers import ModelError, has_openai_key
from nodes.models.budget import Budget
from nodes.models.chat_format import ModelOptions, Question
from nodes.models.http_client import HttpClient
from nodes.models.json_reading import UnreadableError, folded, read_object
from nodes.models.model import Model, Patience, Server
from runtime.errors import PolyrhythmError, UserError, writing
from runtime.operating_system.whole_file import write_whole

GRADES = "grades.jsonl"
OPERATOR = "operator"
ANSWERS: dict[str, Literal["yes", "no", "partial"]] = {"y": "yes", "n": "no", "p": "partial"}
TIMEOUT_S = 60.0
ASKS = (
    "You look at pictures of the end of a robot's trial, in order of time, and say whether its task was done: yes, no, "
    "or partial. Say so by what is seen, and nothing else. The note is one short sentence."
)
ANSWER = {
    "type": "object",
    "properties": {"grade": {"enum": ["yes", "no", "partial"]}, "note": {"type": "string"}},
    "required": ["grade", "note"],
    "additionalProperties": False,
}


class Grade(msgspec.Struct, frozen=True):
    """One grader's word on the trial of that name."""

    trial: str
    by: str
    grade: Literal["yes", "no", "partial"]
    note: str = ""


class _Said(msgspec.Struct):
    grade: Literal["yes", "no", "partial"]
    note: str = ""


Grader = Callable[[Result, Path], Grade | None]
"""Takes a result and where the trial's picture may be; None where it says nothing."""


def grader_of(asked: str) -> Grader:
    """By the option's text. Raises UserError for a terminal that nobody sits at, and for no model."""
    if asked == OPERATOR:
        if not sys.stdin.isatty():
            raise UserError(f"--grade {OPERATOR}: nobody sits at this terminal who could be asked")
        return _ask_operator
    name, _, url = asked.partition("@")
    if not name or (problem := url_problem(url)):
        raise UserError(f"--grade {asked!r}: expected {OPERATOR}, or MODEL@URL" + (f": {problem}" if name else ""))
    key = os.environ.get("OPENAI_API_KEY", "") if has_openai_key(url) else ""
    if problem := key_problem(key, "OPENAI_API_KEY"):
        raise UserError(problem)
    return lambda result, picture: asyncio.run(_ask_model(name, Server(url, key), result, picture))


def read_grades(out: Path) -> list[Grade]:
    """Those that were given. Raises UserError for a file that holds something else."""
    file = out / GRADES
    try:
        lines = file.read_bytes().splitlines() if file.is_file() else []
        return [msgspec.json.decode(line, type=Grade) for line in lines]
    except (OSError, msgspec.MsgspecError) as problem:
        raise UserError(f"{file}: cannot be read ({problem}); expected a grade a line") from problem


def keep_grades(out: Path, grades: Sequence[Grade]) -> None:
    """All of them. Raises PolyrhythmError where they cannot be written: those of before stay."""
    with writing(out / GRADES, error=PolyrhythmError):
        write_whole(out / GRADES, b"".join(msgspec.json.encode(grade) + b"\n" for grade in grades))


def _ask_operator(result: Result, picture: Path) -> Grade | None:
    shown = f" ({picture})" if picture.is_file() else ""
    while True:
        print(f"{result.trial.name}{shown}: was it done? y, n or p for partial, and a note; Enter says nothing: ",
              end="", file=sys.stderr, flush=True)  # fmt: skip
        word, _, note = (sys.stdin.readline() or "\n").strip().partition(" ")
        if not word:
            return None
        if (grade := ANSWERS.get(word[:1].lower())) is not None and word.lower() in (word[:1].lower(), grade):
            return Grade(result.trial.name, OPERATOR, grade, note.strip())


async def _ask_model(name: str, server: Server, result: Result, picture: Path) -> Grade | None:
    if not picture.is_file():
        print(f"! {result.trial.name} is not graded by {name}: there is no picture of it", file=sys.stderr)
        return None
    spoken = "\n".join(f"{at_s:.1f} s {who}: {text}" for at_s, who, text in result.words[-40:])
    url = f"data:image/jpeg;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    question = Question(ASKS, f"Task: {result.trial.task or 'as the words say'}\nWords:\n{spoken}", ANSWER, (url,))
    http = HttpClient()
    model = Model(name, [server], http, options=ModelOptions(0.0), patience=Patience(TIMEOUT_S, TIMEOUT_S, 2),
                  budget=Budget())  # fmt: skip
    try:
        said = msgspec.convert(folded(read_object((await model.ask(question)).text)), _Said)
    except (ModelError, UnreadableError, msgspec.MsgspecError) as problem:
        print(f"! {result.trial.name} is not graded by {name}: {problem}", file=sys.stderr)
        return None
    finally:
        await http.close()
    return Grade(result.trial.name, name, said.grade, said.note)
