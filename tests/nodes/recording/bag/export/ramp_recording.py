"""A recording for tests whose numbers say when they were taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodes.mcap.file import BagWriter
from nodes.msgs import Image, JointCommand, RobotState, Subtask
from nodes.recording.images import SCHEMA, SCHEMA_NAME, image_document
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped

ZEROS = (0.0,) * 8


def recording(path: Path, seconds: float = 2.0, *, with_commands: bool = True, vy_mps: float = 0.0) -> Path:
    """State `t` at 50 Hz, image of brightness 100 t at 10 Hz, command `t` at 20 Hz, another subtask after 1 s."""
    writer = BagWriter(path, {"clock": "virtual"})
    for tick in range(1, int(seconds * 100)):
        at_s = tick / 100
        stamp_ns = to_ns(at_s)

        def envelope(topic: str, number: int = tick, stamp_ns: int = stamp_ns, provenance: str = "") -> Envelope:
            return Envelope(topic, "node", number, stamp_ns, provenance=provenance)

        if tick % 10 == 0:
            image = Image(camera="head", captured_ns=stamp_ns, rgb=np.full((48, 64, 3), tick, np.uint8))
            document = image_document(image, envelope("head/image"), wall_offset_ns=0, jpeg_quality=0)
            writer.write_document("head/image", SCHEMA_NAME, SCHEMA, document, envelope("head/image"))
        if tick in (1, 100):
            text = "clear the table" if tick == 1 else "wipe it"
            writer.write(Stamped(Subtask(id=f"s{tick}", text=text), envelope("subtask")))
        if tick % 2 == 0:
            state = RobotState(
                read_ns=stamp_ns, position=(at_s, *ZEROS[1:]), velocity=ZEROS, effort=ZEROS, base_x_m=0.0,
                base_y_m=0.0, base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
            )  # fmt: skip
            writer.write(Stamped(state, envelope("robot/state")))
        if tick % 5 == 0 and with_commands:
            command = JointCommand(position=(at_s, *ZEROS[1:]), base_vy_mps=vy_mps)
            who = "person: Ann" if 120 <= tick < 150 else "script:x"
            writer.write(Stamped(command, envelope("command", provenance=who)))
            writer.write(Stamped(command, envelope("robot/command")))
    writer.close({"outcome": '{"ok":true,"reason":"done"}'})
    return path
