"""The common case of a message that its handler's own thread receives: straight to the handler, in one function.

It applies where the message meets nothing else to be done. It does what port, lane, runner and node do, in the same
order and with the same counts. In all other cases the message goes to the port. After a rest of milliseconds each
further function costs about ten microseconds, however short it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.clock import LONGEST_NS, Clock, to_ns
from runtime.context import HandlerContext, current_call
from runtime.execution.bound_node import BoundNode
from runtime.execution.failures import OF_A_HANDLER
from runtime.execution.lane import Lane, Work
from runtime.execution.runners import OVERLOADED_NS, SLOW_NS, tell_slow
from runtime.message import Stamped
from runtime.ports import Subscription
from runtime.transport.channel import Handle

_BEHIND_NS = 2_000_000
"""Newer states may wait behind one older than this, and the newest is wanted."""


def direct_call(bound: BoundNode, lane: Lane, handler: str, port: Subscription[Any], clock: Clock) -> Handle:
    """A function that handles each message of this port; only the thread that runs the lane may call it."""
    push, is_state = port.push, port.message.message_kind == "state"
    longest_ns = _BEHIND_NS if is_state else OVERLOADED_NS
    lifespan_s, leases = port.qos.lifespan_s, port.leases
    if (
        bound.journal is not None
        or bound.has_worker
        or port.qos.deadline_s is not None
        or port.limit is not None
        or (lifespan_s is not None and to_ns(lifespan_s) <= longest_ns)
        or (leases is not None and port.topic in leases.seat_topics)
        or sum(other is port for _, other in lane.listeners) != 1
    ):
        return push
    method, takes_stamped = getattr(bound.node, handler), bound.takes_stamped(handler)
    fence, ages, failures, node_clock = bound.fence, bound.ages, bound.failures, bound.node.clock
    queues = [other.waiting for _, other in lane.listeners]
    next_turn = ([other for _, other in lane.listeners].index(port) + 1) % len(queues)
    now, acquire, release = clock.now_ns, port.lock.acquire, port.lock.release
    queue = queues[0] if len(queues) == 1 else None
    set_call, reset_call = current_call.set, current_call.reset
    nothing: Mapping[str, int] = {}

    def handle(stamped: Stamped[Any]) -> int | None:
        now_ns = now()
        envelope, due_ns = stamped.envelope, lane.known_due_ns
        if (
            (due_ns is not None and now_ns >= due_ns)
            or now_ns - envelope.published_ns > longest_ns
            or envelope.seat
            or (any(queues) if queue is None else queue)
        ):
            push(stamped)
            return None
        acquire()  # what the port notes of a message that does not wait in it
        try:
            port.received += 1
            port._newest = stamped
            port._newest_is_read = False
            port.delivered += 1
        finally:
            release()
        lane.turn = next_turn
        if lane.has_ticked:
            lane.note_message()
        origins = envelope.origins
        if ages.topics or (origins and not (is_state and ages.counted.isdisjoint(origins))):
            call = HandlerContext.of(now_ns, fence.epochs, stamped, ages, node_clock)
        else:  # what `of` would make: these ages are handed on, and nobody asks whether they are known
            call = HandlerContext(
                now_ns, fence.epochs, stamped, ages, node_clock,
                origins or nothing, 0, None, None, None, LONGEST_NS, None, False, "", envelope,
            )  # fmt: skip
        token = set_call(call)
        try:
            method(stamped if takes_stamped else stamped.message)
        except OF_A_HANDLER as problem:  # the node's own; it goes on
            failures.tell(handler, problem)
        finally:
            reset_call(token)
        ended_ns = now()
        if ended_ns - now_ns > SLOW_NS:
            tell_slow(bound, Work(handler, lane.style, stamped), ended_ns - now_ns)
        return ended_ns

    return handle
