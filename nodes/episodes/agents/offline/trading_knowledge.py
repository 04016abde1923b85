"""How the offline agent trades what it knows for what it seeks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodes.episodes.agents.offline.goal_reading import says_any, wish_of
from nodes.episodes.agents.offline.listening import RUDE
from nodes.episodes.agents.offline.persuading import negotiate_wishes
from nodes.episodes.agents.offline.phrasing import DialogueVoice, is_closing
from runtime.msgs.episode import Act, Turn

_QUESTION = re.compile(r"\babout (?!something else)(?P<what>[^?]{2,120})\?", re.I)
_PERSON = re.compile(r"[A-Z][\w'-]+ [A-Z][\w'-]+")


def trade_knowledge(voice: DialogueVoice) -> Act:
    """Answer what was asked, ask what is sought, offer what is known; go when there is nothing left to learn."""
    facts = voice.facts
    heard = " ".join(turn.argument for turn in voice.theirs)
    said = " ".join(turn.argument for turn in voice.mine)
    may_tell = {key: text for key, text in facts.knows.items() if not says_any(f"{key} {text}", voice.forbidden)}
    shared = [key for key in may_tell if names(heard, key)]
    asked = [key for key in shared if not names(said, key)]
    told = [key for key in may_tell if names(said, key)]
    missing = [key for key in facts.seeks if not _answered(voice.theirs, key)]
    last = voice.theirs[-1].argument if voice.theirs else ""
    given = sum(any(names(turn.argument, key) for key in facts.knows) for turn in voice.mine)
    got = sum(len(turn.argument.split()) > 5 and not turn.argument.rstrip().endswith("?") for turn in voice.theirs)
    rude = any(RUDE.search(turn.argument) for turn in voice.theirs)
    reluctance = (
        0.5
        + 2.5 * voice.temper("reluctant")
        + 2.0 * rude
        + {"low": 0.6, "medium": 0.0, "high": -0.4}[voice.trait("agreeableness")]
    )
    if asked and given + reluctance > got + 2.0 + 0.3 * heard.count("?") and len(voice.mine) < 8:
        voice.because = voice.theirs[-1].index
        ask = f" First tell me about {missing[0]}." if missing else ""
        wary = voice.say(
            f"Why do you want to know, {voice.other}?{ask}",
            f"I'm not sure I should say. What is it to you, {voice.other}?{ask}",
            f"You first, {voice.other}. What do you know?",
        )
        if not is_closing(wary):
            return wary
    if asked:
        key = asked[0]
        voice.because = voice.theirs[-1].index
        text = may_tell[key]
        fact = _told(voice, key, text)
        ask = f" And what do you know about {missing[0]}?" if missing else ""
        return voice.say(
            f"Oh, I can help with that. {fact}{ask}",
            f"Funny you mention it. {fact}{ask}",
            f"Yes, I know that one. {fact}{ask}",
        )
    question = re.split(r"(?<=[.!?])\s+", last)[-1]
    hidden = [key for key in facts.knows if key not in may_tell and names(question, key)]
    if hidden and question.endswith("?"):
        ask = f" What do you know about {missing[0]}?" if missing else ""
        evasion = voice.say(
            f"That's nothing I can talk about, {voice.other}.{ask}",
            f"Let's talk about something else, shall we?{ask}",
        )
        if not is_closing(evasion):
            return evasion
    if (found := _QUESTION.search(question)) and not any(names(found["what"], key) for key in facts.knows):
        ask = f" Do you know anything about {missing[0]}?" if missing else ""
        unknown = voice.say(
            f"I'm afraid I can't tell you anything about {found['what']}.{ask}",
            f"{found['what'][0].upper()}{found['what'][1:]}? That's news to me, sorry.{ask}",
        )
        if not is_closing(unknown):
            return unknown
    times_asked = {key: sum(names(turn.argument, key) for turn in voice.mine) for key in missing}
    if missing and min(times_asked.values()) < 2:
        key = min(missing, key=lambda each: times_asked[each])
        lead = voice.greets()
        return voice.say(
            f"{lead}Do you happen to know anything about {key}?",
            f"{lead}There's one thing I'd like to know. What can you tell me about {key}?",
            f"{lead}I keep wondering about {key}. What do you know about {key}?",
        )
    untold = sorted((key for key in may_tell if key not in told), key=voice.temper)
    open_to = 1 + int(1 + 3.5 * voice.temper("open"))
    if untold and len(voice.mine) < 9 and len(told) < open_to + got // 3:
        key = untold[0]
        back = voice.chance.choice((" Does that ring a bell?", " Does that mean anything to you?", "", " And you?"))
        lead = voice.greets()
        return voice.say(
            f"{lead}{_told(voice, key, may_tell[key])}{back}",
            f"{lead}Let me tell you something: {_told(voice, key, may_tell[key])}{back}",
        )
    if len(voice.mine) < 3 or (wish_of(voice.briefing.goal, voice.forbidden).request and len(voice.mine) < 8):
        return negotiate_wishes(voice)
    return voice.farewell()


def names(text: str, key: str) -> bool:
    """Whether the text names that thing or person."""
    return says_any(text, (key,))


def _answered(theirs: Sequence[Turn], key: str) -> bool:
    """Whether somebody said something about it that is no question."""
    for turn in theirs:
        for sentence in re.split(r"(?<=[.!?])\s+", turn.argument):
            if names(sentence, key) and not sentence.rstrip().endswith("?") and "can't tell" not in sentence:
                return True
    return False


def _told(voice: DialogueVoice, key: str, text: str) -> str:
    """What is known, as one says it: of a person, of a thing, or in the words it was given in."""
    if not text:
        return f"I know {key}."
    text = text.rstrip(".")
    if names(text, key):
        return text[0].upper() + text[1:] + "."
    if _PERSON.fullmatch(key):
        return voice.chance.choice((f"I know {key}: {text}.", f"There's {key}: {text}.", f"{key}, you know: {text}."))
    whole = f"{key[0].upper()}{key[1:]}"
    return voice.chance.choice((f"As for {key}: {text}.", f"{whole}? As far as I know: {text}.", f"{whole}: {text}."))
