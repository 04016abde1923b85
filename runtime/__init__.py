"""Polyrhythm: an event-driven, real-time, multi-rate agent runtime for robots."""

from runtime.clock import Clock
from runtime.errors import GraphError, LaunchFileError, PolyrhythmError, UserError
from runtime.message import Message, Stamped
from runtime.node import Node, every, on, on_deadline
from runtime.ports import Publisher, Subscription
from runtime.qos import QoS
from runtime.simulation import Simulation

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
