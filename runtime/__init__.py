"""Polyrhythm: an event-driven, real-time, multi-rate agent runtime for robots."""

from typing import TYPE_CHECKING, Any

from runtime.clock import Clock
from runtime.errors import GraphError, LaunchFileError, PolyrhythmError, UserError
from runtime.message import Message, Stamped
from runtime.node import Node, every, on, on_deadline
from runtime.ports import Publisher, Subscription
from runtime.qos import QoS

if TYPE_CHECKING:
    from runtime.virtual.simulation import Simulation

__all__ = [
    "Clock",
    "GraphError",
    "LaunchFileError",
    "Message",
    "Node",
    "PolyrhythmError",
    "Publisher",
    "QoS",
    "Simulation",
    "Stamped",
    "Subscription",
    "UserError",
    "every",
    "on",
    "on_deadline",
]


def __getattr__(name: str) -> Any:
    """`Simulation` when it is first asked for: the processes of a run in real time never are, and start sooner."""
    if name == "Simulation":
        from runtime.virtual.simulation import Simulation

        return Simulation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
