"""What the scripted planner answers to a question: from what is seen, done, ordered and told. Pure functions.

What it does not know it says so, in one sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodes.msgs import Reference, Scene, SeenObject, SkillSpec
from nodes.planner.cues import cue
from nodes.planner.lexicon import plural_of
from nodes.planner.orders import Order
from nodes.planner.parser import segments_of
from nodes.planner.referents import fits, held_by_robot, place_of
from nodes.planner.replies import (
    MOST_NAMED,
    abilities,
    describe,
    in_short,
    list_words,
    short,
    small,
    things_words,
    where_are,
)

if TYPE_CHECKING:
    from nodes.planner.dialogue import Finished

STATES = ("dirty", "clean", "full", "half full", "empty", "open", "closed", "shut")
UNKNOWN = "I do not know that."
_SAME_STATE = {"shut": "closed"}
_ABOUT_ROBOT = cue("answers", "about_robot")
_PAST = cue("answers", "past")
_MOVED = cue("answers", "moved")
_LEFT = cue("answers", "left")
_DONE = cue("answers", "done")
_NEXT = cue("answers", "next")
_LONG = cue("answers", "long")
_SAID = cue("answers", "said")
_WHOSE = cue("answers", "whose")
_WHY = cue("answers", "why")
_WHO = cue("answers", "who")
_CAN = cue("answers", "can")
_STOPPED = re.compile(r"(?=.*\b(?:why|how come|what for|what made|who)\b).*\b(?:stop|stopped|stopping|halt|halted)\b")
_WAITS = re.compile(r"(?=.*\b(?:why|how come|what)\b).*\b(?:waiting|not moving|standing (?:still|there)|stuck)\b")
_TOUCHED = cue("answers", "touched")


@dataclass(frozen=True, slots=True)
class WhyLeft:
    """Why something is left alone: who said what of which things."""

    ids: frozenset[str]
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Answerable:
    """What a question is answered from."""

    scene: Scene
    skills: Sequence[SkillSpec] = ()
    order: Order | None = None
    later: Sequence[Order] = ()
    done: Sequence[Finished] = ()
    by: str = ""
    asked: str = ""  # the question that the robot waits with
    is_stopped: bool = False  # nothing moves before a "go on"
    stop: tuple[str, str] = ("", "")  # who stopped it last, by which words
    told: Sequence[WhyLeft] = ()
    heard: Sequence[tuple[str, str]] = field(default=())  # who said what, the newest last


def answer(
    text: str, about: Sequence[Reference], things: Sequence[SeenObject], now: Answerable, speaker: str = ""
) -> str:
    """The answer to a question or a greeting. `about`: what it asks about, as read; `things`: which these are."""
    asked = [
        one for one in re.findall(r"[^.!?]+[.!?]*", text) if one.rstrip().endswith("?")
    ]  # and not the thanks before
    words = f" {' '.join(word for segment in segments_of(' '.join(asked) or text) for word in segment.words)} "
    place = next((one.label for one in now.scene.things if one.is_place and f" {one.label} " in words), "")
    for answered in (_of_talk, _of_work, _of_things):
        if said := answered(words, about, things, place, now, speaker):
            return said
    return f"{UNKNOWN} {doing(now)}"


def is_of_all(text: str) -> bool:
    """Whether it asks of the work as a whole: "is that everything done?"."""
    return bool(_DONE.search(text.lower()) or _LEFT.search(text.lower()))


def answer_to_manners(text: str) -> str:
    """A short word to thanks, a greeting or a goodbye; "" to anything else."""
    words = f" {' '.join(word for segment in segments_of(text) for word in segment.words)} "
    if re.search(r" (?:thanks|thank|cheers|much obliged) ", words):
        return "You are welcome."
    if re.search(r" (?:goodbye|bye|good night|see you) ", words):
        return "Goodbye."
    if re.match(r" (?:oh |ah |well )*you are (?:such |really |truly )?(?:a|an|my|the) [a-z]+ (?:robot )?$", words):
        return "Thank you."  # "You are a star."
    if re.search(r" (?:well done|good (?:robot|job|boy|girl|work)|nice work|love it) ", words):
        return "Thank you."
    return ""


def _of_talk(
    words: str, about: Sequence[Reference], things: Sequence[SeenObject], place: str, now: Answerable, speaker: str
) -> str:
    """Of who said what, of the robot itself, and manners."""
    last = now.order or (now.done[-1].order if now.done else None)
    if not things and (_STOPPED.search(words) or (now.is_stopped and _WAITS.search(words))):
        told = f"{now.stop[0] or 'Somebody'} said: “{now.stop[1]}” " if now.stop[1] else ""
        return f"{told}{following(now) if now.is_stopped else 'That is why I stopped.' if told else ''}".strip()
    if _SAID.search(words) and now.heard:
        return _said(words, things, now, speaker)
    if _WHO.search(words):
        return _who(last, now.by)
    if any(f" {word} " in words for word in ("thank", "thanks", "well done", "good job", "nice work")):
        return "You are welcome."
    if " who are you " in words or " help " in words or (_CAN.search(words) and not things):
        return f"I am a robot with one arm. I can {abilities(now.skills) or 'do nothing yet'}."
    if _ABOUT_ROBOT.search(words):
        return "I am a robot; I cannot tell you more about that."
    if re.search(r"\bwhat (?:do|does|is|did) .*\b(?:mean|on about|talking about)\b", words):
        others = [one for one in now.heard[:-1] if one[0] != speaker]
        quoted = f"{others[-1][0]} said: “{others[-1][1]}” " if others else ""
        return f"{quoted}{now.asked or 'I cannot tell you more than that.'}"
    return ""


def _of_work(
    words: str, about: Sequence[Reference], things: Sequence[SeenObject], place: str, now: Answerable, speaker: str
) -> str:
    """Of what is done, was done and will be."""
    if _WHY.search(words):
        return _why(things, now)
    if _LONG.search(words):
        return f"I cannot tell how long that takes. {doing(now)}"
    is_past = _PAST.search(words) is not None
    if things and _TOUCHED.search(words):
        return " ".join(_touched(one, now) for one in things[:MOST_NAMED])
    if is_past and _MOVED.search(words) and not (things and (" where " in words or _is_yes_or_no(words))):
        if " not " in words or "n't " in words:
            return _finished(now)
        return _done(now, place if place and re.search(rf" (?:in|on|into|onto|to) the {place} ", words) else "")
    if not things and _DONE.search(words) and not place:
        return _finished(now)
    if " how many " in words and re.search(r" (?:going to|will you|left to|to go) ", words):
        return _finished(now)
    is_of_one = any(f" {one.label} " in words or (one.colour and f" {one.colour} " in words) for one in things)
    if (
        (_NEXT.search(words) and not (is_of_one or place))
        or " are you holding " in words
        or " are you waiting " in words
    ):
        following = now.later if now.order is not None else ()
        then = f" Then I will {list_words(in_short(following))}." if following else ""
        return f"{doing(now)}{then}"
    if re.search(r" else .* (?:on|in) there ", words) and (
        last := now.order or (now.done[-1].order if now.done else None)
    ):
        return at_place(last.place or "table", now.scene)
    is_which = " which " in words or re.search(r" how many ", words)
    if _LEFT.search(words) and not things and not is_which:
        return _left(now, place)
    return ""


def _of_things(
    words: str, about: Sequence[Reference], things: Sequence[SeenObject], place: str, now: Answerable, speaker: str
) -> str:
    """Of what is seen."""
    scene = now.scene
    found = list(things) or [one for ref in about[:2] for one in _fitting(ref, scene)]
    unseen = next((one for one in about if not _fitting(one, scene)), None)
    if said := _which(words, found, place, now, speaker):
        return said
    if _WHOSE.search(words):
        return _whose(found, now)
    if " how many " in words and (about or found):
        return _how_many(words, about, place, now)
    if found and re.search(
        r" (?:something|anything|much|some|any|coffee|tea|water) (?:left |still |yet )?in "
        r"(?:it|there|that|the|this|my|your|his|her|mine) ",
        words,
    ):
        return _how(found, "full", scene)
    if (state := next((one for one in STATES if f" {one} " in words), "")) and found:
        return _how(found, state, scene)
    if " where " in words and found:
        return where_are(found, scene)
    if (
        unseen is not None
        and not things
        and (unseen.colour or any(f" {word} " in words for word in ("a", "any", "the", "where")))
    ):
        name = f"{unseen.colour} {unseen.label}".strip()
        return f"I have not seen a {short(name)}. It may be where I have not looked." if name else ""
    if things:
        kept = [_reason(one, now) for one in things]
        return " ".join(dict.fromkeys([where_are(things, scene), *(one for one in kept if one)]))
    if place and " where " in words:
        return f"The {place} is here."
    if place and any(f" {word} " in words for word in ("what", "anything", "is", "are", "which", "in", "on")):
        return at_place(place, scene)
    if " see " in words or " what is " in words or " there " in words or " where do things stand " in words:
        return _seen(scene)
    if any(f" {word} " in words for word in ("hello", "hi", "hey", "morning", "evening", "afternoon", "welcome")):
        return f"Hello. {doing(now)}"
    if any(f" {word} " in words for word in ("bye", "goodbye", "night", "see you")):
        return "Goodbye."
    return ""


def _touched(thing: SeenObject, now: Answerable) -> str:
    """Whether the robot moved it, from what it holds and what it has done."""
    if thing.id in held_by_robot(now.scene):
        return f"Yes, the {thing.name} is in my hand."
    done = next((one for one in reversed(now.done) for ref in one.moved if fits(thing, ref, now.scene)), None)
    if done is not None:
        return f"Yes. {things_words(tuple(ref for ref in done.moved if fits(thing, ref, now.scene)), done.order)}"
    return f"No, I have brought the {thing.name} nowhere. {where_are((thing,), now.scene)}"


def _which(words: str, found: Sequence[SeenObject], place: str, now: Answerable, speaker: str) -> str:
    """Which of several: by its place, its colour, what is in it or where it stands; "" where that is not asked."""
    words = words.replace(" 's ", " is ")
    asked = re.search(r" (?:which|what)(?: \w+){0,4}? (?:is|are|has|stands|lies|was|colour|color) ", words)
    if asked is None:
        return ""
    kinds = {one.label for one in now.scene.things if not one.is_place and _is_kind_in(one.label, words)}
    things = [one for one in now.scene.things if not one.is_place and (one.label in kinds or not kinds)]
    if kinds and place:
        there = [f"the {one.name}" for one in things if place_of(one.id, now.scene) == place]
        return f"{capital(list_words(there))} {'is' if len(there) == 1 else 'are'} {_at(place, now)}." if there else (
            f"I see no {list_words(sorted(kinds), 'or')} {_at(place, now)}.")  # fmt: skip
    if re.search(r" colou?r ", words) and found:
        return " ".join(f"That is the {one.name}." for one in found[:MOST_NAMED])
    if re.search(r" (?:something|anything|coffee|tea|water|milk) (?:left )?in (?:it|there) ", words):
        filled = [one for one in things if {"full", "half full"} & set(one.state)]
        return capital(f"{list_words([f'the {one.name}' for one in filled])}, as far as I see.") if filled else (
            "I do not see that anything is in one of them.")  # fmt: skip
    if re.search(
        r" (?:middle|between the (?:other )?(?:two|others)|nearer|nearest|closer|closest|further|furthest) ", words
    ):
        return _by_place(words, list(found) if len(found) > 1 else things, now, speaker)
    return ""


def _by_place(words: str, things: Sequence[SeenObject], now: Answerable, speaker: str) -> str:
    """Which one stands in the middle, or nearest; the speaker's place is known only where the speaker is seen."""
    if re.search(r" (?:middle|between) ", words):
        row = sorted(things, key=lambda one: one.x_m)
        return f"That is the {row[len(row) // 2].name}." if len(row) % 2 else "None of them is in the middle."
    people = [one for one in now.scene.people if one.id == speaker] or list(now.scene.people)
    if " you " in words and " me " not in words:
        at_m = (0.0, 0.0)
    elif len(people) == 1:
        at_m = (people[0].x_m, people[0].y_m)
    else:
        return "I do not see where you are, so I cannot tell."
    is_far = re.search(r" (?:further|furthest) ", words) is not None
    row = sorted(things, key=lambda one: math.dist(at_m, (one.x_m, one.y_m)), reverse=is_far)
    return f"That is the {row[0].name}." if row else ""


