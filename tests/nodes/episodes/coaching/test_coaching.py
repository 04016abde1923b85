"""SOTOPIA-Omega's thresholds against tables from the paper's text; the coach on the bus, alive, wrong and dead."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from nodes.episodes.agents.agent import Agent, RulesBrain
from nodes.episodes.coaching.coach import (
    SIMPLE,
    Coach,
    Coaching,
    RulesMind,
    SeatWork,
    StepRating,
    Variant,
    attempts_of,
    best_of,
    choose,
    is_kept,
    mean_rating,
    read_step,
    utility,
)
from nodes.episodes.command import main
from nodes.episodes.dialogue.messages import BeginEpisode, GuidanceRequest
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.results.store import Store
from nodes.models.json_reading import UnreadableError
from nodes.msgs.episode import Guidance, Turn
from runtime import Clock, Simulation, on
from runtime.launch.graph import NodeSpec
from tests.support.episode_cast import plan
from tests.support.killing import run_killed
from tests.support.running import PATIENCE_S, Runs, eventually
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, silence, status


@pytest.mark.parametrize(
    ("goal_c", "goal_p", "strategy"),
    [  # equation 3, row by row and at each bound
        (7.5, 8.4, "negotiation"), (0.0, 0.0, "negotiation"), (7.5, 8.5, "simple"), (3.0, 10.0, "simple"),
        (7.6, 8.4, "simple"), (8.4, 8.4, "simple"), (8.5, 8.4, "native"), (7.6, 8.5, "native"), (9.0, 9.0, "native"),
    ],
)  # fmt: skip
def test_the_strategy_is_that_of_the_papers_thresholds(goal_c: float, goal_p: float, strategy: str) -> None:
    assert choose(goal_c, goal_p) == strategy


def test_the_filter_asks_less_of_a_dialogue_that_negotiated() -> None:
    kept = [is_kept(goal, negotiated=used) for goal in (7.9, 8.0, 8.4, 8.5) for used in (True, False)]
    assert kept == [False, False, True, False, True, False, True, True]


def test_utility_and_ratings_are_the_means_that_the_paper_writes() -> None:
    assert utility([(0.5, 1.0, 8.0), (0.25, 0.4, 10.0)]) == pytest.approx((4.0 + 1.0) / 2)
    answer: dict[str, object] = {
        f"step{n}": {"analysis": "", "score": score} for n, score in enumerate((6, "8", 7, 9, 1), start=1)
    }
    assert read_step(answer) == (7.0, 8.0, True)
    rating = mean_rating([(7.0, 8.0, True), (8.0, 9.0, True), (6.0, 7.0, False)])
    assert (rating.goal_c, rating.goal_p, rating.goes_on) == (7.0, 8.0, False)  # any flag of five is enough


@pytest.mark.parametrize(
    ("part", "score", "why"),
    [("step1", 11, sentence("episodes.score_range", step="step1", score=11, high=10)),
     ("step5", 2, sentence("episodes.score_range", step="step5", score=2, high=1)),
     ("step3", "high", sentence("episodes.whole_score_expected", step="step3", score="'high'")),
     ("step2", 6.5, sentence("episodes.whole_score_expected", step="step2", score=6.5))],
)  # fmt: skip
def test_a_rating_out_of_range_is_named(part: str, score: object, why: str) -> None:
    answer: dict[str, object] = {f"step{n}": {"score": 1} for n in range(1, 6)}
    answer[part] = {"score": score}
    with pytest.raises(UnreadableError, match=why):
        read_step(answer)


class Rated(RulesMind):
    """Rates as it is told, each time the next."""

    def __init__(self, *ratings: tuple[float, float, bool]) -> None:
        super().__init__(plan())
        self.ratings = list(ratings)
        self.at: list[int] = []

    async def rate(self, turns: Sequence[Turn]) -> StepRating:
        self.at.append(len(turns))
        one = self.ratings.pop(0) if len(self.ratings) > 1 else self.ratings[0]
        return StepRating(*one, 5)


class DyingCoach(Coach):
    """Says nothing any more from the ninth turn on."""

    @on(Coach.request)
    async def advise(self, request: GuidanceRequest) -> None:
        if request.turns < 8:
            self.guidance.publish(Guidance(episode="", seat=request.seat, ask=request.ask))


def coached(
    mind: RulesMind,
    variant: Variant = "dsi",
    turns: int = 12,
    order: str = "round-robin",
    kind: type[Coach] = Coach,
) -> Moderator:
    episode = plan(rules=EpisodeRules(max_turns=turns, order=order))  # type: ignore[arg-type]
    moderator = Moderator(episode, coach_s=30.0)
    seats = [
        NodeSpec(f"seat{n}", Agent, instance=Agent.with_brain(RulesBrain()), remap={"episode/seat": f"episode/seat{n}"})
        for n in range(2)
    ]
    coach = NodeSpec("coach", kind, instance=kind.of(Coaching(episode, mind, variant)))
    simulation = Simulation(NodeSpec("moderator", Moderator, instance=moderator), coach, *seats)
    simulation.publish("episode/begin", BeginEpisode())
    simulation.run()
    simulation.close()
    return moderator


def test_nothing_is_rated_before_the_sixth_action_and_every_action_after_it() -> None:
    mind = Rated((9.0, 9.0, True))
    moderator = coached(mind)
    assert mind.at == list(range(6, len(moderator.conduct.turns)))
    assert all(not turn.note for turn in moderator.conduct.turns)


def test_a_rating_chooses_the_strategy_and_a_stop_makes_the_agent_leave() -> None:
    moderator = coached(Rated((8.0, 8.0, True), (9.0, 9.0, True), (9.0, 9.0, False)))
    turns = moderator.conduct.turns
    assert [turn.note for turn in turns[6:]] == ["guided: simple", "", "guided: leave"]
    assert turns[8].kind == "leave"


def test_the_negotiation_once_begun_goes_on_to_its_end_without_ratings() -> None:
    mind = Rated((5.0, 6.0, True))
    moderator = coached(mind, turns=20)
    notes = [turn.note for turn in moderator.conduct.turns]
    assert mind.at == [6]
    assert notes[6:14] == ["guided: negotiation"] * 8  # resources, differences, proposals, confirmations: two each
    assert notes[14] == ""  # one native turn
    assert moderator.conduct.turns[-1].kind == "leave"


def test_the_half_is_drawn_by_task_and_both_kinds_of_negotiation_have_its_bound() -> None:
    def half(task: str) -> set[str]:
        episode = msgspec.structs.replace(plan(rules=EpisodeRules(max_turns=10)), task=task)
        coaching = Coaching(episode, Rated((5.0, 6.0, True)), "half-nsi")
        turns = [Turn(index=n, number=n, speaker=episode.names[n % 2], kind="speak") for n in range(6)]
        guided = {s for s in (0, 1) if asyncio.run(coaching.guide(s, 1, turns)).strategy == "negotiation"}
        return {episode.names[seat] for seat in guided}

    assert {frozenset(half(f"task {number}")) for number in range(8)} == {frozenset({n}) for n in plan().names}
    bounds: dict[Variant, float] = {"nsi": 1.0, "half-nsi": 1.0, "raw": 0.0, "dsi": 0.0}
    for variant, is_bound_of_negotiation in bounds.items():
        coaching = Coaching(plan(), Rated((8.2, 8.2, True)), variant)
        assert asyncio.run(coaching.finish([])) is not None  # it ended before anything was negotiated
        used = [one.score for one in coaching.scores if one.dimension == "final_negotiated"]
        assert used == [is_bound_of_negotiation]


def test_half_of_the_negotiation_is_one_seats_and_raw_is_nobodys() -> None:
    half = coached(Rated((5.0, 6.0, True)), "half-nsi", turns=12)
    guided = {turn.speaker for turn in half.conduct.turns if turn.note.startswith("guided")}
    assert len(guided) == 1
    raw = coached(Rated((5.0, 6.0, True)), "raw")
    assert not any(turn.note for turn in raw.conduct.turns)


def test_a_coach_that_dies_leaves_the_talk_unguided_and_the_log_says_from_when() -> None:
    moderator = coached(Rated((9.0, 9.0, True)), kind=DyingCoach)
    notes = [turn.note for turn in moderator.conduct.turns]
    assert notes[8] == f"unguided: {sentence('episodes.coach_is_silent', seconds=30)}"
    assert not any(notes[9:])
    assert moderator.conduct.outcome is not None
    assert moderator.conduct.outcome.state == "done"


LAUNCH = """
[nodes.moderator]
use    = "nodes.episodes.runner.live_moderator:LiveModerator"
params = {{ task = "quiet-hours", max_turns = 9, coach_s = 5.0, log = "{log}" }}

