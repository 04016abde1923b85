"""A policy from an ONNX file whose model fails: at the start, or in mid-run as one on a graphics card does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.faults.black_box import Switchboard, folder
from bench.faults.measures import LIMITS, MS, Figures, beyond_limits, held
from bench.faults.rig import HOLDING, Rig
from bench.faults.trials import Trial
from nodes.models.onnx_runtime import Held
from nodes.policy.onnx.policy import OnnxPolicy
from nodes.policy.onnx.session import PolicySession
from nodes.stretch.limits import STOW

FAILED = "model's failure to held, ms"
STARTS = "exit code"
MOVED = "moved, mm"
STEPS = 16
RAISES, NAN, SHAPE, HANGS = range(1, 5)
WIDTH_PX, HEIGHT_PX = 64, 48
SPEED_MPS = 0.3
"""Of the model's own output, as of the steady policy's."""


def steady_model(*, columns: int = 10, dialect: int = 18) -> bytes:
    """An ONNX file of a policy that wants to drive ahead, whatever it sees."""
    from onnx import TensorProto, helper, numpy_helper

    chunk = np.zeros((1, STEPS, columns), np.float32)
    chunk[..., :8] = STOW[: min(8, columns)]
    chunk[..., 8:9] = SPEED_MPS
    graph = helper.make_graph(
        [helper.make_node("Identity", ["wanted"], ["chunk"])],
        "steady",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, HEIGHT_PX, WIDTH_PX]),
            helper.make_tensor_value_info("joints", TensorProto.FLOAT, [1, 8]),
        ],
        [helper.make_tensor_value_info("chunk", TensorProto.FLOAT, [1, STEPS, columns])],
        [numpy_helper.from_array(chunk, "wanted")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", dialect)], ir_version=9)
    data: bytes = model.SerializeToString()
    return data


def write_good(place: Path) -> None:
    """A model that works."""
    (place / "policy.onnx").write_bytes(steady_model())


def write_cut(place: Path) -> None:
    """A model of which only the first half is there."""
    data = steady_model()
    (place / "policy.onnx").write_bytes(data[: len(data) // 2])


def write_wrong_shape(place: Path) -> None:
    """A model with an output for another robot."""
    (place / "policy.onnx").write_bytes(steady_model(columns=9))


class ModelPolicy(OnnxPolicy):
    """The ONNX policy as it is, with a session that fails as the switchboard says."""

    def on_start(self) -> None:
        super().on_start()
        assert isinstance(self.session, PolicySession)
        model = self.session._model
        model._session = _Failing(model._session, Switchboard(folder() / "switches"))


class _Failing:
    """Between the policy and the library: what a driver, a card or a broken model make of a run."""

    def __init__(self, session: Any, switches: Switchboard) -> None:
        self._session = session
        self._switches = switches

    def io_binding(self) -> _Binding:
        return _Binding(self._session.io_binding(), self._switches["model"])

    def run_with_iobinding(self, binding: _Binding, options: Any) -> None:
        if binding.wrong == RAISES:
            raise RuntimeError("CUDA failure 719: unspecified launch failure")
        if binding.wrong == HANGS:
            time.sleep(2.0)
        self._session.run_with_iobinding(binding.own, options)


class _Binding:
    """What goes in and comes out of one run, which may be wrong."""

    def __init__(self, own: Any, wrong: int) -> None:
        self.own, self.wrong = own, wrong

    def bind_ortvalue_input(self, name: str, value: Any) -> None:
        self.own.bind_ortvalue_input(name, value)

    def bind_output(self, name: str, device: str) -> None:
        self.own.bind_output(name, device)

    def get_outputs(self) -> list[Any]:
        if self.wrong == NAN:
            return [Held.ortvalue_from_numpy(np.full((1, STEPS, 10), np.nan, np.float32))]
        if self.wrong == SHAPE:
            return [Held.ortvalue_from_numpy(np.zeros((STEPS, 7), np.float32))]
        found: list[Any] = self.own.get_outputs()
        return found


def fails(how: int) -> Trial:
    """The model fails in mid-run: the chunk at hand ends, the robot is held; it goes on once the model works again."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        start_ns = time.monotonic_ns()
        rig.switches["model"] = how
        try:
            found = held(rig, start_ns)
            held_ns = next(record[0] for record in rig.guard.since(start_ns) if record[1] == HOLDING)
        finally:
            rig.switches.clear()
        rig.wait_moving()
        return {
            FAILED: (held_ns - start_ns) * MS,
            **found,
            LIMITS: beyond_limits(rig, start_ns),
        }

    return trial


def refused(rig: Rig) -> Figures:
    """A model that cannot be had: the run ends and says so, and nothing has moved."""
    code = rig.process.wait(120.0)
    steps = rig.motors.since(0)
    return {STARTS: float(code), MOVED: 1e3 * max((abs(step[3]) for step in steps), default=0.0)}
