"""What models write, and what is read out of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.episodes.agents.acts import read_act
from nodes.models.json_reading import UnreadableError
from nodes.msgs.episode import Act
from tests.support.sentences import sentence

GOOD = '{"action_type": "speak", "argument": "Hello", "to": []}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! Here it is: {GOOD} Hope that helps.",
        f"<think>She {{likes}} tea.</think>{GOOD}",
        '{"action_type": "speak", "argument": "Hello", "to": [],}',
        "{'action_type': 'speak', 'argument': 'Hello', 'to': []}",
        '{"value": {"value": {"action_type": "speak", "argument": "Hello"}}}',
        '{"properties": {"action_type": {"value": "speak"}, "argument": {"value": "Hello"}}}',
        f"[{GOOD}]",
        '{"type": "say", "content": "Hello"}',
        '{"action_type": "Speak", "argument": "Hel\\u0007lo", "to": "all"}',
        '{"argument": {"action_type": "speak", "argument": "Hello"}}',
        '{"Action Type": "SPEAK", "ARGUMENT": ["Hello"], "to": null, "mood": "good", "urgency": "0.5"}',
    ],
)
def test_usual_damage_is_repaired_without_a_second_call(text: str) -> None:
    found = read_act(text)
    assert (found.act, found.urgency, found.is_cut) == (Act(kind="speak", argument="Hello"), 0.5, False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I would say hello.", sentence("episodes.holds_no_json")),
        ('{"argument": "Hello"}', sentence("episodes.no_action_type")),
        ('{"action_type": "sing"}', sentence("episodes.unknown_action_type", value="sing")),
        ('{"action_type": "speak", "argument": ["a", "b"]}', "expected a text"),
        ('{"action_type": "sp', sentence("episodes.answer_is_no_json")),
        ('{"action_type": "speak", "argument": "..."}', sentence("episodes.repeats_its_form")),
        ("x" * 10_000_000, sentence("episodes.most_is_read", most=65536)),
        ("[1, 2]", sentence("episodes.no_object", found="list")),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why.replace("[", r"\[")):
        read_act(text)


@given(st.text(max_size=300))
def test_any_text_is_an_act_or_unreadable(text: str) -> None:
    try:
        found = read_act(text)
    except UnreadableError:
        return
    assert found.act.kind
