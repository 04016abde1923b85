"""`Session`: one open page. What waits for it is bounded: one state, and a few frames per camera, are under way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from bridges.web.http.auth import Role, TokenBucket
from bridges.web.http.jpeg import LinkPace
from runtime import Stamped

MESSAGES_PER_S, MESSAGE_BURST = 250.0, 500.0
WORDS_PER_S, WORDS_BURST = 3.0, 10.0
STATE_PERIOD_S = 0.1
STALLED_S = 10.0
"""A page that answers nothing for so long is let go."""
SILENT_S = 1.5
"""One that has answered nothing for so long gives way to the same page on another link."""


@dataclass(slots=True)
class CameraStream:
    """One camera on one page."""

    pace: LinkPace = field(default_factory=LinkPace)
    shown: tuple[str, int] = ("", 0)  # source and sequence of the last image sent
    number: int = 0
    sent_ns: int = 0
    image: Stamped[Any] | None = None  # the last one sent, without its pixels
    seen_image: Stamped[Any] | None = None  # the last one that is known to be on screen
    under_way: dict[int, tuple[int, Stamped[Any] | None]] = field(default_factory=dict)  # number -> sent, image

    @property
    def has_room(self) -> bool:
        """Whether another frame may be sent before the last ones are answered."""
        return len(self.under_way) < self.pace.window

    def sends(self, now_ns: int) -> None:
        """The next frame goes out now."""
        self.number += 1
        self.sent_ns = now_ns
        self.under_way[self.number] = now_ns, self.image

    def seen(self, number: int, now_ns: int) -> bool:
        """The page has drawn that frame, and so all before it; False where it was not under way."""
        if number not in self.under_way:
            return False
        sent_ns, self.seen_image = self.under_way[number]
        self.under_way = {other: when for other, when in self.under_way.items() if other > number}
        self.pace.answered((now_ns - sent_ns) * 1e-6)
        return True


class Session:
    """What the server remembers of an open page."""

    def __init__(self, ident: str, role: Role, name: str, token: str = "", token_role: Role = "") -> None:
        self.ident = ident
        self.token = token  # the code by which this person came in
        self.token_role = token_role or role
        self.is_gone = False  # its link is given up
        self.is_over = False  # its token was taken back, and somebody else is expected now
        self.role = role
        self.name = name
        self.wake = asyncio.Event()
        self.pace = TokenBucket(MESSAGES_PER_S, MESSAGE_BURST)
        self.words = TokenBucket(WORDS_PER_S, WORDS_BURST)
        self.views: dict[str, CameraStream] = {}
        self.watched: tuple[str, ...] = ()
        self.shown: tuple[str, ...] = ()  # what a participant may watch of it; everybody else may watch all
        self.state_number = 0
        self.state_sent_ns = 0
        self.is_state_under_way = False
        self.round_trip_ms: float | None = None
        self.told = 0  # the last event that was sent
        self.told_canned = 0  # the version of the sentences that was sent
        self.told_address = ""  # the one to hand out, which this page has
        self.invited: dict[str, Any] | None = None  # the address that this page asked for, to be told once
        self.listens = False  # to what the robot's microphone hears
        self.told_sound = 0  # the last piece of it that was sent
        self.notices: list[str] = []  # answers to this page alone
        self.refusal = ""  # the last of them since the message that is being handled
        self.load = ""  # which loading of the page this is
        self.heard = 0  # the last press that was handled
        self.acks: list[tuple[int, str]] = []  # presses that were handled, and why they were refused; "": they were not

    @property
    def is_operator(self) -> bool:
        """Whether this person may do more than look and talk."""
        return self.role == "operator"

    def notice(self, text: str) -> None:
        """Tell this person something; the newest few are kept."""
        self.notices = [*self.notices[-4:], text]
        self.refusal = text
        self.wake.set()

    def acknowledge(self, press: int) -> None:
        """That press is done, or was refused in words."""
        self.heard = press
        self.acks.append((press, self.refusal))
        self.wake.set()

    @property
    def has_news(self) -> bool:
        """Whether the next state is to go out at once."""
        return bool(self.notices or self.acks)

    def seen_state(self, number: int, now_ns: int) -> None:
        """The page has drawn that state."""
        if self.is_state_under_way and number == self.state_number:
            self.is_state_under_way = False
            self.round_trip_ms = (now_ns - self.state_sent_ns) * 1e-6
            self.wake.set()

    def seen_frame(self, camera: str, number: int, now_ns: int) -> None:
        """The page has drawn that frame."""
        view = self.views.get(camera)
        if view is not None and view.seen(number, now_ns):
            self.wake.set()

    def is_stalled(self, now_ns: int) -> bool:
        """Whether something that was sent has not been answered for too long."""
        return self._waits_s(now_ns) > STALLED_S

    def is_silent(self, now_ns: int) -> bool:
        """Whether the link may be gone without a word."""
        return self._waits_s(now_ns) > SILENT_S

    def _waits_s(self, now_ns: int) -> float:
        oldest = [sent_ns for view in self.views.values() for sent_ns, _ in view.under_way.values()]
        if self.is_state_under_way:
            oldest.append(self.state_sent_ns)
        return (now_ns - min(oldest)) * 1e-9 if oldest else 0.0
