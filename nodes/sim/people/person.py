"""`ScenarioPerson`: the person of a scenario, with a body: says, points, holds out, takes, nods, stands in the way.

It sees the simulator's truth, as a person in the room would, and hears what the robot says. In the end it judges by
what really is: all of `right` holds, and nothing of `wrong` has ever held. Where a real person has spoken, too, nobody
judges whose word the robot followed.
"""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import msgspec

from nodes.msgs import Utterance
from nodes.sim.messages import BodyPart, ObjectTruth, ScenarioVerdict, Truth
from nodes.sim.people.simulated_person import FORGIVE_AFTER_S, SimulatedPerson
from nodes.sim.world.scenario import (
    DEMO,
    DOES,
    ScenarioEvent,
    file_of,
    holds,
    load_scenario,
    named,
    scripted,
    thing_of,
    together,
    with_rows,
    wordings_of,
    world_of,
)
from runtime import Publisher, Stamped, Subscription, UserError, every, on, to_ns, to_s

HAND_MPS = 0.6
RATE_HZ = 20
OFFER_M = (-0.62, 0.66)
"""y and z of a palm that is held out over the table."""
BEFORE_M = 0.26
"""A pointing hand stops this far before what it points at."""
AISLE_X_M, NORTH_Y_M = 1.45, 2.12
ROBOT_ROOM_M = 0.55
"""Half the width of the way that a standing robot takes up for who walks past it."""
LEAVE_S = 1.5
"""Between the last words and the end of the run."""
HAND_ASIDE_M, HAND_X_M = 0.25, (-0.45, 0.38)
"""An open hand waits so far beside what the robot holds out, and within these."""
ON_TABLE_M = 0.35
"""A thing higher than this and not in the bin stands on the table or is in the gripper; lower, it fell."""
FOOT_GAP_M, FOOT_HALF_M, FOOT_Z_M = 0.16, 0.13, 0.04
BASE_FRONT_M, BASE_BACK_M = 0.06, -0.26
"""Where the robot's base ends, before and behind its origin."""
CREEP_AFTER_S, CREEP_MPS = 3.0, 0.12
"""A foot that the robot has not touched by then is moved to where its base was, this fast."""
WITHDRAW_AFTER_S, WITHDRAW_MPS, WITHDRAWN_M = 0.6, 0.8, 0.9

PointM = tuple[float, float, float]


class Waypoint(msgspec.Struct, frozen=True):
    """A place that a part goes to, and how it is held there."""

    part: str
    at_m: PointM
    yaw_rad: float = math.pi / 2
    pitch_rad: float = 0.0
    gesture: str = ""
    pause_s: float = 0.0
    mps: float = HAND_MPS


