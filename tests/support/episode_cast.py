"""Two people, a third, and a few scenarios for the tests of episodes."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.episodes.agents.agent import Agent, RulesBrain
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.observation import Brain
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_episode
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Character, Relationship, Scenario, Task
from nodes.episodes.scenarios.visibility import Mode
from nodes.msgs.episode import Act, ActKind, Deal, Facts
from runtime import Simulation
from runtime.launch.graph import NodeSpec

ANA = Character(
    id="ana",
    first_name="Ana",
    last_name="Ruiz",
    age=34,
    occupation="violin maker",
    public_info="Ana has a workshop by the river",
    secret="Ana owes her brother money",
    secret_words=("owes her brother",),
    big_five="agreeableness high",
)
BEN = Character(
    id="ben",
    first_name="Ben",
    last_name="Okafor",
    occupation="teacher",
    secret="Ben was fired",
    secret_words=("fired",),
)
CAI = Character(id="cai", first_name="Cai", last_name="Lund", occupation="baker", secret="Cai sold the recipe")

CELLO = Scenario(
    id="cello",
    context="Ana sells a cello; Ben came to see it.",
    goals=("You want to sell the cello for as much as possible.", "You want to buy the cello for about 700 EUR."),
    kind="negotiation",
    deal=Deal(about="the cello", unit="EUR", opening=1100, step=10),
    facts=(
        Facts(role="seller", wants="high", target=1100, reserve=800),
        Facts(role="buyer", wants="low", target=700, reserve=950),
    ),
)
GEAR = Scenario(
    id="gear",
    context="Two friends divide their camping gear.",
    goals=("You want the tents.", "You want the stove."),
    kind="negotiation",
    relationship=Relationship.FRIEND,
    deal=Deal(about="the gear", items={"tent": 2, "stove": 1, "lamp": 3}),
    facts=(Facts(worth={"tent": 5, "stove": 1, "lamp": 1}), Facts(worth={"tent": 1, "stove": 6, "lamp": 2})),
)
PARTY = Scenario(
    id="party",
    context="Two strangers at a party.",
    goals=("Find out who your mutual friend is.", "Find out who your mutual friend is."),
    kind="information-seeking",
    facts=(
        Facts(knows={"Mira": "Mira plays chess and lives in Graz", "Olu": "Olu bakes"}, seeks=("Jo",)),
        Facts(knows={"Mira": "Mira plays chess with me", "Jo": "Jo works at the port"}, seeks=("Olu",)),
    ),
)
MUSIC = Scenario(
    id="music",
    context="Two housemates on a Sunday night.",
    goals=(
        "You want to persuade Ben to turn the music down after ten.",
        "You want Ana to wash your dishes this week. You do not want her to know that you were fired.",
    ),
    kind="persuasion",
    relationship=Relationship.FRIEND,
)
TRIO = Scenario(
    id="trio",
    context="Three neighbours and one parking space.",
    goals=("You want to get the space.", "You want to share the space.", "You want to sell the space."),
    relationship=Relationship.ACQUAINTANCE,
)

LIBRARY = Library(
    [ANA, BEN, CAI],
    [CELLO, GEAR, PARTY, MUSIC, TRIO],
    tasks=[
        *(Task(id=one.id, scenario=one.id, characters=("ana", "ben")) for one in (CELLO, GEAR, PARTY, MUSIC)),
        Task(id="trio", scenario="trio", characters=("ana", "ben", "cai")),
    ],
    name="test",
)


def plan(
    task: str = "cello", *, rules: EpisodeRules | None = None, mode: Mode = "AGENTS", seed: int = 0
) -> EpisodePlan:
    """The plan of one of the tasks above."""
    return plan_episode(LIBRARY, LIBRARY.tasks[task], ["rules"], rules=rules, mode=mode, seed=seed)


def act(kind: ActKind, argument: str = "", to: tuple[str, ...] = ()) -> Act:
    """An act in short."""
    return Act(kind=kind, argument=argument, to=to)


def simulation_of(moderator: Moderator, brains: Sequence[Brain]) -> Simulation:
    """The episode's bus in virtual time, with these brains on its seats."""
    seats = [
        NodeSpec(f"seat{seat}", Agent, instance=Agent.with_brain(brain), remap={"episode/seat": f"episode/seat{seat}"})
        for seat, brain in enumerate(brains)
    ]
    return Simulation(NodeSpec("moderator", Moderator, instance=moderator), *seats, seed=moderator.plan.seed)


def play(episode: EpisodePlan, brains: Sequence[Brain] | None = None) -> Moderator:
    """Play it in virtual time over the bus; rule-based agents where no brains are given."""
    moderator = Moderator(episode)
    simulation = simulation_of(moderator, brains or [RulesBrain() for _ in episode.briefings])
    simulation.publish("episode/begin", BeginEpisode())
    simulation.run()
    simulation.close()
    return moderator
