"""Recordings as a LeRobot dataset: one episode each, resampled to one rate, never looking ahead.

A frame at time t holds the newest state and images published by t, and the command that the guard sent to the robot in
the period that begins there (else the last one before). Columns beyond LeRobot's own: `policy.action` (what the
policy's seat asked for in that period, before the guard; what was sent where it was silent), `intervention` (a person
held that seat), `image_age.CAMERA` (s since the picture was captured), `next.done`, `next.success`. Where the graph
asks for actions, of the one under way what a learned policy is told of it: `observation.target`, `observation.skill`,
and `skill.done`. And what else is chosen (`features`), and the words (`words`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JOINTS
from nodes.recording.bag.export.video import VideoFile, finish_all
from nodes.recording.bag.recording import Recording
from nodes.recording.dataset.episode import Episode, Span, corrections, read_episode
from nodes.recording.dataset.features import Columns, columns_of
from nodes.recording.dataset.folder import DatasetFolder
from nodes.recording.dataset.statistics import column_stats, image_stats
from nodes.recording.dataset.words import LANGUAGE_FEATURES, language_columns, tools
from nodes.recording.dataset.writer import DatasetWriter, Version, scalar
from runtime.clock import to_s
from runtime.errors import RecordingError, UserError

Layout = Literal["default", "policy", "same"]
STATE_OF_BASE: dict[Layout, tuple[str, ...]] = {
    "default": ("base_x", "base_y", "base_heading"),
    "policy": (),
    "same": ("base_v", "base_w"),
}
"""What a state holds beside the joints: odometry; nothing, as our clients of policy servers send it; or the measured
velocities, so that state and action have the same names in the same order."""
ACTION_OF_BASE = ("base_v", "base_w")
_BASE = ("base_x", "base_y", "base_heading", "base_v", "base_w")
_SAMPLED_IMAGES = 100
LATE_S = 1.0
"""A dataset that leaves out more of the beginning is told of."""
FEWEST_FRAMES = 2
"""A correction that is shorter is none."""
AGE = "image_age."
"""Begins the columns that tell how old a camera's picture is."""


@dataclass(frozen=True)
class DatasetWish:
    """What a dataset is to be like. `cameras`: topics; empty: all.

    `task` is that of frames before any subtask, `chosen` are features as NAME=TOPIC:FIELD; both go before [export] of
    the recorded launch file.
    """

    fps: int
    version: Version = "v3.0"
    layout: Layout = "default"
    cameras: Collection[str] = ()
    task: str | None = None
    chosen: Collection[str] = ()
    has_words: bool = False
    has_task_from_words: bool = False
    skip_damaged: bool = False
    only_corrections: bool = False


