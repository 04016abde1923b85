"""Recordings as a LeRobot v3.0 dataset: one episode each, resampled to one rate, never looking ahead.

A frame at time t holds the newest state and images published by t, and the command that the guard sent to the robot in
the period that begins there (else the last one before). Columns beyond LeRobot's own: `policy.action` (what the
policy's seat asked for in that period, before the guard; what was sent where it was silent), `intervention` (a person
held that seat), `next.done`, `next.success`. Where the graph asks for actions, of the one under way what a learned
policy is told of it: `observation.target`, `observation.skill`, and `skill.done`. And what else is chosen (`features`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.recording.bag.export.episode import Episode, read_episode
from nodes.recording.bag.export.features import columns_of
from nodes.recording.bag.export.video import VideoFile, finish_all
from nodes.recording.bag.recording import Recording
from runtime.errors import RecordingError, UserError
from runtime.msgs import JOINTS

VERSION = "v3.0"
STATE_OF_BASE = ("base_x", "base_y", "base_heading")
ACTION_OF_BASE = ("base_v", "base_w")
_QUANTILES = (1, 10, 50, 90, 99)
_SAMPLED_IMAGES = 100
LATE_S = 1.0
"""A dataset that leaves out more of the beginning is told of."""
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


def export_lerobot(
    recordings: Sequence[Recording],
    out: Path,
    *,
    fps: int,
    skip_damaged: bool = False,
    cameras: Collection[str] = (),
    task: str | None = None,
    chosen: Collection[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the dataset; how many frames it has. `cameras`: topics; empty: all. `tell` hears what is left out.

    `task` is that of frames before any subtask, `chosen` are features as NAME=TOPIC:FIELD; both go before [export] of
    the recorded launch file.

    Raises RecordingError where a recording lacks state or commands, or holds any, or an image, that cannot be read,
    unless these are to be left out (`skip_damaged`).
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ModuleNotFoundError as problem:
        raise UserError("--to lerobot needs pyarrow: pip install 'polyrhythm[export]'") from problem
    if (out / "meta" / "info.json").exists():
        raise UserError(f"{out}: holds a dataset already; choose another folder")
    wanted = columns_of(recordings, task=task, features=chosen)
    names: dict[str, list[str]] = {}  # of the elements of chosen features
    tasks: dict[str, int] = {}
    features: dict[str, dict[str, Any]] = {}
    stats: list[dict[str, dict[str, Any]]] = []
    episodes: list[dict[str, Any]] = []
    total = 0
    for number, recording in enumerate(recordings):
        if recording.joints != recordings[0].joints:
            raise RecordingError(f"{recording.path}: its robot has other joints than that of {recordings[0].path}")
        with_videos: dict[str, VideoFile] = {}
        keys: dict[str, str] = {}  # by topic
        samples: dict[str, list[NDArray[np.uint8]]] = {}

        def show(
            topic: str,
            frame: int,
            rgb: NDArray[np.uint8],
            number: int = number,
            videos: dict[str, VideoFile] = with_videos,
            samples: dict[str, list[NDArray[np.uint8]]] = samples,
            keys: dict[str, str] = keys,
        ) -> None:
            key = keys.setdefault(topic, image_key(topic, keys.values()))
            if key not in videos:
                path = out / _VIDEO.format(video_key=key, chunk_index=0, file_index=number)
                height, width = features[key]["shape"][:2] if key in features else rgb.shape[:2]
                videos[key] = VideoFile(path, fps, width, height)  # of one size in all episodes
                features[key] = _video_feature(*videos[key].size, fps)
            videos[key].add(rgb)
            if frame % max(1, fps) == 0 and len(samples.setdefault(key, [])) < _SAMPLED_IMAGES:
                samples[key].append(rgb)

        try:
            episode = read_episode(
                recording, fps=fps, show=show, columns=wanted, skip_damaged=skip_damaged, only=cameras, tell=tell
            )
            finish_all(with_videos.values())
        finally:
            for video in with_videos.values():
                video.__exit__(None, None, None)
        if episode.begins_s > LATE_S:
            tell(
                f"{recording.path}: its first frame is {episode.begins_s:.1f} s behind its beginning: "
                "only then were a state, a command and an image of each camera there"
            )
        known = {key for key, feature in features.items() if feature["dtype"] == "video"}
        if known != set(with_videos):
            raise RecordingError(f"{recording.path}: has other cameras than the recordings before it")
        for name, elements in episode.chosen.element_names.items():
            if names.setdefault(name, elements) != elements:
                raise RecordingError(f"{recording.path}: {name} has another length than in {recordings[0].path}")
        columns = _columns(episode, number, total, tasks, fps, wanted.skills)
        path = out / _DATA.format(chunk_index=0, file_index=number)
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(_table(arrow, columns), path)
        own = {name: _stats(np.asarray(values)) for name, values in columns.items()}
        own |= {key: _image_stats(frames) for key, frames in samples.items()}
        stats.append(own)
        episodes.append(_episode_row(episode, number, total, sorted(known), own, fps))
        total += len(episode)
    meta = out / "meta"
    (meta / "episodes" / "chunk-000").mkdir(parents=True, exist_ok=True)
    rows = {key: [row[key] for row in episodes] for key in episodes[0]}
    parquet.write_table(arrow.table(rows), meta / "episodes" / "chunk-000" / "file-000.parquet")
    parquet.write_table(_task_table(arrow, tasks), meta / "tasks.parquet")
    (meta / "stats.json").write_text(json.dumps(_joined(stats), indent=1))
    info = _info(len(episodes), total, len(tasks), fps, features, recordings[0].joints, wanted.skills, names, columns)
    (meta / "info.json").write_text(json.dumps(info, indent=1))
    return total


def image_key(topic: str, taken: Collection[str] = ()) -> str:
    """The dataset's name of a camera, which no other has: "head/image" is `observation.images.head`."""
    key = wanted = f"observation.images.{topic.removesuffix('/image').replace('/', '_')}"
    number = 2
    while key in taken:
        key, number = f"{wanted}-{number}", number + 1
    return key


