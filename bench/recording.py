"""What recording costs the 20 Hz loop, how fast images and messages are written, and what a kill loses."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import run_nodes
from bench.result import Result, percentile

SECONDS = 5.0
KILLS = 20
_FRAMES = 60
LAPTOP_MB_PER_S = (15 * 160 * 120 + 5 * 96 * 72 + 160 * 120) * 7 / 1e6  # 3 bytes of colour, 4 of depth a pixel


def measure() -> list[Result]:
    """Lateness with and without a recorder, MB/s, and seconds lost by kill -9."""
    return [*_lateness(), _throughput(), _kills(KILLS)]


def _lateness() -> list[Result]:
    plain: dict[str, dict[str, Any]] = {
        "metronome": {"use": "bench.load_nodes:Metronome", "params": {"seconds": SECONDS}},
        "camera": {"use": "bench.load_nodes:Camera"},
    }
    with tempfile.TemporaryDirectory() as folder:
        recorder = {"use": "nodes.recording.recorder:Recorder", "params": {"path": f"{folder}/run.mcap"}}
        without = run_nodes(plain)
        recorded = run_nodes({**plain, "recorder": recorder})
    return [
        Result(
            "20 Hz beside a camera and a recorder, p99 late", "ms", recorded["p99"], without["p99"],
            "the same without a recorder", 1.2, allowance=1.0,
        ),
    ]  # fmt: skip


def _throughput() -> Result:
    """Lossless 640x480 images with exact depth through the recorder's own handler."""
    from nodes.msgs import Image
    from nodes.recording.recorder import Recorder
    from runtime.message import Envelope, Stamped

    rgb, depth = photograph(480, 640)
    frame_bytes = rgb.nbytes + depth.nbytes
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(path=f"{folder}/run.mcap")
        recorder.on_start()
        began = time.perf_counter()
        for number in range(1, _FRAMES + 1):
            image = Image(camera="head", captured_ns=number, rgb=rgb, depth_m=depth)
            recorder.on_any(Stamped(image, Envelope("head/image", "camera", number, number * 33_000_000)))
        recorder.on_stop()
        ours = _FRAMES * frame_bytes / 1e6 / (time.perf_counter() - began)
    return Result(
        "recorder, 640x480 like a photograph, depth with noise", "MB/s", ours, LAPTOP_MB_PER_S,
        "what the laptop graph sends", 1.0, more_is_better=True,
    )  # fmt: skip


def photograph(height: int, width: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Colour with the spectrum of photographs (less of high frequencies) and a sensor's noise; noisy depth."""
    chance = np.random.default_rng(0)
    frequency = np.hypot(*np.meshgrid(np.fft.rfftfreq(width), np.fft.fftfreq(height)))
    frequency[0, 0] = np.inf
    planes = []
    for _ in range(3):
        phases = np.exp(2j * np.pi * chance.random(frequency.shape))
        plane = np.fft.irfft2(phases / frequency, s=(height, width))
        planes.append(128 + 50 * plane / plane.std() + chance.normal(0, 2, (height, width)))
    rgb = np.clip(np.stack(planes, axis=-1), 0, 255).astype(np.uint8)
    far_m = 1.5 + 0.5 * planes[0] / 128
    depth_m = far_m + chance.normal(0, 0.002, (height, width)) * far_m**2
    return rgb, depth_m.astype(np.float32)


def lost_s(kills: int, generator: random.Random) -> list[float]:
    """Kill a writer at random moments; how much of what it had recorded each time is not in its file, in s.

    Four write at a time: each mostly sleeps.
    """
    moments_s = [generator.uniform(0.7, 2.2) for _ in range(kills)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        paths = [Path(folder) / f"{number}.mcap" for number in range(kills)]
        return list(pool.map(_lost_s, paths, moments_s))


def _lost_s(path: Path, after_s: float) -> float:
    from nodes.mcap.file import BagReader

    writer = subprocess.Popen([sys.executable, "-m", "bench.kill_writer", str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()  # it writes
    time.sleep(after_s)
    writer.kill()
    told = writer.stdout.read().split()
    writer.stdout.close()
    writer.wait()
    envelopes = [message.envelope for message in BagReader(path)]
    assert [envelope.seq for envelope in envelopes] == list(range(1, len(envelopes) + 1))
    last_told_ns = int(told[-1]) if told and told[-1].isdigit() else 0
    return max(0.0, (last_told_ns - (envelopes[-1].published_ns if envelopes else 0)) * 1e-9)


def _kills(kills: int) -> Result:
    losses = lost_s(kills, random.Random(8))
    return Result(f"lost by kill -9, the most of {kills}", "s", percentile(losses, 100), 1.0, "one second", 1.0)
