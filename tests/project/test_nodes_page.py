"""docs/nodes.md: its nodes and their test run as they stand there, and nothing that can be written is left out."""

from __future__ import annotations

import inspect
import re
import sys
import types
from pathlib import Path

import pytest

import runtime
from runtime import abilities
from runtime.node import Node
from runtime.ports import Publisher, Subscription

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nodes.md"
TEXT = PAGE.read_text()
ABILITIES = [
    one
    for one in vars(abilities).values()
    if getattr(one, "__module__", "") == abilities.__name__ and isinstance(one, type)
]


def test_the_nodes_of_the_page_pass_the_test_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, test = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    room = types.ModuleType("watch_of_the_page")
    monkeypatch.setitem(sys.modules, room.__name__, room)  # messages look their types up in their module
    exec(compile(nodes, str(PAGE), "exec"), vars(room))
    exec(compile(test, str(PAGE), "exec"), vars(room))
    assert vars(room)["alone"].window == [0.5]


def public(cls: type) -> list[str]:
    return [name for name in vars(cls) if not name.startswith("_")]


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            *(name for name in runtime.__all__ if not name.endswith("Error")),
            *public(Node),
            *(name for ability in ABILITIES for name in public(ability)),
            *(
                name
                for name, one in inspect.signature(runtime.every).parameters.items()
                if one.kind is one.KEYWORD_ONLY
            ),
            *(name for name in public(Publisher) if callable(getattr(Publisher, name))),
            "latest",
            "stamped",
        }
    ),
)
def test_whatever_a_node_can_have_is_on_the_page(name: str) -> None:
    assert re.search(rf"\b{name}\b", TEXT), name


def test_what_the_page_says_of_a_subscription_is_there() -> None:
    port = Subscription(runtime.Message, "topic")
    rows = TEXT.partition("| on a subscription | does |")[2].partition("\n\n")[0]
    named = re.findall(r"`\.(\w+)", rows)
    assert len(named) >= 8
    for name in named:
        assert hasattr(port, name) or hasattr(runtime.Stamped, name), name