def _is_kind_in(label: str, words: str) -> bool:
    return any(f" {one} " in words or f" {one}s " in words for one in (label, plural_of(label)))


def _at(place: str, now: Answerable) -> str:
    return f"{next((one.relation for one in now.scene.relations if one.object == place), 'at')} the {place}"


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def _is_yes_or_no(words: str) -> bool:
    return re.match(r" (?:(?:so|and|but|oh|well) )*(?:did|have|has|was|were|had|you) ", words) is not None


def _said(words: str, things: Sequence[SeenObject], now: Answerable, speaker: str) -> str:
    ids = {one.id for one in things}
    about = [one for one in now.told if one.ids & ids]
    if about:
        return f"{about[-1].speaker or 'Somebody'} said: “{about[-1].text}”"
    before = [one for one in now.heard[:-1] if one[0] == speaker] or list(now.heard[:-1])
    if not before:
        return "You have told me nothing before that."
    return f"{before[-1][0] or 'Somebody'} said: “{before[-1][1]}” {now.asked}".strip()


def _who(order: Order | None, by: str) -> str:
    if order is None:
        return "Nobody has asked me for anything yet. I tell what I see."
    return f"{by or 'Somebody'} asked me to {small(describe(order))}."


def why_left(thing: SeenObject, told: Sequence[WhyLeft]) -> str:
    """Who said what of a thing that is left alone; "" where nobody did."""
    found = next((one for one in reversed(told) if thing.id in one.ids), None)
    return f"{found.speaker or 'somebody'} said: “{found.text}”" if found is not None else ""


