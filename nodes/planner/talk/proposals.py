"""What a dialogue makes of words that the grammar left unread: it leaves, puts back, answers, proposes, or says so.

It works on the parts of `gist`. What somebody keeps for herself is left at once; a deed is done only where the grammar
reads it in a part by itself, and asked about otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from nodes.msgs import Reference, SeenObject
from nodes.planner.orders import Order
from nodes.planner.talk.answers import following
from nodes.planner.talk.gist import Focus, SaidPart, focus_of, parts_of
from nodes.planner.talk.questions import OpenQuestion
from nodes.planner.words.cues import cues
from nodes.planner.words.languages import english_words, in_another_language
from nodes.planner.words.parser import parser_of
from nodes.planner.words.referents import held_by_robot, is_still_meant, place_of, relation_to
from nodes.planner.words.replies import describe, list_words, named, remark, short, small
from nodes.planner.words.understanding import Intent

if TYPE_CHECKING:
    from nodes.planner.talk.dialogue import Dialogue

LONGEST_QUOTE = 60
_CUES = cues("proposals")
"""remark: what is liked, looks so or holds something, from which nothing follows; told: what was said before of what
is worked on, which is asked about, and not taken for a new word."""


def focus_in(mind: Dialogue) -> Focus:
    """What is spoken of now."""
    scene, things = mind.around.scene, [one for one in mind.around.scene.things if not one.is_place]
    kept = frozenset(mind.kept)
    free = [one for one in things if one.id not in kept]
    worked_on = [one for one in free if any(is_still_meant(one, order, scene) for order in mind.orders)]
    asked = next((q for q in reversed(mind.questions) if q.awaits), None)
    choices = asked.choices or tuple(ref for order in asked.orders for ref in order.things) if asked is not None else ()
    ids, looks = {ref.id for ref in choices}, {(ref.label, ref.colour) for ref in choices if not ref.id}
    chosen = [one for one in things if one.id in ids or (one.label, one.colour) in looks]
    last = mind.order or (mind.done[-1].order if mind.done else None)
    told = [one for ident in mind.spoken for one in things if one.id == ident]
    within = {**{one.id: one.within for one in mind.deeds if one.within}, **mind.inside}
    return focus_of(scene, mind.talk.mentioned, worked_on, mind.target(), chosen, last, told, mind.there, within, kept)


def parts_heard(mind: Dialogue, text: str) -> list[SaidPart]:
    """The parts of an utterance as they stand in this dialogue."""
    return parts_of(text, mind.around.scene, parser_of(mind.around.world), focus_in(mind))


def meant_by(mind: Dialogue, words: str, *, is_behind: bool = False) -> tuple[SeenObject, ...]:
    """What these words name, or can only mean, or what "that" behind them means: what they except, where they do.

    "That one" is what somebody points at, where anybody does.
    """
    parts = parts_heard(mind, words)
    pointed = {one.points_at for one in mind.around.scene.people if one.points_at}
    if pointed and not any(one.is_named for one in parts):
        return tuple(one for one in mind.around.scene.things if one.id in pointed)
    things = [
        one for part in parts if not part.is_open and (part.is_named or len(part.things) == 1)
        for one in (part.apart if is_behind and part.apart else part.things)
    ]  # fmt: skip
    return tuple(dict.fromkeys(things))


def asks(mind: Dialogue, text: str) -> bool:
    """Whether it is a question, and nothing else that counts."""
    acts = {part.act for part in parts_heard(mind, text)}
    return "ask" in acts and not acts & {"deed", "spare", "back"}


def is_plain_refusal(mind: Dialogue, text: str, intent: Intent) -> bool:
    """Whether one clear order asks for what is not known here, so that the grammar's word on it is the right one."""
    parts = parts_heard(mind, text)
    is_one = len(parts) == 1 and parts[0].act in ("deed", "dark", "name")
    is_dark = (
        intent.why == "words" and bool(intent.what) and intent.what not in english_words() and " " not in intent.what
    )
    is_refused = intent.deed == "refuse" and not any(
        re.search(one.words, text.lower()) for one in mind.household.recipes.values()
    )
    is_conditional = intent.why in ("words", "condition") and intent.what in ("unless", "if", "until", "once")
    return (len(parts) == 1 and is_conditional) or (is_one and (is_dark or is_refused))


