"""What is done to the rig in one trial of each fault. Each returns the figures measured then, by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from bench.faults.garbage import send_oversized
from bench.faults.measures import (
    FALSE_HOLDS,
    GAPS,
    GONE,
    GROWN,
    KILLED,
    LIFTED,
    LIMITS,
    LOST,
    MS,
    NUMB,
    PILED,
    REFUSED,
    RUNSTOP,
    STALE,
    STRANGE,
    TOUCH,
    UNASKED,
    WHOLE,
    Figures,
    accepted,
    backwards,
    beyond_limits,
    brakes,
    false_holds,
    held,
    motors_stand,
    ouch,
    place_m,
    stale,
    stands,
    stop_ms,
    unasked_mm,
)
from bench.faults.nodes import BOMB
from bench.faults.rig import HOLDING, STOPPED, FaultError, Rig
from bench.faults.window import WINDOW
from nodes.mcap.file import BagReader

Trial = Callable[[Rig], Figures]


def back(trial: Trial) -> Trial:
    """That trial, and that whoever was killed in it comes back without moving anything."""

    def and_back(rig: Rig) -> Figures:
        return {**trial(rig), UNASKED: unasked_mm(rig)}

    return and_back


def killed(rig: Rig) -> Figures:
    """SIGKILL of the policy at full speed."""
    rig.wait_moving()
    return held(rig, rig.send_signal("policy", signal.SIGKILL))


def frozen(rig: Rig) -> Figures:
    """SIGSTOP of the policy, and SIGCONT: nothing old is applied."""
    rig.wait_moving()
    start_ns = rig.send_signal("policy", signal.SIGSTOP)
    try:
        figures = held(rig, start_ns)
    finally:
        rig.send_signal("policy", signal.SIGCONT)
    rig.wait_moving()
    return {**figures, STALE: stale(rig, start_ns)}


def robot_frozen(rig: Rig) -> Figures:
    """SIGSTOP of guard and driver while the policy goes on: its commands pile up, and none of them is applied."""
    rig.wait_moving()
    start_ns = rig.send_signal("robot", signal.SIGSTOP)
    try:
        figures = motors_stand(rig, start_ns)
        time.sleep(1.0)
        stood_m = place_m(rig)
    finally:
        rig.send_signal("robot", signal.SIGCONT)
    figures[UNASKED] = unasked_mm(rig, stood_m)
    rig.wait_moving()
    return {**figures, STALE: stale(rig, start_ns)}


def robot_killed(rig: Rig) -> Figures:
    """SIGKILL of guard and driver: the motors stop by themselves."""
    rig.wait_moving()
    return motors_stand(rig, rig.send_signal("robot", signal.SIGKILL))


def supervisor_killed(rig: Rig) -> Figures:
    """SIGKILL of the supervisor: its children end, and the robot stands."""
    rig.wait_moving()
    rig.watch_children()
    start_ns = rig.send_signal("supervisor", signal.SIGKILL)
    figures = motors_stand(rig, start_ns)
    rig.wait("children gone", rig.are_children_gone, 5.0)
    return {**figures, GONE: (time.monotonic_ns() - start_ns) * MS}


def window(number: signal.Signals, then: signal.Signals | None = None) -> Trial:
    """The window in which the run was started gets a signal, and then the run; all of it ends as by Ctrl-C."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        rig.watch_children()
        start_ns = time.monotonic_ns()
        os.kill(int((rig.folder / WINDOW).read_text()), number)
        if then is not None:
            start_ns = rig.send_signal("supervisor", then)
        figures = {**brakes(rig, start_ns), **motors_stand(rig, start_ns)}
        rig.wait("children gone", rig.are_children_gone, 5.0)
        gone_ms = (time.monotonic_ns() - start_ns) * MS
        closed = [BagReader(path).is_complete for path in rig.recordings()]
        return {**figures, GONE: gone_ms, WHOLE: float(bool(closed) and all(closed))}

    return trial


