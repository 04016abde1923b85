"""Markup: each viewer reads the parts meant for it, and broken markup hides rather than shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.episodes.scenarios.visibility import EVERYONE, text_for


@pytest.mark.parametrize(
    ("marked", "first", "second"),
    [
        ("plain < 3 & > 4", "plain < 3 & > 4", "plain < 3 & > 4"),
        ("a <p viewer='agent_0'>x</p> b", "a x b", "a  b"),
        ('a <p viewer="agent_0">x <p viewer="agent_1">y</p></p>', "a x", "a"),
        ("win (<extra_info>Hint: q</extra_info>)", "win (Hint: q)", "win (Hint: q)"),
        ("a<br/>b &amp; c", "ab & c", "ab & c"),
        ("a <p viewer='agent_0'>left open", "a left open", "a"),
        ("a <p viewer='agent_0'>x</b> y</p> z", "a x y z", "a  z"),
        ("<b><p viewer='agent_0'>x</b> y", "x y", ""),
        ("<p viewer='agent_0' viewer='agent_1'>x</p>", "", ""),
        ("<p viewer>x</p>", "", ""),
        ("a <p viewer=agent_0 <p>x</p>", "a", "a"),
        ("<script><p viewer='agent_0'>x</p></script>", "x", ""),
    ],
)
def test_each_viewer_reads_its_own_parts(marked: str, first: str, second: str) -> None:
    assert (text_for(marked, "agent_0"), text_for(marked, "agent_1")) == (first, second)


def test_the_judge_reads_everything() -> None:
    assert text_for("a <p viewer='agent_0'>x</p> <p viewer='agent_1'>y</p>", EVERYONE) == "a x y"


PIECES = st.sampled_from(
    ["a ", "<b>", "</b>", "<p>", "</p>", "<p viewer='agent_1'>", "<br/>", "< 3", "<!-- -->", "&lt;"]
)


@given(
    before=st.lists(PIECES),
    inside=st.lists(st.sampled_from(["a ", "<b>", "</b>", "<br/>", "< 3"])),
    after=st.lists(PIECES),
)
def test_what_stands_in_a_private_part_never_reaches_another(
    before: list[str], inside: list[str], after: list[str]
) -> None:
    private = f"<p viewer='agent_0'>{''.join(inside)}TREASURE{''.join(inside)}</p>"
    assert "TREASURE" not in text_for("".join(before) + private + "".join(after), "agent_1")
