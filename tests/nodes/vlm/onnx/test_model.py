"""A decoder with attention as the published ones have it: what it reads in pieces is what it reads at once."""

from __future__ import annotations

import numpy as np
import pytest

from bench.random_vlm import Sizes, random_parts
from nodes.models.onnx_runtime import StopFlag, StoppedError
from nodes.vlm.onnx.model import VisionLanguageModel
from nodes.vlm.onnx.parts import problems
from runtime.errors import PolyrhythmError
from tests.support.sentences import pattern

SMALL = Sizes(
    layers=2,
    width=64,
    heads=4,
    cached_heads=2,
    feed_forward=96,
    tokens=300,
    image_px=32,
    vision_layers=1,
    vision_width=32,
    vision_heads=2,
    vision_feed_forward=48,
    places=1,
)


@pytest.fixture(scope="module")
def model() -> VisionLanguageModel:
    parts = random_parts(SMALL)
    assert [problem for part, data in parts.items() for problem in problems(part, data)] == []
    return VisionLanguageModel(parts, name="model 'random'", providers=("CPUExecutionProvider",), threads=1)


def tokens(count: int, seed: int = 0) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, SMALL.tokens, count)]


def test_text_read_in_pieces_is_read_as_at_once(model: VisionLanguageModel) -> None:
    text = model.embed(tokens(29))
    whole, memory = model.read(text, model.nothing)
    assert memory.length == 29
    pieces = model.nothing
    for piece in (text[:17], text[17:18], text[18:26], text[26:]):
        logits, pieces = model.read(piece, pieces)
    assert logits == pytest.approx(whole, abs=1e-4)
    assert np.ptp(whole) > 1.0
    assert model.prove(text[:20], text[20:]) == ""


def test_a_memory_can_be_gone_on_from_more_than_once(model: VisionLanguageModel) -> None:
    _, opening = model.read(model.embed(tokens(12)), model.nothing)
    first, _ = model.read(model.embed(tokens(5, seed=1)), opening)
    other, _ = model.read(model.embed(tokens(5, seed=2)), opening)
    again, _ = model.read(model.embed(tokens(5, seed=1)), opening)
    assert np.array_equal(first, again)
    assert not np.allclose(first, other, atol=0.1)


def test_what_was_read_before_and_what_is_seen_matter(model: VisionLanguageModel) -> None:
    question = model.embed(tokens(5))
    black = model.see(np.zeros((1, 1, 3, 32, 32), np.float32))
    white = model.see(np.ones((1, 1, 3, 32, 32), np.float32))
    assert black.shape == (SMALL.places, SMALL.width)
    night, day = (model.read(np.concatenate([seen, question]), model.nothing)[0] for seen in (black, white))
    assert not np.allclose(night, day, atol=0.1)


def test_numbers_that_are_not_finite_are_a_failure(model: VisionLanguageModel) -> None:
    text = model.embed(tokens(3)).copy()
    text[1] = np.nan
    with pytest.raises(PolyrhythmError, match=f"decoder_model_merged {pattern('vlm.not_finite')}"):
        model.read(text, model.nothing)


def test_what_the_model_cannot_take_is_told_in_a_sentence(model: VisionLanguageModel) -> None:
    with pytest.raises(PolyrhythmError, match="model 'random': embed_tokens failed: ") as failure:
        model.embed([SMALL.tokens + 7])
    assert "\n" not in str(failure.value)


def test_a_stop_ends_what_is_under_way_and_all_that_follows(model: VisionLanguageModel) -> None:
    stop = StopFlag()
    model.read(model.embed(tokens(3), stop), model.nothing, stop)
    stop.set()
    with pytest.raises(StoppedError, match="model_merged was stopped"):
        model.read(model.embed(tokens(3)), model.nothing, stop)
    with pytest.raises(StoppedError):
        model.embed(tokens(3), stop)
    assert len(model.read(model.embed(tokens(3)), model.nothing, StopFlag())[0]) == SMALL.tokens