def without(name: str, number: signal.Signals) -> Trial:
    """A stop while that process is dead or frozen; a process of a node that is frozen is killed then."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        pid, sent_ns = rig.pid(name), rig.send_signal(name, number)
        try:
            time.sleep(0.1)
            start_ns = time.monotonic_ns()
            time.sleep(0.3)
            holds = false_holds(rig, start_ns)
            figures = {**ouch(rig), FALSE_HOLDS: holds}
        finally:
            if name == "supervisor" and number == signal.SIGSTOP:  # nobody else would end that
                rig.send_signal(name, signal.SIGCONT)
        if name != "supervisor" and number == signal.SIGSTOP:
            figures[KILLED] = rig.wait_killed(name, pid, sent_ns)
        return figures

    return trial


def crash_loop(rig: Rig) -> Figures:
    """A process that dies at every start: three restarts, then the run ends as failed and the robot stands."""
    rig.process.wait(120.0)
    rig.wait("standing", lambda: rig.motors.count == 0 or stands(rig), 5.0)
    text = "".join(rig.output)
    return {"restarts": text.count("] restarted"), "exit code": float(rig.process.returncode or 0)}


def switched(trial: Trial, **flags: int) -> Trial:
    """That trial with something wrong from the moment on at which the robot moves."""

    def with_flags(rig: Rig) -> Figures:
        rig.wait_moving()
        try:
            for name, value in flags.items():
                rig.switches[name] = value
            time.sleep(0.4)
            return trial(rig)
        finally:
            rig.switches.clear()

    return with_flags


def silenced(**flags: int) -> Trial:
    """The policy's commands become worthless: that is silence."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        start_ns = time.monotonic_ns()
        for name, value in flags.items():
            rig.switches[name] = value
        try:
            return {**held(rig, start_ns), LIMITS: beyond_limits(rig, start_ns)}
        finally:
            rig.switches.clear()

    return trial


def undisturbed(mode: int = 0, seconds: float = 1.5, **flags: int) -> Trial:
    """Something is wrong that must not matter: the robot goes on or holds, within its limits, and stops as ever."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        start_ns = time.monotonic_ns()
        rig.switches["mode"] = mode
        for name, value in flags.items():
            rig.switches[name] = value
        try:
            time.sleep(seconds)
            holds = false_holds(rig, start_ns)
            rig.switches["mode"] = 0  # a policy that is refused cannot be stopped from moving
            return {
                **ouch(rig),
                LIMITS: beyond_limits(rig, start_ns),
                STALE: stale(rig, start_ns),
                FALSE_HOLDS: holds,
                "backwards": backwards(rig, start_ns),
            }
        finally:
            rig.switches.clear()

    return trial


def flooded(mode: int) -> Trial:
    """A stop while thousands of commands a second arrive, and what that costs the robot's process."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        rig.switches["mode"] = mode
        try:
            start, cpu_s = time.monotonic(), rig.cpu_s("robot")
            count = accepted(rig)
            time.sleep(1.0)
            took = time.monotonic() - start
            share = (rig.cpu_s("robot") - cpu_s) / took
            applied = (accepted(rig) - count) / took
            return {**ouch(rig), "CPU of the robot's process, %": share * 100, "commands taken a second": applied}
        finally:
            rig.switches.clear()

    return trial


def fallen(rig: Rig, trial: Trial = ouch) -> Figures:
    """The whole trial, and that every process still lives."""
    rig.wait_whole()
    before = rig.run.states()
    figures = trial(rig)
    for name, state in rig.run.states().items():
        if state.pid != before[name].pid:
            raise FaultError(f"{name} was restarted: {state.state}")
        os.kill(state.pid, 0)
    return figures


