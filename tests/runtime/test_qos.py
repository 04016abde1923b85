"""QoS refuses what means nothing and fills in the depth of a message's kind."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runtime.errors import UserError
from runtime.qos import QoS


def test_depth_is_one_for_states_and_sixty_four_for_events() -> None:
    assert QoS().for_kind("state").depth == 1
    assert QoS().for_kind("event").depth == 64


@pytest.mark.parametrize("kind", ["state", "event"])
def test_a_depth_that_is_given_stays(kind: Any) -> None:
    assert QoS(depth=5, lifespan_s=0.2).for_kind(kind) == QoS(depth=5, lifespan_s=0.2)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"depth": -1}, "QoS depth is -1; expected 0 (by kind) or a positive whole number"),
        ({"depth": 1.5}, "QoS depth is 1.5; expected 0 (by kind) or a positive whole number"),
        ({"depth": True}, "QoS depth is True; expected 0 (by kind) or a positive whole number"),
        ({"lifespan_s": "1"}, "QoS lifespan_s is '1'; expected a positive number of seconds or None"),
        ({"hold_s": None}, "QoS hold_s is None; expected a number of seconds, or 0 to wait for nothing"),
        ({"reliable": "yes"}, "QoS reliable is 'yes'; expected True or False"),
        ({"lifespan_s": 0}, "QoS lifespan_s is 0; expected a positive number of seconds or None"),
        ({"lifespan_s": float("nan")}, "QoS lifespan_s is nan; expected a positive number of seconds or None"),
        ({"deadline_s": float("inf")}, "QoS deadline_s is inf; expected a positive number of seconds or None"),
        ({"hold_s": -1}, "QoS hold_s is -1; expected a number of seconds, or 0 to wait for nothing"),
        ({"drop": "random"}, "QoS drop is 'random'; known: oldest, newest"),
    ],
)
def test_what_means_nothing_is_refused_in_words(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        QoS(**values)


def test_reliable_is_for_events() -> None:
    assert QoS(reliable=True).problems("event") == []
    assert QoS(reliable=True).problems("state") == [
        "reliable is for events: of a state the newest one makes good for those that were lost"
    ]


def test_a_subscription_that_insists_on_reliable_events_is_told_where_nobody_offers_them() -> None:
    assert QoS(reliable=True).mismatches(QoS(reliable=True)) == []
    assert QoS().mismatches(QoS(reliable=True)) == []
    assert QoS(reliable=True).mismatches(QoS()) == [
        "asks for reliable events, which {publisher} does not offer; add QoS(reliable=True) there"
    ]
