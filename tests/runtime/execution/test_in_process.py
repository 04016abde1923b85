"""`run`: nodes in real time from Python, in one process, until they finish, the time is over, or Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from nodes.hello import Beat, Listener, Talker
from runtime import Graph, Node, Publisher, Subscription, every, on, run
from runtime.errors import GraphError, PolyrhythmError, UserError
from runtime.launch.graph import NodeSpec
from tests.support.sentences import pattern
from tests.support.served_nodes import Adder, Asker, Story

ROOT = Path(__file__).resolve().parents[3]


class Ends(Node):
    """Ends the run with the third beat."""

    beat = Subscription(Beat, "beat")

    def __init__(self) -> None:
        self.counts: list[int] = []

    @on(beat)
    def heard(self, beat: Beat) -> None:
        self.counts.append(beat.count)
        if len(self.counts) == 3:
            self.finish(ok=True, reason=f"heard {beat.count}")


def fast(spec: NodeSpec) -> NodeSpec:
    return NodeSpec(spec.name, spec.cls, spec.params, hz={"tick": 100})


@pytest.mark.parametrize("as_graph", [False, True])
def test_nodes_run_until_one_of_them_finishes_the_run(as_graph: bool) -> None:
    ends = Ends()
    nodes = (fast(NodeSpec("talker", Talker, {"start": 40})), NodeSpec("ends", Ends, instance=ends))
    assert (run(Graph(nodes)) if as_graph else run(*nodes)) == (True, "heard 43")
    assert ends.counts[:3] == [41, 42, 43]  # one more may be on its way


def test_a_run_ends_when_its_time_is_over_and_has_no_outcome() -> None:
    assert run(Talker(), Listener(), seconds=0.05) is None


@pytest.mark.parametrize("realtime", [False, True])
@pytest.mark.parametrize("problem", [asyncio.CancelledError, GeneratorExit])
def test_a_node_goes_on_after_whatever_its_handler_raises(problem: type[BaseException], realtime: bool) -> None:
    class Raises(Node):
        def __init__(self) -> None:
            self.ticks = 0

        @every(hz=100)
        def tick(self) -> None:
            self.ticks += 1
            if self.ticks == 1:
                raise problem
            self.finish(ok=True, reason="goes on")

    Raises.realtime = realtime
    raises = Raises()
    with pytest.raises(PolyrhythmError, match=f"in tick at .*: {problem.__name__}$"):
        run(raises, seconds=10.0)
    assert raises.ticks == 2


def test_a_cancel_that_nobody_asked_of_a_handler_is_its_failure() -> None:
    class Waits(Node):
        @every(hz=100)
        async def tick(self) -> None:
            work = asyncio.ensure_future(asyncio.sleep(9.0))
            asyncio.get_running_loop().call_soon(work.cancel)
            await work

        @every(hz=20)
        async def own(self) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()  # its own wish
            await asyncio.sleep(9.0)

    with pytest.raises(PolyrhythmError, match=r"in tick at .*: CancelledError$"):
        run(Waits(), seconds=0.1)


def test_nodes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match="nobody publishes it for listener"):
        run(Listener())
    with pytest.raises(GraphError, match=pattern("runtime.run_no_nodes")):  # it ran for ever
        run()
    with pytest.raises(UserError, match=pattern("runtime.run_negative")):
        run(Talker(), Listener(), seconds=-1)


class Fails(Node):
    out = Publisher(Beat, "out")

    @every(hz=100)
    def tick(self) -> None:
        if threading.active_count() < 0:
            return
        raise ZeroDivisionError("by zero")


def test_handlers_that_failed_are_told_at_the_end() -> None:
    with pytest.raises(
        PolyrhythmError,
        match=pattern(
            "runtime.handlers_failed",
            node="fails",
            times=r"\d+",
            place=r"tick at test_in_process.py:\d+: ZeroDivisionError: by zero",
        ),
    ):
        run(Fails(), seconds=0.05)


def test_a_service_answers_in_real_time_too() -> None:
    asker, story = Asker((1, -1, 2)), Story("wait", 0, "2: 12")
    with pytest.raises(GraphError):
        run(asker, seconds=0.01)
    assert run(Adder(), asker, NodeSpec("story", Story, instance=story)) == (True, "2: 12")


def test_ctrl_c_ends_a_run_as_its_time_does() -> None:
    class Interrupts(Node):
        @every(hz=20)
        def tick(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(Interrupts()) is None


def test_the_tests_of_the_page_run_as_they_stand_there(monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "testing.md"
    room = types.ModuleType("tests_of_the_page")
    monkeypatch.setitem(sys.modules, room.__name__, room)  # messages look their types up in their module
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), vars(room))
    vars(room)["test_echo_in_virtual_time"]()
    vars(room)["test_echo_in_real_time"]()


@pytest.mark.processes
def test_a_script_of_one_file_runs_and_shows_what_its_nodes_log() -> None:
    script = """
from nodes.hello import Listener, Talker
from runtime import run
run(Talker(start=40), Listener(), seconds=0.2)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "INFO node.listener: heard beat 41" in done.stderr


@pytest.mark.processes
def test_ctrl_c_a_second_time_ends_a_handler_that_never_returns() -> None:
    script = """
import signal
from runtime import run
from tests.runtime.execution.slow_nodes import Endless
signal.signal(signal.SIGINT, signal.default_int_handler)
print("goes", flush=True)
try:
    run(Endless())
except KeyboardInterrupt:
    print("ended by hand", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert "tick still runs after" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert "tick still runs after" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=30)[0] == "goes\nended by hand True\n"
    assert running.returncode == 0
