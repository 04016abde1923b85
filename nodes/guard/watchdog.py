"""The watchdog: a program of its own beside the process of a guard, which presses the robot's runstop where that fails.

`python -I -S .../watchdog.py FOLDER`; the supervisor of a run starts it, and so can systemd. It uses the standard
library alone and imports nothing of ours, so that one wrong line of the runtime does not stop both. The guard tells it
25 times a second what it does (`nodes.guard.feed`); it answers each time, and a guard without an answer stops by
itself. What it cannot do stands in docs/watchdog.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from math import cos, exp, hypot, inf, isfinite, pi, sin, tau
from pathlib import Path
from zlib import crc32

SILENT_S = 0.25
"""A guard that may move the robot and tells nothing for so long is frozen, dead or mad."""
OVERSLEPT_S = 0.1
"""Who was not called for longer than this has seen nothing itself, and judges nobody's silence by it."""
AFTER_STOP_M, AFTER_STOP_RAD, LATE_S, OVERSHOOT, STANDS_S = 0.05, 0.1, 0.4, 1.3, 1.0
"""How far a stopped base may go; until it stands, that much further than asked, and than `LATE_S` of its speed."""
AWAY = 0.1
"""How far, m or rad, a joint of a stopped robot may go away both from where it was and from where it is asked to be."""
APART_M, APART_RAD, APART_SHARE, FORGETS_S = 0.16, 0.4, 0.2, 2.0
"""How far two ways of the base may lie apart, beside a share of the longer one: twice what the guard allows."""
REST_MPS, REST_RADPS = 0.02, 0.04
OWN_GONE_S, OWN_QUIET_S, LONGEST_LINE = 0.5, 2.0, 1024  # of the robot's own way: gone, told to be, and bytes
COMMAND_S, AGAIN_S, MOST_TRIES = 1.0, 2.0, 3
"""How long a command that presses may take, and after how long it is tried again."""
LOOK_S, BEATS_S, PRIORITY = 0.04, 0.5, 18
"""Its turns and its signs of life; and of SCHED_FIFO, below the guard's loop and above what brings it messages."""
FEED, ECHO = "watchdog", "watched"
"""The sockets in the run's folder: the watchdog's, and the guard's."""
STOPPED = ("stopped", "estopped")

Numbers = Sequence[float]


class BaseWay:
    """The way of the base by one source, ahead, left and turned; it decays, so that noise does not add up."""

    def __init__(self) -> None:
        self.way, self.length, self.at_s = [0.0] * 3, [0.0] * 3, 0.0

    def add(self, step: Numbers, now_s: float) -> None:
        keeps = exp(-(now_s - (self.at_s or now_s)) / FORGETS_S)
        self.way = [keeps * way + one for way, one in zip(self.way, step, strict=True)]
        self.length = [keeps * way + abs(one) for way, one in zip(self.length, step, strict=True)]
        self.at_s = now_s


class BaseReading:
    """What one teller says of the base: its place by odometry, its speed, and the ways by both."""

    def __init__(self) -> None:
        self.pose: Numbers = ()
        self.speed: Numbers = (0.0, 0.0, 0.0)
        self.by_speed, self.by_odometry, self.at_s = BaseWay(), BaseWay(), 0.0

    def take(self, pose: Numbers, speed: Numbers, measured_s: float, now_s: float) -> None:
        """`pose` is x, y, heading; `speed` ahead, left, turning; `measured_s` is when, by the teller's clock."""
        dt_s = measured_s - self.at_s
        if not self.pose or not 0.0 < dt_s <= SILENT_S:
            if dt_s == 0.0 and self.pose:
                return  # told twice
            self.by_speed, self.by_odometry = BaseWay(), BaseWay()
        else:
            turned = (pose[2] - self.pose[2] + pi) % tau - pi
            x, y, ahead = pose[0] - self.pose[0], pose[1] - self.pose[1], self.pose[2] + turned / 2
            moved = (x * cos(ahead) + y * sin(ahead), y * cos(ahead) - x * sin(ahead), turned)
            self.by_odometry.add(moved, now_s)
            self.by_speed.add([(a + b) / 2 * dt_s for a, b in zip(self.speed, speed, strict=True)], now_s)
        self.pose, self.speed, self.at_s = pose, speed, measured_s


