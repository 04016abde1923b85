"""The console: how old pictures are on screen, how soon a key reaches the guard, what viewers cost. Needs Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.result import Result, percentile

LAUNCH = """
[nodes.console]
use = "bridges.web.console.node:Console"
process = "console"
params = {{ port = 0 }}
[nodes.human_policy]
use = "bridges.web.console.human_nodes:HumanPolicy"
process = "console"
[nodes.camera]
use = "bench.web_nodes:BenchCamera"
process = "camera"
[nodes.robot]
use = "bench.web_nodes:BenchRobot"
process = "robot"
params = {{ out = "{folder}/keys.json" }}
[nodes.control]
use = "bench.web_nodes:BenchControl"
process = "control"
params = {{ out = "{folder}/ticks.json" }}
[seats.policy]
holder = "human_policy"
"""
SPAN_S = 4.0
PRESSES = 60
PERIOD_NS = 50_000_000
NOTE = Path(__file__).with_name("web_page.js")
"""Put into the page before its own scripts; it notes and changes nothing."""
ADDRESS = re.compile(r"(operator|viewer): (http://\S+/)#([0-9a-f]{32})")


class Run:
    """The graph to be measured, from its start to its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        launch = folder / "web.toml"
        launch.write_text(LAUNCH.format(folder=folder))
        command = [sys.executable, "-m", "runtime", "run", str(launch), "--out", str(folder / "out")]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        end_s = time.monotonic() + 60.0
        while not any("console [pid" in line and "] running" in line for line in list(self.lines)):
            if self._process.poll() is not None or time.monotonic() > end_s:
                raise RuntimeError("the console does not start:\n" + "\n".join(self.lines))
            time.sleep(0.05)
        found = [one for line in self.lines if (one := ADDRESS.search(line))]
        self.url = found[0][2]
        self.tokens = {one[1]: one[3] for one in found}
        self.console_pid = next(
            int(one[1]) for line in self.lines if (one := re.search(r"console \[pid (\d+)\]", line))
        )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())

    def close(self) -> None:
        """As Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30.0)
        self._reader.join(5.0)
        assert self._process.stdout is not None
        self._process.stdout.close()


def cpu_s(pid: int) -> float:
    """What a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    """The memory that it holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def viewers(run: Run, count: int, *, answers: bool = True) -> Iterator[None]:
    """So many viewers who watch the camera; without `answers`, they take nothing from the socket."""
    from websockets.sync.client import connect
    from websockets.typing import Origin

    end = threading.Event()

    def view() -> None:
        address = run.url.replace("http", "ws") + "socket"
        origin = Origin(run.url.rstrip("/"))
        with connect(address, origin=origin, compression=None, proxy=None, max_queue=2) as socket:
            socket.send(json.dumps({"t": "hello", "token": run.tokens["viewer"]}))
            socket.recv()
            socket.send(json.dumps({"t": "watch", "cameras": ["head"]}))
            while not end.is_set():
                if not answers:
                    end.wait(0.1)
                    continue
                data = socket.recv(timeout=5.0)
                if isinstance(data, str):
                    number = json.loads(data).get("n")
                    if number is not None:
                        socket.send(json.dumps({"t": "seen", "n": number}))
                else:
                    header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "big")])
                    socket.send(json.dumps({"t": "seen", "n": header["n"], "camera": header["camera"]}))

    threads = [threading.Thread(target=view) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join(15.0)


def late_ms(ticks_ns: Sequence[int], begin_ns: int, end_ns: int) -> float:
    """The 99th percentile of how late ticks came between two moments."""
    phases = [(tick - ticks_ns[0] + PERIOD_NS // 2) % PERIOD_NS for tick in ticks_ns if begin_ns < tick < end_ns]
    return percentile([(phase - min(phases)) * 1e-6 for phase in phases], 99)


Frames = list[dict[str, float]]


def browse(run: Run) -> tuple[Frames, Frames, list[float]]:
    """A page that watches and drives: its frames, alone and beside two viewers, and when its key went down; ms."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.add_init_script(path=NOTE)
        page.goto(f"{run.url}#{run.tokens['operator']}")
        page.wait_for_selector("body[data-role=operator]")
        page.wait_for_timeout(2000)
        frames = watch(page)
        with viewers(run, 2):
            beside_two = watch(page)
        page.keyboard.press("p", delay=700)
        page.wait_for_timeout(1000)
        for press in range(PRESSES):
            page.keyboard.down("w")
            page.wait_for_timeout(60 + press % 7 * 7)
            page.keyboard.up("w")
            page.wait_for_timeout(500 + press % 11 * 5)
        keys: list[float] = page.evaluate("() => benchKeys")
        browser.close()
    return frames, beside_two, keys


