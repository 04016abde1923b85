"""`OnnxPolicy`: a control policy from an ONNX file. It turns what is seen, felt and asked into chunks and plays them.

The model says by its inputs what it is given (`tensors`; docs/policy.md): images of the head and the wrist, the
joints and what else is felt, and the action: skill, target, words. Its output is `chunk` (1, steps, 10), joint
positions, base v in m/s, base w in rad/s; and, where it can tell, `done` (1,). Inference
runs in the node's worker thread on the newest image, or the newest state where the model sees none. Chunks are played
at 20 Hz (`chunks.Playback`) and never past their end: then nothing is published and the guard holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import msgspec
import numpy as np

from nodes.interrupts.people import HearsPeople
from nodes.models.onnx_file import read_model_with_data
from nodes.msgs import (
    JOINTS,
    Action,
    ActionChunk,
    Feedback,
    FeedbackCode,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    JointVector,
    RobotState,
    Scene,
    SkillCatalogue,
    Utterance,
)
from nodes.policy.action_request import ActionRequest
from nodes.policy.allowed import SEEN_FOR_S, why_not
from nodes.policy.confirmations import Confirmations
from nodes.policy.onnx.chunks import BLEND_S, Playback, as_message, seen_ns
from nodes.policy.onnx.convention import convention_of, out_of_range
from nodes.policy.onnx.inputs import Felt, PolicyModel, Pose, Trigger, feel, pose_of
from nodes.policy.onnx.tensors import CAMERAS, LONGEST_HISTORY, problems_of, unit_problem
from nodes.policy.sight import knows
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from nodes.policy.stretch_motion import StretchMotion
from nodes.robot.robot_from_launch import DEFAULT, ForRobot, load_limits
from nodes.seats.seat_node import SeatNode
from nodes.stretch.kinematics import GRIPPER
from runtime import (
    RELIABLE,
    Fence,
    ParameterError,
    PolyrhythmError,
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
    from nodes.policy.onnx.session import PolicySession

RATE_HZ = 20
STEP_S = 0.05
"""From step to step of a chunk, where neither the launch file nor the model's own says it."""
MOST_THREADS = 64
SMALLEST_PX, LARGEST_PX = 8, 4096
FELT_EVERY_S = 0.04
"""How often a model that sees nothing is asked, at most: every other state."""

LONGEST_BLEND_S = 10.0

MOVED = (0.01, 0.01, 0.05, 0.05, 0.05, 0.01, 0.05, 0.05, 0.01, 0.01, 0.05)
"""From so much on a joint, or the base's x, y or heading, has moved: m and rad."""

LOOKS_FOR_S = 1.0
"""How long the wrist's first image is waited for."""


def shipped() -> dict[str, Path]:
    """Return the model files that ship, in `models` beside this module."""
    return {file.stem: file for file in sorted(Path(__file__).with_name("models").glob("*.onnx"))}


def place_of(model: str) -> str:
    """Return the path of the shipped model of that name; any other path as it is."""
    return str(shipped().get(model, model))


LONGEST_S = 10.0


def deadline_problems(within_s: float, budget_s: float) -> list[str]:
    """Why a server may not be given that long, in a sentence; none where it may."""
    if not 0.0 < within_s <= LONGEST_S:
        return [f"within_s is {within_s}; expected more than 0 and at most {LONGEST_S:g} s"]
    if within_s <= budget_s:
        return []
    return [
        f"within_s is {within_s:g} s, and an answer older than budget_s ({budget_s:g} s) is never played;"
        " set within_s to at most that"
    ]


def deadline_over_age(within_s: float, oldest_s: Mapping[str, float]) -> list[str]:
    """Why a server may not be given longer than an image may be old, in a sentence; none where it is not."""
    oldest = oldest_s.get("image", math.inf)
    if within_s <= oldest:
        return []
    return [
        f"within_s is {within_s:g} s, and what reads its commands refuses images older than {oldest:g} s"
        " (max_image_age_s), so a later answer is never played; set within_s to at most that"
    ]


