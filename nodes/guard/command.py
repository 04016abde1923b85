"""`polyrhythm guard`: arm, stop and re-arm the robot of a running graph."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from typing import Literal, get_args

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.command_line.attach import Arrival, Interruption, Sender, add_run_argument, attach, hear, user_name
from runtime.errors import PolyrhythmError
from runtime.message import Envelope
from runtime.messages.codec import decode
from runtime.msgs import TERMINAL, EStop, GuardAnswer, GuardState, RobotService
from runtime.msgs.signature import order, service, token_of
from runtime.supervision.registry import FoundRun

SILENT_S = 1.0
"""The guard tells its state ten times a second; an order is given after so long even where it was not heard."""
ANSWER_S = 1.0
Service = Literal["home", "stow", "runstop", "release"]
SERVICES: tuple[Service, ...] = get_args(Service)
CONSOLE = "console"
"""The source of the console's button: a click on a page, which nobody holds down either."""
GO_ON = (
    "it moves again when a person says so: polyrhythm guard resume, Resume on the console, or words beside the robot"
)


def main(argv: list[str]) -> int:
    """`polyrhythm guard`; 0 where the guard did it, 1 where it refused."""
    asked = _parser().parse_args(argv)
    run = attach(asked.run)
    with Interruption() as interruption:
        if asked.do in SERVICES:
            return _served(run, asked.do, asked.by, interruption, as_json=asked.json)
        if asked.do in ("arm", "rearm", "resume"):
            state = _ordered(run, asked.do, asked.by, interruption)
        else:
            if asked.do == "estop":
                sender = Sender(run, "estop", provenance="person")
                sender.publish(EStop(source=TERMINAL, is_pressed=True, why=f"pressed by {asked.by}"))
                sender.close()
            state = _known(_last(hear(run, ["guard/state"], interruption, for_s=ANSWER_S)))
    if asked.json:
        print(json.dumps(msgspec.to_builtins(state)))
    else:
        print(_sentence(state))
        if asked.do == "rearm" and state.mode == "stopped" and not state.estop:
            print(GO_ON, file=sys.stderr)
    is_done = {
        "state": True,
        "estop": bool(state.estop),
        "rearm": not state.estop,
        "arm": state.is_armed,
        "resume": state.mode != "stopped",
    }[asked.do]
    return 0 if is_done else 1


def _sentence(state: GuardState) -> str:
    """Mode and reason; what is latched only where the reason does not say so already."""
    latched = f", emergency stop latched: {state.estop}" if state.estop not in state.reason else ""
    return state.sentence + latched


def _ordered(run: FoundRun, do: Literal["arm", "rearm", "resume"], by: str, interruption: Interruption) -> GuardState:
    """Give the order; what the guard says to it at once, before anybody else's word can have changed it again."""
    token = token_of(run.folder)
    if do == "rearm":
        released = Sender(run, "estop", provenance="person")
        for source in (TERMINAL, CONSOLE):
            released.publish(EStop(source=source, is_pressed=False))
        released.close()
    sender = Sender(run, "guard/order", provenance="person")
    states = hear(run, ["guard/state"], interruption, for_s=SILENT_S + ANSWER_S)
    try:
        before = _last(states, until_ns=SystemClock().now_ns() + to_ns(SILENT_S), enough=lambda _: True)
        ident = sender.publish(order(token, do, by, SystemClock().now_ns())).ident
        until_ns = SystemClock().now_ns() + to_ns(ANSWER_S)
        after = _last(states, until_ns=until_ns, enough=lambda envelope: envelope.cause == ident)
    finally:
        states.close()
        sender.close()
    return _known(after or before)


def _served(run: FoundRun, verb: Service, by: str, interruption: Interruption, *, as_json: bool) -> int:
    """Ask for something that the robot itself does, and tell the guard's answer."""
    topic = "robot/runstop" if verb in ("runstop", "release") else "robot/service"
    sender = Sender(run, topic, provenance="person")
    heard = hear(run, ["guard/answer", "guard/state"], interruption, for_s=SILENT_S + ANSWER_S)
    asked: RobotService | None = None
    try:
        for arrival in heard:
            if asked is None and arrival is not None:  # the guard is heard: its answer will be, too
                asked = service(token_of(run.folder), verb, by, SystemClock().now_ns())
                sender.publish(asked)
            if asked is None or arrival is None or arrival.topic != "guard/answer":
                continue
            answer = decode(arrival.frames, GuardAnswer).message
            if answer.request == asked.id:
                words = f"{verb}: {'accepted' if answer.is_accepted else f'refused: {answer.why}'}"
                print(json.dumps(msgspec.to_builtins(answer)) if as_json else words)
                return 0 if answer.is_accepted else 1
    finally:
        heard.close()
        sender.close()
    raise PolyrhythmError("the guard says nothing; polyrhythm nodes tells how it fares")


def _last(
    states: Iterable[Arrival | None],
    *,
    until_ns: int | None = None,
    enough: Callable[[Envelope], bool] = lambda _: False,
) -> GuardState | None:
    """The first state that is enough, or the last that came until then."""
    clock = SystemClock()
    found: GuardState | None = None
    for arrival in states:
        if arrival is not None:
            stamped = decode(arrival.frames, GuardState)
            found = stamped.message
            if enough(stamped.envelope):
                break
        if until_ns is not None and clock.now_ns() >= until_ns:
            break
    return found


def _known(state: GuardState | None) -> GuardState:
    if state is None:
        raise PolyrhythmError("the guard says nothing; polyrhythm nodes tells how it fares")
    return state


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm guard",
        description="Arm, stop and re-arm the robot of a running graph; home or stow it; press or release its "
        "runstop. An emergency stop stays, over restarts too, until it is re-armed; the robot then still waits to be "
        "told to go on: resume.",
        epilog="example: polyrhythm guard estop",
    )
    parser.add_argument("do", choices=("state", "arm", "estop", "rearm", "resume", *SERVICES))
    parser.add_argument("--by", default=user_name(), help="who you are; default: %(default)s")
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the guard's state as JSON")
    return parser
