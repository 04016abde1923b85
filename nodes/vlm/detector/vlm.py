"""`DetectorVLM`: the VLM's seat with a detector and a pose network as its eyes: no server, no network, no depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from nodes.msgs import Image
from nodes.policy.sight import state_at
from nodes.robot.products import product
from nodes.vlm.belief import SceneBelief
from nodes.vlm.choice.next_action import decide
from nodes.vlm.detector.folder import read_folder
from nodes.vlm.node import VLM
from nodes.vlm.parts import EyesAsk, Moment, VLMEyes
from nodes.vlm.talk import HoldStill
from runtime import ParameterError, PolyrhythmError, Stamped, on

if TYPE_CHECKING:
    from nodes.vlm.detector.eyes import Eyes as Networks
    from nodes.vlm.detector.eyes import Looked
    from nodes.vlm.detector.scene import Tracked

FOLDER = "models/webcam"
MOST_THREADS = 64


class DetectorEyes(VLMEyes):
    """Make a scene of what the networks find: `looked` gives the newest of it, `refusal` tells why some is missing."""

    def __init__(
        self,
        belief: SceneBelief,
        looked: Callable[[], tuple[Stamped[Image], Looked] | None],
        refusal: Callable[[], str],
        warn: Callable[[str], None],
    ) -> None:
        self.belief, self._looked, self._refusal, self._warn = belief, looked, refusal, warn
        self._tracked: tuple[Tracked, ...] = ()
        self._next_number = 1
        self._told = ""

    def look(self, now: Moment) -> EyesAsk:
        """Take in what was found since."""
        from nodes.vlm.detector.scene import scene_of, track

        self._tell()
        newest = self._looked()
        if newest is None or (self.seen is not None and newest[0].envelope == self.seen.envelope):
            return EyesAsk()
        self.seen, looked = newest
        image = self.seen.message
        self.shown_ns = image.captured_ns
        self._tracked, self._next_number = track(self._tracked, looked.boxes, image.captured_ns, self._next_number)
        self.belief.unplaced = tuple(f"a {one.box.label}" for one in self._tracked)
        state = state_at(now.states, image.captured_ns)
        if state is None:
            return EyesAsk()
        rotation, position = now.body.head_camera(state)

        def into_odometry(point_m: tuple[float, float, float]) -> tuple[float, float, float]:
            x, y, z = (position + product(rotation, np.array(point_m))).tolist()
            return x, y, z

        height_px, width_px = image.rgb.shape[:2]
        scene = scene_of(
            self._tracked,
            looked.pose,
            size_px=(width_px, height_px),
            focal_px=image.focal_px,
            into_odometry=into_odometry,
        )
        self.belief.take(scene, is_grasping=now.is_grasping)
        return EyesAsk()

    def _tell(self) -> None:
        """Say once per reason why looks are dropped."""
        refusal = self._refusal()
        if refusal and refusal != self._told:
            self._warn(refusal)
        self._told = refusal


class DetectorVLM(VLM):
    """Names eighty kinds of things, and tells what a person holds, points and looks at; decides by rules.

    Where things are is a guess from their usual size, so that nothing is grasped by it: the robot talks and moves its
    head. `folder` is what `nodes.vlm.detector.convert` wrote. A look that took longer than `budget_s` is dropped and
    counted; eyes that never take less are refused at the start.
    """

    provenance = "model:detector-and-pose"
    robot_parameter = "limits"

    def __init__(
        self,
        folder: str = FOLDER,
        providers: tuple[str, ...] = ("CPUExecutionProvider",),
        threads: int = 1,
        budget_s: float = 0.5,
        speaker: str = "robot",
        limits: str = "",
    ) -> None:
        if not 1 <= threads <= MOST_THREADS:
            raise ParameterError(f"vlm: threads is {threads}; expected 1 to {MOST_THREADS}")
        if not 0.0 < budget_s <= 60.0:
            raise ParameterError(f"vlm: budget_s is {budget_s}; expected more than 0 and at most 60 seconds")
        if not providers:
            raise ParameterError("vlm: providers is empty; CPUExecutionProvider is always there")
        self.folder = folder
        self.providers = tuple(providers)
        self.threads = threads
        self.budget_s = budget_s
        belief = SceneBelief(is_guess=True)
        eyes = DetectorEyes(belief, lambda: self.looked, lambda: self.refusal, self._warn)
        super().__init__(eyes, belief, HoldStill(), decide, speaker=speaker, limits=limits)
        self.networks: Networks | None = None
        # By the worker only, as whole values.
        self.looked: tuple[Stamped[Image], Looked] | None = None
        self.refused = 0
        self.refusal = ""

    def _warn(self, refusal: str) -> None:
        self.log.warning("dropped: %s (%d so far)", refusal, self.refused)

    def libraries(self) -> tuple[str, ...]:
        return ("onnxruntime", "cv2")

    def problems(self) -> list[str]:
        """What its folder lacks, in sentences; models are read and hashed, and not run."""
        return read_folder(self.folder)[1]

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return why a provider cannot be had; and how long a look takes here, against its budget."""
        from nodes.models.onnx_runtime import findings

        return findings(
            self.providers, self._opened if is_timed else None, f"{self.folder}: detector and pose", self.budget_s
        )

    def _opened(self) -> Networks:
        from nodes.vlm.detector.eyes import Eyes as Networks

        return Networks(self.folder, providers=self.providers, threads=self.threads)

    def on_start(self) -> None:
        from nodes.models.onnx_runtime import tell_speed

        super().on_start()
        try:
            self.networks = self._opened()
        except PolyrhythmError as problem:
            raise ParameterError(f"{self.name}: {problem}") from problem
        tell_speed(self, self.networks, "looking", self.budget_s)

    @on(VLM.image, blocking=True)
    def see(self, image: Image) -> None:
        """Look at the newest image, for as long as that takes."""
        stamped, networks = self.context.trigger, self.networks
        if networks is None or stamped is None:
            return
        begun_ns = self.clock.now_ns()
        try:
            looked = networks.look(image.rgb)
            if self.clock.since_s(begun_ns) > self.budget_s:
                raise PolyrhythmError(f"a look took longer than its budget of {1e3 * self.budget_s:g} ms")
        except PolyrhythmError as problem:
            self.refused += 1
            self.refusal = str(problem)
            return
        self.refusal = ""
        self.looked = (stamped, looked)
