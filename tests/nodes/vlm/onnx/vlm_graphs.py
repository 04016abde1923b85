"""The three parts of a vision-language model that nobody trained: made by hand, tiny, and yet it sees strong colours.

Every token is embedded as a one at its own place, so the cache is the text read so far, and the decoder looks things up
in it: where in the answer it is, what it has listed, which colours the question names. Of each colour the encoder gives
one place: whether it is in view, and the digits of where. Nothing is guessed, and nothing else is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HUES_DEG = {"red": 0.0, "yellow": 51.0, "green": 130.0, "blue": 226.0, "purple": 281.0, "teal": 182.0}
"""What it tells apart; everything teal is a bin to it, and everything else a cup, but a purple ball."""
LABELS = {"teal": "bin", "purple": "ball"}
BINS = ("teal",)
WITHIN_DEG, LEAST_CHROMA, LEAST_LIGHT, LEAST_SHARE = 14.0, 0.35, 0.12, 0.0015
COLOURS = tuple(HUES_DEG)
K = len(COLOURS)
END = 10  # after the digits 0 to 9: the number is complete
DIGITS = 3
IDENTITY, PRESENT, IS_IMAGE, NUMBERS = 0, K, K + 1, K + 2
SEEN_WIDTH = NUMBERS + 2 * DIGITS * (END + 1)
"""Of what is seen of a colour: which it is, whether it is there, that it is seen at all, and the digits of u and v."""
TAIL = 12
"""So many tokens back the decoder sees where in the answer it is."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the graphs must know of the tokenizer."""

    size: int
    token: Mapping[str, int]  # of a text that is one token
    tokens: Callable[[str], list[int]]  # of any text
    named: Mapping[str, int]  # the token of a colour after a space, as a question writes it

    @property
    def width(self) -> int:
        """Of an embedding: one place for each token, and what is seen."""
        return self.size + SEEN_WIDTH


