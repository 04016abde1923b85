"""Trains `nodes/interrupts/stop_classifier.onnx`: python examples/train_stop_classifier/train.py [--folds] [OUT.onnx]

Three networks of one hidden layer over hashed runs of characters, words and what the tables found, from the labelled
utterances that are for tuning and the phrases of `nodes/interrupts/intent.toml`. Seeded; a minute on one core.
`--folds` trains nothing that ships: it tells how well fifths of the newest utterances are told, by the others.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.interrupts.intent import understand
from nodes.interrupts.stop_classifier import BUCKETS, INPUTS, MODEL, features_of

ROOM = Path(__file__).parents[2] / "nodes" / "interrupts"
STOPS = ("stop", "stop_end", "stop_alone", "distress", "cry")
OTHERS = ("resume", "backchannel", "greeting", "question", "telling", "correction", "order", "order_end", "ordinary")
HIDDEN, EPOCHS, BATCH, RATE, DECAY = 40, 20, 64, 2e-3, 2e-4
SEEDS = (7, 8, 9)
"""One network each; what ships is their mean, which is surer of what it tells than any of them."""
DROP, DROP_SIGNS = 0.4, 0.3
"""How often a run of letters, and all signs of a text at once, are left out: no single one is to decide."""
NEWEST = ("reflex_tuning_writers.jsonl", "reflex_tuning_kinds.jsonl")
NEWEST_WEIGHT, PHRASE_WEIGHT = 2.0, 0.2
"""The tables have grown beside the older lines, and know nearly all of their stops."""

Floats = NDArray[np.float32]


Labelled = list[tuple[str, float, float]]  # a text, 1 for a stop, and what it counts


def utterances() -> Labelled:
    """The labelled lines for tuning, in fifteen languages."""
    found: Labelled = []
    for file in sorted((ROOM / "data").glob("reflex_tuning*.jsonl")):
        weight = NEWEST_WEIGHT if file.name in NEWEST else 1.0
        lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        found += [(line["text"], float(line["expect"] == "stop"), weight) for line in lines]
    return found


def phrases() -> Labelled:
    """What the tables hold, as they stand there, one choice of each group."""
    tables = tomllib.loads((ROOM / "intent.toml").read_text(encoding="utf-8"))
    plain: Labelled = []
    for names, is_stop in ((STOPS, 1.0), (OTHERS, 0.0)):
        for name in names:
            for texts in tables[name].values():
                for text in texts:
                    first = text.split("|")[0].replace("(", "").replace(")", "") if "|" in text else text
                    if "{" not in first and "*" not in first and ")?" not in first:
                        plain.append((first, is_stop, PHRASE_WEIGHT))
    return plain


def fit(inputs: Floats, labels: Floats, weights: Floats, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Adam on the weighted cross-entropy; features are dropped at random, so that no single run of letters decides."""
    draw = np.random.default_rng(seed)
    starts = [
        draw.normal(0, 0.3, (INPUTS, HIDDEN)), np.zeros(HIDDEN), draw.normal(0, HIDDEN**-0.5, (HIDDEN, 1)), np.zeros(1)
    ]  # fmt: skip
    params: list[Floats] = [start.astype(np.float32) for start in starts]
    means, squares = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    step = 0
    steps = EPOCHS * max(1, len(inputs) // BATCH)
    for _ in range(EPOCHS):
        for rows in np.array_split(draw.permutation(len(inputs)), max(1, len(inputs) // BATCH)):
            step += 1
            x = inputs[rows] * (draw.random((len(rows), INPUTS), np.float32) > DROP) / (1 - DROP)
            x[draw.random(len(rows)) < DROP_SIGNS, BUCKETS:] = 0.0
            rate = RATE * (1 - 0.9 * step / steps)
            first, bias, second, last = params
            hidden = np.maximum(x @ first + bias, 0)
            error = (sigmoid(hidden @ second + last)[:, 0] - labels[rows]) * weights[rows] / weights[rows].sum()
            back = (error[:, None] * second.T) * (hidden > 0)
            slopes = [x.T @ back, back.sum(0), hidden.T @ error[:, None], error.sum(keepdims=True)]
            for place, slope in enumerate(slopes):
                means[place] += 0.1 * (slope - means[place])
                squares[place] += 0.001 * (slope**2 - squares[place])
                scaled = (means[place] / (1 - 0.9**step)) / (np.sqrt(squares[place] / (1 - 0.999**step)) + 1e-8)
                params[place] = (params[place] - rate * scaled - rate * DECAY * params[place]).astype(np.float32)
    first, bias, second, last = params
    return first, bias, second, last


def sigmoid(x: Floats) -> Floats:
    return (1.0 / (1.0 + np.exp(-x))).astype(np.float32)


def save(params: tuple[Floats, Floats, Floats, Floats], path: Path) -> None:
    """Write the network, the weights of its first layer in a byte each."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    first, bias, second, last = params
    scale = np.abs(first).max(0) / 127
    whole = np.rint(first / scale).astype(np.int8)
    held = {"whole": whole, "scale": scale, "bias": bias, "second": second, "last": last}
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["whole", "scale"], ["first"], axis=1),
            helper.make_node("MatMul", ["features", "first"], ["a"]),
            helper.make_node("Add", ["a", "bias"], ["b"]),
            helper.make_node("Relu", ["b"], ["c"]),
            helper.make_node("MatMul", ["c", "second"], ["d"]),
            helper.make_node("Add", ["d", "last"], ["e"]),
            helper.make_node("Sigmoid", ["e"], ["certainty"]),
        ],
        "stop_classifier",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, INPUTS])],
        [helper.make_tensor_value_info("certainty", TensorProto.FLOAT, [None, 1])],
        [numpy_helper.from_array(param, name) for name, param in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def folds(said: Labelled, extra: Labelled) -> None:
    order = np.random.default_rng(1).permutation([place for place, one in enumerate(said) if one[2] == NEWEST_WEIGHT])
    certain = np.zeros(len(said))
    for part in np.array_split(order, 5):
        left_out = set(part.tolist())
        params = train([one for place, one in enumerate(said) if place not in left_out], extra)
        for place in part:
            x = features_of(said[place][0])
            certain[place] = sigmoid(np.maximum(x @ params[0] + params[1], 0) @ params[2] + params[3])[0]
    for kind in ("told", "order", "amend", "behind", "talk", "unknown", "stop"):
        places = [place for place in order if kind_of(said[place][0]) == kind]
        for is_stop, name in ((1.0, "stops"), (0.0, "others")):
            sure = certain[[place for place in places if said[place][1] == is_stop]]
            told = ", ".join(f"{(sure >= bound).sum()} from {bound}" for bound in (0.2, 0.35, 0.5, 0.65, 0.8, 0.95))
            print(f"{kind}: of {len(sure)} {name} {told}")


def kind_of(text: str) -> str:
    """What the tables take it for, as the network's bounds ask."""
    meaning = understand(text)
    if meaning.wants in ("stop", "order", "amend"):
        return meaning.wants
    if meaning.is_told or meaning.wants == "resume":
        return "told"
    return "behind" if meaning.may_stop else "talk" if meaning.talk else "unknown"


def train(said: Labelled, extra: Labelled) -> tuple[Floats, Floats, Floats, Floats]:
    """One network whose hidden layer is those of all seeds side by side, and whose sum before the end is their mean."""
    texts, labels, weights = zip(*said, *extra, strict=True)
    inputs = np.stack([features_of(text) for text in texts])
    nets = [fit(inputs, np.array(labels, np.float32), np.array(weights, np.float32), seed) for seed in SEEDS]
    first, bias, second, last = (list(parts) for parts in zip(*nets, strict=True))
    return (
        np.concatenate(first, axis=1),
        np.concatenate(bias),
        (np.concatenate(second) / len(nets)).astype(np.float32),
        np.mean(last, axis=0, dtype=np.float32),
    )


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
