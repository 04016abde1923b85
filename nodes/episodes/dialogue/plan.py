"""`EpisodePlan`: one episode before it is played, as plain data; the log keeps it, and a resume needs no more."""

from __future__ import annotations

import msgspec

from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.scenarios.visibility import Mode
from nodes.msgs.episode import Briefing, Deal, Facts


class GroundTruth(msgspec.Struct, frozen=True):
    """What evaluators know of one participant: everything."""

    name: str
    character: str
    goal: str
    profile: str
    secret: str = ""
    secret_words: tuple[str, ...] = ()
    facts: Facts = Facts()
    is_human: bool = False


class EpisodePlan(msgspec.Struct, frozen=True):
    """Scenario, participants with what each may know, rules, mode and seed."""

    id: str
    task: str
    scenario: str
    context: str
    kind: str
    relationship: str
    briefings: tuple[Briefing, ...]
    truths: tuple[GroundTruth, ...]
    rules: EpisodeRules
    agents: tuple[str, ...]  # what plays each seat, as given to `make_brain`
    mode: Mode = "AGENTS"
    name_only: bool = False
    deal: Deal | None = None
    seed: int = 0
    codename: str = ""
    tags: tuple[str, ...] = ()
    robot_seat: int | None = None
    coach: str = ""  # who coaches, "rules" or MODEL[@URL]; "": nobody
    variant: str = "dsi"  # how it coaches
    like: str = ""  # the published package and version whose prompts and rules it follows; "": our own
    whole_background: str = ""  # what that package tells its judge first

    @property
    def names(self) -> tuple[str, ...]:
        """The participants by seat."""
        return tuple(briefing.name for briefing in self.briefings)

    @property
    def bound(self) -> tuple[str, ...]:
        """Whom a deal binds: those to whom its number or items are worth something; where nobody says so, all."""
        stakes = [truth.name for truth in self.truths if truth.facts.wants or truth.facts.worth]
        return tuple(stakes) if len(stakes) > 1 else self.names

    @property
    def transparency(self) -> str:
        """Who knows what of whom, in a word for the log."""
        like = f", like {self.like}" if self.like else ""
        return self.mode + (", name-only characters" if self.name_only else "") + like