def propose_beside_stop(mind: Dialogue, text: str, speaker: str, now_ns: int, intent: Intent) -> str:
    """The same of what was said beside a stop: only what leaves, puts back, asks, or is about another thing."""
    focus, parts = focus_in(mind), parts_heard(mind, text)
    acts = {part.act for part in parts}
    is_other = any(
        part.act in ("deed", "name") and part.things and not set(part.things) & set(focus.one) for part in parts
    )
    if in_another_language(text, frozenset(names_in(mind))):
        return ""
    if "ask" in acts:
        return mind.answered(text, speaker)
    if mind.order is None:
        return propose(mind, text, speaker, now_ns, intent) or not_understood(mind, text)
    if "back" not in acts and not is_other:
        return ""
    return propose(mind, text, speaker, now_ns, intent)


def propose(mind: Dialogue, text: str, speaker: str, now_ns: int, intent: Intent) -> str:
    """What to do and say; "" where nothing can be made of it."""
    focus = focus_in(mind)
    parts = parts_of(text, mind.around.scene, parser_of(mind.around.world), focus)
    said: list[str] = []
    asked_before = mind.questions
    acts = {part.act for part in parts}
    if "ask" in acts and not acts & {"deed", "spare", "back"}:
        return mind.answered(text, speaker)
    if len(parts) == 1 and _CUES["remark"].search(parts[0].words) and "would" not in parts[0].words.split():
        return "I see."
    if wish := mind.recipe_wish(text, now_ns):
        return wish
    if wash := offer_wash(mind, parts, now_ns):
        return wash
    ids = {act: {x.id for one in parts if one.act == act and one.is_named for x in one.things} for act in acts}
    if ids.get("deed") and ids["deed"] <= ids.get("spare", set()):
        return ""  # to be moved and left at once
    spared = _spare(mind, parts, now_ns, said)
    _back(mind, parts, spared, speaker, now_ns, said)
    _deed(mind, parts, spared, focus, speaker, now_ns, said)
    named = [part for part in parts if part.act == "name" and part.is_named and not set(part.things) & set(spared)]
    if said and named and not acts & {"deed", "back"}:
        said.append(_name(mind, named, focus, now_ns))  # "Not the green one. The blue one."
    if said:
        mind.close_proposals(asked_before)
        return " ".join(said)
    if "ask" in acts:
        return mind.answered(text, speaker)
    return _name(mind, parts, focus, now_ns) or _manners(mind, acts, speaker, now_ns, intent)


def offer_wash(mind: Dialogue, parts: Sequence[SaidPart], now_ns: int) -> str:
    """What to ask where somebody only says how a thing or a place is that can be washed or wiped; "" of other words."""
    said = [
        one for one in parts if one.act in ("name", "deed", "dark") and not one.is_plain and one.skill in ("", "place")
    ]
    part = next((one for one in said if one.is_named or one.place), None)
    if part is None or not mind.household.is_kept or re.search(r"\b(?:is|are|'s|looks?|smells?)\b", part.words) is None:
        return ""
    thing = part.things[0] if len(part.things) == 1 and part.is_named else None
    if thing is not None:
        is_so = "dirty" in thing.state or re.search(r"\b(?:looks?|smells?)\b", part.words) is not None
        is_there = part.place in ("", place_of(thing.id, mind.around.scene))
        order = Order("rinse", mind.refs(part.things), (), "sink")
        if not (is_so and is_there and thing.label in mind.household.washed_to):
            return ""
    elif part.things or part.is_open:
        return ""
    else:
        order = Order("wipe", (), (), part.place)  # "There are crumbs on the table."
    return mind.ask(OpenQuestion("order", f"Shall I {small(describe(order))}?", now_ns, (order,), "yes"))


def _spare(mind: Dialogue, parts: Sequence[SaidPart], now_ns: int, said: list[str]) -> tuple[SeenObject, ...]:
    """What is to be left: by whom it is, who does it, or who forbids it."""
    worked_on = focus_in(mind).worked_on
    spared = tuple(
        dict.fromkeys(
            one for part in parts if part.act == "spare" and not part.is_open for one in part.things
            if part.is_owned or one not in worked_on or not _CUES["told"].search(part.words)
        )
    )  # fmt: skip
    spared += tuple(one for part in parts for one in part.apart if one not in spared)
    if spared:
        refs = mind.refs(spared)
        mind.leave(refs)
        said.append(f"All right, I leave {named(refs)}.")
        return spared
    is_open = [one for part in parts if part.act == "spare" and part.is_open for one in part.things]
    if is_open and not any(part.act == "ask" for part in parts):
        said.append(mind.ask_which(mind.refs(is_open), now_ns))
    return tuple(is_open)


