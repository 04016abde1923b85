"""What an episode's nodes say to each other: observations, replies, turns, the outcome and the scores.

Each seat has a topic of its own (`episode/seat0`, ...): what one agent may know never travels on another's topic.
"""

from __future__ import annotations

from typing import Literal

from nodes.episodes.profiles import MOST_SEATS, Deal, Facts
from runtime.message import Message

ActKind = Literal["speak", "non-verbal communication", "action", "none", "leave"]
Asks = Literal["act", "bid", "nothing"]
State = Literal["done", "failed"]

ACT_KINDS: tuple[ActKind, ...] = ("speak", "non-verbal communication", "action", "none", "leave")
SEATS = MOST_SEATS


def seat_topic(seat: int) -> str:
    """The topic on which a seat hears what it may know."""
    return f"episode/seat{seat}"


class Act(Message):
    """What one agent does in one turn; with `to`, only they and the agent itself perceive it."""

    kind: ActKind = "none"
    argument: str = ""
    to: tuple[str, ...] = ()


class Turn(Message):
    """An act as it happened. `index` counts acts from 0, `number` turns from 1; simultaneous acts share a number."""

    index: int
    number: int
    speaker: str
    kind: ActKind
    argument: str = ""
    to: tuple[str, ...] = ()
    at_s: float = 0.0  # since the episode began
    lasts_s: float = 0.0
    note: str = ""  # "interrupted by Ana", "overlaps Ben", "unreadable answer", ...

    def is_for(self, name: str) -> bool:
        """Whether that participant perceives it."""
        return not self.to or name == self.speaker or name in self.to


class Briefing(Message):
    """All that one participant knows at the start, and nothing else."""

    seat: int
    name: str
    scenario: str
    participants: tuple[str, ...]
    goal: str
    background: str  # the participant's own profile, and of the others what the relationship shows
    kind: str = ""  # of scenario: "negotiation", ...
    deal: Deal | None = None  # what everybody knows to be on the table
    facts: Facts = Facts()  # what the scenario tells this participant only, as data
    secret: str = ""  # the participant's own
    secret_words: tuple[str, ...] = ()
    transparency: str = "AGENTS"


class Observation(Message):
    """What a seat is told when it is its turn, or when it is to know something."""

    episode: str
    ask: int  # counts what this seat was asked, from 1
    turn: int
    asks: Asks
    available: tuple[ActKind, ...] = ACT_KINDS
    heard: tuple[Turn, ...] = ()  # since the last observation
    briefing: Briefing | None = None  # with the first observation
    problem: str = ""  # why the last reply was refused
    speaking: str = ""  # asynchronous: who speaks now
    so_far: str = ""  # asynchronous: what was said of it
    silence_s: float = 0.0  # asynchronous: for how long nobody has spoken
    is_last: bool = False  # the turn limit comes next


class Reply(Message):
    """What a seat answers. `urgency` is a bid for the floor; `failure` says why there is no answer at all."""

    episode: str
    seat: int
    ask: int
    act: Act
    urgency: float = 0.5  # 0 to 1
    failure: str = ""
    note: str = ""
    held: tuple[int, ...] = ()  # the turns that the prompt held, by index
    prompt_sha: str = ""  # of the prompt's text, where a model was asked


class Interruption(Message):
    """Somebody took the floor: what the other was about to say is void, what was said is kept as far as it got."""

    id: str
    by: str
    speaker: str
    said: str
    at_s: float


class Pause(Message):
    """The moderator's note to itself: nothing happens for that long, unless the token is void by then."""

    token: int
    seconds: float


class Begin(Message):
    """Starts the episode; later ones change nothing."""


class Outcome(Message):
    """How the episode ended: why, in the rules' exact words, and after how many turns."""

    episode: str
    state: State
    reason: str
    turns: int
    failures: int = 0
    seconds: float = 0.0


class Score(Message):
    """One agent's value on one dimension; None where the evaluation failed."""

    name: str
    dimension: str
    score: float | None
    reasoning: str


class Scores(Message):
    """What a judge made of an episode."""

    episode: str
    judge: str
    state: State
    scores: tuple[Score, ...]
    why: str = ""
