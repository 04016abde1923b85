"""The tensors that the parts of a vision-language model must have, and may have: a table, and what is not in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodes.models.onnx_file import Tensor, declared
from runtime.errors import choices

VISION, EMBED, DECODER = "vision_encoder", "embed_tokens", "decoder_model_merged"
PAST, PRESENT = "past_key_values.", "present."
_FLOATS, _WHOLE = ("float", "float16"), ("int64", "int32")


@dataclass(frozen=True, slots=True)
class _Part:
    """Inputs by name: how many sizes they have and of which types they may be; `may` can be left out."""

    needs: Mapping[str, tuple[int, tuple[str, ...]]]
    may: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    gives: tuple[str, ...] = ()


PARTS = {
    VISION: _Part(needs={"pixel_values": (5, _FLOATS)}, may={"pixel_attention_mask": (4, ("bool",))}),
    EMBED: _Part(needs={"input_ids": (2, _WHOLE)}),
    DECODER: _Part(
        needs={"inputs_embeds": (3, _FLOATS), "attention_mask": (2, _WHOLE)},
        may={"position_ids": (2, _WHOLE), "num_logits_to_keep": (0, _WHOLE)},
        gives=("logits",),
    ),
}


def problems(part: str, model: bytes) -> list[str]:
    """What of a part's tensors is not as it must be, in sentences that want the part's name before them."""
    try:
        inputs, outputs = declared(model)
    except ValueError as problem:
        return [f"is no ONNX model: {problem}"]
    expected = PARTS[part]
    known = {**expected.needs, **expected.may}
    cache = [tensor for tensor in inputs if part == DECODER and tensor.name.startswith(PAST)]
    others = [tensor for tensor in inputs if tensor not in cache]
    names = [tensor.name for tensor in others]
    if set(expected.needs) - set(names) or set(names) - set(known):
        perhaps = f" and perhaps {choices(expected.may)}" if expected.may else ""
        return [f"has the inputs {choices(names)}; expected {choices(expected.needs)}{perhaps}"]
    found = [_unlike(tensor, *known[tensor.name]) for tensor in others]
    if part == DECODER:
        found += _cache_problems(cache, [tensor.name for tensor in outputs])
    lost = [name for name in expected.gives if name not in [tensor.name for tensor in outputs]]
    if lost:
        found.append(f"lacks the outputs {choices(lost)}")
    return [sentence for sentence in found if sentence]


def _cache_problems(cache: Sequence[Tensor], outputs: Sequence[str]) -> list[str]:
    if not cache:
        return [f"has no input {PAST}0.key; expected a decoder with a cache"]
    lost = [name for name in (PRESENT + tensor.name.removeprefix(PAST) for tensor in cache) if name not in outputs]
    if lost:
        return [f"lacks the outputs {choices(lost)}"]
    for tensor in cache:
        wrong = _unlike(tensor, 4, _FLOATS)
        if not wrong and (tensor.is_of_any_shape or None in (tensor.shape[1], tensor.shape[3])):
            wrong = f"has the input {tensor.name!r}: {tensor}; the model must fix its second and fourth size"
        if wrong:
            return [wrong]
    return []


def _unlike(tensor: Tensor, sizes: int, kinds: tuple[str, ...]) -> str:
    if tensor.kind in kinds and (tensor.is_of_any_shape or len(tensor.shape) == sizes):
        return ""
    return f"has the input {tensor.name!r}: {tensor}; expected {choices(kinds)} with {sizes} sizes"