class ScenarioPerson(SimulatedPerson):
    """Plays the person of the file `scenario`; `words` is another file with wordings, in tables by scenario name.

    `script` is one of the file's scripts ("": its first), `patience_s` for how long they wait (0: as the file says).
    `events` and `right` are rows in place of the file's: who says and does what when, and what holds in the end.
    """

    provenance = "script:person-1"
    again_s = FORGIVE_AFTER_S

    others = Subscription(Utterance, "heard")
    verdict = Publisher(ScenarioVerdict, "sim/verdict")

    def __init__(
        self, scenario: str = DEMO, words: str = "", script: str = "", patience_s: float = 0.0,
        events: tuple[ScenarioEvent, ...] = (), right: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        file = file_of(scenario)
        given = with_rows(scenario, events, right) if events or right else None
        found = given or scripted(load_scenario(scenario), script)
        verdict = found.verdict
        if verdict is None:
            raise UserError(f"{file}: has no [verdict], so that nobody can play it; say what is right in the end")
        if patience_s:
            found = msgspec.structs.replace(found, patience_s=patience_s)
        told = wordings_of(Path(words), file.stem) if words else {}
        super().__init__(found.person, found.patience_s)
        self.scenario, self.criteria = found, verdict
        self.words: dict[str, tuple[str, ...]] = {**found.words, **told}
        self.world, self.name_of = world_of(scenario), file.stem
        self.drawn = random.Random(0)
        self.seed = 0
        self.started_ns = self.arrived_ns = self.lively_ns = self.left_ns = 0
        self.due_ns: dict[int, int] = {}
        self.done: set[int] = set()
        self.happened_ns: dict[str | int, int] = {}  # when an event has, or last was said or done what it says or does
        self.guest = ""  # a real person who has spoken to the robot
        self.is_foot_out = False
        self.wrong = ""
        self.motions: list[Waypoint] = []
        self.at: dict[str, Waypoint] = {part: Waypoint(part, place) for part, place in self.world.person.items()}
        self.paused_until_ns = 0
        self.swing: tuple[str, int] | None = None
        self.now: Truth | None = None

    def on_start(self) -> None:
        """The run's seed draws wordings and places."""
        self.started_ns = self.clock.now_ns()
        self.seed = self.run_info.seed
        self.drawn = random.Random(f"{self.name_of}/{self.seed}")

    @on(SimulatedPerson.said)
    def listen(self, utterance: Utterance) -> None:
        """What the robot says."""
        self.lively_ns = self.clock.now_ns()
        for number, event in enumerate(self.scenario.events):
            kind, _, what = event.when.partition(": ")
            if kind == "said" and self.arrived_ns and re.search(what, utterance.text, re.I):
                self._come_about(number, event)
            elif kind == "silent" and event.after in self.happened_ns:
                self.done.add(number)

    @on(others)
    def notice(self, utterance: Stamped[Utterance]) -> None:
        """What a person at a terminal or a page says may change what is wanted."""
        if utterance.envelope.provenance.startswith("person"):
            self.guest = utterance.message.speaker

    @on(SimulatedPerson.truth)
    def watch(self, truth: Truth) -> None:
        """What the robot does, and the time that goes by."""
        now_ns = self.clock.now_ns()
        self.now = truth
        if truth.is_moving or self.motions or self.swing:
            self.lively_ns = now_ns
        if not self._has_begun(now_ns):
            return
        for number, event in enumerate(self.scenario.events):
            kind, _, what = event.when.partition(": ")
            since_ns = self.happened_ns.get(event.after, 0)
            is_overdue = event.by_s > 0.0 < since_ns and to_s(now_ns - since_ns) >= event.by_s
            if is_overdue or kind == "silent" or (kind in ("is", "ever") and holds(what, truth)):
                self._come_about(number, event)
        if self.scenario.forgives:
            foot, is_out = self.at["foot"].at_m if "foot" in self.at else (0.0, 0.0, 0.0), self.is_foot_out
            self.forgive(is_clear=not is_out or foot[1] - truth.robot_y_m >= WITHDRAWN_M)
        self.wrong = self.wrong or next((one for one in self.criteria.wrong if holds(one, truth)), "")
        for number, event in enumerate(self.scenario.events):
            if number not in self.done and self.due_ns.get(number, now_ns + 1) <= now_ns:
                self._happen(number, event)
        self._conclude(now_ns, truth)

    @every(hz=RATE_HZ)
    def move(self) -> None:
        """One step of the hand on its way, or of a nod."""
        now_ns = self.clock.now_ns()
        self._swing(now_ns)
        if not self.motions or now_ns < self.paused_until_ns:
            return
        motion = self.motions[0]
        here, step_m = self.at[motion.part], motion.mps / RATE_HZ
        left_m = math.dist(here.at_m, motion.at_m)
        if left_m > step_m:
            share = step_m / left_m
            x, y, z = (a + share * (b - a) for a, b in zip(here.at_m, motion.at_m, strict=True))
            now = msgspec.structs.replace(motion, at_m=(x, y, z), gesture=here.gesture)
        else:
            now = motion
            self.motions.pop(0)
            self.paused_until_ns = now_ns + to_ns(motion.pause_s)
        self._show(now)
        if motion.part == "hand":
            self._follow(now.at_m)
        elif motion.part == "body":
            self._show(msgspec.structs.replace(self.at["foot"], at_m=(*now.at_m[:2], self.world.person["foot"][2])))

    # --- events

    def _has_begun(self, now_ns: int) -> bool:
        if not self.arrived_ns:
            if self.guard.latest() is not None:
                self.arrived_ns = self.lively_ns = now_ns
            return False
        if to_s(now_ns - self.arrived_ns) < self.scenario.arrival_s:
            return False
        self.happened_ns.setdefault("", now_ns)
        for number, event in enumerate(self.scenario.events):
            if event.when == "start":
                self._plan(number)
        return True

    def _come_about(self, number: int, event: ScenarioEvent) -> None:
        """What an event waits for is so; it is planned where what it comes after has happened since it did."""
        since_ns = self.happened_ns.get(event.after, 0 if event.after else self.arrived_ns)
        is_anew = number not in self.happened_ns or not event.after or self.happened_ns[number] <= since_ns
        if since_ns and is_anew and (not event.only or self._is_right() == (event.only == "right")):
            self._plan(number)

    def _is_right(self) -> bool:
        """All that has to be in the end, or somebody else has said what that is."""
        return bool(self.guest) or (self.now is not None and all(holds(one, self.now) for one in self.criteria.right))

    def _plan(self, number: int) -> None:
        self.due_ns.setdefault(number, self.clock.now_ns() + to_ns(self.scenario.events[number].after_s))

    def _happen(self, number: int, event: ScenarioEvent) -> None:
        now_ns = self.clock.now_ns()
        self.lively_ns = now_ns
        if event.again:
            del self.due_ns[number]
        else:
            self.done.add(number)
        self.happened_ns |= dict.fromkeys((number, *filter(None, (event.say, event.do))), now_ns)
        if event.do:
            self._do(event.do)
        if event.say:
            texts = self.words.get(event.say, (event.say,))
            self.say(texts[self.seed % len(texts)], event.who)
        if number + 1 < len(self.scenario.events) and self.scenario.events[number + 1].when == "then":
            self._plan(number + 1)

    def _do(self, do: str) -> None:
        verb = next(one for one in DOES if do == one or do.startswith(one + " "))
        about = thing_of(do, verb)
        match verb:
            case "nod" | "shake":
                self.swing = verb, self.clock.now_ns()
            case "withdraw":
                self.motions += [
                    Waypoint("hand", self._over(self.at["hand"].at_m)),
                    Waypoint("hand", self.world.person["hand"]),
                ]
            case "offer hand" | "hold out":
                x = self.drawn.uniform(-0.35, 0.30)
                self.motions += [Waypoint("hand", (x, -1.2, 0.9))]
                self.motions += [Waypoint("hand", (x, *OFFER_M), gesture="open")]
            case "reach out":
                x = self._beside_what_is_held()
                self.motions += [Waypoint("hand", (x, -1.2, 0.9)), Waypoint("hand", (x, *OFFER_M), gesture="open")]
            case "step in":
                self.motions += self._step_in() if "body" in self.at else self._put_foot_out()
            case "step aside":
                self.motions += self._step_aside() if "body" in self.at else self._pull_foot_back()
            case "wait":
                pass
            case "leave":
                self.left_ns = self.clock.now_ns()
            case _:
                self._do_with(verb, do, self._thing(about))

    def _do_with(self, verb: str, do: str, thing: ObjectTruth) -> None:
        x, y, z = thing.x_m, thing.y_m, thing.z_m
        if verb == "point at":
            behind = -1.0 if y < 1.0 else 1.0
            hand = (x, y + behind * BEFORE_M, z + 0.14)
            pitch = math.atan2(0.14, BEFORE_M)
            self.motions += [
                Waypoint("hand", self._over(hand)),
                Waypoint("hand", hand, -behind * math.pi / 2, pitch, "point"),
            ]
        elif verb == "look at":
            face = self.at["face"].at_m
            yaw = math.atan2(y - face[1], x - face[0])
            pitch = math.atan2(face[2] - z, math.hypot(x - face[0], y - face[1]))
            self._show(Waypoint("face", face, yaw, pitch))
        elif verb == "rest at":
            hand = (x, y - 0.13, z)
            self.motions += [Waypoint("hand", self._over(hand)), Waypoint("hand", hand)]
        else:  # put, bring
            place = self.world.places[do.rpartition(" on ")[2] if " on " in do else do.rpartition(" in ")[2]]
            px, py = self._free(place.slots_m(), thing)
            lowest = place.z_m + 0.02 if place.form == "flat" else place.z_m + 0.04
            drop = (px, py, lowest + 0.014 if thing.held_by == "person" else lowest + thing.height_m / 2)
            carried = thing.held_by == "person"
            start = self.at["hand"].at_m if carried else (x, y, z - 0.02)
            hold = "" if carried else f"hold:{thing.name}"
            if not carried:
                self.motions += [Waypoint("hand", self._over(start)), Waypoint("hand", start, gesture=hold)]
            self.motions.append(Waypoint("hand", _above(start)))  # what stands beside it is not touched
            self.motions += [*self._way(start, drop), Waypoint("hand", _above(drop)), Waypoint("hand", drop)]
            self.motions += [Waypoint("hand", drop, gesture="drop", pause_s=0.3), Waypoint("hand", _above(drop))]
            self.motions += [*self._way(drop, self.world.person["hand"]), Waypoint("hand", self.world.person["hand"])]

    def _free(self, slots: list[tuple[float, float]], thing: ObjectTruth) -> tuple[float, float]:
        """The slot that is furthest from all that stands there."""
        others = [one for one in (self.now.objects if self.now is not None else ()) if one.name != thing.name]
        return max(slots, key=lambda at: min((math.dist(at, (o.x_m, o.y_m)) for o in others), default=1.0))

    def _step_in(self) -> list[Waypoint]:
        """Into the robot's way to the countertop."""
        assert self.now is not None
        x, y = self.now.robot_x_m, self.now.robot_y_m
        at = (x * 0.3, min(y + 0.62, 0.9))
        return [
            Waypoint("body", (AISLE_X_M, -1.2, 0.75)),
            Waypoint("body", (AISLE_X_M, at[1], 0.75)),
            Waypoint("body", (*at, 0.75)),
        ]

    def _step_aside(self) -> list[Waypoint]:
        """Out by the aisle; away from a robot that stands between, until it has gone by."""
        assert self.now is not None
        x, y, z = self.at["body"].at_m
        robot_x, robot_y = self.now.robot_x_m, self.now.robot_y_m
        if x < robot_x and abs(robot_y - y) < ROBOT_ROOM_M:
            return [Waypoint("body", (min(x, robot_x - 2 * ROBOT_ROOM_M), y, z))]
        return [Waypoint("body", (AISLE_X_M, y, z)), Waypoint("body", self.world.person["body"])]

    def _beside_what_is_held(self) -> float:
        """x of a hand beside what the robot holds, on the side where less stands."""
        things = self.now.objects if self.now is not None else ()
        held_x_m = next((one.x_m for one in things if one.held_by == "robot"), 0.0)
        sides = [held_x_m + aside for aside in (-HAND_ASIDE_M, HAND_ASIDE_M)]
        sides = [side for side in sides if HAND_X_M[0] <= side <= HAND_X_M[1]] or [HAND_X_M[held_x_m < 0.0]]
        others = [one.x_m for one in things if one.held_by != "robot" and one.z_m > ON_TABLE_M]
        return max(sides, key=lambda side: min((abs(side - other) for other in others), default=1.0))

    def _put_foot_out(self) -> list[Waypoint]:
        """Before the base, or behind it where it drives back; and then against it."""
        assert self.now is not None
        x, y, heading = self.now.robot_x_m, self.now.robot_y_m, self.now.robot_heading_rad
        side = math.copysign(1.0, self.now.robot_v_mps)
        ahead = (BASE_FRONT_M if side > 0 else BASE_BACK_M) + side * (FOOT_HALF_M + FOOT_GAP_M)
        at = (x + math.cos(heading) * ahead, y + math.sin(heading) * ahead + 0.04, FOOT_Z_M)
        self._show(Waypoint("foot", at))
        self.is_foot_out = True
        return [Waypoint("foot", at, pause_s=CREEP_AFTER_S), Waypoint("foot", (x - 0.1, *at[1:]), mps=CREEP_MPS)]

    def _pull_foot_back(self) -> list[Waypoint]:
        """Out of the way, and on to where nobody sees it."""
        assert self.now is not None
        self.mark("hurt")
        self.motions[:] = [one for one in self.motions if one.part != "foot"]
        self.paused_until_ns = self.clock.now_ns() + to_ns(WITHDRAW_AFTER_S)
        x, y, z = self.at["foot"].at_m
        away = (x + math.copysign(0.1, x - self.now.robot_x_m), y + WITHDRAWN_M + 0.1, z)
        return [Waypoint("foot", point, mps=WITHDRAW_MPS) for point in (away, self.world.person["foot"])]

    def _over(self, at: PointM) -> PointM:
        """Where a hand comes from that reaches there: from behind the table, or from behind the countertop."""
        return (at[0], -1.2, max(at[2], 0.9)) if at[1] < 1.0 else (at[0], NORTH_Y_M, max(at[2], 0.9))

    def _way(self, start: PointM, end: PointM) -> list[Waypoint]:
        """Round the robot: along the east wall."""
        if (start[1] < 1.0) == (end[1] < 1.0):
            return [Waypoint("hand", self._over(start)), Waypoint("hand", self._over(end))]
        corners = [(AISLE_X_M, -1.2, 1.0), (AISLE_X_M, NORTH_Y_M, 1.0)]
        corners = corners if start[1] < 1.0 else corners[::-1]
        return [Waypoint("hand", point) for point in (self._over(start), *corners, self._over(end))]

    def _thing(self, words: str) -> ObjectTruth:
        assert self.now is not None
        return named(words, self.now.objects)[0]

    def _show(self, motion: Waypoint) -> None:
        self.at[motion.part] = motion
        x, y, z = motion.at_m
        self.body.publish(
            BodyPart(
                part=motion.part, x_m=x, y_m=y, z_m=z, yaw_rad=motion.yaw_rad, pitch_rad=motion.pitch_rad,
                gesture=motion.gesture,
            )
        )  # fmt: skip

    def _follow(self, hand: PointM) -> None:
        """The rest of the body goes with the hand, on its own side of the furniture."""
        x, y = (min(max(hand[0], -0.6), 1.75), -1.3) if hand[1] < -0.3 else (1.75, hand[1])
        for part, z in (("body", 0.75), ("face", 1.5), ("foot", 0.04)) if "body" in self.at else ():
            self._show(msgspec.structs.replace(self.at[part], at_m=(x, y, z)))

    def _swing(self, now_ns: int) -> None:
        """A nod or a shake of the head: two and a half swings."""
        if self.swing is None:
            return
        verb, began_ns = self.swing
        turned = 0.3 * math.sin(2 * math.pi * to_s(now_ns - began_ns) / 0.7)
        if to_s(now_ns - began_ns) > 1.75:
            self.swing, turned = None, 0.0
        face = self.at["face"]
        yaw = math.pi / 2 + (turned if verb == "shake" else 0.0)
        self._show(msgspec.structs.replace(face, yaw_rad=yaw, pitch_rad=turned if verb == "nod" else 0.0))

    # --- the verdict

    def _conclude(self, now_ns: int, truth: Truth) -> None:
        missing = [one for one in self.criteria.right if not holds(one, truth)]
        waits_for_more = any(
            number not in self.done and event.when in ("start", "then")
            for number, event in enumerate(self.scenario.events)
        ) and any(number in self.due_ns and number not in self.done for number in range(len(self.scenario.events)))
        quiet_s = to_s(now_ns - self.lively_ns)
        is_late = to_s(now_ns - self.arrived_ns) > self.scenario.patience_s
        is_quiet = quiet_s > (self.scenario.quiet_s if missing else self.scenario.done_s) and not waits_for_more
        has_left = bool(self.left_ns) and to_s(now_ns - self.left_ns) > LEAVE_S
        if not (is_late or is_quiet or has_left or self.wrong):
            return
        is_judged = not (self.guest and has_left)
        is_right = (not self.wrong and not missing) or not is_judged
        duration_s = to_s(now_ns - self.started_ns)
        self.verdict.publish(
            ScenarioVerdict(is_right=is_right, wrong_deed=self.wrong, missing=tuple(missing), duration_s=duration_s)
        )
        seen = "; ".join(f"not: {one}" for one in together(missing)) or "; ".join(together(self.criteria.right))
        if not is_judged:
            whose = f"{self.guest} gave orders, too, so nobody judges whose the robot followed"
            self.finish(ok=True, reason=f"{whose}: {seen}")
        else:
            self.finish(ok=is_right, reason=f"wrong deed: {self.wrong}" if self.wrong else seen)


def _above(at: PointM) -> PointM:
    return at[0], at[1], 0.95
