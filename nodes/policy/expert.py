"""`ExpertPolicy`: the scripted control policy. It acts on the VLM's action, its own head image and the robot's state.

Before its first action it publishes nothing, so starting it never moves the robot. From then on it publishes every
tick: a goal while acting, and between actions the posture that it ended in, which also keeps the fingers closed on
what they hold. While the robot is stopped it publishes the measured posture and its timeouts stand still; afterwards
the phase goes on from there. A new action takes over at once from wherever the robot is (see `skills`); a pick while
something else is held first puts that back where it was taken; to place what is held onto itself is to put it back.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from nodes.interrupts.people import HearsPeople
from nodes.msgs import (
    Action,
    Feedback,
    FeedbackCode,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    JointVector,
    RobotState,
    Scene,
    SeenPerson,
    SkillCatalogue,
    Utterance,
)
from nodes.policy.action_request import ActionRequest
from nodes.policy.allowed import SEEN_FOR_S, spares_hands, why_not
from nodes.policy.confirmations import Confirmations
from nodes.policy.sight import blend, is_hand_at, judge, knows, spot_of, state_at
from nodes.policy.skill_catalogue import SPECS, Plan, catalogue_of, load_skills
from nodes.policy.skill_phases import (
    LOOK,
    LOOK_ROUND,
    NOD,
    PICK,
    PLACE,
    POINT,
    PUT_BACK,
    SET_BACK,
    SET_DOWN,
    SHAKE,
    TOUCHED_M,
    OutOfReach,
    Phase,
    SkillMotion,
    SkillProgress,
    SkillStep,
    Spot,
    begin,
    plan,
    retreat,
    step,
)
from nodes.robot.robot_from_launch import ForRobot, load_body, load_motion
from nodes.seats.seat_node import SeatNode
from runtime import RELIABLE, Fence, ParameterError, Publisher, QoS, Stamped, Subscription, every, on, to_ns, to_s

RATE_HZ = 20
STATES_KEPT = 30
SAME_M = 0.05
"""A new action of the same skill this near the old target continues the one under way."""
BLEND = 0.5
GONE_IMAGES = 3
"""A thing that so many images in a row do not show where it should be is gone."""

LONGEST_TICK_NS = to_ns(0.1)
FIND_EVERY_S = 0.15
"""Finding things costs 5 to 10 ms; images between only show whether the place is empty."""

ARM_OFF_M = 0.30
"""Nearer than this the gripper hides a part of what it carries something to."""
BEYOND_M = (0.0, 0.08, -0.08)
"""Things are let go beside each other: upon each other, four cups would be a tower above the rim of a bin."""


@dataclass(frozen=True, slots=True)
class HeadView:
    """The newest image that the policy looked at, and what it says of the spot it was asked about."""

    image: Stamped[Image]
    spot: Spot
    found: Spot | None
    is_confirmed: bool
    gone: int  # images in a row
    has_hand: bool = False  # skin where the thing is said to be


_DONE_ALREADY = {"hold": "holding still", "place": "it was let go there already"}
StopState = Literal["free", "told", "held", "told and held"]
"""Free to act; told to stop by an interrupt; held by the guard; both."""
StopEvent = Literal["stop", "resume", "guard stops", "guard moves"]
STOPS: Mapping[tuple[StopState, StopEvent], StopState] = {
    ("free", "stop"): "told",
    ("held", "stop"): "told and held",
    ("told", "resume"): "free",
    ("told and held", "resume"): "held",
    ("free", "guard stops"): "held",
    ("told", "guard stops"): "told and held",
    ("held", "guard moves"): "free",
    ("told and held", "guard moves"): "free",
}
"""What is not listed changes nothing. The guard's word counts; an interrupt only gets here sooner."""