def _columns(
    episode: Episode, number: int, before: int, tasks: dict[str, int], fps: int, skills: Sequence[str]
) -> dict[str, NDArray[Any]]:
    length = len(episode)
    done = np.zeros(length, bool)
    done[-1] = True
    found: dict[str, NDArray[Any]] = {}
    if len(episode.states) == length:
        found["observation.state"] = np.asarray(episode.states, np.float32)
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
    return found | {
        "intervention": np.asarray(episode.interventions, bool),
        "next.done": done,
        "next.success": done & bool(episode.is_success),
        "timestamp": (np.arange(length) / fps).astype(np.float32),
        "frame_index": np.arange(length),
        "episode_index": np.full(length, number),
        "index": np.arange(before, before + length),
        "task_index": np.asarray([tasks.setdefault(text, len(tasks)) for text in episode.tasks]),
    }


def _table(arrow: Any, columns: dict[str, NDArray[Any]]) -> Any:
    arrays = {
        name: arrow.FixedSizeListArray.from_arrays(arrow.array(values.reshape(-1)), values.shape[1])
        if values.ndim == 2
        else arrow.array(values)
        for name, values in columns.items()
    }
    return arrow.table(arrays)


def _task_table(arrow: Any, tasks: dict[str, int]) -> Any:
    """Tasks by number with their text as the index, as pandas reads it; pandas itself is not needed."""
    index = "__index_level_0__"
    table = arrow.table({"task_index": arrow.array(list(tasks.values()), arrow.int64()), index: list(tasks)})
    column = {
        "metadata": None,
        "pandas_type": "int64",
        "numpy_type": "int64",
        "name": "task_index",
        "field_name": "task_index",
    }
    text = {"metadata": None, "pandas_type": "unicode", "numpy_type": "object", "name": None, "field_name": index}
    about = {
        "index_columns": [index],
        "column_indexes": [
            {
                "name": None,
                "field_name": None,
                "pandas_type": "unicode",
                "numpy_type": "object",
                "metadata": {"encoding": "UTF-8"},
            }
        ],
        "columns": [column, text],
        "creator": {"library": "pyarrow", "version": arrow.__version__},
        "pandas_version": "2.0.0",
    }
    return table.replace_schema_metadata({"pandas": json.dumps(about)})


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


