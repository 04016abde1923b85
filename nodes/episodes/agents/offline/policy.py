"""The offline agent: pursues its own goal by rules. Pure: a sight and a random generator in, a choice out.

It bargains where the scenario has a deal (`bargaining`), trades what it knows (`trading_knowledge`), works where it has
something to do with its hands, and otherwise argues for what it wants (`persuading`) and is moved (`listening`). It
never says its secret, nor what it hides.
"""

from __future__ import annotations

import random

from nodes.episodes.agents.offline.bargaining import bargain_items, bargain_number
from nodes.episodes.agents.offline.persuading import argue, keep_up, work_and_talk
from nodes.episodes.agents.offline.phrasing import DialogueVoice, is_farewell
from nodes.episodes.agents.offline.trading_knowledge import trade_knowledge
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from runtime.msgs.episode import Act


def decide(sight: AgentObservation, chance: random.Random, seed: int = 0) -> AgentChoice:
    """What the seat does now, and because of which turn; in asynchronous talk with an urgency."""
    voice = DialogueVoice(sight, chance, seed)
    if sight.observation.asks == "bid":
        return _bid(voice)
    act = _act(voice)
    return AgentChoice(act=act, because=voice.because)


def _act(voice: DialogueVoice) -> Act:
    sight = voice.sight
    deal, facts = voice.briefing.deal, voice.facts
    if any(turn.kind == "leave" for turn in voice.theirs) and len(sight.others) == 1:
        return Act(kind="leave")
    if voice.mine and is_farewell(voice.mine[-1]):
        return Act(kind="leave")
    if deal is not None and deal.unit and (facts.wants or facts.target is not None or facts.reserve is not None):
        return bargain_number(voice)
    if deal is not None and deal.items and facts.worth:
        return bargain_items(voice)
    if facts.does and facts.role == "robot":
        return work_and_talk(voice)
    if facts.says:
        return argue(voice)
    if facts.knows or facts.seeks:
        return trade_knowledge(voice)
    return keep_up(voice)


def _bid(voice: DialogueVoice) -> AgentChoice:
    """How much to say now: addressed by a question a lot, having just spoken little; now and then a nod."""
    sight, chance = voice.sight, voice.chance
    seen = sight.observation
    last = next((turn for turn in reversed(sight.turns) if turn.kind != "none"), None)
    if seen.speaking:
        words = seen.so_far.split()
        if sight.briefing.deal and len(words) > 12 and chance.random() < 0.15:
            return AgentChoice(act=_act(voice), urgency=0.85)
        if len(words) > 6 and chance.random() < 0.3:
            return AgentChoice(act=Act(kind="speak", argument=chance.choice(["Mhm.", "I see.", "Right."])), urgency=0.4)
        return AgentChoice(urgency=0.0)
    urgency = 0.45 + 0.1 * chance.random()
    if last is not None and last.speaker != sight.name:
        urgency = 0.7 if last.argument.rstrip().endswith("?") else 0.6
        if sight.name.split()[0] in last.argument:
            urgency += 0.1
    elif last is not None and not seen.silence_s:
        return AgentChoice(urgency=0.1)
    act = _act(voice)
    return AgentChoice(act=act, urgency=round(urgency + 0.05 * chance.random(), 3), because=voice.because)