class ExpertPolicy(ForRobot, SeatNode, HearsPeople):
    """Pick, place, look, point, nod, shake the head and hold, as far as the robot's body can.

    `tallest_m` is the height up to which things may stand where the gripper passes; `sees=False` trusts the action's
    position without looking. `skills` are a package's own, as "module:NAME" (see `nodes.policy.skill_catalogue`).
    """

    realtime = True
    seat = "policy"
    effect_name = "chunk flushed"
    needs_body = True
    robot_parameter = "limits"

    action = Subscription(Action, "action")
    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    head_image = Subscription(Image, "head/image", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    scene = Subscription(Scene, "scene", qos=QoS(required=False, lifespan_s=SEEN_FOR_S))

    command = Publisher(JointCommand, "command")
    feedback = Publisher(Feedback, "feedback", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)
    skills = Publisher(SkillCatalogue, "skills")

    def __init__(
        self, tallest_m: float = 0.68, sees: bool = True, skills: tuple[str, ...] = (), limits: str = ""
    ) -> None:
        if not 0.0 <= tallest_m <= 2.0:
            raise ParameterError(f"policy: tallest_m is {tallest_m}; expected 0 to 2 m")
        self.tallest_m = tallest_m
        self.motion = motion_of(limits)
        self.added = load_skills(skills, SPECS)
        mine = {name: spec for name, spec in SPECS.items() if name in self.motion.skills}
        self.specs = {**mine, **{name: skill.spec for name, skill in self.added.items()}}
        self.sees = sees
        self.current: Action | None = None
        self.asked: ActionRequest | None = None
        self.progress: SkillProgress | None = None
        self.let_go: Counter[str] = Counter()  # how much, by place
        self.let_go_over = ""  # the place over which a deed was cut off while the gripper opened
        self.touched: Counter[str] = Counter()  # how often what was set down touched something too early, by place
        self.is_led_back = False  # by the guard
        self.kept: JointVector = ()  # the last goals
        self.confirmations = Confirmations(self.knows)
        self.is_over = True
        self.stop_state: StopState = "free"
        self.told = ""
        self.states: deque[RobotState] = deque(maxlen=STATES_KEPT)
        self.wanted: tuple[Phase, Spot] | None = None
        self.looked_ns = -1
        self.ticked_ns = 0
        self.view: HeadView | None = None
        self.used: Stamped[Image] | None = None  # by this tick, to correct the target
        self.next_find_ns = 0

    @every(hz=RATE_HZ)
    def tick(self) -> None:
        state = self.state.latest()
        if state is None:
            return  # nothing is known: silence, and the guard brakes
        self.states.append(state)
        self.look()
        now_ns = self.clock.now_ns()
        before_ns, self.ticked_ns = self.ticked_ns, now_ns
        if self.progress is None:
            return
        self.used = None
        if self.stop_state != "free":
            self.progress = replace(self.progress, goal=self.motion.resting(state, self.progress.held))
            self._publish(self.progress, 0.0, 0.0)
            return
        is_seen = self._use_view(state)
        done = step(
            self.progress,
            state,
            motion=self.motion,
            period_s=to_s(min(now_ns - before_ns, LONGEST_TICK_NS)),
            tallest_m=self.tallest_m,
            is_seen=is_seen,
        )
        if self._is_gone() and not self.is_over:
            done = replace(done, outcome=f"the {self._what()} is not where it was said to be", base_v_mps=0.0)
        if self.sees and self.view is not None and self.view.has_hand and not self.is_over and self._spares_hands():
            done = replace(done, outcome=f"a hand or a face is where the {self._what()} is", base_v_mps=0.0)
        self.progress = done.progress
        self._publish(self.progress, done.base_v_mps, done.base_w_radps)
        self._tell(done, state)
        phase, spot = self.progress.phase, self.progress.spot
        self.wanted = (phase, spot) if self.sees and phase is not None and spot is not None else None

    @every(hz=1)
    def announce(self) -> None:
        """Publish what this body can do, again and again for those who start late."""
        self.skills.publish(catalogue_of(self.specs.values()), stems_from=())  # of no image: it is what it is

    @on(action)
    def begin(self, action: Action) -> None:
        """Take on an action from wherever the robot is."""
        state = self.state.latest()
        asked = ActionRequest.of(action, self.context.trigger)
        if self.current is not None and asked.repeats(self.asked):
            self.asked = asked
            if not self.is_over:  # asked again, as after a false alarm: it is still at it
                self.feedback.publish(Feedback(action_id=action.id, status="running", why=self.told))
            return
        if state is None:
            self.feedback.publish(Feedback(action_id=action.id, status="failure", why="the robot's state is not known"))
            return
        refusal = why_not(action, state, self.specs, self._seen_people()) or self._hand_at(action)
        question = "" if refusal else self.confirmations.question(action, self.specs, self.clock.now_ns())
        if refusal or question:
            code: FeedbackCode = "consent" if question else ""
            self.feedback.publish(Feedback(action_id=action.id, status="failure", why=refusal or question, code=code))
            if question:
                self.said.publish(Utterance(speaker="robot", text=question))
            return
        before, self.current, self.asked = self.current, action, asked
        if before is not None and self._continues(before, action):
            return
        if before is not None and not self.is_over:
            self._cut_off(before)
            why = f"replaced by {action.text or action.skill!r}"
            self.feedback.publish(Feedback(action_id=before.id, status="failure", why=why, code="replaced"))
        held = self.progress.held if self.progress is not None else None
        if held is not None and not state.is_grasping:
            held = None
        plan_or_why = self._plan(action, state, held)
        if action.skill not in ("hold", "place"):
            self.let_go_over = ""
        self.view, self.told = None, ""
        self.is_over = isinstance(plan_or_why, str)
        phases = () if isinstance(plan_or_why, str) else self._raised(plan_or_why)
        if action.skill == "place" and held is None and phases:
            held = self._unknown(state)
        self.progress = begin(phases, state, held, motion=self.motion)
        if phases and phases[0][0] is PLACE[0]:
            beyond_m = BEYOND_M[self.let_go[phases[0][1].name] % len(BEYOND_M)]
            self.progress = replace(self.progress, beyond_m=beyond_m)
        self.kept = self.progress.goal
        if isinstance(plan_or_why, str):
            ok = plan_or_why == ""
            why = plan_or_why or _DONE_ALREADY.get(action.skill, "it is already in the gripper")
            self.feedback.publish(Feedback(action_id=action.id, status="success" if ok else "failure", why=why))

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        """Stop and resume at arrival; a replan ends the action with a hold."""
        state = self.state.latest()
        if interrupt.depth == "stop":
            self._stop_or_go("stop")
        elif interrupt.depth == "resume":
            self._stop_or_go("resume")
        elif interrupt.depth == "replan" and self.progress is not None and state is not None:
            self._cut_off(self.current)
            if self.current is not None and not self.is_over:
                why = f"set aside: {interrupt.by} said {interrupt.text!r}"
                self.feedback.publish(Feedback(action_id=self.current.id, status="failure", why=why))
            self.is_over = True
            self.progress = begin((), state, self.progress.held, motion=self.motion)

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Take in a person's yes to what the policy asked."""
        self.confirmations.hear(utterance, self.clock.now_ns(), is_person=self.judge(utterance).counts)

    def on_preempted(self, fence: Fence) -> bool:
        """The runtime drops the commands that were on their way; there is no chunk beyond the current one."""
        return not self.is_over

    def on_seat(self) -> None:
        """Begin the action anew, from wherever the robot was left."""
        self._cut_off(self.current)
        action, self.current, self.is_over = self.current, None, True
        if action is not None:
            self.begin(action)

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        """Whether the guard holds the robot.

        A handler of its own, not a look in `tick`: the guard's state carries the age of the image behind the command
        that it applied, and reading it there would hand that on to the next command, for ever.
        """
        is_led_back = guard.mode == "retreating"
        if is_led_back and not self.is_led_back:
            self.is_led_back = True
            self._note_touch()
        self._stop_or_go("guard stops" if guard.is_stopped or is_led_back else "guard moves")
        if self.is_led_back and not (guard.is_stopped or is_led_back):
            self.is_led_back = False
            if not self.is_over:  # the hand is not where the phase under way left it
                self.on_seat()

    def _cut_off(self, action: Action | None) -> None:
        """This deed ends here: what was being let go lies there, though nobody has seen the gripper empty."""
        phase = self.progress.phase if self.progress is not None and not self.is_over else None
        if action is not None and action.skill == "place" and phase is not None and phase.then == "empty":
            self.let_go_over = self._what()

    def _note_touch(self) -> None:
        progress = self.progress
        if progress is None or progress.held is None or self.is_over:
            return
        if any(phase.lift == "set down" for phase, _ in progress.plan[: progress.index + 1]):
            self.touched[self._what()] += 1

    def _raised(self, phases: Plan) -> Plan:
        """The same, with what has touched something too early set down higher."""
        return tuple(
            (
                phase,
                replace(spot, z_m=spot.z_m + TOUCHED_M * self.touched[spot.name]) if phase.lift == "set down" else spot,
            )
            for phase, spot in phases
        )

    def _stop_or_go(self, event: StopEvent) -> None:
        self.stop_state = STOPS.get((self.stop_state, event), self.stop_state)

    def look(self) -> None:
        """Look at a new image for the thing that the action is about, or only at its place."""
        stamped, wanted = self.head_image.peek(), self.wanted
        if stamped is None or stamped.message.captured_ns == self.looked_ns:
            return
        image = stamped.message
        self.looked_ns = image.captured_ns
        state = state_at(tuple(self.states), image.captured_ns)
        if wanted is None or state is None:
            return
        phase, spot = wanted
        finds = phase.finds and image.captured_ns >= self.next_find_ns
        if finds:
            self.next_find_ns = image.captured_ns + to_ns(FIND_EVERY_S)
        sighting, found = judge(spot, image, state, body=self.motion.body, finds=finds)
        before = self.view if self.view is not None and self.view.spot.name == spot.name else None
        gone = (before.gone if before else 0) + 1 if sighting == "gone" else 0
        confirmed = sighting in ("seen", "glimpsed") or (before.is_confirmed if before else False)
        has_hand = before is not None and before.has_hand
        if finds:
            has_hand = self._spares_hands() and is_hand_at(spot, image, state, body=self.motion.body)
        self.view = HeadView(stamped, spot, found, confirmed, gone, has_hand)

    def knows(self, label: str) -> bool:
        """Whether its own eyes have a word for a kind of thing."""
        return knows(label)

    def _spares_hands(self) -> bool:
        return self.current is not None and spares_hands(self.specs.get(self.current.skill))

    def _seen_people(self) -> tuple[SeenPerson, ...]:
        """Whom the eyes on the VLM's seat see."""
        scene = self.scene.peek()
        return () if scene is None else scene.message.people

    def _hand_at(self, action: Action) -> str:
        """Why its own eyes forbid a deed that touches: they see skin at the target, whatever the action calls it."""
        stamped, target = self.head_image.peek(), action.target
        if not self.sees or stamped is None or target is None or not spares_hands(self.specs.get(action.skill)):
            return ""
        image = stamped.message
        state = state_at(tuple(self.states), image.captured_ns)
        if state is None or self.clock.since_s(image.captured_ns) > SEEN_FOR_S:
            return ""
        is_there = is_hand_at(spot_of(target), image, state, body=self.motion.body)
        return f"a hand or a face is where the {target.name[:40]} is said to be" if is_there else ""

    def _plan(self, action: Action, state: RobotState, held: Spot | None) -> Plan | str:
        """What to do, in phases; or why not, empty where there is nothing to do."""
        if action.skill == "hold":
            return ""
        if action.skill in self.added:
            return self.added[action.skill].phases(action, state, held)
        if action.skill == "put_back":
            if held is None or not state.is_grasping:
                return "there is nothing in the gripper that was taken from anywhere"
            return plan(SET_BACK, held)
        if action.skill == "look":
            return plan(LOOK, spot_of(action.target) if action.target else self.motion.ahead(state))
        if action.skill == "look_round":
            spots = self.motion.around(state)
            last = replace(LOOK_ROUND, succeeds=True)
            return tuple((LOOK_ROUND if spot is not spots[-1] else last, spot) for spot in spots)
        if action.skill in ("nod", "shake"):
            return plan(NOD if action.skill == "nod" else SHAKE, self.motion.gaze(state))
        if action.target is None:
            return f"a {action.skill} needs a target"
        spot = spot_of(action.target)
        if action.skill == "point":
            return "the hand is not free to point" if state.is_grasping else plan(POINT, spot)
        if action.skill == "place":
            if not state.is_grasping:
                return "" if self.let_go_over == spot.name else "there is nothing in the gripper to place"
            if action.target.height_m == 0.0 and held is not None:  # a free place on something flat
                return plan(SET_DOWN, replace(spot, z_m=spot.z_m + held.height_m / 2, height_m=held.height_m))
            return plan(SET_BACK, held) if held is not None and held.name == spot.name else plan(PLACE, spot)
        if held is None:
            is_unknown = state.is_grasping
            return (
                "the gripper holds something that it did not pick; place it first" if is_unknown else plan(PICK, spot)
            )
        return "" if held.name == spot.name else plan(PUT_BACK, held) + plan(PICK, spot)

    def _continues(self, before: Action, action: Action) -> bool:
        if self.is_over or before.skill != action.skill or before.target is None or action.target is None:
            return False
        one, two = spot_of(before.target), spot_of(action.target)
        return one.name == two.name and math.dist((one.x_m, one.y_m), (two.x_m, two.y_m)) < SAME_M

    def _use_view(self, state: RobotState) -> bool:
        """Correct the target by the newest image looked at; whether an image has confirmed it."""
        view, progress = self.view, self.progress
        if not self.sees or view is None or progress is None or progress.phase is None:
            return not self.sees  # and what is not used leaves no trace of its age
        self.used = view.image
        if view.found is None or not progress.phase.finds or view.spot is not progress.spot:
            return view.is_confirmed
        # The robot's own gripper above a bin hides part of the rim, and with it where the middle is.
        is_hidden = math.dist(self.motion.body.hand_point(state)[:2], (view.spot.x_m, view.spot.y_m)) < ARM_OFF_M
        if not (progress.phase.carries and is_hidden):
            self.progress = progress.moved_to(blend(view.spot, view.found, BLEND))
        return view.is_confirmed

    def _is_gone(self) -> bool:
        phase = self.progress.phase if self.progress is not None else None
        return phase is not None and phase.needs_thing and self.view is not None and self.view.gone >= GONE_IMAGES

    def _what(self) -> str:
        return self.progress.spot.name if self.progress is not None and self.progress.spot is not None else "thing"

    def _tell(self, done: SkillStep, state: RobotState) -> None:
        """Report a new phase or the outcome."""
        if self.current is None or self.is_over:
            return
        if done.outcome:
            self.is_over = True
            ok = done.outcome == "success"
            why = self.current.text or self.current.skill if ok else str(done.outcome)
            code: FeedbackCode = "out_of_reach" if isinstance(done.outcome, OutOfReach) else ""
            self._answer(Feedback(action_id=self.current.id, status="success" if ok else "failure", why=why, code=code))
            if ok:
                self.touched.pop(self._what(), None)
            if ok and self.current.skill == "place":
                self.let_go[self._what()] += 1
                self.let_go_over = ""
            if not ok:
                self.progress = retreat(done.progress, state, motion=self.motion)
            return
        phase = done.progress.phase
        says = phase.says.format(it=self._what()) if phase is not None else ""
        if says and says != self.told:
            self.told = says
            self._answer(Feedback(action_id=self.current.id, status="running", why=says))

    def _answer(self, feedback: Feedback) -> None:
        self.feedback.publish(feedback, stems_from=self.action.peek() or ())

    def _publish(self, progress: SkillProgress, v_mps: float, w_radps: float) -> None:
        skill = self.added.get(self.current.skill) if self.current is not None and not self.is_over else None
        if skill is not None and skill.spec.risk == "still":  # what is declared harmless cannot move anything else
            free = self.motion.still_joints
            goal = tuple(at if n in free else self.kept[n] for n, at in enumerate(progress.goal))
            progress, v_mps, w_radps = replace(progress, goal=goal), 0.0, 0.0
        self.kept = progress.goal
        command = JointCommand(position=progress.goal, base_v_mps=v_mps, base_w_radps=w_radps)
        self.command.publish(command, stems_from=[one for one in (self.action.peek(), self.used) if one is not None])

    def _unknown(self, state: RobotState) -> Spot:
        """Something that is held without having been picked, taken for a cup."""
        return Spot("thing", *self.motion.body.hand_point(state), 0.10)


def motion_of(robot: str) -> SkillMotion:
    """Return how that robot carries out skills; "" is a Stretch. Raises UserError where nobody knows."""
    return cast(SkillMotion, load_motion(load_body(robot)))
