"""What a run promised and did not keep stands in its last lines and in its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.commands.broken_promises import PROMISES, Kind, lines, not_kept
from runtime.commands.message_counts import MessageCounts
from runtime.coordination.health import Health, PathHealth, PortHealth
from runtime.message import Envelope, Message, Stamped
from runtime.supervision.view import SilentView
from tests.support.sentences import sentence

ROOT = Path(__file__).parents[3]


def stamped(message: Message, source: str = "eye", at_s: float = 0.0) -> Stamped[Message]:
    return Stamped(message, Envelope("topic", source, 1, round(at_s * 1e9)))


def path_of(count: int, over: int, unknown: int = 0) -> PathHealth:
    return PathHealth(
        name="sight", topics=("a", "b"), p99_budget_ms=100.0, count=count, over=over, unknown=unknown,
        p50_ms=50.0, p99_ms=140.0, max_ms=150.0,
    )  # fmt: skip


def life(
    pid: int = 1,
    *,
    paths: tuple[PathHealth, ...] = (),
    ports: tuple[PortHealth, ...] = (),
    errors: int = 0,
    losses: tuple[str, ...] = (),
) -> Stamped[Message]:
    return stamped(
        Health(
            node="eye", pid=pid, timers=(), ports=ports, sent={}, errors=errors, paths=paths, losses=losses,
            cpu_s=0.0, rss_mb=0.0,
        )
    )  # fmt: skip


def kinds(
    *heard: Stamped[Message], restarted: dict[str, list[str]] | None = None, unclean: dict[str, str] | None = None
) -> list[Kind]:
    counts = MessageCounts(SilentView())
    for one in heard:
        counts.message(one)
    return [one.promise.kind for one in not_kept(counts, restarted or {}, unclean or {})]


def test_a_run_that_kept_everything_has_no_last_line() -> None:
    assert kinds(life(paths=(path_of(200, 2),))) == []


@pytest.mark.parametrize(
    ("paths", "is_missed"),
    [
        ((path_of(100, 2),), True),
        ((path_of(99, 99),), False),
        ((path_of(100, 1),), False),
        ((path_of(60, 0, unknown=60),), True),
    ],
)
def test_a_path_budget_is_judged_over_100_messages(paths: tuple[PathHealth, ...], is_missed: bool) -> None:
    assert kinds(life(paths=paths)) == (["budgets"] if is_missed else [])


def test_a_budget_counts_all_lives_of_the_node_that_measures_it() -> None:
    assert kinds(life(1, paths=(path_of(60, 3),)), life(2, paths=(path_of(60, 0),))) == ["budgets"]


@pytest.mark.parametrize(("received", "garbled", "is_told"), [(121, 121, True), (121, 120, False), (0, 0, False)])
def test_a_topic_of_which_nothing_could_be_taken_in_is_told(received: int, garbled: int, is_told: bool) -> None:
    port = PortHealth(
        topic="command", received=received, delivered=received - garbled, waiting=0, dropped={"garbled": garbled}
    )
    assert kinds(life(ports=(port,))) == (["refused"] if is_told else [])


def test_restarts_losses_failures_and_processes_that_did_not_end_are_each_told() -> None:
    heard = life(errors=2, losses=("the robot was lost",))
    found = kinds(heard, restarted={"policy": ["was killed"] * 3}, unclean={"vlm": "was killed by SIGKILL"})
    assert found == ["handlers", "restarts", "lost", "processes"]


def test_what_an_option_allows_is_told_all_the_same() -> None:
    broken = not_kept(MessageCounts(SilentView()), {"policy": ["exited with code 5", "was killed by SIGSEGV"]}, {})
    assert broken[0].text == sentence("runtime.was_restarted_twice", node="policy", why="was killed by SIGSEGV")
    assert lines(broken, ())[0].startswith("failed: policy ")
    assert lines(broken, ("--allow-restarts",))[0].startswith("allowed: policy ")


def test_the_page_of_exit_codes_says_what_the_code_does() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    for promise in PROMISES:
        assert f"| {promise.broken} | {f'`{promise.option}`' if promise.option else ''} |" in page


NODES = """
import os
from runtime import Message, Node, Publisher, Subscription, every, on

class Beat(Message):
    count: int

class Beats(Node):
    beat = Publisher(Beat, "beat")

    @every(hz=20)
    def tick(self) -> None:
        self.beat.publish(Beat(count=1))
        self.happen()

    def happen(self) -> None: ...

class Dies(Beats):
    def happen(self) -> None:
        if not os.path.exists("died"):
            open("died", "w").close()
            os._exit(3)

class Ends(Beats):
    def on_stop(self) -> None:
        raise OSError("the camera is gone")

class Fails(Beats):
    def happen(self) -> None:
        if self.beat.sent == 3:
            raise ValueError("once")

class Judge(Node):
    beat = Subscription(Beat, "beat")

    def __init__(self) -> None:
        self.count = 0

    @on(beat)
    def hear(self, beat: Beat) -> None:
        self.count += 1
        if self.count == 10:
            self.finish(ok=True, reason="ten beats")
"""


def run(folder: Path, cls: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(NODES)
    (folder / "mine.toml").write_text(f'[nodes.one]\nuse = "mine:{cls}"\n[nodes.judge]\nuse = "mine:Judge"\n')
    return subprocess.run(
        [sys.executable, "-m", "runtime", "run", "mine.toml", *options],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.processes
@pytest.mark.parametrize(
    ("cls", "options", "is_failed"),
    [
        ("Dies", (), True),
        ("Dies", ("--allow-restarts",), False),
        ("Ends", (), True),
        ("Ends", ("--virtual",), True),
        ("Fails", (), True),
        ("Fails", ("--virtual",), True),
        ("Fails", ("--virtual", "--allow-failures"), False),
    ],
)
def test_what_was_not_kept_makes_the_exit_code_1_in_both_clocks(
    tmp_path: Path, cls: str, options: tuple[str, ...], is_failed: bool
) -> None:
    done = run(tmp_path, cls, *options, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == int(is_failed), done.stderr
    assert told["outcome"]["ok"], "the judge was satisfied, and heard ten beats"
    assert len(told["not_kept"]) == int(is_failed)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("failed: " if is_failed else "allowed: ")
    assert ("ValueError: once" in last) == (cls == "Fails"), "what it said stands there in both clocks"


@pytest.mark.processes
@pytest.mark.parametrize("clock", [(), ("--virtual",)])
@pytest.mark.parametrize(
    ("option", "name", "file"), [("--record", "kept.mcap", "kept.mcap"), ("--out", "kept", "kept/run.mcap")]
)
def test_no_recording_is_written_over(
    tmp_path: Path, clock: tuple[str, ...], option: str, name: str, file: str
) -> None:
    asked = (*clock, "--allow-failures", "--add", "recorder=nodes.recording.recorder:Recorder", option, name)
    assert run(tmp_path, "Fails", *asked).returncode == 0
    before = (tmp_path / file).read_bytes()
    again = run(tmp_path, "Fails", *asked)
    assert again.returncode == 2
    assert Path(file).name in again.stderr
    assert (tmp_path / file).read_bytes() == before
