"""What the moderator's own machinery says to itself; what participants hear and say is in `nodes.msgs.episode`."""

from __future__ import annotations

from runtime.message import Message


class Pause(Message):
    """The moderator's note to itself: nothing happens for that long, unless the token is void by then."""

    token: int
    seconds: float


class GuidanceRequest(Message):
    """The moderator asks a coach before it asks a seat."""

    seat: int
    ask: int
    turns: int  # that have happened


class BeginEpisode(Message):
    """Starts the episode; later ones change nothing."""
