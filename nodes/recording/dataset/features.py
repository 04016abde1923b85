"""Which columns a dataset has: those of the graph's own topics, and those that a table or an option names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.msgs import Action, SkillCatalogue, Trial
from nodes.policy.onnx.tensors import SKILLS
from nodes.recording.bag.recording import Recording
from nodes.recording.dataset.export_table import DatasetColumn, feature_of, parse_export
from nodes.recording.replay.recorded_launch import launch_source, recorded_tables
from runtime.errors import PolyrhythmError, RecordingError, UserError

STATE, ACTION = "observation.state", "action"


@dataclass(frozen=True, slots=True)
class Columns:
    """What a dataset has beyond state, action and cameras; the same for all of its episodes."""

    task: str = ""  # of frames before any subtask
    skills: tuple[str, ...] = ()  # that are asked for in it; (): nobody asks for actions, and no column tells of them
    chosen: tuple[DatasetColumn, ...] = ()
    has_words: bool = False  # what was heard, said, planned and interrupted
    has_task_from_words: bool = False  # the task is what a person said last, and not the planner's subtask

    @property
    def names(self) -> tuple[str, ...]:
        """Of the chosen ones."""
        return tuple(one.name for one in self.chosen)


def columns_of(
    recordings: Sequence[Recording],
    *,
    task: str | None,
    features: Iterable[str],
    has_words: bool = False,
    has_task_from_words: bool = False,
) -> Columns:
    """Options before the table of the launch file; skills by the recordings. Raises UserError.

    Also where words are wanted of a study whose participants did not agree to that.
    """
    noted_task, noted = _noted(recordings[0])
    chosen = {one.name: one for one in noted}
    for text in features:
        name, _, place = text.partition("=")
        chosen[name] = feature_of(name, place)
    skills = _skills(recordings, has_words=has_words or has_task_from_words)
    asked = noted_task if task is None else task
    return Columns(asked, skills, tuple(chosen.values()), has_words, has_task_from_words)


def _noted(recording: Recording) -> tuple[str, tuple[DatasetColumn, ...]]:
    try:
        tables = recorded_tables(recording, launch_source(recording, []))
    except PolyrhythmError:  # it holds no launch file
        return "", ()
    return parse_export(tables.get("export", {}))


def _skills(recordings: Sequence[Recording], *, has_words: bool) -> tuple[str, ...]:
    """Those of the policies that ship where no others are asked for; else the catalogue's, and what was asked for."""
    known: dict[str, None] = {}
    asked: dict[str, None] = {}
    for recording in recordings:
        is_shared = recording.readers[0].metadata.get("trial", {"shares_words": "true"}).get("shares_words") == "true"
        for message in recording:
            try:
                if has_words and message.topic == "study/trial" and message.schema == "Trial":
                    is_shared = is_shared and message.message(Trial).shares_words
                elif message.topic == "action":
                    asked[message.message(Action).skill] = None
                elif message.topic == "skills":
                    known.update(dict.fromkeys(one.name for one in message.message(SkillCatalogue).skills))
            except RecordingError:
                continue  # told, or refused, where the frames are made
        if has_words and not is_shared:
            raise UserError(
                f"{recording.path}: is of a study, and its participants were not asked whether their words may be "
                "passed on; the protocol says it with shares_words = true in [consent]; without --words the rest is "
                "exported"
            )
    if not asked:
        return ()
    return SKILLS if set(asked) <= set(SKILLS) else tuple(known | asked)


@dataclass
class ChosenValues:
    """The newest values of the chosen features, and those of each frame so far."""

    features: tuple[DatasetColumn, ...]
    rows: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    element_names: dict[str, list[str]] = field(default_factory=dict)
    _newest: dict[str, tuple[float, ...]] = field(default_factory=dict)
    _is_set: set[str] = field(default_factory=set)  # those whose last frame has what was sent in its period

    @property
    def topics(self) -> frozenset[str]:
        """Those that they are read from."""
        return frozenset(one.topic for one in self.features)

    @property
    def lacking(self) -> list[str]:
        """Features of which nothing came yet, with their places."""
        return [f"{one.name} ({one.topic})" for one in self.features if one.name not in self._newest]

    def take(self, topic: str, document: Mapping[str, Any]) -> None:
        """The next message. Raises RecordingError where a field is missing, no number, or of another length."""
        for one in self.features:
            if one.topic != topic:
                continue
            values: list[float] = []
            names: list[str] = []
            for name in one.fields:
                if name not in document:
                    raise RecordingError(f"feature {one.name}: a message on {topic!r} has no field {name!r}")
                found = list(_numbers(document[name], f"feature {one.name}: field {name!r} on {topic!r}"))
                is_list = isinstance(document[name], list)
                names += [f"{name}_{place}" for place in range(len(found))] if is_list else [name]
                values += found
            if self.element_names.setdefault(one.name, names) != names:
                raise RecordingError(f"feature {one.name}: its length on {topic!r} changes; a column has one length")
            self._newest[one.name] = tuple(values)
            rows = self.rows.get(one.name)
            if rows and one.name.startswith(ACTION) and one.name not in self._is_set:
                rows[-1] = tuple(values)  # the first that was sent in the frame's period
                self._is_set.add(one.name)

    def add_frame(self) -> None:
        """Another frame, with what is known now."""
        self._is_set.clear()
        for name, values in self._newest.items():
            self.rows.setdefault(name, []).append(values)


def _numbers(value: object, where: str) -> Iterable[float]:
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one, where)
    elif isinstance(value, int | float):
        yield float(value)
    else:
        raise RecordingError(f"{where} is {str(value)[:40]!r}; expected numbers")
