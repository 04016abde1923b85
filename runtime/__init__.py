"""Polyrhythm: an event-driven, real-time, multi-rate agent runtime for robots."""

import importlib
from typing import TYPE_CHECKING, Any

from runtime.clock import Clock
from runtime.errors import GraphError, LaunchFileError, PolyrhythmError, UserError
from runtime.message import Message, Stamped
from runtime.node import Node, every, on, on_deadline
from runtime.ports import Publisher, Subscription
from runtime.qos import QoS

if TYPE_CHECKING:
    __version__: str

    from runtime.execution.in_process import run
    from runtime.launch.graph import Graph, NodeSpec
    from runtime.services import (
        CallError,
        GoalClient,
        GoalHandle,
        GoalServer,
        RequestRefused,
        ServiceClient,
        ServiceServer,
        serve,
    )
    from runtime.virtual.simulation import Simulation

__all__ = [
    "CallError",
    "Clock",
    "GoalClient",
    "GoalHandle",
    "GoalServer",
    "Graph",
    "GraphError",
    "LaunchFileError",
    "Message",
    "Node",
    "NodeSpec",
    "PolyrhythmError",
    "Publisher",
    "QoS",
    "RequestRefused",
    "ServiceClient",
    "ServiceServer",
    "Simulation",
    "Stamped",
    "Subscription",
    "UserError",
    "every",
    "on",
    "on_deadline",
    "run",
    "serve",
]


_LATER = {
    "Graph": "runtime.launch.graph",
    "NodeSpec": "runtime.launch.graph",
    "Simulation": "runtime.virtual.simulation",
    "run": "runtime.execution.in_process",
    **dict.fromkeys(
        (
            "CallError",
            "GoalClient",
            "GoalHandle",
            "GoalServer",
            "RequestRefused",
            "ServiceClient",
            "ServiceServer",
            "serve",
        ),
        "runtime.services",
    ),
}


def __getattr__(name: str) -> Any:
    """What few processes need is imported when it is first asked for: the others start sooner."""
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("polyrhythm")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
