"""A vision-language model of any size with random weights, built like the published ones: it computes as much as they.

The decoder has RMS norms, rotary positions, grouped attention over a cache, as one operator, and a gated feed-forward;
the encoder is a vision transformer whose patches are shuffled into fewer, wider places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BASE = 10_000.0
LONGEST = 2048


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a model; the defaults are those of SmolVLM-256M, by its config.json."""

    layers: int = 30
    width: int = 576
    heads: int = 9
    cached_heads: int = 3
    feed_forward: int = 1536
    tokens: int = 49_280
    image_px: int = 512
    patch_px: int = 16
    vision_layers: int = 12
    vision_width: int = 768
    vision_heads: int = 12
    vision_feed_forward: int = 3072
    places: int = 64  # that an image takes in the prompt

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def random_parts(sizes: Sizes, seed: int = 0) -> dict[str, bytes]:
    """The three parts, by name."""
    generator = np.random.default_rng(seed)
    return {
        "vision_encoder": _vision_encoder(sizes, generator),
        "embed_tokens": _embed_tokens(sizes, generator),
        "decoder_model_merged": _decoder(sizes, generator),
    }


class _Graph:
    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: object, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(np.asarray(value, dtype)), name))
        return name

    def random(self, *shape: int) -> str:
        scale = np.sqrt(np.prod(shape[1:] if len(shape) > 2 else shape[:1]))
        return self.constant(self.generator.standard_normal(shape, np.float32) / np.float32(scale))

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def times(self, name: str, rows: int, columns: int, out: str = "") -> str:
        return self.op("MatMul", name, self.random(rows, columns), out=out)

    def axes(self, *numbers: int) -> str:
        return self.constant(list(numbers), np.int64)

    def model(self, inputs: dict[str, tuple[int, list[Any]]], outputs: dict[str, list[Any]]) -> bytes:
        given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
        found = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, "random", given, found, self.constants)
        dialects = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        data: bytes = helper.make_model(graph, opset_imports=dialects, ir_version=9).SerializeToString()
        return data


def _embed_tokens(sizes: Sizes, generator: np.random.Generator) -> bytes:
    g = _Graph(generator)
    g.op("Gather", g.random(sizes.tokens, sizes.width), "input_ids", out="inputs_embeds")
    return g.model({"input_ids": (TensorProto.INT64, [1, "tokens"])}, {"inputs_embeds": [1, "tokens", sizes.width]})


def _decoder(sizes: Sizes, generator: np.random.Generator) -> bytes:
    g = _Graph(generator)
    width, cached = sizes.width, sizes.cached_heads * sizes.head_width
    turns = np.arange(LONGEST)[:, None] / BASE ** (np.arange(0, sizes.head_width, 2) / sizes.head_width)
    cosines, sines = g.constant(np.cos(turns)), g.constant(np.sin(turns))
    last = g.op("Sub", g.op("ReduceSum", "attention_mask", g.axes(1), keepdims=0), g.axes(1))
    lengths = g.op("Cast", last, to=TensorProto.INT32)
    length = g.op("Gather", g.op("Shape", "attention_mask"), g.constant(1, np.int64))
    total = g.op("Cast", length, to=TensorProto.INT32)
    ones = g.constant(np.ones(width))

    def norm(name: str) -> str:
        return g.op("SimplifiedLayerNormalization", name, ones, epsilon=1e-5, axis=-1)

    text = "inputs_embeds"
    caches: dict[str, str] = {}
    for layer in range(sizes.layers):
        x = norm(text)
        past = [f"past_key_values.{layer}.{what}" for what in ("key", "value")]
        present = [f"present.{layer}.{what}" for what in ("key", "value")]
        caches.update(zip(past, present, strict=True))
        asked = [g.times(x, width, width), g.times(x, width, cached), g.times(x, width, cached)]
        node = helper.make_node(
            "GroupQueryAttention",
            [*asked, *past, lengths, total, cosines, sines],
            [f"attended{layer}", *present],
            domain="com.microsoft",
            num_heads=sizes.heads,
            kv_num_heads=sizes.cached_heads,
            do_rotary=1,
        )
        g.nodes.append(node)
        text = g.op("Add", text, g.times(f"attended{layer}", width, width))
        x = norm(text)
        gate = g.times(x, width, sizes.feed_forward)
        gated = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), g.times(x, width, sizes.feed_forward))
        text = g.op("Add", text, g.times(gated, sizes.feed_forward, width))
    g.times(norm(text), width, sizes.tokens, out="logits")

    def cache(when: str) -> list[Any]:
        return [1, sizes.cached_heads, when, sizes.head_width]

    return g.model(
        {
            "inputs_embeds": (TensorProto.FLOAT, [1, "tokens", width]),
            "attention_mask": (TensorProto.INT64, [1, "all"]),
            **{name: (TensorProto.FLOAT, cache("past")) for name in caches},
        },
        {"logits": [1, "tokens", sizes.tokens], **{name: cache("all") for name in caches.values()}},
    )


def _vision_encoder(sizes: Sizes, generator: np.random.Generator) -> bytes:
    g = _Graph(generator)
    width, side = sizes.vision_width, sizes.image_px
    patches = (side // sizes.patch_px) ** 2
    image = g.op("Reshape", "pixel_values", g.axes(1, 3, side, side))
    cut = g.op("Conv", image, g.random(width, 3, sizes.patch_px, sizes.patch_px), strides=[sizes.patch_px] * 2)
    seen = g.op("Transpose", g.op("Reshape", cut, g.axes(1, width, patches)), perm=[0, 2, 1])
    ones, zeros = g.constant(np.ones(width)), g.constant(np.zeros(width))
    for _ in range(sizes.vision_layers):
        x = g.op("LayerNormalization", seen, ones, zeros, axis=-1)
        asked = [g.times(x, width, width) for _ in range(3)]
        attended = g.op("MultiHeadAttention", *asked, domain="com.microsoft", num_heads=sizes.vision_heads)
        seen = g.op("Add", seen, g.times(attended, width, width))
        x = g.op("LayerNormalization", seen, ones, zeros, axis=-1)
        wide = g.op("Gelu", g.times(x, width, sizes.vision_feed_forward), approximate="tanh")
        seen = g.op("Add", seen, g.times(wide, sizes.vision_feed_forward, width))
    shuffled = g.op("Reshape", seen, g.axes(1, sizes.places, -1))
    g.times(shuffled, patches * width // sizes.places, sizes.width, out="image_features")
    return g.model(
        {"pixel_values": (TensorProto.FLOAT, [1, 1, 3, side, side])},
        {"image_features": [1, sizes.places, sizes.width]},
    )
