"""What only the moderator's own machinery says to itself and to agents; the rest is in `runtime.episode_msgs`."""

from __future__ import annotations

from runtime.message import Message


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
