"""A policy that never commands, and somebody who hears emergency stops, for tests of tools with a guard."""

from __future__ import annotations

from nodes.msgs import Action, EStop, JointCommand, SeatRequest, Utterance
from runtime import Node, Publisher, QoS, Subscription

GUARDED = """
[run]
frozen_s = 60.0

[nodes.driver]
use     = "nodes.robot.driver:Driver"
process = "robot"
params  = { robot = "nodes.sim.kinematic:KinematicRobot" }

[nodes.guard]
use     = "nodes.guard.node:Guard"
process = "robot"
params  = { memory = "run" }

[nodes.reflex]
use     = "nodes.interrupts.reflex:Reflex"
process = "robot"

[nodes.policy]
use = "tests.support.guard.guarded_nodes:StillPolicy"

[nodes.other]
use = "tests.support.guard.guarded_nodes:StillPolicy"

[nodes.witness]
use = "tests.support.guard.guarded_nodes:Witness"

[seats.policy]
holder  = "policy"
shadows = ["other"]
"""


class StillPolicy(Node):
    """Sits there and sends nothing."""

    seat = "policy"
    command = Publisher(JointCommand, "command")


class Witness(Node):
    """Hears what a recorder would hear."""

    estop = Subscription(EStop, "estop", qos=QoS(required=False))
    request = Subscription(SeatRequest, "seat/request", qos=QoS(required=False))
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    action = Subscription(Action, "action", qos=QoS(required=False))
