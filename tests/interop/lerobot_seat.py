"""Whether a recorded run was moved by an adopted model.   usage: python -m tests.interop.lerobot_seat RUN.mcap MODEL"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from nodes.msgs import ActionChunk, JointCommand
from nodes.recording.bag.recording import Recording


def main() -> None:
    recording, model = Recording(Path(sys.argv[1])), sys.argv[2]
    chunks: list[ActionChunk] = []
    commands: list[JointCommand] = []
    for message in recording:
        if message.topic in ("chunk", "command") and message.envelope.source == "policy":
            assert message.envelope.provenance == f"model:{model}", message.envelope.provenance
            if message.topic == "chunk":
                chunks.append(message.message(ActionChunk))
            else:
                commands.append(message.message(JointCommand))
    assert len(chunks) > 20, f"{len(chunks)} chunks"
    assert len(commands) > 20, f"{len(commands)} commands"
    shape = np.asarray(chunks[0].position).shape
    assert all(np.isfinite(chunk.position).all() for chunk in chunks)
    print(f"the model gave {len(chunks)} chunks of {shape[0]} steps, and {len(commands)} commands were played")


if __name__ == "__main__":
    main()
