"""`OnnxPolicy`: a control policy from an ONNX file. It turns image and joints into chunks and plays the newest one.

The model has the inputs `image` (1, 3, height, width), RGB from 0 to 1, and `joints` (1, 8), positions in the order of
`msgs.JOINTS`, and the output `chunk` (1, steps, 10): joint positions, base v in m/s, base w in rad/s; all float32. One
file, no external data. Inference runs in the node's worker thread on the newest image; the chunk is played at 20 Hz and
never past its end: then nothing is published and the guard holds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodes.policy.allowed import PLEASE, Confirmations, why_not
from nodes.policy.asked import Asked
from nodes.policy.onnx_file import read_model
from runtime import Node, Publisher, QoS, Subscription, every, on
from runtime.errors import ParameterError, PolyrhythmError
from runtime.fence import Fence
from runtime.msgs import (
    JOINTS,
    Action,
    ActionChunk,
    Effect,
    Feedback,
    Image,
    Interrupt,
    JointCommand,
    RobotState,
    Utterance,
)
from runtime.qos import RELIABLE

if TYPE_CHECKING:
    from nodes.policy.onnx_session import PolicySession
    from nodes.policy.remote_session import RemoteSession

RATE_HZ = 20
SMALLEST_PX, LARGEST_PX = 8, 4096


class OnnxPolicy(Node):
    """Acts while there is an action other than "hold"; with `needs_action=False` as soon as there is an image.

    A stop or a replan flushes the chunk: only images taken afterwards count. What the model gives that is not finite is
    dropped, counted and told.
    """

    realtime = True
    seat = "policy"
    provenance = "model:onnx"
    made_for_joints = JOINTS

    image = Subscription(Image, "head/image", qos=QoS(lifespan_s=0.5))
    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    action = Subscription(Action, "action", qos=QoS(required=False))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    fence = Subscription(Fence, "fence", qos=QoS(required=False))
    playing = Subscription(ActionChunk, "chunk")
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))

    chunk = Publisher(ActionChunk, "chunk")
    command = Publisher(JointCommand, "command")
    feedback = Publisher(Feedback, "feedback", qos=RELIABLE)
    effect = Publisher(Effect, "interrupt/effect", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(
        self,
        model: str,
        sha256: str = "",
        image_width_px: int = 160,
        image_height_px: int = 120,
        step_s: float = 0.05,
        max_chunk_age_s: float = 1.0,
        providers: tuple[str, ...] = ("CPUExecutionProvider",),
        needs_action: bool = True,
    ) -> None:
        for name, size_px in (("image_width_px", image_width_px), ("image_height_px", image_height_px)):
            if not SMALLEST_PX <= size_px <= LARGEST_PX:
                raise ParameterError(f"policy: {name} is {size_px}; expected {SMALLEST_PX} to {LARGEST_PX}")
        for name, time_s in (("step_s", step_s), ("max_chunk_age_s", max_chunk_age_s)):
            if not 0.0 < time_s < math.inf:
                raise ParameterError(f"policy: {name} is {time_s}; expected a positive number of seconds")
        if not providers:
            raise ParameterError("policy: providers is empty; CPUExecutionProvider is always there")
        self.model = model
        self.sha256 = sha256
        self.image_width_px = image_width_px
        self.image_height_px = image_height_px
        self.step_s = step_s
        self.max_chunk_age_s = max_chunk_age_s
        self.providers = tuple(providers)
        self.needs_action = needs_action
        self.session: PolicySession | RemoteSession | None = None
        self.is_active = not needs_action  # written by the plain handlers only
        self.confirmations = Confirmations()
        self.action_id = ""
        self.asked: Asked | None = None
        self.fence_ns = -1
        self.refused = 0  # by the worker only
        self.refusal = ""
        self.told = ""

    @classmethod
    def check_parameters(
        cls,
        model: str,
        sha256: str = "",
        image_width_px: int = 160,
        image_height_px: int = 120,
        step_s: float = 0.05,
        max_chunk_age_s: float = 1.0,
        providers: tuple[str, ...] = ("CPUExecutionProvider",),
        needs_action: bool = True,
    ) -> list[str]:
        """What is wrong with the model file, in sentences; it is read and not loaded."""
        return read_model(model, sha256)[1]

    def on_start(self) -> None:
        from nodes.policy.onnx_session import PolicySession

        data, problems = read_model(self.model, self.sha256)
        if problems:
            raise ParameterError(f"{self.name}: {'; '.join(problems)}")
        self.session = PolicySession(
            data,
            name=f"model {self.model!r}",
            width_px=self.image_width_px,
            height_px=self.image_height_px,
            providers=self.providers,
        )
        if self.session.fallback:
            self.log.warning("%s", self.session.fallback)
        for port in (self.chunk, self.command):
            port.provenance = f"model:{self.model}"

    @on(action)
    def begin(self, action: Action) -> None:
        """Act on the newest action; the model itself sees only image and joints."""
        asked = Asked.now(action)
        if asked.repeats(self.asked):
            self.asked = asked
            if self.is_active:  # asked again, as after a false alarm: it is still at it
                self.feedback.publish(Feedback(action_id=action.id, status="running"))
            return
        refusal = why_not(action, self.state.latest())
        refusal = refusal or self.confirmations.question(action, self.clock.now_ns())
        if refusal:
            self.feedback.publish(Feedback(action_id=action.id, status="failure", why=refusal))
            if refusal.endswith(PLEASE):
                self.said.publish(Utterance(speaker="robot", text=refusal))
            return
        self.action_id, self.asked = action.id, asked
        self.is_active = action.skill != "hold" or not self.needs_action
        if self.is_active:
            self.feedback.publish(Feedback(action_id=action.id, status="running"))
        else:
            self._flush()
            self.feedback.publish(Feedback(action_id=action.id, status="success", why="holding still"))

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """A person's yes to what the policy asked."""
        self.confirmations.hear(utterance, self.clock.now_ns())

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        if interrupt.depth in ("stop", "replan"):
            self._flush()
        if interrupt.depth == "replan" and self.needs_action:
            self.is_active = False

    @on(fence)
    def fenced(self, fence: Fence) -> None:
        """The runtime has dropped the chunk on its way; the one being played goes too."""
        if fence.depth in ("replan", "stop"):
            chunk = self.playing.stamped()
            was_busy = chunk is not None and chunk.envelope.image_ns > self.fence_ns
            self._flush()
            self.effect.publish(Effect(interrupt_id=fence.interrupt_id, effect="chunk flushed", was_busy=was_busy))

    @on(image, blocking=True)
    def infer(self, image: Image) -> None:
        """One chunk from the newest image; takes as long as the model takes."""
        state = self.state.latest()
        if self.session is None or state is None or not self.is_active:
            return
        try:
            chunk = self.session.run(image.rgb, state.position)
            why = "" if np.isfinite(chunk).all() else "the model's output is not finite"
        except PolyrhythmError as problem:
            why = str(problem)
        if why:
            self.refused += 1
            self.refusal = why
            return
        self.refusal = ""
        self.chunk.publish(_message(chunk, self.step_s))

    @every(hz=RATE_HZ)
    def play(self) -> None:
        self._tell()
        stamped = self.playing.stamped()
        if stamped is None or not self.is_active or stamped.envelope.image_ns <= self.fence_ns:
            return
        age_s = stamped.age_s(self.clock.now_ns())
        step = int(age_s / stamped.message.step_s)
        if age_s > self.max_chunk_age_s or not 0 <= step < len(stamped.message.position):
            return  # too old to trust: silence, and the guard holds
        chunk = stamped.message
        self.command.publish(
            JointCommand(
                position=tuple(float(value) for value in chunk.position[step]),
                base_v_mps=float(chunk.base_v_mps[step]),
                base_w_radps=float(chunk.base_w_radps[step]),
            )
        )

    def _flush(self) -> None:
        self.fence_ns = self.clock.now_ns()

    def _tell(self) -> None:
        """Say once per reason why outputs are dropped."""
        refusal = self.refusal
        if refusal == self.told:
            return
        self.told = refusal
        if refusal:
            self.log.warning("dropped: %s (%d so far)", refusal, self.refused)
            if self.action_id:
                self.feedback.publish(Feedback(action_id=self.action_id, status="failure", why=refusal))


def _message(chunk: NDArray[np.float64], step_s: float) -> ActionChunk:
    return ActionChunk(
        position=np.ascontiguousarray(chunk[:, :8]),
        base_v_mps=np.ascontiguousarray(chunk[:, 8]),
        base_w_radps=np.ascontiguousarray(chunk[:, 9]),
        step_s=step_s,
    )
