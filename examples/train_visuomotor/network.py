"""The network: eyes that find what the words mean in two images, a belief of where it is, and a hand that gets there.

Head and wrist image go through a small convolutional network each, whose features the words and the skill modulate. A
heat map's mean is a pixel. The ray through it meets the height at which such a thing stands, by the known place of the
camera over the felt joints. Each eye says how sure it is. What both see is averaged over time in the memory, by how
sure they were, in the frame in which the base was when the action began. From this belief and what is felt an MLP makes
a chunk of absolute goals, each a mixture of affine functions. The action's target goes in for "look" alone, which is
about a direction; for any other skill the network multiplies it by zero.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from examples.train_visuomotor.lessons import HEIGHT_PX, RATE_HZ, STEP_S, WIDTH_PX
from examples.train_visuomotor.teacher import TRAVEL_M
from nodes.policy.onnx.tensors import COLUMNS
from nodes.policy.stretch_motion import OPEN_M
from nodes.sim.world.room_mjcf import CAMERA_FOVY_DEG
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    DOWN_RAD,
    GRIPPER,
    HEAD_CAMERA_AHEAD_M,
    HEAD_PAN,
    HEAD_TILT,
    HEAD_Z_M,
    LIFT,
    MAST_XY_M,
    WRIST_CAMERA_M,
    WRIST_CAMERA_TILT_RAD,
    WRIST_DROP_M,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_ROLL,
    WRIST_YAW,
)

FOCAL_PX = {name: HEIGHT_PX / 2 / np.tan(np.radians(CAMERA_FOVY_DEG[name]) / 2) for name in ("head", "wrist")}
LETTERS = 48
STEPS, EXPERTS, HIDDEN = 20, 3, 256
SKILL_INPUTS = 7
SCALES = (100.0, 25.0, 6.0)
SHORTEST_B_M, LONGEST_B_M = 0.002, 1.0
MOST_P = 1 / 0.0012**2
"""The surest that a belief gets: what is seen anew still counts."""
TOLERANCE = (0.01, 0.01, 0.1, 0.1, 0.1, 0.01, 0.1, 0.1, 0.02, 0.05)
MEMORY = 8
"""Sureness along x and y, these times the place, the base's last pose, and whether there is any."""