class Standstill:
    """A stop: where the robot was when it began, and how far it may go until it stands."""

    def __init__(self, reading: BaseReading, joints: Numbers, targets: Numbers) -> None:
        self._reading, self._pose, self._joints = reading, reading.pose, joints
        self._behind = [abs(a - b) for a, b in zip(joints, targets, strict=True)]
        self._may_m = AFTER_STOP_M + LATE_S * hypot(*reading.speed[:2])
        self._may_rad = AFTER_STOP_RAD + LATE_S * abs(reading.speed[2])
        self._gone_m = self._gone_rad = 0.0  # by speed alone, where the odometry says nothing
        self._stands, self._braked_s = False, 0.0  # since it is asked to stand

    def has_moved(self, asked: Numbers, joints: Numbers, targets: Numbers, dt_s: float) -> bool:
        """Call it each time that the guard tells something."""
        pose, turning = self._reading.pose, abs(self._reading.speed[2])
        speed = hypot(*self._reading.speed[:2])
        is_still = speed <= REST_MPS and turning <= REST_RADPS
        self._braked_s = 0.0 if any(asked) else self._braked_s + dt_s
        if not self._stands and self._braked_s and (is_still or self._braked_s > STANDS_S):
            self._stands, self._pose, self._gone_m, self._gone_rad = True, pose, 0.0, 0.0
            self._may_m, self._may_rad = AFTER_STOP_M, AFTER_STOP_RAD
        self._may_m += OVERSHOOT * hypot(*asked[:2]) * dt_s
        self._may_rad += OVERSHOOT * abs(asked[2]) * dt_s
        self._gone_m += speed * dt_s * (speed > REST_MPS)
        self._gone_rad += turning * dt_s * (turning > REST_RADPS)
        away_m = hypot(pose[0] - self._pose[0], pose[1] - self._pose[1])
        turned_rad = abs((pose[2] - self._pose[2] + pi) % tau - pi)
        if max(away_m, self._gone_m) > self._may_m or max(turned_rad, self._gone_rad) > self._may_rad:
            return True
        each = zip(joints, self._joints, targets, self._behind, strict=False)
        return any(abs(now - then) > AWAY and abs(now - target) > off + AWAY for now, then, target, off in each)


class Watch:
    """What the watchdog knows, and whether it must act. Times are of this program's clock, in s."""

    def __init__(self) -> None:
        self.pid = 0
        self.may_move = False
        self._counter, self._heard_s, self._looked_s, self.own_s = -1, 0.0, 0.0, 0.0
        self._fault = ""
        self._told, self._own = BaseReading(), BaseReading()
        self._stops: list[Standstill] = []  # by what the guard tells, and by the robot's own way

    def hear(self, frame: bytes, now_s: float) -> int | None:
        """Take in what the guard tells; its counter, or None where that is no word of a guard that runs."""
        checksum, _, body = frame.partition(b" ")
        try:
            if int(checksum, 16) != crc32(body):
                return None
            pid, counter, mode, may_move, asked, measured, joints, targets = json.loads(body)
            numbers = [*asked, *measured, *joints, *targets]
            is_known = len(asked) == 3 and len(measured) == 7 and all(map(isfinite, numbers))
        except (ValueError, TypeError):
            return None
        if pid == self.pid and counter <= self._counter:
            return None
        if pid != self.pid and self.may_move:
            self.may_move, self._fault = False, "the guard was lost while the robot might move"
            return None
        if pid != self.pid or not may_move or not self.may_move or not is_known:
            self._told, self._own, self._stops = BaseReading(), BaseReading(), []
        dt_s = min(now_s - self._heard_s, SILENT_S)
        self.pid, self._counter, self.may_move, self._heard_s = pid, counter, bool(may_move), now_s
        if self.may_move and is_known:
            self._told.take(measured[1:4], measured[4:], measured[0], now_s)
            self._judge(mode in STOPPED, (asked, joints, targets, dt_s), now_s)
        return int(counter)

    def see(self, line: bytes, now_s: float) -> None:
        """Take in a line of the robot's own way: x, y, heading, and the speeds ahead, left and of turning."""
        with suppress(ValueError):
            numbers = [float(part) for part in line.split()]
            if len(numbers) == 6 and all(map(isfinite, numbers)):
                self._own.take(numbers[:3], numbers[3:], now_s, now_s)
                self.own_s = now_s

    def look(self, now_s: float) -> str:
        """Why the robot must be stopped by its own means now; "" where it need not."""
        slept_s, self._looked_s = now_s - (self._looked_s or now_s), now_s
        if slept_s > OVERSLEPT_S:  # frozen itself, or no processor: everybody gets the time once more
            self._heard_s = now_s
        if self._own.pose and now_s - self._own.at_s > OWN_GONE_S:
            self._own, self._stops = BaseReading(), self._stops[:1]
        if self.may_move and now_s - self._heard_s > SILENT_S:
            return f"the guard has been silent for {SILENT_S * 1000:.0f} ms"
        fault, self._fault = self._fault, ""
        return fault

    def _judge(self, is_stopped: bool, told: tuple[Numbers, Numbers, Numbers, float], now_s: float) -> None:
        tellers = [one for one in (self._told, self._own) if one.pose]
        if not is_stopped:
            self._stops = []
        elif any(stop.has_moved(*told) for stop in self._stops):
            self._fault = "the robot moves while it is stopped"
            return
        for one in tellers[len(self._stops) :] if is_stopped else ():
            self._stops.append(Standstill(one, *(told[1:3] if one is self._told else ((), ()))))
        sources = [source for one in tellers for source in (one.by_speed, one.by_odometry)]
        for axis, most in enumerate((APART_M, APART_M, APART_RAD)):
            ways = [source.way[axis] * exp(-(now_s - source.at_s) / FORGETS_S) for source in sources]
            length = max(source.length[axis] for source in sources)
            if max(ways) - min(ways) > most + APART_SHARE * length:
                self._fault = "two sources of the base's speed do not agree"


