"""A recording as one Rerun file (.rrd): pictures with their cameras, depth, joints, transforms, words, and the rest as
JSON text. Needs the extra `rerun`; the only file that imports rerun-sdk.

Two timelines: `time`, as the recording's wall clock has it, and `run`, since run time zero.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rerun as rr

from nodes.mcap.record import BagMessage
from nodes.msgs import Interrupt, JointCommand, RobotState, Utterance
from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.recording import Recording, envelope_or_none, is_journal
from nodes.recording.foxglove.schemas import SCHEMAS, TRANSFORMS_NAME
from nodes.recording.images import DEPTH_SCHEMA_NAME, depth_of, pixels
from nodes.recording.images import SCHEMA_NAME as IMAGE_NAME
from runtime.clock import to_s
from runtime.errors import RecordingError, UserError


def export_rerun(
    recording: Recording, out: Path, *, skip_damaged: bool = False, tell: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Write the file; by topic, how many messages went into it.

    Raises UserError where it cannot be written, RecordingError of a message that cannot be read unless those are
    skipped; `tell` hears of what was skipped.
    """
    damaged = Damaged(recording, is_skipped=skip_damaged)
    counts: dict[str, int] = {}
    stream = rr.RecordingStream("polyrhythm", recording_id=str(recording.about.get("run_id", out.stem)))
    try:
        out.open("ab").close()  # of Rerun's own word for it a traceback is left
        stream.save(out)
    except (OSError, RuntimeError) as problem:
        raise UserError(f"{out}: cannot be written ({problem}); choose another --out") from problem
    try:
        for message in recording.gone_through("writing"):
            envelope = envelope_or_none(message)
            if envelope is None or is_journal(message):
                continue
            stream.set_time("time", timestamp=to_s(message.log_time_ns))
            stream.set_time("run", duration=to_s(envelope.published_ns - recording.start_ns))
            try:
                _log(stream, message, recording.joints)
            except RecordingError as problem:
                damaged.met(message, problem)
                continue
            counts[message.topic] = counts.get(message.topic, 0) + 1
    finally:
        try:
            stream.flush()
        except RuntimeError as problem:
            raise RecordingError(f"{out}: was not written to its end ({problem}); is the disk full?") from problem
        finally:
            stream.disconnect()
    damaged.tell(tell)
    return dict(sorted(counts.items()))


def _log(stream: rr.RecordingStream, message: BagMessage, joints: tuple[str, ...]) -> None:
    """What one message becomes."""
    name = message.topic
    if message.schema == IMAGE_NAME and not name.endswith("/depth"):
        document = message.document
        media = f"image/{document['format']}"
        stream.log(name, rr.EncodedImage(contents=base64.b64decode(document["data"]), media_type=media))
        focal_px = float(document.get("focal_px", 0.0))
        if focal_px:
            height, width = pixels(document).shape[:2]
            lens = rr.Pinhole(focal_length=focal_px, width=width, height=height, parent_frame=str(document["frame_id"]))
            stream.log(name, lens)
    elif message.schema in (IMAGE_NAME, DEPTH_SCHEMA_NAME):
        stream.log(name, rr.DepthImage(depth_of(message.document)[0], meter=1.0))
    elif message.schema == TRANSFORMS_NAME:
        for one in message.document["transforms"]:
            stream.log(f"transforms/{one['child_frame_id']}", _transform(one))
    elif name == "robot/state":
        state = message.message(RobotState)
        _numbers(stream, "joints", joints, state.position)
        base = (state.base_x_m, state.base_y_m, state.base_heading_rad)
        _numbers(stream, "base", ("x_m", "y_m", "heading_rad"), base)
    elif name == "robot/command":
        command = message.message(JointCommand)
        _numbers(stream, "command", joints, command.position)
        speeds = ("base_v_mps", "base_w_radps", "base_vy_mps")
        _numbers(stream, "command", speeds, tuple(getattr(command, speed) for speed in speeds))
    elif name in ("heard", "said"):
        words = message.message(Utterance)
        stream.log("conversation", rr.TextLog(f"{words.speaker}: {words.text}", level=rr.TextLogLevel.INFO))
    elif name == "interrupt":
        interrupt = message.message(Interrupt)
        stream.log("interrupts", rr.TextLog(f"{interrupt.depth}: {interrupt.text}", level=rr.TextLogLevel.WARN))
    elif message.schema not in SCHEMAS:  # those are made of what stands here already
        stream.log(name, rr.TextDocument(message.data.decode("utf-8", "replace"), media_type="application/json"))


def _numbers(stream: rr.RecordingStream, folder: str, names: tuple[str, ...], values: tuple[float, ...]) -> None:
    for name, value in zip(names, values, strict=False):
        stream.log(f"{folder}/{name}", rr.Scalars(value))


def _transform(document: dict[str, Any]) -> rr.Transform3D:
    return rr.Transform3D(
        translation=[document["translation"][axis] for axis in "xyz"],
        quaternion=rr.Quaternion(xyzw=[document["rotation"][axis] for axis in "xyzw"]),
        parent_frame=document["parent_frame_id"],
        child_frame=document["child_frame_id"],
    )
