"""How smoothly chunks are played: `python -m bench.chunks`, in virtual time, some seconds of CPU.

One joint is to move at 100 mm/s. A planner that knows where it should be answers images at 15 Hz, each after the
latency and one at a time, with 32 steps of 50 ms. Noise of 1 cm is added to each chunk as a whole ("chunks"), or to
each of its numbers ("numbers"). "newest" is the plainest player, for comparison: the newest chunk, its step of now.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import ActionChunk
from nodes.policy.onnx.chunks import BLEND_S, Playback
from runtime.clock import to_ns

Noise = Literal["none", "chunks", "numbers"]
Player = Literal["newest", "playback"]

MPS = 0.1
NOISE_M = 0.01
STEP_S = 0.05
STEPS = 32
TICK_NS, IMAGE_NS = 50_000_000, 66_666_667
LAG_S = 0.2
"""Of a robot that follows its command."""

LATENCIES_MS = (0, 50, 100, 200, 300)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one joint's commands."""

    player: Player
    latency_ms: int
    noise: Noise
    backward: float  # share of commands that go against the way
    ripple: float  # standard deviation of the speed, as a share of its mean
    jerk_mps3: float  # root mean square
    error_mm: float  # of the command against the truth, root mean square
    reaction_ms: float | None  # until two thirds of a jump of 10 cm are commanded; without noise


def figures(player: Player, latency_ms: int, noise: Noise, *, seed: int = 1, seconds: float = 60.0) -> Figures:
    """What is commanded while the truth moves at 100 mm/s; the first 4 s do not count."""
    generator = np.random.default_rng(seed)
    ahead = STEP_S * np.arange(STEPS)

    def planned(seen_s: float, _: float) -> NDArray[np.float64]:
        drawn = generator.normal(0.0, NOISE_M, {"none": 0, "chunks": 1, "numbers": STEPS}[noise])
        truth = MPS * (seen_s + ahead)
        return np.asarray(truth + drawn if drawn.size else truth, np.float64)

    times, commands, _ = _played(player, latency_ms, seconds, planned)
    counts = times >= 4.0
    times, commands = times[counts], commands[counts]
    steps = np.diff(commands)
    dt = TICK_NS * 1e-9
    return Figures(
        player,
        latency_ms,
        noise,
        backward=float(np.mean(steps < -1e-9)),
        ripple=float(np.std(steps) / np.mean(steps)),
        jerk_mps3=float(np.sqrt(np.mean((np.diff(commands, 3) / dt**3) ** 2))),
        error_mm=1e3 * float(np.sqrt(np.mean((commands - MPS * times) ** 2))),
        reaction_ms=_reaction_ms(player, latency_ms) if noise == "none" else None,
    )


def relative_speed_mps(player: Player, latency_ms: int, *, seconds: float = 20.0) -> float:
    """The speed of a robot that lags, under chunks of 100 mm/s from the joint as it is felt."""
    ahead = MPS * STEP_S * np.arange(STEPS)

    def planned(_: float, felt: float) -> NDArray[np.float64]:
        return np.asarray(felt + ahead, np.float64)

    _, _, places = _played(player, latency_ms, seconds, planned, is_relative=True)
    half = len(places) // 2
    return float((places[-1] - places[half]) / ((len(places) - 1 - half) * TICK_NS * 1e-9))


def _reaction_ms(player: Player, latency_ms: int) -> float:
    at_s = 5.0

    def planned(seen_s: float, _: float) -> NDArray[np.float64]:
        return np.asarray([0.1 if seen_s >= at_s else 0.0] * STEPS, np.float64)

    times, commands, _ = _played(player, latency_ms, 12.0, planned)
    return 1e3 * float(times[np.argmax(commands >= 0.1 * 2 / 3)] - at_s)


def _played(
    player: Player,
    latency_ms: int,
    seconds: float,
    planned: Callable[[float, float], NDArray[np.float64]],
    *,
    is_relative: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """When, what was commanded, and where the robot was, by the tick."""
    playback, newest = Playback(BLEND_S), None
    asked: tuple[int, NDArray[np.float64], float] | None = None  # since, what the answer will be, and what was felt
    felt, found, image_ns = 0.0, [], 0
    for now_ns in range(0, to_ns(seconds), TICK_NS // 10):
        if asked is None and now_ns // IMAGE_NS * IMAGE_NS >= image_ns:
            seen_ns = now_ns // IMAGE_NS * IMAGE_NS
            image_ns = seen_ns + IMAGE_NS
            asked = seen_ns, planned(seen_ns * 1e-9, felt), felt
        if asked is not None and now_ns - asked[0] >= latency_ms * 1_000_000:
            seen_ns, rows, at = asked
            if is_relative and player == "playback":
                rows = rows - at + playback.anchor((at,) * 8, seen_ns)[0]
            newest, asked = (seen_ns, rows), None
            chunk = ActionChunk(
                position=np.tile(rows[:, None], 8),
                base_v_mps=np.zeros(STEPS),
                base_w_radps=np.zeros(STEPS),
                step_s=STEP_S,
            )
            playback = playback.with_chunk(chunk, seen_ns=seen_ns, came_ns=now_ns)
        if now_ns % TICK_NS or newest is None:
            continue
        if player == "newest":
            since_ns, rows = newest
            command = float(rows[min(int((now_ns - since_ns) * 1e-9 / STEP_S), STEPS - 1)])
        else:
            whole = playback.command(now_ns)
            if whole is None:
                continue
            command = whole.position[0]
            playback = playback.with_sent(whole.position, now_ns)
        found.append((now_ns * 1e-9, command, felt))
        felt += (command - felt) * TICK_NS * 1e-9 / LAG_S
    times, commands, places = np.array(found).T
    return times, commands, places


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.chunks", description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    players: tuple[Player, ...] = ("newest", "playback")
    noises: tuple[Noise, ...] = ("none", "chunks", "numbers")
    rows = [figures(player, ms, noise) for noise in noises for ms in LATENCIES_MS for player in players]
    if arguments.json:
        print(msgspec.json.encode([asdict(row) for row in rows]).decode())
        return 0
    print("| noise of 1 cm | latency | player | backward | ripple | jerk, m/s³ | error, mm | reaction, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        reaction = "" if row.reaction_ms is None else f"{row.reaction_ms:.0f}"
        print(
            f"| {row.noise} | {row.latency_ms} ms | {row.player} | {row.backward:.1%} | {row.ripple:.1%} "
            f"| {row.jerk_mps3:.1f} | {row.error_mm:.1f} | {reaction} |"
        )
    print("\n| chunks relative to now | " + " | ".join(f"{ms} ms" for ms in LATENCIES_MS) + " |")
    print("|---" * (len(LATENCIES_MS) + 1) + "|")
    for player in players:
        speeds = " | ".join(f"{1e3 * relative_speed_mps(player, ms):.0f} mm/s" for ms in LATENCIES_MS)
        print(f"| {player} | {speeds} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