class Presser:
    """Presses by the command of the launch file; ends the guard's process where there is none, or it fails."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._since_s, self.tries = -AGAIN_S, 0
        self._pid, self._guard = 0, -1  # held, so that no other process ever has its number

    def act(self, why: str, pid: int, now_s: float, *, is_over: bool) -> None:
        """Call it at each turn; `why` is "" where nothing is wrong, `is_over` where the robot cannot move."""
        if pid != self._pid:
            self._pid, self._guard = pid, -1  # a guard's life is long: the handles of former ones stay
            with suppress(OSError, AttributeError):
                self._guard = os.pidfd_open(pid)
        if self._process is not None:
            code = self._process.poll()
            if code is None and now_s - self._since_s < COMMAND_S:
                return
            self._process = None  # one that takes too long may press yet
            what = f"{shlex.join(self._command)} {'takes too long' if code is None else 'failed'}"
            say("the runstop is pressed") if code == 0 else self._end(what)
        if is_over and not why:  # the next fault is another one
            self._since_s, self.tries = -AGAIN_S, 0
        elif why and now_s - self._since_s >= AGAIN_S and self.tries < MOST_TRIES:
            self._since_s, self.tries = now_s, self.tries + 1
            if self.tries > 1 or not self._command:
                self._end("")
            if self._command:
                try:
                    self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
                except OSError as problem:
                    self._end(f"{self._command[0]} cannot be started ({problem.strerror})")
            say(f"{why}: PRESS THE ROBOT'S OWN BUTTON; the watchdog presses what it can")

    def _end(self, why: str) -> None:
        """A robot that nobody commands stops by itself; of a Stretch, the process that has its boards holds them."""
        try:
            signal.pidfd_send_signal(self._guard, signal.SIGKILL)
            how = "is ended"
        except (OSError, AttributeError):
            how = "has ended"
        say(f"{why}{why and '; '}the process of the guard ({self._pid}) {how}")


def say(text: str) -> None:
    """Tell the supervisor, or nobody where that has gone: what is done does not wait for it."""
    with suppress(OSError):
        os.write(1, f"{text}\n".encode())


def watch(folder: Path, runstop: Sequence[str], state: Sequence[str], parent: int) -> None:
    """Until the run has ended: the guard has said so, or its supervisor has gone and it tells nothing any more."""
    seen, hand, feed, told = Watch(), Presser(runstop), folder / FEED, socket.socket()
    own, rest, echo, beat_s, seen.own_s = None, b"", str(folder / ECHO), 0.0, time.monotonic()
    feed.unlink(missing_ok=True)
    try:
        if state and (
            own := subprocess.Popen(state, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0).stdout
        ):
            os.set_blocking(own.fileno(), False)
    except OSError as problem:
        say(f"{state[0]} cannot be started ({problem.strerror}): the robot's state is read by one way only")
    while os.getppid() == parent or (seen.may_move and hand.tries < MOST_TRIES):
        time.sleep(LOOK_S)  # and not at each word: what wakes a program costs more than what it then does
        now_s = time.monotonic()
        if own is not None and now_s - seen.own_s > OWN_QUIET_S:
            seen.own_s = inf  # told once, until it prints one again
            say(f"{shlex.join(state)} prints no line of six numbers: the robot's state is read by one way only")
        if own is not None and (part := own.read(1 << 14)) is not None:
            *lines, rest = (rest[-LONGEST_LINE:] + part).split(b"\n")
            for line in lines:
                seen.see(line, now_s)
            if not part:
                own = None
                say(f"{shlex.join(state)} has ended: the robot's state is read by one way only")
        counter = None
        with suppress(OSError):
            while True:
                counter = seen.hear(told.recv(1 << 14), now_s) or counter
        with suppress(OSError):
            if not feed.exists():  # at first, and where somebody has tidied the folder
                told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
                told.bind(str(feed))
            told.connect(echo)  # each time: it may be another guard's, and from here on nobody else gets a word in
            if counter is not None:
                told.send(b"%d" % counter)
        hand.act(seen.look(now_s), seen.pid, now_s, is_over=not seen.may_move)
        if now_s - beat_s > BEATS_S:
            beat_s = now_s
            say("")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Watch the guard of a run, and press the robot's own runstop where it fails.",
        epilog="example: python -I -S watchdog.py /tmp/polyrhythm-0/hello --runstop 'press-the-button'",
    )
    parser.add_argument("folder", type=Path, help="the run's folder")
    parser.add_argument("--runstop", default="", help="the command that presses; default: end the guard's process")
    parser.add_argument("--state", default="", help="a command that prints x y heading ahead left turning, m, rad, s")
    asked = parser.parse_args()
    os.set_blocking(1, False)
    with suppress(OSError, AttributeError):  # without the right to it, it is as late as the machine is busy
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    watch(asked.folder, shlex.split(asked.runstop), shlex.split(asked.state), os.getppid())


if __name__ == "__main__":
    main()
