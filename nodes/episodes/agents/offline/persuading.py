"""How the offline agent persuades and is persuaded: it opens, gives reasons, answers, offers, gives way or does not.

Where the scenario has lines for the seat (`Facts.says`: opening, reasons, a question, an offer, a yes), they are said,
in answer to what was just said. Where it has none, the words are made from the goal's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nodes.episodes.agents.deal_reading import gives_way
from nodes.episodes.agents.offline.goal_reading import says_any, wish_of
from nodes.episodes.agents.offline.listening import Heard
from nodes.episodes.agents.offline.phrasing import SETTLED, DialogueVoice, is_closing
from runtime.msgs.episode import Act

_REQUEST = re.compile(r"\b(?:could|would|can|will) you (?:please |maybe |perhaps )?(?P<what>[^?.;]{4,160})\?", re.I)
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
        lead = voice.greets() or voice.takes_up(line)
        return Act(kind="speak", argument=lead + line)
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
    if not all(_is_told(what, voice) for what in voice.facts.seeks):
        left = []  # what to do is still to be found out
    lines = voice.unsaid()
    spoke_last = bool(voice.mine) and voice.mine[-1].kind == "speak"
    talks_first = bool(lines) and len(voice.facts.does) <= FEW
    has_opened = not lines or lines[0] != voice.facts.says[0]  # an opening that was talked over is said again first
    if left and spoke_last and has_opened and not talks_first:
        return Act(kind="action", argument=f"puts the {left[0]}")
    if lines:
        return Act(kind="speak", argument=voice.takes_up(lines[0]) + lines[0])
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


def _is_told(what: str, voice: DialogueVoice) -> bool:
    """Whether somebody has said it, other than in a question."""
    told = " ".join(turn.argument for turn in voice.theirs if turn.kind == "speak")
    return any(what in part.lower() and not part.endswith("?") for part in re.split(r"(?<=[.!?]) ", told))


def _is_spared(what: str, asked: str) -> bool:
    """Whether somebody wants that thing left: a sentence with its first word and a no."""
    word = re.escape(what.split()[0])
    pattern = rf"\b(?:not|but|except|leave|stays?)\b[^.!?]*\b{word}\b|\b{word}\b[^.!?]*\b(?:stays?|not)\b"
    return bool(re.search(pattern, asked, re.I))


def negotiate_wishes(voice: DialogueVoice) -> Act:
    """Ask, give a reason, hear the other out, offer a trade, settle."""
    wish = wish_of(voice.briefing.goal, voice.forbidden)
    stage = len(voice.mine)
    asked = _asked_of_me(voice)
    wanted = wish.request or (f"let me {wish.aim}" if wish.aim else "")
    if any(SETTLED.search(turn.argument) for turn in voice.sight.turns if turn.kind == "speak"):
        if any(SETTLED.search(turn.argument) for turn in voice.mine):
            return voice.farewell()
        return voice.say(
            f"Good, then it's settled. Thank you, {voice.other}.",
            f"I'm glad, {voice.other}. Then we have an understanding.",
        )
    if stage == 0:
        return _open(voice, wish.request, wish.question, wish.aim)
    if asked and asked == wanted:
        return voice.say(
            f"Then we want the same, {voice.other}. Let's do it that way.",
            "That is just what I want as well. Then it's settled.",
        )
    if voice.heard_yes():
        return voice.say(
            f"Thank you, {voice.other}, that means a lot. Let's do it that way.",
            f"Then it's settled, {voice.other}. Thank you.",
        )
    if asked and stage >= 3 and wanted and not (wish.refusal and stage == 3):
        return voice.say(
            f"That sounds fair: I {_mirrored(asked)}, and you {wanted}. That is settled, then?",
            f"All right, {voice.other}. I'll do my part if you do yours. Let's do it that way.",
        )
    if asked and stage >= 4 and not wanted:
        return voice.say(
            f"You have a point, {voice.other}. All right, I'll {_mirrored(asked)}. That is settled, then.",
            f"All right, {voice.other}, for you I'll {_mirrored(asked)}. Let's do it that way.",
        )
    if asked and stage == 2 and not wish.refusal:
        trade = f" If I {_mirrored(asked)}, would you {wanted}?" if wanted else " I think I can do that, gladly."
        return voice.say(
            f"Let me meet you halfway.{trade}",
            f"I don't want either of us to lose out, {voice.other}.{trade}",
        )
    if asked and stage == 1 and not wish.refusal:
        return voice.say(
            f"I understand that this matters to you. To {_mirrored(asked)} is not easy for me, though. "
            "What makes it so important?",
            f"Hm. I'd want to think about that, {voice.other}. Why is it so important to you?",
        )
    if wish.refusal and stage <= 3 and (asked or voice.theirs):
        reason = f" {wish.reasons[0]}" if wish.reasons else ""
        against = voice.say(
            f"I'd rather not {wish.refusal}, {voice.other}.{reason}",
            f"To be honest, I'd prefer not to {wish.refusal}.{reason}",
        )
        if not is_closing(against):
            return against
    if wish.reasons and stage <= 4:
        told = [reason for reason in wish.reasons if not any(reason in turn.argument for turn in voice.mine)]
        if told:
            ask = f" So, could you {wish.request}?" if wish.request else ""
            return voice.say(
                f"You see, {_lower(told[0])}{ask}",
                f"{told[0]} That's why it matters to me.",
                f"{told[0]} I hope you understand, {voice.other}.",
            )
    if wish.question and stage <= 3:
        return voice.say(
            f"You would tell me {wish.question}, wouldn't you?",
            f"I don't mean to pry, but I'd really like to know {wish.question}.",
            f"Between us, {voice.other}: {wish.question}?",
        )
    if wanted and stage <= 5:
        return voice.say(
            f"I would not ask if it weren't important to me. Could you {wanted}?",
            f"It would make a real difference, {voice.other}. What would you need from me in return?",
            f"Think about it: in the end it helps both of us if you {wanted}.",
            f"What is holding you back, {voice.other}?",
        )
    if stage <= 4:
        return voice.say(
            f"I see it a little differently, {voice.other}, but go on. What would be a good outcome for you?",
            f"That's fair, {voice.other}. I can live with that.",
            "Let's find something that works for both of us.",
        )
    return voice.farewell()


def _open(voice: DialogueVoice, request: str, question: str, aim: str) -> Act:
    lead = voice.greets() or voice.takes_up("")
    if request:
        return voice.say(
            f"{lead}There is something I wanted to ask you. Could you {request}?",
            f"{lead}I'll come straight to it: would you {request}?",
        )
    if question:
        return voice.say(
            f"{lead}I was hoping you could help me. I'd like to know {question}.",
            f"{lead}I've been wondering {question}. What do you think?",
        )
    if aim:
        return voice.say(
            f"{lead}I'd like to {aim}, and I hope we can do that together.",
            f"{lead}What I have in mind is this: I would like to {aim}.",
        )
    return voice.say(
        f"{lead}How are you doing with all this?",
        f"{lead}I'm glad we can talk about this. Where do you stand?",
    )


def _asked_of_me(voice: DialogueVoice) -> str:
    """The others' newest request, as a verb phrase; "" where none was made."""
    for turn in reversed(voice.theirs):
        found = _REQUEST.search(turn.argument) if turn.kind == "speak" else None
        if found and not re.match(r"come a little|make it|need|move|tell me|say", found["what"]):
            return found["what"].strip()
    return ""


def _lower(text: str) -> str:
    return text[0].lower() + text[1:] if re.match(r"(The|There|A|An|It|They|He|She|One|Some)\b", text) else text


def _mirrored(request: str) -> str:
    """A request made to me as I say it: "lend me your drill" -> "lend you my drill"."""
    swap: dict[str, str] = {"me": "you", "my": "your", "your": "my", "you": "me", "mine": "yours", "yours": "mine"}
    swap |= {"i": "you", "myself": "yourself", "yourself": "myself"}
    replace: Callable[[re.Match[str]], str] = lambda found: swap[found[0].lower()]  # noqa: E731
    return re.sub(rf"\b(?:{'|'.join(swap)})\b", replace, request, flags=re.I)
