"""The plan of each process: who acknowledges whose reliable events, and that nobody is asked who cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime import Message, Node, Publisher, Subscription
from runtime.errors import LaunchFileError
from runtime.launch.file import check, find, load
from runtime.launch.process_plan import plan
from runtime.qos import RELIABLE, QoS
from runtime.transport.reliable.tag import Terms


class Word(Message):
    text: str


class Mouth(Node):
    word = Publisher(Word, "word", qos=QoS(reliable=True, lifespan_s=2.0, hold_s=0.5))


class Mumbler(Node):
    word = Publisher(Word, "word")


class Ear(Node):
    word = Subscription(Word, "word")


class KeenEar(Node):
    word = Subscription(Word, "word", qos=RELIABLE)


def launched(folder: Path, *lines: str) -> Path:
    path = folder / "graph.toml"
    tables = (line.split() for line in lines)
    path.write_text(
        "\n".join(
            f'[nodes.{name}]\nuse = "tests.runtime.launch.test_process_plan:{cls}"\nprocess = "{process}"'
            for name, cls, process in tables
        )
    )
    return path


def test_each_other_process_that_hears_a_reliable_topic_acknowledges_it(tmp_path: Path) -> None:
    path = launched(tmp_path, "mouth Mouth one", "own Ear one", "ear Ear two", "keen KeenEar three")
    plans = plan(load(path), watched=["word"])
    assert plans["one"].reliable == {"word": Terms(("two", "three"), 2.0, 0.5)}
    assert plans["two"].acknowledges == plans["three"].acknowledges == ("word",)
    assert plans["two"].reliable == {}


def test_what_is_reliable_is_for_each_publisher_to_say(tmp_path: Path) -> None:
    plans = plan(load(launched(tmp_path, "mouth Mouth one", "mumbler Mumbler two", "ear Ear three")))
    assert plans["one"].reliable["word"].receivers == ("three",)
    assert plans["two"].reliable == {}


def test_a_listener_that_insists_where_a_publisher_does_not_offer_is_told_before_the_start(tmp_path: Path) -> None:
    path = launched(tmp_path, "mouth Mouth one", "mumbler Mumbler two", "keen KeenEar three")
    words = "topic 'word': keen asks for reliable events, which mumbler does not offer; add QoS.reliable=True. there"
    with pytest.raises(LaunchFileError, match=words):
        check(load(path))


HOSTS = """
[hosts.robot]
address = "127.0.0.1"
[hosts.desk]
may_publish = ["word"]
[hosts.shelf]
[nodes.ear]
use = "tests.runtime.launch.test_process_plan:Ear"
[nodes.mouth]
use = "tests.runtime.launch.test_process_plan:Mouth"
host = "shelf"
"""


def test_another_host_speaks_as_its_own_nodes_and_never_as_one_of_a_third_host(tmp_path: Path) -> None:
    path = tmp_path / "graph.toml"
    path.write_text(HOSTS)
    plans = plan(load(path, host="robot"))
    desk, shelf = plans["gateway-desk"].gateway, plans["gateway-shelf"].gateway
    assert desk is not None
    assert shelf is not None
    assert (shelf.sources["word"], shelf.others) == (("mouth",), ("ear",))
    assert (desk.sources["word"], desk.others) == ((), ("ear", "mouth")), "any tool there, and in no node's name"


def test_in_the_laptop_graph_words_and_actions_are_reliable_and_what_is_repeated_anyway_is_not() -> None:
    plans = plan(load(find("laptop")))
    reliable = {topic: terms for part in plans.values() for topic, terms in part.reliable.items()}
    assert {"heard", "said", "subtask", "action", "feedback", "interrupt"} <= reliable.keys()
    assert reliable["interrupt"].hold_s == 0, "a stop waits for nothing"
    assert not {"fence", "lease", "robot/state", "command", "head/image"} & reliable.keys()
    assert "recorder" in reliable["action"].receivers
