"""Nodes that are left out of a launch file go with all that the file says of them; what keeps a robot safe stays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runtime.cli import main
from runtime.errors import LaunchFileError
from runtime.launch.file import check, find, load
from tests.support.sentences import sentence

GRAPH = """
[nodes.talker]
use = "nodes.hello:Talker"
process = "one"
[nodes.spare]
use = "nodes.hello:Talker"
remap = { beat = "other" }
process = "two"
[nodes.listener]
use = "nodes.hello:Listener"
[links.both]
from = ["talker", "spare"]
delay = 0.1
[links.spare]
from = "spare"
delay = 0.1
[links.other]
topics = "other"
delay = 0.1
[processes.two]
cpus = [0]
[instead.louder]
node = "spare"
use = "nodes.hello:Talker"
"""


def test_what_the_file_says_of_a_node_goes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "graph.toml"
    file.write_text(GRAPH)
    launch = load(file, ["spare.start=4"], without=["spare"])
    check(launch)
    assert set(launch.graph.nodes) == {"talker", "listener"}
    assert [(link.name, link.senders) for link in launch.links] == [("both", ("talker",))]
    assert launch.realtime == {}


def test_the_next_candidate_moves_up_where_the_holder_of_a_seat_is_left_out() -> None:
    shadowed = ['seats.policy.shadows=["teacher"]']
    teacher = ["teacher=nodes.policy.expert:ExpertPolicy"]
    launch = load(find("laptop"), shadowed, added=teacher, without=["policy"])
    assert launch.seats["policy"].candidates == ("teacher",)
    assert "policy" not in load(find("laptop"), without=["policy"]).seats
    assert load(find("laptop"), without=["planner"]).budgets.models == {}
    assert load(find("laptop"), without=["policy"]).budgets.paths == {}


def test_a_node_that_cannot_be_had_here_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "graph.toml"
    file.write_text(GRAPH.replace('"nodes.hello:Talker"\nremap', '"nowhere.at_all:Node"\nremap'))
    check(load(file, without=["spare"]))


@pytest.mark.parametrize(
    "written",
    ["[seats.policy]\nshadows = 3", "[links.both]\nfrom = [[1]]\ndelay = 0.1", "[budgets.paths.one]\ntopics = [{}]"],
)
def test_a_table_of_another_shape_is_refused_in_a_sentence(tmp_path: Path, written: str) -> None:
    file = tmp_path / "graph.toml"
    file.write_text(
        f'[nodes.talker]\nuse = "nodes.hello:Talker"\n[nodes.spare]\nuse = "nodes.hello:Talker"\n{written}\n'
    )
    with pytest.raises(LaunchFileError):
        load(file, without=["spare"])


@pytest.mark.parametrize(
    ("launch", "name", "refusal"),
    [
        ("laptop", "guard", sentence("runtime.keeps_guard", name="guard")),
        ("laptop", "driver", sentence("runtime.keeps_driver", name="driver")),
        ("stretch", "reflex", sentence("runtime.keeps_ears", name="reflex")),
        ("laptop", "nobody", sentence("runtime.nobody_of_that_name", name="nobody")),
    ],
)
def test_what_keeps_a_robot_safe_is_not_left_out(launch: str, name: str, refusal: str) -> None:
    with pytest.raises(LaunchFileError, match=re.escape(refusal)):
        load(find(launch), without=[name])


def test_a_simulated_robot_may_be_deaf() -> None:
    assert "reflex" not in load(find("laptop"), without=["reflex"]).graph.nodes


def test_the_command_line_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "laptop", "--without", "collaborator", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert "collaborator" not in {node for nodes in checked["processes"].values() for node in nodes}
