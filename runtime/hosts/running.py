"""Opens the doors of one gateway and puts it together from its plan."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping

from runtime.hosts import keys
from runtime.hosts.admission import Traffic
from runtime.hosts.gateway import Gateway
from runtime.hosts.image_codec import Shrinker
from runtime.hosts.plan import GatewayPlan
from runtime.hosts.sockets import Doors
from runtime.message import Envelope, Message

SHRINKER = "bridges.gateway_images:JpegImages"
"""What makes images small; without it they cross as they are."""


def make_gateway(
    plan: GatewayPlan,
    sends: Mapping[str, type[Message]],
    load_type: Callable[[str], type[Message]],
    *,
    publish: Callable[[Envelope, Message], None],
    finish: Callable[[bool, str], None],
) -> tuple[Gateway, Doors]:
    """The gateway, and the doors to close after it. Raises UserError for a wrong key, TransportError for a port."""
    own, other = plan.own, plan.meeting.other(plan.own.name)
    secret = keys.secret_for(own.name, own.key) if plan.meeting.is_encrypted else ""
    receives = {topic: load_type(name) for topic, name in plan.receives.items()}
    doors = Doors(plan.meeting, own.name, secret)
    gateway = Gateway(
        doors,
        Traffic(sends, receives, plan.sources),
        own=own.name,
        other=other.name,
        graph=plan.graph,
        publish=publish,
        finish=finish,
        shrinker=_shrinker(),
        budget_mbit=own.budget_mbit,
        own_nodes=frozenset(plan.own_nodes),
        reliable=plan.reliable,
    )
    return gateway, doors


def _shrinker() -> Shrinker | None:
    module, _, name = SHRINKER.partition(":")
    try:
        make: Callable[[], Shrinker] = getattr(importlib.import_module(module), name)
        return make()
    except ImportError as problem:
        logging.getLogger("gateway").warning("images cross the link as they are: %s", problem)
        return None


def check_keys(plan: GatewayPlan) -> None:
    """Raise UserError where this host's secret key is missing or is not the one of the launch file."""
    if plan.meeting.is_encrypted:
        keys.secret_for(plan.own.name, plan.own.key)
