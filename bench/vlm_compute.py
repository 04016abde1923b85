"""What an answer costs with a model of SmolVLM-256M's sizes: `python -m bench.vlm_compute [THREADS]`; 1 GB of memory.

Its weights are random and of 32 bits, so nothing is learned of what it says. Times are the processor's, the least of
several, so that what else runs changes them little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from bench.random_vlm import Sizes, random_parts
from nodes.models.onnx_file import declared
from nodes.vlm.onnx.model import VisionLanguageModel
from nodes.vlm.onnx.parts import problems

INSTRUCTIONS, QUESTION, WRITTEN = 330, 150, 8
"""In tokens, about: the instructions, an image with a question, and what is written at once between two choices."""


def cpu_s(work: Callable[[], object], times: int) -> float:
    """Seconds of processor time, of all threads."""
    found = []
    for _ in range(times):
        begun_s = time.process_time()
        work()
        found.append(time.process_time() - begun_s)
    return min(found)


def main(threads: int) -> None:
    """Print a line for each."""
    sizes = Sizes()
    parts = random_parts(sizes)
    for part, data in parts.items():
        assert problems(part, data) == [], declared(data)
        print(f"{part}: {len(data) / 1e6:.0f} MB")
    model = VisionLanguageModel(parts, name="random", providers=("CPUExecutionProvider",), threads=threads)
    del parts
    generator = np.random.default_rng(1)
    image = generator.standard_normal((1, 1, 3, sizes.image_px, sizes.image_px), np.float32)

    def text(tokens: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return generator.standard_normal((tokens, sizes.width), np.float32)

    instructions, question = text(INSTRUCTIONS), text(QUESTION)
    whole = np.concatenate([instructions, question])
    _, kept = model.read(instructions, model.nothing)
    _, asked = model.read(question, kept)
    one, several = text(1), text(WRITTEN)
    print(f"the image: {cpu_s(lambda: model.see(image), 3):.2f} s")
    print(f"a prompt of {len(whole)} tokens: {cpu_s(lambda: model.read(whole, model.nothing), 3):.2f} s")
    print(f"its last {QUESTION}, the instructions being kept: {cpu_s(lambda: model.read(question, kept), 3):.2f} s")
    print(f"a token: {cpu_s(lambda: model.read(one, asked), 20) * 1e3:.0f} ms")
    print(f"{WRITTEN} tokens at once: {cpu_s(lambda: model.read(several, asked), 20) * 1e3:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
