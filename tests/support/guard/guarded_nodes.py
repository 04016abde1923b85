"""A policy that never commands, and somebody who hears emergency stops, for tests of tools with a guard."""

from __future__ import annotations

from nodes.msgs import Action, EStop, JointCommand, SeatRequest, Utterance
from runtime import Node, Publisher, QoS, Subscription
from tests.support.guard.driving import driver_and_guard

GUARDED = f"""
[run]
frozen_s = 60.0
{driver_and_guard(guard='memory = "run"')}
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
