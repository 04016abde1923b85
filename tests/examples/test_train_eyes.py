"""What the kitchen's eyes are measured on stays apart from what they were made of."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("cv2")

from examples.train_eyes.evaluate import HELD_COLOURS, HELD_NOUNS
from examples.train_eyes.scenes import TEXTURES, TINTS
from examples.train_eyes.shapes import CHECK, HELD, NEAR, RANGES, STRANGERS, TRAIN, apart, free, pick
from nodes.vlm.room.grounding import vocabulary


@pytest.mark.parametrize("kind", list(RANGES))
def test_no_shape_that_is_trained_on_comes_near_to_one_that_is_held_out(kind: str) -> None:
    drawn = random.Random(kind)
    kept_back = [*CHECK[kind].values(), *HELD[kind].values()]
    nearest = min(apart(free(kind, drawn), one) for _ in range(200) for one in kept_back)
    assert nearest > NEAR
    assert all(apart(one, other) > NEAR for one in TRAIN[kind].values() for other in HELD[kind].values())
    held = {len(one) for one in HELD[kind].values()}
    assert {len(pick(kind, "held", drawn)) for _ in range(20)} <= held


@pytest.mark.parametrize("of_split", [STRANGERS, TEXTURES, TINTS])
def test_the_splits_share_no_stranger_texture_or_light_with_the_held_out_one(
    of_split: dict[str, tuple[object, ...]],
) -> None:
    for one, other in combinations(of_split, 2):
        assert "held" not in (one, other) or not set(of_split[one]) & set(of_split[other])


def test_no_held_out_word_is_in_the_table_that_was_written_by_hand() -> None:
    table = vocabulary("grounding.toml")
    by_hand = {word for words in (*table.nouns.values(), *table.colours.values()) for word in words}
    held = {word for words in (*HELD_NOUNS.values(), *HELD_COLOURS.values()) for word in words}
    assert not by_hand & held
