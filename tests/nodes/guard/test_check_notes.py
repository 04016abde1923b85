"""What `check` tells of a robot that nobody can shout at, and of processes that are in its guard's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.msgs import GuardState
from runtime import Graph, Node, NodeSpec, Subscription, on
from runtime.launch.file import load
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.sentences import sentence

REFLEX = """[nodes.reflex]
use     = "nodes.interrupts.reflex:Reflex"
process = "robot"
"""


def notes(folder: Path, text: str) -> dict[str, list[str]]:
    file = folder / "robot.toml"
    file.write_text(text)
    found: dict[str, list[str]] = {}
    for table, note in load(file).notes():
        found.setdefault(table, []).append(note)
    return found


def test_a_robot_that_nobody_can_shout_at_is_told(tmp_path: Path) -> None:
    assert notes(tmp_path, GUARDED)["nodes.guard"] == [sentence("guard.no_ears")]
    assert notes(tmp_path, GUARDED.replace(REFLEX, ""))["nodes.guard"] == [sentence("guard.no_reflex")]


def test_a_reflex_elsewhere_and_two_of_them_are_told(tmp_path: Path) -> None:
    apart = GUARDED.replace(REFLEX, REFLEX.replace('"robot"', '"mind"'))
    assert sentence("guard.reflex_elsewhere", reflex="reflex", guard="guard") in notes(tmp_path, apart)["nodes.guard"]
    two = GUARDED + REFLEX.replace("nodes.reflex]", "nodes.second]")
    assert sentence("guard.two_reflexes", one="reflex", other="second") in notes(tmp_path, two)["nodes.guard"]


@pytest.mark.parametrize(("fifo", "is_told"), [(0, False), (20, False), (21, True)])
def test_a_policy_with_a_higher_priority_than_the_guard_is_told(tmp_path: Path, fifo: int, is_told: bool) -> None:
    found = notes(tmp_path, f"{GUARDED}\n[processes.policy]\nfifo = {fifo}\n")
    told = [sentence("guard.priority_above", fifo=fifo, most=20, process="robot")]
    assert found.get("processes.policy", []) == (told if is_told else [])
    higher = notes(tmp_path, f"{GUARDED}\n[processes.policy]\nfifo = {fifo}\n[processes.robot]\nfifo = 30\n")
    assert "processes.policy" not in higher


def test_cores_that_are_none_are_told(tmp_path: Path) -> None:
    assert notes(tmp_path, f"{GUARDED}\n[processes.policy]\ncpus = []\n")["processes.policy"] == [
        sentence("guard.any_core")
    ]
    assert "processes.policy" not in notes(tmp_path, f"{GUARDED}\n[processes.policy]\ncpus = [0]\n")


class Follower(Node):
    guard = Subscription(GuardState, "guard/state")

    @on(guard)
    def follow(self, state: GuardState) -> None:
        self.is_still = state.is_stopped or state.mode in ("disarmed", "stopped")
        self.said = {"moving": 1}.get(state.reason, 0)


def test_who_compares_the_mode_with_a_word_that_once_took_in_an_emergency_stop_is_told() -> None:
    ((node, note),) = [one for one in Graph([NodeSpec("follower", Follower)]).notes() if "compares" in one[1]]
    assert node == "follower"
    assert note.startswith("Follower.follow (test_check_notes.py:")
    assert "'stopped'" in note
    assert "`is_stopped` of GuardState" in note
