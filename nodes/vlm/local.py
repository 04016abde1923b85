"""`LocalVLM`: a small VLM's job without a large model: looks at the head image, talks, and chooses the next action.

It really looks: all it knows of the table is what `perception` finds in its camera's image. The tick is plain rather
than blocking: looking takes about 10 ms, so an utterance never waits longer than that, and handlers need no locks.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from nodes.interrupts.intent import says_yes, understand
from nodes.policy.allowed import PLEASE
from nodes.robot.described import ForRobot
from nodes.stretch.body import head_pose, own_parts
from nodes.vlm.memory import Known, believed, update, without
from nodes.vlm.next_action import Decision, Outcome, Situation, decide, name_of
from nodes.vlm.poses import pose_at
from runtime import Node, Publisher, QoS, Stamped, Subscription, every, on
from runtime.clock import to_ns
from runtime.control_messages.fence import Fence
from runtime.control_messages.lease import Lease
from runtime.msgs import (
    JOINTS,
    Action,
    Effect,
    Feedback,
    GuardState,
    Image,
    Interrupt,
    RobotState,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
)
from runtime.qos import RELIABLE

STATES_KEPT = 60
SILENCE_S = 4.0
"""An action without any feedback for so long never arrived, or its policy was restarted: it is sent again."""
PLAN_WAIT_S = 6.0
"""After a new order, how long to wait for the planner before going on with the old subtask."""
REPEAT_S = 15.0
"""The same words are not said again within this time."""
IMAGES_PER_GAZE = 3
YES_WITHIN_S = 20.0
"""For how long a person may think about what the policy asked; then it counts as a failure, and may be asked again."""
YES_TO_POLICY_S = 0.4
"""After a yes: until the policy, which hears it too, has surely done so."""


class LocalVLM(ForRobot, Node):
    """5 Hz, and at once when something is heard, felt or decided."""

    provenance = "model:local-geometry-1"
    seat = "vlm"
    made_for_joints = JOINTS

    subtask = Subscription(Subtask, "subtask")
    image = Subscription(Image, "head/image", qos=QoS(lifespan_s=1.0))
    state = Subscription(RobotState, "robot/state", qos=QoS(required=False))
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    interrupt = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    fence = Subscription(Fence, "fence", qos=QoS(required=False))
    lease = Subscription(Lease, "lease", qos=QoS(required=False))

    action = Publisher(Action, "action", qos=RELIABLE)
    description = Publisher(SceneDescription, "description")
    said = Publisher(Utterance, "said", qos=RELIABLE)
    effect = Publisher(Effect, "interrupt/effect", qos=RELIABLE)

    def __init__(self, speaker: str = "robot") -> None:
        self.speaker = speaker
        self.states: deque[RobotState] = deque(maxlen=STATES_KEPT)
        self.known: tuple[Known, ...] = ()
        self.unplaced: tuple[str, ...] = ()  # seen by a camera without depth: nobody knows where
        self.task: Subtask | None = None
        self.vetoed: frozenset[str] = frozenset()
        self.preferred = ""
        self.holding: SeenObject | None = None
        self.doing: Action | None = None
        self.outcome: Outcome = "running"
        self.failures: dict[str, int] = {}
        self.looks = 0
        self.images_since_gaze = IMAGES_PER_GAZE
        self.is_stopped = self.was_guard_stopped = False
        self.is_taken_back = False  # the last stop, as a false alarm
        self.waiting_since_ns = 0
        self.asked_ns = 0
        self.yes_until_ns = 0  # a person has been asked; 0: nobody is
        self.has_said_yes = False
        self.is_answered = False
        self.was_asking = False  # a model, when the last fence came
        self.actions = 0
        self.table_z_m: float | None = None
        self.looked_ns = -1
        self.seen: Stamped[Image] | None = None  # the image behind what is remembered
        self.said_ns: dict[str, int] = {}
        self.reply = ""

    # --- what comes in

    @on(state)
    def remember(self, state: RobotState) -> None:
        """Where the robot was when an image was taken is looked up here."""
        self.states.append(state)

    @on(subtask)
    def take_subtask(self, subtask: Subtask) -> None:
        """A new subtask replaces the old one; the same one again changes nothing."""
        self.waiting_since_ns = 0
        if subtask == self.task:
            return
        self.yes_until_ns = 0
        before, self.task = self.task, subtask
        is_amended = before is not None and (before.verb, before.what, before.where) == (
            subtask.verb,
            subtask.what,
            subtask.where,
        )
        if not is_amended:
            self.failures.clear()
            self.looks = 0
        self._act()

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """A correction changes the action under way at once; the planner hears it too and remembers it."""
        meaning = understand(utterance.text)
        if self.yes_until_ns and says_yes(utterance.text):
            self.yes_until_ns, self.has_said_yes = self.clock.now_ns() + to_ns(YES_TO_POLICY_S), True
        elif meaning.wants != "nothing":
            self.yes_until_ns = 0
        if meaning.wants == "order" and meaning.can_do:
            self.vetoed, self.preferred = frozenset(meaning.excluding), ""
            return
        if meaning.wants not in ("amend", "stop"):
            return
        vetoed = set(meaning.excluding)
        target = self.doing.target if self.doing is not None and self.doing.skill == "pick" else self.holding
        if meaning.is_about_current and meaning.wants == "amend" and target is not None:
            vetoed.add(target.colour)
        if meaning.including:
            self.preferred = meaning.including[0]
        self.vetoed = (self.vetoed | vetoed) - set(meaning.including)
        if vetoed:
            self.reply = f"All right, I leave the {' and the '.join(sorted(vetoed))} one. "
        if meaning.wants == "amend":
            self._act()

    @on(interrupt)
    def interrupted(self, interrupt: Interrupt) -> None:
        """A stop is the guard's to carry out; here it is answered, and afterwards everything is decided afresh."""
        if interrupt.depth == "stop":
            if not self.is_stopped:
                self._say("Sorry! I have stopped.")
            self.is_stopped, self.was_guard_stopped, self.is_taken_back = True, False, False
        elif interrupt.depth == "resume":
            self.is_taken_back = interrupt.takes_back != ""
            self._go_on()
        elif interrupt.depth == "replan":
            self.waiting_since_ns = self.clock.now_ns()
            self.doing = None
        if interrupt.depth in ("stop", "replan"):
            self.yes_until_ns = 0

    @on(fence)
    def fenced(self, fence: Fence) -> None:
        """What was on its way is void: an action that nobody has answered yet is sent again, or another one."""
        if fence.depth not in ("amend", "stop"):
            return
        is_unheard = self.doing is not None and not self.is_answered
        was_busy = is_unheard or self.was_asking
        self.effect.publish(Effect(interrupt_id=fence.interrupt_id, effect="vlm voided", was_busy=was_busy))
        if fence.depth == "amend" and self._act().skill == "keep" and is_unheard and self.doing is not None:
            self.action.publish(self.doing, stems_from=self._sources())

    @on(lease)
    def leased(self, lease: Lease) -> None:
        """Back on its seat it decides afresh: what it wanted in shadow nobody has heard."""
        if lease.seat == "vlm" and lease.holder == self.name and not lease.is_repetition:
            self.doing, self.yes_until_ns = None, 0
        elif lease.seat == "policy" and not lease.is_repetition:
            self.asked_ns, self.is_answered = self.clock.now_ns(), False  # the new holder is asked again

    @on(guard)
    def follow(self, guard: GuardState) -> None:
        """Whether the robot may move is the guard's word."""
        if guard.mode == "stopped":
            self.is_stopped = self.was_guard_stopped = True
        elif self.was_guard_stopped:
            self._go_on()

    @on(feedback)
    def learn(self, feedback: Feedback) -> None:
        """How the policy fares; a success or failure is acted on at once."""
        action = self.doing
        if action is None or feedback.action_id != action.id:
            return
        self.is_answered = True
        if feedback.status == "running":
            return
        self.outcome = feedback.status
        if action.skill == "look":
            self.looks += 1
            self.images_since_gaze = 0
        elif feedback.status == "success":
            self._succeeded(action)
        elif feedback.why.endswith(PLEASE):
            self.yes_until_ns, self.has_said_yes = self.clock.now_ns() + to_ns(YES_WITHIN_S), False
        else:
            self._failed(action, feedback.why)
        self._act()

    @every(hz=5)
    def tick(self) -> None:
        """Look, decide, and tell the planner what is seen and done."""
        self._look()
        if self.yes_until_ns and self.clock.now_ns() > self.yes_until_ns:
            self.yes_until_ns = 0
            if not self.has_said_yes and self.doing is not None:
                self._failed(self.doing, "nobody said yes")
        if self.waiting_since_ns and self.clock.now_ns() - self.waiting_since_ns > to_ns(PLAN_WAIT_S):
            self.waiting_since_ns = 0
        is_silent = self.doing is not None and not self.is_answered and not self.is_stopped
        if is_silent and self.clock.now_ns() - self.asked_ns > to_ns(SILENCE_S):
            self.doing = None
        decision = self._act()
        self._describe(decision)

    # --- what it does about it

    def _look(self) -> None:
        from nodes.perception.color_blobs import colours_in_view
        from nodes.perception.objects import find_objects, place_is_empty

        stamped = self.image.stamped()
        if stamped is None or stamped.message.captured_ns == self.looked_ns:
            return
        image = stamped.message
        if image.depth_m is None:
            self.looked_ns, self.seen = image.captured_ns, stamped
            self.unplaced = tuple(f"something {colour}" for colour in colours_in_view(image.rgb))
            return
        state = pose_at(self.states, image.captured_ns)
        if state is None:
            return  # the head moved too fast, or the state of that time is still to come: the next image will do
        self.looked_ns, self.seen = image.captured_ns, stamped
        self.unplaced = ()
        rotation, position = head_pose(state)
        depth = image.depth_m
        seen = find_objects(
            image.rgb, depth, image.focal_px, rotation, position, own=own_parts(state), table_z_m=self.table_z_m
        )
        things = [thing for thing in seen if thing.label != "bin"]
        if things:
            self.table_z_m = things[0].z_m - things[0].height_m / 2

        def is_empty(thing: SeenObject) -> bool:
            place = (thing.x_m, thing.y_m, thing.z_m)
            return thing.label != "bin" and place_is_empty(depth, image.focal_px, rotation, position, place)

        self.known = update(self.known, seen, is_empty)
        self.images_since_gaze += 1

    def _situation(self) -> Situation:
        state = self.states[-1] if self.states else None
        base = (state.base_x_m, state.base_y_m, state.base_heading_rad) if state is not None else (0.0, 0.0, 0.0)
        return Situation(
            subtask=self.task,
            vetoed=self.vetoed,
            preferred=self.preferred,
            objects=believed(self.known),
            holding=self.holding,
            doing=self.doing,
            outcome=self.outcome,
            failures=dict(self.failures),
            looks=self.looks,
            is_looking_over=self.images_since_gaze >= IMAGES_PER_GAZE,
            is_stopped=self.is_stopped,
            is_waiting=self.waiting_since_ns > 0,
            is_unconfirmed=self.yes_until_ns > 0,
            base=base,
        )

    def _sources(self) -> list[Stamped[Any]]:
        """What is decided stems from the image behind what is remembered, the subtask and the last words."""
        return [one for one in (self.seen, self.subtask.peek(), self.heard.peek()) if one is not None]

    def _act(self) -> Decision:
        """Decide, and publish what has changed."""
        decision = decide(self._situation())
        if decision.skill != "keep":
            self.actions += 1
            self.doing = Action(
                id=f"{self.name}-{self.actions}", skill=decision.skill, target=decision.target, text=decision.text
            )
            self.outcome, self.is_answered, self.asked_ns = "running", False, self.clock.now_ns()
            self.action.publish(self.doing, stems_from=self._sources())
        self._say(self.reply + decision.say)
        self.reply = ""
        return decision

    def _succeeded(self, action: Action) -> None:
        if action.skill == "pick" and action.target is not None:
            self.holding = action.target
            self.known = without(self.known, action.target)
        elif action.skill == "place" and self.holding is not None:
            self.failures.pop(name_of(self.holding), None)
            self.holding = None
            self.looks = 0

    def _failed(self, action: Action, why: str) -> None:
        self.log.info("%s failed: %s", action.text, why)
        self.looks = 0
        is_grasping = bool(self.states) and self.states[-1].is_grasping
        if not is_grasping:
            self.holding = None
        if action.target is None or action.skill not in ("pick", "place"):
            return
        if action.skill == "place":
            self.known = without(self.known, action.target)  # the box is not there, or not so: to be seen afresh
            return
        name = name_of(action.target)
        self.failures[name] = self.failures.get(name, 0) + 1
        self.known = without(self.known, action.target)  # to be seen afresh before it is tried again
        if is_grasping and self.holding is None:
            # Either this thing, which did not come up, or one from before a restart: both belong where the task says.
            self.holding = action.target

    def _go_on(self) -> None:
        """After a stop: choose again from what is seen now; after a false alarm go on with what was being done."""
        if self.is_stopped:
            self.is_stopped = self.was_guard_stopped = False
            if self.is_taken_back and self.doing is not None and self.outcome == "running":
                self.asked_ns, self.is_answered = self.clock.now_ns(), False
                # The same one, which a policy that knows it just goes on with.
                self.action.publish(self.doing, stems_from=self._sources())
            else:
                self.doing = None
            self.said_ns.pop("Sorry! I have stopped.", None)

    def _say(self, text: str) -> None:
        text = text.strip()
        now_ns = self.clock.now_ns()
        last_ns = self.said_ns.get(text)
        if not text or (last_ns is not None and now_ns - last_ns < to_ns(REPEAT_S)):
            return
        self.said_ns[text] = now_ns
        self.said.publish(Utterance(speaker=self.speaker, text=text), stems_from=self._sources())

    def _describe(self, decision: Decision) -> None:
        objects = believed(self.known)
        names = ", ".join([name_of(thing) for thing in objects] + list(self.unplaced)) or "nothing"
        held = f" It holds the {name_of(self.holding)}." if self.holding is not None else ""
        task = f" Subtask: {self.task.text}." if self.task is not None and self.task.text else ""
        self.description.publish(
            SceneDescription(
                text=f"The robot is {decision.text}.{held}{task} It sees: {names}.",
                subtask_id=self.task.id if self.task is not None else "",
                progress=decision.progress,
                objects=objects,
            ),
            stems_from=self._sources(),
        )
