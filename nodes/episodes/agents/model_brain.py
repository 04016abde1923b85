"""`ModelBrain`: a language model plays a seat. One prompt, local repairs, one re-ask, then a failed turn.

Or, in the mode SCRIPT, one that knows everything writes the whole episode at once (`write_script`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

import msgspec

from nodes.episodes.agents.acts import read_act, read_line
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import BudgetSpentError, NoStore, OutageError, SeatCaller, asked_again, sha_of
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import ACT_SCHEMA, BID_SCHEMA, TEXT, json_object, prompt_text, small_prompt_text
from nodes.models.chat_format import ModelAnswer
from nodes.models.json_reading import UnreadableError, read_object
from nodes.models.model import Patience
from nodes.models.servers import Servers
from nodes.msgs.episode import ACT_KINDS, Act
from runtime import Clock
from runtime.errors import UserError

LIVE = Patience(60.0, 60.0, attempts=4)
"""In a launch file somebody may be waiting."""

SMALL_TALK_URGENCY = 0.55
"""A small model is not asked how much it wants to speak."""


@dataclass(frozen=True, slots=True)
class AnswerLatency:
    """How long a model's answer takes in virtual time: as long as it took, or always the same."""

    is_wall: bool = False
    fixed_s: float = 0.0

    @classmethod
    def parse(cls, text: str) -> AnswerLatency:
        """Of "none", "wall" or "fixed:0.8". Raises UserError."""
        kind, _, seconds = text.partition(":")
        if text in ("none", "wall"):
            return cls(is_wall=text == "wall")
        try:
            fixed_s = float(seconds)
        except ValueError:
            fixed_s = -1.0
        if kind != "fixed" or not 0.0 <= fixed_s <= 3600.0:
            raise UserError(f"--latency {text[:40]!r}: expected none, wall, or fixed:S with seconds up to 3600")
        return cls(fixed_s=fixed_s)

    async def wait(self, clock: Clock, call: Awaitable[ModelAnswer]) -> ModelAnswer:
        """The answer, when it arrives. A stored one took as long as it did when it was given."""
        answer = await clock.external(call, self.fixed_s)
        if self.is_wall and clock.is_virtual:
            await clock.sleep(answer.took_s or 0.0)
        return answer


NO_LATENCY = AnswerLatency()


class ModelBrain:
    """Asks its caller; `latency` is how long an answer takes in virtual time."""

    def __init__(
        self, caller: SeatCaller, *, latency: AnswerLatency = NO_LATENCY, prompts: PackagePrompts | None = None
    ) -> None:
        """`prompts`: a published package's, in place of ours."""
        self._caller = caller
        self._prompts = prompts
        self._latency = latency
        self._is_small = caller.spec.prompt == "small"
        self.unreadable = 0

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        """Outages are told as such; they never look like silence."""
        schema = BID_SCHEMA if sight.observation.asks == "bid" else ACT_SCHEMA
        schema = schema if self._prompts is None else self._prompts.act_schema
        schema = {} if self._is_small else schema
        sha = ""
        try:
            for held in _windows(len(sight.turns)):
                prompt = self._prompt(sight, held)
                sha = sha_of(prompt)
                answer = await self._latency.wait(clock, self._caller.ask(prompt, schema, sight.observation.asks, sha))
                if answer.ending != "full":
                    break
            else:
                raise OutageError(f"turn {sight.observation.turn}: {answer.text}")
            try:
                return self._choice(answer, sight, sha)
            except UnreadableError as problem:
                again = (
                    prompt + "\n" if self._is_small else asked_again(prompt, problem)
                )  # it would answer the complaint
                answer = await self._latency.wait(clock, self._caller.ask(again, schema, "re-ask"))
                return self._choice(answer, sight, sha)
        except OutageError as problem:
            kind = "budget" if isinstance(problem, BudgetSpentError) else "outage"
            return AgentChoice(failure=str(problem), failure_kind=kind, prompt_sha=sha)  # type: ignore[arg-type]
        except UnreadableError as problem:
            self.unreadable += 1
            note = f"unreadable answer: {problem}"[:300]
            return AgentChoice(act=Act(), urgency=0.0, fault="unreadable", note=note, prompt_sha=sha)

    def _prompt(self, sight: AgentObservation, held: int) -> str:
        """What is asked, with the newest turns only, so many of them, and how many the others were."""
        make = small_prompt_text if self._is_small else prompt_text
        make = make if self._prompts is None else self._prompts.act_prompt
        older, newer = sight.turns[: len(sight.turns) - held], sight.turns[len(sight.turns) - held :]
        prompt = make(sight.briefing, newer, sight.observation)
        if not older:
            return prompt
        spoke = Counter(turn.speaker for turn in older if turn.kind != "none")
        who = ", ".join(f"{name} {count}" for name, count in spoke.items()) or "nobody did anything"
        return f"{prompt}\n\n(The first {len(older)} turns are left out here. Turns by name: {who}.)"

    def _choice(self, answer: ModelAnswer, sight: AgentObservation, sha: str) -> AgentChoice:
        if answer.ending == "declined":
            note = f"the model declines to answer: {answer.text}"[:300]
            return AgentChoice(act=Act(), urgency=0.0, fault="declined", note=note, prompt_sha=sha)
        if self._is_small:
            is_cut = answer.ending == "cut"
            act = read_line(answer.text, sight.name, is_cut=is_cut)
            return AgentChoice(act=act, urgency=SMALL_TALK_URGENCY, prompt_sha=sha)
        cut = "the answer was cut off" + (" at the limit of its length" if answer.ending == "cut" else "")
        try:
            read = read_act(answer.text)
        except UnreadableError as problem:
            raise UnreadableError(f"{cut}: {problem}" if answer.ending == "cut" else str(problem)) from problem
        if not read.is_cut:
            return AgentChoice(act=read.act, urgency=read.urgency, prompt_sha=sha)
        if not read.act.argument or (read.names_nobody and len(sight.others) > 1):
            raise UnreadableError(f"{cut} before it was whole")  # it may have been meant for one alone
        return AgentChoice(act=read.act, urgency=read.urgency, fault="cut", note=cut, prompt_sha=sha)