def export_lerobot(
    recordings: Sequence[Recording],
    out: Path,
    wish: DatasetWish,
    *,
    base: DatasetFolder | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[int, int]:
    """Write the dataset; how many episodes and frames it has. Those of `base` come first; `tell` hears what lacks.

    Raises RecordingError where a recording lacks state or commands, holds any, or an image, that cannot be read, unless
    these are to be left out, or where it is not like those before it: other joints, cameras or sizes of pictures.
    """
    if wish.has_words and wish.version == "v2.1":
        raise UserError("--words: a dataset of v2.1 has no columns for words; --version v3.0 has")
    wanted = columns_of(
        recordings,
        task=wish.task,
        features=wish.chosen,
        has_words=wish.has_words,
        has_task_from_words=wish.has_task_from_words,
    )
    writer = DatasetWriter(out, wish.version, wish.fps)
    writer.tools = tools() if wish.has_words else []
    for stored in base.episodes if base is not None else ():
        assert base is not None
        writer.keep(base, stored)
    for recording in recordings:
        if recording.joints != recordings[0].joints:
            raise RecordingError(f"{recording.path}: its robot has other joints than that of {recordings[0].path}")
        try:
            for span in _spans(recording, wish, tell):
                _add(recording, writer, wish, wanted, tell, span)
        except RecordingError as problem:
            where = str(recording.path)
            raise problem if str(problem).startswith(where) else RecordingError(f"{where}: {problem}") from problem
    if not len(writer):
        raise RecordingError("nobody held the policy's seat by hand in these recordings: there are no corrections")
    return len(writer), writer.finish("stretch" if recordings[0].joints == JOINTS else "other")


def _spans(recording: Recording, wish: DatasetWish, tell: Callable[[str], None]) -> list[Span | None]:
    """Of which an episode is made: the whole, or each time that a person corrected."""
    if not wish.only_corrections:
        return [None]
    found = [span for span in corrections(recording) if to_s(span[1] - span[0]) >= FEWEST_FRAMES / wish.fps]
    if not found:
        tell(f"{recording.path}: nobody held the policy's seat by hand, so it is left out")
    return list(found)


class _Pictures:
    """The videos of one episode, each of one size, and some of their frames for the statistics."""

    def __init__(self, writer: DatasetWriter, fps: int) -> None:
        self.keys: dict[str, str] = {}  # by topic
        self.videos: dict[str, VideoFile] = {}
        self.samples: dict[str, list[NDArray[np.uint8]]] = {}
        self._writer = writer
        self._fps = fps

    def show(self, topic: str, frame: int, rgb: NDArray[np.uint8]) -> None:
        """The next frame of a camera. Raises RecordingError where it is of another size than those before it."""
        key = self.keys.setdefault(topic, image_key(topic, self.keys.values()))
        if key not in self.videos:
            height, width = rgb.shape[:2]
            self.videos[key] = VideoFile(self._writer.video_path(key), self._fps, width, height)
            feature = _video_feature(*self.videos[key].size, self._fps)
            known = self._writer.features.get(key, feature)["shape"]
            if list(known) != feature["shape"]:
                raise RecordingError(
                    f"{topic} is {width} x {height} pixels, and {known[1]} x {known[0]} in the dataset; a picture is "
                    "not stretched: --camera leaves one out, and another --out begins a dataset of its own"
                )
        self.videos[key].add(rgb)
        if frame % max(1, self._fps) == 0 and len(self.samples.setdefault(key, [])) < _SAMPLED_IMAGES:
            self.samples[key].append(rgb)

    def close(self) -> None:
        """Close what is not finished."""
        for video in self.videos.values():
            video.__exit__(None, None, None)


def _add(
    recording: Recording,
    writer: DatasetWriter,
    wish: DatasetWish,
    wanted: Columns,
    tell: Callable[[str], None],
    span: Span | None,
) -> None:
    pictures = _Pictures(writer, wish.fps)
    with ExitStack() as files:
        files.push(lambda *error: pictures.close())
        episode = read_episode(
            recording,
            fps=wish.fps,
            show=pictures.show,
            columns=wanted,
            skip_damaged=wish.skip_damaged,
            only=wish.cameras,
            within=span,
            tell=tell,
        )
        finish_all(pictures.videos.values())
    if episode.begins_s > LATE_S and span is None:
        tell(
            f"{recording.path}: its first frame is {episode.begins_s:.1f} s behind its beginning: "
            "only then were a state, a command and an image of each camera there"
        )
    columns = _columns(episode, recording.joints, wish, wanted.skills, pictures.keys)
    features = _features(recording.joints, wish.layout, wanted.skills, episode.chosen.element_names, columns)
    features |= {key: _video_feature(*video.size, wish.fps) for key, video in pictures.videos.items()}
    features |= LANGUAGE_FEATURES if wanted.has_words else {}
    if not len(writer):
        writer.features = features
    _check_same(writer.features, features)
    stats = {name: column_stats(np.asarray(values)) for name, values in columns.items()}
    stats |= {key: image_stats(frames) for key, frames in pictures.samples.items()}
    words = language_columns(episode.words, len(episode), wish.fps) if wanted.has_words else {}
    writer.add(columns | words, episode.tasks, stats)


def _check_same(known: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> None:
    """Raise RecordingError where an episode has not what those before it have."""
    for name in sorted({*known, *found}):
        one, other = known.get(name), found.get(name)
        if one is None or other is None:
            where = "it has" if one is None else "the episodes before it have"
            raise RecordingError(f"{where} {name}, and {'they have' if one is None else 'it has'} not")
        if list(one["shape"]) != list(other["shape"]) or one["dtype"] != other["dtype"]:
            shapes = f"{one['dtype']} {list(one['shape'])}, not {other['dtype']} {list(other['shape'])}"
            raise RecordingError(f"{name} is {shapes}, in the episodes before it")
        if one["dtype"] != "video" and one.get("names") != other.get("names"):
            raise RecordingError(f"the elements of {name} have other names than in the episodes before it")


def image_key(topic: str, taken: Collection[str] = ()) -> str:
    """The dataset's name of a camera, which no other has: "head/image" is `observation.images.head`."""
    key = wanted = f"observation.images.{topic.removesuffix('/image').replace('/', '_')}"
    number = 2
    while key in taken:
        key, number = f"{wanted}-{number}", number + 1
    return key


def _columns(
    episode: Episode, joints: Sequence[str], wish: DatasetWish, skills: Sequence[str], cameras: dict[str, str]
) -> dict[str, NDArray[Any]]:
    length = len(episode)
    done = np.zeros(length, bool)
    done[-1] = True
    found: dict[str, NDArray[Any]] = {}
    if len(episode.states) == length:
        of_base = [len(joints) + _BASE.index(name) for name in STATE_OF_BASE[wish.layout]]
        found["observation.state"] = np.asarray(episode.states, np.float32)[:, [*range(len(joints)), *of_base]]
    if skills:
        if len(episode.targets) == length:
            found["observation.target"] = np.asarray(episode.targets, np.float32)
        asked = [[float(skill == known) for known in skills] for skill in episode.skills]
        found["observation.skill"] = np.asarray(asked, np.float32)
        found["skill.done"] = np.asarray(episode.skills_done, bool)
    if len(episode.actions) == length:
        found["action"] = np.asarray(episode.actions, np.float32)
        found["policy.action"] = np.asarray(episode.asked, np.float32)
    found |= {name: np.asarray(rows, np.float32) for name, rows in episode.chosen.rows.items()}
    for topic, key in cameras.items():
        found[key.replace("observation.images.", AGE)] = np.asarray(episode.image_ages_s[topic], np.float32)
    return found | {
        "intervention": np.asarray(episode.interventions, bool),
        "next.done": done,
        "next.success": done & bool(episode.is_success),
        "timestamp": (np.arange(length) / wish.fps).astype(np.float32),
        "frame_index": np.arange(length),
    }


def _video_feature(width: int, height: int, fps: int) -> dict[str, Any]:
    return {
        "dtype": "video",
        "shape": [height, width, 3],
        "names": ["height", "width", "channels"],
        "info": {
            "video.height": height, "video.width": width, "video.codec": "vp9", "video.pix_fmt": "yuv420p",
            "video.is_depth_map": False, "video.fps": fps, "video.channels": 3, "has_audio": False,
        },
    }  # fmt: skip


def _features(
    joints: tuple[str, ...],
    layout: Layout,
    skills: tuple[str, ...],
    chosen: dict[str, list[str]],
    columns: dict[str, NDArray[Any]],
) -> dict[str, dict[str, Any]]:
    action = [*joints, *ACTION_OF_BASE]
    vectors = {
        "observation.state": [*joints, *STATE_OF_BASE[layout]],
        "observation.target": ["ahead", "left", "up"],
        "observation.skill": list(skills),
        "action": action,
        "policy.action": action,
        **chosen,
    }
    found: dict[str, dict[str, Any]] = {
        name: {"dtype": "float32", "shape": [len(elements)], "names": elements}
        for name, elements in vectors.items()
        if name in columns
    }
    found |= {name: scalar(str(values.dtype)) for name, values in columns.items() if name not in found}
    return found | {name: scalar("int64") for name in ("episode_index", "index", "task_index")}
