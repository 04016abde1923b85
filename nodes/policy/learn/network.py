"""The network of the shipped policy: what it is made of, how it learns, and the ONNX file that it becomes.

What is felt goes in as it is and as distances to landmarks (the target from the gripper, the ends of the joints' ways)
at three scales, since a base that is 6 mm off and one that is 1 m off call for different things; so does how far the
joints have moved in the last half second, and how long the action takes. A joint's goal is a mixture of affine
functions of what is felt, which hits it to the millimetre; the network says which of them counts. The gripper has a
head of its own, which says whether it is to be open. A chunk keeps these goals for one second: a pupil that told in
advance when it will close did so while its hand was still coming down. The base's speed is foretold, at five knots.
A look moves the head alone: that is built in, not learned.
"""

from __future__ import annotations

import io
import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nodes.models.onnx_file import declared
from nodes.policy.learn.rows import INPUTS, Rows
from nodes.policy.onnx.tensors import COLUMNS, SKILLS
from nodes.policy.skill_phases import BELOW_TOP_M, GRASP_ABOVE_BOTTOM_M
from nodes.policy.stretch_motion import OPEN_M, travel_lift_m
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    DOWN_RAD,
    GRASP_REACH_M,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    HEAD_Z_M,
    LIFT,
    MAST_XY_M,
    WRIST_DROP_M,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_YAW,
)
from nodes.stretch.limits import STRETCH_3
from runtime.errors import UserError

NOW = 29
"""So many numbers of a row are felt now; then come eight of half a second before, and the time in the action."""
VELOCITY, GRASP, TARGET, HEIGHT, LOOKS = 8, 16, 17, 21, 22 + SKILLS.index("look")
"""Where these begin in a row of what is felt."""
KNOTS = (0, 5, 10, 15, 20)
STEPS, EXPERTS, WIDTH = KNOTS[-1], 3, 128
SCALES = (100.0, 25.0, 6.0)  # per m or rad
AT_LEAST_M = 0.01
USUAL_S = 5.0
MOST_PAN_RAD = STRETCH_3.joints[HEAD_PAN].highest
"""What is further to the left is looked at the other way round."""
JOINTS_OF_HEAD = (HEAD_PAN, HEAD_TILT)
TOLERANCE, SPEED_TOLERANCE_MPS = (0.01, 0.01, 0.1, 0.1, 0.1, 1.0, 0.03, 0.03), 0.02
"""An error of this much in a joint's goal or the base's speed counts as 1; the gripper has its own measure."""
CARRIED_M = 0.06
"""How far a cup hangs below the point between the fingers."""
Numbers = NDArray[np.float32]


def landmarks() -> tuple[Numbers, Numbers]:
    """Return distances as an affine map (NOW, n), (n,) of what is felt now."""
    travel_m = travel_lift_m(0.68, None)
    to_wrist = WRIST_DROP_M + GRASP_REACH_M - ARM_Z_M
    rows: list[tuple[dict[int, float], float]] = [
        ({TARGET: 1.0}, 0.0),  # how far to drive
        ({TARGET + 1: -1.0, ARM: -1.0}, -WRIST_OUT_M),  # to reach
        ({TARGET + 2: 1.0, HEIGHT: 0.5, LIFT: -1.0}, to_wrist - BELOW_TOP_M),
        ({TARGET + 2: 1.0, HEIGHT: -0.5, LIFT: -1.0}, to_wrist + GRASP_ABOVE_BOTTOM_M),
        ({LIFT: 1.0}, -travel_m),
        ({LIFT: 1.0}, -travel_m - CARRIED_M + 0.02),
        ({ARM: 1.0}, -0.03),
        ({WRIST_YAW: 1.0}, -2.3),
        ({WRIST_YAW: 1.0}, 0.0),
        ({WRIST_PITCH: 1.0}, -DOWN_RAD),
        ({GRIPPER: 1.0}, 0.02 - OPEN_M),
        ({GRIPPER: 1.0}, -0.03),
        ({VELOCITY + LIFT: 0.2}, 0.0),
        ({VELOCITY + ARM: 0.2}, 0.0),
        ({VELOCITY + GRIPPER: 0.2}, 0.0),
        ({VELOCITY + HEAD_PAN: 0.1}, 0.0),
        ({VELOCITY + HEAD_TILT: 0.1}, 0.0),
    ]
    by = np.zeros((NOW, len(rows)), np.float32)
    for column, (parts, _) in enumerate(rows):
        for row, weight in parts.items():
            by[row, column] = weight
    return by, np.array([offset for _, offset in rows], np.float32)