def _windows(turns: int) -> Iterator[int]:
    """How many of the newest turns a prompt holds: all, and half as many where that is longer than the model reads."""
    yield turns
    while turns > 1:
        turns //= 2
        yield turns


def model_brain(spec: AgentSpec) -> ModelBrain:
    """The brain of a model with connections of its own, for a node of a launch file."""
    servers = Servers(patience=LIVE)
    spec.check_model(servers)
    return ModelBrain(SeatCaller(spec, servers, NoStore(), 0))


_LINE = {"speaker": TEXT, "action_type": {"type": "string", "enum": list(ACT_KINDS)}, "argument": TEXT}
SCRIPT_SCHEMA = json_object({"script": {"type": "array", "items": json_object(_LINE)}})


def script_prompt(plan: EpisodePlan) -> str:
    """Everything about everybody, and the task to write it."""
    return (
        f"Write the script of an episode between {', '.join(plan.names)}, who act towards their own private goals.\n\n"
        f"{plan.briefings[0].background}\n\n"
        f"At most {plan.rules.max_turns} turns. action_type is one of {', '.join(ACT_KINDS)}. Answer with one JSON "
        'object and nothing else: {"script": [{"speaker": "NAME", "action_type": "...", "argument": "..."}]}'
    )


async def write_script(plan: EpisodePlan, caller: SeatCaller) -> list[tuple[int, Act]]:
    """The script as (seat, act). Raises OutageError, or UnreadableError after one re-ask."""
    return await caller.ask_for(script_prompt(plan), SCRIPT_SCHEMA, "script", lambda one: _read(one, plan), "re-ask")


def _read(answer: ModelAnswer, plan: EpisodePlan) -> list[tuple[int, Act]]:
    if answer.ending == "declined":
        raise UnreadableError(f"the model declines to write it: {answer.text[:200]}")
    if answer.ending == "cut":
        raise UnreadableError("the script was cut off at the limit of its length; allow more with #tokens=8000")
    return read_script(answer.text, plan)


def read_script(text: str, plan: EpisodePlan) -> list[tuple[int, Act]]:
    """The turns in an answer, cut at the turn limit. Raises UnreadableError naming the turn."""
    rows = read_object(text).get("script")
    if not isinstance(rows, list) or not rows:
        raise UnreadableError("script is no list of turns")
    seats = {name.casefold(): seat for seat, name in enumerate(plan.names)}
    seats |= {name.split()[0].casefold(): seat for seat, name in enumerate(plan.names)}
    found = []
    for number, row in enumerate(rows[: plan.rules.max_turns], start=1):
        speaker = str(row.get("speaker", "")) if isinstance(row, dict) else ""
        seat = seats.get(speaker.strip().casefold())
        if seat is None:
            raise UnreadableError(
                f"turn {number}: there is no speaker {speaker[:60]!r}; known: {', '.join(plan.names)}"
            )
        found.append((seat, read_act(msgspec.json.encode(row).decode()).act))
    return found
