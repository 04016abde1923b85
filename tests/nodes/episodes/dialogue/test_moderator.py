"""Episodes over the bus in virtual time: orders, ends, private messages, asynchronous talk, and who knew what."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes.episodes.agents.agent import RulesBrain, ScriptedBrain
from nodes.episodes.dialogue.asynchronous import AsynchronousDialogue
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation, Brain
from nodes.episodes.dialogue.planning import plan_episode
from nodes.episodes.dialogue.prompt import prompt_text
from nodes.episodes.dialogue.rules import EpisodeRules, Order
from nodes.episodes.dialogue.turn_based import Sent, TurnBasedDialogue
from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Character, Relationship, Scenario, Task, Win
from nodes.msgs.episode import Act, Reply
from runtime import Clock, UserError
from tests.support.episode_cast import ANA, BEN, act, plan, play, simulation_of
from tests.support.sentences import pattern, sentence


class Spy:
    """A brain that keeps every prompt that it would have been given."""

    def __init__(self, *acts: Act) -> None:
        self.inner = ScriptedBrain(acts) if acts else RulesBrain()
        self.prompts: list[str] = []

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        self.prompts.append(prompt_text(sight.briefing, sight.turns, sight.observation))
        return await self.inner.choose(sight, clock, chance)


def said(moderator: Moderator) -> list[str]:
    return [f"{turn.speaker.split()[0]}:{turn.argument}" for turn in moderator.conduct.turns if turn.kind == "speak"]


def outcome(moderator: Moderator) -> str:
    assert moderator.conduct.outcome is not None
    return moderator.conduct.outcome.reason


def lines(name: str, count: int) -> ScriptedBrain:
    return ScriptedBrain([act("speak", f"{name} {number}") for number in range(count)])


def test_twenty_turns_alternate_and_the_limit_ends_them() -> None:
    moderator = play(plan(), [lines("a", 30), lines("b", 30)])
    assert [turn.speaker for turn in moderator.conduct.turns] == ["Ana Ruiz", "Ben Okafor"] * 10
    assert outcome(moderator) == "turn limit: 20 turns"


def test_simultaneous_acts_share_a_number() -> None:
    moderator = play(plan(rules=EpisodeRules(order="simultaneous", max_turns=2)), [lines("a", 9), lines("b", 9)])
    assert [(turn.number, turn.argument) for turn in moderator.conduct.turns] == [
        (1, "a 0"),
        (1, "b 0"),
        (2, "a 1"),
        (2, "b 1"),
    ]


def test_silence_is_stale_and_leaving_ends_two() -> None:
    assert outcome(play(plan(), [ScriptedBrain([]), ScriptedBrain([])])) == sentence("episodes.is_silent", number=3)
    gone = play(plan(), [ScriptedBrain([act("leave")]), lines("b", 3)])
    assert outcome(gone) == "left: Ana Ruiz"
    assert len(gone.conduct.turns) == 1


def test_three_go_on_when_one_leaves() -> None:
    moderator = play(
        plan("trio", rules=EpisodeRules(max_turns=5)), [lines("a", 9), ScriptedBrain([act("leave")]), lines("c", 9)]
    )
    assert [turn.speaker.split()[0] for turn in moderator.conduct.turns] == ["Ana", "Ben", "Cai", "Ana", "Cai"]


def test_a_private_message_reaches_its_recipient_only() -> None:
    spies = [Spy(act("speak", "the code is 7351", ("Cai Lund",))), Spy(act("speak", "hm")), Spy(act("speak", "ok"))]
    play(plan("trio", rules=EpisodeRules(max_turns=6, max_stale=9)), spies)
    assert not any("7351" in prompt for prompt in spies[1].prompts)
    assert any("privately to Cai Lund" in prompt and "7351" in prompt for prompt in spies[2].prompts)


def test_an_unknown_recipient_is_asked_again_once_and_then_counted() -> None:
    again = Spy(act("speak", "psst", ("Zoe",)), act("speak", "aloud"))
    moderator = play(plan(rules=EpisodeRules(max_turns=2)), [again, lines("b", 1)])
    assert said(moderator) == ["Ana:aloud", "Ben:b 0"]
    assert "no 'Zoe'" in again.prompts[1]
    stubborn = play(
        plan(rules=EpisodeRules(max_turns=2)), [ScriptedBrain([act("speak", "x", ("Zoe",))] * 2), lines("b", 1)]
    )
    assert stubborn.conduct.turns[0].note.startswith("refused: there is no 'Zoe'")
    assert stubborn.conduct.failures == 1


def test_an_outage_fails_the_episode_and_is_never_silence() -> None:
    class Dead:
        async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
            return AgentChoice(failure="localhost:1 cannot be reached")

    moderator = play(plan(), [lines("a", 3), Dead()])
    assert moderator.conduct.outcome is not None
    assert moderator.conduct.outcome.state == "failed"
    assert outcome(moderator) == "failed: Ben Okafor did not answer: localhost:1 cannot be reached"
    assert [turn.kind for turn in moderator.conduct.turns] == ["speak"]


@pytest.mark.parametrize("order", ["round-robin", "random", "simultaneous", "asynchronous"])
def test_the_same_seed_gives_the_same_episode(order: Order) -> None:
    first, second = (play(plan("music", rules=EpisodeRules(order=order), seed=3)) for _ in range(2))
    assert first.conduct.turns == second.conduct.turns
    assert outcome(first) == outcome(second)


class Bidder:
    """Speaks once; interrupts when the other has said so many words."""

    def __init__(self, line: str, urgency: float, interrupt: str = "") -> None:
        self.line, self.urgency, self.interrupt = line, urgency, interrupt

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        if sight.observation.speaking and self.interrupt:
            words, self.interrupt = self.interrupt, ""
            return AgentChoice(act=act("speak", words), urgency=0.9 if len(words) > 5 else 0.5)
        if self.line and not sight.observation.speaking:
            line, self.line = self.line, ""
            return AgentChoice(act=act("speak", line), urgency=self.urgency)
        return AgentChoice(urgency=0.0)


def test_an_interruption_keeps_what_was_really_said() -> None:
    long = "I have a long story to tell. It goes on and on. And it does not end here."
    moderator = play(
        plan(rules=EpisodeRules(order="asynchronous", words_per_s=2.0)),
        [Bidder(long, 0.9), Bidder("", 0.1, "Stop it right now!")],
    )
    first, second = moderator.conduct.turns[:2]
    assert first.argument == "I have a long story to tell. -"
    assert first.note == "interrupted by Ben Okafor"
    assert first.lasts_s == pytest.approx(3.5)  # seven words at two a second
    assert (second.argument, second.note) == ("Stop it right now!", "interrupts Ana Ruiz")
    assert second.at_s == pytest.approx(first.at_s + first.lasts_s)
    assert outcome(moderator) == sentence("episodes.nobody_spoke", seconds=8)


class Slow:
    """Thinks for a while before it says its line, each time that it is asked while nobody speaks."""

    def __init__(self, line: str, thinks_s: float) -> None:
        self.line, self.thinks_s = line, thinks_s
        self.heard: list[str] = []
        self.began = self.finished = 0

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        self.heard = [turn.argument for turn in sight.turns]
        self.began += 1
        await clock.sleep(self.thinks_s if sight.observation.speaking else 0.0)
        self.finished += 1
        return AgentChoice(act=act("speak", self.line), urgency=0.95 if sight.observation.speaking else 0.0)


def test_an_interruption_is_the_robots_own_interrupt_and_its_fence_voids_what_others_were_about_to_say() -> None:
    story = "I have a long story to tell. It goes on and on. And it does not end here. Not by far. No end."
    slow = Slow("Too late, this must never be said.", thinks_s=1.0)
    moderator = Moderator(plan("trio", rules=EpisodeRules(order="asynchronous", words_per_s=2.0)))
    brains: list[Brain] = [Bidder(story, 0.9), Bidder("", 0.1, "Stop it now, both of you!"), slow]
    simulation = simulation_of(moderator, brains)
    interrupts, fences = simulation.record(Moderator.interrupt), simulation.record(Moderator.fence)
    simulation.publish("episode/begin", BeginEpisode())
    simulation.run()
    simulation.close()
    (interrupt,) = interrupts
    assert (interrupt.depth, interrupt.by, interrupt.text) == (
        "replan",
        "Ben Okafor",
        "Stop it now, both of you!",
    )
    assert [(fence.interrupt_id, fence.epochs) for fence in fences] == [(interrupt.id, {"planner": 1, "policy": 1})]
    assert slow.finished < slow.began  # its answer was cancelled on its way
    assert said(moderator)[:2] == ["Ana:I have a long story to tell. -", "Ben:Stop it now, both of you!"]
    assert not any("never be said" in line for line in said(moderator))
    # What it was told with the ask that became void it still knows.
    assert slow.heard == [turn.argument for turn in moderator.conduct.turns]


def test_a_scenario_says_what_wins_its_game() -> None:
    game = Scenario(
        id="taboo",
        context="A game: get the other to say the word.",
        goals=("Get the other to say moon.", "Find out the word without saying it."),
        wins=(Win(pattern=r"\bmoon\b", seat=1, winner=0, text="said the word"),),
    )
    library = Library([ANA, BEN], [game], tasks=[Task(id="taboo", scenario="taboo", characters=("ana", "ben"))])
    episode = plan_episode(library, library.tasks["taboo"], ["rules"])
    talk = [
        ScriptedBrain([act("speak", "The moon?"), act("speak", "Well?")]),
        ScriptedBrain([act("speak", "THE MOON!")]),
    ]
    assert outcome(play(episode, talk)) == "won: Ana Ruiz (said the word)"
    with pytest.raises(UserError, match=pattern("episodes.seat_expected", field="wins: seat", value=2, last=1)):
        plan_episode(library, library.tasks["taboo"], ["rules"], wins=(Win(pattern="x", seat=2),))


def test_whom_a_live_episode_asks_nothing_hears_at_once() -> None:
    conduct = TurnBasedDialogue("e", plan("trio").briefings, EpisodeRules(), random.Random(0))
    sent = conduct.begin(0.0)
    assert [(seat, told.asks, told.briefing is not None) for seat, told in conduct.telling(sent)] == [
        (1, "nothing", True),
        (2, "nothing", True),
    ]
    sent = conduct.reply(Reply(episode="e", seat=0, ask=1, act=act("speak", "psst", ("Cai Lund",))), 1.0)
    told = conduct.telling(sent)
    assert [(seat, [turn.argument for turn in one.heard]) for seat, one in told] == [(0, ["psst"]), (2, ["psst"])]
    assert [(seat, one.recipients) for seat, one in sent.observations] == [(1, ("Ana Ruiz", "Cai Lund"))]


def test_a_nod_overlaps_and_takes_no_floor() -> None:
    moderator = play(
        plan(rules=EpisodeRules(order="asynchronous")),
        [Bidder("One two three. Four five six.", 0.9), Bidder("", 0.1, "Mhm.")],
    )
    notes = {turn.argument: turn.note for turn in moderator.conduct.turns}
    assert notes == {"Mhm.": "overlaps Ana Ruiz", "One two three. Four five six.": ""}


def test_two_who_begin_at_once_overlap_and_one_yields() -> None:
    moderator = play(
        plan(rules=EpisodeRules(order="asynchronous")),
        [Bidder("Let me go first today", 0.7), Bidder("No it is my turn", 0.7)],
    )
    notes = sorted(turn.note.split()[0] if turn.note else "" for turn in moderator.conduct.turns)
    assert notes == ["", "overlaps"]


class Thinker(Bidder):
    """Thinks for so long before each bid, and always has something to say."""

    def __init__(self, thinks_s: float) -> None:
        super().__init__("", 0.0)
        self.thinks_s = thinks_s

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        await clock.sleep(self.thinks_s)
        if sight.observation.speaking:
            return AgentChoice(urgency=0.0)
        return AgentChoice(act=act("speak", "This is what I think of it."), urgency=0.7)


def test_a_quick_mind_waits_for_no_slow_one_but_lets_it_answer() -> None:
    rules = EpisodeRules(order="asynchronous", max_turns=6)
    first, second, *_ = play(plan(rules=rules), [Thinker(4.0), Thinker(0.0)]).conduct.turns
    assert (first.speaker, first.at_s) == ("Ben Okafor", 0.44)
    assert second.speaker == "Ana Ruiz", "who spoke last lets the other think"
    three = play(plan("trio", rules=rules), [Thinker(9.0), Thinker(0.0), Thinker(0.0)]).conduct.turns
    by_speaker = Counter(turn.speaker for turn in three if turn.timing != "yields")
    assert by_speaker["Ana Ruiz"] < by_speaker["Ben Okafor"], "the slow one loses the floor"
    equal = play(plan("trio", rules=rules), [Thinker(0.0), Thinker(0.0), Thinker(0.0)]).conduct.turns
    assert max(turn.at_s for turn in three) < max(turn.at_s for turn in equal) + 9.0, "and holds nobody up"


def test_a_private_leave_is_seen_by_all() -> None:
    spies = [
        Spy(act("speak", "psst", ("Cai",))),
        Spy(act("leave", "my sister calls", ("ana",))),
        Spy(act("speak", "ok")),
    ]
    turns = play(plan("trio", rules=EpisodeRules(max_turns=6, max_stale=9)), spies).conduct.turns
    (left,) = [turn for turn in turns if turn.kind == "leave"]
    assert left.to == ()
    assert any("Ben Okafor left: my sister calls" in prompt for prompt in spies[2].prompts)
    assert not any("psst" in prompt for prompt in spies[1].prompts)


def test_people_may_be_silent_as_long_as_an_answer_may_take() -> None:
    """One line of an agent and a person who never speaks: others are asked ever less often, then the talk is stale."""
    floor = AsynchronousDialogue("e", plan().briefings, EpisodeRules(order="asynchronous"), random.Random(0))
    floor.answer_s = 100.0
    sent, now_s, asks, line = floor.begin(0.0), 0.0, 0, "Hello there."
    while sent.outcome is None:
        step = Sent()
        for seat, seen in sent.observations:
            if seat == 1:
                reply = Reply(episode="e", seat=1, ask=seen.ask, act=Act(), is_open=True)
            else:
                asks += 1
                reply = Reply(episode="e", seat=0, ask=seen.ask, act=act("speak", line) if line else Act(), urgency=0.7)
                line = ""
            answered = floor.reply(reply, now_s)
            step = answered if answered.pause or answered.outcome else step
        if not step.pause and not step.outcome:
            step = sent
        if step.outcome is None:
            assert step.pause is not None
            now_s += step.pause.seconds
            step = floor.waited(step.pause.token, now_s)
        sent = step
    assert sent.outcome.reason == sentence("episodes.nobody_spoke", seconds=100)
    assert 80.0 < now_s < 110.0
    assert asks < 25


word = st.text("abcdefghijklmnopqrstuvwxyz", min_size=6, max_size=12)


@st.composite
def casts(draw: st.DrawFn) -> Library:
    number = draw(st.integers(2, 4))
    secrets = draw(st.lists(word, min_size=number, max_size=number, unique=True))
    people = [
        Character(
            id=f"p{seat}",
            first_name=f"P{seat}",
            occupation=f"job{seat}{secrets[seat]}"[:20],
            public_info=f"public{seat}",
            personality=f"persona{seat}",
            secret=f"SECRET{seat} {secrets[seat]}",
            secret_words=(secrets[seat],),
        )
        for seat in range(number)
    ]
    scenario = Scenario(
        id="s",
        context="Some people meet.",
        goals=tuple(f"You want to GOAL{seat} the table." for seat in range(number)),
        relationship=draw(st.sampled_from(Relationship)),
    )
    task = Task(id="t", scenario="s", characters=tuple(person.id for person in people))
    return Library(people, [scenario], tasks=[task], name="drawn")


@given(casts(), st.sampled_from(["round-robin", "simultaneous", "random", "asynchronous"]), st.integers(0, 99))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_secret_and_no_goal_reaches_another_prompt(library: Library, order: Order, seed: int) -> None:
    episode = plan_episode(
        library, library.tasks["t"], ["rules"], rules=EpisodeRules(order=order, max_turns=8), seed=seed
    )
    spies = [Spy(act("speak", f"hello {seat}"), act("speak", "and more")) for seat in range(len(episode.briefings))]
    moderator = play(episode, spies)
    level = library.scenarios["s"].relationship
    assert any(spy.prompts for spy in spies)
    for seat, spy in enumerate(spies):
        for prompt in spy.prompts:
            for other in range(len(spies)):
                assert (f"SECRET{other}" in prompt) == (other == seat)
                assert (f"GOAL{other}" in prompt) == (other == seat)
                if other != seat:
                    assert (f"public{other}" in prompt) == (level >= Relationship.ACQUAINTANCE)
                    assert (f"persona{other}" in prompt) == (level >= Relationship.FRIEND)
    assert [record.seat for record in moderator.conduct.prompts]


def test_mindreaders_see_what_agents_do_not() -> None:
    spies = [Spy(), Spy()]
    play(plan("music", mode="MINDREADERS"), spies)
    assert all("Ben was fired" in prompt for prompt in spies[0].prompts)
    assert all("turn the music down" in prompt for prompt in spies[1].prompts)
