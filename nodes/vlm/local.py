"""`LocalVLM`: a small VLM's job without a large model: looks at the head image, talks, and chooses the next action.

It really looks: all it knows of the table is what `perception` finds in its camera's image. The tick is plain rather
than blocking: looking takes about 10 ms, so an utterance never waits longer than that, and handlers need no locks.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from nodes.interrupts.intent import says_yes, understand
from nodes.interrupts.people import HearsPeople
from nodes.msgs import (
    Action,
    Feedback,
    FeedbackCode,
    GuardState,
    Image,
    Interrupt,
    Reference,
    Relation,
    RobotState,
    Scene,
    SceneDescription,
    SeenObject,
    SeenPerson,
    SkillCatalogue,
    Subtask,
    Utterance,
    aimed_at,
)
from nodes.perception.shapes import shape_names
from nodes.planner.orders import Surroundings
from nodes.robot.robot_from_launch import ForRobot, load_body
from nodes.seats.seat_node import SeatNode
from nodes.vlm.memory import SIGHTINGS_TO_BELIEVE, Known, believed, number_of, update, with_ids, without
from nodes.vlm.next_action import (
    HAND,
    LOOK_ROUND,
    MOST_TRIES,
    Decision,
    Outcome,
    Situation,
    arm_side,
    decide,
    how_many,
    is_in,
    is_meant_by,
    is_on_floor,
    lost,
    place_of,
    tried,
)
from nodes.vlm.poses import pose_at
from nodes.vlm.talk import VlmTalk, WorkUnderWay
from runtime import (
    RELIABLE,
    Fence,
    Lease,
    ParameterError,
    Publisher,
    QoS,
    Stamped,
    Subscription,
    every,
    on,
    to_ns,
    to_s,
)

if TYPE_CHECKING:
    from nodes.perception.people import PersonTrack

STATES_KEPT = 60
SILENCE_S = 4.0
"""An action without any feedback for so long never arrived, or its policy was restarted: it is sent again."""
PLAN_WAIT_S = 6.0
"""After a new order, how long to wait for the planner before going on with the old subtask; a slow one needs more."""
STILL_WAITS = "I hold still until somebody tells me how to go on."
REPEAT_S = 15.0
"""The same words are not said again within this time."""
IMAGES_PER_GAZE = 3
YES_WITHIN_S = 20.0
"""For how long a person may think about what the policy asked; then it counts as a failure, and may be asked again."""
YES_TO_POLICY_S = 0.4
"""After a yes: until the policy, which hears it too, has surely done so."""
STILL_M = 0.03
"""A hand that is as near as this to where the image before showed it waits for something."""
HAND_WITHIN_S = 20.0
"""For how long a thing is held for a person's open hand."""
WORDS_PER_S = 2.8
"""How fast people speak, where nobody heard when they began."""
BESIDE_M = 0.2
SAME_SIZE = 0.7
"""What fell has this share of its size at least, as its larger side shows it, however it lies."""


PointM = tuple[float, float, float]
LooksRound = Literal["armed", "asked", "never"]
StopState = Literal["free", "told", "held"]
"""Free to act; told to stop by an interrupt; held by the guard."""
StopEvent = Literal["stop", "resume", "guard stops", "guard moves"]
STOPS: Mapping[tuple[StopState, StopEvent], StopState] = {
    ("free", "stop"): "told",
    ("held", "stop"): "told",
    ("told", "resume"): "free",
    ("held", "resume"): "free",
    ("free", "guard stops"): "held",
    ("told", "guard stops"): "held",
    ("held", "guard moves"): "free",
}
"""What is not listed changes nothing: a guard that still moves has not heard of the interrupt yet."""


YesState = Literal["not asked", "asked", "given"]
"""The yes of a person, whom the policy asks before an action: nobody is asked; it is waited for; it was said."""
YesEvent = Literal["policy asks", "person says yes", "something else is to be done", "time is over"]
YESSES: Mapping[tuple[YesState, YesEvent], YesState] = {
    ("not asked", "policy asks"): "asked",
    ("given", "policy asks"): "asked",
    ("asked", "person says yes"): "given",
    ("asked", "something else is to be done"): "not asked",
    ("given", "something else is to be done"): "not asked",
    ("asked", "time is over"): "not asked",
    ("given", "time is over"): "not asked",
}
"""What is not listed changes nothing."""
YES_LASTS_S: Mapping[YesState, float] = {"asked": YES_WITHIN_S, "given": YES_TO_POLICY_S}


