"""`PersonAtPage`: a seat of a text episode that a person plays in a browser, beside agents or other persons.

The web server has a thread of its own. What it may show comes from the seat's own topic, and from the turns that this
participant perceives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

from bridges.web.episode.document import WAITING, EpisodeDocument
from bridges.web.http.listener import PageHost, missing_libraries
from bridges.web.http.open_page import CameraStream, Session
from bridges.web.http.page import Page
from bridges.web.http.wire import FrameSeen, FromBrowser, PageHello, Short, WatchCameras
from nodes.msgs.episode import Act, Briefing, Observation, Outcome, Reply, Scores, Turn
from runtime import RELIABLE, Node, Publisher, QoS, Subscription, on

OPTIONAL = QoS(required=False)
EAGER, SILENT = 0.9, 0.0
"""What a person's words, and their silence, bid for the floor in asynchronous talk."""


ActKind = Literal["speak", "non-verbal communication", "action", "none", "leave"]
Words = Annotated[str, msgspec.Meta(max_length=2000)]


class Play(FromBrowser, frozen=True, tag="act"):
    """What the person does, as the answer to question number `ask`; with `to`, only they perceive it."""

    ask: int
    kind: ActKind
    text: Words = ""
    to: Annotated[tuple[Short, ...], msgspec.Meta(max_length=16)] = ()


Incoming = PageHello | FrameSeen | WatchCameras | Play

decode: Callable[[str | bytes], Incoming] = msgspec.json.Decoder(Incoming).decode
"""The message in this text. Raises ValueError (msgspec's) in words where it is none."""


class PersonAtPage(Node):
    """Plays the seat whose topic `episode/seat` is remapped to; the log says where the page is.

    `address` other than this machine needs `certificate` and `key`. `port` 0 is any free one.
    """

    provenance = "person"
    stops_late = True  # the scores are the last thing that is said

    observation = Subscription(Observation, "episode/seat")
    turn = Subscription(Turn, "episode/turn", qos=OPTIONAL)
    outcome = Subscription(Outcome, "episode/outcome", qos=OPTIONAL)
    scores = Subscription(Scores, "episode/scores", qos=OPTIONAL)
    reply = Publisher(Reply, "episode/reply", qos=RELIABLE)

    lan_parameter = "address"

    def __init__(self, address: str = "127.0.0.1", port: int = 0, certificate: str = "", key: str = "") -> None:
        self.pages = PageHost(address, port, certificate, key)
        self._document = EpisodeDocument()
        self._briefing: Briefing | None = None
        self._question: Observation | None = None

    def problems(self) -> list[str]:
        """Which libraries its pages miss here."""
        return missing_libraries()

    def on_start(self) -> None:
        """Open the page and say where it is. Raises UserError where that cannot be."""
        if self.clock.is_virtual:
            self.log.warning("a person needs real time; nobody can sit at a page in virtual time")
            return
        # The token says whose seat it is, so that several people may come in by one address.
        page = Page(
            f"episode-{self.name}",
            f"Episode: {self.name}",
            "episode/page.html",
            self,
            decode,
            {self.name: "participant"},
        )
        self.pages.start(page, self.clock, self.log, node=self)

    def on_stop(self) -> None:
        """Close the page, once it has drawn how it ended."""
        self.pages.stop(self._document.version)

    # --- what arrives from the episode (the node's own thread)

    @on(observation)
    def asked(self, observation: Observation) -> None:
        """Take in what happened; where an answer is wanted, it is this person's turn."""
        briefing = observation.briefing
        if briefing is not None:
            self._briefing = briefing
            self._document.brief(
                episode=observation.episode,
                name=briefing.name,
                scenario=briefing.scenario,
                goal=briefing.goal,
                background=briefing.background,
                participants=briefing.participants,
            )
        for turn in observation.heard:
            self._document.add(turn_document(turn))
        if observation.asks != "nothing":
            self._question = observation
            speaking = f"{observation.speaking} is speaking: “{observation.so_far}”" if observation.speaking else ""
            self._document.wait(speaking or WAITING)
            self._document.ask(
                observation.ask,
                available=observation.available,
                others=observation.recipients,
                problem=observation.problem,
                is_last=observation.is_last,
            )
        if observation.asks == "bid" and self._briefing is not None:
            self._leave_open(observation, self._briefing)
        self.pages.poke()

    def _leave_open(self, observation: Observation, briefing: Briefing) -> None:
        """In asynchronous talk nobody waits for this person, who may speak at any time."""
        self.reply.publish(
            Reply(episode=observation.episode, seat=briefing.seat, ask=observation.ask, act=Act(), is_open=True)
        )

    @on(turn)
    def perceive(self, turn: Turn) -> None:
        """An act as it happens; one that was not for this participant is not even kept."""
        if self._briefing is not None and turn.is_for(self._briefing.name):
            self._document.add(turn_document(turn))
            self.pages.poke()

    @on(outcome)
    def end(self, outcome: Outcome) -> None:
        self._document.end(outcome.reason, outcome.turns)
        self.pages.poke()

    @on(scores)
    def score(self, scores: Scores) -> None:
        rows = [(one.name, one.dimension, one.score, one.reasoning) for one in scores.scores]
        self._document.score(scores.judge, rows, scores.why if scores.state == "failed" else "")
        self.pages.poke()

    # --- what the server asks for (the server's thread)

    def welcome(self, session: Session) -> dict[str, Any]:
        """All that a page needs to know once."""
        return {"t": "welcome", "role": session.role}

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        """What this participant knows, where the page does not have it yet."""
        notices, session.notices = session.notices, []
        version, episode = self._document.version, self._document.document
        is_news, session.told = session.told != version, version
        return {
            "t": "state",
            "n": session.state_number,
            "notices": notices,
            "episode": episode if is_news else None,
        }

    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None:
        """There are no pictures."""
        return None

    def joined(self, session: Session) -> None:
        """A page was opened."""

    def left(self, session: Session) -> None:
        """A page is gone; the seat waits for it."""

    def beat(self, now_ns: int) -> None:
        """Nothing is to be done regularly."""

    def handle(self, session: Session, message: Any) -> None:
        """Play the act, where it answers the question that is open."""
        if not isinstance(message, Play):
            session.notice(f"{type(message).__name__} is not expected now")
            return
        question, briefing = self._question, self._briefing
        if question is None or briefing is None or not session.words.allows(self.clock.now_ns()):
            session.notice("not so fast: that was not said")
            return
        is_silent = message.kind in ("none", "leave")
        if not is_silent and not message.text.strip():
            session.notice("there is nothing to say in that")
            return
        if not self._document.answer(message.ask):
            session.notice("it is not your turn any more; nothing was said")
            return
        known = {turn["index"] for turn in self._document.document["turns"]}
        self.reply.publish(
            Reply(
                episode=question.episode,
                seat=briefing.seat,
                ask=message.ask,
                act=Act(kind=message.kind, argument=message.text.strip(), to=message.to),
                urgency=SILENT if message.kind == "none" else EAGER,
                held=tuple(sorted(known)),
            )
        )
        self.pages.poke()


def turn_document(turn: Turn) -> dict[str, Any]:
    """An act as the page draws it."""
    return {
        "index": turn.index,
        "number": turn.number,
        "speaker": turn.speaker,
        "kind": turn.kind,
        "argument": turn.argument,
        "to": list(turn.to),
        "note": turn.note,
    }
