"""`PolicyTraining`: what a policy's dataset tells of its numbers: joints by column, frames a second, units by hand.

LeRobot saves a train_config.json beside a policy, which names the dataset; its meta/info.json has names and rate.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JOINTS
from runtime.errors import UserError

BASE_OF_STATE = ("base_x", "base_y", "base_heading")
BASE_OF_ACTION = ("base_v", "base_w")
"""What a dataset of ours calls the numbers behind the joints."""


@dataclass(frozen=True, slots=True)
class PolicyTraining:
    """`state` and `action` name the columns; empty where nobody says, and then the columns are ours."""

    state: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    hz: float = 0.0  # 0: nobody says
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def metadata(self) -> dict[str, str]:
        """As `tensors.trained_of` reads it of the file."""
        said = {"joints": ",".join(JOINTS)}
        if self.hz:
            said["step_s"] = f"{1 / self.hz:.9g}"
        if self.units:
            said["units"] = ",".join(f"{joint}={unit}" for joint, unit in self.units.items())
        return said

    def of_state(self, width: int) -> NDArray[np.int64]:
        """In which of so many columns of the state each of ours is: joints, then the base's pose."""
        return _places(self.state, BASE_OF_STATE, width)

    def of_action(self, width: int) -> NDArray[np.int64]:
        """The same of the action: joints, then the base's velocities."""
        return _places(self.action, BASE_OF_ACTION, width)

    def problem(self, width: int) -> str:
        """Why its columns cannot be ours, in a sentence; "" where they can, or have no names."""
        for what, told, base in (("action", self.action, BASE_OF_ACTION), ("state", self.state, BASE_OF_STATE)):
            names = [name for name in told if not name.isdecimal()]
            if twice := doubled(names):
                return f"its dataset names {', '.join(twice)} twice in the {what}: say --joints with our names in order"
            if names and not set(JOINTS) <= set(names):
                return (
                    f"its dataset names the {what} {', '.join(names)}; expected {', '.join(JOINTS)}: where these are "
                    "the same joints, say --joints with our names in that order"
                )
            rest = [name for name in names if name not in (*JOINTS, *base)]
            if rest and (what == "state" or len(names) == width):
                return f"its dataset has the {what} {', '.join(rest)}, too; expected none but {', '.join(base)}"
        return ""


def _places(told: tuple[str, ...], base: tuple[str, ...], width: int) -> NDArray[np.int64]:
    ours = (*JOINTS, *base)[:width]
    if sorted(told) == sorted(ours):
        return np.array([told.index(name) for name in ours], np.int64)
    order = told[: len(JOINTS)]
    joints = [order.index(name) for name in JOINTS] if sorted(order) == sorted(JOINTS) else range(len(JOINTS))
    return np.array([*joints, *range(len(JOINTS), width)], np.int64)


class _Feature(msgspec.Struct):
    names: Any = None
    shape: tuple[int, ...] = ()


class _Info(msgspec.Struct):
    fps: float
    features: dict[str, _Feature] = {}


class _Dataset(msgspec.Struct):
    repo_id: str | None = None
    root: str | None = None


class _TrainConfig(msgspec.Struct):
    dataset: _Dataset | None = None


def training_of(
    folder: Path, dataset: Path | None, joints: tuple[str, ...], hz: float | None, units: Mapping[str, str]
) -> PolicyTraining:
    """What is said, and what the dataset says of the rest. Raises UserError for a dataset that cannot be read."""
    found = dataset or _dataset_of(folder)
    notes = []
    info = None
    if found is None:
        notes.append("its dataset is not on this machine: say --dataset, or --hz and --joints by hand")
    elif (found / "meta" / "info.json").is_file():
        info = _read(found / "meta" / "info.json", _Info)
    elif dataset is not None:
        raise UserError(f"--dataset {found}: has no meta/info.json; expected a dataset of LeRobot's")
    state, action = (
        element_names(info.features[name].names, info.features[name].shape) if info and name in info.features else []
        for name in ("observation.state", "action")
    )
    rate_hz = hz or (info.fps if info else 0.0)
    if info and hz and abs(hz - info.fps) > 1e-6:
        notes.append(f"its dataset has {info.fps:g} frames a second, and --hz {hz:g} is taken")
    if not rate_hz:
        notes.append("its frames per second are not known: say --hz, or step_s in the launch file")
    if not joints and all(name.isdecimal() for name in action):
        notes.append("the order of its joints is not known, and taken to be ours: compare it with its dataset")
    if not units:
        notes.append("its units are taken to be rad and m: where it counts in degrees or percent, say --unit")
    named = [tuple(name.removesuffix(".pos") for name in told) for told in (state, action)]
    return PolicyTraining(joints or named[0], joints or named[1], rate_hz, units, tuple(notes))


def element_names(told: object, shape: tuple[int, ...]) -> list[str]:
    """What the elements of a dataset's feature are called; by number where it does not say of each."""
    while isinstance(told, dict) and told:  # {"motors": [...]}, as LeRobot's older recordings have it
        told = next(iter(told.values())) if isinstance(next(iter(told.values())), list) else list(told)
    width = math.prod(shape or (1,))
    if isinstance(told, list) and (not shape or len(told) == width):  # some name all of it with one word: ["state"]
        return [str(name) for name in told]
    return [str(one) for one in range(width)]


def doubled(names: Iterable[str]) -> list[str]:
    """Those that are there twice or more."""
    return [name for name, count in Counter(names).items() if count > 1]


def _dataset_of(folder: Path) -> Path | None:
    """Where the dataset is that train_config.json names; None where it is not here."""
    file = folder / "train_config.json"
    if not file.is_file():
        return None
    told = _read(file, _TrainConfig).dataset or _Dataset()
    home = Path(os.environ.get("HF_LEROBOT_HOME", "~/.cache/huggingface/lerobot")).expanduser()
    places = [Path(told.root)] if told.root else []
    places += [home / told.repo_id] if told.repo_id else []
    return next((place for place in places if (place / "meta" / "info.json").is_file()), None)


def _read(file: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError) as problem:
        raise UserError(f"{file}: {problem}") from problem
