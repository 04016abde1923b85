"""A dialogue as a pure function: the mind after words, a report or some time, and what it says; the old one stays."""

from __future__ import annotations

from dataclasses import replace

from nodes.msgs import SceneDescription
from nodes.planner.orders import Surroundings
from nodes.planner.talk.dialogue import Dialogue


def hear(mind: Dialogue, text: str, around: Surroundings, now_ns: int = 0, speaker: str = "") -> tuple[Dialogue, str]:
    mind = replace(mind, around=around)
    return mind, mind.hear(text, speaker, now_ns)


def report(
    mind: Dialogue, description: SceneDescription, around: Surroundings, now_ns: int = 0
) -> tuple[Dialogue, str]:
    mind = replace(mind, around=around)
    return mind, mind.report(description, now_ns)


def given_up(mind: Dialogue, now_ns: int) -> tuple[Dialogue, str]:
    mind = replace(mind)
    return mind, mind.tick(now_ns)


def doubt(mind: Dialogue, around: Surroundings, now_ns: int) -> tuple[Dialogue, str]:
    mind = replace(mind, around=around)
    return mind, mind.doubt(now_ns)