def _reason(thing: SeenObject, now: Answerable) -> str:
    why = why_left(thing, now.told)
    return f"I leave the {thing.name}, as {why}" if why else ""


def _why(things: Sequence[SeenObject], now: Answerable) -> str:
    """Why something stands where it does, or why the robot does what it does."""
    meant = list(things) or ([] if now.order is not None else _left_alone(now))
    reasons = [why for one in meant if (why := _reason(one, now))]
    if reasons:
        return " ".join(reasons)
    if now.asked:
        return f"I wait for an answer: {now.asked}"
    if things:
        done = next((one for one in reversed(now.done) for ref in one.moved if ref.id in {x.id for x in things}), None)
        if done is not None:
            return _who(done.order, now.by)
        if now.order is not None:
            return f"I have not come to that yet. {doing(now)}"
        return f"Nobody has asked me to move {list_words([f'the {one.name}' for one in things[:MOST_NAMED]])}."
    return _who(now.order or (now.done[-1].order if now.done else None), now.by)


def _left_alone(now: Answerable) -> list[SeenObject]:
    return [one for one in now.scene.things if any(one.id in why.ids for why in now.told)]


def _done(now: Answerable, place: str = "") -> str:
    """All that was brought anywhere, and is still there."""
    moved: dict[tuple[str, str], list[Reference]] = {}
    for one in now.done:
        if one.order.skill == "place" and (not place or one.order.place == place):
            for ref in one.moved:
                thing = next((each for each in now.scene.things if fits(each, ref, now.scene)), None)
                if thing is None or place_of(thing.id, now.scene) == one.order.place:
                    moved.setdefault((one.order.place, one.order.relation), []).append(ref)
    if moved:
        orders = [
            (Order("place", tuple(refs), (), where, how), tuple(dict.fromkeys(refs)))
            for (where, how), refs in moved.items()
        ]
        return " ".join(things_words(refs, order) for order, refs in orders) + _besides(now)
    others = [small(describe(one.order)) for one in now.done[-3:] if one.order.skill != "place"]
    if others:
        return f"The last thing I was asked was to {others[-1]}."
    last = now.done[-1] if now.done else None
    if place:
        return f"I have put nothing there. {at_place(place, now.scene)}"
    if last is not None and last.moved:
        return f"The last thing I did: {things_words(last.moved, last.order)}"
    return f"I have finished nothing yet.{_besides(now)}"


