"""`python -m bench.serving`: `polyrhythm serve` asked by robots and by simulated episodes at once, by batch size.

Robots ask 20 times a second and want an answer within a tenth; episodes ask again as soon as they are answered and wait
for as long as 10 s. Told are throughput and latency for batches of at most 1, 2, 4, ... answers. The model is a
convolutional policy of ours with random weights; `--model FILE` takes another. On a machine with a card:
`python -m bench.serving --provider CUDAExecutionProvider`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.report import machine
from bench.result import percentile
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.session import PolicySession
from nodes.policy.remote.served import ServedModels
from nodes.policy.remote.session import RemoteSession
from runtime.errors import PolyrhythmError
from runtime.hosts.service import Client, QuestionServer

BATCHES = (1, 2, 4, 8, 16, 32)
ROBOT_HZ, ROBOT_WITHIN_S, EPISODE_WITHIN_S = 20, 0.1, 10.0
WIDTH_PX, HEIGHT_PX = 160, 120
REACH_S = 30.0


@dataclass(slots=True)
class Asked:
    """What became of the questions of one kind of client."""

    taken_ms: list[float] = field(default_factory=list)
    late: int = 0  # no answer in time, or none at all


@dataclass(frozen=True, slots=True)
class Figures:
    """For one size of batch."""

    batch: int
    alone_ms: float  # one answer of the warm model
    together_ms: float  # so many in one run
    episodes_per_s: float
    episode_p50_ms: float
    episode_p99_ms: float
    robot_p50_ms: float
    robot_p99_ms: float
    robot_late: float  # share of the robots' questions
    cpu_ms: float  # of the server's process, for one answer


def policy(width_px: int = WIDTH_PX, height_px: int = HEIGHT_PX, steps: int = 32) -> bytes:
    """A convolutional policy with random weights, which leaves the number of rows open; about 9 million numbers."""
    from onnx import TensorProto, helper, numpy_helper

    generator = np.random.default_rng(1)
    constants: dict[str, NDArray[Any]] = {"pixels": np.array([2, 3], np.int64), "shape": np.array([-1, steps, 10])}
    nodes, before, channels = [], "image", 3
    for number, wider in enumerate((32, 64, 128, 256)):
        constants[f"conv{number}"] = generator.normal(0, (channels * 9) ** -0.5, (wider, channels, 3, 3)).astype("f4")
        nodes += [
            helper.make_node("Conv", [before, f"conv{number}"], [f"seen{number}"], strides=[2, 2], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"seen{number}"], [f"kept{number}"]),
        ]
        before, channels = f"kept{number}", wider
    nodes += [
        helper.make_node("ReduceMean", [before, "pixels"], ["colour"], keepdims=0),
        helper.make_node("Concat", ["colour", "joints"], ["both"], axis=1),
    ]
    before, channels = "both", channels + 8
    for number in range(3):
        constants[f"dense{number}"] = generator.normal(0, channels**-0.5, (channels, 2048)).astype("f4")
        nodes += [
            helper.make_node("MatMul", [before, f"dense{number}"], [f"sum{number}"]),
            helper.make_node("Relu", [f"sum{number}"], [f"hidden{number}"]),
        ]
        before, channels = f"hidden{number}", 2048
    constants["out"] = generator.normal(0, 0.01, (channels, steps * 10)).astype("f4")
    nodes += [
        helper.make_node("MatMul", [before, "out"], ["flat"]),
        helper.make_node("Reshape", ["flat", "shape"], ["chunk"]),
    ]
    graph = helper.make_graph(
        nodes,
        "serving",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, ["rows", 3, height_px, width_px]),
            helper.make_tensor_value_info("joints", TensorProto.FLOAT, ["rows", 8]),
        ],
        [helper.make_tensor_value_info("chunk", TensorProto.FLOAT, ["rows", steps, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


def ask(address: str, robots: int, episodes: int, seconds: float) -> tuple[Asked, Asked]:
    """Robots and episodes, each in a thread, for so long; the first second does not count."""
    found = Asked(), Asked()
    lock = threading.Lock()
    connected = threading.Barrier(robots + episodes)

    def client(*, is_robot: bool, number: int) -> None:
        opened = Client(address)
        within_s = ROBOT_WITHIN_S if is_robot else EPISODE_WITHIN_S
        reaching = RemoteSession(opened, within_s=REACH_S, jpeg_quality=85)
        image = np.random.default_rng(number).integers(0, 255, (HEIGHT_PX, WIDTH_PX, 3), dtype=np.uint8)
        while True:
            try:
                reaching.wants()
                break
            except PolyrhythmError:
                time.sleep(0.01)
        remote = RemoteSession(opened, within_s=within_s, jpeg_quality=85)
        connected.wait()
        begun_s = time.monotonic()
        next_s = begun_s + number / (ROBOT_HZ * max(robots, 1))
        taken_ms, late = [], 0
        while (now_s := time.monotonic()) < begun_s + seconds:
            if is_robot and now_s < next_s:
                time.sleep(next_s - now_s)
                now_s = time.monotonic()
            next_s += 1 / ROBOT_HZ
            try:
                remote.run({"image": image}, Felt((0.1 * number,) * 8))
            except PolyrhythmError:
                late += now_s > begun_s + 1.0
                continue
            if now_s > begun_s + 1.0:
                taken_ms.append(1e3 * (time.monotonic() - now_s))
        opened.close()
        with lock:
            found[not is_robot].taken_ms += taken_ms
            found[not is_robot].late += late

    threads = [
        threading.Thread(target=client, kwargs={"is_robot": number < robots, "number": number})
        for number in range(robots + episodes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def measure(model: PolicySession, batch: int, *, robots: int, episodes: int, seconds: float) -> Figures:
    """Serve the model with that batch, asked by a process of its own."""
    served = ServedModels({"model": model}, batch)
    alone_ms, together_ms = (served.costs.took_ns("model", count) / 1e6 for count in (1, batch))
    server = QuestionServer("tcp://127.0.0.1:*", [served])
    begun_s = time.process_time()
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            robot, episode = pool.apply(ask, (server.address, robots, episodes, seconds))
    finally:
        server.close()
    return Figures(
        batch,
        alone_ms,
        together_ms,
        len(episode.taken_ms) / (seconds - 1.0),
        percentile(episode.taken_ms, 50),
        percentile(episode.taken_ms, 99),
        percentile(robot.taken_ms, 50),
        percentile(robot.taken_ms, 99),
        robot.late / max(1, robot.late + len(robot.taken_ms)),
        1e3 * (time.process_time() - begun_s) / server.questions.counts["taken"],
    )


def table(rows: Sequence[Figures]) -> str:
    """The figures as a table for a page."""
    lines = [
        "| batch | one run of 1, ms | a full one, ms | CPU of an answer, ms | episodes' answers/s | "
        "episodes p50, p99, ms | robots p50, p99, ms | robots without an answer in 100 ms |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.batch} | {row.alone_ms:.1f} | {row.together_ms:.1f} | {row.cpu_ms:.1f} | {row.episodes_per_s:.0f} | "
        f"{row.episode_p50_ms:.0f}, {row.episode_p99_ms:.0f} | {row.robot_p50_ms:.0f}, {row.robot_p99_ms:.0f} | "
        f"{100 * row.robot_late:.1f} % |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    """Print the table, or JSON with the machine."""
    parser = argparse.ArgumentParser(prog="bench.serving", epilog="example: python -m bench.serving --seconds 10")
    parser.add_argument("--model", type=Path, help="an ONNX policy; default: one of ours with random weights")
    parser.add_argument("--provider", action="append", help="of ONNX Runtime; default: CPUExecutionProvider")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of one run on the CPU; default: 1")
    parser.add_argument("--robots", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--episodes", type=int, default=32, metavar="N", help="default: 32")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="for each batch; the first does not count; default: 8"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = machine()
    model = PolicySession(
        asked.model.read_bytes() if asked.model else policy(),
        name=str(asked.model or "the bench's policy"),
        width_px=WIDTH_PX,
        height_px=HEIGHT_PX,
        providers=tuple(asked.provider or ["CPUExecutionProvider"]),
        threads=asked.threads,
    )
    for note in (model.fallback, model.why_single and f"no batches: {model.why_single}"):
        if note:
            print(note, file=sys.stderr)
    rows = [
        measure(model, batch, robots=asked.robots, episodes=asked.episodes, seconds=asked.seconds)
        for batch in BATCHES
        if batch == 1 or model.is_batched
    ]
    if asked.json:
        print(
            json.dumps(
                {"machine": found, "model": str(model.timing()), "rows": [asdict(row) for row in rows]}, indent=2
            )
        )
        return 0
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    print(f"{model.name} on {model.timing()}; {asked.robots} robots, {asked.episodes} episodes\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
