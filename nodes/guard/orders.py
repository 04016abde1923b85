"""The orders of `polyrhythm guard` that go over the bus: all but the emergency stop."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, get_args

import msgspec

from nodes.msgs import TERMINAL, EStop, GuardAnswer, GuardState, RobotService
from nodes.msgs.signature import order, service, token_of
from runtime.clock import SystemClock
from runtime.command_line.attach import Arrival, Sender, StopSignal, at_once, attach, hear, send, unreached, user_name
from runtime.errors import PolyrhythmError, choices
from runtime.message import Envelope
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, find_runs
from runtime.supervision.view import plain

SILENT_S = 1.0
"""How long to wait for the guard's first state, s; the order is then sent even where none was received."""
ANSWER_S = 1.0
Order = Literal["arm", "rearm", "resume"]
Asked = Literal["state", "estop", "arm", "rearm", "resume", "home", "stow", "runstop", "release"]
Service = Literal["home", "stow", "runstop", "release"]
SERVICES: tuple[Service, ...] = get_args(Service)
STOPS: Mapping[str, str] = {"estop": "estop", "runstop": "robot/runstop"}
"""The orders that stop, and the topics by which a guard hears of them."""
CONSOLE = "console"
"""The source name of the console's e-stop button: a click on a page holds no button down."""
GO_ON = (
    "it moves again when a person says so: polyrhythm guard resume, Resume on the console, or words beside the robot"
)


def obey(do: Asked, wanted: str | None, by: str, *, as_json: bool) -> int:
    """Send the guard of a run an order and print its state; 0 where the order is carried out, 1 where it is refused.

    `wanted` names the run, `by` the person; both may be empty: what stops then goes to every run with a guard. Raises
    PolyrhythmError where the guard does not answer.
    """
    by = by or user_name()
    topic = STOPS.get(do, "")
    runs, unread = [], list[str]()
    if topic and wanted is None:
        runs, unread = [run for run in find_runs() if topic in run.info.topics], unreached()
    code = 1 if unread and not runs else _asked_of(runs, do, wanted, by, as_json=as_json)
    for sentence in unread:
        print(f"polyrhythm guard: {sentence}", file=sys.stderr)
    return 1 if unread else code


def _asked_of(runs: list[FoundRun], do: Asked, wanted: str | None, by: str, *, as_json: bool) -> int:
    """Ask the guards of these runs; of none or one as of the run that is named."""
    if len(runs) <= 1:
        is_named = wanted is not None or do in ("state", *STOPS)
        run = attach(wanted, "laptop", acts=not is_named) if not runs else runs[0]
        with StopSignal() as stop_signal:
            return _obeyed(run, do, by, stop_signal, as_json=as_json)
    with StopSignal() as stop_signal:
        codes = at_once(runs, lambda run: _obeyed(run, do, by, stop_signal, as_json=as_json, title=f"{run.title}: "))
    for run, code in zip(runs, codes, strict=True):
        if isinstance(code, PolyrhythmError):
            print(f"polyrhythm guard: {run.title}: {code}", file=sys.stderr)
    return 0 if all(code == 0 for code in codes) else 1


def _obeyed(run: FoundRun, do: Asked, by: str, stop_signal: StopSignal, *, as_json: bool, title: str = "") -> int:
    """One run's guard is asked, and its answer printed behind the title."""
    if do in SERVICES:
        return _served(run, do, by, stop_signal, as_json=as_json, title=title)
    if do in ("arm", "rearm", "resume"):
        state = _ordered(run, do, by, stop_signal)
    else:
        if do == "estop":  # over the bus, where the platform has no signal for it
            send(run, "estop", EStop(source=TERMINAL, is_pressed=True, why=f"pressed by {by}"))
        state = _known(_last(hear(run, ["guard/state"], stop_signal, for_s=ANSWER_S)))
    if as_json:
        _print(json.dumps(msgspec.to_builtins(state)))
    else:
        _print(plain(title + state.sentence))
        if do == "rearm" and state.mode == "stopped":
            print(GO_ON, file=sys.stderr)
    is_done = {
        "state": True,
        "estop": state.mode == "estopped",
        "rearm": state.mode != "estopped",
        "arm": state.is_armed,
        "resume": not state.is_stopped,
    }[do]
    return 0 if is_done else 1


def running() -> str:
    """The runs of this user, as the end of a sentence."""
    titles = [run.title for run in find_runs()]
    return f"running: {choices(titles)}" if titles else "none is running"


def _ordered(run: FoundRun, do: Order, by: str, stop_signal: StopSignal) -> GuardState:
    """Send the order and return the state by which the guard answers it, before any later event can have changed it."""
    token = token_of(run.folder)
    if do == "rearm":
        send(run, "estop", *(EStop(source=source, is_pressed=False) for source in (TERMINAL, CONSOLE)))
    sender = Sender(run, "guard/order", provenance="person")
    states = hear(run, ["guard/state"], stop_signal, for_s=SILENT_S + ANSWER_S)
    try:
        before = _last(states, until_s=SystemClock().now_s() + SILENT_S, enough=lambda _: True)
        ident = sender.publish(order(token, do, by, SystemClock().now_ns())).ident
        until_s = SystemClock().now_s() + ANSWER_S
        after = _last(states, until_s=until_s, enough=lambda envelope: envelope.cause == ident)
    finally:
        states.close()
        sender.close()
    return _known(after or before)


def _print(line: str) -> None:
    """In one go: each run is told by a thread of its own."""
    print(f"{line}\n", end="", flush=True)


def _served(run: FoundRun, verb: Service, by: str, stop_signal: StopSignal, *, as_json: bool, title: str) -> int:
    """Ask for an action of the robot itself, and print the guard's answer."""
    topic = "robot/runstop" if verb in ("runstop", "release") else "robot/service"
    sender = Sender(run, topic, provenance="person")
    heard = hear(run, ["guard/answer", "guard/state"], stop_signal, for_s=SILENT_S + ANSWER_S)
    asked: RobotService | None = None
    try:
        for arrival in heard:
            if asked is None and arrival is not None:  # the guard is received, so its answer will be
                asked = service(token_of(run.folder), verb, by, SystemClock().now_ns())
                sender.publish(asked)
            if asked is None or arrival is None or arrival.topic != "guard/answer":
                continue
            answer = decode(arrival.frames, GuardAnswer).message
            if answer.request == asked.id:
                words = f"{verb}: {'accepted' if answer.is_accepted else f'refused: {answer.why}'}"
                _print(json.dumps(msgspec.to_builtins(answer)) if as_json else plain(title + words))
                return 0 if answer.is_accepted else 1
    finally:
        heard.close()
        sender.close()
    raise PolyrhythmError("the guard says nothing; polyrhythm nodes tells how it fares")


def _last(
    states: Iterable[Arrival | None],
    *,
    until_s: float | None = None,
    enough: Callable[[Envelope], bool] = lambda _: False,
) -> GuardState | None:
    """The first state that is `enough`, or else the last one before `until_s`."""
    clock = SystemClock()
    found: GuardState | None = None
    for arrival in states:
        if arrival is not None:
            stamped = decode(arrival.frames, GuardState)
            found = stamped.message
            if enough(stamped.envelope):
                break
        if until_s is not None and clock.now_s() >= until_s:
            break
    return found


def _known(state: GuardState | None) -> GuardState:
    if state is None:
        raise PolyrhythmError("the guard says nothing; polyrhythm nodes tells how it fares")
    return state
