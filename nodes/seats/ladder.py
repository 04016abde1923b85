"""`Ladder`: what happens, step by step, when the holder of a seat falls silent. The launch file has the steps.

The guard holds a robot without commands within its `lifespan_s`. The ladder does what is slower: it tells people why,
lets another candidate take over, and does not go on by itself after a long silence.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from nodes.msgs import (
    GuardState,
    Interrupt,
    JointCommand,
    OutOfBudget,
    RobotState,
    SceneDescription,
    SeatRequest,
    Subtask,
    Utterance,
)
from runtime import RELIABLE, URGENT, Lease, Node, ParameterError, Publisher, QoS, Subscription, every, on, to_s
from runtime.launch.tables.seats_table import Rung, SeatTable

NAMES: dict[str, str] = {"planner": "planner", "vlm": "vision model", "policy": "control policy"}


DRIVER_GONE = "I do not feel my body any more. It stops by itself."
DRIVER_BACK = "I feel my body again."
GO_ON = " I wait until you tell me."


@dataclass
class SeatWatch:
    """The state of one seat: when its holder was last heard, and which step of the ladder was taken last."""

    rungs: tuple[Rung, ...]
    heard_ns: int = 0  # 0: never; a holder that has not begun is not silent
    done: int = 0
    is_person: bool = False
    holder: str = ""  # who sits there, once the guard has said so
    is_new: bool = False  # a holder that was not heard yet: its first word is no return
    spent: str = ""  # why its model may not be asked any more: as good as silent, whatever else it says


class Ladder(Node):
    """Watches the messages of each seat's holder: subtask, description, command. A person on a seat may stay silent.

    A holder that is heard again starts at the top of the ladder; a stop still waits for a person to say go on. Below
    all seats is the driver: after `driver_gone_s` seconds without a robot state, the ladder says that the robot stops
    itself. Run it in another process than the driver's, so that both do not fail together. Raises ParameterError where
    `driver_gone_s` is not a positive number.
    """

    subtask = Subscription(Subtask, "subtask", qos=QoS(required=False))
    description = Subscription(SceneDescription, "description", qos=QoS(required=False))
    command = Subscription(JointCommand, "command", qos=QoS(required=False))
    lease = Subscription(Lease, "lease", qos=QoS(required=False))
    state = Subscription(RobotState, "robot/state", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    out_of_budget = Subscription(OutOfBudget, "seat/out_of_budget", qos=QoS(required=False))

    said = Publisher(Utterance, "said", qos=RELIABLE)
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    request = Publisher(SeatRequest, "seat/request", qos=RELIABLE)

    def __init__(self, speaker: str = "robot", driver_gone_s: float = 1.0) -> None:
        if not 0.0 < driver_gone_s < float("inf"):
            raise ParameterError(f"ladder: driver_gone_s is {driver_gone_s}; expected a positive number of seconds")
        self.speaker = speaker
        self.driver_gone_s = driver_gone_s
        self.is_driver_gone = False
        self.watches: dict[str, SeatWatch] = {}
        self.progress = ""
        self.count = 0

    def on_start(self) -> None:
        """Read the ladders of the seats from the launch file."""
        tables = msgspec.convert(self.run_info.seats, dict[str, SeatTable])
        self.watches = {
            seat: SeatWatch(tables[seat].ladder) for seat in NAMES if seat in tables and tables[seat].ladder
        }

    @on(subtask)
    def planned(self, subtask: Subtask) -> None:
        """Note that the planner was heard."""
        self._heard("planner")

    @on(description)
    def described(self, description: SceneDescription) -> None:
        """Note that the VLM was heard, and whether it works on a subtask."""
        self.progress = description.progress
        self._heard("vlm")

    @on(command)
    def commanded(self, command: JointCommand) -> None:
        """Note that the policy was heard."""
        self._heard("policy")

    @on(lease)
    def leased(self, lease: Lease) -> None:
        """Give a new holder its time to begin."""
        watch = self.watches.get(lease.seat)
        if watch is not None and not lease.is_repetition:
            watch.is_person, watch.holder, watch.is_new = lease.kind == "person", lease.holder, True
            watch.heard_ns = self.clock.now_ns() if watch.heard_ns else 0
            watch.spent = ""

    @on(out_of_budget)
    def spent(self, message: OutOfBudget) -> None:
        """Treat a holder that may not ask its model any more as silent, until somebody else holds the seat."""
        watch = self.watches.get(message.seat)
        if watch is not None and not watch.spent:
            watch.spent, watch.heard_ns, watch.done = message.why, self.clock.now_ns(), 0
            self.log.warning("%s: %s", message.seat, message.why)

    @every(hz=5)
    def tick(self) -> None:
        """Take the next step of each seat that has been silent for long enough."""
        now_ns = self.clock.now_ns()
        self._check_driver()
        for seat, watch in self.watches.items():
            if not watch.heard_ns or watch.is_person or watch.done >= len(watch.rungs):
                continue
            rung = watch.rungs[watch.done]
            if to_s(now_ns - watch.heard_ns) < rung.silent_s:
                continue
            if rung.after_subtask and self.progress == "working":
                continue
            watch.done += 1
            if rung.do == "hand_over" and rung.to == watch.holder:
                continue  # it is the one that is silent
            silent_s = to_s(now_ns - watch.heard_ns)
            self._take(seat, rung, watch.spent or f"the {NAMES[seat]} has been silent for {silent_s:.1f} s")

    def _check_driver(self) -> None:
        state = self.state.peek()
        if state is None:
            return
        is_gone = state.age_s() > self.driver_gone_s
        if is_gone is not self.is_driver_gone:
            self.is_driver_gone = is_gone
            self.log.warning("driver: %s", "gone, the robot stops itself" if is_gone else "heard again")
            guard = self.guard.peek()
            is_stopped = guard is not None and (guard.message.is_stopped or guard.message.mode == "disarmed")
            self._say(DRIVER_GONE if is_gone else DRIVER_BACK + (GO_ON if is_stopped else ""))

    def _heard(self, seat: str) -> None:
        watch = self.watches.get(seat)
        if watch is None or watch.spent:
            return
        watch.heard_ns = self.clock.now_ns()
        is_back, watch.done, watch.is_new = watch.done > 0 and not watch.is_new, 0, False
        if is_back:
            self.log.warning("%s: heard again", seat)
            self._say(f"My {NAMES[seat]} is back.")

    def _take(self, seat: str, rung: Rung, why: str) -> None:
        self.log.warning("%s: %s%s: %s", seat, rung.do, f" to {rung.to}" if rung.to else "", why)
        self._say(rung.text)
        if rung.do == "hand_over":
            self.request.publish(SeatRequest(seat=seat, do="take", holder=rung.to, kind="script", by=self.name))
        elif rung.do == "hold":
            self.count += 1
            self.interrupt.publish(
                Interrupt(id=f"{self.name}-{self.count}", depth="stop", text=why, by="ladder", cause="ladder")
            )

    def _say(self, text: str) -> None:
        if text:
            self.said.publish(Utterance(speaker=self.speaker, text=text))
