"""`Driving`: whether what a person holds at a page moves the robot, and why not.

Nobody drives by a picture, a robot's state or a key that may be out of date.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from bridges.web.console.driving import teleop
from bridges.web.console.driving.floor_path import Way
from bridges.web.console.ports import ConsolePorts
from bridges.web.console.seat_requests import Seats
from bridges.web.http.open_page import Session
from bridges.web.http.wire import ActRequest, Drive, PointedPlace
from nodes.msgs import RobotState, SceneDescription, SeenObject
from nodes.robot.protocol import Hand, RobotLimits
from runtime.clock import to_ns, to_s

TOLD_NS = to_ns(3.0)
"""So long the reason stands beside the controls why something held moves nothing."""
NEAR_M = 0.15
"""A click means the thing of that name this near to where the page saw it."""
OLDEST_SETPOINT_S = 0.25
OLDEST_PICTURE_S = 1.0
"""Nobody drives by a picture that is older."""
LATEST_S = 0.5
"""What was held longer ago than this and the link's own way there and back is not driven by."""
DEPTH = " depth"
"""What a camera's name ends in whose depth is meant."""
STILL_NS = to_ns(0.3)
"""Beats come ten times a second; a gap of this length was no ordinary one."""
DISTRUST_NS = to_ns(0.15)
"""So long after it, keys are not believed: a hand that still holds them sends them again."""
GAP_NS = to_ns(1.0)
"""Who holds a key says so 20 times a second; after a gap of this length nobody knows what is held."""
FORGET_NS = to_ns(60.0)


class SuspendDetector:
    """The beats of a process, and what their gaps mean."""

    def __init__(self) -> None:
        self._beat_ns = 0
        self._until_ns = 0

    def beat(self, now_ns: int) -> None:
        """The process is alive at this moment."""
        self._look(now_ns)
        self._beat_ns = now_ns

    def distrusts(self, now_ns: int) -> bool:
        """Whether what comes now may have waited since before a standstill."""
        self._look(now_ns)
        return now_ns < self._until_ns

    def _look(self, now_ns: int) -> None:
        if self._beat_ns and now_ns - self._beat_ns > STILL_NS:
            self._until_ns = now_ns + DISTRUST_NS


@dataclass(slots=True)
class Held:
    """That a page holds a key, since it was last let go."""

    heard_ns: int
    is_believed: bool


class HeldKeys:
    """Whose held keys count: those that were pressed, and told of all the time, since the last standstill."""

    def __init__(self) -> None:
        self.pages: dict[str, Held] = {}

    def hears(self, page: str, now_ns: int, *, is_held: bool, is_doubtful: bool) -> bool:
        """Whether to act on what a page says. `is_doubtful`: it may have waited since before a standstill."""
        if not is_held:
            self.pages.pop(page, None)
            return True  # to let go is always heard
        held = self.pages.get(page)
        if held is None:
            self.pages = {name: one for name, one in self.pages.items() if now_ns - one.heard_ns < FORGET_NS}
            held = self.pages[page] = Held(now_ns, is_believed=True)
        if is_doubtful or now_ns - held.heard_ns > GAP_NS:
            held.is_believed = False
        held.heard_ns = now_ns
        return held.is_believed


