"""What is wrong with a LeRobot dataset, anybody's: what would train a policy on something that never happened."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.training import doubled
from nodes.recording.dataset.folder import DatasetFolder, StoredEpisode
from nodes.recording.dataset.statistics import column_stats, joined
from runtime.errors import RecordingError

FindingKind = Literal[
    "unreadable", "incomplete", "no video", "repeated frames", "still scene", "rare pictures", "dropped frames",
    "not finite", "jump", "clamped", "constant", "statistics", "no task", "no episode", "video rate", "names", "units",
]  # fmt: skip
LONGEST_AGE_S = 1.0
"""A picture that is older shows no longer what the robot sees then, unless the camera is that slow all the time."""
_USUAL_PERIODS = 3.0
_SAME = 0.05
"""Mean difference of two pictures, of 255, up to which they are one: an encoder's, and no sensor's noise."""
_STILL_SHARE = 0.02
"""A state that moves by less of its range than this while a picture stands says that the scene is still."""
_STAMP_SHARE = 0.1
"""A frame that is so much of a period from its place is not in it."""
_JUMP_TIMES, _JUMP_SHARE = 10.0, 0.2
"""A step of an action that is so many times that of 90 in 100, and so much of its range, is a jump."""
_CLAMP_SHARE = 0.2
"""So many frames at the very end of an action's range look clamped."""
_STATS_OFF = 0.05
"""Statistics that differ by more of a column's spread do not fit it."""
_FOLLOWS, _OTHER_SCALE, _TURN = 0.95, 5.0, 180 / math.pi
"""An action that goes with its joint's state like that, and is so many times as large, or as small, is in another unit;
degrees beside radians where the factor is about this one."""
STATE, ACTION = "observation.state", "action"
_OWN = ("timestamp", "frame_index", "episode_index", "index", "task_index")


@dataclass(frozen=True)
class DatasetFinding:
    """One thing that was found. A problem makes the dataset unfit; a note is to be known."""

    kind: FindingKind
    told: str
    is_problem: bool = False
    episode: int | None = None
    column: str = ""
    frames: int = 0
    at_s: float | None = None


def examine(path: Path) -> list[DatasetFinding]:
    """Everything that is found, problems first."""
    try:
        folder = DatasetFolder(path)
    except RecordingError as problem:
        return [DatasetFinding("unreadable", str(problem), is_problem=True)]
    return sorted(_Doctor(folder).findings(), key=lambda one: not one.is_problem)


