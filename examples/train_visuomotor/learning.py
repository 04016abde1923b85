"""How the network learns: the eyes from pictures and where things were in them, the hand from labelled lessons."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from examples.train_visuomotor.lessons import BIN, NAMES, SKILLS, Rows, beyond_of, lift_of, plane_of
from examples.train_visuomotor.network import (
    FOCAL_PX,
    SKILL_INPUTS,
    STEPS,
    TOLERANCE,
    Pupil,
    text_of,
)
from examples.train_visuomotor.pictures import Scenes
from examples.train_visuomotor.teacher import Aim, wanted
from nodes.msgs import RobotState
from nodes.policy.onnx.tensors import COLUMNS

PICKS = ("picking up the {it}", "pick up the {it}", "taking the {it}", "pick the {it}")
PLACES = ("putting the {held} in the {it}", "put the {held} into the {it}", "placing the {held} in the {it}",
          "put it in the {it}")  # fmt: skip
USUAL = 0.6
"""So often the words are the first of these, which our own VLM says."""
BATCH = 64


def words_for(about: int, held: int, dice: random.Random) -> tuple[str, int]:
    """The words of an action, and its skill's place: 0 to pick, 1 to place."""
    forms = PLACES if about == BIN else PICKS
    form = forms[0] if dice.random() < USUAL else dice.choice(forms)
    return form.format(it=NAMES[about], held=NAMES[held]), int(about == BIN)


