"""`DetectorVLM`: the VLM's seat with a detector and a pose network as its eyes: no server, no network, no depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from nodes.msgs import Image, Scene
from nodes.policy.sight import state_at
from nodes.robot.products import product
from nodes.vlm.detector.folder import read_folder
from nodes.vlm.detector.labels import KINDS, PLACES
from nodes.vlm.local import LocalVLM
from nodes.vlm.talk import HoldStill
from runtime import ParameterError, PolyrhythmError, Stamped, on

if TYPE_CHECKING:
    from nodes.vlm.detector.eyes import Eyes, Looked
    from nodes.vlm.detector.scene import Tracked

FOLDER = "models/webcam"
MOST_THREADS = 64


class DetectorVLM(LocalVLM):
    """Names eighty kinds of things, and tells what a person holds, points and looks at; decides as `LocalVLM`.

    Where things are is a guess from their usual size, so that nothing is grasped by it: the robot talks and moves its
    head. `folder` is what `nodes.vlm.detector.convert` wrote. A look that took longer than `budget_s` is dropped and
    counted; eyes that never take less are refused at the start.
    """

    provenance = "model:detector-and-pose"
    kinds = KINDS
    places = tuple(sorted(PLACES))

    def __init__(
        self,
        folder: str = FOLDER,
        providers: tuple[str, ...] = ("CPUExecutionProvider",),
        threads: int = 1,
        budget_s: float = 0.5,
        speaker: str = "robot",
        limits: str = "",
    ) -> None:
        super().__init__(speaker, limits)
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
        self.eyes: Eyes | None = None
        self.tracked: tuple[Tracked, ...] = ()
        self.next_number = 1
        self.now = Scene()
        self.told = ""
        # By the worker only, as whole values.
        self.looked: tuple[Stamped[Image], Looked] | None = None
        self.refused = 0
        self.refusal = ""

    def make_talk(self) -> HoldStill:
        return HoldStill()

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

    def _opened(self) -> Eyes:
        from nodes.vlm.detector.eyes import Eyes

        return Eyes(self.folder, providers=self.providers, threads=self.threads)

    def on_start(self) -> None:
        from nodes.models.onnx_runtime import tell_speed

        super().on_start()
        try:
            self.eyes = self._opened()
        except PolyrhythmError as problem:
            raise ParameterError(f"{self.name}: {problem}") from problem
        tell_speed(self, self.eyes, "looking", self.budget_s)

    @on(LocalVLM.image, blocking=True)
    def see(self, image: Image) -> None:
        """Look at the newest image, for as long as that takes."""
        stamped, eyes = self.context.trigger, self.eyes
        if eyes is None or stamped is None:
            return
        begun_ns = self.clock.now_ns()
        try:
            looked = eyes.look(image.rgb)
            if self.clock.since_s(begun_ns) > self.budget_s:
                raise PolyrhythmError(f"a look took longer than its budget of {1e3 * self.budget_s:g} ms")
        except PolyrhythmError as problem:
            self.refused += 1
            self.refusal = str(problem)
            return
        self.refusal = ""
        self.looked = (stamped, looked)

    def _look(self) -> None:
        """Take in what the worker has found since."""
        from nodes.vlm.detector.scene import scene_of, track

        self._tell()
        if self.looked is None or self.looked[0].message.captured_ns == self.looked_ns:
            return
        self.seen, looked = self.looked
        image = self.seen.message
        self.looked_ns = self.shown_ns = image.captured_ns
        self.tracked, self.next_number = track(self.tracked, looked.boxes, image.captured_ns, self.next_number)
        self.unplaced = tuple(f"a {one.box.label}" for one in self.tracked)
        state = state_at(self.states, image.captured_ns)
        if state is None:
            return
        rotation, position = self.body.head_camera(state)

        def into_odometry(point_m: tuple[float, float, float]) -> tuple[float, float, float]:
            x, y, z = (position + product(rotation, np.array(point_m))).tolist()
            return x, y, z

        height_px, width_px = image.rgb.shape[:2]
        self.now = scene_of(
            self.tracked,
            looked.pose,
            size_px=(width_px, height_px),
            focal_px=image.focal_px,
            into_odometry=into_odometry,
        )

    def _scene(self) -> Scene:
        return self.now

    def _tell(self) -> None:
        """Say once per reason why looks are dropped."""
        if self.refusal == self.told:
            return
        self.told = self.refusal
        if self.refusal:
            self.log.warning("dropped: %s (%d so far)", self.refusal, self.refused)
