"""`polyrhythm guard`: arm, stop and re-arm the robot of a running graph.

It loads no library, because an emergency stop must not wait; `nodes.guard.orders` has the other orders.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from nodes.guard import estop_signal
from nodes.guard.estop_signal import ANSWER_S, GuardProcess
from runtime.clock import SystemClock
from runtime.errors import UserError, choices

if TYPE_CHECKING:
    import argparse

SERVICES = ("home", "stow", "runstop", "release")
NAMED = ("arm", "rearm")
"""Orders that need `--run`: what lets a robot move must never reach whichever run happens to be there."""
COMES_BACK_S = 15.0
TURN_S = 0.05


def main(argv: list[str]) -> int:
    """Run `polyrhythm guard` with these arguments; 0 where the guard did it, 1 where it refused.

    Raises UserError where `arm` or `rearm` names no run.
    """
    if argv == ["estop"] and estop_signal.SIGNAL is not None:  # typed in an emergency: no parser, 5 ms sooner
        return _estop(None, as_json=False)
    asked = _parser().parse_args(argv)
    if asked.do == "estop" and estop_signal.SIGNAL is not None:
        return _estop(asked.run, as_json=asked.json)
    from nodes.guard import orders

    if asked.do in NAMED and asked.run is None:
        raise UserError(f"{asked.do} needs --run: the name or pid of the run whose robot is meant; {orders.running()}")
    return orders.obey(asked.do, asked.run, asked.by, as_json=asked.json)


def _estop(wanted: str | None, *, as_json: bool) -> int:
    """Stop every robot of this user, or that of one run; 0 where each of them is held and latched."""
    processes = [found for found in estop_signal.guard_processes() if _is_meant(found, wanted)]
    if not processes:
        others = choices(found.title for found in estop_signal.guard_processes())
        print(f"--run {wanted}: no such run has a guard; running: {others}" if wanted else NOBODY, file=sys.stderr)
        return 1
    frozen = estop_signal.press([process for process in processes if not process.is_run])
    for process in frozen:
        process.signal(signal.SIGKILL)
    if not as_json:
        for process in processes:
            _tell(process, is_frozen=process in frozen)
    latched = [_latch_again(one) if one.is_run or one in frozen else True for one in processes]
    if as_json:
        import json

        told = [
            {"run": one.run, "pid": one.supervisor_pid, "ended": one.pid if one in frozen else None, "latched": is_so}
            for one, is_so in zip(processes, latched, strict=True)
        ]  # fmt: skip
        print(json.dumps(told))
    return 0 if all(latched) else 1


NOBODY = "no graph of this user has a guard, so there is nothing to stop; polyrhythm nodes tells what runs"


def _is_meant(found: GuardProcess, wanted: str | None) -> bool:
    return wanted is None or wanted in (found.run, str(found.supervisor_pid))


def _tell(process: GuardProcess, *, is_frozen: bool) -> None:
    if process.is_run:
        print(f"{process.title}: its guard is being started, and nothing moves the robot before", flush=True)
    elif is_frozen:
        print(
            f"{process.title}: its guard did not answer within {ANSWER_S * 1000:.0f} ms, so its process {process.pid} "
            "was ended: the robot gets no more commands, and its own watchdog stops it",
            flush=True,
        )
    else:
        print(f"{process.title}: held, emergency stop latched", flush=True)


def _latch_again(ended: GuardProcess) -> bool:
    """Wait for the guard that the supervisor starts instead, and latch the stop there; False after `COMES_BACK_S`."""
    import threading

    clock, again = SystemClock(), "" if ended.is_run else " again"
    end_s = clock.now_s() + COMES_BACK_S
    while (left_s := end_s - clock.now_s()) > 0:
        back = [
            found
            for found in estop_signal.guard_processes()
            if found.supervisor_pid == ended.supervisor_pid and found.pid != ended.pid and not found.is_run
        ]
        if back and not estop_signal.press(back, left_s):
            print(
                f"{ended.title}: the guard that was started{again} has latched the emergency stop",
                file=sys.stderr,
            )
            return True
        threading.Event().wait(TURN_S)
    print(
        f"{ended.title}: no guard was started{again} within {COMES_BACK_S:.0f} s, so the stop is not latched; "
        "nothing moves the robot while there is none",
        file=sys.stderr,
    )
    return False


def _parser() -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="polyrhythm guard",
        description="Arm, stop and re-arm the robot of a running graph; home or stow it; press or release its "
        "runstop. estop without --run stops every robot of yours; arm and rearm need --run. An emergency stop stays, "
        "over restarts too, until it is re-armed; the robot then still waits to be told to go on: resume.",
        epilog="example: polyrhythm guard estop",
    )
    parser.add_argument("do", choices=("state", "arm", "estop", "rearm", "resume", *SERVICES))
    parser.add_argument("--by", default="", help="who you are; default: your account, which an estop always names")
    parser.add_argument("--run", metavar="NAME|PID", help="which run: its name or its pid")
    parser.add_argument("--json", action="store_true", help="print the guard's state as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