def watch(page: Any) -> Frames:
    """What the page notes of each frame for a while; `page` is Playwright's."""
    page.wait_for_timeout(500)
    page.evaluate("() => { benchFrames.length = 0; }")
    page.wait_for_timeout(SPAN_S * 1000)
    frames: Frames = page.evaluate("() => benchFrames")
    return frames


def matched(keys_ms: Sequence[float], first_ms: Sequence[float]) -> list[float]:
    """From each key press to the first command that came of it."""
    found = []
    for key in keys_ms:
        after = [first - key for first in first_ms if 0.0 <= first - key < 400.0]
        if after:
            found.append(min(after))
    return found


def measure() -> list[Result]:
    """One run: first alone, then with three viewers, then with one that is stalled, then with a page."""
    if shutil.which("chromium") is None:
        print("web: there is no Chromium; nothing is measured", file=sys.stderr)
        return []
    wall_ns = time.time_ns() - time.monotonic_ns()
    spans: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = Run(folder)
        try:
            time.sleep(2.0)
            cpu = {}
            for span, count in (("alone", 0), ("viewers", 3), ("alone again", 0), ("viewers again", 3)):
                with viewers(run, count):
                    time.sleep(1.0)
                    begin_ns, begin_s = time.monotonic_ns(), cpu_s(run.console_pid)
                    time.sleep(SPAN_S)
                    spans[span] = begin_ns, time.monotonic_ns()
                    cpu[span] = (cpu_s(run.console_pid) - begin_s) / SPAN_S
            before_mb = rss_mb(run.console_pid)
            most_mb = before_mb
            with viewers(run, 1, answers=False):
                for _ in range(50):
                    time.sleep(0.1)
                    most_mb = max(most_mb, rss_mb(run.console_pid))
            frames, beside_two, keys = browse(run)
        finally:
            run.close()
        ticks = json.loads((folder / "ticks.json").read_text())
        first_ms = [(first + wall_ns) * 1e-6 for first in json.loads((folder / "keys.json").read_text())]
    wall_ms = wall_ns * 1e-6
    parts = {
        "sent": [frame["age_ms"] for frame in frames],
        "got": [frame["got"] - frame["captured_ms"] - wall_ms for frame in frames],
        "drawn": [frame["drawn"] - frame["captured_ms"] - wall_ms for frame in frames],
        "shown": [frame["shown"] - frame["captured_ms"] - wall_ms for frame in frames],
    }
    p50 = {name: percentile(ages, 50) for name, ages in parts.items()}
    print(
        f"web: an image is {p50['sent']:.0f} ms old when it is sent, {p50['got']:.0f} when the page has it, "
        f"{p50['drawn']:.0f} when it is drawn, {p50['shown']:.0f} on screen; {len(frames) / SPAN_S:.1f} a second",
        file=sys.stderr,
    )
    shown_beside = percentile([frame["shown"] - frame["captured_ms"] - wall_ms for frame in beside_two], 50)
    pressed = matched(keys, first_ms)
    alone = min(late_ms(ticks, *spans["alone"]), late_ms(ticks, *spans["alone again"]))
    watched = min(late_ms(ticks, *spans["viewers"]), late_ms(ticks, *spans["viewers again"]))
    share = min(cpu["viewers"], cpu["viewers again"])
    return [
        Result("image on screen, 640x480 at 15 Hz, p50", "ms", p50["shown"], 60.0, "the goal", 1.0),
        Result("image on screen beside two viewers, p50", "ms", shown_beside, 60.0, "the goal", 1.0),
        Result("image when the socket has it, p50", "ms", p50["sent"], 20.0, "the goal", 1.0),
        Result("frames drawn", "Hz", len(frames) / SPAN_S, 15.0, "the camera's rate", 0.9, more_is_better=True),
        Result("key press to guard, p50", "ms", percentile(pressed, 50), 20.0, "the goal", 1.0),
        Result("key press to guard, p99", "ms", percentile(pressed, 99), 50.0, "the goal", 1.0),
        Result(
            "20 Hz loop beside three viewers, p99 late", "ms", watched, alone, "without viewers", 1.1, allowance=0.5
        ),
        Result("console's CPU with three viewers", "core", share, 1.0, "one core", 0.4),
        Result("memory for a stalled viewer", "MB", most_mb - before_mb, 8.0, "8 MB", 1.0),
    ]