def learn_eyes(
    pupil: Pupil, scenes: Scenes, steps: int, *, seed: int, rate: float = 2e-3, tell: Callable[[str], None] = print
) -> None:
    """So many steps of `BATCH` pictures, each with the words for one of the things in it."""
    dice, generator = random.Random(seed), np.random.default_rng(seed)
    torch.manual_seed(seed)
    pupil.train()
    pupil.to(memory_format=torch.channels_last)
    mine = [weight for name, weight in pupil.named_parameters() if not name.startswith("hand.")]
    optimiser = torch.optim.AdamW(mine, lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    recent: list[tuple[float, ...]] = []
    for step in range(steps):
        at = generator.integers(0, len(scenes.about), BATCH)
        loss, parts = eyes_loss(pupil, scenes, at, dice, generator)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(mine, 1.0)
        optimiser.step()
        schedule.step()
        recent = [*recent[-199:], parts]
        if step % 200 == 199:
            tell(f"eyes {step + 1}: " + " ".join(f"{value:.3f}" for value in np.mean(recent, 0)))


def choose(scenes: Scenes, at: NDArray[np.int64], dice: random.Random) -> tuple[list[int], list[int]]:
    """What each picture is asked about, and what is held where that is named."""
    abouts, helds = [], []
    for one in at.tolist():
        about, held, stands = int(scenes.about[one]), int(scenes.held[one]), scenes.stands[one]
        if about < 0 or not stands[about] or dice.random() < 0.5:
            about = BIN if dice.random() < 0.25 else dice.choice(np.flatnonzero(stands).tolist())
        abouts.append(about)
        helds.append(held if held >= 0 and dice.random() < 0.8 else dice.randrange(BIN))
    return abouts, helds


def eyes_loss(
    pupil: Pupil, scenes: Scenes, at: NDArray[np.int64], dice: random.Random, generator: np.random.Generator | None
) -> tuple[torch.Tensor, tuple[float, ...]]:
    abouts, helds = choose(scenes, at, dice)
    told = [words_for(about, held, dice) for about, held in zip(abouts, helds, strict=True)]
    text = torch.tensor([text_of(words) for words, _ in told])
    skill = functional.one_hot(torch.tensor([number for _, number in told]), SKILL_INPUTS).float()
    beyond = [
        beyond_of(held) if about == BIN and NAMES[held] in words else 0.0
        for about, held, (words, _) in zip(abouts, helds, told, strict=True)
    ]
    rows = np.arange(len(at))
    place = torch.tensor(scenes.place[at][rows, abouts] - np.stack([np.zeros(len(at)), beyond], 1)).float()
    felt = torch.tensor(scenes.felt[at])
    words, known = pupil.told(text, skill)
    heights = torch.tensor([[plane_of(about), lift_of(about)] for about in abouts])
    off = (known[:, :2] - heights) / 0.01
    off[:, 1] *= torch.tensor([float(about != BIN) for about in abouts])
    loss = 0.1 * functional.smooth_l1_loss(off, torch.zeros_like(off))
    loss = loss + 0.1 * ((known[:, 2:4] - place).abs() / 0.3).mean()
    parts = [float(loss.detach())]
    is_free = torch.tensor([float(about != held) for about, held in zip(abouts, scenes.held[at].tolist(), strict=True)])
    for name in FOCAL_PX:
        image = picture(getattr(scenes, name)[at], generator)
        found, b, heat = pupil.look(name, image, words, known, felt)
        seen = torch.tensor(getattr(scenes, f"{name}_seen")[at][rows, abouts]).float()
        pixel = torch.tensor(getattr(scenes, f"{name}_px")[at][rows, abouts])
        loss = loss + 0.3 * (_heat_loss(heat, pixel, getattr(pupil, name).cells) * seen).sum() / seen.sum().clamp(min=1)
        away = (found - place).abs()
        laplace = (away / b + torch.log(b)).sum(1)
        loss = loss + (laplace * is_free).mean() * 0.5
        good = seen > 0
        parts += [float(laplace.detach().mean()), 1e3 * float(away.detach()[good].median() if good.any() else 0.0)]
    return loss, tuple(parts)


def picture(rgb: NDArray[np.uint8], generator: np.random.Generator | None) -> torch.Tensor:
    image = torch.tensor(rgb).permute(0, 3, 1, 2).float() / 255
    if generator is not None:
        count = len(rgb)
        light = generator.uniform(0.85, 1.15, (count, 1, 1, 1)) * generator.uniform(0.95, 1.05, (count, 3, 1, 1))
        image = (
            image * torch.tensor(light).float() + torch.tensor(generator.uniform(-0.04, 0.04, (count, 1, 1, 1))).float()
        )
        image = (image + 0.01 * torch.randn(image.shape)).clamp(0, 1)
    return image.to(memory_format=torch.channels_last)


def _heat_loss(heat: torch.Tensor, pixel: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """Against a bell of two pixels around the right one."""
    bell = torch.softmax(-((cells[None] - pixel[:, None]) ** 2).sum(2) / (2 * 2.0**2), 1)
    return -(bell * torch.log_softmax(heat, 1)).sum(1)


# --- the hand


def chunks(run: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of a chunk (n, STEPS): every other tick from now, to the end of the action."""
    last = np.append(np.flatnonzero(np.diff(run)), len(run) - 1)
    ends = last[np.searchsorted(last, np.arange(len(run)))]
    rows: NDArray[np.int64] = np.minimum(np.arange(len(run))[:, None] + 2 * np.arange(STEPS), ends[:, None])
    return rows


def flat(parts: Sequence[Rows]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """What is given (n, 25), and which rows follow each other (n,)."""
    given, run, before = [], [], 0
    for rows in parts:
        aim = np.array(rows.aim, np.float32)
        skill = np.eye(3, dtype=np.float32)[aim[:, 0].astype(int)]
        given.append(np.concatenate([np.array(rows.felt, np.float32), skill, aim[:, 1:]], 1))
        run.append(np.array(rows.run) + before)
        before = int(run[-1][-1]) + 1
    return np.concatenate(given), np.concatenate(run)


def labels(given: NDArray[np.float32]) -> NDArray[np.float32]:
    """What the teacher says to each row: ten columns, and done (n, 11)."""
    found = []
    for row in given.tolist():
        state = RobotState(
            read_ns=0, position=tuple(row[:8]), velocity=tuple(row[8:16]), effort=(0.0,) * 8, base_x_m=0.0,
            base_y_m=0.0, base_heading_rad=0.0, base_v_mps=row[17], base_w_radps=0.0, is_grasping=row[16] > 0.5,
        )  # fmt: skip
        command, done = wanted(Aim(SKILLS[row.index(1.0, 18, 21) - 18], *row[21:]), state)
        found.append((*command, done))
    return np.array(found, np.float32)


def learn_hand(
    pupil: Pupil, given: NDArray[np.float32], run: NDArray[np.int64], steps: int, *, seed: int, rate: float = 1.5e-3,
) -> float:  # fmt: skip
    """So many steps of 512 ticks; the loss in the end."""
    torch.manual_seed(seed)
    hand = pupil.hand.train()
    generator = np.random.default_rng(seed)
    label, ahead = labels(given), chunks(run)
    optimiser = torch.optim.AdamW(hand.parameters(), lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    tolerance = torch.tensor(TOLERANCE)
    recent: list[float] = []
    sooner = torch.linspace(1.5, 0.5, STEPS)[None, :, None]
    for _ in range(steps):
        at = generator.integers(0, len(given), 512)
        chunk, logit = hand(torch.tensor(given[at]))
        off = (chunk - torch.tensor(label[ahead[at], :COLUMNS])) / tolerance
        loss = (functional.smooth_l1_loss(off, torch.zeros_like(off), reduction="none") * sooner).mean()
        loss = loss + 2.0 * functional.binary_cross_entropy_with_logits(logit, torch.tensor(label[at, COLUMNS]))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(hand.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        recent = [*recent[-199:], float(loss.detach())]
    return float(np.mean(recent))


def acts(pupil: Pupil) -> Callable[[tuple[float, ...]], tuple[NDArray[np.float64], float]]:
    """The hand alone, for lessons without pictures: from felt and aim to chunk and done."""
    hand = pupil.hand.eval()

    def act(told: tuple[float, ...]) -> tuple[NDArray[np.float64], float]:
        felt, skill, aim = told[:18], [float(number == told[18]) for number in range(3)], told[19:]
        with torch.no_grad():
            chunk, done = hand(torch.tensor([[*felt, *skill, *aim]]))
        return chunk[0].numpy().astype(np.float64), float(torch.sigmoid(done[0]))

    return act
