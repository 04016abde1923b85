"""What an episode's participants and its moderator say to each other, for whoever takes a seat: agent, person, page.

A participant hears `Observation`s on its seat's own topic (`seat_topic`), and nothing else of the episode: what one may
know never travels on another's topic. The first one holds the `Briefing`. Where `asks` is "act" (your turn) or "bid"
(asynchronous talk: how much you want the floor), it publishes one `Reply` on `episode/reply`. The reply has the same
`episode`, `seat` and `ask`; one to an older `ask` counts for nothing. `Outcome` and `Scores` are for all to hear.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from runtime.message import Message

ActKind = Literal["speak", "non-verbal communication", "action", "none", "leave"]
Asks = Literal["act", "bid", "nothing"]
State = Literal["done", "failed"]
Fault = Literal["", "unreadable", "declined", "refused", "cut"]
"""Why a turn is a failed one: no act in the answer, the model declined, or an act that cannot be played. "cut" is none:
whole sentences are there, and the rest was cut off."""
Strategy = Literal["native", "simple", "negotiation", "leave"]
"""What a coach advises: as the agent would by itself, with an eye on the conflict, by its workflow, or to go."""
FailureKind = Literal["", "outage", "budget", "broken"]
"""Why an episode failed: an answer could not be had, or may cost nothing more; "broken": too many made no act."""
Timing = Literal["", "interrupted", "interrupts", "overlaps", "yields"]
"""How an act of asynchronous talk stands to somebody else's."""

ACT_KINDS: tuple[ActKind, ...] = ("speak", "non-verbal communication", "action", "none", "leave")
SEATS = 16
"""The most participants of an episode."""


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
    note: str = ""  # for readers: "interrupted by Ana", "unreadable answer: ..."
    fault: Fault = ""
    timing: Timing = ""
    because: int = -1  # index of the turn that it follows from, where the one who acted knows

    @property
    def is_failed(self) -> bool:
        """Whether no act was in the answer, so that nobody knows what would have been done."""
        return self.fault not in ("", "cut")

    def is_for(self, name: str) -> bool:
        """Whether that participant perceives it."""
        return not self.to or name == self.speaker or name in self.to


class Deal(Message, forbid_unknown_fields=True):
    """What a negotiation is about and everybody knows: one number to agree on, or items to divide."""

    about: str  # "the cello"
    unit: str = ""  # of the number: "EUR", "days"; "": no number to agree on
    opening: float | None = None  # the number that stands in the room, for example the listed price
    step: float = 1.0  # the smallest change of the number worth talking about
    items: dict[str, int] = msgspec.field(default_factory=dict)  # how many of each there are to divide


class Facts(Message, forbid_unknown_fields=True):
    """What one seat privately knows and wants, as data: for rule-based negotiators and rule-based checks."""

    role: str = ""  # "buyer"
    wants: Literal["low", "high", ""] = ""  # the direction of the deal's number that is better for this seat
    target: float | None = None  # the number hoped for
    reserve: float | None = None  # the worst number still acceptable (the reservation price)
    worth: dict[str, float] = msgspec.field(default_factory=dict)  # points per piece of each item to divide
    knows: dict[str, str] = msgspec.field(
        default_factory=dict
    )  # a thing or person known -> what is known about it; told to this seat only
    seeks: tuple[str, ...] = ()  # keys of others' `knows` that this seat wants to learn
    says: tuple[str, ...] = ()  # lines for a rule-based player: opening, reasons, a question, an offer, a yes
    does: tuple[str, ...] = ()  # what this seat wants done with hands: "red cup in the bin"
    spares: tuple[str, ...] = ()  # what this seat wants left undone
    hides: tuple[str, ...] = ()  # words that, said aloud, give this seat's intention away


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


class Guidance(Message):
    """What a coach tells one seat for one act; nobody else hears it."""

    episode: str
    seat: int
    ask: int
    strategy: Strategy = "native"
    text: str = ""  # for the player to bear in mind
    act: Act | None = None  # an act that is ready, to be done as it is
    failure: str = ""  # why there is no guidance, where there should be


class Observation(Message):
    """What a seat is told when it is its turn, or when it is to know something."""

    episode: str
    ask: int  # counts what this seat was asked, from 1
    turn: int
    asks: Asks
    available: tuple[ActKind, ...] = ACT_KINDS
    recipients: tuple[str, ...] = ()  # who is present and may be named in `to`
    heard: tuple[Turn, ...] = ()  # since the last observation
    briefing: Briefing | None = None  # with the first observation
    problem: str = ""  # why the last reply was refused
    speaking: str = ""  # asynchronous: who speaks now
    so_far: str = ""  # asynchronous: what was said of it
    silence_s: float = 0.0  # asynchronous: for how long nobody has spoken
    is_last: bool = False  # the turn limit comes next
    answer_s: float = 0.0  # how long the moderator waits for the reply; 0: for ever
    guidance: Guidance | None = None  # where a coach helps this seat


class Reply(Message):
    """What a seat answers. `urgency` is a bid for the floor; `failure` says why there is no answer at all."""

    episode: str
    seat: int
    ask: int
    act: Act
    urgency: float = 0.5  # 0 to 1
    failure: str = ""
    failure_kind: FailureKind = ""
    note: str = ""
    fault: Fault = ""
    because: int = -1
    held: tuple[int, ...] = ()  # the turns that the prompt held, by index
    prompt_sha: str = ""  # of the prompt's text, where a model was asked
    is_open: bool = False  # asynchronous: no words yet, and perhaps never; the ask may be answered at any time


class Outcome(Message):
    """How the episode ended: why, in the rules' exact words, and after how many turns."""

    episode: str
    state: State
    reason: str
    turns: int
    failures: int = 0  # turns with a fault
    failure_kind: FailureKind = ""
    seconds: float = 0.0


class Score(Message):
    """One agent's value on one dimension; None where the evaluation failed."""

    name: str
    dimension: str
    score: float | None = None
    reasoning: str = ""


class Scores(Message):
    """What a judge made of an episode."""

    episode: str
    judge: str
    state: State
    scores: tuple[Score, ...]
    why: str = ""
