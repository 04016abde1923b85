"""How the offline agent trades what it knows for what it seeks."""

from __future__ import annotations

import re

from nodes.episodes.agents.offline.listening import RUDE
from nodes.episodes.agents.offline.phrasing import DialogueVoice, is_closing, is_told, says_any
from runtime.msgs.episode import Act


def trade_knowledge(voice: DialogueVoice) -> Act:
    """Answer what was asked, ask what is sought, offer what is known; go when there is nothing left to learn."""
    facts = voice.facts
    heard = " ".join(turn.argument for turn in voice.theirs)
    said = " ".join(turn.argument for turn in voice.mine)
    may_tell = {key: text for key, text in facts.knows.items() if not says_any(f"{key} {text}", voice.forbidden)}
    told = [key for key in may_tell if says_any(said, (key,))]
    asked = [key for key in may_tell if key not in told and says_any(heard, (key,))]
    missing = [key for key in facts.seeks if not is_told(voice.theirs, key)]
    given = sum(says_any(turn.argument, tuple(facts.knows)) for turn in voice.mine)
    got = sum(len(turn.argument.split()) > 5 and not turn.argument.rstrip().endswith("?") for turn in voice.theirs)
    rude = any(RUDE.search(turn.argument) for turn in voice.theirs)
    stiff = {"low": 0.6, "medium": 0.0, "high": -0.4}[voice.trait("agreeableness")]
    reluctance = 0.5 + 2.5 * voice.temper("reluctant") + 2.0 * rude + stiff
    ask = f" And what do you know about {missing[0]}?" if missing else ""
    if asked:
        voice.because = voice.theirs[-1].index
        if given + reluctance > got + 2.0 + 0.3 * heard.count("?") and len(voice.mine) < 8:
            wary = voice.say(
                f"Why do you want to know, {voice.other}?{ask}", f"You first, {voice.other}. What do you know?"
            )
            if not is_closing(wary):
                return wary
        fact = _told(asked[0], may_tell[asked[0]])
        return voice.say(f"Oh, I can help with that. {fact}{ask}", f"Yes, I know that one. {fact}{ask}")
    question = re.split(r"(?<=[.!?])\s+", voice.heard)[-1]
    if question.endswith("?") and any(key not in may_tell and says_any(question, (key,)) for key in facts.knows):
        evasion = voice.say(
            f"That's nothing I can talk about, {voice.other}.{ask}", f"Let's talk about something else, shall we?{ask}"
        )
        if not is_closing(evasion):
            return evasion
    times_asked = {key: sum(says_any(turn.argument, (key,)) for turn in voice.mine) for key in missing}
    if missing and min(times_asked.values()) < 2:
        key = min(missing, key=lambda each: times_asked[each])
        return voice.say(
            f"{voice.greets()}Do you happen to know anything about {key}?",
            f"{voice.greets()}There's one thing I'd like to know. What can you tell me about {key}?",
            f"{voice.greets()}I keep wondering about {key}. What do you know about {key}?",
        )
    untold = sorted((key for key in may_tell if key not in told), key=voice.temper)
    open_to = 1 + int(1 + 3.5 * voice.temper("open"))
    if untold and len(voice.mine) < 9 and len(told) < open_to + got // 3:
        fact = _told(untold[0], may_tell[untold[0]])
        return voice.say(
            f"{voice.greets()}{fact} Does that mean anything to you?",
            f"{voice.greets()}Let me tell you something: {fact}",
        )
    return voice.farewell()


def _told(key: str, text: str) -> str:
    """What is known, as one says it: of a person or a thing, or in the words it was given in."""
    text = text.rstrip(".")
    if not text:
        return f"I know {key}."
    return f"{text[0].upper()}{text[1:]}." if says_any(text, (key,)) else f"As for {key}: {text}."
