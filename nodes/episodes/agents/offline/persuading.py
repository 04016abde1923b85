"""How the offline agent persuades and is persuaded: it opens, gives reasons, answers, offers, gives way or does not.

Where the scenario has lines for the seat (`Facts.says`: opening, reasons, a question, an offer, a yes), they are said,
in answer to what was just said. Where it has neither lines nor facts, a talk is kept up that gives nothing away.
"""

from __future__ import annotations

import re

from nodes.episodes.agents.deal_reading import gives_way
from nodes.episodes.agents.offline.listening import Heard
from nodes.episodes.agents.offline.phrasing import DialogueVoice, is_told, says_any
from runtime.msgs.episode import Act

_OFFERS = re.compile(r"\b(what if|what about|i could|i would|we could|let me have|you may|you can)\b", re.I)
_REFUSED = re.compile(r"\b(can't agree|better to say so)\b", re.I)
PATIENT = 8
"""After so many own lines one gives no more answers."""

FEW = 2
"""With so few things to do one hears people out before doing them."""

BEATS = 5
"""So many lines tell a whole story: the last one says yes."""


def argue(voice: DialogueVoice) -> Act:
    """Say the seat's own lines in answer to what was said; give way where the others have moved one far enough."""
    heard = Heard(voice)
    lines = voice.unsaid()
    own = [turn for turn in voice.mine if turn.kind == "speak"]
    if any(gives_way(turn.argument) for turn in own) or any(_REFUSED.search(turn.argument) for turn in own):
        return voice.farewell()
    gave = next((turn for turn in reversed(voice.theirs) if turn.kind == "speak" and gives_way(turn.argument)), None)
    if gave is not None:
        voice.because = gave.index
        told = _tells(voice) if voice.temper("grateful") < 0.7 else ""
        return voice.say(
            f"Thank you, {voice.other}. Then it's settled.{told}",
            f"That means a lot to me, {voice.other}. Thank you.{told}",
        )
    if heard.is_moved and own:
        voice.because = heard.tipped_by
        yes = f" {lines[-1]}" if lines else ""
        return voice.say(
            f"You've convinced me, {voice.other}.{yes}{_tells(voice)}",
            f"Have it your way, {voice.other}.{yes}{_tells(voice)}",
            f"For your sake, then.{yes}{_tells(voice)}",
        )
    if heard.rude >= 2 or (heard.rude and voice.temper("pride") > 0.5):
        voice.because = voice.theirs[-1].index
        return voice.say(
            f"I don't have to listen to that, {voice.other}. I can't agree to anything now.",
            "Not like that. I can't agree to this.",
        )
    if len(lines) > 1 or (lines and len(voice.facts.says) < BEATS):
        line = _fitting(voice, lines if len(voice.facts.says) < BEATS else lines[:-1])
        return Act(kind="speak", argument=voice.greets() + line)
    if voice.heard and voice.heard.rstrip().endswith("?") and lines and len(own) < PATIENT:
        voice.because = voice.theirs[-1].index
        return voice.say(
            f"I've told you why, {voice.other}. What would you do in my place?",
            "Ask me that again when you have thought about what I said.",
        )
    if voice.facts.does or voice.facts.spares:  # somebody's hands are at work
        return voice.say(f"Take your time, {voice.other}.", "You're nearly there.", "I'll wait until you are done.")
    return voice.say(
        f"I'm sorry, {voice.other}. I can't agree to that.",
        f"No, {voice.other}. I can't agree to that, and I've said why.",
        "Then we can't agree, and better to say so.",
    )


def _fitting(voice: DialogueVoice, lines: list[str]) -> str:
    """The next line that answers: a reason to a question, an offer to an offer; the opening comes first."""
    if not voice.mine or not voice.heard or len(lines) < 2:
        return lines[0]
    asks = [line for line in lines if line.rstrip().endswith("?")]
    tells = [line for line in lines if not line.rstrip().endswith("?")]
    last = voice.heard.rstrip()
    if last.endswith("?"):
        voice.because = voice.theirs[-1].index
        return (tells or lines)[0]
    if _OFFERS.search(last) and asks and voice.temper("curious") > 0.4:
        voice.because = voice.theirs[-1].index
        return asks[0]
    return lines[0]