def _besides(now: Answerable) -> str:
    return f" {doing(now)}" if now.order is not None else ""


def _finished(now: Answerable) -> str:
    """Whether all is done, and what is not."""
    left = _left_alone(now)
    kept = " ".join(why for one in left if (why := _reason(one, now)))
    if now.asked:
        return f"Not yet. {now.asked}"
    orders = [one for one in (now.order, *now.later) if one is not None]
    if orders:
        return f"Not yet: I still have to {list_words(in_short(orders))}. {kept}".strip()
    if not now.done:
        return f"I have nothing to do. {kept}".strip()
    return f"My part is done. {_done(now)} {kept}".strip()


def _left(now: Answerable, place: str) -> str:
    """What is still to be done, or still stands somewhere."""
    if place:
        return at_place(place, now.scene)
    orders = [one for one in (now.order, *now.later) if one is not None]
    todo = f"I still have to {list_words(in_short(orders))}." if orders else now.asked or "I have nothing left to do."
    moved = {ref.id for one in now.done for ref in one.moved}
    stands = [one for one in now.scene.things if not one.is_place and one.id not in moved]
    kept = " ".join(why for one in _left_alone(now) if (why := _reason(one, now)))
    return " ".join(one for one in (todo, where_are(stands, now.scene), kept) if one)