def _info(
    episodes: int,
    frames: int,
    tasks: int,
    fps: int,
    videos: dict[str, dict[str, Any]],
    joints: tuple[str, ...],
    skills: tuple[str, ...],
    chosen: dict[str, list[str]],
    columns: Collection[str],
) -> dict[str, Any]:
    action = [*joints, *ACTION_OF_BASE]
    vectors = {
        "observation.state": [*joints, *STATE_OF_BASE],
        "observation.target": ["ahead", "left", "up"],
        "observation.skill": list(skills),
        "action": action,
        "policy.action": action,
        **chosen,
    }

    def scalar(dtype: str) -> dict[str, Any]:
        return {"dtype": dtype, "shape": [1], "names": None}

    return {
        "codebase_version": VERSION,
        "robot_type": "stretch" if joints == JOINTS else "other",
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": _DATA,
        "video_path": _VIDEO if videos else None,
        "features": {
            **{
                name: {"dtype": "float32", "shape": [len(elements)], "names": elements}
                for name, elements in vectors.items()
                if name in columns
            },
            **videos,
            **{
                name: scalar("bool")
                for name in ("skill.done", "intervention", "next.done", "next.success")
                if name in columns
            },
            "timestamp": scalar("float32"),
            **{name: scalar("int64") for name in ("frame_index", "episode_index", "index", "task_index")},
        },
    }


def _episode_row(
    episode: Episode, number: int, before: int, videos: Sequence[str], stats: dict[str, dict[str, Any]], fps: int
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "episode_index": number,
        "tasks": list(dict.fromkeys(episode.tasks)),
        "length": len(episode),
        "data/chunk_index": 0,
        "data/file_index": number,
        "dataset_from_index": before,
        "dataset_to_index": before + len(episode),
    }
    for key in videos:
        row |= {
            f"videos/{key}/chunk_index": 0,
            f"videos/{key}/file_index": number,
            f"videos/{key}/from_timestamp": 0.0,
            f"videos/{key}/to_timestamp": len(episode) / fps,
        }
    for name, values in stats.items():
        row |= {f"stats/{name}/{kind}": value for kind, value in values.items()}
    return row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}


def _stats(values: NDArray[Any]) -> dict[str, Any]:
    """Statistics of one column, as lists over its elements."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    found = {
        "min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0),
        **{f"q{percent:02d}": np.percentile(rows, percent, axis=0) for percent in _QUANTILES},
    }  # fmt: skip
    return {**{kind: value.tolist() for kind, value in found.items()}, "count": [len(rows)]}


def _image_stats(frames: Sequence[NDArray[np.uint8]]) -> dict[str, Any]:
    """The same over the pixels of each colour, 0 to 1, in the shape (3, 1, 1)."""
    flat = _stats(np.concatenate([frame.reshape(-1, 3) for frame in frames]) / 255.0)
    shaped = {kind: [[[value]] for value in values] for kind, values in flat.items() if kind != "count"}
    return {**shaped, "count": [len(frames)]}


def _joined(stats: Sequence[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Statistics over all episodes; quantiles as means weighted by length, as good as single passes give."""
    joined: dict[str, dict[str, Any]] = {}
    for name in stats[0]:
        parts = [one[name] for one in stats]
        weights = np.asarray([part["count"][0] for part in parts], float)
        arrays = {kind: np.asarray([part[kind] for part in parts], float) for kind in parts[0] if kind != "count"}
        mean = np.average(arrays["mean"], axis=0, weights=weights)
        variance = np.average(arrays["std"] ** 2 + (arrays["mean"] - mean) ** 2, axis=0, weights=weights)
        quantiles = {
            kind: np.average(value, axis=0, weights=weights) for kind, value in arrays.items() if kind[0] == "q"
        }
        found = {"min": arrays["min"].min(0), "max": arrays["max"].max(0), "mean": mean, "std": np.sqrt(variance)}
        joined[name] = {kind: value.tolist() for kind, value in (found | quantiles).items()}
        joined[name]["count"] = [int(weights.sum())]
    return joined
