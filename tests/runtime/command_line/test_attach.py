"""Tools attach to a running graph, tell the truth about it and leave it as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from runtime.cli import main
from runtime.command_line.attach import Sender, StopSignal, choose, hear
from runtime.commands.nodes import node_rows
from runtime.coordination.health import Health
from runtime.errors import PolyrhythmError, UserError
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, find_runs
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs, eventually, is_alive
from tests.support.sentences import sentence

HELLO = """
[run]
frozen_s = 60.0

[nodes.talker]
use = "nodes.hello:Talker"
hz = 20

[nodes.listener]
use = "nodes.hello:Listener"
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as started:
        yield started


@pytest.fixture
def hello(runs: Runs, tmp_path: Path) -> FoundRun:
    file = tmp_path / "hello.toml"
    file.write_text(HELLO)
    return runs.start(file)


def healths(run: FoundRun, node: str) -> Iterator[Health]:
    """A node's accounts of itself as they come, for at most half a minute."""
    with StopSignal() as stop_signal:
        for arrival in hear(run, [f"health/{node}"], stop_signal, 30.0):
            if arrival is not None:
                yield decode(arrival.frames, Health).message


def asked(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What a command that succeeds prints."""
    capsys.readouterr()
    assert main(argv) == 0
    return capsys.readouterr().out


@pytest.mark.processes
def test_every_command_tells_the_truth_about_a_running_graph(
    hello: FoundRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {row["node"]: row for row in json.loads(asked(capsys, "nodes", "--json"))}
    assert nodes["talker"]["publishes"] == ["beat"]
    assert nodes["listener"]["subscribes"] == ["beat"]
    assert all(is_alive(row["pid"]) and row["state"] == "running" for row in nodes.values())
    assert "nodes.hello:Talker" in asked(capsys, "nodes")

    [beat] = json.loads(asked(capsys, "topics", "--json"))
    assert (beat["topic"], beat["type"], beat["kind"]) == ("beat", "nodes.hello:Beat", "event")
    assert (beat["publishers"], beat["subscribers"]) == (["talker"], ["listener"])
    assert beat["hz"] == pytest.approx(20, rel=0.2)

    echoed = [json.loads(line) for line in asked(capsys, "echo", "beat", "--count", "3", "--json").splitlines()]
    assert [one["message"]["count"] for one in echoed] == [one["seq"] for one in echoed]
    assert "count=" in asked(capsys, "echo", "beat", "--count", "1")

    rate = json.loads(asked(capsys, "hz", "beat", "--count", "21", "--json"))
    assert (rate["messages"], rate["lost"]) == (21, 0)
    assert rate["hz"] == pytest.approx(20, rel=0.2)
    assert 0 < rate["gap_min_ms"] <= 50.5
    assert rate["gap_max_ms"] >= 49.5

    delay = json.loads(asked(capsys, "delay", "beat", "--count", "5", "--json"))
    assert 0 < delay["delay_min_ms"] <= delay["delay_p50_ms"] <= delay["delay_max_ms"]
    width = json.loads(asked(capsys, "bw", "beat", "--count", "11", "--json"))
    assert width["bytes_per_s"] == pytest.approx(20 * width["mean_bytes"], rel=0.3)

    top = json.loads(asked(capsys, "top", "--once", "--json"))
    talker = next(row for row in top["nodes"] if row["node"] == "talker")
    assert talker["timers"][0]["hz"] == pytest.approx(20, rel=0.2)
    assert talker["cpu_percent"] >= 0
    assert talker["memory_mb"] > 1
    assert "rate/target" in asked(capsys, "top")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    for columns in (66, 90):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = asked(capsys, "top").splitlines()
        assert max(map(len, lines)) <= columns
        assert any("talker" in line for line in lines)


@pytest.mark.processes
def test_what_a_person_publishes_reaches_the_subscriber_and_the_tool_that_listens_and_says_who(
    hello: FoundRun,
) -> None:
    command = [sys.executable, "-m", "runtime", "pub", "beat", '{"count": 7}', "--count", "3", "--hz", "50"]
    publisher: subprocess.Popen[bytes] | None = None
    heard = []
    with StopSignal() as stop_signal:
        for arrival in hear(hello, ["beat"], stop_signal, 30.0):
            if arrival is None:
                continue
            if publisher is None:
                publisher = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            elif arrival.envelope.source.startswith("pub-"):
                heard.append(arrival.envelope)
                if len(heard) == 3:
                    break
    assert publisher is not None
    assert publisher.wait(30.0) == 0
    assert [envelope.seq for envelope in heard] == [1, 2, 3]
    assert {envelope.provenance for envelope in heard} == {"person"}
    sent = next(healths(hello, "talker")).sent["beat"]
    stamped = [health.ports[0].delivered for health in islice(healths(hello, "listener"), 2)]
    assert stamped[-1] >= sent + 3  # its own, and the person's


@pytest.mark.processes
def test_who_only_listens_and_is_frozen_keeps_nobody_from_stopping_the_robot_or_taking_a_seat(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "guarded.toml"
    file.write_text(GUARDED)
    run = runs.start(file)
    pid = run.states()["witness"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        estop = [sys.executable, "-m", "runtime", "guard", "estop", "--run", str(run.info.supervisor_pid)]
        assert (
            subprocess.run(estop, check=True, capture_output=True, text=True).stdout
            == f"{sentence('runtime.held_and_latched', run=run.title)}\n"
        )
        assert main(["pub", "estop", '{"source": "door", "is_pressed": true}']) == 0
        assert capsys.readouterr().out.endswith(" to robot\n"), "it says whom it reached"
        assert main(["seat", "take", "policy", "--as", "other"]) == 0
        assert main(["pub", "heard", '{"speaker": "Ana", "text": "Stop!"}']) == 0
        assert sentence("runtime.will_not_hear", who="witness") in capsys.readouterr().err
        assert main(["pub", "action", '{"id": "1", "skill": "nod"}']) == 1, "what the robot does not hear goes to all"
        assert sentence("runtime.did_not_answer", who="witness") in capsys.readouterr().err
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.processes
def test_who_listens_and_sends_does_not_wait_for_themselves(hello: FoundRun) -> None:
    with StopSignal() as stop_signal:
        for _ in hear(hello, ["beat"], stop_signal):
            sender = Sender(hello, "beat", provenance="person")
            waited_for = sender.unreached
            sender.close()
            break
    assert not waited_for


@pytest.mark.processes
def test_a_frozen_process_is_told_as_one(hello: FoundRun, capsys: pytest.CaptureFixture[str]) -> None:
    pid = hello.states()["listener"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: node_rows(hello)[1]["state"] == "halted", "the listener is halted")
        assert node_rows(hello)[0]["state"] == "running"
        assert main(["top", "--once", "--json"]) == 1, "not healthy"
        trouble = json.loads(capsys.readouterr().out)["trouble"]
        assert any(line.startswith("listener: not a word for") for line in trouble)
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: node_rows(hello)[1]["state"] == "running", "the listener goes on")


@pytest.mark.processes
def test_twenty_visitors_leave_published_equal_to_delivered(runs: Runs, tmp_path: Path) -> None:
    file = tmp_path / "counted.toml"
    file.write_text(
        """
        [nodes.talker]
        use = "tests.runtime.command_line.counted:CountedTalker"
        params = { beats = 200 }

        [nodes.listener]
        use = "nodes.hello:Listener"
        """
    )
    run = runs.start(file)
    pid = run.states()["talker"].pid
    files_after_first = 0
    for number in range(20):
        with StopSignal() as stop_signal:
            for arrival in hear(run, ["beat"], stop_signal, 30.0):
                if arrival is not None or _is_silent(run):
                    break
        if number == 0:
            files_after_first = _open_files(pid)
    for health in healths(run, "talker"):
        if health.sent["beat"] == 200:
            break
    for health in healths(run, "listener"):
        [port] = health.ports
        if port.received == 200:
            break
    assert (port.received, port.delivered, port.dropped) == (200, 200, {})
    assert not list(run.folder.glob("tool-*"))
    # Some are still being opened or closed when they are counted; a visitor that left one behind would make it 20.
    eventually(lambda: _open_files(pid) <= files_after_first + 6, "the visitors' connections are closed")


def _open_files(pid: int) -> int:
    """How many files and sockets a process has open; 0 where the system does not tell."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def _is_silent(run: FoundRun) -> bool:
    return next(healths(run, "talker")).sent["beat"] == 200


@pytest.mark.processes
def test_a_restarted_node_finds_its_listeners_and_the_tool_that_listens_hears_it_again(hello: FoundRun) -> None:
    first = hello.states()["talker"]
    seqs: list[int] = []
    with StopSignal() as stop_signal:
        for arrival in hear(hello, ["beat"], stop_signal, 30.0):
            if arrival is None:
                continue
            seqs.append(arrival.envelope.seq)
            if len(seqs) == 3:
                os.kill(first.pid, signal.SIGKILL)
            if len(seqs) > 3 and seqs[-1] < seqs[-2]:
                break
    assert seqs[-1] <= 20  # within a second of its restart; nobody waits for a tool, so it may miss the first ones
    eventually(lambda: hello.states()["talker"].state == "running", "the talker runs again")
    second = hello.states()["talker"]
    assert second.pid != first.pid
    assert second.restarts == 1
    os.kill(hello.states()["listener"].pid, signal.SIGKILL)
    for health in healths(hello, "listener"):
        if health.pid != first.pid and health.ports[0].delivered > 10:
            break
    assert health.ports[0].dropped == {}


@pytest.mark.processes
def test_of_two_runs_of_one_file_each_is_found_by_its_pid(
    runs: Runs, hello: FoundRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = runs.start(tmp_path / "hello.toml")
    assert {run.info.supervisor_pid for run in find_runs()} == {hello.info.supervisor_pid, other.info.supervisor_pid}
    assert main(["echo", "beat", "--count", "1"]) == 2
    assert sentence("runtime.choose_a_run") in capsys.readouterr().err
    for run in (hello, other):
        pid = str(run.info.supervisor_pid)
        rows = json.loads(asked(capsys, "nodes", "--run", pid, "--json"))
        assert {row["pid"] for row in rows} == {state.pid for state in run.states().values()}
        assert "count=" in asked(capsys, "echo", "beat", "--run", pid, "--count", "1")


@pytest.mark.processes
def test_a_killed_supervisor_leaves_nothing_that_a_tool_would_find(
    runs: Runs, hello: FoundRun, capsys: pytest.CaptureFixture[str]
) -> None:
    pids = [state.pid for state in hello.states().values()]
    runs.kill_supervisor(hello)
    assert find_runs() == []
    assert not hello.folder.exists()
    with StopSignal() as stop_signal:
        assert list(hear(hello, ["beat"], stop_signal)) == []
    eventually(lambda: not any(is_alive(pid) for pid in pids), "its processes are gone")
    assert main(["nodes"]) == 1
    assert "no graph runs" in capsys.readouterr().err


@pytest.mark.processes
def test_listening_ends_by_itself_when_the_run_does(runs: Runs, hello: FoundRun) -> None:
    with StopSignal() as stop_signal:
        arrivals = hear(hello, ["beat"], stop_signal, 30.0)
        next(arrivals)
        runs.kill_supervisor(hello)
        for _ in arrivals:
            pass
    assert not hello.is_alive


def test_without_a_run_each_tool_says_so(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["nodes"], ["topics"], ["echo", "x"], ["hz", "x"], ["delay", "x"], ["bw", "x"], ["pub", "x", "{}"]):
        assert main(argv) == 1
        assert sentence("runtime.no_graph_runs") in capsys.readouterr().err
    assert main(["top", "--json"]) == 1
    with pytest.raises(PolyrhythmError, match="no graph runs"):
        choose([], None)


@pytest.mark.processes
def test_an_unknown_run_or_topic_is_answered_with_the_known_ones(
    hello: FoundRun, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match="no such run; running: hello"):
        choose([hello], "laptop")
    assert main(["hz", "beet"]) == 2
    assert "its topics: beat, health/listener, health/talker" in capsys.readouterr().err
    assert main(["pub", "beat", '{"cuont": 1}']) == 2
    assert main(["pub", "health/talker", "{}"]) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.processes
def test_a_state_that_has_a_publisher_is_published_by_a_person_only_with_a_reason_that_is_kept(
    hello: FoundRun, capsys: pytest.CaptureFixture[str]
) -> None:
    message = (
        '{"node": "talker", "pid": 1, "timers": [], "ports": [], "sent": {}, "errors": 0, "cpu_s": 0, "rss_mb": 0}'
    )
    assert main(["pub", "health/talker", message]) == 2
    assert "talker publishes it" in capsys.readouterr().err
    assert main(["pub", "health/talker", message, "--force", " "]) == 2
    capsys.readouterr()
    forced = [sys.executable, "-m", "runtime", "pub", "health/talker", message, "--force", "a test"]
    publisher: subprocess.Popen[bytes] | None = None
    with StopSignal() as stop_signal:
        for arrival in hear(hello, ["health/talker"], stop_signal, 30.0):
            if publisher is None and arrival is not None:
                publisher = subprocess.Popen(forced, stdout=subprocess.DEVNULL)
            elif arrival is not None and arrival.envelope.source != "talker":
                break
    assert publisher is not None
    assert publisher.wait(30.0) == 0
    assert arrival is not None
    assert arrival.envelope.provenance == "person: a test"


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_listening_cleanly(hello: FoundRun, number: signal.Signals) -> None:
    listener = subprocess.Popen(
        [sys.executable, "-m", "runtime", "echo", "beat"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listener.stdout is not None
    assert b"count=" in listener.stdout.readline()
    listener.send_signal(number)
    _, errors = listener.communicate(timeout=30.0)
    assert listener.returncode == 0
    assert errors == b""
    assert not list(hello.folder.glob("tool-*"))


COMMANDS = ("nodes", "topics", "echo", "hz", "delay", "bw", "pub", "top", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_an_example_and_refuses_what_it_does_not_know(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"example: polyrhythm {command}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main([command, "--no-such-option"])
    assert end.value.code == 2


def test_every_command_is_on_the_page_about_commands() -> None:
    page = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
    for command in COMMANDS:
        assert f"## polyrhythm {command}" in page
