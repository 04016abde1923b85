"""Polyrhythm: an event-driven, real-time, multi-rate agent runtime for robots.

What users import stands in `__all__` below. The files of this folder:

- what a node is made of: `node`, `ports`, `message`, `qos`, `services`, `clock`, `external_call`, `errors`
- inputs that are read together: `alignment`
- what a node may tell besides: `abilities`
- what a call knows: `context` (ages and causes), `run_facts`
- the machine: the room `operating_system`, `extras`
- what is refused before a start, by code: `refusals`
- for all rooms: `histogram`, `renamed`; `__main__` is the command, with `exit_codes`, and `cli` what it does

The rooms, from the ground up: `serialization`, `transport`, `coordination`, `journal`, `hosts`, `launch`, `execution`,
`virtual`, `supervision`, `command_line`, `commands`.
"""

from __future__ import annotations

from runtime.renamed import tell_old_export, tell_old_modules

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than all that the command needs to hear of Ctrl-C
if TYPE_CHECKING:
    from typing import Any

    __version__: str

    from runtime.alignment import Interpolate, aligned
    from runtime.clock import NS_PER_S, Clock, to_ns, to_s, wall_time_ns
    from runtime.coordination.fence import FENCE_TOPIC, Fence
    from runtime.coordination.health import Health, Spending
    from runtime.coordination.lease import LEASE_TOPIC, Lease
    from runtime.errors import (
        GraphError,
        LaunchFileError,
        MissingVariable,
        ParameterError,
        PolyrhythmError,
        RecordingError,
        UserError,
    )
    from runtime.execution.in_process import run
    from runtime.launch.graph import Graph, NodeSpec
    from runtime.launch.one_file import graph
    from runtime.message import Message, Stamped
    from runtime.node import Node, every, needs_real_time, on, on_deadline
    from runtime.ports import Publisher, Subscription
    from runtime.qos import ALONE, RELIABLE, SOON, URGENT, QoS
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
    "Interpolate",
    "LaunchFileError",
    "Lease",
    "Message",
    "MissingVariable",
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
    "aligned",
    "every",
    "graph",
    "needs_real_time",
    "on",
    "on_deadline",
    "run",
    "serve",
    "to_ns",
    "to_s",
    "wall_time_ns",
]


_LATER = {
    name: module
    for module, names in {
        "alignment": "Interpolate aligned",
        "clock": "NS_PER_S Clock to_ns to_s wall_time_ns",
        "coordination.fence": "FENCE_TOPIC Fence",
        "coordination.health": "Health Spending",
        "coordination.lease": "LEASE_TOPIC Lease",
        "errors": "GraphError LaunchFileError MissingVariable ParameterError PolyrhythmError RecordingError UserError",
        "execution.in_process": "run",
        "launch.graph": "Graph NodeSpec",
        "launch.one_file": "graph",
        "message": "Message Stamped",
        "node": "Node every needs_real_time on on_deadline",
        "ports": "Publisher Subscription",
        "qos": "ALONE RELIABLE SOON URGENT QoS",
        "services": "CallError GoalClient GoalHandle GoalServer RequestRefused ServiceClient ServiceServer serve",
        "virtual.simulation": "Simulation",
    }.items()
    for name in names.split()
}


tell_old_modules()


def __getattr__(name: str) -> Any:
    """A name is imported when it is first asked for: an emergency stop at a terminal needs none, and starts sooner."""
    if name in _LATER:
        import importlib

        found = globals()[name] = getattr(importlib.import_module(f"runtime.{_LATER[name]}"), name)
        return found
    if name == "__version__":
        from importlib.metadata import version

        return version("polyrhythm")
    tell_old_export(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