Phase = Literal["idle", "beginning", "acting", "keeping"]
"""Beginning: the posture before is kept until the first judged chunk. Keeping: a posture, and no chunk."""
PhaseEvent = Literal["action", "judged", "done", "rest", "let go", "seated"]
PHASES: Mapping[tuple[Phase, PhaseEvent], Phase] = {
    ("idle", "action"): "beginning",
    ("beginning", "action"): "beginning",
    ("acting", "action"): "beginning",
    ("keeping", "action"): "beginning",
    ("beginning", "judged"): "acting",
    ("acting", "done"): "keeping",
    ("idle", "rest"): "keeping",
    ("beginning", "rest"): "keeping",
    ("acting", "rest"): "keeping",
    ("beginning", "let go"): "idle",
    ("acting", "let go"): "idle",
    ("keeping", "let go"): "idle",
    ("idle", "seated"): "acting",
    ("beginning", "seated"): "acting",
    ("keeping", "seated"): "acting",
}
"""What is not listed changes nothing. Rest: it has come to a stop, by a model that says when an action is done. Let go:
the same by any other model, after which nothing is published."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An action, where the base was when it began, and what the model has said of it so far."""

    action: Action
    stamped: Stamped[Action] | None
    began: Pose | None
    elapsed_s: float = 0.0  # without the time in which the robot was stopped
    is_judged: bool = False  # the model says whether it is done
    sure: int = 0  # answers in a row that say so
    seen: int = -1  # the last one's number
    place: tuple[float, ...] = ()  # joints and base, when one of them had moved last
    still_s: float = 0.0  # since then
    waited_s: float = 0.0  # since something of an answer was played last, or since it began
    has_failed: bool = False  # it is over, whatever is answered later

    @classmethod
    def begun(
        cls, action: Action, stamped: Stamped[Action] | None, state: RobotState | None, *, is_judged: bool
    ) -> UnderWay:
        """Note an action as it begins."""
        return cls(action, stamped, pose_of(state) if state is not None else None, is_judged=is_judged)

    def later(self, period_s: float, state: RobotState | None) -> UnderWay:
        """Return the same one period later, with the robot as it is then."""
        later = replace(self, elapsed_s=self.elapsed_s + period_s, still_s=self.still_s + period_s)
        if state is None:
            return later
        place = (*state.position, *pose_of(state))
        is_still = self.place and all(
            abs(now - before) < far for now, before, far in zip(place, self.place, MOVED, strict=True)
        )
        return later if is_still else replace(later, place=place, still_s=0.0)

    def told(self, done: float | None, number: int, threshold: float) -> UnderWay:
        """Take in once how sure the model's answer of that number is that the action is done."""
        if done is None or number == self.seen:
            return self
        return replace(self, is_judged=True, seen=number, sure=self.sure + 1 if done >= threshold else 0)


class PlaybackSettings(TypedDict, total=False):
    """How the chunks of any model are played; `OnnxPolicy` has the defaults."""

    step_s: float
    units: dict[str, str]
    limits: str
    max_chunk_age_s: float
    needs_action: bool
    limit_s: float
    blend_s: float
    budget_s: float


class ActionSettings(PlaybackSettings, total=False):
    """The same, for a model that may say when an action is done."""

    done_at: float
    done_chunks: int
    stall_s: float