class LocalVLM(ForRobot, SeatNode, HearsPeople):
    """5 Hz, and at once when something is heard, felt or decided.

    After a new order it waits `plan_wait_s` for the planner, in s, and then goes on with the old subtask. `shapes` is a
    file that says what shapes are called, as `nodes/perception/shapes.toml` does ("": that one). The head looks round
    once before anything is known, never before the robot is armed: `looks_round` "asked", when a person has spoken to
    it since; "armed", at once; "never".
    """

    provenance = "model:local-geometry-1"
    seat = "vlm"
    preempted_at = ("amend", "stop")
    effect_name = "vlm voided"
    needs_body = True
    robot_parameter = "limits"
    kinds: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    subtask = Subscription(Subtask, "subtask")
    image = Subscription(Image, "head/image", qos=QoS(lifespan_s=1.0))
    state = Subscription(RobotState, "robot/state", qos=QoS(required=False))
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    interrupt = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    skills = Subscription(SkillCatalogue, "skills", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))

    action = Publisher(Action, "action", qos=RELIABLE)
    description = Publisher(SceneDescription, "description")
    scene = Publisher(Scene, "scene")
    said = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(
        self,
        speaker: str = "robot",
        limits: str = "",
        plan_wait_s: float = PLAN_WAIT_S,
        shapes: str = "",
        looks_round: LooksRound = "asked",
    ) -> None:
        if not plan_wait_s > 0.0:
            raise ParameterError(f"vlm: plan_wait_s is {plan_wait_s:g}; expected a number above 0")
        self.speaker = speaker
        if looks_round not in get_args(LooksRound):
            raise ParameterError(f"vlm: looks_round is {looks_round!r}; known: {', '.join(get_args(LooksRound))}")
        self.plan_wait_s = plan_wait_s
        self.looks_round: LooksRound = looks_round
        self.is_armed = self.is_spoken_to = False
        self.has_looked = False  # round, or as far as its head turns
        self.rounds = 0  # that it began to look
        self.shapes = shape_names(shapes)
        self.kinds, self.places = self.kinds or self.shapes.kinds, self.places or self.shapes.places
        self.body = load_body(limits)
        self.states: deque[RobotState] = deque(maxlen=STATES_KEPT)
        self.known: tuple[Known, ...] = ()
        self.unplaced: tuple[str, ...] = ()  # seen by a camera without depth: nobody knows where
        self.task: Subtask | None = None
        self.vetoed: tuple[Reference, ...] = ()
        self.talk = self.make_talk()
        self.stored: tuple[SeenObject, ...] = ()  # brought into a box, where the camera does not see them
        self.moved: tuple[SeenObject, ...] = ()  # for this subtask
        self.did: tuple[str, ...] = ()  # actions that succeeded for it
        self.lost: tuple[SeenObject, ...] = ()  # left its place without the robot, since it began
        self.began_at = 1  # the next thing's number then
        self.numbered = 1  # the next thing's number
        self.done_for = ""  # the subtask that the action under way was chosen for
        self.why = ""  # the last action failed
        self.code: FeedbackCode = ""  # and what programs ask of that
        self.preferred = ""
        self.retracted_ns: int | None = None  # when the robot was told to leave what it was doing
        self.holding: SeenObject | None = None
        self.doing: Action | None = None
        self.outcome: Outcome = "running"
        self.outcome_ns = 0  # when the last action ended
        self.failures: dict[str, int] = {}
        self.reasons: dict[str, str] = {}  # of the last one
        self.looks = 0
        self.images_since_gaze = IMAGES_PER_GAZE
        self.stop_state: StopState = "free"
        self.is_taken_back = False  # the last stop, as a false alarm
        self.waiting_since_ns = 0
        self.objected_ns = 0  # what is under way may be objected to since: the wait has no end of its own
        self.is_wait_told = False
        self.asked_ns = 0
        self.yes_state: YesState = "not asked"
        self.yes_until_ns = 0
        self.is_answered = False
        self.was_asking = False  # a model, when the last fence came
        self.palm: PointM | None = None  # in the newest image; looked for where a hand is needed
        self.hand: SeenObject | None = None  # that is held out, and still
        self.hand_since_ns = 0  # one is waited for
        self.seen_people: tuple[SeenPerson, ...] = ()  # as a model sees them
        self.person: PersonTrack | None = None  # as these eyes see them, from the first image with depth on
        self.theirs: SeenObject | None = None  # what lies in that person's hand
        self.actions = 0
        self.table_z_m: float | None = None
        self.looked_ns = -1
        self.shown_ns = 0  # when the image behind what is remembered was taken
        self.in_view: set[str] = set()  # what it shows
        self.seen: Stamped[Image] | None = None  # the image behind what is remembered
        self.unposed: Stamped[Image] | None = None  # the image of the last tick
        self.said_ns: dict[str, int] = {}
        self.reply = ""

    def make_talk(self) -> VlmTalk:
        """Who makes at once something of words; a model's VLM has one that loads no grammar."""
        from nodes.vlm.grammar_talk import GrammarTalk

        return GrammarTalk()

    @classmethod
    def preload(cls) -> None:
        import nodes.perception.objects  # noqa: F401  # with OpenCV

        understand("stop")

    def on_start(self) -> None:
        understand("stop")  # reads the tables, so that the first word does not wait for it

    # --- what comes in

    @on(state)
    def remember(self, state: RobotState) -> None:
        """Where the robot was when an image was taken is looked up here."""
        self.states.append(state)

    @on(subtask)
    def take_subtask(self, subtask: Subtask) -> None:
        """A new subtask replaces the old one; the same one again changes nothing, and what is older than an objection
        does not answer it.
        """
        trigger = self.context.trigger
        if trigger is None or trigger.envelope.published_ns >= self.objected_ns:
            self.waiting_since_ns = self.objected_ns = 0
        if subtask == self.task:
            return
        self.hear_of_yes("something else is to be done")
        before, self.task = self.task, subtask
        is_same = before is not None and (before.skill, before.things, before.place) == (
            subtask.skill,
            subtask.things,
            subtask.place,
        )
        if before is None or not is_same or (before.state == "done" and subtask.state != "done"):
            self.failures.clear()
            self.looks = 0
            self.moved, self.did, self.lost, self.began_at = (), (), (), self.numbered
            self.vetoed, self.preferred = (), ""
        self._act()

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """A correction changes the action under way at once; the planner hears it too and remembers it."""
        meaning, is_persons = understand(utterance.text), self.judge(utterance).counts
        self.is_spoken_to = self.is_spoken_to or (self.is_armed and is_persons)
        if meaning.lifts_stop and is_persons:
            self.waiting_since_ns = self.objected_ns = 0
        if self.yes_state != "not asked" and says_yes(utterance.text):
            if is_persons:
                self.hear_of_yes("person says yes")
        elif meaning.wants != "nothing":
            self.hear_of_yes("something else is to be done")
        if meaning.wants != "stop" and self.task is not None and self.task.state == "work":
            self._amend(utterance)

    def _amend(self, utterance: Utterance) -> None:
        """What is to be left alone is left at once; the planner hears it too, and remembers it."""
        assert self.task is not None
        catalogue, target, began_ns = self.skills.latest(), self._target, utterance.captured_ns
        if began_ns is None:
            began_ns = self.clock.now_ns() - to_ns(len(utterance.text.split()) / WORDS_PER_S)
        around = Surroundings(self._scene(), catalogue.skills if catalogue is not None else ())
        heard = self.talk.hear(utterance, WorkUnderWay(self.task, around, target, began_ns, self.retracted_ns))
        self.reply += heard.says
        free = {(one.label, one.colour) for one in heard.released}
        vetoed = dict.fromkeys((*self.vetoed, *heard.left))
        self.vetoed = tuple(one for one in vetoed if (one.label, one.colour) not in free)
        if heard.is_for_plan:
            self._wait_for_plan()
        elif heard.left:
            if target is not None and any(is_meant_by(one, target) for one in heard.left):
                self.retracted_ns = self.clock.now_ns()
            self._act()

    @property
    def _target(self) -> SeenObject | None:
        """What the robot holds, or goes for to take it."""
        return self.doing.target if self.doing is not None and self.doing.skill == "pick" else self.holding

    def _wait_for_plan(self) -> None:
        """Hold still with what is held until a planner or a person has said how it goes on."""
        self.waiting_since_ns = self.objected_ns = self.clock.now_ns()
        self.is_wait_told = False
        if self.doing is not None and self.outcome == "running" and self.doing.skill != "hold":
            self._carry_out(Decision("hold", "held", "holding still until there is a plan for the new order"))

    def _out_of_patience(self) -> None:
        """Go on where nobody may have objected; else say once that the robot waits."""
        if not self.objected_ns:
            self.waiting_since_ns = 0
        elif not self.is_wait_told:
            self.is_wait_told = True
            self._say(STILL_WAITS)

    @on(interrupt)
    def interrupted(self, interrupt: Interrupt) -> None:
        """A stop is the guard's to carry out; here it is answered, and afterwards everything is decided afresh."""
        if interrupt.depth == "stop":
            if not self.is_stopped:
                self._say("Sorry! I have stopped.")
            self.is_taken_back = False
            self._stop_or_go("stop")
        elif interrupt.depth == "resume":
            self.is_taken_back = interrupt.takes_back != ""
            self._stop_or_go("resume")
        elif interrupt.depth == "replan":
            self.waiting_since_ns = self.clock.now_ns()
            self.doing = None
        if interrupt.depth in ("stop", "replan"):
            self.hear_of_yes("something else is to be done")

    def on_preempted(self, fence: Fence) -> bool:
        return self._is_unheard() or self.was_asking

    def _is_unheard(self) -> bool:
        """Whether an action is on its way that nobody has answered yet."""
        return self.doing is not None and not self.is_answered

    @on(SeatNode.fence)
    def fenced(self, fence: Fence) -> None:
        """What was on its way is void: an action that nobody has answered yet is sent again, or another one."""
        is_unheard = self._is_unheard()
        is_amended = self.preempt(fence) and fence.depth == "amend"
        if is_amended and self._act().skill == "keep" and is_unheard and self.doing is not None:
            self.action.publish(self.doing, stems_from=self._sources())

    def on_seat(self) -> None:
        """Decide afresh."""
        self.doing = None
        self.hear_of_yes("something else is to be done")

    @on(SeatNode.lease)
    def leased(self, lease: Lease) -> None:
        """A new holder of the policy's seat is asked again."""
        super().leased(lease)
        if lease.seat == "policy" and not lease.is_repetition:
            self.asked_ns, self.is_answered = self.clock.now_ns(), False

    @on(guard)
    def follow(self, guard: GuardState) -> None:
        """Whether the robot may move is the guard's word."""
        self.is_armed = guard.is_armed
        self._stop_or_go("guard stops" if guard.is_stopped else "guard moves")

    @on(feedback)
    def learn(self, feedback: Feedback) -> None:
        """How the policy fares; a success or failure is acted on at once."""
        action = self.doing
        if action is None or feedback.action_id != action.id:
            return
        self.is_answered = True
        if feedback.status == "running":
            return
        self.outcome, self.why, self.code = feedback.status, feedback.why, feedback.code
        self.outcome_ns = self.clock.now_ns()
        if action.skill in ("look", LOOK_ROUND):
            self.looks += action.skill == "look"
            self.images_since_gaze = 0
            self.has_looked = self.has_looked or feedback.status == "success"
        elif feedback.status == "success":
            if action.skill != "hold" and self.task is not None and self.done_for == self.task.id:
                self.did += (action.text or action.skill,)
            self._succeeded(action)
        elif feedback.code == "consent":
            self.hear_of_yes("policy asks")
        else:
            self._failed(action, feedback.why)
        self._act()

    @every(hz=5)
    def tick(self) -> None:
        """Look, decide, and tell the planner what is seen and done."""
        self._look()
        if self.yes_state != "not asked" and self.clock.now_ns() > self.yes_until_ns:
            if self.yes_state == "asked" and self.doing is not None:
                self._failed(self.doing, "nobody said yes")
            self.hear_of_yes("time is over")
        if self.waiting_since_ns and self.clock.since_s(self.waiting_since_ns) > self.plan_wait_s:
            self._out_of_patience()
        is_silent = self.doing is not None and not self.is_answered and not self.is_stopped
        if is_silent and self.clock.since_s(self.asked_ns) > SILENCE_S:
            self.doing = None
        self._await_hand()
        decision = self._act()
        self._describe(decision)
        if self._has_seen():
            scene: Scene = msgspec.structs.replace(self._scene(), image_ns=self.shown_ns)  # type: ignore[type-var]  # a Struct
            self.scene.publish(scene, stems_from=self._sources())

    # --- what it does about it

    def _has_seen(self) -> bool:
        """Whether it can tell yet what there is, and what there is not."""
        return True

    def _look(self) -> None:
        from nodes.perception.colors import colours_in_view

        newest = self.image.stamped()
        if newest is not None and newest.message.depth_m is None and newest.message.captured_ns != self.looked_ns:
            self.looked_ns, self.seen = newest.message.captured_ns, newest
            self.unplaced = tuple(f"something {colour}" for colour in colours_in_view(newest.message.rgb))
            return
        posed = self._posed_image()
        if posed is None:
            return
        self.seen, state = posed
        image = self.seen.message
        self.looked_ns = image.captured_ns
        self.unplaced = ()
        if image.depth_m is not None:
            self._look_for_person(image, state)
            self._remember_things(self._shapes_in(image, state), image, state)

    def _shapes_in(self, image: Image, state: RobotState) -> tuple[SeenObject, ...]:
        """What geometry finds in an image with depth."""
        from nodes.perception.objects import find_objects, is_at_foot

        assert image.depth_m is not None
        pose, own = self.body.head_camera(state), self.body.own_parts(state)
        if self.person is not None and self.person.hand is not None:
            own = (*own, *self.person.hand.room)  # nothing there stands on the table
        seen = find_objects(
            image.rgb, image.depth_m, image.focal_px, *pose, own=own, table_z_m=self.table_z_m, names=self.shapes
        )
        thing = next((one for one in seen if not one.is_place and not is_on_floor(one)), None)
        if thing is not None:
            self.table_z_m = thing.z_m - thing.height_m / 2
        boxes = [one for one in believed(self.known) if one.is_place and one.height_m > 0.0]
        return tuple(
            self._as_it_stood(one) if is_on_floor(one) else one
            for one in seen
            if not (is_on_floor(one) and any(is_at_foot(one, box) for box in boxes))
        )

    def _as_it_stood(self, thing: SeenObject) -> SeenObject:
        """What left its place is called as it was there: of what lies on the floor, proportions say little."""
        size_m = max(thing.width_m, thing.height_m)
        for was in self.lost:
            was_m = max(was.width_m, was.height_m)
            if was.colour == thing.colour and min(size_m, was_m) > SAME_SIZE * max(size_m, was_m):
                renamed: SeenObject = msgspec.structs.replace(thing, label=was.label)  # type: ignore[type-var]  # a Struct
                return renamed
        return thing

    def _is_giving(self) -> bool:
        """Whether what is held is to go into somebody's hand."""
        task = self.task
        return task is not None and task.state == "work" and task.skill == "hand_over" and self.holding is not None

    def _look_for_person(self, image: Image, state: RobotState) -> None:
        """What somebody does; a hand that two images show in one place waits for something, where that is given."""
        from nodes.perception.hands import find_faces, find_hand
        from nodes.perception.people import PersonTrack

        assert image.depth_m is not None
        view = (image.rgb, image.depth_m, image.focal_px, *self.body.head_camera(state))
        own = self.body.own_parts(state)
        found = find_hand(*view, table_z_m=self.table_z_m, own=own) if self.table_z_m is not None else None
        hand, held = found or (None, "")
        self.person = self.person or PersonTrack()
        self.person.follow([] if hand is None else [hand], find_faces(*view), image.captured_ns, lambda _: True)
        self.theirs = self._in_their_hand(held, hand.palm_m) if held and hand is not None else None
        before, self.palm = self.palm, hand.palm_m if hand is not None and self._is_giving() else None
        is_still = before is not None and self.palm is not None and math.dist(before, self.palm) < STILL_M
        self.hand = hand_at(self.palm) if is_still and self.palm is not None else None

    def _in_their_hand(self, colour: str, palm_m: PointM) -> SeenObject | None:
        """What that is, by its colour: what the robot gave, or what left its place; None while the robot has it."""
        if self.holding is not None and self.holding.colour == colour:
            return None
        hidden = [one for one in believed(self.known) if one.id not in self.in_view and not one.is_place]
        before = (*((self.theirs,) if self.theirs is not None else ()), *hidden, *self.lost, *self.moved)
        thing = next((one for one in reversed(before) if one.colour == colour), None) or SeenObject(
            id=f"held-{colour}", label="thing", colour=colour, x_m=0.0, y_m=0.0, z_m=0.0, width_m=0.0, height_m=0.0,
            u_px=0.0, v_px=0.0,
        )  # fmt: skip
        x, y, z = palm_m
        held: SeenObject = msgspec.structs.replace(thing, x_m=x, y_m=y, z_m=z + thing.height_m / 2)  # type: ignore[type-var]  # a Struct
        return held

    def _await_hand(self) -> None:
        """Give up after a while where nobody holds out a hand."""
        if not self._is_giving() or self.hand is not None or self.is_stopped:
            self.hand_since_ns = 0
        elif not self.hand_since_ns:
            self.hand_since_ns = self.clock.now_ns()
        elif self.clock.since_s(self.hand_since_ns) > HAND_WITHIN_S:
            self.failures[HAND] = MOST_TRIES

    def _posed_image(self) -> tuple[Stamped[Image], RobotState] | None:
        """The newest image that was not looked at yet and of whose moment the robot's state is known.

        A real robot's state comes later than the image of its moment: then that of the tick before is looked at. None
        where the head moved too fast in both.
        """
        newest, before = self.image.stamped(), self.unposed
        self.unposed = newest
        for stamped in (newest, before) if newest is not None else ():
            if stamped is not None and stamped.message.captured_ns > self.looked_ns:
                state = pose_at(self.states, stamped.message.captured_ns, self.body)
                if state is not None:
                    return stamped, state
        return None

    def _remember_things(self, seen: Sequence[SeenObject], image: Image, state: RobotState) -> None:
        """Take in what an image with depth shows, and forget what it shows to be gone."""
        from nodes.perception.objects import place_is_empty

        depth = image.depth_m
        assert depth is not None
        rotation, position = self.body.head_camera(state)

        def is_empty(thing: SeenObject) -> bool:
            place = (thing.x_m, thing.y_m, thing.z_m)
            return not thing.is_place and place_is_empty(depth, image.focal_px, rotation, position, place)

        before = {one.thing.id: one.thing for one in self.known if one.is_certain and not one.thing.is_place}
        sightings = {one.thing.id: one.sightings for one in self.known}
        self.known, self.numbered = with_ids(update(self.known, seen, is_empty), self.numbered)
        left = before.keys() - {one.thing.id for one in self.known}
        for ident in sorted(left):
            self._lose(before[ident])
        self.in_view = {one.thing.id for one in self.known if one.sightings > sightings.get(one.thing.id, 0)}
        self.shown_ns = image.captured_ns
        self.images_since_gaze += 1
        catalogue = self.skills.latest()
        if catalogue is not None and all(spec.name != LOOK_ROUND for spec in catalogue.skills):
            self.has_looked = True  # its head does not turn

    def _things(self) -> tuple[SeenObject, ...]:
        """Everything believed to be there: what the camera saw, what was put into boxes, and the table."""
        seen = believed(self.known)
        boxes = [one for one in seen if one.is_place]
        in_boxes = {(one.label, one.colour) for one in seen if any(is_in(one, box) for box in boxes)}
        hidden = [one for one in self.stored if (one.label, one.colour) not in in_boxes]
        return (*seen, *hidden, *self._table())

    def _table(self) -> tuple[SeenObject, ...]:
        if self.table_z_m is None:
            return ()
        on_it = [one for one in believed(self.known) if not one.is_place]
        state = self.states[-1] if self.states else None
        base = (state.base_x_m, state.base_y_m, state.base_heading_rad) if state is not None else (0.0, 0.0, 0.0)
        x, y, _ = arm_side(base)
        if on_it:
            x, y = (sum(values) / len(on_it) for values in zip(*((one.x_m, one.y_m) for one in on_it), strict=True))
        return (
            SeenObject(
                id=self.shapes.table, label=self.shapes.table, colour="", x_m=x, y_m=y, z_m=self.table_z_m,
                width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0, is_place=True,
            ),
        )  # fmt: skip

    def _scene(self) -> Scene:
        theirs = self.theirs
        things = tuple(one for one in self._things() if theirs is None or one.id != theirs.id)
        held: tuple[SeenObject, ...] = () if self.holding is None else (self.holding,)
        loose = [one for one in things if not one.is_place]
        relations = [Relation(subject=one.id, relation="held by", object="robot") for one in held]
        for number, one in enumerate(loose):
            place = place_of(one, things)
            is_inside = place is not None and place.height_m > 0.0
            if place is None and is_on_floor(one):
                relations.append(Relation(subject=one.id, relation="on", object="floor"))
            elif place is not None:
                relations.append(Relation(subject=one.id, relation="in" if is_inside else "on", object=place.id))
            for other in loose[number + 1 :]:
                if not is_inside and math.hypot(one.x_m - other.x_m, one.y_m - other.y_m) < BESIDE_M:
                    relations.append(Relation(subject=one.id, relation="beside", object=other.id))
        people = self.seen_people
        if not people and self.person is not None:
            held_id = theirs.id if theirs is not None else ""
            people = self.person.tell(loose, held_id, self.clock.now_ns(), lambda _: True)
        if theirs is not None and people:
            held += (theirs,)
            relations.append(Relation(subject=theirs.id, relation="held by", object=people[0].id))
        return Scene(
            things=tuple(one if one.id in self.in_view else _out_of_view(one) for one in (*things, *held)),
            relations=tuple(relations),
            people=people,
            kinds=self.kinds,
            places=self.places,
            is_looked=self.has_looked,
        )

    def _lose(self, thing: SeenObject) -> None:
        """It is not where it was; where it was an earlier one that was found again, that is not lost twice."""
        is_found = number_of(thing) >= self.began_at
        before = next((one for one in self.lost if is_found and one.name == thing.name), None)
        self.lost = (*(one for one in self.lost if one is not before), thing)

    def _gone(self) -> tuple[SeenObject, ...]:
        """What left its place without the robot and was not seen again under a new id, in the hand, or brought."""
        there = (*believed(self.known), *self.moved, *((self.holding,) if self.holding is not None else ()))
        again = Counter(one.name for one in there if number_of(one) >= self.began_at)
        boxes = [one for one in there if one.is_place and one.height_m > 0.0]
        gone = []
        for thing in self.lost:
            is_theirs = self.theirs is not None and self.theirs.id == thing.id
            if is_theirs or any(is_in(thing, box) for box in boxes):
                continue  # a box hides what lies in it
            again[thing.name] -= 1
            if again[thing.name] < 0:
                gone.append(thing)
        return tuple(gone)

    def _situation(self) -> Situation:
        catalogue = self.skills.latest()
        state = self.states[-1] if self.states else None
        base = (state.base_x_m, state.base_y_m, state.base_heading_rad) if state is not None else (0.0, 0.0, 0.0)
        return Situation(
            subtask=self.task,
            vetoed=self.vetoed,
            preferred=self.preferred,
            objects=self._things(),
            skills={spec.name: spec for spec in catalogue.skills} if catalogue is not None else {},
            holding=self.holding,
            moved=self.moved,
            doing=self.doing,
            outcome=self.outcome,
            why=self.why,
            is_for_task=self.task is not None and self.done_for == self.task.id,
            did=self.did,
            failures=dict(self.failures),
            reasons=dict(self.reasons),
            gone=self._gone(),
            looks=self.looks,
            is_looking_over=self.images_since_gaze >= IMAGES_PER_GAZE,
            is_stopped=self.is_stopped,
            is_waiting=self.waiting_since_ns > 0,
            is_unconfirmed=self.yes_state != "not asked",
            hand=self.hand,
            palm_m=self.palm,
            is_grasping=bool(self.states) and self.states[-1].is_grasping,
            is_to_look=self._is_to_look(catalogue),
            base=base,
        )

    def _is_to_look(self, skills: SkillCatalogue | None) -> bool:
        if self.has_looked or self.rounds >= MOST_TRIES or skills is None:
            return False
        return self._may_look_round and any(spec.name == LOOK_ROUND for spec in skills.skills)

    @property
    def _may_look_round(self) -> bool:
        """Whether the head may turn before anything is known."""
        is_free = self.looks_round == "armed" or (self.looks_round == "asked" and self.is_spoken_to)
        return self.is_armed and is_free

    def _sources(self) -> list[Stamped[Any]]:
        """What is decided stems from the image behind what is remembered, the subtask and the last words."""
        return [one for one in (self.seen, self.subtask.peek(), self.heard.peek()) if one is not None]

    def _decide(self, now: Situation) -> Decision:
        """What to do now."""
        return decide(now)

    def _act(self) -> Decision:
        """Decide, and publish what has changed."""
        return self._carry_out(self._decide(self._situation()))

    def _carry_out(self, decision: Decision) -> Decision:
        if decision.skill != "keep":
            self.actions += 1
            self.doing = Action(
                id=f"{self.name}-{self.actions}",
                skill=decision.skill,
                arguments=decision.arguments
                or aimed_at(decision.target, "place" if decision.skill == "place" else "thing"),
                text=decision.text,
            )
            self.done_for = self.task.id if self.task is not None else ""
            self.rounds += decision.skill == LOOK_ROUND
            self.outcome, self.is_answered, self.asked_ns = "running", False, self.clock.now_ns()
            self.action.publish(self.doing, stems_from=self._sources())
        self._say(self.reply + decision.say)
        self.reply = ""
        return decision

    def _succeeded(self, action: Action) -> None:
        if action.skill == "pick" and action.target is not None:
            self.holding = action.target
            self.known = without(self.known, action.target)
            self.stored = tuple(one for one in self.stored if one.id != action.target.id)
        elif action.skill == "hand_over" and self.holding is not None:
            self.moved += (self.holding,)
            self.holding, self.images_since_gaze = None, 0  # to be seen whether it stays there
        elif action.skill in ("place", "put_back") and self.holding is not None:
            held, place = self.holding, action.target
            for tried in (held, *((place,) if place is not None else ())):
                self.failures.pop(tried.name, None)
            self.holding = None
            self.looks = 0
            if place is None or not place.is_place:
                return  # back where it was: the camera will see it
            self.moved += (held,)
            there: SeenObject = msgspec.structs.replace(held, x_m=place.x_m, y_m=place.y_m)  # type: ignore[type-var]  # a Struct
            if place.height_m > 0.0:
                self.stored += (there,)
            else:
                self.known += (Known(there, SIGHTINGS_TO_BELIEVE, 0, ((held.label, held.colour),)),)

    def _failed(self, action: Action, why: str) -> None:
        self.log.info("%s failed: %s", action.text, why)
        self.looks = 0
        is_grasping = bool(self.states) and self.states[-1].is_grasping
        if not is_grasping:
            if self.holding is not None:
                self._lose(self.holding)
            self.holding = None
        if action.target is None or action.skill not in ("pick", "place", "hand_over"):
            return
        name = action.target.name
        self.failures[name] = self.failures.get(name, 0) + 1
        self.reasons[name] = why
        self.known = without(self.known, action.target)  # not there, or not so: to be seen afresh before another try
        if action.skill != "pick":
            return
        if not is_grasping:
            self._lose(action.target)
        elif self.holding is None:
            # Either this thing, which did not come up, or one from before a restart: both belong where the task says.
            self.holding = action.target

    @property
    def is_stopped(self) -> bool:
        """Whether the robot may not act."""
        return self.stop_state != "free"

    def _stop_or_go(self, event: StopEvent) -> None:
        """After a stop: choose again from what is seen now; after a false alarm go on with what was being done."""
        was_stopped, self.stop_state = self.is_stopped, STOPS.get((self.stop_state, event), self.stop_state)
        if was_stopped and not self.is_stopped:
            if self.is_taken_back and self.doing is not None and self.outcome == "running":
                self.asked_ns, self.is_answered = self.clock.now_ns(), False
                # The same one, which a policy that knows it just goes on with.
                self.action.publish(self.doing, stems_from=self._sources())
            else:
                self.doing = None
            self.said_ns.pop("Sorry! I have stopped.", None)

    def hear_of_yes(self, event: YesEvent) -> None:
        """Each event that is listed, and a yes or a question said again, begins a new wait."""
        self.yes_state = YESSES.get((self.yes_state, event), self.yes_state)
        self.yes_until_ns = self.clock.now_ns() + to_ns(YES_LASTS_S.get(self.yes_state, 0.0))

    def _say(self, text: str) -> None:
        text = text.strip()
        now_ns = self.clock.now_ns()
        last_ns = self.said_ns.get(text)
        if not text or (last_ns is not None and to_s(now_ns - last_ns) < REPEAT_S):
            return
        self.said_ns[text] = now_ns
        self.said.publish(Utterance(speaker=self.speaker, text=text), stems_from=self._sources())

    def _describe(self, decision: Decision) -> None:
        objects, now = believed(self.known), self._situation()
        names = ", ".join([thing.name for thing in objects] + list(self.unplaced)) or "nothing"
        held = f" It holds the {self.holding.name}." if self.holding is not None else ""
        task = f" Subtask: {self.task.text}." if self.task is not None and self.task.text else ""
        self.description.publish(
            SceneDescription(
                text=f"The robot {_does(decision)}.{held}{task} It sees: {names}.",
                subtask_id=self.task.id if self.task is not None else "",
                progress=decision.progress,
                objects=objects,
                subtask=self.task,
                why=(decision.why or decision.text) if decision.progress in ("failed", "finished") else "",
                code=decision.code,
                target=self._target,
                left=self.vetoed,
                did=self.did,
                moved=tuple(_named(one) for one in self.moved),
                wanted=how_many(now),
                tried=tried(now),
                gone=tuple(_named(one) for one in lost(now)),
            ),
            stems_from=self._sources(),
        )


def _does(decision: Decision) -> str:
    """What it does, or how that ended, as the rest of a sentence: only what was measured is said to be finished."""
    ended = {
        "finished": "has finished: ",
        "failed": "failed, because ",
        "idle": "has " if "nothing" in decision.text else "is ",
    }
    return ended.get(decision.progress, "is ") + decision.text


def _out_of_view(thing: SeenObject) -> SeenObject:
    return msgspec.structs.replace(thing, u_px=0.0, v_px=0.0)  # type: ignore[type-var]  # a Struct


def _named(thing: SeenObject) -> Reference:
    return Reference(id=thing.id, label=thing.label, colour=thing.colour)


def hand_at(palm_m: PointM, ident: str = HAND) -> SeenObject:
    """A palm as something to set a thing onto."""
    x, y, z = palm_m
    return SeenObject(
        id=ident, label=HAND, colour="", x_m=x, y_m=y, z_m=z, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
        is_place=True,
    )  # fmt: skip
