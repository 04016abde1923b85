"""How a process of a run ends is told truly, and nothing that it has started outlives it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.namespaces import skip_without
from tests.support.running import eventually, is_alive
from tests.support.sentences import sentence
from tests.support.terminals import POLYRHYTHM

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[3]
WITHIN_S = 60.0
NODES = "tests.support.ending_nodes:"
CONTAINER = ("--pid", "--fork", "--mount-proc")


def run_of(folder: Path, *tables: str, prefix: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit code and the output of a run of these nodes to its end."""
    file = folder / "graph.toml"
    file.write_text("\n".join(tables))
    ended = subprocess.run(
        [*prefix, *POLYRHYTHM, "run", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S
    )
    return ended.returncode, ended.stdout + ended.stderr


def node(cls: str, rest: str = "") -> str:
    return f'[nodes.{cls.lower()}]\nuse = "{NODES}{cls}"\nrestart = "never"\n{rest}'


@pytest.mark.parametrize("cls", ["Leaves", "LeavesAsync", "LeavesBlocking", "LeavesRealtime"])
def test_a_handler_that_calls_exit_ends_its_process_with_that_code_after_its_on_stop(cls: str, tmp_path: Path) -> None:
    code, output = run_of(tmp_path, node(cls, 'params = { how = "exit" }'))
    assert (code, output.splitlines()[-1]) == (1, sentence("runtime.exited", node=cls.lower(), code=3)), output
    assert "has stopped" in output


def test_a_sentence_that_a_handler_gives_at_its_exit_is_told(tmp_path: Path) -> None:
    code, output = run_of(tmp_path, node("Leaves", 'params = { how = "sentence" }'))
    assert (code, output.splitlines()[-1]) == (1, sentence("runtime.ended_itself", why="there is no camera")), output


def test_a_process_that_leaves_with_code_3_is_not_said_to_hang(tmp_path: Path) -> None:
    code, output = run_of(tmp_path, node("Leaves", 'params = { how = "at once" }'))
    assert (code, output.splitlines()[-1]) == (1, sentence("runtime.exited", node="leaves", code=3)), output


def test_a_segmentation_fault_is_told_with_the_users_line(tmp_path: Path) -> None:
    code, output = run_of(tmp_path, node("Leaves", 'params = { how = "crash" }'))
    source = (ROOT / "tests/support/ending_nodes.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "the line that is looked for" in text)
    assert code == 1
    assert sentence("runtime.crashed", line=line) in output.splitlines()[-1], output


@pytest.mark.parametrize("how", ["the run ends", "the node is killed", "the supervisor is killed"])
def test_children_of_a_node_end_with_it(how: str, tmp_path: Path) -> None:
    told, file = tmp_path / "pids", tmp_path / "graph.toml"
    file.write_text(node("Parent", f'params = {{ file = "{told}" }}'))
    with subprocess.Popen([*POLYRHYTHM, "run", str(file)], cwd=ROOT, stdout=subprocess.DEVNULL) as run:
        eventually(told.exists, "it has started them")
        *children, parent = map(int, told.read_text().split())
        assert all(map(is_alive, children))
        if how == "the node is killed":
            os.kill(parent, signal.SIGKILL)
        elif how == "the supervisor is killed":
            run.kill()
        else:
            run.send_signal(signal.SIGINT)
        eventually(lambda: not any(map(is_alive, (*children, parent))), "all of them are gone", 5.0)


def test_a_node_that_forks_goes_on_once_and_no_signal_to_its_child_is_its_own(tmp_path: Path) -> None:
    code, output = run_of(tmp_path, node("Forks"))
    assert (code, re.findall(r"^done: .*", output, re.MULTILINE)) == (0, ["done: one of two"]), output


@skip_without(*CONTAINER)
def test_the_first_process_of_a_container_leaves_no_zombies(tmp_path: Path) -> None:
    code, output = run_of(tmp_path, node("Orphans"), prefix=("unshare", *CONTAINER))
    assert (code, re.findall(r"^done: .*", output, re.MULTILINE)) == (0, ["done: 0 zombies"]), output
