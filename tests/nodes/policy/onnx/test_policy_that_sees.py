"""The policy that ships as a file and sees: what it is not told, and that it gets a cup into the bin."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from examples.train_visuomotor.evaluate import attempt
from examples.train_visuomotor.lessons import HEIGHT_PX, WIDTH_PX
from nodes.policy.onnx.inputs import Felt, PolicyAnswer
from nodes.policy.onnx.policy import shipped
from nodes.policy.onnx.session import PolicySession

PAGE = Path(__file__).resolve().parents[4] / "docs" / "visuomotor-policy.md"
MODEL = shipped()["see-and-place"]
FELT = Felt((0.88, 0.2, 0.0, -1.57, 0.0, 0.1, -1.4, -0.7), text="picking up the red cup", skill="pick")


@pytest.fixture(scope="module")
def session() -> PolicySession:
    cpu = ("CPUExecutionProvider",)
    return PolicySession(MODEL.read_bytes(), name="it", width_px=WIDTH_PX, height_px=HEIGHT_PX, providers=cpu)


def asked(session: PolicySession, felt: Felt) -> PolicyAnswer:
    shown = np.random.default_rng(1).integers(0, 255, (HEIGHT_PX, WIDTH_PX, 3)).astype(np.uint8)
    return session.run({"image": shown, "wrist": shown[::-1]}, felt)


def at(felt: Felt, target: tuple[float, float, float]) -> Felt:
    moved: Felt = structs.replace(felt, target=target)
    return moved


@pytest.mark.parametrize(
    ("skill", "text"), [("pick", "picking up the red cup"), ("place", "putting the red cup in the bin")]
)
def test_what_it_picks_and_where_it_places_comes_from_words_and_images_and_from_no_target(
    session: PolicySession, skill: str, text: str
) -> None:
    felt: Felt = structs.replace(FELT, skill=skill, text=text)
    here, there = asked(session, at(felt, (0.3, -0.5, 0.5))), asked(session, at(felt, (-0.4, -0.8, 0.2)))
    assert np.array_equal(here.chunk, there.chunk)
    assert (here.done, here.memory) == (there.done, there.memory)
    others: Felt = structs.replace(felt, text="picking up the blue cup")
    assert not np.array_equal(here.memory, asked(session, others).memory)


def test_a_look_goes_where_the_vlm_says(session: PolicySession) -> None:
    felt: Felt = structs.replace(FELT, skill="look", text="looking around")
    ahead, behind = asked(session, at(felt, (0.6, -0.5, 0.4))), asked(session, at(felt, (-0.6, -0.5, 0.4)))
    assert ahead.chunk[-1, 6] > behind.chunk[-1, 6] + 0.5


@pytest.mark.long
def test_it_puts_a_cup_into_the_bin_by_its_own_eyes() -> None:
    found = attempt(3, str(MODEL))
    assert found.is_in_bin, found
    assert found.stops == []


def test_the_page_names_the_file_that_ships() -> None:
    assert hashlib.sha256(MODEL.read_bytes()).hexdigest() in PAGE.read_text()
