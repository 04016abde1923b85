"""Trains `nodes/interrupts/stop_classifier.onnx`: python examples/train_stop_classifier/train.py [--folds] [OUT.onnx]

A network of one hidden layer over hashed runs of characters, from the tuning half of the labelled utterances and the
phrases of `nodes/interrupts/intent.toml`. Seeded; half a minute on one core. `--folds` trains nothing that ships: it
tells how well fifths of the utterances are told that neither were trained on.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.interrupts.stop_classifier import BUCKETS, MODEL, features_of

ROOM = Path(__file__).parents[2] / "nodes" / "interrupts"
STOPS = ("stop", "stop_end", "stop_alone", "distress", "cry")
OTHERS = ("resume", "backchannel", "greeting", "question", "telling", "correction", "order", "order_end", "ordinary")
HIDDEN, EPOCHS, BATCH, RATE, DECAY, PHRASE_WEIGHT = 24, 25, 64, 2e-3, 2e-4, 0.3

Floats = NDArray[np.float32]


def utterances() -> list[tuple[str, float]]:
    """Of the twelve languages, and of three more whose figures nobody keeps (Turkish, Korean, Russian)."""
    files = sorted((ROOM / "data").glob("reflex_tuning*.jsonl"))
    lines = [msgspec.json.decode(line) for file in files for line in file.read_bytes().splitlines()]
    return [(line["text"], float(line["expect"] == "stop")) for line in lines]


def phrases() -> list[tuple[str, float]]:
    """What the tables hold, as they stand there, one choice of each group."""
    tables = tomllib.loads((ROOM / "intent.toml").read_text(encoding="utf-8"))
    plain = []
    for names, is_stop in ((STOPS, 1.0), (OTHERS, 0.0)):
        for name in names:
            for texts in tables[name].values():
                for text in texts:
                    first = text.split("|")[0].replace("(", "").replace(")", "") if "|" in text else text
                    if "{" not in first and "*" not in first and ")?" not in first:
                        plain.append((first, is_stop))
    return plain


def fit(texts: list[str], labels: Floats, weights: Floats, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Adam on the weighted cross-entropy; features are dropped at random, so that no single run of letters decides."""
    draw = np.random.default_rng(seed)
    inputs = np.stack([features_of(text) for text in texts])
    starts = [
        draw.normal(0, 0.3, (BUCKETS, HIDDEN)), np.zeros(HIDDEN), draw.normal(0, HIDDEN**-0.5, (HIDDEN, 1)), np.zeros(1)
    ]  # fmt: skip
    params: list[Floats] = [start.astype(np.float32) for start in starts]
    means, squares = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    step = 0
    for _ in range(EPOCHS):
        for rows in np.array_split(draw.permutation(len(texts)), max(1, len(texts) // BATCH)):
            step += 1
            x = inputs[rows] * (draw.random((len(rows), BUCKETS), np.float32) > 0.2) / 0.8
            first, bias, second, last = params
            hidden = np.maximum(x @ first + bias, 0)
            error = (sigmoid(hidden @ second + last)[:, 0] - labels[rows]) * weights[rows] / weights[rows].sum()
            back = (error[:, None] * second.T) * (hidden > 0)
            slopes = [x.T @ back, back.sum(0), hidden.T @ error[:, None], error.sum(keepdims=True)]
            for place, slope in enumerate(slopes):
                means[place] += 0.1 * (slope - means[place])
                squares[place] += 0.001 * (slope**2 - squares[place])
                scaled = (means[place] / (1 - 0.9**step)) / (np.sqrt(squares[place] / (1 - 0.999**step)) + 1e-8)
                params[place] = (params[place] - RATE * scaled - RATE * DECAY * params[place]).astype(np.float32)
    first, bias, second, last = params
    return first, bias, second, last


def sigmoid(x: Floats) -> Floats:
    return (1.0 / (1.0 + np.exp(-x))).astype(np.float32)


def save(params: tuple[Floats, Floats, Floats, Floats], path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    names = ("first", "bias", "second", "last")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["features", "first"], ["a"]),
            helper.make_node("Add", ["a", "bias"], ["b"]),
            helper.make_node("Relu", ["b"], ["c"]),
            helper.make_node("MatMul", ["c", "second"], ["d"]),
            helper.make_node("Add", ["d", "last"], ["e"]),
            helper.make_node("Sigmoid", ["e"], ["certainty"]),
        ],
        "stop_classifier",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, BUCKETS])],
        [helper.make_tensor_value_info("certainty", TensorProto.FLOAT, [None, 1])],
        [numpy_helper.from_array(param, name) for param, name in zip(params, names, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def folds(said: list[tuple[str, float]], extra: list[tuple[str, float]]) -> None:
    order = np.random.default_rng(1).permutation(len(said))
    certain = np.zeros(len(said))
    for part in np.array_split(order, 5):
        left = [said[place] for place in order if place not in set(part)]
        params = train(left, extra)
        for place in part:
            x = features_of(said[place][0])
            certain[place] = sigmoid(np.maximum(x @ params[0] + params[1], 0) @ params[2] + params[3])[0]
    labels = np.array([label for _, label in said])
    for bound in (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95):
        print(f"from {bound}: {(certain[labels == 1] >= bound).mean():.3f} of stops, "
              f"{(certain[labels == 0] >= bound).mean():.3f} of others")  # fmt: skip


def train(said: list[tuple[str, float]], extra: list[tuple[str, float]]) -> tuple[Floats, Floats, Floats, Floats]:
    both = said + extra
    weights = np.array([1.0] * len(said) + [PHRASE_WEIGHT] * len(extra), np.float32)
    return fit([text for text, _ in both], np.array([label for _, label in both], np.float32), weights, seed=7)


def main() -> int:
    """Train and save, or tell how well fifths are told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=MODEL, metavar="OUT.onnx", help="default: what ships")
    parser.add_argument("--folds", action="store_true", help="write nothing, and tell how well fifths are told")
    parser.add_argument("--alone", action="store_true", help="with --folds: without the phrases")
    asked = parser.parse_args()
    if asked.folds:
        folds(utterances(), [] if asked.alone else phrases())
        return 0
    save(train(utterances(), phrases()), asked.out)
    print(f"{asked.out}: {asked.out.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
