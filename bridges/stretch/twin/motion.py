"""Motors that follow profiles between hard stops; positions and speeds in the motor's own units."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Motor:
    """One motor with what it moves. `lowest` and `highest` are its hard stops, in the numbers of a calibrated one."""

    lowest: float
    highest: float
    place: float
    sag: float = 0.0
    """How fast it gives way, without torque, towards its lower stop."""
    offset: float = 0.0
    """What it reports is its place and this: wrong until it is homed."""
    speed: float = 0.0
    effort_percent: float = 0.0
    goal: tuple[float, float, float] | None = None
    """Where to, how fast at most, acceleration; in what it reports."""
    velocity: tuple[float, float] | None = None
    """Speed to keep, acceleration."""
    has_torque: bool = True
    obstacles: dict[str, float] = field(default_factory=dict)
    """It does not get above ("above") or below ("below") these places."""
    load_percent: float = 3.0
    is_blocked: bool = False

    @property
    def position(self) -> float:
        """What it reports."""
        return self.place + self.offset

    def stand(self) -> None:
        """Forget where it was to go."""
        self.goal = self.velocity = None

    def step(self, seconds: float) -> None:
        """Let time pass."""
        speed = self._wanted(seconds)
        if not self.has_torque:
            speed = -self.sag
        after = self.place + speed * seconds
        low = max(self.lowest, self.obstacles.get("below", -math.inf))
        high = min(self.highest, self.obstacles.get("above", math.inf))
        self.is_blocked = (after < low and speed < 0) or (after > high and speed > 0)
        if self.is_blocked:
            after = min(max(after, min(low, self.place)), max(high, self.place))
            self.effort_percent = math.copysign(95.0, speed) if self.has_torque else 0.0
            speed = 0.0
        else:
            self.effort_percent = math.copysign(self.load_percent, speed) if speed else 0.0
        self.place, self.speed = after, speed

    def _wanted(self, seconds: float) -> float:
        if self.velocity is not None:
            wanted, change = self.velocity[0], self.velocity[1] * seconds
            return self.speed + min(max(wanted - self.speed, -change), change)
        if self.goal is None:
            return 0.0
        there, fastest, acceleration = self.goal
        left = there - self.position
        change = acceleration * seconds
        # So fast that it can still brake, seen from where the next step ends.
        braking = math.sqrt(2 * acceleration * abs(left) + change * change / 4) - change / 2
        wanted = math.copysign(min(fastest, max(braking, 0.0)), left)
        speed = self.speed + min(max(wanted - self.speed, -2 * change), 2 * change)
        if abs(left) <= abs(speed) * seconds and abs(self.speed) <= 2 * change:
            self.place += left
            return 0.0
        return speed