class Words(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """From the action's words (n, LETTERS) and skill to 32 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(256, 12)
        self.parts = nn.Conv1d(12, 64, 5, padding=2)
        self.out = nn.Linear(64 + SKILL_INPUTS, 48)
        self.last = nn.Linear(48, 32)

    def forward(self, text: torch.Tensor, skill: torch.Tensor) -> torch.Tensor:
        parts = torch.relu(self.parts(self.letters(text).transpose(1, 2))).amax(2)
        return self.last(torch.relu(self.out(torch.cat([parts, skill], 1))))


class Eye(nn.Module):  # type: ignore[misc]
    """From an image and the words' numbers to the pixel of what they mean (n, 2), its features and the heat map."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 24, 5, stride=2, padding=2)
        self.second = nn.Conv2d(24, 32, 3, padding=1)
        self.third = nn.Conv2d(32, 32, 3, padding=2, dilation=2)
        self.fourth = nn.Conv2d(32, 32, 3, padding=4, dilation=4)
        self.heat = nn.Conv2d(32, 1, 1)
        self.modulate = nn.Linear(32, 2 * (32 + 32))
        rows, columns = torch.meshgrid(torch.arange(HEIGHT_PX // 2), torch.arange(WIDTH_PX // 2), indexing="ij")
        cells = torch.stack([columns.flatten() * 2 + 0.5, rows.flatten() * 2 + 0.5], 1).float()
        self.register_buffer("cells", cells)

    def forward(self, image: torch.Tensor, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scale_1, shift_1, scale_2, shift_2 = self.modulate(words)[:, :, None, None].split([32, 32, 32, 32], 1)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.training):  # half the time; places are found in float32
            seen = torch.relu(self.first(image - 0.5))
            seen = torch.relu(self.second(seen) * (1 + scale_1) + shift_1)
            wide = torch.relu(self.third(seen) * (1 + scale_2) + shift_2)
            seen = seen + torch.relu(self.fourth(wide))
        seen = seen.float()
        heat = self.heat(seen).flatten(1)
        weight = torch.softmax(heat, 1)
        pixel = weight @ self.cells
        there = (seen.flatten(2) * weight[:, None]).sum(2)
        most = heat.amax(1, keepdim=True)
        spread = (weight.unsqueeze(2) * (self.cells - pixel[:, None]) ** 2).sum(1)
        return pixel, torch.cat([there, seen.mean((2, 3)), most * 0.1, torch.log(spread + 0.1)], 1), heat


EYE_FEATURES = 32 + 32 + 1 + 2


class Pupil(nn.Module):  # type: ignore[misc]
    """The whole policy, in the inputs and outputs of docs/policy.md."""

    def __init__(self) -> None:
        super().__init__()
        self.words = Words()
        self.head, self.wrist = Eye(), Eye()
        self.sure = nn.ModuleDict(
            {name: nn.Sequential(nn.Linear(EYE_FEATURES + 32 + 18 + 2, 64), nn.ReLU(), nn.Linear(64, 4))
             for name in ("head", "wrist")}
        )  # fmt: skip
        self.known = nn.Linear(32, 6)  # the plane's height, the grasping lift, a first guess, and what is beyond
        self.hand = Hand()

    # --- where it is

    def told(self, text: torch.Tensor, skill: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        words = self.words(text, skill)
        return words, self.known(words) * torch.tensor([0.1, 0.1, 0.5, 0.5, 0.1, 0.1]) + torch.tensor(
            [0.5, 0.6, 0.0, -0.6, 0.0, 0.0]
        )

    def look(
        self, name: str, image: torch.Tensor, words: torch.Tensor, known: torch.Tensor, felt: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Where it is by one eye, ahead and left (n, 2) in m, how far off that may be (n, 2), and the heat map."""
        pixel, features, heat = getattr(self, name)(image, words)
        eye, axes = (head_camera if name == "head" else wrist_camera)(felt)
        f = float(FOCAL_PX[name])
        off = (pixel - torch.tensor([WIDTH_PX / 2, HEIGHT_PX / 2])) / f
        right, down, ahead = axes
        ray = right * off[:, :1] + down * off[:, 1:] + ahead
        reach = (known[:, :1] - eye[:, 2:]) / ray[:, 2:].clamp(max=-0.2)
        reach = reach.clamp(0.0, 2.5)
        place = eye[:, :2] + ray[:, :2] * reach
        more = self.sure[name](torch.cat([features, words, felt, reach, ray[:, 2:]], 1))
        b = torch.exp(more[:, :2] - 3.0).clamp(SHORTEST_B_M, LONGEST_B_M)
        return place + 0.03 * torch.tanh(more[:, 2:]) + known[:, 4:], b, heat

    def believe(
        self,
        seen: list[tuple[torch.Tensor, torch.Tensor]],
        known: torch.Tensor,
        base: torch.Tensor,
        memory: torch.Tensor,
        updates: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The belief after these looks: ahead and left (n, 2), its sureness (n, 2), and the memory."""
        c, s = torch.cos(base[:, 2:]), torch.sin(base[:, 2:])

        def turned(place: torch.Tensor) -> torch.Tensor:
            x, y = place[:, :1], place[:, 1:]
            return torch.cat([c * x - s * y, s * x + c * y], 1) + base[:, :2]

        is_begun = memory[:, 7:]
        p = memory[:, :2] * is_begun + (1 - is_begun) / 0.4**2
        weighted = memory[:, 2:4] * is_begun + (1 - is_begun) / 0.4**2 * turned(known[:, 2:4])
        for place, b in seen:
            more = updates / (2 * b * b)
            p, weighted = p + more, weighted + more * turned(place)
        least = torch.clamp(MOST_P / p, max=1.0)
        p, weighted = p * least, weighted * least
        away = weighted / p - base[:, :2]
        x, y = away[:, :1], away[:, 1:]
        belief = torch.cat([c * x + s * y, -s * x + c * y], 1)
        after = torch.cat([p, weighted, base, torch.ones_like(is_begun)], 1)
        return belief, p, after

    def forward(
        self, image: torch.Tensor, wrist: torch.Tensor, joints: torch.Tensor, velocity: torch.Tensor,
        grasp: torch.Tensor, base: torch.Tensor, skill: torch.Tensor, text: torch.Tensor, target: torch.Tensor,
        memory: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
        words, known = self.told(text, skill)
        moved = (base - memory[:, 4:7]) * RATE_HZ
        ahead = moved[:, :1] * torch.cos(base[:, 2:]) + moved[:, 1:2] * torch.sin(base[:, 2:])
        v = ahead.clamp(-0.4, 0.4) * memory[:, 7:]
        felt = torch.cat([joints, velocity, grasp, v], 1)
        seen = [self.look(name, one, words, known, felt)[:2] for name, one in (("head", image), ("wrist", wrist))]
        is_pick, is_place, is_look = skill[:, :1], skill[:, 1:2], skill[:, 2:3]
        belief, _, after = self.believe(seen, known, base, memory, 1 - is_pick * grasp)
        seen_aim = torch.cat([belief, known[:, :1], known[:, 1:2] * is_pick], 1)
        aim = seen_aim * (1 - is_look) + is_look * torch.cat([target, torch.zeros_like(is_look)], 1)
        chunk, done = self.hand(torch.cat([felt, is_pick, is_place, is_look, aim], 1))
        return chunk, torch.sigmoid(done), after


HAND_INPUTS = 18 + 3 + 4
AIM = 21


class Hand(nn.Module):  # type: ignore[misc]
    """From what is felt (joints, velocity, grasp, v), skill and aim (ahead, left, up, lift) to chunk and done."""

    def __init__(self) -> None:
        super().__init__()
        landmarks = 15
        usual = HAND_INPUTS + 6
        self.first = nn.Linear(usual + landmarks * len(SCALES), HIDDEN)
        self.second, self.third = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.choice = nn.Linear(HIDDEN, STEPS * COLUMNS * EXPERTS)
        self.affine = nn.Linear(usual, COLUMNS * EXPERTS)
        self.speed = nn.Linear(HIDDEN, STEPS)
        self.done = nn.Linear(HIDDEN, 1)
        with torch.no_grad():
            self.affine.weight.mul_(0.05)
            self.affine.bias.zero_()
            goals = {LIFT: AIM + 3, ARM: HAND_INPUTS, HEAD_PAN: HAND_INPUTS + 1, HEAD_TILT: HAND_INPUTS + 2}
            for joint in range(8):
                self.affine.weight[joint * EXPERTS, joint] += 1.0  # one of the functions begins as "stay"
                if joint in goals:
                    self.affine.weight[joint * EXPERTS + 1, goals[joint]] += 1.0
            for joint, value in ((LIFT, TRAVEL_M), (GRIPPER, OPEN_M), (WRIST_PITCH, DOWN_RAD)):
                self.affine.bias[joint * EXPERTS + 2] += value

    def forward(self, given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        joints, aim = given[:, :8], given[:, AIM:]
        ahead, left, up, lift = aim.split(1, 1)
        arm = (-left - WRIST_OUT_M).clamp(0.0, 0.52)
        x, y, z = ahead - MAST_XY_M[0], left - MAST_XY_M[1], up - HEAD_Z_M
        away = torch.sqrt(x * x + y * y + 1e-4)
        # A target is to the right of the mast, or ahead: the angle from straight right has no jump there.
        pan = torch.atan(x / (-y).clamp(min=0.05)) - np.pi / 2
        tilt = torch.atan(z / away).clamp(min=-1.6)
        goals = torch.cat([arm, pan, tilt, ahead.clamp(-1, 1), lift, joints[:, LIFT : LIFT + 1] - lift], 1)
        usual = torch.cat([given, goals], 1)
        at = {number: joints[:, number : number + 1] for number in range(8)}
        far = torch.cat(
            [
                ahead, arm - at[ARM], at[LIFT] - lift, at[LIFT] - TRAVEL_M, at[ARM] - 0.03,
                (at[WRIST_YAW] - 2.3) * 0.1, at[WRIST_YAW] * 0.1, (at[WRIST_PITCH] - DOWN_RAD) * 0.1,
                at[GRIPPER] - OPEN_M + 0.02, at[GRIPPER] - 0.03,
                (pan - at[HEAD_PAN]) * 0.2, (tilt - at[HEAD_TILT]) * 0.2,
                given[:, 17:18] * 0.2, given[:, 8 + ARM : 9 + ARM] * 0.2, at[LIFT] - lift - 0.06,
            ],
            1,
        )  # fmt: skip
        hidden = torch.cat([usual, *(torch.tanh(far * scale) for scale in SCALES)], 1)
        hidden = torch.relu(self.second(torch.relu(self.first(hidden))))
        hidden = hidden + torch.relu(self.third(hidden))
        weight = torch.softmax(self.choice(hidden).view(-1, STEPS, COLUMNS, EXPERTS), 3)
        mixed = (weight * self.affine(usual).view(-1, 1, COLUMNS, EXPERTS)).sum(3)
        driven = torch.tensor([0.0] * 8 + [1.0, 0.0])
        return mixed + self.speed(hidden).unsqueeze(2) * driven, self.done(hidden)[:, 0]


# --- where the cameras are, as nodes.stretch.kinematics has it, for many at once

Axes = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _pointing(turn: torch.Tensor, rise: torch.Tensor) -> Axes:
    """Ahead, left, up (n, 3)."""
    ct, st, cr, sr = torch.cos(turn), torch.sin(turn), torch.cos(rise), torch.sin(rise)
    zero = torch.zeros_like(ct)
    return (
        torch.cat([ct * cr, st * cr, sr], 1), torch.cat([-st, ct, zero], 1), torch.cat([-ct * sr, -st * sr, cr], 1),
    )  # fmt: skip


def head_camera(felt: torch.Tensor) -> tuple[torch.Tensor, Axes]:
    """Its place (n, 3), and right, down, ahead."""
    ahead, left, up = _pointing(felt[:, HEAD_PAN : HEAD_PAN + 1], felt[:, HEAD_TILT : HEAD_TILT + 1])
    return torch.tensor([*MAST_XY_M, HEAD_Z_M]) + HEAD_CAMERA_AHEAD_M * ahead, (-left, -up, ahead)


def wrist_camera(felt: torch.Tensor) -> tuple[torch.Tensor, Axes]:
    """The same of the wrist's."""
    yaw = felt[:, WRIST_YAW : WRIST_YAW + 1] - np.pi / 2
    points, left, up = _pointing(yaw, felt[:, WRIST_PITCH : WRIST_PITCH + 1])
    roll = felt[:, WRIST_ROLL : WRIST_ROLL + 1]
    c, s = torch.cos(roll), torch.sin(roll)
    left, up = c * left + s * up, c * up - s * left
    reach, aside, height = WRIST_CAMERA_M
    arm, lift = felt[:, ARM : ARM + 1], felt[:, LIFT : LIFT + 1]
    wrist = torch.cat([torch.zeros_like(arm), -WRIST_OUT_M - arm, ARM_Z_M + lift - WRIST_DROP_M], 1)
    place = wrist + reach * points + aside * left + height * up
    tilt_c, tilt_s = float(np.cos(WRIST_CAMERA_TILT_RAD)), float(np.sin(WRIST_CAMERA_TILT_RAD))
    up, ahead = tilt_c * up + tilt_s * points, tilt_c * points - tilt_s * up
    return place, (-left, -up, ahead)


# --- the file

INPUTS: dict[str, tuple[int, ...]] = {
    "image": (3, HEIGHT_PX, WIDTH_PX), "wrist": (3, HEIGHT_PX, WIDTH_PX), "joints": (8,), "velocity": (8,),
    "grasp": (1,), "base": (3,), "skill": (SKILL_INPUTS,), "text": (LETTERS,), "target": (3,), "memory": (MEMORY,),
}  # fmt: skip


def as_onnx(pupil: Pupil, notes: dict[str, str]) -> bytes:
    """The pupil as one ONNX file, with the notes as its metadata."""
    import onnx

    given = [torch.zeros(1, *shape, dtype=torch.int64 if name == "text" else torch.float32)
             for name, shape in INPUTS.items()]  # fmt: skip
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's newer exporter wants one package more
        torch.onnx.export(
            pupil.eval(), tuple(given), file, input_names=list(INPUTS), output_names=["chunk", "done", "next_memory"],
            opset_version=18, dynamo=False,
        )  # fmt: skip
    model: Any = onnx.load_from_string(file.getvalue())
    onnx.helper.set_model_props(model, notes | {"step_s": str(STEP_S)})
    return bytes(model.SerializeToString())


def text_of(words: str) -> list[int]:
    """As `nodes.policy.onnx.inputs.words` gives it."""
    return list(words.encode()[:LETTERS].ljust(LETTERS, b"\0"))
