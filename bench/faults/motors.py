"""The motors of the test robot, in a process of their own as in a real one: `python -m bench.faults.motors FOLDER`.

They follow the driver's newest order within the base's acceleration, and stop by themselves where it is older than the
watchdog's time. Also the bare timer loop beside which lateness is judged (`... FOLDER bare`), and what an encoder of
its own tells of them (`... FOLDER state`).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from bench.faults.black_box import Switchboard, bare_box, motor_box, order_box
from nodes.stretch.limits import STRETCH_3
from runtime.operating_system.real_time import ask_for_fifo

WATCHDOG_S = 0.5
STEP_S = 0.005
BARE_S = 0.020
CREEP_MPS = 0.1
TOLD_S = 0.1


def drive(path: Path) -> None:
    """Until killed."""
    ask_for_fifo(40)  # a motor controller is no Linux process
    orders, box, switches = order_box(path), motor_box(path), Switchboard(path / "switches")
    speed = place = 0.0
    due = time.monotonic()
    while True:
        due += STEP_S
        time.sleep(max(0.0, due - time.monotonic()))
        now_ns = time.monotonic_ns()
        order = orders.last()
        is_silent = order is None or now_ns - order[0] > WATCHDOG_S * 1e9
        target = CREEP_MPS * switches["creep"] + (0.0 if order is None or is_silent else order[1])
        if switches["button"]:
            target = 0.0
        change = STRETCH_3.base.acceleration_mps2 * STEP_S
        speed = min(max(target, speed - change), speed + change)
        place += speed * STEP_S
        box.write(now_ns, target, speed, place, int(is_silent))


def be_late(path: Path) -> None:
    """A timer loop that does nothing else, until killed."""
    box = bare_box(path)
    due = time.monotonic()
    while True:
        due += BARE_S
        time.sleep(max(0.0, due - time.monotonic()))
        box.write(time.monotonic_ns(), (time.monotonic() - due) * 1e3)
        due = max(due, time.monotonic() - BARE_S)


def tell(path: Path) -> None:
    """Place and speed of the base, ten times a second, until killed."""
    box = motor_box(path)
    while True:
        _, _, speed, place, _ = box.last() or (0, 0.0, 0.0, 0.0, 0)
        print(f"{place} 0 0 {speed} 0 0", flush=True)
        time.sleep(TOLD_S)


DOES = {"bare": be_late, "state": tell}

if __name__ == "__main__":
    DOES.get(" ".join(sys.argv[2:]), drive)(Path(sys.argv[1]))