class _Graph:
    """Collects nodes and constants; each operation gives the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: object, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def number(self, name: str, *, out: str = "", kind: int = TensorProto.FLOAT) -> str:
        return self.op("Cast", name, out=out, to=kind)

    def shaped(self, name: str, *shape: int) -> str:
        return self.op("Reshape", name, self.axes(*shape))

    def axes(self, *numbers: int) -> str:
        return self.constant(list(numbers), np.int64)

    def columns(self, name: str, which: Iterable[int]) -> str:
        return self.op("Gather", name, self.axes(*which), axis=1)

    def most(self, name: str) -> str:
        """Of each column."""
        return self.op("ReduceMax", name, self.axes(0), keepdims=1)

    def model(self, inputs: Mapping[str, tuple[int, list[Any]]], outputs: Mapping[str, tuple[int, list[Any]]]) -> bytes:
        def told(args: Mapping[str, tuple[int, list[Any]]]) -> list[Any]:
            return [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in args.items()]

        graph = helper.make_graph(self.nodes, "made", told(inputs), told(outputs), self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.checker.check_model(model)
        data: bytes = model.SerializeToString()
        return data


def vision_encoder(lexicon: Lexicon, size_px: int) -> bytes:
    """Pixel values (-1 to 1) of one tile to one place for each colour."""
    g = _Graph()
    rgb = g.op("Add", g.op("Mul", "pixel_values", g.constant(0.5)), g.constant(0.5))
    shown = g.number(g.shaped("pixel_attention_mask", 1, size_px**2))
    flat = g.op("Mul", g.shaped(rgb, 3, size_px**2), shown)  # (3, pixels)
    lightest = g.most(flat)
    opponents = [[1.0, -0.5, -0.5], [0.0, math.sqrt(0.75), -math.sqrt(0.75)]]
    chroma = g.op("MatMul", g.constant(opponents), flat)  # (2, pixels)
    strength = g.op("ReduceL2", chroma, g.axes(0), keepdims=1)
    angles = [math.radians(hue) for hue in HUES_DEG.values()]
    along = g.op("MatMul", g.constant([[math.cos(a), math.sin(a)] for a in angles]), chroma)  # (K, pixels)
    is_hue = g.op("Greater", along, g.op("Mul", strength, g.constant(math.cos(math.radians(WITHIN_DEG)))))
    is_strong = g.op("Greater", strength, g.op("Mul", lightest, g.constant(LEAST_CHROMA)))
    is_light = g.op("Greater", lightest, g.constant(LEAST_LIGHT))
    mask = g.number(g.op("And", g.op("And", is_hue, is_strong), is_light))
    area = g.op("ReduceSum", mask, g.axes(1), keepdims=1)  # (K, 1)
    is_there = g.op("Greater", area, g.constant(LEAST_SHARE * size_px**2))
    columns, rows = np.meshgrid(np.arange(size_px) + 0.5, np.arange(size_px) + 0.5)
    places = g.constant(np.stack([columns.ravel(), rows.ravel()], axis=1) * 1000 / size_px)
    middle = g.op("Div", g.op("MatMul", mask, places), g.op("Max", area, g.constant(1.0)))  # (K, 2): u, v
    is_there = g.op("And", is_there, g.op("Not", _lies_in_bin(g, mask, places, middle)))
    digits = _digits(g, g.op("Floor", g.op("Min", middle, g.constant(999.0))))
    of_u_and_v = [g.shaped(g.columns(digit, [axis]), K, END + 1) for axis in (0, 1) for digit in digits]
    parts = [np.zeros((K, lexicon.size)), np.eye(K)]
    seen = g.op("Concat", *map(g.constant, parts), g.number(is_there), g.constant(np.ones((K, 1))), *of_u_and_v, axis=1)
    g.op("Unsqueeze", seen, g.axes(0), out="image_features")
    return g.model(
        {
            "pixel_values": (TensorProto.FLOAT, [1, 1, 3, size_px, size_px]),
            "pixel_attention_mask": (TensorProto.BOOL, [1, 1, size_px, size_px]),
        },
        {"image_features": (TensorProto.FLOAT, [1, K, lexicon.width])},
    )


def _lies_in_bin(g: _Graph, mask: str, places: str, middle: str) -> str:
    """Whether the middle of a colour (K, 1) is within the rectangle of the bin, and is not the bin itself."""
    is_bin = g.op("Transpose", g.op("Gather", mask, g.axes(COLOURS.index(BINS[0])), axis=0))  # (pixels, 1)
    most = g.most(g.op("Mul", places, is_bin))  # (1, 2)
    from_end = g.op("Sub", g.constant(1000.0), places)
    least = g.op("Sub", g.constant(1000.0), g.most(g.op("Mul", from_end, is_bin)))
    is_within = g.op("And", g.op("Less", middle, most), g.op("Greater", middle, least))  # (K, 2)
    both = g.op("ReduceMin", g.number(is_within), g.axes(1), keepdims=1)
    return g.op("Greater", g.op("Mul", both, g.constant([[colour not in BINS] for colour in COLOURS])), g.constant(0.5))


def embed_tokens(lexicon: Lexicon) -> bytes:
    """A token as a one at its own place."""
    g = _Graph()
    g.op("Gather", g.constant(np.eye(lexicon.size, lexicon.width)), "input_ids", out="inputs_embeds")
    return g.model(
        {"input_ids": (TensorProto.INT64, ["batch", "tokens"])},
        {"inputs_embeds": (TensorProto.FLOAT, ["batch", "tokens", lexicon.width])},
    )


def decoder(lexicon: Lexicon, *, is_half: bool = False) -> bytes:
    """What comes next, from all that was read; what it keeps of that is of 16 bits where `is_half`."""
    g = _Graph()
    cache = TensorProto.FLOAT16 if is_half else TensorProto.FLOAT
    key = g.op("Concat", g.number("past_key_values.0.key"), g.op("Unsqueeze", "inputs_embeds", g.axes(1)), axis=2)
    places = g.shaped(g.number("position_ids"), 1, 1, -1, 1)
    value = g.op("Concat", g.number("past_key_values.0.value"), places, axis=2)
    g.number(key, out="present.0.key", kind=cache)
    g.number(value, out="present.0.value", kind=cache)
    text = g.op("Mul", g.shaped(key, -1, lexicon.width), g.shaped(g.number("attention_mask"), -1, 1))  # (read, width)
    when = g.op("Add", g.shaped(value, -1, 1), g.constant(1.0))  # (read, 1), from 1
    facts = _Facts(g, lexicon, text, when)
    slots = _slots(g, lexicon, facts)
    rules = np.zeros((TAIL * lexicon.width, len(slots)), np.float32)
    for column, (before, _) in enumerate(slots):
        for row, tokens in zip(range(TAIL - len(before), TAIL), before, strict=True):
            for token in tokens:
                rules[row * lexicon.width + token, column] = 1.0
    padded = g.op("Concat", g.constant(np.zeros((TAIL, lexicon.width))), text, axis=0)
    tail = g.op("Slice", padded, g.axes(-TAIL), g.axes(2**31), g.axes(0))
    found = g.op("MatMul", g.shaped(tail, 1, -1), g.constant(rules))
    fits = g.number(g.op("Greater", found, g.constant([[len(before) - 0.5 for before, _ in slots]])))
    last = g.op("MatMul", fits, g.op("Concat", *[wanted for _, wanted in slots], axis=0))  # (1, tokens known)
    count = g.op("Slice", g.op("Shape", "inputs_embeds"), g.axes(1), g.axes(2), g.axes(0))
    shape = g.op("Concat", g.axes(1), count, g.axes(lexicon.size), axis=0)
    g.op("Expand", last, shape, out="logits")
    past = {"key": lexicon.width, "value": 1}
    return g.model(
        {
            "inputs_embeds": (TensorProto.FLOAT, [1, "tokens", lexicon.width]),
            "attention_mask": (TensorProto.INT64, [1, "all"]),
            "position_ids": (TensorProto.INT64, [1, "tokens"]),
            **{f"past_key_values.0.{name}": (cache, [1, 1, "past", width]) for name, width in past.items()},
        },
        {
            "logits": (TensorProto.FLOAT, [1, "tokens", lexicon.size]),
            **{f"present.0.{name}": (cache, [1, 1, "all", width]) for name, width in past.items()},
        },
    )


class _Facts:
    """What the decoder looks up in the text, one number for each colour (1, K)."""

    def __init__(self, g: _Graph, lexicon: Lexicon, text: str, when: str) -> None:
        """`text` (read, width) and when each of it was read, from 1 (read, 1)."""
        seen_at = lexicon.size
        image = g.op("Mul", g.columns(text, [seen_at + IS_IMAGE]), when)
        is_after = g.number(g.op("Greater", when, g.most(image)))  # the image, so in the question or the answer
        plain = g.op("Mul", g.columns(text, [lexicon.token[colour] for colour in COLOURS]), is_after)
        listed_when = g.most(g.op("Mul", plain, when))
        self.listed = g.most(plain)
        is_newest = g.number(g.op("Equal", listed_when, g.op("ReduceMax", listed_when, keepdims=1)))
        self.newest = g.op("Mul", is_newest, self.listed)
        self.named = g.most(g.op("Mul", g.columns(text, [lexicon.named[colour] for colour in COLOURS]), is_after))
        identity = g.op("Transpose", g.columns(text, range(seen_at, seen_at + K)))
        self.seen = g.op("MatMul", identity, g.columns(text, range(seen_at, seen_at + SEEN_WIDTH)))  # (K, seen width)
        is_there = g.op("Transpose", g.columns(self.seen, [PRESENT]))
        to_list = g.op("Mul", is_there, g.op("Sub", g.constant(1.0), self.listed))
        self.next = first(g, to_list)
        self.is_any = g.op("ReduceMax", to_list, keepdims=1)  # (1, 1)


def first(g: _Graph, ones: str) -> str:
    """The first of the ones in a row (1, K)."""
    count = g.op("CumSum", ones, g.constant(1, np.int64))
    return g.op("Mul", ones, g.number(g.op("Equal", count, g.constant(1.0))))


def _slots(g: _Graph, lexicon: Lexicon, facts: _Facts) -> list[tuple[list[list[int]], str]]:
    """Where a choice is to be made: the tokens that stand before it, each one of several, and what is wanted then."""

    def before(text: str, digits: int = 0) -> list[list[int]]:
        return [[token] for token in lexicon.tokens(text)] + [[lexicon.token[str(d)] for d in range(10)]] * digits

    def rows(texts: Iterable[str]) -> str:
        return g.constant(np.eye(lexicon.size)[[lexicon.token[text] for text in texts]])

    def either(yes: str, no: str) -> str:
        is_none = g.op("Sub", g.constant(1.0), facts.is_any)
        return g.op("MatMul", g.op("Concat", facts.is_any, is_none, axis=1), rows([yes, no]))

    slots = [
        (before('"objects":['), either("{", "]")),
        (before("}"), either(",", "]")),
        (before('"label":"'), g.op("MatMul", facts.next, rows(LABELS.get(colour, "cup") for colour in COLOURS))),
        (before('"colour":"'), g.op("MatMul", facts.next, rows(COLOURS))),
    ]
    digits = [str(digit) for digit in range(10)]
    for axis, end in enumerate((",", "}")):
        for before_it in range(DIGITS):
            start = NUMBERS + (axis * DIGITS + before_it) * (END + 1)
            digit = g.op("MatMul", facts.newest, g.columns(facts.seen, range(start, start + END + 1)))
            slots.append((before(f'"{"uv"[axis]}":', before_it), g.op("MatMul", digit, rows([*digits, end]))))
    # The target is the first thing listed that is no bin and whose colour the question does not name.
    is_free = g.op("Sub", g.constant([[colour not in BINS for colour in COLOURS]]), facts.named)
    target = first(g, g.op("Mul", facts.listed, g.op("Max", is_free, g.constant(0.0))))
    place = g.op("Mul", target, g.op("CumSum", facts.listed, g.constant(1, np.int64)))  # from 1; 0 where there is none
    which = g.op("ReduceSum", place, g.axes(1), keepdims=1)
    is_place = g.number(g.op("Equal", which, g.constant([range(K + 1)])))
    slots.append((before('"target":'), g.op("MatMul", is_place, rows(["-", *digits[:K]]))))
    return slots


def _digits(g: _Graph, number: str) -> list[str]:
    """The digits of numbers (K, 2) below 1000 as ones (K, 2, 11), the first one first; END after the last."""
    tens = g.op("Floor", g.op("Div", number, g.constant(10.0)))
    hundreds = g.op("Floor", g.op("Div", number, g.constant(100.0)))
    ten = g.op("Sub", tens, g.op("Mul", hundreds, g.constant(10.0)))
    one = g.op("Sub", number, g.op("Mul", tens, g.constant(10.0)))
    has_three = g.op("Greater", hundreds, g.constant(0.0))
    has_two = g.op("Greater", tens, g.constant(0.0))
    end = g.constant(float(END))
    places = (
        g.op("Where", has_three, hundreds, g.op("Where", has_two, ten, one)),
        g.op("Where", has_three, ten, g.op("Where", has_two, one, end)),
        g.op("Where", has_three, one, end),
    )
    depth, off_on = g.constant(END + 1, np.int64), g.constant([0.0, 1.0])
    return [g.op("OneHot", g.number(place, kind=TensorProto.INT64), depth, off_on) for place in places]
