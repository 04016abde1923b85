"""QoS refuses what means nothing and fills in the depth of a message's kind."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runtime.errors import UserError
from runtime.qos import QoS
from tests.support.sentences import sentence


def test_depth_is_one_for_states_and_sixty_four_for_events() -> None:
    assert QoS().for_kind("state").depth == 1
    assert QoS().for_kind("event").depth == 64


@pytest.mark.parametrize("kind", ["state", "event"])
def test_a_depth_that_is_given_stays(kind: Any) -> None:
    assert QoS(depth=5, lifespan_s=0.2).for_kind(kind) == QoS(depth=5, lifespan_s=0.2)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"depth": -1}, sentence("runtime.wrong_depth", value="-1")),
        ({"depth": 1.5}, sentence("runtime.wrong_depth", value=1.5)),
        ({"depth": True}, sentence("runtime.wrong_depth", value="True")),
        ({"lifespan_s": "1"}, sentence("runtime.wrong_seconds", name="lifespan_s", value="'1'")),
        ({"hold_s": None}, sentence("runtime.wrong_hold", value="None")),
        ({"reliable": "yes"}, sentence("runtime.wrong_truth", name="reliable", value="'yes'")),
        ({"lifespan_s": 0}, sentence("runtime.wrong_seconds", name="lifespan_s", value=0)),
        ({"lifespan_s": float("nan")}, sentence("runtime.wrong_seconds", name="lifespan_s", value="nan")),
        ({"deadline_s": float("inf")}, sentence("runtime.wrong_seconds", name="deadline_s", value="inf")),
        ({"hold_s": -1}, sentence("runtime.wrong_hold", value="-1")),
        ({"drop": "random"}, sentence("runtime.wrong_drop", value="random")),
    ],
)
def test_what_means_nothing_is_refused_in_words(values: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(told)}$"):
        QoS(**values)


def test_reliable_is_for_events() -> None:
    assert QoS(reliable=True).problems("event") == []
    assert QoS(reliable=True).problems("state") == [sentence("runtime.reliable_state")]


def test_a_subscription_that_insists_on_reliable_events_is_told_where_nobody_offers_them() -> None:
    assert QoS(reliable=True).mismatches(QoS(reliable=True)) == []
    assert QoS().mismatches(QoS(reliable=True)) == []
    assert QoS(reliable=True).mismatches(QoS()) == [sentence("runtime.reliable_not_offered", publisher="{publisher}")]