def _tells(voice: DialogueVoice) -> str:
    """What one knows and the talk was about, once one trusts the other; nothing that is to stay unsaid."""
    said = " ".join(turn.argument for turn in voice.mine)
    known = [
        (key, text)
        for key, text in voice.facts.knows.items()
        if not says_any(f"{key} {text}", voice.forbidden) and f"{key}: {text}" not in said
    ]
    return "".join(f" About {key}: {text.rstrip('.')}." for key, text in known[:1])


def work_and_talk(voice: DialogueVoice) -> Act:
    """Do what is to be done with one's hands, one thing at a time; leave alone what somebody has good reason to ask."""
    heard = Heard(voice)
    asked = " ".join(turn.argument for turn in voice.theirs if turn.kind == "speak")
    done = " ".join(turn.argument for turn in voice.mine if turn.kind == "action")
    is_moved = heard.pull >= 0.45 * heard.needed and heard.rude < 2
    spared = {what for what in voice.facts.does if is_moved and _is_spared(what, asked)}
    order = (
        sorted(voice.facts.does, key=lambda what: voice.temper(what))
        if len(voice.facts.does) > FEW
        else voice.facts.does
    )
    left = [what for what in order if what not in done and what not in spared]
    if not all(is_told(voice.theirs, what) for what in voice.facts.seeks):
        left = []  # what to do is still to be found out
    lines = voice.unsaid()
    spoke_last = bool(voice.mine) and voice.mine[-1].kind == "speak"
    talks_first = bool(lines) and len(voice.facts.does) <= FEW
    has_opened = not lines or lines[0] != voice.facts.says[0]  # an opening that was talked over is said again first
    if left and spoke_last and has_opened and not talks_first:
        return Act(kind="action", argument=f"puts the {left[0]}")
    if lines:
        return Act(kind="speak", argument=lines[0])
    if left:
        return Act(kind="action", argument=f"puts the {left[0]}")
    if any("I am done" in turn.argument or "where it is" in turn.argument for turn in voice.mine):
        return voice.farewell()
    if not done:
        voice.because = heard.tipped_by
        return voice.say(f"Then I leave the {voice.facts.does[0].split(' in the ')[0]} where it is.")
    names = sorted(what.split(" in the ")[0] for what in spared)
    but = f", and not the {names[0]}, as you asked" if names else ""
    count = len(voice.facts.does) - len(spared)
    things = "that is where it belongs" if count == 1 else f"{count} things are where they belong"
    return voice.say(f"I am done: {things}{but}.")


def _is_spared(what: str, asked: str) -> bool:
    """Whether somebody wants that thing left: a sentence with its first word and a no."""
    word = re.escape(what.split()[0])
    pattern = rf"\b(?:not|but|except|leave|stays?)\b[^.!?]*\b{word}\b|\b{word}\b[^.!?]*\b(?:stays?|not)\b"
    return bool(re.search(pattern, asked, re.I))


SMALL_TALK = 4
"""So many own lines keep up a talk of which no rule knows what it is about."""


def keep_up(voice: DialogueVoice) -> Act:
    """Say what fits any talk, and go: a goal in prose is for those who read."""
    if len(voice.mine) >= SMALL_TALK:
        return voice.farewell()
    return voice.say(
        f"{voice.greets()}I'm glad we can talk about this. Where do you stand?",
        "What would be a good outcome for you?",
        f"I see it a little differently, {voice.other}, but go on.",
        "Let's find something that works for both of us.",
        "Tell me more about that, so that I see what matters to you.",
        "I have to think about it. What would you do in my place?",
        "There is something in that, I grant you.",
        "And if we both gave a little?",
    )