class _Doctor:
    def __init__(self, folder: DatasetFolder) -> None:
        self._folder = folder
        self._columns: dict[str, list[NDArray[np.float64]]] = {}

    def findings(self) -> Iterator[DatasetFinding]:
        episodes = self._folder.episodes
        if why := self._folder.why_not_whole:
            yield DatasetFinding("incomplete", why, is_problem=True)
        if not episodes:
            yield DatasetFinding("no episode", "it holds no episode", is_problem=True)
            return
        stored = {one.data for one in episodes}
        for place in sorted({*self._folder.path.glob("data/*/*.parquet")} - stored):
            told = f"{place}: belongs to no episode, and LeRobot's loader reads it all the same: a failed export's"
            yield DatasetFinding("incomplete", told, is_problem=True)
        if not any(task.strip() for task in self._folder.tasks.values()):
            yield DatasetFinding("no task", "no frame has a task; --task TEXT gives one at export")
        yield from self._names()
        for episode in episodes:
            try:
                yield from self._of_episode(episode)
            except RecordingError as problem:
                yield DatasetFinding("unreadable", str(problem), is_problem=True, episode=episode.index)
        yield from self._of_all()

    def _of_episode(self, episode: StoredEpisode) -> Iterator[DatasetFinding]:
        table = self._folder.table(episode)
        numbers: dict[str, NDArray[np.float64]] = {}
        for name, feature in self._folder.info.features.items():
            if feature.get("dtype") in ("video", "image", "language", "string"):
                continue
            if name not in table.column_names:
                raise RecordingError(f"{episode.data}: has no column {name!r}, which info.json names")
            numbers[name] = self._folder.numbers(table, name)
            self._columns.setdefault(name, []).append(numbers[name])
            if not np.isfinite(numbers[name]).all():
                bad = int((~np.isfinite(numbers[name]).all(axis=1)).sum())
                told = f"episode {episode.index}: {name} is no finite number in {bad} frames"
                yield DatasetFinding("not finite", told, True, episode.index, name, bad)
        yield from self._stamps(episode, numbers)
        for name in (one for one in numbers if one.startswith("action")):
            yield from self._jumps(episode, name, numbers[name])
        for camera in self._folder.cameras:
            yield from self._pictures(episode, camera, numbers)

    def _stamps(self, episode: StoredEpisode, numbers: dict[str, NDArray[np.float64]]) -> Iterator[DatasetFinding]:
        if "timestamp" not in numbers:
            raise RecordingError(f"{episode.data}: has no column 'timestamp'")
        stamps_s = numbers["timestamp"][:, 0]
        steps = np.diff(stamps_s) * self._folder.info.fps
        (wrong,) = np.nonzero(np.abs(steps - 1.0) > _STAMP_SHARE)
        if len(wrong):
            at_s, gap_s = float(stamps_s[wrong[0]]), float(steps.max() / self._folder.info.fps)
            told = (
                f"episode {episode.index}: {len(wrong)} frames are not {1 / self._folder.info.fps:.3f} s after the one "
                f"before, the first behind {at_s:.3f} s; the longest gap is {gap_s:.3f} s"
            )
            yield DatasetFinding("dropped frames", told, True, episode.index, "timestamp", len(wrong), at_s)

    def _jumps(self, episode: StoredEpisode, name: str, values: NDArray[np.float64]) -> Iterator[DatasetFinding]:
        if len(values) < 3:
            return
        steps, spread = np.abs(np.diff(values, axis=0)), np.ptp(values, axis=0)
        usual = np.percentile(steps, 90, axis=0)
        is_jump = (steps > _JUMP_TIMES * usual) & (steps > _JUMP_SHARE * spread) & (spread > 0)
        names = self._folder.names(name)
        for column in np.nonzero(is_jump.any(axis=0))[0]:
            frame = int(np.argmax(steps[:, column]))
            at_s = frame / self._folder.info.fps
            told = (
                f"episode {episode.index}: {name} {names[column]} jumps by {steps[frame, column]:.3g} behind "
                f"{at_s:.2f} s, {_JUMP_TIMES:g} times its usual step and more"
            )
            yield DatasetFinding("jump", told, False, episode.index, name, int(is_jump[:, column].sum()), at_s)

    def _pictures(
        self, episode: StoredEpisode, camera: str, numbers: dict[str, NDArray[np.float64]]
    ) -> Iterator[DatasetFinding]:
        """Rates, and pictures that repeat; and whether a new capture is behind them, where the dataset tells."""
        place = episode.videos.get(camera)
        if place is not None and not place.path.is_file():
            told = f"episode {episode.index}: {place.path} is not there"
            yield DatasetFinding("no video", told, True, episode.index, camera)
            return
        is_same: list[bool] = []
        before: NDArray[np.int16] | None = None
        for picture in self._folder.frames(episode, camera):
            now = picture.astype(np.int16)
            is_same.append(before is not None and bool(np.abs(now - before).mean() <= _SAME))
            before = now
        if len(is_same) < episode.length:
            told = f"episode {episode.index}: {camera} has {len(is_same)} of {episode.length} frames"
            yield DatasetFinding("incomplete", told, True, episode.index, camera, episode.length - len(is_same))
            return
        ages = numbers.get(camera.replace("observation.images.", "image_age."))
        if ages is not None:
            yield from self._ages(episode, camera, ages[:, 0])
        fps = self._folder.info.fps
        for first, last in _runs(is_same):
            if (last - first) / fps <= LONGEST_AGE_S:
                continue
            is_old = ages is not None and ages[first : last + 1, 0].max() > LONGEST_AGE_S
            if is_old:
                continue  # told by its age
            moved = self._moved(numbers, first, last)
            is_fault = moved and ages is None
            told = (
                f"episode {episode.index}: {camera} shows one picture from {first / fps:.2f} s to {last / fps:.2f} s, "
                f"{last - first + 1} frames, while {moved} moves"
                + (", though it captured others" if ages is not None else "")
                if moved
                else f"episode {episode.index}: {camera} shows one picture from {first / fps:.2f} s to "
                f"{last / fps:.2f} s, and nothing moves: a still scene"
            )
            kind: FindingKind = "repeated frames" if is_fault else "still scene"
            yield DatasetFinding(kind, told, bool(is_fault), episode.index, camera, last - first + 1, first / fps)

    def _ages(self, episode: StoredEpisode, camera: str, ages_s: NDArray[np.float64]) -> Iterator[DatasetFinding]:
        fps = self._folder.info.fps
        (captures,) = np.nonzero(np.diff(ages_s, prepend=np.inf) < 0.5 / fps)
        usual_s = float(np.median(np.diff(captures))) / fps if len(captures) > 1 else 1 / fps
        longest_s = max(LONGEST_AGE_S, _USUAL_PERIODS * usual_s)
        is_old = [bool(age > longest_s) for age in ages_s]
        for before, last in _runs(is_old):
            first = before + (not is_old[before])  # a run is told with the frame before it
            told = (
                f"episode {episode.index}: {camera} gave no picture for {ages_s[last]:.1f} s, until "
                f"{'the end' if last == len(ages_s) - 1 else f'{last / fps:.2f} s'}: {last - first + 1} frames repeat "
                f"one that is older than {longest_s:.1f} s"
            )
            yield DatasetFinding("repeated frames", told, True, episode.index, camera, last - first + 1, first / fps)
        if usual_s > 1.5 / fps:
            told = (
                f"episode {episode.index}: {camera} gave {1 / usual_s:.1f} pictures a second, and the dataset has "
                f"{fps:g} frames: {len(ages_s) - len(captures)} of {len(ages_s)} repeat the one before"
            )
            yield DatasetFinding("rare pictures", told, False, episode.index, camera, len(ages_s) - len(captures))

    def _moved(self, numbers: dict[str, NDArray[np.float64]], first: int, last: int) -> str:
        """Which element of the state has moved meanwhile; "" none, or there is no state."""
        values = numbers.get(STATE)
        if values is None:
            return ""
        spread = np.ptp(values, axis=0)
        share = np.ptp(values[first : last + 1], axis=0) / np.where(spread > 1e-6, spread, np.inf)
        most = int(np.argmax(share))
        return self._folder.names(STATE)[most] if share[most] > _STILL_SHARE else ""

    def _of_all(self) -> Iterator[DatasetFinding]:
        for name, parts in self._columns.items():
            if name in _OWN or not name.startswith(("observation.", "action")):
                continue
            try:
                values = np.concatenate(parts)
            except ValueError:
                told = f"{name} has rows of several lengths"
                yield DatasetFinding("unreadable", told, True, None, name)
                continue
            names, spread = self._folder.names(name), np.ptp(values, axis=0)
            still = [names[column] for column in np.nonzero(spread == 0.0)[0]]
            if still:
                told = (
                    f"{name}: {', '.join(still)} never changes; its standard deviation is 0, and a normalisation that "
                    "divides by it gives NaN"
                )
                yield DatasetFinding("constant", told, column=name)
            yield from self._clamps(name, values, names) if name.startswith("action") else ()
        yield from self._units()
        yield from self._statistics()

    def _called(self, feature: str) -> list[str]:
        """Its elements' names; none where they have only numbers, or the dataset has it not."""
        names = self._folder.names(feature) if feature in self._folder.info.features else []
        return [] if all(name.isdecimal() for name in names) else [name.removesuffix(".pos") for name in names]

    def _names(self) -> Iterator[DatasetFinding]:
        """Whether state and action tell which joint each element is, and the same."""
        state, action = self._called(STATE), self._called(ACTION)
        for feature, names in ((STATE, state), (ACTION, action)):
            if twice := doubled(names):
                yield DatasetFinding("names", f"{feature}: {', '.join(twice)} is named twice", True, None, feature)
            elif not names and feature in self._folder.info.features:
                told = f"{feature}: its elements have no names; which joint each is, nobody can tell by the dataset"
                yield DatasetFinding("names", told, column=feature)
        if not (state and action):
            return
        shared = [name for name in state if name in action], [name for name in action if name in state]
        if shared[0] != shared[1]:
            told = (
                f"{STATE} is of {', '.join(state)}, and {ACTION} of {', '.join(action)}: the same names in another "
                "order; whoever takes one from the other moves other joints"
            )
            yield DatasetFinding("names", told, True, None, ACTION)
        lacking = [
            f"{of} has no {', '.join(rest)}"
            for of, rest in (
                (ACTION, [name for name in state if name not in action]),
                (STATE, [name for name in action if name not in state]),
            )
            if rest
        ]
        if lacking:
            yield DatasetFinding("names", "; ".join(lacking), column=ACTION)

    def _units(self) -> Iterator[DatasetFinding]:
        """Joints whose action goes with their state, at another scale."""
        state, action = self._called(STATE), self._called(ACTION)
        try:
            felt, asked = (np.concatenate(self._columns[name]) for name in (STATE, ACTION))
        except (KeyError, ValueError):
            return
        for column, name in enumerate(action):
            if name not in state or len(felt) != len(asked):
                continue
            one, other = felt[:, state.index(name)], asked[:, column]
            spread, of_action = float(np.std(one)), float(np.std(other))
            if not (spread > 0 and of_action > 0 and np.corrcoef(one, other)[0, 1] > _FOLLOWS):
                continue
            times = of_action / spread
            if 1 / _OTHER_SCALE <= times <= _OTHER_SCALE:
                continue
            is_turn = any(0.8 < factor / _TURN < 1.25 for factor in (times, 1 / times))
            told = f"{name}: the action goes with the state, and is {times:.3g} times as large: " + (
                "degrees and radians" if is_turn else "another unit?"
            )
            yield DatasetFinding("units", told, is_turn, column=name)

    def _clamps(self, name: str, values: NDArray[np.float64], names: Sequence[str]) -> Iterator[DatasetFinding]:
        for column, element in enumerate(names):
            one = values[:, column]
            is_varied = np.ptp(one) > 0 and len(np.unique(one)) > 8
            for end, which in ((one.max(), "highest"), (one.min(), "lowest")):
                share = float((one == end).mean())
                if is_varied and share > _CLAMP_SHARE and _is_an_end(one, end):
                    told = (
                        f"{name}: {element} is at its {which} value, {end:.4g}, in {share:.0%} of all frames: a clamp?"
                    )
                    yield DatasetFinding("clamped", told, column=name, frames=int(share * len(one)))

    def _statistics(self) -> Iterator[DatasetFinding]:
        told_stats = self._folder.stats
        for name, parts in self._columns.items():
            told = told_stats.get(name)
            if told is None:
                continue
            found = joined([{name: column_stats(part)} for part in parts])[name]
            spread = np.maximum(np.asarray(found["max"]) - np.asarray(found["min"]), 1e-6)
            for kind in ("min", "max", "mean", "std"):
                one: Any = np.ravel(np.asarray(told.get(kind, found[kind]), float))
                if one.shape != spread.shape or (np.abs(one - np.asarray(found[kind])) > _STATS_OFF * spread).any():
                    told_text = f"stats.json: {kind} of {name} is not that of its {sum(map(len, parts))} frames"
                    yield DatasetFinding("statistics", told_text, True, None, name)
                    break


def _is_an_end(values: NDArray[np.float64], end: float) -> bool:
    """Whether it comes there from elsewhere again and again, so that it is no posture that was kept once."""
    return sum(bool(now == end and before != end) for before, now in pairwise(values.tolist())) > 1


def _runs(is_same: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last frame of each row of frames that are as the one before; the first is the one they repeat."""
    first = 0
    for number, same in enumerate([*is_same, False]):
        if not same:
            if number - 1 > first:
                yield first, number - 1
            first = number
