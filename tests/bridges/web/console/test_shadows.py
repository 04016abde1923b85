"""What candidates say, in words, beside what the holder of the seat says."""

from __future__ import annotations

from bridges.web.console.shadows import Shadows
from nodes.msgs import Action, JointCommand
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.clock import to_ns


def test_the_holder_is_live_and_the_others_would_do_something_else() -> None:
    shadows = Shadows(STRETCH_3.joints)
    raised = (0.8, *STOW[1:])
    shadows.note("policy", "policy", JointCommand(position=raised, base_v_mps=-0.2), 0)
    shadows.note("policy", "human_policy", JointCommand(position=STOW), 0)
    document = shadows.documents("policy", "human_policy", STOW, to_ns(0.1))
    assert document["live"] == "stands still"
    assert document["shadows"] == [{"source": "policy", "text": "base -0.20 m/s, lift to 0.80", "age_ms": 100}]


def test_old_words_are_not_shown_and_seats_are_kept_apart() -> None:
    shadows = Shadows(STRETCH_3.joints)
    shadows.note("vlm", "vlm", Action(id="1", skill="nod"), 0)
    assert shadows.documents("policy", "vlm", None, 0) == {"live": "", "shadows": []}
    assert shadows.documents("vlm", "vlm", None, to_ns(1))["live"] == "nod"
    assert shadows.documents("vlm", "vlm", None, to_ns(31))["live"] == ""


def test_so_many_sources_and_no_more_are_remembered() -> None:
    shadows = Shadows(STRETCH_3.joints)
    for number in range(100):
        shadows.note("vlm", f"node-{number}", Action(id="1", skill="nod"), 0)
    assert len(shadows.documents("vlm", "", None, 0)["shadows"]) <= 24


def test_who_was_silent_for_longest_is_forgotten_for_somebody_new() -> None:
    shadows = Shadows(STRETCH_3.joints)
    for number in range(100):
        shadows.note("vlm", f"node-{number}", Action(id="1", skill="nod"), number)
    shadows.note("vlm", "node-99", Action(id="2", skill="shake"), 100)
    shown = [one["source"] for one in shadows.documents("vlm", "", None, 100)["shadows"]]
    assert sorted(shown) == [f"node-{number}" for number in range(76, 100)]
