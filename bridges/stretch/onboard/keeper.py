"""`Keeper`: who may move the robot, and what its lanes are to do; decisions without sockets, threads or clock.

One driver at a time holds a lease. A lease lapses by silence, by the runstop, and while the robot homes or stows; goals
under a lapsed lease are not followed, so nothing sets off again by itself. A lane writes the newest goals at its own
rate, and a hold within 13 ms; what it did not get to write is forgotten, not queued.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from bridges.stretch.onboard.body import BUS_PERIOD_S, STEPPER_PERIOD_S, StretchHardware
from bridges.stretch.onboard.words import Goals, MotionOrder, Reading

SILENCE_S = 0.15
"""The driver speaks 50 times a second; after this long without it everything is held, and its lease is over."""
BUSY_SILENCE_S = 0.5
"""While it homes or stows, which only the runstop ends, silence of this long presses the runstop."""
BREATH_NS = 12_500_000
"""Beyond 80 pushes a second the power board drops some: so soon after goals a hold waits."""
PRESS_AGAIN_NS = 50_000_000
PRESS_FOR_NS = 1_000_000_000


@dataclass(frozen=True)
class Wanted:
    """What the lanes are to do, and when it was heard; without goals, that their motors stand."""

    goals: Goals | None = None
    heard_ns: int = 0


class WireLane:
    """What goes over one wire: the newest goals no faster than it can take them, a hold at once."""

    def __init__(self, name: str, period_s: float, send: Callable[[Goals], None], hold: Callable[[], None]) -> None:
        self.name = name
        self._period_ns = round(period_s * 1e9)
        self._send, self._hold = send, hold
        self._sent_ns = 0
        self.is_held = True
        self.age_ms = 0.0
        """How old goals were when they had been written, the last time."""
        self.problems = 0

    def turn(self, wanted: Wanted, now_ns: Callable[[], int]) -> None:
        """Write what is due; what the library raises is counted and told to the log."""
        try:
            started_ns = now_ns()
            if wanted.goals is None:
                if not self.is_held and started_ns - self._sent_ns >= BREATH_NS:
                    self._hold()
                    self.is_held = True
                return
            if started_ns - self._sent_ns < self._period_ns:
                return
            self._sent_ns = started_ns
            self.is_held = False
            self._send(wanted.goals)
            self.age_ms = (now_ns() - wanted.heard_ns) * 1e-6
        except Exception as problem:  # noqa: BLE001  # a board or a bus that left, in any of its words
            self.problems += 1
            if self.problems in (1, 10, 100):
                print(f"lane {self.name}: {type(problem).__name__}: {problem}", file=sys.stderr, flush=True)


class Keeper:
    """The state of the conversation with the one driver. `spawn` runs what blocks, beside everything else."""

    def __init__(self, body: StretchHardware, spawn: Callable[[Callable[[], None]], None], now_ns: int) -> None:
        self._body, self._spawn = body, spawn
        self.wanted = Wanted()
        self.lanes = (
            WireLane("steppers", STEPPER_PERIOD_S, body.send_steppers, body.hold_steppers),
            WireLane(
                "wrist",
                BUS_PERIOD_S,
                lambda goals: body.send_bus("end_of_arm", goals),
                lambda: body.hold_bus("end_of_arm"),
            ),
            WireLane("head", BUS_PERIOD_S, lambda goals: body.send_bus("head", goals), lambda: body.hold_bus("head")),
        )
        self.is_closing = False
        self._counter = self._lease = self._lapsed = 0
        self._heard_ns = now_ns
        self._busy = ""
        self._verb_begun = self._verb_done = 0
        self._verb_problem = ""
        self._is_runstopped = False
        self._press: tuple[bool, int, int] | None = None  # on or off, again at, until
        self.replayed = 0

    def hear(self, order: MotionOrder, now_ns: int) -> None:
        """An order that the driver signed."""
        if order.counter <= self._counter:
            self.replayed += 1
            return
        self._counter = order.counter
        self._heard_ns = now_ns
        if order.verb and order.verb_number > self._verb_begun:
            self._verb_begun = order.verb_number
            self._begin(order.verb, now_ns)
        if self._lease == 0 and order.lease > self._lapsed and not self._busy and not self._is_runstopped:
            self._lease = order.lease
        is_live = self._lease != 0 and order.lease == self._lease
        self.wanted = Wanted(order.goals if is_live else None, now_ns)

    def watch(self, now_ns: int) -> None:
        """Notice silence, and press again what was not yet seen to be pressed."""
        silent_s = (now_ns - self._heard_ns) * 1e-9
        if silent_s > SILENCE_S:
            self._lapse()
        if self._busy and silent_s > BUSY_SILENCE_S and self._press is None and not self._is_runstopped:
            self._begin("runstop", now_ns)
        if self._press is not None:
            is_on, again_ns, until_ns = self._press
            if self._is_runstopped is is_on or now_ns > until_ns:
                self._press = None
            elif now_ns >= again_ns:
                self._press = (is_on, now_ns + PRESS_AGAIN_NS, until_ns)
                self._spawn(lambda: self._body.runstop(is_on))

    def told(self, reading: Reading, refused: int) -> Reading:
        """A reading of the robot with the state of the conversation in it."""
        self._is_runstopped = reading.is_runstopped
        if reading.is_runstopped or not reading.is_homed:
            self._lapse()
        return msgspec.structs.replace(
            reading,
            lease=self._lease,
            busy=self._busy,
            verb_number=self._verb_done,
            verb_problem=self._verb_problem,
            order_age_ms={lane.name: lane.age_ms for lane in self.lanes},
            refused=refused + self.replayed,
        )

    @property
    def is_busy(self) -> bool:
        """It homes or stows."""
        return bool(self._busy)

    def _lapse(self) -> None:
        if self._lease:
            self._lapsed, self._lease = self._lease, 0
        if self.wanted.goals is not None:
            self.wanted = Wanted()

    def _begin(self, verb: str, now_ns: int) -> None:
        number = self._verb_begun
        if verb in ("runstop", "release"):
            self._lapse()
            is_on = verb == "runstop"
            self._press = (is_on, now_ns + PRESS_AGAIN_NS, now_ns + PRESS_FOR_NS)
            self._spawn(lambda: self._body.runstop(is_on))
            self._done(number, "")
        elif verb in ("home", "stow"):
            if self._busy:
                self._done(number, f"the robot does not {verb} while it is {self._busy}")
                return
            self._lapse()
            self._busy = {"home": "homing", "stow": "stowing"}[verb]
            self._spawn(lambda: self._do(verb, number))
        elif verb == "close":
            self._lapse()
            self.is_closing = True
            self._done(number, "")

    def _do(self, verb: str, number: int) -> None:
        problem = self._body.home() if verb == "home" else self._body.stow()
        self._done(number, problem)
        self._busy = ""

    def _done(self, number: int, problem: str) -> None:
        self._verb_problem = problem
        self._verb_done = max(self._verb_done, number)
