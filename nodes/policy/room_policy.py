"""`KitchenPolicy`: the scripted policy with the skills of a kitchen, which keeps off people.

It trusts the positions of its action. While a person's hand is where the arm goes, or somebody stands before a base
that drives, it holds still and goes on when they are gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from nodes.msgs import JOINTS, Action, Feedback, RobotState, Scene, SeenObject, SeenPerson, SkillSpec, Utterance
from nodes.policy.expert import RATE_HZ, ExpertPolicy
from nodes.policy.hand_over import HAND_OVER, onto_palm
from nodes.policy.people_in_the_way import PATIENCE_S, is_hand_near, is_somebody_ahead
from nodes.policy.sight import spot_of
from nodes.policy.skill_catalogue import PLACE, SPECS, THING, Plan
from nodes.policy.skill_phases import LEAVE, PICK, SET_DOWN, Phase, Spot, plan
from nodes.robot.route import find_route
from nodes.sim.messages import Obstacles
from nodes.sim.world.world_file import FreeSpace, Place, WorldFile, load_world
from runtime import Publisher, QoS, Subscription, every, on

RINSE_S = 2.5
ABOVE_FLOOR_M = 0.03
RINSE_ASIDE_M, RINSE_ROOM_M = 0.08, 0.13
"""So far beside the middle of a sink there is room, too; what lies nearer than this is in the way."""
STROKE_M, STROKE_DEEP_M = 0.15, 0.13
TWIST_RAD = 0.8
PALM_HALF_M = 0.014
"""From the middle of a hand to its upper side."""
WITH_PEOPLE = ("hand_over", "take")

KITCHEN_SPECS = {
    spec.name: spec
    for spec in (
        msgspec.structs.replace(HAND_OVER.spec, undo="take"),  # type: ignore[type-var]  # a Struct
        SkillSpec(
            name="take", sentence="Take the thing that a person holds out.", arguments=(THING,),
            before=("hand empty", "thing seen"), after=("holding",), usual_s=9.0, risk="person", undo="hand_over",
        ),
        SkillSpec(
            name="rinse", sentence="Hold what is held under the tap of the place.", arguments=(PLACE,),
            before=("holding", "place seen"), after=("holding",), usual_s=9.0, risk="contact",
        ),
        SkillSpec(
            name="wipe", sentence="Draw the sponge that is held over the place.", arguments=(PLACE,),
            before=("holding", "place seen"), after=("holding",), usual_s=12.0, risk="contact",
        ),
        SkillSpec(
            name="open", sentence="Turn the lid of the thing open.", arguments=(THING,),
            before=("hand empty", "thing seen"), usual_s=11.0, risk="contact", undo="close",
        ),
        SkillSpec(
            name="close", sentence="Turn the lid of the thing closed.", arguments=(THING,),
            before=("hand empty", "thing seen"), usual_s=11.0, risk="contact", undo="open",
        ),
        SkillSpec(
            name="wait_here", sentence="Stay before a machine until it has filled what stands there.",
            arguments=(THING, PLACE), usual_s=10.0, risk="still",
        ),
        SkillSpec(
            name="drive", sentence="Drive to the place and turn the arm to it.", arguments=(PLACE,), usual_s=12.0,
            risk="free",
        ),
        SkillSpec(name="retreat", sentence="Raise and draw in the arm.", usual_s=4.0, risk="free"),
    )
}  # fmt: skip

_FOLD = Phase("fold", "drawing in the arm", "travel", ("lift", "folded"), 12.0, "the arm does not draw in", folds=True)
RETREAT = (replace(_FOLD, succeeds=True),)
_DRIVE = Phase(
    "drive",
    "driving to the {it}",
    "travel",
    ("there",),
    40.0,
    "the base does not get to the {it}",
    folds=True,
    drives=True,
)
_CARRY = SET_DOWN[0]
_DIP = Phase("dip", "rinsing it in the {it}", "set down", ("lift",), 8.0, "something is in the {it}", carries=True)
_RINSE = Phase("rinse", "rinsing it in the {it}", "keep", ("time",), 9.0, "", carries=True, lasts_s=RINSE_S)
_LIFT_OFF = Phase(
    "raise", "raising it", "travel", ("lift",), 8.0, "the hand does not come up", carries=True, succeeds=True
)
_LAY_ON = Phase("lay on", "wiping the {it}", "set down", ("lift",), 8.0, "something is on the {it}", carries=True)
_STROKE = Phase(
    "stroke", "wiping the {it}", "keep", ("base",), 12.0, "something is in the way on the {it}", goes=True, slides=True,
    carries=True,
)  # fmt: skip
_UP = Phase(
    "up", "letting go of the {it}", "travel", ("lift",), 8.0, "the lift does not come up", opens=True, rolls_rad=0.0
)


def rinse_spot(place: Place, things: Sequence[SeenObject]) -> tuple[float, float, float]:
    """Where in a sink there is most room for what is rinsed, and how deep its bottom goes, m: above what lies there."""
    middle, y = place.centre_m
    lying = [one for one in things if not one.is_place and place.contains(one.x_m, one.y_m, one.z_m)]

    def room(x: float) -> float:
        return min((math.dist((x, y), (one.x_m, one.y_m)) for one in lying), default=1.0)

    at = [middle + aside for aside in (0.0, -RINSE_ASIDE_M, RINSE_ASIDE_M) if place.holds(middle + aside, y)]
    x = max(at, key=lambda one: (round(room(one), 2), -abs(one - middle)))
    tops = [one.z_m + one.height_m / 2 for one in lying if math.dist((x, y), (one.x_m, one.y_m)) < RINSE_ROOM_M]
    return x, y, min(max([place.floor_z_m, *tops]) + ABOVE_FLOOR_M, place.z_m - ABOVE_FLOOR_M)


class KitchenPolicy(ExpertPolicy):
    """`world` is the file with the map of the room ("": ours)."""

    made_for_joints = JOINTS
    robot_parameter = ""

    obstacles = Subscription(Obstacles, "obstacles", qos=QoS(required=False, lifespan_s=1.0))
    excuse = Publisher(Utterance, "said")

    def __init__(self, world: str = "") -> None:
        self.kitchen: WorldFile = load_world(world or "kitchen")
        super().__init__(tallest_m=self.kitchen.room.tallest_m, sees=False)
        self.specs = {**SPECS, **KITCHEN_SPECS}
        self.waited_s = 0.0

    @every(hz=RATE_HZ)
    def tick(self) -> None:
        state = self.state.latest()
        if state is None or self.progress is None or self.is_over or not self._in_the_way(state):
            self.waited_s = 0.0
            super().tick()
            return
        self.waited_s += 1 / RATE_HZ
        phase = self.progress.phase
        if phase is not None and phase.drives and self.waited_s > PATIENCE_S and self.current is not None:
            self.is_over = True
            self._answer(Feedback(action_id=self.current.id, status="failure", why="somebody is in the way"))
        self.progress = replace(self.progress, goal=self.motion.resting(state, self.progress.held))
        self._publish(self.progress, 0.0, 0.0)

    @on(ExpertPolicy.scene)
    def see(self, scene: Scene) -> None:
        """A nod is a person's own yes to what the policy asked."""
        for one in scene.people:
            if one.gesture == "nod":
                self.confirmations.agree(self.clock.now_ns())

    def knows(self, label: str) -> bool:
        """Whether the map of its room has that kind."""
        return label in self.kitchen.kinds or label in self.kitchen.places

    def _seen_people(self) -> tuple[SeenPerson, ...]:
        """None: where somebody's hand is, it waits until it is gone."""
        return ()

    def _in_the_way(self, state: RobotState) -> bool:
        """Whether a person is where the phase under way goes."""
        assert self.progress is not None
        phase, spot = self.progress.phase, self.progress.spot
        if phase is None or spot is None:
            return False
        if phase.drives or (phase.goes and abs(state.base_v_mps) > 0.05):
            return is_somebody_ahead(spot, state, self.obstacles.latest())
        if self.current is None or self.current.skill in WITH_PEOPLE or phase.lift == "travel":
            return False
        return is_hand_near(spot, super()._seen_people())

    def _plan(self, action: Action, state: RobotState, held: Spot | None) -> Plan | str:
        match action.skill:
            case "drive":
                return self._drive(action, state)
            case "wait_here":
                return ""
            case "retreat":
                return plan(RETREAT, _before(state))
            case "take":
                assert action.target is not None
                return plan(PICK, spot_of(action.target))
            case "open" | "close":
                return self._twist(action, state)
            case "rinse" | "wipe" | "hand_over":
                if held is None or not state.is_grasping:
                    return f"there is nothing in the gripper to {action.skill.replace('_', ' ')}"
                assert action.target is not None
                return self._with_held(action.skill, action.target, held)
        return super()._plan(action, state, held)

    def _with_held(self, skill: str, target: SeenObject, held: Spot) -> Plan | str:
        if skill == "hand_over":
            return onto_palm(target.x_m, target.y_m, target.z_m + PALM_HALF_M, held)
        place = self.kitchen.places.get(target.label)
        if place is None:
            return f"I know no {target.label}"
        if skill == "rinse":
            scene = self.scene.peek()
            x, y, bottom = rinse_spot(place, scene.message.things if scene is not None else ())
            spot = replace(held, name=target.label, x_m=x, y_m=y, z_m=bottom + held.height_m / 2)
            return plan((_CARRY, _DIP, _RINSE, _LIFT_OFF), spot)
        middle = self._free_stretch(place)
        ends = [replace(held, name=target.label, x_m=at[0], y_m=at[1], z_m=place.z_m + held.height_m / 2)
                for at in (place.point_m(middle + side * STROKE_M, STROKE_DEEP_M) for side in (-1, 1, -1))]  # fmt: skip
        strokes = tuple((_STROKE, end) for end in ends[1:])
        return ((_CARRY, ends[0]), (_LAY_ON, ends[0]), *strokes, (_LIFT_OFF, ends[2]))

    def _free_stretch(self, place: Place) -> float:
        """Where along the place there is most room for a stroke, m from its middle."""
        scene = self.scene.peek()
        taken = [(one.x_m, one.y_m) for one in (scene.message.things if scene is not None else ()) if not one.is_place]
        most = place.length_m / 2 - STROKE_M - 0.05
        points = [most * step / 6 for step in range(-6, 7)] if most > 0 else [0.0]

        def room(along: float) -> float:
            strip = [place.point_m(along + side * STROKE_M, STROKE_DEEP_M) for side in (-1.0, 0.0, 1.0)]
            return min((math.dist(at, one) for at in strip for one in taken), default=1.0)

        return max(points, key=lambda along: (round(room(along), 2), -abs(along)))

    def _twist(self, action: Action, state: RobotState) -> Plan | str:
        if state.is_grasping:
            return "the hand is not free"
        assert action.target is not None
        sign = 1 if action.skill == "open" else -1
        turn = Phase("turn", "turning the lid of the {it}", "keep", ("rolled",), 5.0, "the lid of the {it} is stuck",
                     rolls_rad=sign * TWIST_RAD)  # fmt: skip
        let_go = Phase("let go", "letting go of the {it}", "keep", ("open",), 3.0, "the gripper does not open",
                       opens=True, then="empty", succeeds=True, rolls_rad=sign * TWIST_RAD)  # fmt: skip
        return plan((*PICK[:3], turn, let_go, LEAVE, _UP), spot_of(action.target))

    def _drive(self, action: Action, state: RobotState) -> Plan | str:
        target = action.target
        assert target is not None
        pose = self.kitchen.stand_for(target.x_m, target.y_m)
        near = self.obstacles.latest()
        circles = (*near.furniture, *near.people) if near is not None else ()
        name = target.name
        way = find_route(FreeSpace(self.kitchen, circles), (state.base_x_m, state.base_y_m), pose[:2])
        if way is None:
            return f"there is no way to the {name}"
        corners = [Spot(name, x, y, 0.9, 0.0) for x, y in way]
        last = replace(corners[-1], heading_rad=pose[2])
        fold = replace(_FOLD, until=("lift", "folded"))
        return (
            (fold, corners[0]), *((_DRIVE, corner) for corner in corners[:-1]), (replace(_DRIVE, succeeds=True), last)
        )  # fmt: skip


def _before(state: RobotState) -> Spot:
    c, s = math.cos(state.base_heading_rad), math.sin(state.base_heading_rad)
    return Spot("arm", state.base_x_m + 0.5 * c + 0.3 * s, state.base_y_m + 0.5 * s - 0.3 * c, 0.9, 0.0)
