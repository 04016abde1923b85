"""`Training`: counts for a wizard who practises how a simulated table is cleared by hand, and makes a score of it."""

from __future__ import annotations

from nodes.msgs import GuardState, TrainingScore
from nodes.sim.messages import Truth
from nodes.sim.people.person import ON_TABLE_M
from runtime import LEASE_TOPIC, Lease, Node, ParameterError, Publisher, QoS, Subscription, every, on, to_s

EVERYTHING_POINTS, STOP_POINTS, DROPPED_POINTS, LATE_POINTS = 100, 5, 10, 20
"""All in the bin in time: 100. Off for each stop, each thing on the floor, and for twice the time."""


class Training(Node):
    """The clock runs from when somebody else than the policy first holds its seat until all things are in the bin.

    `kind` is what is to go into the bin, `limit_s` how long it should take.
    """

    truth = Subscription(Truth, "sim/truth")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    leases = Subscription(Lease, LEASE_TOPIC, qos=QoS(required=False))
    score = Publisher(TrainingScore, "training/score")

    def __init__(self, kind: str = "cup", limit_s: float = 480.0) -> None:
        if not 0.0 < limit_s < float("inf"):
            raise ParameterError(f"training: limit_s is {limit_s}; expected a positive number of seconds")
        self._kind, self._limit_s = kind, limit_s
        self._began_ns = self._ended_ns = 0
        self._stops, self._was_stopped = 0, False

    @on(leases)
    def begin(self, lease: Lease) -> None:
        """Somebody has taken over driving."""
        if lease.seat == "policy" and lease.kind == "person" and not self._began_ns:
            self._began_ns = self.clock.now_ns()

    @on(guard)
    def count_stops(self, state: GuardState) -> None:
        """Each time the robot is made to stand while the clock runs."""
        if self._began_ns and not self._ended_ns and state.is_stopped and not self._was_stopped:
            self._stops += 1
        self._was_stopped = state.is_stopped

    @every(hz=2)
    def tell(self) -> None:
        """The score of now."""
        truth = self.truth.latest()
        if truth is None:
            return
        mine = [thing for thing in truth.objects if thing.label == self._kind]
        done = sum(thing.is_in_bin for thing in mine)
        dropped = sum(not thing.is_in_bin and thing.z_m <= ON_TABLE_M for thing in truth.objects)
        now_ns = self.clock.now_ns()
        if self._began_ns and not self._ended_ns and mine and done == len(mine):
            self._ended_ns = now_ns
        elapsed_s = to_s((self._ended_ns or now_ns) - self._began_ns) if self._began_ns else 0.0
        self.score.publish(
            TrainingScore(
                task=f"{self._kind}s into the bin",
                done=done,
                of=len(mine),
                elapsed_s=elapsed_s,
                stops=self._stops,
                dropped=dropped,
                points=points(done, len(mine), elapsed_s / self._limit_s, self._stops, dropped),
                is_over=bool(self._ended_ns),
            )
        )


def points(done: int, of: int, time_share: float, stops: int, dropped: int) -> int:
    """0 to 100. `time_share` is the time that it took as a share of what it may take."""
    late = min(max(time_share - 1.0, 0.0), 1.0)
    found = EVERYTHING_POINTS * done / max(1, of) - STOP_POINTS * stops - DROPPED_POINTS * dropped - LATE_POINTS * late
    return round(min(max(found, 0.0), EVERYTHING_POINTS))