[nodes.coach]
use    = "nodes.episodes.coaching.coach:Coach"
params = {{ task = "quiet-hours", max_turns = 9, coach = "c@{url}" }}

[nodes.first]
use    = "nodes.episodes.agents.agent:Agent"
remap  = {{ "episode/seat" = "episode/seat0" }}

[nodes.second]
use    = "nodes.episodes.agents.agent:Agent"
remap  = {{ "episode/seat" = "episode/seat1" }}

[nodes.judge]
use    = "nodes.episodes.runner.judge:Judge"
params = {{ task = "quiet-hours", max_turns = 9 }}
"""


@pytest.mark.processes
@pytest.mark.long
def test_a_coach_whose_process_is_killed_ends_nothing_and_the_log_says_from_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, log = tmp_path / "coached.toml", tmp_path / "coached.sqlite"
    with FakeOpenAI(*[answers(rating(8))] * 5, silence) as server, Runs(monkeypatch) as runs:
        launch.write_text(LAUNCH.format(log=log, url=server.url))
        run = runs.start(launch)
        assert server.wait_for(6, PATIENCE_S)  # the seventh turn is guided; the eighth is being rated
        pid = run.states()["coach"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not run.is_alive, "the talk has ended")
    with Store.read(log) as store:
        [row] = store.episodes()
        turns = store.turns(row.id)
        assert row.state == "done"
        assert [scores.state for scores in store.scores(row.id)] == ["done"]
    why = f"unguided: {sentence('episodes.coach_is_silent', seconds=5)}"
    assert [turn.note for turn in turns[6:]] == ["guided: simple", why, ""]


def test_a_coach_that_cannot_be_asked_leaves_the_talk_unguided_from_then_on(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    with FakeOpenAI(*[answers(rating(8))] * 5, status(401, "no such key")) as server:
        asked = ("--task", "quiet-hours", "--agents", "rules", "--attempts", "1", "--turns", "9")
        assert main(["run", *asked, "--coach", f"c@{server.url}", "--out", str(run)]) == 0
    with Store.read(run) as store:
        [row] = store.episodes()
        notes = [turn.note for turn in store.turns(row.id)]
        assert row.state == "done"
    assert notes[6] == "guided: simple"
    assert notes[7].startswith(f"unguided: {sentence('episodes.coach_cannot_be_asked')} ")
    assert "wants a key (401)" in notes[7]
    assert notes[8] == notes[7]


def test_asynchronous_talk_is_guided_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    choose_as_ever = RulesBrain.choose

    async def choose_and_note(
        brain: RulesBrain, sight: AgentObservation, clock: Clock, chance: random.Random
    ) -> AgentChoice:
        seen.append(sight.observation.guidance)
        return await choose_as_ever(brain, sight, clock, chance)

    monkeypatch.setattr(RulesBrain, "choose", choose_and_note)
    moderator = coached(Rated((8.0, 8.0, True)), turns=14, order="asynchronous")
    assert moderator.conduct.outcome is not None
    assert any(guidance is not None and guidance.text == SIMPLE for guidance in seen)


ACT = json.dumps({"action_type": "speak", "argument": "Let us think.", "to": []})


def rating(score: int) -> str:
    return json.dumps({f"step{n}": {"analysis": "a", "score": score if n < 5 else 1} for n in range(1, 6)})


def test_a_model_coaches_and_every_inner_call_is_labelled(tmp_path: Path) -> None:
    matters = {"matters": [{"text": "price", "weight": 0.5, "ratio": 0.5, "utility": 8}]}
    everything = json.dumps({**matters, **json.loads(rating(5)), "speak": "Let me say what matters.",
                             "proposal_type": "confirm_proposal", "thought": ""})  # fmt: skip
    run = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(everything)) as server:
        asked = ("--task", "cello-with-a-crack", "--agents", "rules", "--attempts", "1", "--turns", "20")
        assert main(["run", *asked, "--coach", f"c@{server.url}", "--out", str(run)]) == 0
    with Store.read(run) as store:
        episode = store.episodes()[0].id
        labels = [what for _, _, what, _, _, _ in store.calls(episode)]
        utilities = [one.score for one in store.turn_scores(episode) if one.dimension == "utility"]
    assert labels[:5] == ["step rating"] * 5
    assert labels[5:8] == ["utility", "resources", "style"]
    assert {"difference", "proposal", "update"} <= set(labels)
    assert utilities[0] == 0.5 * 0.5 * 8


@pytest.mark.parametrize("answer", ["I think it goes well.", rating(11)])
def test_prose_or_a_rating_out_of_range_is_asked_for_again_and_then_a_state_of_its_own(
    tmp_path: Path, answer: str
) -> None:
    run = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(answer)) as server:
        asked = ("--task", "cello-with-a-crack", "--agents", "rules", "--attempts", "1", "--turns", "8")
        assert main(["run", *asked, "--coach", f"c@{server.url}", "--out", str(run)]) == 0
        assert len(server.requests) == 3 * 5 * 2  # two turns and the whole, each sample twice
    with Store.read(run) as store:
        row = store.episodes()[0]
        notes = [turn.note for turn in store.turns(row.id)]
        assert row.state == "done"
        assert f"unguided: {sentence('episodes.coach_cannot_be_used')} none of 5 step ratings can be read" in notes[6]
        assert answer != rating(11) or sentence("episodes.score_range", step="step1", score=11, high=10) in notes[6]
        assert attempts_of(store)[row.id][0].goal_c is None


def test_a_low_dialogue_is_played_again_at_most_four_times_and_the_best_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    low, high = answers(rating(6)), answers(rating(7))
    with FakeOpenAI(low, low, low, low, low, high, high, high, high, high, low) as server:
        asked = ("--task", "quiet-hours", "--agents", "rules", "--turns", "2", "--coach", f"c@{server.url}")
        assert main(["run", *asked, "--out", str(run)]) == 0
        assert len(server.requests) == 20  # four attempts, five samples each
    with Store.read(run) as store:
        (attempts,) = attempts_of(store).values()
    assert [one.goal_c for one in attempts] == [6, 7, 6, 6]
    assert best_of(attempts) == (attempts[1], sentence("episodes.best_of_attempts", number=4))
    assert main(["dataset", str(run), "--filter", "omega", "--prompts", "full", "--out", str(tmp_path / "d")]) == 0
    decisions = [json.loads(line) for line in (tmp_path / "d" / "decisions.jsonl").read_text().splitlines()]
    assert {one["episode"] for one in decisions if one["is_kept"]} == {attempts[1].episode}


def test_runs_are_mixed_whole_or_task_by_task_by_their_ratings(tmp_path: Path) -> None:
    runs = []
    for name, scores in (("raw", (9, 5)), ("nsi", (6, 8))):  # of two tasks
        runs.append(tmp_path / f"{name}.sqlite")
        with FakeOpenAI(*[answers(rating(score)) for score in scores for _ in range(5)]) as server:
            tasks = ("--task", "quiet-hours", "--task", "give-me-the-keys", "--agents", "rules", "--turns", "2")
            asked = ("--coach", f"c@{server.url}", "--attempts", "1", "--jobs", "1", "--out", str(runs[-1]))
            assert main(["run", *tasks, *asked]) == 0
    kept = {}
    for mix in ("all", "best"):
        asked = ("--filter", "omega", "--prompts", "full", "--mix", mix, "--out", str(tmp_path / mix))
        assert main(["dataset", *map(str, runs), *asked]) == 0
        decisions = [json.loads(line) for line in (tmp_path / mix / "decisions.jsonl").read_text().splitlines()]
        kept[mix] = [one["goal"] for one in decisions if one["is_kept"] and one["seat"] == 0]
        card = json.loads((tmp_path / mix / "statistics.json").read_text())
        assert (card["conversations"], card["conversations_kept"]) == (4, len(kept[mix]))
    assert kept == {"all": [9, 5, 6, 8], "best": [9, 8]}
    assert main(["dataset", str(runs[0]), str(runs[0]), "--out", str(tmp_path / "twice")]) == 2


def test_the_simple_strategy_stands_in_the_prompt(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(ACT)) as player, FakeOpenAI(answers(rating(8))) as coach:
        asked = ("--task", "quiet-hours", "--agents", f"m@{player.url}", "--turns", "8", "--attempts", "1")
        assert main(["run", *asked, "--coach", f"c@{coach.url}", "--out", str(run)]) == 0
        assert [SIMPLE in request.user_text for request in player.requests] == [False] * 6 + [True] * 2


COMMAND = [sys.executable, "-c", "import sys; from nodes.episodes.command import main; sys.exit(main(sys.argv[1:]))"]


def collected(path: Path) -> object:
    with Store.read(path) as store:
        return [
            (r.id, r.state, store.calls(r.id), store.turns(r.id), store.turn_scores(r.id)) for r in store.episodes()
        ]


def kill_collections(tmp_path: Path, kills: int) -> None:
    """The same collection whole, and killed at random moments; nothing is lost, no answer is there or asked twice."""
    chance, hits, jobs = random.Random(0), 0, 4
    whole, path = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    with FakeOpenAI(answers(rating(6))) as server:
        tasks = ("quiet-hours", "cello-with-a-crack", "van-with-a-cough", "give-me-the-keys")
        asked = ["--agents", "rules", "--turns", "8", "--coach", f"c@{server.url}", "--jobs", str(jobs)]
        asked += [part for task in tasks for part in ("--task", task)]

        def command() -> list[str]:
            if path.exists() and not is_planned(path):
                path.unlink()
            more = ["resume", str(path), "--jobs", str(jobs)] if path.exists() else ["run", *asked, "--out", str(path)]
            return [*COMMAND, *more]

        began = time.monotonic()
        assert subprocess.run([*COMMAND, "run", *asked, "--out", str(whole)], stdout=subprocess.DEVNULL).returncode == 0
        whole_s = time.monotonic() - began
        count = len(server.requests)
        while hits < kills:
            path.unlink(missing_ok=True)
            server.requests.clear()
            hit = run_killed(command, chance, whole_s * 0.8, kills - hits)
            assert collected(path) == collected(whole)
            assert len(server.requests) - count <= hit * jobs, "only what was under way at a kill is asked for again"
            hits += hit


def is_planned(path: Path) -> bool:
    try:
        with Store.read(path) as store:
            return bool(store.card)
    except Exception:  # noqa: BLE001  # killed while the file was being made
        return False


@pytest.mark.processes
@pytest.mark.long
def test_a_killed_collection_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    kill_collections(tmp_path, 1)


@pytest.mark.processes
@pytest.mark.long
def test_a_collection_killed_at_twenty_random_moments_loses_and_repeats_nothing(tmp_path: Path) -> None:
    kill_collections(tmp_path, 20)


def test_the_offline_mind_proposes_the_middle_and_confirms_what_it_can_live_with() -> None:
    mind, episode = RulesMind(plan()), plan()
    said = [Turn(index=0, number=1, speaker="Ana Ruiz", kind="speak", argument="I was thinking of 1100 EUR."),
            Turn(index=1, number=2, speaker="Ben Okafor", kind="speak", argument="I can do 700 EUR.")]  # fmt: skip
    work = SeatWork(steps=2)
    assert asyncio.run(mind.negotiate(0, work, said)) == (
        "present_proposal", sentence("episodes.half_of_the_way", amount="900 EUR"))  # fmt: skip
    work.steps = 3
    near = [*said[:1], Turn(index=1, number=2, speaker="Ben Okafor", kind="speak", argument="I can do 850 EUR.")]
    assert asyncio.run(mind.negotiate(0, work, near))[0] == "confirm_proposal"  # Ana's reserve is 800
    assert episode.deal is not None
