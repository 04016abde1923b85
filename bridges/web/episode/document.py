"""What one participant may see of an episode, as the document that their page draws."""

from __future__ import annotations

import re
import threading
from typing import Any

WAITING = "Waiting for the others."


class EpisodeDocument:
    """Grows with the episode. Each change makes a new document, which any thread may read at any time."""

    def __init__(self) -> None:
        self.version = 1  # a page that was told nothing is at 0
        self._lock = threading.Lock()
        self._turns: dict[int, dict[str, Any]] = {}
        self._answered = 0  # the ask that was answered last
        self.document: dict[str, Any] = {
            "episode": "",
            "name": "",
            "scenario": "",
            "goal": "",
            "people": [],
            "others": [],
            "turns": [],
            "ask": 0,
            "available": [],
            "problem": "",
            "is_last": False,
            "waiting": WAITING,
            "outcome": None,
            "scores": None,
        }

    def brief(
        self, *, episode: str, name: str, scenario: str, goal: str, background: str, participants: tuple[str, ...]
    ) -> None:
        """The episode begins for this participant: all that they know."""
        self._turns = {}
        self._answered = 0
        self._change(
            episode=episode,
            name=name,
            scenario=scenario,
            goal=goal,
            people=people_of(background, name, participants),
            others=[other for other in participants if other != name],
            turns=[],
            ask=0,
            outcome=None,
            scores=None,
        )

    def add(self, turn: dict[str, Any]) -> None:
        """An act that this participant perceived; one that is known already changes nothing."""
        if turn["index"] in self._turns:
            return
        self._turns[turn["index"]] = turn
        self._change(turns=[self._turns[index] for index in sorted(self._turns)])

    def ask(
        self, ask: int, *, available: tuple[str, ...], others: tuple[str, ...], problem: str, is_last: bool
    ) -> None:
        """It is this participant's turn; `others` are those who are present. An answered ask stays answered."""
        if ask == self._answered and not problem:
            return
        self._change(ask=ask, available=list(available), others=list(others), problem=problem, is_last=is_last)

    def answer(self, ask: int) -> bool:
        """Take the answer to a question; False where nobody waits for that one."""
        with self._lock:
            if not ask or ask != self.document["ask"]:
                return False
            self._answered = ask
            self.document = {**self.document, "ask": 0, "problem": "", "is_last": False}
            self.version += 1
            return True

    def wait(self, text: str) -> None:
        """What happens while it is not this participant's turn."""
        if text != self.document["waiting"]:
            self._change(waiting=text)

    def end(self, reason: str, turns: int) -> None:
        """The episode is over."""
        self._change(outcome={"reason": reason, "turns": turns}, ask=0, problem="")

    def score(self, judge: str, scores: list[tuple[str, str, float | None, str]], problem: str = "") -> None:
        """What the judge made of it: name, dimension, score and reasoning of each."""
        dimensions = list(dict.fromkeys(dimension for _, dimension, _, _ in scores))
        names = list(dict.fromkeys(name for name, _, _, _ in scores))
        values = {(name, dimension): score for name, dimension, score, _ in scores}
        self._change(
            scores={
                "judge": judge,
                "problem": problem,
                "dimensions": dimensions,
                "rows": [
                    {"name": name, "values": [_whole(values.get((name, one))) for one in dimensions]} for name in names
                ],
                "reasons": [
                    {"name": name, "dimension": dimension, "text": text} for name, dimension, _, text in scores if text
                ],
            }
        )

    def _change(self, **fields: Any) -> None:
        with self._lock:
            self.document = {**self.document, **fields}
            self.version += 1


def _whole(score: float | None) -> float | int | None:
    return int(score) if score is not None and score == int(score) else score


_FIELD = re.compile(r"[A-Za-z][A-Za-z ]{1,29}")


def people_of(background: str, name: str, participants: tuple[str, ...]) -> list[dict[str, Any]]:
    """What a briefing says of each participant, the reader first, as pairs of field and text.

    A briefing is a text for models, a line for each: `NAME's background: field: text; field: text.`, `NAME is your
    friend. ...`, and `What NAME knows:` with a list.
    """
    people = []
    for one in dict.fromkeys((name, *participants)):
        who = re.escape(one)
        lines: list[list[str]] = []
        if relation := re.search(rf"^{who} is your (.*)$", background, re.M):
            lines.append(["to you", relation[1]])
        if told := re.search(rf"^{who}'s background: (?!Unknown$)(.*)$", background, re.M):
            lines += _fields(told[1])
        if knows := re.search(rf"^What {who} knows:\n((?:- .*\n?)+)", background, re.M):
            lines.append(["knows", knows[1].strip()])
        people.append({"name": one, "is_self": one == name, "lines": lines})
    return people


def _fields(text: str) -> list[list[str]]:
    lines: list[list[str]] = []
    for part in text.split("; "):
        field, colon, value = part.partition(": ")
        if colon and _FIELD.fullmatch(field):
            lines.append([field, value])
        elif lines:
            lines[-1][1] += f"; {part}"
        else:
            lines.append(["known", part])
    return lines