def gaze() -> tuple[Numbers, Numbers]:
    """Return what the head's goal is made of, as such a map: target from the mast ahead, left and up; pan, tilt."""
    by = np.zeros((NOW, 5), np.float32)
    by[TARGET, 0], by[TARGET + 1, 1], by[TARGET + 2, 2], by[HEAD_PAN, 3], by[HEAD_TILT, 4] = 1, 1, 1, 1, 1
    return by, np.array([-MAST_XY_M[0], -MAST_XY_M[1], -HEAD_Z_M, 0.0, 0.0], np.float32)


def between_knots() -> Numbers:
    """Return the map (STEPS, knots) from what is wanted at the knots to each step of a chunk."""
    return np.stack([np.interp(range(STEPS), KNOTS, one) for one in np.eye(len(KNOTS))], 1).astype(np.float32)


class Pupil(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """From what is felt (n, 38) to goals (n, 8), speeds at the knots (n, knots), the logits of open and done (n,)."""

    def __init__(self, mean: Numbers, deviation: Numbers) -> None:
        super().__init__()
        by, offset = landmarks()
        eye, eye_offset = gaze()
        known = {"mean": mean, "scale": 1 / deviation, "by": by, "offset": offset, "eye": eye, "eye_offset": eye_offset}
        for name, value in known.items():
            self.register_buffer(name, torch.tensor(value))
        features = NOW + len(SCALES) * (by.shape[1] + 2) + 8 + 1
        self.first, self.second = nn.Linear(features, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.choice = nn.Linear(WIDTH, 8 * EXPERTS)
        self.affine = nn.Linear(NOW + len(JOINTS_OF_HEAD), 8 * EXPERTS)
        self.speed, self.opens, self.done = nn.Linear(WIDTH, len(KNOTS)), nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)
        with torch.no_grad():
            self.affine.weight.mul_(0.1)
            self.affine.bias.zero_()
            for joint in range(8):  # one of the functions begins as "stay"
                self.affine.weight[joint * EXPERTS, joint] += float(deviation[joint])
                self.affine.bias[joint * EXPERTS : (joint + 1) * EXPERTS] = float(mean[joint])

    def forward(self, felt: torch.Tensor) -> tuple[torch.Tensor, ...]:
        now, before, elapsed = felt.split((NOW, 8, 1), 1)
        usual = (now - self.mean) * self.scale
        ahead, left, up, pan, tilt = (now @ self.eye + self.eye_offset).split(1, 1)
        away = torch.sqrt(ahead * ahead + left * left)
        to_pan = 2 * torch.atan(left / (away + ahead).clamp(min=AT_LEAST_M))
        to_pan = to_pan - 2 * torch.pi * (to_pan > MOST_PAN_RAD)
        to_tilt = torch.atan(up / away.clamp(min=AT_LEAST_M))
        far = torch.cat([now @ self.by + self.offset, pan - to_pan, tilt - to_tilt], 1)
        near = [torch.tanh(far * scale) for scale in SCALES]
        moved = torch.tanh((now[:, :8] - before) * SCALES[1])
        hidden = torch.cat([usual, *near, moved, torch.tanh(elapsed * (1 / USUAL_S))], 1)
        hidden = torch.relu(self.second(torch.relu(self.first(hidden))))
        weight = torch.softmax(self.choice(hidden).view(-1, 8, EXPERTS), 2)
        goals = (weight * self.affine(torch.cat([usual, to_pan, to_tilt], 1)).view(-1, 8, EXPERTS)).sum(2)
        return goals, self.speed(hidden), self.opens(hidden)[:, 0], self.done(hidden)[:, 0]


def speeds_ahead(rows: Rows) -> Numbers:
    """Return the base's speed that was wanted at each row's knots (n, knots), at most to the end of its run."""
    last = np.append(np.flatnonzero(np.diff(rows.runs)), len(rows.runs) - 1)
    ends = last[np.searchsorted(last, np.arange(len(rows.runs)))]
    ahead = np.minimum(np.arange(len(rows.runs))[:, None] + np.array(KNOTS), ends[:, None])
    return np.asarray(rows.wanted[ahead, 8])


def learn(rows: Rows, *, epochs: int, before: Pupil | None = None, seed: int = 0) -> tuple[Pupil, float]:
    """Return a pupil that has gone through the rows so many times, from `before` on, and its loss in the end."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    now = rows.felt[:, :NOW]
    pupil = before or Pupil(now.mean(0), np.maximum(now.std(0), 0.05))
    seen, goals, speeds = torch.tensor(rows.felt), torch.tensor(rows.wanted[:, :8]), torch.tensor(speeds_ahead(rows))
    is_open = torch.tensor((rows.wanted[:, GRIPPER] > OPEN_M / 2).astype(np.float32))
    done, counts = torch.tensor(rows.wanted[:, COLUMNS]), torch.tensor(rows.counts)
    tolerance = torch.tensor(TOLERANCE)
    # A look moves the head alone, so its other goals teach nothing; the gripper's is learned by its own head.
    matters = torch.ones(len(seen), 8)
    matters[:, GRIPPER] = 0.0
    matters[seen[:, LOOKS] > 0] = torch.tensor([float(joint in JOINTS_OF_HEAD) for joint in range(8)])
    acts = 1.0 - seen[:, LOOKS]
    batch = 1024
    batches = max(1, len(seen) // batch)
    steps = epochs * batches
    optimiser = torch.optim.AdamW(pupil.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps, pct_start=0.1)
    recent: list[float] = []
    for number in range(steps):
        if number % batches == 0:
            order = torch.randperm(len(seen), generator=generator)
        some = order[number % batches * batch :][:batch]
        aims, drives, opens, logit = pupil(seen[some])
        off = (aims - goals[some]) / tolerance * matters[some]
        slip = (drives - speeds[some]) / SPEED_TOLERANCE_MPS
        each = nn.functional.smooth_l1_loss(off, torch.zeros_like(off), reduction="none").sum(1) / 9
        drive = nn.functional.smooth_l1_loss(slip, torch.zeros_like(slip), reduction="none").mean(1) / 9
        gripper = nn.functional.binary_cross_entropy_with_logits(opens, is_open[some], reduction="none")
        sure = nn.functional.binary_cross_entropy_with_logits(logit, done[some], reduction="none")
        loss = ((each + acts[some] * (drive + gripper) + 2.0 * sure) * counts[some]).sum() / counts[some].sum()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        recent = [*recent[-200:], float(loss.detach())]
    return pupil, float(np.mean(recent))


class WholeModel(Pupil):
    """The model as a policy asks it: from its inputs to the chunk (1, steps, 10), and how sure it is of the end (1,).

    While it looks: the head as learned, the other joints as they are, fingers that hold something closed.
    """

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inputs = dict(zip(INPUTS, given, strict=True))
        joints, looks = inputs["joints"], inputs["skill"][:, SKILLS.index("look")].unsqueeze(1)
        felt = [value[:, 0] if name == "history" else value for name, value in inputs.items()]
        goals, speeds, opens, done = super().forward(torch.cat(felt, 1))
        acts = 1.0 - looks
        is_head = torch.tensor([float(joint in JOINTS_OF_HEAD) for joint in range(8)])
        is_gripper = torch.tensor([float(joint == GRIPPER) for joint in range(8)])
        is_other = 1.0 - is_head - is_gripper
        moves = goals * (is_head + acts * is_other)
        stays = looks * joints * (is_other + is_gripper * (1.0 - inputs["grasp"]))
        closes = OPEN_M * (opens.unsqueeze(1) > 0) * acts * is_gripper
        rows = (moves + stays + closes).unsqueeze(1).expand(-1, STEPS, -1)
        speed = torch.tensor(between_knots()) @ (speeds * acts).unsqueeze(2)  # (1, steps, 1)
        return torch.cat([rows, speed, 0.0 * speed], 2), torch.sigmoid(done)


def as_onnx(pupil: Pupil, notes: dict[str, str]) -> bytes:
    """Return the pupil as one ONNX file, with the notes as its metadata."""
    import onnx

    whole = WholeModel(np.zeros(NOW, np.float32), np.ones(NOW, np.float32))
    whole.load_state_dict(pupil.state_dict())
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's newer exporter wants one package more
        torch.onnx.export(
            whole.eval(), tuple(torch.zeros(1, *sizes) for sizes in INPUTS.values()), file, opset_version=18,
            input_names=list(INPUTS), output_names=["chunk", "done"], dynamo=False,
        )  # fmt: skip
    model = onnx.load_from_string(file.getvalue())
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def restored(data: bytes) -> Pupil:
    """Return the pupil that became this ONNX file. Raises UserError where it is the file of another network."""
    import onnx
    from onnx import numpy_helper

    refusal = "this is no file of our network; learn from clear-table, or from what `learn` wrote"
    try:
        declared(data)
    except ValueError:
        raise UserError(refusal) from None
    graph = onnx.load_from_string(data).graph
    arrays = {one.name: np.array(numpy_helper.to_array(one)) for one in graph.initializer}
    sizes = {
        name: tuple(value.shape)
        for name, value in Pupil(np.zeros(NOW, np.float32), np.ones(NOW, np.float32)).state_dict().items()
    }
    if any(name not in arrays or arrays[name].shape != size for name, size in sizes.items()):
        raise UserError(refusal)
    pupil = Pupil(arrays["mean"], np.ones(NOW, np.float32))
    pupil.load_state_dict({name: torch.tensor(arrays[name]) for name in sizes})
    return pupil