class Driving:
    """What pages hold down becomes joint commands."""

    def __init__(self, ports: ConsolePorts, seats: Seats, limits: RobotLimits, hand: Hand) -> None:
        self._ports, self._seats, self._limits, self._hand = ports, seats, limits, hand
        self.standstill = SuspendDetector()
        self._keys = HeldKeys()
        self._ways: dict[str, Way] = {}  # page -> how it goes to a place
        self._refusals: dict[str, tuple[str, int]] = {}  # page -> why it does not drive, when
        self._aimed: dict[str, tuple[SeenObject, int]] = {}  # page -> what it goes to, when last wanted

    def refusal(self, session: Session, now_ns: int) -> str:
        """Why what this page holds moves nothing: stands beside its controls for a moment. "" for no reason."""
        why, since_ns = self._refusals.get(session.ident, ("", 0))
        return why if now_ns - since_ns < TOLD_NS else ""

    def drive(self, session: Session, message: Drive, now_ns: int) -> None:
        """Move the robot by what is held, or note why not; for who holds the policy's seat."""
        if not self._seats.holds("policy", session):
            session.notice("take the policy's seat first")
            return
        self._refusals = {page: one for page, one in self._refusals.items() if now_ns - one[1] < TOLD_NS}
        if why_not := self._drive_or_say(session, message, now_ns):
            self._refusals[session.ident] = why_not, now_ns
        elif message.is_held:
            self._refusals.pop(session.ident, None)

    def _drive_or_say(self, session: Session, message: Drive, now_ns: int) -> str:
        """Do what is held; returns why not, or ""."""
        is_doubtful = self.standstill.distrusts(now_ns)
        if not self._keys.hears(session.ident, now_ns, is_held=message.is_held, is_doubtful=is_doubtful):
            return "let go and press again: something stood still, and a key that was held counts no more"
        round_trip_s = (session.round_trip_ms or 0.0) * 1e-3
        if message.at_ms and (late_s := now_ns * 1e-9 - message.at_ms * 1e-3 - round_trip_s) > LATEST_S:
            return f"what you hold came {late_s:.1f} s late: not driving by it"
        state = self._ports.robot.stamped()
        if state is None or state.age_s(now_ns) > OLDEST_SETPOINT_S:
            return "the robot's state is not known: not driving"
        if unknown := teleop.unknown_joints(message, self._limits.joints):
            return f"no joints: {', '.join(unknown)}"
        thing = self._aim_at(session, message.to, now_ns) if message.to is not None and message.to.label else None
        if message.to is not None and message.to.label and thing is None:
            return f"there is no {message.to.colour} {message.to.label} there any more".replace("  ", " ")
        thing_m = (thing.x_m, thing.y_m, thing.z_m) if thing is not None else None
        height_m = thing.height_m if thing is not None else 0.0
        way = self._way(session, message, state.message) if message.to is not None and thing is None else None
        if way is not None and way.why_not:
            return way.why_not
        aim = teleop.aim(message, self._limits, self._hand, state.message, thing_m, height_m, way)
        asked = self._ports.setpoint.stamped()
        is_known = asked is not None and asked.age_s(now_ns) <= OLDEST_SETPOINT_S
        here = asked.message.position if asked is not None and is_known else state.message.position
        # A person's command is as old as the robot's state it starts from, and as the picture they look at.
        views = (session.views.get(message.camera), session.views.get(message.camera + DEPTH))
        seen = [view.seen_image for view in views if view is not None and view.seen_image is not None]
        newest = sorted(seen, key=lambda image: image.message.captured_ns)[-1:]
        if newest and (old_s := to_s(now_ns - newest[0].message.captured_ns)) > OLDEST_PICTURE_S:
            return f"the picture of the {message.camera} camera is {old_s:.0f} s old: not driving by it"
        command = teleop.command(message, self._limits, here, state.message.velocity, aim)
        self._ports.command.publish(command, stems_from=(state, *newest))
        return aim.why_not

    def _way(self, session: Session, message: Drive, state: RobotState) -> Way | None:
        """The corners of the way to a spot on the floor, past what is known to stand there; kept while it is held."""
        if message.to is None or message.do != "go" or not self._limits.base.wheel_speed_mps:
            return None
        before = self._ways.get(session.ident)
        scene, believed = self._ports.scene.latest(), self._ports.believed.latest()
        self._ways = {session.ident: Way.to(message.to, state, scene, believed, before)}
        return self._ways[session.ident]

    def _aim_at(self, session: Session, to: PointedPlace, now_ns: int) -> SeenObject | None:
        """The thing that is meant; one that the hand hides, or carries, stays the same as long as the page holds on."""
        self._aimed = {page: one for page, one in self._aimed.items() if now_ns - one[1] < GAP_NS}
        before, _ = self._aimed.get(session.ident, (None, 0))
        is_same = before is not None and (before.label, before.colour) == (to.label, to.colour)
        thing = thing_meant(self._ports.scene.latest(), to) or (before if is_same else None)
        if thing is not None:
            self._aimed[session.ident] = thing, now_ns
        return thing


def thing_meant(scene: SceneDescription | None, message: ActRequest | PointedPlace) -> SeenObject | None:
    """The thing seen that the page means."""
    near = [
        (hypot(thing.x_m - message.x_m, thing.y_m - message.y_m), thing)
        for thing in (scene.objects if scene is not None else ())
        if (thing.label, thing.colour) == (message.label, message.colour)
    ]
    best = min(near, key=lambda pair: pair[0], default=None)
    return best[1] if best is not None and best[0] <= NEAR_M else None
