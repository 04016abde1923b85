"""`polyrhythm guard`: arm, stop and re-arm the robot of a running graph."""

from __future__ import annotations

import argparse
import json
import sys

import msgspec

from runtime.attach import Interruption, Sender, add_run_argument, attach, hear, user_name
from runtime.clock import SystemClock
from runtime.codec import decode
from runtime.errors import PolyrhythmError
from runtime.msgs import TERMINAL, EStop, GuardState
from runtime.proof import order, token_of
from runtime.registry import FoundRun

ANSWER_S = 1.0
CONSOLE = "console"
"""The source of the console's button: a click on a page, which nobody holds down either."""
GO_ON = (
    "it moves again when somebody says so: Resume on the console, or "
    """polyrhythm pub heard '{"speaker": "NAME", "text": "go on"}'"""
)


def main(argv: list[str]) -> int:
    """`polyrhythm guard`; 0 where the guard did it, 1 where it refused."""
    asked = _parser().parse_args(argv)
    run = attach(asked.run)
    clock = SystemClock()
    if asked.do == "estop":
        sender = Sender(run, "estop", provenance="person")
        sender.publish(EStop(source=TERMINAL, is_pressed=True, why=f"pressed by {asked.by}"))
        sender.close()
    elif asked.do in ("arm", "rearm"):
        token = token_of(run.folder)
        if asked.do == "rearm":
            released = Sender(run, "estop", provenance="person")
            for source in (TERMINAL, CONSOLE):
                released.publish(EStop(source=source, is_pressed=False))
            released.close()
        sender = Sender(run, "guard/order", provenance="person")
        sender.publish(order(token, asked.do, asked.by, clock.now_ns()))
        sender.close()
    state = _answer(run)
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
    }[asked.do]
    return 0 if is_done else 1


def _sentence(state: GuardState) -> str:
    """Mode and reason; what is latched only where the reason does not say so already."""
    latched = f", emergency stop latched: {state.estop}" if state.estop not in state.reason else ""
    return state.sentence + latched


def _answer(run: FoundRun) -> GuardState:
    """The guard's word, a moment later."""
    found: GuardState | None = None
    with Interruption() as interruption:
        for arrival in hear(run, ["guard/state"], interruption, for_s=ANSWER_S):
            if arrival is not None:
                found = decode(arrival.frames, GuardState).message
    if found is None:
        raise PolyrhythmError("the guard says nothing; polyrhythm nodes tells how it fares")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm guard",
        description="Arm, stop and re-arm the robot of a running graph. An emergency stop stays, over restarts too, "
        "until it is re-armed; the robot then still waits to be told to go on.",
        epilog="example: polyrhythm guard estop",
    )
    parser.add_argument("do", choices=("state", "arm", "estop", "rearm"))
    parser.add_argument("--by", default=user_name(), help="who you are; default: %(default)s")
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the guard's state as JSON")
    return parser
