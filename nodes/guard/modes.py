"""The guard's tables: its modes, the events that lead from one to another, and what may leave in each.

Events that a table does not list for a mode are faults of this program: the robot is stopped, and it is told.
"""

from __future__ import annotations

from typing import Literal

from nodes.msgs import GuardMode

Event = Literal["arm", "command", "hold", "service", "retreat", "stop", "resume", "release", "estop", "rearm"]

TRANSITIONS: dict[tuple[GuardMode, Event], GuardMode] = {
    ("disarmed", "arm"): "armed",  # the only way in; needs a measured posture, which becomes the first target
    ("disarmed", "stop"): "stopped",
    ("disarmed", "service"): "disarmed",  # a robot is homed before anybody arms its guard
    ("armed", "command"): "moving",
    ("armed", "stop"): "stopped",
    ("moving", "command"): "moving",
    ("moving", "hold"): "holding",  # no usable command, no fresh robot state, or a replan
    ("moving", "stop"): "stopped",
    ("holding", "command"): "moving",
    ("holding", "stop"): "stopped",
    ("armed", "service"): "disarmed",  # the robot homes or stows by itself; its posture is new afterwards
    ("holding", "service"): "disarmed",
    ("stopped", "retreat"): "retreating",  # by a person, after pain or contact: slowly back
    ("retreating", "hold"): "holding",
    ("retreating", "stop"): "stopped",
    ("retreating", "estop"): "estopped",
    ("stopped", "stop"): "stopped",  # latched: commands, silence and time change nothing
    ("stopped", "resume"): "holding",  # by a person, after the stop
    ("stopped", "release"): "disarmed",  # as resume, for a guard without control of the robot
    ("disarmed", "estop"): "estopped",
    ("armed", "estop"): "estopped",
    ("moving", "estop"): "estopped",
    ("holding", "estop"): "estopped",
    ("stopped", "estop"): "estopped",
    ("estopped", "estop"): "estopped",  # latched, over restarts too: no words resume it
    ("estopped", "rearm"): "stopped",  # by an authorised person; motion still waits for a resume
}

Output = Literal["nothing", "braking", "release", "retreat", "command"]

OUTPUT: dict[GuardMode, Output] = {
    "disarmed": "nothing",
    "armed": "command",
    "moving": "command",
    "holding": "command",
    "retreating": "retreat",
    "stopped": "release",  # braking; what touches or holds somebody lets go
    "estopped": "braking",
}
"""What may leave in each mode, at most: each also brakes where it has nothing to do, and nothing leaves while the guard
has let go of the robot. A mode that is missing here brakes.
"""

STOPPED: frozenset[GuardMode] = frozenset({"stopped", "estopped"})
"""Modes in which a stop is latched."""

CLOSED = tuple(mode for mode, output in OUTPUT.items() if output != "command")
"""Modes in which every command is refused. A policy that keeps sending commands meanwhile commits no fault."""
