"""`ServerPolicy`: what the seats of policies behind other people's servers have in common.

Such a server runs a model that was trained elsewhere and answers each observation with a chunk. A subclass speaks its
protocol; here are the place, the cameras' names, the deadline and the shape of a chunk. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, Unpack, cast
from urllib.parse import urlsplit

import msgpack
import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JOINTS
from nodes.policy.onnx.inputs import Felt, PolicyAnswer, PolicyModel
from nodes.policy.onnx.policy import OnnxPolicy, PlaybackSettings, deadline_over_age, deadline_problems
from nodes.policy.onnx.tensors import CAMERAS, COLUMNS
from runtime import MissingVariable, PolyrhythmError, needs_real_time

WARM_S = 25.0
"""How long a server may take for its first answer, which is asked for before anything depends on it."""
WARM_PX = 224
LARGEST_BYTES = 1 << 24
MOST_STEPS = 1024
SMALLEST_PX, LARGEST_PX = 8, 1024
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServerSession(PolicyModel, Protocol):
    """A connection to a server that answers as a model does."""

    def close(self) -> None:
        """Hang up."""


class ServerSettings(PlaybackSettings, total=False):
    """What all such seats take besides their server and its names; `ServerPolicy` has the defaults."""

    size_px: int
    key_variable: str
    within_s: float
    camera_3_name: str
    camera_4_name: str


class ServerPolicy(OnnxPolicy):
    """Asks a server, and plays its chunks as any policy's. Subclasses say `schemes`, `port` and `connect`.

    `cameras` is what the server calls each; an empty name is not sent.
    """

    schemes: ClassVar[tuple[str, ...]] = ()
    """Of its address."""
    encrypted: ClassVar[str] = ""
    """The one of these that may cross a network."""
    port: ClassVar[int] = 0
    """Where it usually waits."""

    def __init__(
        self,
        server: str,
        cameras: Mapping[str, str],
        size_px: int = 224,
        key_variable: str = "",
        within_s: float = 0.4,
        camera_3_name: str = "",
        camera_4_name: str = "",
        **playback: Unpack[PlaybackSettings],
    ) -> None:
        super().__init__(model=server, **playback)
        self.cameras = {**cameras, "camera_3": camera_3_name, "camera_4": camera_4_name}
        self.size_px = size_px
        self.key_variable = key_variable
        self.within_s = within_s

    def problems(self) -> list[str]:
        """What is wrong with the server's place, in sentences; it is not called."""
        problems = self.unit_problems()
        like = f"{self.schemes[0]}://127.0.0.1:{self.port}"
        try:
            place = urlsplit(self.model)
            is_place = place.scheme in self.schemes and bool(place.hostname) and place.port != 0
        except ValueError:
            is_place = False
        if not is_place:
            problems.append(f"server is {self.model!r}; expected an address like '{like}'")
        elif place.scheme != self.encrypted and place.hostname not in LOOPBACK:
            safe = f"use {self.encrypted}://, or " if self.encrypted else ""
            tunnel = f"{safe}ssh -L {self.port}:localhost:{place.port or self.port} {place.hostname}"
            problems.append(f"server {self.model} is another machine, and anybody on the way could answer: {tunnel}")
        if self.key_variable and not os.environ.get(self.key_variable):
            problems.append(MissingVariable(f"the environment variable {self.key_variable} is not set"))
        if not self.cameras["image"] and not self.cameras["wrist"]:
            problems.append("image_name and wrist_name are empty; expected a name for at least one image")
        named = [name for name in self.cameras.values() if name]
        if twice := sorted({name for name in named if named.count(name) > 1}):
            problems.append(f"two cameras are called {', '.join(twice)}; expected a name for each")
        if self.size_px and not SMALLEST_PX <= self.size_px <= LARGEST_PX:
            problems.append(
                f"size_px is {self.size_px}; expected {SMALLEST_PX} to {LARGEST_PX}, or 0 for images as they are"
            )
        return problems + deadline_problems(self.within_s, self.budget_s)

    def connect(self, key: str) -> ServerSession:
        """A session with the server; `key` is "" where none is needed."""
        raise NotImplementedError

    def age_problems(self, oldest_s: Mapping[str, float]) -> list[str]:
        """Whether an answer at the deadline could still be played."""
        return deadline_over_age(self.within_s, oldest_s)

    def parameter_notes(self) -> list[str]:
        """Whether it is said how far apart the steps of the model's chunks are: no protocol tells it."""
        text = f"step_s is not stated; {self.step_s:g} s is taken: state the rate that the model was trained at"
        return [] if self.is_step_stated else [text]

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return what is not stated; the model is on another machine, and `polyrhythm policy try` asks it."""
        return [("note", text) for text in self.parameter_notes()]

    def on_start(self) -> None:
        needs_real_time(self, "a server on the network", "use OnnxPolicy")
        import cv2  # noqa: F401  # what is not installed is told now, and not at the first answer

        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        self._warm_up(key)
        self.session = self._server = self.connect(key)
        for port in (self.chunk, self.command):
            port.provenance = f"model:{self.model}"

    def trial_question(self) -> tuple[dict[str, NDArray[np.uint8]], Felt]:
        """Images and feelings of a robot that stands in the dark, all joints at 0: something to ask a server."""
        side_px = self.size_px or WARM_PX
        black = np.zeros((side_px, side_px, 3), np.uint8)
        return dict.fromkeys(CAMERAS, black), Felt((0.0,) * len(JOINTS), text="hold still")

    def _warm_up(self, key: str) -> None:
        """Ask once and use no answer: the first one of a server that loads or compiles its model takes long."""
        within_s, self.within_s = self.within_s, WARM_S
        session = self.connect(key)
        self.within_s = within_s
        begun_ns = self.clock.now_ns()
        try:
            session.run(*self.trial_question())
            self.log.info("%s answers; its first answer took %.1f s", self.model, self.clock.since_s(begun_ns))
        except PolyrhythmError as problem:
            self.log.warning("not warm: %s", problem)
        finally:
            session.close()

    def on_stop(self) -> None:
        self._server.close()


def packed(value: object, form: Callable[[NDArray[Any]], dict[Any, Any]]) -> bytes:
    """A request by msgpack, each array in that form. Raises TypeError for what cannot be sent."""

    def with_array(found: object) -> object:
        if isinstance(found, np.ndarray):
            return form(found)
        raise TypeError(f"a {type(found).__name__} cannot be sent")

    return cast(bytes, msgpack.packb(value, default=with_array))


def unpacked(data: bytes, read: Callable[[dict[Any, Any]], object]) -> object:
    """What msgpack packed, each dictionary as `read` gives it. Raises ValueError for what is none."""
    try:
        return cast(object, msgpack.unpackb(data, object_hook=read))
    except (
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        msgspec.DecodeError,
        msgpack.UnpackException,
    ) as problem:
        raise ValueError(str(problem) or type(problem).__name__) from problem


def numbers(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The same type. Raises ValueError where its values are no plain numbers."""
    if kind.kind not in "fiub":
        raise ValueError(f"arrays of {kind} are not taken")
    return kind


