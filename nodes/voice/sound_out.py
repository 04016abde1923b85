"""Sound as it goes out, through a loudspeaker."""

from __future__ import annotations

import miniaudio

PLAYERS = miniaudio.PlaybackDevice
