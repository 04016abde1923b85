"""The form of a model's answer: whatever it chooses, what comes out is an answer."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from nodes.vlm.eyes.model_prompt import parse, words
from nodes.vlm.onnx.answer_script import continuations, missing_letters, remaining, script

LETTERS = {letter: ord(letter) for letter in map(chr, range(32, 127))}
PIECES = {**LETTERS, "cup": 200, "bl": 201, "ue": 202, "12": 203, '"label': 204, ",": 205}


def written(choose: Callable[[dict[int, str]], int], most: int = 5, vocabulary: dict[str, int] = PIECES) -> str:
    """The answer of a model that chooses so."""
    lines = script(
        words().sizes_m, words().colours, 999, 999, lambda things: things < most, ("pick", "place"), words().say.led
    )
    text = ""
    left = next(lines)
    while True:
        said = ""
        while len(left) > 1:
            allowed = continuations(left, vocabulary)
            said += (token := allowed[choose(allowed)])
            left = remaining(left, token)
        text += said + left[0]
        try:
            left = lines.send(said + left[0])
        except StopIteration:
            return text


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_model_chooses_its_answer_can_be_read(seed: int) -> None:
    generator = random.Random(seed)
    text = written(lambda allowed: generator.choice(sorted(allowed)))
    answer = json.loads(text)
    assert list(answer) == ["objects", "target", "place", "skill", "done", "say"]
    assert len(answer["objects"]) <= 5
    assert -1 <= answer["target"] < len(answer["objects"])
    things = parse(text, "thousandth", 160, 120).things
    assert len(things) == len(answer["objects"]), "by allowed words, and inside the image"


def test_every_answer_can_be_given() -> None:
    """Also with a vocabulary of single letters: a model is led, and not led astray."""
    wanted = (
        ' {"objects":[{"label":"bowl","colour":"teal","u":7,"v":120}],"target":-1,"place":-1,'
        '"skill":"pick","done":true,"say":"unseen"}'
    )
    at = 0

    def next_letter(allowed: dict[int, str]) -> int:
        nonlocal at
        at = max(at, 0)
        return next(token for token, text in allowed.items() if wanted.startswith(text, at))

    lines = script(
        words().sizes_m, words().colours, 999, 999, lambda things: things < 5, ("pick", "place"), words().say.led
    )
    left = next(lines)
    while at < len(wanted):
        said = ""
        while len(left) > 1:
            text = continuations(left, LETTERS)[next_letter(continuations(left, LETTERS))]
            said, at, left = said + text, at + len(text), remaining(left, text)
        assert wanted.startswith(left[0], at)
        at += len(left[0])
        try:
            left = lines.send(said + left[0])
        except StopIteration:
            break
    assert at == len(wanted)


def test_a_model_that_repeats_itself_comes_to_an_end() -> None:
    answer = json.loads(written(max, most=40))
    assert len(answer["objects"]) == 2
    assert answer["objects"][0] == answer["objects"][1]


def test_without_room_nothing_is_listed() -> None:
    answer = json.loads(written(max, most=0))
    assert answer["objects"] == []
    assert (answer["target"], answer["place"]) == (-1, -1)


def test_a_token_longer_than_what_is_left_is_not_allowed() -> None:
    assert continuations(('cup"', 'ball"'), {"cup": 1, "c": 2, "cups": 3, 'b"': 4, "x": 5}) == {1: "cup", 2: "c"}


def test_letters_without_a_token_are_named() -> None:
    assert missing_letters(("cup", "bin"), {"c": 1, "u": 2, "b": 3, "n": 4}) == "ip"
