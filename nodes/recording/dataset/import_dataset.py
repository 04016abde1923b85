"""Episodes of a LeRobot dataset as recordings: to replay, to compare a policy with what was done, to learn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.mcap.file import BagWriter
from nodes.msgs import Action, Feedback, Image, JointCommand, RobotState, SeenObject, Subtask, aimed_at
from nodes.policy.onnx.training import doubled
from nodes.recording.dataset.export import ACTION_OF_BASE
from nodes.recording.dataset.folder import DatasetFolder, StoredEpisode
from nodes.recording.dataset.words import EVENTS, PERSISTENT, words_of
from nodes.recording.images import SCHEMA, SCHEMA_NAME, image_document
from runtime.clock import to_ns
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.errors import RecordingError
from runtime.message import Envelope, Message, Stamped

STATE, ACTION = "observation.state", "action"
_BASE = ("base_x", "base_y", "base_heading", "base_v", "base_w")
_BEGINS_NS = to_ns(1.0)
_JPEG_QUALITY = 95
_MOST_RAD = 4 * math.pi
"""An arm's joint that says more speaks in degrees or percent."""


def import_episode(
    folder: DatasetFolder,
    episode: StoredEpisode,
    out: Path,
    *,
    is_degrees: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Write an episode as a recording; how many frames it has. Angles and positions stay as they are, or are degrees.

    Raises RecordingError where it has no state and no action, or they are not of the same joints.
    """
    table = folder.table(episode)
    for name in (STATE, ACTION):
        if name not in folder.info.features or name not in table.column_names:
            raise RecordingError(f"{folder.path}: has no {name}; a recording needs {STATE} and {ACTION}")
    names = [name.removesuffix(".pos") for name in folder.names(STATE)]
    joints = [name for name in names if name not in _BASE]
    asked = [name.removesuffix(".pos") for name in folder.names(ACTION) if name not in ACTION_OF_BASE]
    if twice := doubled(names) + doubled(asked):
        raise RecordingError(f"{folder.path}: names {', '.join(twice)} twice; expected another name for each joint")
    if asked != joints and not (len(asked) == len(joints) and all(name.isdecimal() for name in (*asked, *joints))):
        raise RecordingError(
            f"{folder.path}: its state is of the joints {', '.join(joints)}, and its action of {', '.join(asked)}; "
            "expected the same, in the same order"
        )
    rows = _Rows(folder, table, names, joints, is_degrees=is_degrees)
    if not is_degrees and rows.largest > _MOST_RAD:
        tell(
            f"{folder.path}: joints go up to {rows.largest:.4g}; where these are degrees, --degrees turns them into rad"
        )
    about = {"source": str(folder.path), "imported": f"LeRobot {folder.info.codebase_version}"}
    writer = BagWriter(out, {**about, "joints": msgspec.json.encode(joints).decode()})
    try:
        found = _Messages(writer)
        pictures = {camera: folder.frames(episode, camera, "rgb24") for camera in folder.cameras}
        spoken = sorted([*rows.words(), *rows.tasks(folder.tasks)], key=lambda one: one[0])
        for number, at_s in enumerate(rows.stamps_s):
            while spoken and spoken[0][0] <= at_s + 0.5 / folder.info.fps:
                _, topic, message = spoken.pop(0)
                found.write(topic, message, at_s)
            for camera, frames in pictures.items():
                rgb = next(frames, None)
                if rgb is None:
                    raise RecordingError(f"{folder.path}: episode {episode.index}: {camera} ends at frame {number}")
                found.write_image(camera.removeprefix("observation.images."), rgb, at_s)
            for topic, message in rows.messages(number):
                found.write(topic, message, at_s)
        outcome = {} if rows.is_success is None else {"outcome": f'{{"ok":{str(rows.is_success).lower()}}}'}
        writer.close(outcome)
    finally:
        writer.abandon()
    return episode.length


class _Messages:
    """Numbers the messages of each topic, and stamps them."""

    def __init__(self, writer: BagWriter) -> None:
        self._writer = writer
        self._numbers: dict[str, int] = {}

    def _envelope(self, topic: str, at_s: float) -> Envelope:
        self._numbers[topic] = self._numbers.get(topic, 0) + 1
        return Envelope(topic, "dataset", self._numbers[topic], _BEGINS_NS + to_ns(at_s))

    def write(self, topic: str, message: Message, at_s: float) -> None:
        self._writer.write(Stamped(message, self._envelope(topic, at_s)))

    def write_image(self, camera: str, rgb: NDArray[np.uint8], at_s: float) -> None:
        envelope = self._envelope(f"{camera}/image", at_s)
        image = Image(camera=camera, captured_ns=envelope.published_ns, rgb=rgb)
        document = image_document(image, envelope, wall_offset_ns=0, jpeg_quality=_JPEG_QUALITY)
        self._writer.write_document(
            envelope.topic, SCHEMA_NAME, SCHEMA, document, envelope, type_name="nodes.msgs:Image"
        )


class _Rows:
    """The columns of an episode, frame by frame as messages."""

    def __init__(
        self, folder: DatasetFolder, table: Any, names: Sequence[str], joints: Sequence[str], *, is_degrees: bool
    ) -> None:
        self._joints = len(joints)
        told_s = folder.numbers(table, "timestamp")[:, 0]
        due_s = np.arange(len(told_s)) / folder.info.fps  # the same, without the rounding of 32 bits
        self.stamps_s: list[float] = np.where(np.abs(told_s - due_s) < 0.1 / folder.info.fps, due_s, told_s).tolist()
        state, action = folder.numbers(table, STATE), folder.numbers(table, ACTION)
        where = [names.index(joint) for joint in joints]
        own = [place for place, name in enumerate(folder.names(ACTION)) if name not in ACTION_OF_BASE]
        self.largest = float(np.abs(state[:, where]).max())
        scale = math.pi / 180 if is_degrees else 1.0
        self._position, self._asked = state[:, where] * scale, action[:, own] * scale
        self._base = self._columns(state, names, _BASE)
        self._driven = self._columns(action, folder.names(ACTION), ACTION_OF_BASE)
        self._table = table
        self._skills = folder.names("observation.skill") if "observation.skill" in table.column_names else []
        self._skill = ""
        self._is_done = False
        self._number = 0
        held = self._flags("intervention")
        self._persons = held if held is not None else [False] * len(self.stamps_s)
        success = self._flags("next.success")
        self.is_success = success[-1] if success else None

    @staticmethod
    def _columns(values: NDArray[np.float64], names: Sequence[str], wanted: Sequence[str]) -> NDArray[np.float64]:
        """Those columns by name; zeros where there is none of that name."""
        empty = np.zeros(len(values))
        return np.stack([values[:, names.index(name)] if name in names else empty for name in wanted], axis=1)

    def _flags(self, name: str) -> list[bool] | None:
        if name not in self._table.column_names:
            return None
        return [bool(np.ravel(value)[0]) for value in self._table.column(name).to_pylist()]

    def words(self) -> list[tuple[float, str, Message]]:
        told = [name for name in (PERSISTENT, EVENTS) if name in self._table.column_names]
        columns = {name: self._table.column(name).to_pylist() for name in told}
        return words_of(columns, self.stamps_s)

    def tasks(self, texts: dict[int, str]) -> Iterator[tuple[float, str, Message]]:
        """The task of the frames as subtasks, where no words of the dataset tell them."""
        if PERSISTENT in self._table.column_names:
            return
        before = None
        for at_s, number in zip(self.stamps_s, self._table.column("task_index").to_pylist(), strict=True):
            text = texts.get(number, "")
            if text and text != before:
                yield at_s, "subtask", Subtask(id=f"task-{number}", text=text, state="work")
            before = text

    def messages(self, number: int) -> Iterator[tuple[str, Message]]:
        """State, action under way and commands of a frame."""
        x_m, y_m, heading_rad, v_mps, w_radps = self._base[number].tolist()
        zeros = (0.0,) * self._joints
        last = max(0, number - 1)
        passed_s = self.stamps_s[number] - self.stamps_s[last]
        speeds = (self._position[number] - self._position[last]) / passed_s if passed_s > 0 else np.zeros(self._joints)
        yield (
            "robot/state",
            RobotState(
                read_ns=_BEGINS_NS + to_ns(self.stamps_s[number]),
                position=tuple(self._position[number].tolist()),
                velocity=tuple(speeds.tolist()),
                effort=zeros,
                base_x_m=x_m,
                base_y_m=y_m,
                base_heading_rad=heading_rad,
                base_v_mps=v_mps,
                base_w_radps=w_radps,
            ),
        )
        if number == 0 or self._persons[number] != self._persons[number - 1]:
            kind: Literal["person", "script"] = "person" if self._persons[number] else "script"
            yield LEASE_TOPIC, Lease(seat="policy", holder="dataset", number=number + 1, kind=kind)
        yield from self._action(number, x_m, y_m, heading_rad)
        v, w = self._driven[number].tolist()
        command = JointCommand(position=tuple(self._asked[number].tolist()), base_v_mps=v, base_w_radps=w)
        yield "command", command
        yield "robot/command", command

    def _action(self, number: int, x_m: float, y_m: float, heading_rad: float) -> Iterator[tuple[str, Message]]:
        """What the VLM wanted, from the columns that say which skill was under way and where its target was."""
        if not self._skills:
            return
        flags = self._table.column("observation.skill")[number].as_py()
        skill = self._skills[int(np.argmax(flags))] if max(flags) > 0 else ""
        is_done = bool(np.ravel(self._table.column("skill.done")[number].as_py())[0])
        if skill and (skill != self._skill or (self._is_done and not is_done)):
            self._number += 1
            ahead_m, left_m, up_m = self._table.column("observation.target")[number].as_py()
            cos, sin = math.cos(heading_rad), math.sin(heading_rad)
            thing = SeenObject(
                label="target", colour="", x_m=x_m + cos * ahead_m - sin * left_m,
                y_m=y_m + sin * ahead_m + cos * left_m, z_m=up_m, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
            )  # fmt: skip
            is_aimed = any((ahead_m, left_m, up_m))
            yield "action", Action(id=f"a{self._number}", skill=skill, arguments=aimed_at(thing if is_aimed else None))
        if is_done and not self._is_done and self._number:
            yield "feedback", Feedback(action_id=f"a{self._number}", status="success")
        self._skill, self._is_done = skill, is_done
