"""`DatasetFolder`: a LeRobot dataset on disk, of v2.0, v2.1 or v3.0, ours or anybody's; read, never written."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from nodes.policy.onnx.training import element_names
from nodes.recording.dataset.statistics import ColumnStats
from runtime.errors import RecordingError, choices

VERSIONS = ("v3.0", "v2.1", "v2.0")
CHUNK = 1000
"""Files of a folder."""


class DatasetInfo(msgspec.Struct):
    """What `meta/info.json` says, as far as it is needed."""

    codebase_version: str
    fps: float
    features: dict[str, dict[str, Any]]
    total_episodes: int
    total_frames: int
    data_path: str
    video_path: str | None = None
    robot_type: str | None = None
    chunks_size: int = CHUNK
    tools: list[dict[str, Any]] | None = None


@dataclass
class VideoPlace:
    """Where an episode's video is: a file, and from which of its seconds on."""

    path: Path
    from_s: float = 0.0
    number: int = 0  # of the file, over all chunks


@dataclass
class StoredEpisode:
    """One episode, as the dataset tells of it."""

    index: int
    length: int
    tasks: list[str]
    data: Path
    videos: dict[str, VideoPlace] = field(default_factory=dict)
    stats: dict[str, ColumnStats] = field(default_factory=dict)