def _back(
    mind: Dialogue, parts: Sequence[SaidPart], spared: Sequence[SeenObject], speaker: str, now_ns: int, said: list[str]
) -> None:
    part = next((one for one in parts if one.act == "back"), None)
    if part is None or spared:
        return
    held = held_by_robot(mind.around.scene)
    things = part.things or tuple(one for one in mind.around.scene.things if one.id in held)
    order = Order("put_back", mind.refs(things))
    text = mind.do(Intent("do", (order,), is_correction=True), now_ns, speaker) if things else ""
    said.append(text or "I hold nothing that I could put back.")


def _deed(
    mind: Dialogue, parts: Sequence[SaidPart], spared: Sequence[SeenObject], focus: Focus, speaker: str, now_ns: int,
    said: list[str],
) -> None:  # fmt: skip
    """Do what was said in full; ask about a deed that lacks something or may be meant otherwise."""
    deeds = [one for one in parts if one.act in ("deed", "name") and (one.skill or one.place or one.act == "deed")]
    if not deeds:
        return
    before = next((one for one in reversed(parts) if one.things and one.act in ("name", "deed")), None)
    last = focus.last if focus.last is not None and focus.last.skill in ("place", "hand_over", "rinse") else None
    orders: list[Order] = []
    is_plain = len(parts) == len(deeds) or all(
        one.act in ("deed", "yes", "social", "no", "spare", "on") or one.is_aside for one in parts
    )
    for part in deeds:
        things = part.things or (before.things if before is not None else ())
        things = tuple(one for one in things if one not in spared)
        if part.unknown and not set(part.unknown.split()) & names_in(mind):
            said.append(f"I see no {short(part.unknown)} here.")
            is_plain = False
            continue
        if part.is_open and not part.place:
            part = msgspec.structs.replace(part, place=next((one.place for one in deeds if one.place), ""))
        if part.is_open:
            order = _order(mind, part, things[:1], last)
            said.append(_which(mind, order, things, now_ns))
            return
        if not things:
            if part.place and not said:
                about = Order("place", (), (), part.place, relation_to(part.place, mind.around.scene))
                text = f"What shall I put {about.relation} the {part.place}?"
                said.append(mind.ask(OpenQuestion("order", text, now_ns, (about,), "thing")))
            continue
        is_short = part.is_named and bool(part.place) and not part.apart  # "Both apples on the tray."
        alone = mind.read_alone(part.words) if part.is_plain or is_short else Intent("nothing")
        ids = mind.ids_of(ref for one in alone.orders for ref in one.things)
        is_whole = alone.deed == "do" and (not part.is_named or {one.id for one in things} <= ids)
        if is_whole and not any(one.skill in ("stop", "wait", "undo", "drive") for one in alone.orders):
            orders += [one.about(mind.refs(things)) if spared and one.things else one for one in alone.orders]
            continue
        is_plain, order = False, _order(mind, part, things, last)
        if order.skill == "place" and all(place_of(one.id, mind.around.scene) == order.place for one in things):
            said.append("I see.")  # "The mugs are on the table."
            return
        if order.skill == "place" and not order.place:
            said.append(
                mind.ask(OpenQuestion("order", f"Where shall I put {named(order.things)}?", now_ns, (order,), "place"))
            )
            return
        orders.insert(0 if part.is_before else len(orders), order)
    if orders:
        said.append(_do_or_ask(mind, orders, speaker, now_ns, is_plain=is_plain))


def _do_or_ask(mind: Dialogue, orders: Sequence[Order], speaker: str, now_ns: int, *, is_plain: bool) -> str:
    """Do what was plainly said, but for what somebody keeps; ask about the rest, and about that who keeps it."""
    is_plain = mind.lift(orders) or is_plain
    if mind.barred(orders):
        return mind.do_but_kept(orders, now_ns, speaker)
    if is_plain:
        return mind.do(Intent("do", tuple(orders), is_correction=True), now_ns, speaker)
    if all(one in mind.orders for one in orders):
        return mind.goes_on().strip() or "All right."
    text = f"Shall I {list_words([small(describe(one)) for one in orders], 'and then')}?"
    return mind.ask(OpenQuestion("order", text, now_ns, tuple(orders), "yes"))


