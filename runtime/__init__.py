"""Polyrhythm: an event-driven, real-time, multi-rate agent runtime for robots."""

import importlib
from typing import TYPE_CHECKING, Any

from runtime.clock import NS_PER_S, Clock, to_ns, wall_time_ns
from runtime.errors import (
    GraphError,
    LaunchFileError,
    ParameterError,
    PolyrhythmError,
    RecordingError,
    UserError,
    choices,
)
from runtime.message import Message, Stamped
from runtime.node import Node, every, on, on_deadline, rate_problem
from runtime.ports import Publisher, Subscription
from runtime.qos import ALONE, RELIABLE, SOON, URGENT, QoS

if TYPE_CHECKING:
    __version__: str

    from runtime.control_messages.fence import FENCE_TOPIC, Fence
    from runtime.control_messages.health import Health, Spending
    from runtime.control_messages.lease import LEASE_TOPIC, Lease
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
    "ALONE",
    "FENCE_TOPIC",
    "LEASE_TOPIC",
    "NS_PER_S",
    "RELIABLE",
    "SOON",
    "URGENT",
    "CallError",
    "Clock",
    "Fence",
    "GoalClient",
    "GoalHandle",
    "GoalServer",
    "Graph",
    "GraphError",
    "Health",
    "LaunchFileError",
    "Lease",
    "Message",
    "Node",
    "NodeSpec",
    "ParameterError",
    "PolyrhythmError",
    "Publisher",
    "QoS",
    "RecordingError",
    "RequestRefused",
    "ServiceClient",
    "ServiceServer",
    "Simulation",
    "Spending",
    "Stamped",
    "Subscription",
    "UserError",
    "choices",
    "every",
    "on",
    "on_deadline",
    "rate_problem",
    "run",
    "serve",
    "to_ns",
    "wall_time_ns",
]


_LATER = {
    "FENCE_TOPIC": "runtime.control_messages.fence",
    "Fence": "runtime.control_messages.fence",
    "Health": "runtime.control_messages.health",
    "LEASE_TOPIC": "runtime.control_messages.lease",
    "Lease": "runtime.control_messages.lease",
    "Spending": "runtime.control_messages.health",
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
