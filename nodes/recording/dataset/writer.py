"""`DatasetWriter`: writes a LeRobot dataset, v3.0 or v2.1, episode by episode; a video of another one is linked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet

from nodes.recording.dataset.folder import CHUNK, DatasetFolder, StoredEpisode, VideoPlace
from nodes.recording.dataset.statistics import ColumnStats, column_stats, joined
from runtime.errors import RecordingError

Version = Literal["v3.0", "v2.1"]
_PATHS: dict[str, tuple[str, str]] = {
    "v3.0": (
        "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    ),
    "v2.1": (
        "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    ),
}
_INDEX = ("episode_index", "index", "task_index")


class DatasetWriter:
    """Into `root`, which is a folder of its own until `finish` has returned."""

    def __init__(self, root: Path, version: Version, fps: float) -> None:
        self.version = version
        self.fps = fps
        self.features: dict[str, dict[str, Any]] = {}
        self.tools: list[dict[str, Any]] = []
        self._root = root
        self._episodes: list[StoredEpisode] = []
        self._tasks: dict[str, int] = {}
        self._next_video = 0
        self._robot_type: str | None = None
        self._frames = 0

    def __len__(self) -> int:
        return len(self._episodes)

    def video_path(self, camera: str) -> Path:
        """Where the next episode's video of a camera is to be written."""
        return self._root / self._place(1, max(self._next_video, len(self._episodes)), camera)

    def add(self, columns: dict[str, Any], tasks: Sequence[str], stats: dict[str, ColumnStats]) -> None:
        """Another episode: a value of each column for each frame, as arrays or lists; its videos are written already.

        Raises RecordingError where the dataset has another number of columns.
        """
        known = {name for name, one in self.features.items() if one["dtype"] not in ("video", "image")}
        if absent := known ^ {*columns, *_INDEX}:
            raise RecordingError(f"the dataset and this episode do not both have {', '.join(sorted(absent))}")
        number = max(self._next_video, len(self._episodes))
        cameras = [name for name, one in self.features.items() if one["dtype"] == "video"]
        videos = {name: VideoPlace(self._root / self._place(1, number, name), 0.0, number) for name in cameras}
        self._put(_table(columns), tasks, stats, videos)

    def keep(self, folder: DatasetFolder, episode: StoredEpisode) -> None:
        """An episode of another dataset of this version, with its videos. Raises RecordingError where it is damaged."""
        self._robot_type = folder.info.robot_type
        self.features = self.features or folder.info.features
        self.tools = self.tools or folder.info.tools or []
        table = folder.table(episode)
        tasks = [folder.tasks[index] for index in table.column("task_index").to_pylist()]
        own = len(self._episodes)
        videos: dict[str, VideoPlace] = {}
        for camera, place in episode.videos.items():
            number = place.number if self.version == "v3.0" else own
            path = self._root / self._place(1, number, camera)
            if not path.exists():
                _link(place.path, path)
            self._next_video = max(self._next_video, number + 1)
            videos[camera] = VideoPlace(path, place.from_s, number)
        stats = episode.stats or {
            name: column_stats(folder.numbers(table, name))
            for name, one in folder.info.features.items()
            if str(one.get("dtype")).startswith(("float", "int", "bool"))
        }
        self._put(table.drop_columns([name for name in _INDEX if name in table.column_names]), tasks, stats, videos)

    def _put(
        self, table: Any, tasks: Sequence[str], stats: dict[str, ColumnStats], videos: dict[str, VideoPlace]
    ) -> None:
        number, length = len(self._episodes), len(tasks)
        indices = {
            "episode_index": np.full(length, number),
            "index": np.arange(self._frames, self._frames + length),
            "task_index": np.asarray([self._tasks.setdefault(text, len(self._tasks)) for text in tasks]),
        }
        for name, values in indices.items():
            table = table.append_column(name, arrow.array(values.astype(np.int64)))
        path = self._root / self._place(0, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, path)
        own = stats | {name: column_stats(values) for name, values in indices.items()}
        self._episodes.append(StoredEpisode(number, length, list(dict.fromkeys(tasks)), path, videos, own))
        self._frames += length

    def finish(self, robot_type: str) -> int:
        """Write what is known of all episodes; how many frames there are."""
        meta = self._root / "meta"
        meta.mkdir(parents=True, exist_ok=True)
        if self.version == "v3.0":
            place = meta / "episodes" / "chunk-000" / "file-000.parquet"
            place.parent.mkdir(parents=True)
            parquet.write_table(arrow.Table.from_pylist(self._rows()), place)
            parquet.write_table(_task_table(self._tasks), meta / "tasks.parquet")
        else:
            tasks = [{"task_index": number, "task": text} for text, number in self._tasks.items()]
            _write_lines(meta / "tasks.jsonl", tasks)
            told = [{"episode_index": one.index, "tasks": one.tasks, "length": one.length} for one in self._episodes]
            _write_lines(meta / "episodes.jsonl", told)
            stats = [{"episode_index": one.index, "stats": one.stats} for one in self._episodes]
            _write_lines(meta / "episodes_stats.jsonl", stats)
            _write_json(meta / "modality.json", self._modalities())
        _write_json(meta / "stats.json", joined([one.stats for one in self._episodes]))
        _write_json(meta / "info.json", self._info(self._robot_type or robot_type))
        return self._frames

    def _place(self, kind: int, number: int, camera: str = "") -> str:
        chunk, rest = divmod(number, CHUNK)
        names = {"chunk_index": chunk, "file_index": rest, "episode_chunk": chunk, "episode_index": number}
        return _PATHS[self.version][kind].format(**names, video_key=camera)

    def _rows(self) -> list[dict[str, Any]]:
        rows, before = [], 0
        for one in self._episodes:
            chunk, file = divmod(one.index, CHUNK)
            row: dict[str, Any] = {
                "episode_index": one.index, "tasks": one.tasks, "length": one.length,
                "data/chunk_index": chunk, "data/file_index": file,
                "dataset_from_index": before, "dataset_to_index": before + one.length,
            }  # fmt: skip
            for camera, place in one.videos.items():
                row |= {
                    f"videos/{camera}/chunk_index": place.number // CHUNK,
                    f"videos/{camera}/file_index": place.number % CHUNK,
                    f"videos/{camera}/from_timestamp": place.from_s,
                    f"videos/{camera}/to_timestamp": place.from_s + one.length / self.fps,
                }
            row |= {f"stats/{name}/{kind}": value for name, told in one.stats.items() for kind, value in told.items()}
            rows.append(row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0})
            before += one.length
        return rows

    def _info(self, robot_type: str) -> dict[str, Any]:
        data, video = _PATHS[self.version]
        has_videos = any(one["dtype"] == "video" for one in self.features.values())
        info: dict[str, Any] = {
            "codebase_version": self.version,
            "robot_type": robot_type,
            "total_episodes": len(self._episodes),
            "total_frames": self._frames,
            "total_tasks": len(self._tasks),
            "chunks_size": CHUNK,
            "fps": int(self.fps) if self.fps == int(self.fps) else self.fps,
            "splits": {"train": f"0:{len(self._episodes)}"},
            "data_path": data,
            "video_path": video if has_videos else None,
            "features": self.features,
        }
        if self.version == "v3.0":
            sizes = {"data_files_size_in_mb": 100, "video_files_size_in_mb": 200}
            return info | sizes | ({"tools": self.tools} if self.tools else {})
        videos = sum(len(one.videos) for one in self._episodes)
        return info | {"total_videos": videos, "total_chunks": (len(self._episodes) - 1) // CHUNK + 1}

    def _modalities(self) -> dict[str, Any]:
        """GR00T's: which elements of state and action are joints, and which the base; what cameras are called."""
        found: dict[str, Any] = {"state": {}, "action": {}, "video": {}}
        for kind, feature in (("state", "observation.state"), ("action", "action")):
            for place, name in enumerate(self.features.get(feature, {}).get("names") or ()):
                part = found[kind].setdefault("base" if name.startswith("base_") else "joints", {"start": place})
                part["end"] = place + 1
        for name, one in self.features.items():
            if one["dtype"] == "video":
                found["video"][name.removeprefix("observation.images.")] = {"original_key": name}
        return found | {"annotation": {"human.task_description": {"original_key": "task_index"}}}


def scalar(dtype: str) -> dict[str, Any]:
    """A feature of one number a frame."""
    return {"dtype": dtype, "shape": [1], "names": None}


def _table(columns: dict[str, Any]) -> Any:
    return arrow.table(
        {
            name: arrow.FixedSizeListArray.from_arrays(arrow.array(values.reshape(-1)), values.shape[1])
            if isinstance(values, np.ndarray) and values.ndim == 2
            else arrow.array(values) if isinstance(values, np.ndarray) else values
            for name, values in columns.items()
        }
    )  # fmt: skip


def _task_table(tasks: dict[str, int]) -> Any:
    """Tasks by number with their text as the index, as pandas reads it; pandas itself is not needed."""
    index = "__index_level_0__"
    table = arrow.table({"task_index": arrow.array(list(tasks.values()), arrow.int64()), index: list(tasks)})
    number = {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"}
    text = {"name": None, "field_name": index, "pandas_type": "unicode", "numpy_type": "object"}
    about = {
        "index_columns": [index],
        "column_indexes": [{**text, "field_name": None, "metadata": {"encoding": "UTF-8"}}],
        "columns": [{**number, "metadata": None}, {**text, "metadata": None}],
        "creator": {"library": "pyarrow", "version": arrow.__version__},
        "pandas_version": "2.0.0",
    }
    return table.replace_schema_metadata({"pandas": json.dumps(about)})


def _link(old: Path, new: Path) -> None:
    """The same file once more where the disk can do that, or a copy. Raises RecordingError where it is not there."""
    if not old.is_file():
        raise RecordingError(f"{old}: the dataset names this video, and it is not there")
    new.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(old, new)
    except OSError:
        shutil.copy2(old, new)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1))


def _write_lines(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