def _order(mind: Dialogue, part: SaidPart, things: Sequence[SeenObject], last: Order | None) -> Order:
    skill = part.skill or (last.skill if last is not None and not part.place else "place")
    place = part.place or (last.place if last is not None and skill == last.skill else "")
    refs = mind.refs(things)
    if skill == "rinse":
        return Order(skill, refs, (), "sink") if mind.household.is_kept else Order(skill, refs)
    if skill != "place":
        return Order(skill, refs)
    return Order("place", refs, (), place, relation_to(place, mind.around.scene) if place else "")


def _which(mind: Dialogue, order: Order, things: Sequence[SeenObject], now_ns: int) -> str:
    open_ = mind.open("order")
    if open_ is not None and open_.awaits == "thing" and not order.place:  # what was ordered is asked again
        order = open_.orders[0]
    names = list_words(sorted({f"the {one.name}" for one in things}), "or")
    about, text = order.about((Reference(label=things[0].label),)), f"Which one do you mean: {names}?"
    return mind.ask(OpenQuestion("order", text, now_ns, (about,), "thing", choices=mind.refs(things)))


def _name(mind: Dialogue, parts: Sequence[SaidPart], focus: Focus, now_ns: int) -> str:
    """Something is named, and nothing said of it: what is worked on is held; else it is asked what to do with it."""
    part = next((one for one in reversed(parts) if one.things and (one.is_named or one.act == "name")), None)
    if part is None:
        return ""
    if any(one in focus.worked_on for one in part.things) and (
        held := mind.ask_whether(mind.refs(part.things), now_ns)
    ):
        return held
    if part.is_open or (len(part.things) > 1 and part.act == "name" and not part.is_named):
        return _which(mind, _order(mind, part, part.things[:1], focus.last), part.things, now_ns)
    if wide := mind.too_wide(mind.refs(part.things)):
        return wide
    asked = next((one for one in reversed(mind.questions) if one.awaits == "yes" and one.about == "order"), None)
    last = asked.orders[0] if asked is not None and asked.orders else focus.last
    places = {place_of(one.id, mind.around.scene) for one in part.things}
    if last is not None and last.skill == "place" and last.place and last.place not in places:
        order = Order("place", mind.refs(part.things), (), last.place, last.relation)
        if refused := mind.ask_keeper((order,), now_ns):
            return refused
        return mind.ask(OpenQuestion("order", f"Shall I {small(describe(order))}?", now_ns, (order,), "yes"))
    return f"What shall I do with {named(mind.refs(part.things))}?"


def names_in(mind: Dialogue) -> set[str]:
    """Every word of a name of a thing or a place that is known."""
    world = mind.around.world
    return {word for name in (*world.kinds, *world.places) for word in name.split()}


def _manners(mind: Dialogue, acts: Collection[str], speaker: str, now_ns: int, intent: Intent) -> str:
    """A short word to manners; else it is said what was not understood."""
    waits = next((one.text.removeprefix("Stopped. ") for one in reversed(mind.questions) if one.awaits), "")
    asked = next((one for one in reversed(mind.questions) if one.awaits), None)
    if "yes" in acts and asked is not None and asked.awaits == "yes" and asked.may_answer(speaker):
        return mind.agree(asked, now_ns, speaker)
    if {"on", "yes"}.intersection(acts) and waits:
        return f"I wait for an answer: {waits}"
    if "on" in acts:
        is_at_it = mind.order is not None and not mind.is_stopped
        return f"I am at it: {small(describe(mind.order))}." if mind.order and is_at_it else following(mind.belief())
    if {"social", "yes", "no"}.intersection(acts):
        return "All right."
    reply = remark(intent)
    return "" if reply == "I see." else reply


def is_about_work(mind: Dialogue, text: str) -> bool:
    """Whether something is named or asked of the robot, so that "I see." would be no answer."""
    parts = parts_heard(mind, text)
    return any(one.things or one.is_open or one.place for one in parts) or bool(
        {"you", "robot"} & set(text.lower().split())
    )


def not_understood(mind: Dialogue, text: str) -> str:
    """That nothing was made of it, and what is waited for or done meanwhile."""
    waits = next((one.text.removeprefix("Stopped. ") for one in reversed(mind.questions) if one.awaits), "")
    text = mind.heard[-1][1] if mind.heard else text
    return f"I did not understand “{short_quote(text)}”.{f' {waits}' if waits else mind.goes_on()}"


def short_quote(text: str) -> str:
    """What was said, to say it again; cut where it is long."""
    text = text.strip(" .!?")
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rsplit(' ', 1)[0]} ..."