class OnnxPolicy(ForRobot, SeatNode, HearsPeople):
    """Acts while there is an action other than "hold"; with `needs_action=False` as soon as there is an image.

    A stop or a replan flushes the chunk: only what is seen or felt afterwards counts. What the model gives that is not
    finite is dropped, counted and told in the log; the action goes on. An action has failed, and is over, after
    `stall_s` in which nothing could be played. It is done when `done_chunks` answers in a row give it at least the
    probability `done_at`, and has failed after `limit_s` without, or after `stall_s` in which nothing moved; then the
    posture is kept. These two are never told by a model that has no `done`. An answer that took longer than `budget_s`
    (0: `max_chunk_age_s`) is dropped, too; a model that never takes less is refused at start. So is a chunk that asks a
    joint far out of its range, and as the first one it ends the action.

    `step_s` 0 takes the model's own, or 0.05. `units` are those of the model's joints, by name or "all": "degrees",
    "percent" of the range, "signed percent"; without, those that its file says.
    """

    realtime = True
    seat = "policy"
    effect_name = "chunk flushed"
    provenance = "model:onnx"
    made_for_joints = JOINTS
    robot_parameter = "limits"

    image = Subscription(Image, "head/image", qos=QoS(lifespan_s=0.5))
    wrist = Subscription(Image, "wrist/image", qos=QoS(lifespan_s=0.5, required=False))
    camera_3 = Subscription(Image, "camera_3/image", qos=QoS(lifespan_s=0.5, required=False))
    camera_4 = Subscription(Image, "camera_4/image", qos=QoS(lifespan_s=0.5, required=False))
    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    action = Subscription(Action, "action", qos=QoS(required=False))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    playing = Subscription(ActionChunk, "chunk")
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    scene = Subscription(Scene, "scene", qos=QoS(required=False, lifespan_s=SEEN_FOR_S))

    chunk = Publisher(ActionChunk, "chunk")
    command = Publisher(JointCommand, "command")
    feedback = Publisher(Feedback, "feedback", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)
    skills = Publisher(SkillCatalogue, "skills")

    def __init__(
        self,
        model: str,
        sha256: str = "",
        image_width_px: int = 160,
        image_height_px: int = 120,
        step_s: float = 0.0,
        max_chunk_age_s: float = 1.0,
        providers: tuple[str, ...] = ("CPUExecutionProvider",),
        needs_action: bool = True,
        done_at: float = 0.5,
        done_chunks: int = 3,
        limit_s: float = 60.0,
        blend_s: float = BLEND_S,
        budget_s: float = 0.0,
        threads: int = 1,
        stall_s: float = 3.0,
        units: dict[str, str] | None = None,
        limits: str = "",
    ) -> None:
        for name, size_px in (("image_width_px", image_width_px), ("image_height_px", image_height_px)):
            if not SMALLEST_PX <= size_px <= LARGEST_PX:
                raise ParameterError(f"policy: {name} is {size_px}; expected {SMALLEST_PX} to {LARGEST_PX}")
        times = {"step_s": step_s or STEP_S, "max_chunk_age_s": max_chunk_age_s, "limit_s": limit_s, "stall_s": stall_s}
        for name, time_s in times.items():
            if not 0.0 < time_s < math.inf:
                raise ParameterError(f"policy: {name} is {time_s}; expected a positive number of seconds")
        if not 0.0 <= budget_s < math.inf:
            raise ParameterError(f"policy: budget_s is {budget_s}; expected seconds, or 0 for max_chunk_age_s")
        if not 1 <= threads <= MOST_THREADS:
            raise ParameterError(f"policy: threads is {threads}; expected 1 to {MOST_THREADS}")
        if not providers:
            raise ParameterError("policy: providers is empty; CPUExecutionProvider is always there")
        if not 0.0 < done_at <= 1.0:
            raise ParameterError(f"policy: done_at is {done_at}; expected a probability above 0")
        if done_chunks < 1:
            raise ParameterError(f"policy: done_chunks is {done_chunks}; expected 1 or more")
        if not 0.0 <= blend_s <= LONGEST_BLEND_S:
            raise ParameterError(f"policy: blend_s is {blend_s}; expected 0 to {LONGEST_BLEND_S:g} s")
        self.model = model
        self.sha256 = sha256
        self.image_width_px = image_width_px
        self.image_height_px = image_height_px
        self.is_step_stated = step_s > 0
        self.step_s = step_s or STEP_S
        self.units = units or {}
        self.joint_limits = load_limits(limits or DEFAULT).joints
        self.max_chunk_age_s = max_chunk_age_s
        self.providers = tuple(providers)
        self.needs_action = needs_action
        self.done_at = done_at
        self.done_chunks = done_chunks
        self.limit_s = limit_s
        self.stall_s = stall_s
        self.budget_s = budget_s or max_chunk_age_s
        self.threads = threads
        self.session: PolicyModel | None = None
        # Written by the plain handlers only, as whole values: the worker reads them.
        self.phase: Phase = "idle" if needs_action else "acting"
        self.known_skills: tuple[str, ...] = ()  # the worker's
        self.judges = False  # the model has `done`; known at the start, or the worker's
        self.under_way: UnderWay | None = None
        self.recent: tuple[JointVector, ...] = ()
        self.playback = Playback(blend_s)
        self.taken = -1  # number of the chunk that was taken into it last
        self.latency_ns = 0  # of that chunk
        self.kept: JointVector | None = None  # the posture between two actions, of a model that says "done"
        self.last: JointVector | None = None  # commanded for the action under way
        self.confirmations = Confirmations(knows)
        self.asked: ActionRequest | None = None
        self.fence_ns = -1
        self.is_guard_stopped = False
        self.told = ""
        # By the worker only.
        self.refused = 0
        self.refusal = ""
        self.is_hopeless = False  # no later answer mends it
        self.felt_ns = 0
        self.remembered: tuple[str, int, bytes] = ("", 0, b"")  # for which action, since which stop, and what

    @property
    def is_active(self) -> bool:
        """Whether there is an action for which the model is asked."""
        return self.phase in ("beginning", "acting")

    def _pass_to(self, event: PhaseEvent) -> None:
        self.phase = PHASES.get((self.phase, event), self.phase)

    def problems(self) -> list[str]:
        """Return in sentences what is wrong with the model file, which is read and not loaded."""
        place, wrong = place_of(self.model), self.unit_problems()
        return wrong or problems_of(place, self.sha256, width_px=self.image_width_px, height_px=self.image_height_px)

    def unit_problems(self) -> list[str]:
        """What is wrong with the parameter `units`, in sentences."""
        wrong = unit_problem(self.units)
        return [wrong] if wrong else []

    def opened(self) -> PolicySession:
        """Return the model, loaded and asked once. Raises PolyrhythmError."""
        from nodes.policy.onnx.session import PolicySession

        data, beside, problems = read_model_with_data(place_of(self.model), self.sha256)
        if problems:
            raise ParameterError(f"{self.name}: {'; '.join(problems)}")
        return PolicySession(
            data,
            name=f"model {self.model!r}",
            width_px=self.image_width_px,
            height_px=self.image_height_px,
            providers=self.providers,
            beside=beside,
            seed=self.run_info.seed,
            threads=self.threads,
        )

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return why a provider cannot be had; and how long the model takes here, against its budget."""
        from nodes.models.onnx_runtime import findings

        return findings(self.providers, self.opened if is_timed else None, f"model {self.model!r}", self.budget_s)

    def on_start(self) -> None:
        from nodes.models.onnx_runtime import tell_speed

        self.session = self.opened()
        self.judges = self.session.wants().judges
        tell_speed(self, self.session, self.session.name, self.budget_s)
        for port in (self.chunk, self.command):
            port.provenance = f"model:{self.model}"

    @every(hz=1)
    def announce(self) -> None:
        """Publish the skills that the model knows; all where it does not say."""
        known = self.known_skills
        self.skills.publish(catalogue_of(spec for name, spec in SPECS.items() if not known or name in known))

    @on(action)
    def begin(self, action: Action) -> None:
        """Act on the newest action."""
        asked, state = ActionRequest.of(action, self.context.trigger), self.state.latest()
        if asked.repeats(self.asked):
            self.asked = asked
            if self.is_active:  # asked again, as after a false alarm: it is still at it
                self.feedback.publish(Feedback(action_id=action.id, status="running"))
            return
        scene = self.scene.peek()
        refusal = why_not(action, state, SPECS, scene.message.people if scene is not None else ())
        question = "" if refusal else self.confirmations.question(action, SPECS, self.clock.now_ns())
        if refusal or question:
            code: FeedbackCode = "consent" if question else ""
            self.feedback.publish(Feedback(action_id=action.id, status="failure", why=refusal or question, code=code))
            if question:
                self.said.publish(Utterance(speaker="robot", text=question))
            return
        judges = self.under_way is not None and self.under_way.is_judged
        if judges and self.is_active and self.under_way is not None:
            why = f"replaced by {action.text or action.skill!r}"
            ident = self.under_way.action.id
            self.feedback.publish(Feedback(action_id=ident, status="failure", why=why, code="replaced"))
        if judges:
            self.kept = self.last if self.is_active else self.kept
        self.asked, self.under_way = asked, UnderWay.begun(action, self.context.trigger, state, is_judged=judges)
        self.told = ""
        if action.skill != "hold" or not self.needs_action:
            self._pass_to("action")
            self.feedback.publish(Feedback(action_id=action.id, status="running"))
        else:
            self._flush()
            self.kept = self._resting() if judges else None
            self._pass_to("rest" if judges else "let go")
            self.feedback.publish(Feedback(action_id=action.id, status="success", why="holding still"))

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Take in a person's yes to what the policy asked."""
        self.confirmations.hear(utterance, self.clock.now_ns(), is_person=self.judge(utterance).counts)

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        if interrupt.depth in ("stop", "replan"):
            self._flush()
        if interrupt.depth == "replan" and self.needs_action:
            self._end(f"set aside: {interrupt.by} said {interrupt.text!r}")

    def on_preempted(self, fence: Fence) -> bool:
        """The runtime has dropped the chunk on its way; the one being played goes too."""
        chunk = self.playing.stamped()
        was_busy = chunk is not None and seen_ns(chunk) > self.fence_ns
        self._flush()
        return was_busy

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        """While the guard holds the robot still no time runs out. Not read in a tick: it has an image's age."""
        self.is_guard_stopped = guard.is_stopped

    def on_seat(self) -> None:
        """Take up the action again, from wherever the robot was left."""
        under_way = self.under_way
        is_open = under_way is not None and under_way.is_judged and not under_way.has_failed
        if is_open and under_way is not None and under_way.action.skill != "hold":
            self._flush()
            self.under_way, self.kept = replace(under_way, elapsed_s=0.0, sure=0, place=(), waited_s=0.0), None
            self._pass_to("seated")

    @on(image, blocking=True)
    def infer(self, image: Image) -> None:
        """Compute one chunk from the newest image, for as long as the model takes."""
        self._answer("image", {"image": image})

    @on(wrist, blocking=True)
    def infer_from_wrist(self, image: Image) -> None:
        """Compute one chunk for a model that sees by the wrist camera alone."""
        self._answer("wrist", {"wrist": image})

    @on(state, blocking=True)
    def infer_from_state(self, state: RobotState) -> None:
        """Compute one chunk for a model that has no image."""
        if to_s(state.read_ns - self.felt_ns) >= FELT_EVERY_S or state.read_ns < self.felt_ns:
            self._answer("felt", {})

    def _answer(self, trigger: Trigger, seen: dict[str, Image]) -> None:
        """Ask the model, if this is what it answers."""
        state, under_way = self.state.latest(), self.under_way
        if self.session is None or state is None or not self.is_active:
            return
        is_hopeless = False
        try:
            wants = self.session.wants()
            self.known_skills, self.judges = tuple(wants.skills), wants.judges
            if wants.trigger != trigger:
                return
            if under_way is not None and wants.skills and under_way.action.skill not in wants.skills:
                known, skill, is_hopeless = ", ".join(sorted(wants.skills)), under_way.action.skill, True
                raise PolyrhythmError(f"{self.model} has not learned to {skill}; it knows {known}")
            self.felt_ns = state.read_ns
            beside = {"wrist": self.wrist, "camera_3": self.camera_3, "camera_4": self.camera_4}
            for camera in (name for name in CAMERAS[1:] if name in wants.names and name not in seen):
                image = beside[camera].latest()
                if image is not None:
                    seen[camera] = image
                elif self._is_new(under_way):
                    return
            is_hopeless = not self.playback.plans and not wants.names.isdisjoint(set(CAMERAS) - set(seen))
            action = under_way.action if under_way is not None and wants.is_about_action else None
            began = under_way.began if under_way is not None else None
            elapsed_s = under_way.elapsed_s if under_way is not None else 0.0
            felt = feel(state, action, began, self.recent, wants.history, elapsed_s)
            step_s = self.step_s if self.is_step_stated else wants.step_s or self.step_s
            if wants.previous:
                since_ns = next((image.captured_ns for image in seen.values()), state.read_ns)
                felt = self._with_previous(felt, since_ns, wants.previous, step_s)
            if "noise" in wants.names:
                felt = msgspec.structs.replace(felt, seed=self.random.getrandbits(63))
            since = (under_way.action.id if under_way is not None else "", self.fence_ns)
            if self.remembered[:2] == since:  # what it saw before a stop, or for another action, is forgotten
                felt = msgspec.structs.replace(felt, memory=self.remembered[2])
            felt = msgspec.structs.replace(felt, seen_ns=max((image.captured_ns for image in seen.values()), default=0))
            convention = convention_of(self.units or wants.units, self.joint_limits)
            felt = felt if convention is None else convention.told(felt)
            begun_ns = self.clock.now_ns()
            answer = self.session.run({camera: image.rgb for camera, image in seen.items()}, felt)
            if self.clock.since_s(begun_ns) > self.budget_s:
                self.remembered = (*since, b"")
                raise PolyrhythmError(f"{self.model} took longer than its budget of {1e3 * self.budget_s:g} ms")
            if convention is not None:
                answer = convention.ours(answer, is_relative=wants.is_relative)
            if wants.is_relative:
                start = (*self.playback.anchor(state.position, state.read_ns), 0.0, 0.0)
                answer = replace(answer, chunk=answer.chunk + start)
            numbers = (answer.chunk, answer.done or 0.0, np.frombuffer(answer.memory, np.float32))
            is_finite = all(bool(np.isfinite(number).all()) for number in numbers)
            self.remembered = (*since, answer.memory if is_finite else b"")
            why = out_of_range(answer.chunk, self.joint_limits) if is_finite else "the model's output is not finite"
            is_hopeless = is_hopeless or (is_finite and not self.playback.plans)
        except PolyrhythmError as problem:
            why = str(problem)
        if why:
            self.refused += 1
            self.refusal, self.is_hopeless = why, is_hopeless
            return
        self.refusal = ""
        about = under_way.stamped if under_way is not None and action is not None else None
        self.chunk.publish(
            as_message(answer, step_s, state.read_ns, action.id if action is not None else ""),
            stems_from=() if about is None else about,
        )

    def _with_previous(self, felt: Felt, since_ns: int, steps: int, step_s: float) -> Felt:
        """What is felt, with what is planned and how much of that will be over when the answer comes."""
        planned = self.playback.ahead(since_ns, steps, step_s)
        rows = ((*felt.joints, 0.0, 0.0),) * steps if planned is None else tuple(map(tuple, planned.tolist()))
        frozen = 0 if planned is None else min(math.ceil(self.latency_ns / to_ns(step_s)), steps)
        return msgspec.structs.replace(felt, previous=rows, frozen=float(frozen))

    def _is_new(self, under_way: UnderWay | None) -> bool:
        """The action has just begun: what has not been seen yet may still come."""
        stamped = under_way.stamped if under_way is not None else None
        return stamped is not None and stamped.age_s(self.clock.now_ns()) < LOOKS_FOR_S

    @every(hz=RATE_HZ)
    def play(self) -> None:
        self._tell()
        state = self.state.latest()
        if state is not None:
            self.recent = (*self.recent[1 - LONGEST_HISTORY :], state.position)
        stamped = self.playing.stamped() if self.is_active else None
        if stamped is not None and self._is_for_now(stamped):
            self._judge(stamped)
            self._play(stamped)
            return
        self._wait()
        if self.kept is not None:
            if self.is_guard_stopped:
                self.kept = self._resting() or self.kept
            self.last = self.kept
            self.command.publish(JointCommand(position=self.kept), stems_from=self._sources())

    def _sources(self) -> tuple[Stamped[Action], ...]:
        """What a command stems from besides what is read: the action, and so the words and the plan behind it."""
        stamped = self.under_way.stamped if self.under_way is not None else None
        return () if stamped is None else (stamped,)

    def _is_for_now(self, stamped: Stamped[ActionChunk]) -> bool:
        """Seen or felt after the last stop, and for the action under way where it is for any."""
        is_others = self.under_way is not None and stamped.message.action_id not in ("", self.under_way.action.id)
        return seen_ns(stamped) > self.fence_ns and not is_others

    def _play(self, stamped: Stamped[ActionChunk]) -> None:
        now_ns = self.clock.now_ns()
        if stamped.envelope.seq != self.taken:
            self.taken, self.latency_ns = stamped.envelope.seq, now_ns - seen_ns(stamped)
            self.playback = self.playback.with_chunk(stamped.message, seen_ns=seen_ns(stamped), came_ns=now_ns)
        command = self.playback.command(now_ns)
        if command is None or to_s(now_ns - seen_ns(stamped)) > self.max_chunk_age_s:
            self._wait()
            return  # silence, and the guard holds
        if self.under_way is not None:
            self.under_way = replace(self.under_way, waited_s=0.0)
        self.last = command.position
        self.playback = self.playback.with_sent(command.position, now_ns)
        if not self.is_active:  # this was the end of it
            self.kept = self.kept or self.last
            command = JointCommand(position=self.kept)
        self.command.publish(command, stems_from=self._sources())

    def _wait(self) -> None:
        """Give up an action of which nothing could be played for long, as where the camera or the model has gone."""
        if self.under_way is None or self.is_guard_stopped or not self.is_active:
            return
        if not (self.judges or self.under_way.is_judged or self.refusal):
            return  # it knows of no end, and nothing was asked of it: it waits for its camera
        self.under_way = replace(self.under_way, waited_s=self.under_way.waited_s + 1 / RATE_HZ)
        limit_s = max(self.stall_s, self.max_chunk_age_s)
        if self.under_way.waited_s > limit_s:
            is_judged = self.under_way.is_judged or self.judges
            self.under_way = replace(self.under_way, is_judged=is_judged, has_failed=True)
            self._end(f"no answer of the model for {limit_s:g} s{f': {self.refusal}' if self.refusal else ''}")

    def _judge(self, stamped: Stamped[ActionChunk]) -> None:
        """Whether the action is done by now, or has taken too long, by a model that can tell."""
        if self.under_way is None or stamped.message.done is None or self.is_guard_stopped:
            return
        done, number = stamped.message.done, stamped.envelope.seq
        later = self.under_way.later(1 / RATE_HZ, self.state.latest())
        now = self.under_way = later.told(done, number, self.done_at)
        self.kept = None
        self._pass_to("judged")
        if now.sure >= self.done_chunks:
            self._pass_to("done")
            why = now.action.text or now.action.skill
            done_now = Feedback(action_id=now.action.id, status="success", why=why)
            self.feedback.publish(done_now, stems_from=self._sources())
        elif now.elapsed_s > self.limit_s:
            self._end(f"not done within {self.limit_s:g} s")
        elif now.still_s > self.stall_s:
            self._end(f"no progress for {self.stall_s:g} s")

    def _end(self, why: str) -> None:
        """Give up the action; a model that says when one is done leaves no action without an answer."""
        was_active = self.is_active
        is_judged = self.under_way is not None and self.under_way.is_judged
        self._pass_to("rest" if is_judged else "let go")
        if self.under_way is None:
            return
        if is_judged:
            self.kept = self._resting()
        if was_active and (is_judged or self.under_way.has_failed):
            failed = Feedback(action_id=self.under_way.action.id, status="failure", why=why)
            self.feedback.publish(failed, stems_from=self._sources())

    def _resting(self) -> JointVector | None:
        """Where the robot comes to rest now, with the gripper as it was commanded: it may hold something."""
        state = self.state.latest()
        if state is None:
            return self.kept
        rest, commanded = StretchMotion().resting(state, None), self.kept or self.last
        if commanded is None:
            return rest
        return tuple(commanded[joint] if joint == GRIPPER else at for joint, at in enumerate(rest))

    def _flush(self) -> None:
        self.fence_ns = self.clock.now_ns()
        self.playback = self.playback.flushed()

    def _tell(self) -> None:
        """Say once per reason why outputs are dropped."""
        refusal = self.refusal
        if refusal == self.told:
            return
        self.told = refusal
        if refusal:
            self.log.warning("dropped: %s (%d so far)", refusal, self.refused)
            if self.is_hopeless and self.under_way is not None and self.is_active:
                self.under_way = replace(self.under_way, has_failed=True)
                self._end(refusal)