def numb(rig: Rig) -> Figures:
    """The robot's driver goes on, and what it reads is always the same old state: no motion without feedback."""
    rig.wait_moving()
    start_ns = time.monotonic_ns()
    rig.switches["numb"] = 1
    try:
        found = held(rig, start_ns)
        held_ns = next(record[0] for record in rig.guard.since(start_ns) if record[1] == HOLDING)
        return {NUMB: (held_ns - start_ns) * MS, STALE: found[STALE], LIMITS: beyond_limits(rig, start_ns)}
    finally:
        rig.switches.clear()


def touched(rig: Rig) -> Figures:
    """A joint feels a contact; from the robot's reading of it to the braking profile."""
    rig.wait_moving()
    start_ns = time.monotonic_ns()
    rig.switches["touch"] = 1
    try:
        return {TOUCH: stop_ms(rig, start_ns)}
    finally:
        rig.switches.clear()


def runstopped(rig: Rig) -> Figures:
    """The runstop on the robot itself; to the last command of the guard, and that its release moves nothing."""
    rig.wait_moving()
    start_ns = time.monotonic_ns()
    rig.switches["runstop"] = 1
    try:
        record = rig.wait_mode(STOPPED, start_ns, "stopped by the runstop")
        rig.resume()
        time.sleep(0.2)
        last = rig.guard.last()
        is_lifted = last is None or last[1] != STOPPED
    finally:
        rig.switches.clear()
    return {RUNSTOP: (record[0] - start_ns) * MS, LIFTED: float(is_lifted), UNASKED: unasked_mm(rig)}


def piling_up(rig: Rig) -> Figures:
    """Images of 3 MB ten times a second, and a subscriber that is frozen until it is killed: the camera's growth."""
    rig.wait_moving()
    rig.switches["image"] = 3
    try:
        time.sleep(1.0)  # its buffers have their size by then
        before_mb = rig.memory_mb("camera")
        pid, start_ns = rig.pid("recorder"), rig.send_signal("recorder", signal.SIGSTOP)
        time.sleep(0.4)
        figures = ouch(rig)
        killed_ms = rig.wait_killed("recorder", pid, start_ns)
        return {**figures, KILLED: killed_ms, PILED: rig.memory_mb("camera") - before_mb}
    finally:
        rig.switches.clear()


def recorder_killed(rig: Rig) -> Figures:
    """SIGKILL of the recorder: what of its file is missing, up to the kill; and the robot goes on."""
    rig.wait_moving()
    number = len(rig.recordings())
    time.sleep(1.2)  # so that there is something to lose
    start_ns = rig.send_signal("recorder", signal.SIGKILL)
    figures = {**ouch(rig)}
    rig.wait("another file of the recording", lambda: len(rig.recordings()) > number)
    newest, gaps, last = 0, 0, 0
    for message in BagReader(rig.recordings()[number - 1]):
        envelope = message.envelope
        if message.topic == "robot/state":
            newest = envelope.published_ns
        elif message.topic == "fence":  # events are not conflated: each one that was sent is there
            gaps += 0 < last < envelope.seq - 1  # a guard that was restarted counts from the start again
            last = envelope.seq
    return {**figures, LOST: (start_ns - newest) * MS, GAPS: gaps}


def garbled(mode: int, seconds: float = 2.0) -> Trial:
    """Frames that are no commands arrive by the thousand, or are large; none acts, nobody falls, nothing grows."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        before_mb, record = rig.memory_mb("robot"), rig.guard.last()
        assert record is not None
        start_ns = time.monotonic_ns()
        rig.switches["mode"] = mode
        try:
            if mode == BOMB:
                send_oversized(rig.run, "robot")
            time.sleep(seconds)
            figures = fallen(rig)
        finally:
            rig.switches.clear()
        last = rig.guard.last()
        assert last is not None
        figures |= {STRANGE: last[10] - record[10], REFUSED: last[11] - record[11]}
        grown_mb = max(0.0, rig.memory_mb("robot") - before_mb)  # it may give some back meanwhile
        return {**figures, GROWN: grown_mb, LIMITS: beyond_limits(rig, start_ns), STALE: stale(rig, start_ns)}

    return trial
