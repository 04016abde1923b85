"""That a VLM is made of parts: no VLM changes what another, or the node that joins the parts, does with a message."""

from __future__ import annotations

import inspect

import pytest

from nodes.vlm.detector.vlm import DetectorVLM
from nodes.vlm.local import LocalVLM
from nodes.vlm.node import VLM
from nodes.vlm.onnx.vlm import OnnxVLM
from nodes.vlm.openai_api import OpenAIVLM
from nodes.vlm.pointing_vlm import PointingVLM
from nodes.vlm.room.vlm import KitchenVLM, SimulatorEyesVLM

OF_A_RUN = {"__init__", "on_start", "on_stop", "preload", "problems", "libraries", "model_findings", "spending"}
"""What a node says of itself, and does before and after its messages."""


@pytest.mark.parametrize(
    "vlm",
    [KitchenVLM, SimulatorEyesVLM, DetectorVLM, LocalVLM, PointingVLM, OnnxVLM, OpenAIVLM],
    ids=lambda one: one.__name__,
)
def test_no_vlm_overrides_what_the_node_or_another_one_does(vlm: type[VLM]) -> None:
    own = {name for name, value in vars(vlm).items() if inspect.isfunction(value)} - OF_A_RUN
    before = {name for base in vlm.__mro__[1:] if issubclass(base, VLM) for name in vars(base)}
    assert own.isdisjoint(before)


def test_the_node_that_joins_the_parts_stays_small() -> None:
    assert len(inspect.getsource(inspect.getmodule(VLM) or VLM).splitlines()) <= 200