def _whose(things: Sequence[SeenObject], now: Answerable) -> str:
    said = [f"{one.owner} owns the {one.name}." for one in things if one.owner]
    said += [f"Of the {one.name}, {why}" for one in things if not one.owner and (why := why_left(one, now.told))]
    return " ".join(said) or (
        f"I do not know whose the {things[0].name} is." if things else "I do not know whose it is."
    )


def _how_many(words: str, about: Sequence[Reference], place: str, now: Answerable) -> str:
    ref = about[0] if about else Reference(label="*")
    label = (
        ref.label if ref.label not in ("", "*") and any(one.label == ref.label for one in now.scene.things) else "thing"
    )
    asked = Reference(label="" if label == "thing" else label, colour=ref.colour)
    found = [one for one in _fitting(asked, now.scene) if not one.is_place or one.label == label]
    found = [one for one in found if not place or place_of(one.id, now.scene) == place]
    where = (
        ""
        if not place
        else f" {next((one.relation for one in now.scene.relations if one.object == place), 'at')} the {place}"
    )
    return f"I see {len(found)} {ref.colour} {label if len(found) == 1 else plural_of(label)}{where}.".replace(
        "  ", " "
    )


def _how(found: Sequence[SeenObject], state: str, scene: Scene) -> str:
    told = [f"the {one.name} is {_state_of(one)}" for one in found[:MOST_NAMED] if one.state]
    if told:
        return f"As far as I see, {list_words(told)}."
    if _SAME_STATE.get(state, state) == "closed":
        return f"The {found[0].name} is closed, as far as I see."
    return f"I do not see that the {found[0].name} is {state}."


def _state_of(thing: SeenObject) -> str:
    """ "Half full of coffee": what it is, and what is in it."""
    known = [one for one in thing.state if one in STATES]
    within = [one for one in thing.state if one not in STATES]
    return f"{list_words(known)} of {list_words(within)}" if known and within else list_words(thing.state)


def _fitting(reference: Reference, scene: Scene) -> list[SeenObject]:
    places = {one.id for one in scene.things if one.is_place and one.label == reference.source}
    inside = {one.subject for one in scene.relations if one.object in places}
    return [
        thing
        for thing in scene.things
        if reference.label in ("", "*", "fruit", thing.label)
        and reference.colour in ("", thing.colour)
        and (not reference.source or thing.id in inside)
    ]


def at_place(place: str, scene: Scene) -> str:
    """What stands there."""
    names = [f"the {one.name}" for one in scene.things if not one.is_place and place_of(one.id, scene) == place]
    return f"I see {list_words(names[:MOST_NAMED]) or 'nothing'} on or in the {place}."


def _seen(scene: Scene) -> str:
    names = [f"the {one.name}" for one in _fitting(Reference(label="*"), scene)]
    return f"I see {list_words(names[:MOST_NAMED]) or 'nothing'}."


def doing(now: Answerable) -> str:
    """What it is at, and what it holds."""
    held = held_by_robot(now.scene)
    thing = next((one for one in now.scene.things if one.id in held), None)
    hand = f" I hold the {thing.name}." if thing is not None else ""
    if now.is_stopped:
        return f"{following(now)}{hand}"
    if now.order is None:
        return f"I am waiting for something to do.{hand}"
    return f"My task is to {small(describe(now.order))}.{hand}"


def following(now: Answerable) -> str:
    """What it does next of all that is ordered, in turn; and that it is stopped.

    The words that lift a stop are no part of it: a robot may hear itself.
    """
    orders = [one for one in (now.order, *now.later) if one is not None]
    held = held_by_robot(now.scene)
    back = [
        f"put back the {one.name}"
        for one in now.scene.things
        if one.id in held and orders and not any(fits(one, ref, now.scene) for ref in orders[0].things)
    ]
    steps = ", then ".join([*back, *in_short(orders)])
    if not now.is_stopped:
        return f"I go on: {steps}." if steps else "I have nothing to do. Tell me what I can do for you."
    return f"I am stopped. Once you tell me, I {steps}." if steps else "I am stopped, and have nothing to do."
