"""[export] of a launch file: what a dataset made of its recordings has, where that is not what a robot's graph has.

A feature is TOPIC:FIELD or TOPIC:FIELD,FIELD; its values are numbers, truth values or lists of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from runtime.errors import UserError, choices
from runtime.launch.graph import Graph
from runtime.message import Message
from runtime.serialization.toml_errors import Table, convert, guess

_PLACE = re.compile(r"(?P<topic>[a-z0-9_/]+):(?P<fields>[A-Za-z0-9_]+(,[A-Za-z0-9_]+)*)")
_EXPECTED = 'names with a place each: "observation.force" = "gripper:force_n"'
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")


class ExportTable(Table, frozen=True):
    """One [export], as written."""

    task: Annotated[str, msgspec.Meta(description="the task of frames before any subtask, as text")] = ""
    features: Annotated[dict[str, str], msgspec.Meta(description=_EXPECTED)] = msgspec.field(default_factory=dict)


class DatasetColumn(msgspec.Struct, frozen=True):
    """A column of a dataset: fields of the newest message on a topic."""

    name: str
    topic: str
    fields: tuple[str, ...]


def feature_of(name: str, place: str) -> DatasetColumn:
    """A feature as written. Raises UserError where that is none."""
    found = _PLACE.fullmatch(place)
    if found is None or not _NAME.fullmatch(name):
        raise UserError(
            f"feature {name}={place}: expected NAME=TOPIC:FIELD or TOPIC:FIELD,FIELD, "
            "like observation.force=gripper/force:force_n"
        )
    return DatasetColumn(name, found["topic"], tuple(found["fields"].split(",")))


def parse_export(
    table: object, types: Mapping[str, type[Message]] | None = None
) -> tuple[str, tuple[DatasetColumn, ...]]:
    """Task and features. Raises UserError, also where the types of a graph have not such a topic or field."""
    written = convert(table, ExportTable, table="export")
    features = tuple(feature_of(name, place) for name, place in written.features.items())
    for feature in features if types is not None else ():
        _check(feature, types or {})
    return written.task, features


def read(table: object, graph: Graph) -> None:
    """Look at the `[export]` of this graph. Raises UserError where it is wrong."""
    parse_export(table, graph.types)


def _check(feature: DatasetColumn, types: Mapping[str, Any]) -> None:
    where = f"[export.features] {feature.name!r}"
    if feature.topic not in types:
        raise UserError(f"{where}: there is no topic {feature.topic!r}; {guess(feature.topic, types)}")
    known = types[feature.topic].__struct_fields__
    if unknown := set(feature.fields) - set(known):
        raise UserError(f"{where}: {types[feature.topic].__name__} has no field {choices(unknown)}; {choices(known)}")