class DatasetFolder:
    """Raises RecordingError, with the file and what is wrong with it, where the folder is no dataset that is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        about = path / "meta" / "info.json"
        try:
            self.info = msgspec.convert(_json(about), DatasetInfo)
        except msgspec.ValidationError as problem:
            raise RecordingError(f"{about}: {problem}") from problem
        if self.info.codebase_version not in VERSIONS:
            known = choices(VERSIONS)
            raise RecordingError(f"{about}: is of version {self.info.codebase_version!r}; known: {known}")
        if not 0 < self.info.fps <= 1000:
            raise RecordingError(f"{about}: fps is {self.info.fps:g}; expected frames a second, from above 0 to 1000")
        self._open: tuple[Path, Any] | None = None
        try:
            self.tasks, self.episodes = self._read_new() if self.is_new else self._read_old()
        except (KeyError, ValueError, TypeError, IndexError, msgspec.MsgspecError) as problem:
            raise RecordingError(f"{path}: its meta folder cannot be read ({problem!r})") from problem

    @property
    def is_new(self) -> bool:
        """Whether several episodes may share a file, as from v3.0 on."""
        return self.info.codebase_version == "v3.0"

    @property
    def cameras(self) -> list[str]:
        """The features that are pictures."""
        return [name for name, one in self.info.features.items() if one.get("dtype") in ("video", "image")]

    @property
    def why_not_whole(self) -> str:
        """Why more was meant to be in it than its meta folder tells of; "" where it is all there."""
        info, frames = self.info, sum(one.length for one in self.episodes)
        if (info.total_episodes, info.total_frames) == (len(self.episodes), frames):
            return ""
        return (
            f"info.json counts {info.total_episodes} episodes and {info.total_frames} frames, and meta has "
            f"{len(self.episodes)} and {frames}: it was not written to its end, or an export failed"
        )

    def check_whole(self) -> None:
        """Raise RecordingError where it is not: written anew, it would lose what is not told of."""
        if why := self.why_not_whole:
            raise RecordingError(f"{self.path}: {why}. Nothing of it was changed")

    def names(self, feature: str) -> list[str]:
        """What the elements of a feature are called; by number where it does not say."""
        one = self.info.features[feature]
        return element_names(one.get("names"), tuple(map(int, one.get("shape") or (1,))))

    @property
    def stats(self) -> dict[str, ColumnStats]:
        """What `meta/stats.json` says; empty where there is none."""
        place = self.path / "meta" / "stats.json"
        return _json(place) if place.is_file() else {}

    def table(self, episode: StoredEpisode) -> Any:
        """The rows of an episode as an Arrow table. Raises RecordingError."""
        if self._open is None or self._open[0] != episode.data:
            self._open = episode.data, _table(episode.data)
        table = self._open[1]
        if "episode_index" not in table.column_names:
            raise RecordingError(f"{episode.data}: has no column episode_index")
        of = np.asarray(table.column("episode_index").to_pylist())
        (rows,) = np.nonzero(of == episode.index)
        if len(rows) != episode.length or not len(rows):
            raise RecordingError(
                f"{episode.data}: holds {len(rows)} frames of episode {episode.index}, and meta says {episode.length}: "
                "it was not written to its end, or an export failed"
            )
        return table.take(arrow.array(rows))

    def numbers(self, table: Any, name: str) -> NDArray[np.float64]:
        """A column as (frames, elements). Raises RecordingError where it holds no numbers, or too many or few."""
        kind = table.schema.field(name).type
        while hasattr(kind, "value_type"):  # of a list
            kind = kind.value_type
        values = table.column(name).to_pylist()
        try:
            if not (arrow.types.is_floating(kind) or arrow.types.is_integer(kind) or arrow.types.is_boolean(kind)):
                raise TypeError(kind)
            found = np.asarray(values, np.float64)
        except (ValueError, TypeError) as problem:
            raise RecordingError(f"{self.path}: column {name!r} holds something else than numbers") from problem
        rows = found.reshape(len(values), -1)
        shape = self.info.features.get(name, {}).get("shape")
        if shape and rows.shape[1] != math.prod(shape):
            raise RecordingError(
                f"{self.path}: column {name!r} has {rows.shape[1]} numbers a frame, and meta/info.json says {shape}"
            )
        return rows

    def frames(self, episode: StoredEpisode, camera: str, form: str = "gray") -> Iterator[NDArray[np.uint8]]:
        """The pictures of an episode in order, as PyAV's `form` has them. Raises RecordingError."""
        import av

        if camera not in episode.videos:  # pictures within the table
            for cell in self.table(episode).column(camera).to_pylist():
                data = (cell or {}).get("bytes") or self._file_of(cell)
                with av.open(io.BytesIO(data), "r") as file:
                    yield np.asarray(next(file.decode(video=0)).to_ndarray(format=form), np.uint8)
            return
        place = episode.videos[camera]
        half_s = 0.5 / self.info.fps
        number = 0
        try:
            with av.open(str(place.path), "r") as file:
                stream = file.streams.video[0]
                stream.thread_type = "AUTO"
                if place.from_s:
                    unit_s = float(stream.time_base or 1)
                    file.seek(int(max(0.0, place.from_s - half_s) / unit_s), stream=stream)
                for frame in file.decode(stream):
                    if frame.time is not None and frame.time < place.from_s - half_s:
                        continue
                    if number >= episode.length:
                        return
                    number += 1
                    yield np.asarray(frame.to_ndarray(format=form), np.uint8)
        except (av.FFmpegError, IndexError) as problem:
            raise RecordingError(f"{place.path}: cannot be read as a video ({problem})") from problem

    def _file_of(self, cell: Mapping[str, Any] | None) -> bytes:
        place = self.path / str((cell or {}).get("path"))
        try:
            return place.read_bytes()
        except OSError as problem:
            raise RecordingError(f"{place}: a picture that is not there") from problem

    def _place(self, template: str, number: int, camera: str = "") -> Path:
        chunk, rest = divmod(number, self.info.chunks_size)
        names = {"chunk_index": chunk, "file_index": rest, "episode_chunk": chunk, "episode_index": number}
        return self.path / template.format(**names, video_key=camera)

    def _number(self, row: Mapping[str, Any], of: str) -> int:
        return int(row[f"{of}/chunk_index"]) * self.info.chunks_size + int(row[f"{of}/file_index"])

    @property
    def _videos(self) -> list[str]:
        return [name for name, one in self.info.features.items() if one.get("dtype") == "video"]

    def _read_new(self) -> tuple[dict[int, str], list[StoredEpisode]]:
        texts = _table(self.path / "meta" / "tasks.parquet").to_pydict()
        named: list[str] = next((texts[name] for name in ("__index_level_0__", "task") if name in texts), [])
        tasks = dict(zip(texts["task_index"], named, strict=True))
        episodes = []
        for place in sorted((self.path / "meta" / "episodes").glob("*/*.parquet")):
            for row in _table(place).to_pylist():
                stored = StoredEpisode(
                    int(row["episode_index"]),
                    int(row["length"]),
                    list(row["tasks"]),
                    self._place(self.info.data_path, self._number(row, "data")),
                )
                for camera in self._videos:
                    number = self._number(row, f"videos/{camera}")
                    path = self._place(self.info.video_path or "", number, camera)
                    stored.videos[camera] = VideoPlace(path, float(row[f"videos/{camera}/from_timestamp"]), number)
                for name, value in row.items():
                    if name.startswith("stats/"):
                        feature, kind = name.removeprefix("stats/").rsplit("/", 1)
                        stored.stats.setdefault(feature, {})[kind] = value
                episodes.append(stored)
        return tasks, sorted(episodes, key=lambda one: one.index)

    def _read_old(self) -> tuple[dict[int, str], list[StoredEpisode]]:
        meta = self.path / "meta"
        tasks = {int(row["task_index"]): str(row["task"]) for row in _lines(meta / "tasks.jsonl")}
        stats = {}
        if (meta / "episodes_stats.jsonl").is_file():
            stats = {int(row["episode_index"]): row["stats"] for row in _lines(meta / "episodes_stats.jsonl")}
        episodes = []
        for row in _lines(meta / "episodes.jsonl"):
            index = int(row["episode_index"])
            videos = {
                camera: VideoPlace(self._place(self.info.video_path or "", index, camera), 0.0, index)
                for camera in self._videos
            }
            data = self._place(self.info.data_path, index)
            told = stats.get(index, {})
            episodes.append(StoredEpisode(index, int(row["length"]), list(row["tasks"]), data, videos, told))
        return tasks, episodes


def _json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be read ({problem.strerror}); expected a LeRobot dataset") from problem
    except msgspec.DecodeError as problem:
        raise RecordingError(f"{path}: is no JSON ({problem})") from problem


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be read ({problem.strerror})") from problem


def _table(path: Path) -> Any:
    try:
        return parquet.read_table(path)
    except (OSError, arrow.ArrowException) as problem:
        why = "is not there" if not path.exists() else f"cannot be read ({str(problem)[:120]})"
        raise RecordingError(f"{path}: {why}") from problem