def array_of(found: dict[Any, Any]) -> object:
    """The array or number that a dictionary stands for, as openpi's client or msgpack-numpy packs them; else itself.

    Raises ValueError where it is one of objects, or its bytes do not fit its shape.
    """
    named = {key.decode("ascii", "replace") if isinstance(key, bytes) else key: value for key, value in found.items()}
    if "__ndarray__" in named or named.get("nd") is True:
        kind = numbers(np.dtype(_text(named["dtype"] if "dtype" in named else named["type"])))
        return np.frombuffer(named["data"], kind).reshape(named["shape"])
    if "__npgeneric__" in named:
        return numbers(np.dtype(_text(named["dtype"]))).type(named["data"])
    if named.get("nd") is False:
        return np.frombuffer(named["data"], numbers(np.dtype(_text(named["type"]))), count=1)[0]
    return found


def _text(kind: object) -> str:
    """The name of a type. Raises ValueError for the list of a record's fields."""
    if not isinstance(kind, str | bytes):
        raise ValueError("arrays of records are not taken")
    return kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind


def as_answer(server: str, actions: object) -> PolicyAnswer:
    """A chunk of (steps, 8) or (steps, 10), with a base that stands where it has none. Raises PolyrhythmError."""
    found = np.asarray(actions)
    if found.ndim != 2 or found.shape[1] not in (len(JOINTS), COLUMNS) or not 1 <= len(found) <= MOST_STEPS:
        raise PolyrhythmError(
            f"{server} gave actions of shape {found.shape}; expected (steps, {len(JOINTS)}) or (steps, {COLUMNS})"
        )
    if found.dtype.kind not in "fiu":
        raise PolyrhythmError(f"{server} gave actions of type {found.dtype}; expected numbers")
    rows = np.zeros((len(found), COLUMNS))
    rows[:, : found.shape[1]] = found
    return PolicyAnswer(rows)


def padded(rgb: NDArray[np.uint8], size_px: int) -> NDArray[np.uint8]:
    """(size, size, 3), with black where the image is not square, as openpi's own client resizes; 0: as it is."""
    if not size_px:
        return rgb
    import cv2

    height, width = rgb.shape[:2]
    share = size_px / max(height, width)
    rows, columns = max(int(height * share), 1), max(int(width * share), 1)
    small = cv2.resize(np.ascontiguousarray(rgb), (columns, rows), interpolation=cv2.INTER_AREA)
    square = np.zeros((size_px, size_px, 3), np.uint8)
    top, left = (size_px - rows) // 2, (size_px - columns) // 2
    square[top : top + rows, left : left + columns] = small
    return square


def lacking(names: Mapping[str, str], images: Mapping[str, object]) -> list[str]:
    """The cameras that have a name and no image."""
    return [camera for camera in CAMERAS if names.get(camera) and camera not in images]
