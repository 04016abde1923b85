"""The short codes of what is refused before anything starts: a code stays when its sentence is worded anew.

docs/reference/codes.md lists them with what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from runtime.errors import MissingVariable, UserError

CODES = {
    "P001": "no such file, or one that cannot be read",
    "P002": "text that is no TOML",
    "P003": "an unknown table or key",
    "P004": "a value that does not fit its key",
    "P005": "an option that names what is not there",
    "P010": "a class that cannot be loaded",
    "P011": "an unknown parameter",
    "P012": "a parameter that is missing, or of another type",
    "P013": "a node refuses its parameters",
    "P014": "an environment variable that is not set",
    "P015": "a view, report or companion of a run that cannot be used",
    "P020": "a class whose handlers, ports or methods do not fit",
    "P021": "an attribute with two owners",
    "P022": "a message that cannot be sent",
    "P023": "a name that is no timer, handler or topic of the node",
    "P030": "two types on a topic",
    "P031": "QoS that does not fit",
    "P032": "no publisher",
    "P033": "too many publishers",
    "P034": "what a stop depends on",
    "P040": "seats that do not fit their nodes",
    "P041": "hosts that do not find each other",
    "P042": "links that select nothing",
    "P043": "a budget that does not fit the graph",
    "P044": "a budget that cannot be kept",
    "P045": "processes that cannot be",
}
"""Each code with the kind of problem that it stands for."""


class CodedProblem(str):
    """A sentence that says what does not fit, with the code of its kind."""

    code: str

    def __new__(cls, sentence: str, code: str) -> CodedProblem:
        made = super().__new__(cls, sentence)
        made.code = code
        return made


def code_of(problem: str) -> str:
    """The code of a sentence of `Graph.problems()`; "" where it has none."""
    if isinstance(problem, MissingVariable):
        return "P014"
    return problem.code if isinstance(problem, CodedProblem) else ""


def of_kind(code: str, sentences: Iterable[str]) -> list[str]:
    """The sentences with this code, where they have none yet."""
    return [one if code_of(one) else CodedProblem(one, code) for one in sentences]


@contextmanager
def refusing(code: str) -> Iterator[None]:
    """Give this code to a UserError that passes and has none yet."""
    try:
        yield
    except UserError as problem:
        if not problem.code:
            problem.own_code = code
        raise
