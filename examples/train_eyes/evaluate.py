"""How well the eyes see what they were never trained on: python -m examples.train_eyes.evaluate [--scenes 167]

Held-out scenes have shapes, textures, light and strangers of their own, three pictures each. It prints detection mAP50
over the kinds, how many strangers were called unknown, how often the thing that words mean was found, and the time of
one picture on one core. Words are known, held (noun and colour in no table that was written by hand) and mixed.
`--split check` has the scenes that decide between networks; the held-out ones are for the last network alone.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from examples.train_eyes.scenes import FOCAL_PX, Shown, View, views_of
from examples.train_eyes.shapes import Split
from nodes.msgs import SeenObject
from nodes.perception.point_cloud import Shot
from nodes.vlm.room.blobs import Blob, look
from nodes.vlm.room.crops import FILLS, KINDS, OTHER, Classification, CropReader, cut_out
from nodes.vlm.room.grounding import ground

FIRST = 100_000
LEAST_PX = 40
"""Of a thing that counts."""
NOUNS = {
    "mug": ("mug", "cup"), "glass": ("glass", "tumbler"), "plate": ("plate", "dish"), "bowl": ("bowl",),
    "bottle": ("bottle",), "apple": ("apple",), "orange": ("orange",), "banana": ("banana",),
    "cookie jar": ("cookie jar", "jar"), "sponge": ("sponge",),
}  # fmt: skip
HELD_NOUNS = {
    "mug": ("teacup", "tankard", "beaker"), "glass": ("goblet", "drinking vessel"), "plate": ("platter", "saucer"),
    "bowl": ("basin", "tureen"), "bottle": ("flask", "carafe"), "apple": ("pippin", "piece of fruit"),
    "orange": ("tangerine", "mandarin"), "banana": ("plantain", "piece of fruit"),
    "cookie jar": ("canister", "biscuit tin"),
    "sponge": ("scrubber", "scouring pad"),
}  # fmt: skip
HELD_COLOURS = {
    "red": ("crimson", "scarlet"), "blue": ("navy", "cobalt"), "green": ("emerald", "olive"),
    "yellow": ("golden", "lemon"),
    "white": ("ivory", "pale"), "orange": ("amber", "apricot"), "brown": ("chocolate", "hazel"),
    "": ("see-through", "glassy"),
}  # fmt: skip
Box = tuple[int, int, int, int]


def boxes_of(view: View) -> dict[int, Box]:
    """The boxes of things of which enough is seen."""
    found = {}
    for number in range(len(view.things)):
        rows, columns = np.nonzero(view.whose == number)
        if len(rows) >= LEAST_PX:
            found[number] = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
    return found


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(width, 0) * max(height, 0)
    area = sum((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return both / (area - both)


def average_precision(found: list[tuple[float, bool]], wanted: int) -> float:
    """The area under precision over recall, of (sureness, whether it is right)."""
    found = sorted(found, reverse=True)
    right = np.cumsum([is_right for _, is_right in found])
    precision = right / np.arange(1, len(found) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(sum(best[k] for k, (_, is_right) in enumerate(found) if is_right)) / max(wanted, 1)


def phrase(view: View, number: int, marks: list[int], drawn: random.Random, words: str) -> str:
    """Words for one thing, which mean no other one in this picture."""
    one = view.things[number]
    nouns, colours = (HELD_NOUNS, HELD_COLOURS) if words == "held" else (NOUNS, {c: (c,) for c in HELD_COLOURS})
    noun = drawn.choice(nouns[one.kind])
    colour = drawn.choice(colours[one.colour]) if one.colour else ""
    if words == "mixed":  # one of the two is new
        if drawn.random() < 0.5 or not one.colour:
            noun = drawn.choice(HELD_NOUNS[one.kind]) if one.colour else noun
        else:
            colour = drawn.choice(HELD_COLOURS[one.colour])
    text = f"the {colour} {noun}".replace("  ", " ")
    alike = [k for k in marks if k != number and (view.things[k].kind, view.things[k].colour) == (one.kind, one.colour)]
    if alike:
        return ""
    return text


def measure(first: int, scenes: int, words: str, split: Split = "held") -> dict[str, object]:
    """All figures."""
    reader = CropReader()
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    wanted: dict[str, int] = defaultdict(int)
    strangers = [0, 0, 0]  # shown, boxed, called unknown
    grounded: dict[str, list[int]] = {one: [0, 0] for one in ("known", "mixed", "held")}
    states: dict[str, list[int]] = {name: [0, 0] for name in ("colour", "fill", "dirty", "open")}
    mistaken: Counter[str] = Counter()
    times, pictures, proposed, things = [], 0, 0, 0
    for seed in range(first, first + scenes):
        for view in views_of(seed, split):
            pictures += 1
            started = time.process_time()
            seen = look(view.rgb, Shot(view.depth_m, FOCAL_PX, view.rotation, view.position), view.room)
            told = reader.read([cut_out(one, view.rgb, view.depth_m) for one in seen.blobs])
            times.append(time.process_time() - started)
            truth = boxes_of(view)
            things += len(truth)
            proposed += sum(any(overlap(box, blob.box) >= 0.5 for blob in seen.blobs) for box in truth.values())
            for number in truth:
                wanted[view.things[number].kind] += 1
            taken: set[int] = set()
            for place in sorted(range(len(told)), key=lambda k: -told[k].sure):
                blob, one = seen.blobs[place], told[place]
                best = max(truth, key=lambda k: overlap(truth[k], blob.box), default=-1)
                is_there = best >= 0 and best not in taken and overlap(truth[best], blob.box) >= 0.5
                shown = view.things[best] if is_there else None
                if one.kind != OTHER:
                    is_right = shown is not None and shown.kind == one.kind
                    found[one.kind].append((one.sure, is_right))
                if shown is None:
                    continue
                taken.add(best)
                if one.kind != shown.kind:
                    mistaken[f"{shown.stranger or shown.kind}: {one.kind}"] += 1
                if shown.kind == OTHER:
                    strangers[1] += 1
                    strangers[2] += one.kind == OTHER
                elif one.kind == shown.kind:
                    _count_states(states, shown, one)
            strangers[0] += sum(view.things[k].kind == OTHER for k in truth)
            drawn = random.Random(f"words/{seed}/{len(times)}")
            for kind_of_words in grounded if words == "all" else (words,):
                _count_words(grounded[kind_of_words], view, truth, seen.blobs, told, drawn, kind_of_words)
    kinds = [kind for kind in KINDS if kind != OTHER]
    each = {kind: average_precision(found[kind], wanted[kind]) for kind in kinds}
    return {
        "pictures": pictures, "things": things, "boxed": proposed / max(things, 1),
        "map50": float(np.mean(list(each.values()))), "ap50": each,
        "strangers": strangers[0], "strangers_boxed": strangers[1],
        "unknown": strangers[2] / max(strangers[1], 1),
        "grounding": {name: {"asked": n, "right": right / max(n, 1)} for name, (n, right) in grounded.items() if n},
        "mistaken": dict(mistaken.most_common(25)),
        "states": {name: {"asked": n, "right": right / max(n, 1)} for name, (n, right) in states.items()},
        "cpu_ms": {"p50": 1e3 * float(np.median(times)), "p95": 1e3 * float(np.quantile(times, 0.95))},
    }  # fmt: skip


def _count_states(states: dict[str, list[int]], shown: Shown, one: Classification) -> None:
    level = FILLS[0 if shown.fill == 0 else 2 if shown.fill > 0.8 else 1]
    for name, is_asked, is_right in (
        ("colour", True, one.colour == shown.colour), ("fill", shown.kind in ("mug", "glass"), one.fill == level),
        ("dirty", True, one.is_dirty == shown.is_dirty),
        ("open", shown.kind == "cookie jar", one.is_open == shown.is_open),
    ):  # fmt: skip
        states[name][0] += is_asked
        states[name][1] += is_asked and is_right


def _count_words(
    count: list[int], view: View, truth: dict[int, Box], blobs: Sequence[Blob], told: list[Classification],
    drawn: random.Random, words: str,
) -> None:  # fmt: skip
    known = [k for k in truth if view.things[k].kind != OTHER]
    things = [
        SeenObject(
            id=str(k), label=one.kind, colour=one.colour, x_m=blob.x_m, y_m=blob.y_m, z_m=blob.top_m,
            width_m=blob.width_m, height_m=0.1, u_px=(blob.box[0] + blob.box[2]) / 2, v_px=float(blob.box[1]),
            state=tuple(word for word in (one.fill, "dirty" if one.is_dirty else "") if word),
        )
        for k, (blob, one) in enumerate(zip(blobs, told, strict=True))
    ]  # fmt: skip
    for number in known:
        text = phrase(view, number, known, drawn, words)
        if not text:
            continue
        likely = {str(k): one.likely for k, one in enumerate(told)}
        meant = ground(text, things, {str(k): blob.surface for k, blob in enumerate(blobs)}, likely)
        count[0] += 1
        count[1] += len(meant) == 1 and overlap(blobs[int(meant[0].id)].box, truth[number]) >= 0.5


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=167)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--split", choices=("check", "held"), default="held")
    parser.add_argument("--words", choices=("known", "mixed", "held", "all"), default="all")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    figures = measure(asked.first, asked.scenes, asked.words, asked.split)
    print(json.dumps(figures, indent=None if asked.json else 1))


if __name__ == "__main__":
    main()
