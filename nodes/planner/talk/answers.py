"""What the scripted planner answers to a question: from what is seen, done, ordered and told. Pure functions.

A question that can be answered with yes or no is; what it does not know it says so, in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodes.msgs import Reference, Scene, SeenObject, SeenPerson, SkillSpec
from nodes.planner.orders import Order
from nodes.planner.scene_text import from_left
from nodes.planner.words.asked import asked_apart
from nodes.planner.words.cues import cues
from nodes.planner.words.languages import english_words
from nodes.planner.words.lexicon import plural_of
from nodes.planner.words.parser import segments_of
from nodes.planner.words.referents import fits, held_by_robot, is_so, is_still_meant, place_of, relation_to, standing
from nodes.planner.words.replies import MOST_NAMED, abilities, describe, in_short, list_words, short, small, where_are
from nodes.planner.words.spelled import place_in_row

STATES = ("dirty", "clean", "full", "half full", "empty", "open", "closed", "shut")
UNKNOWN = "I do not know that."
_ABOUT_ROBOT = cues("answers")["about_robot"]
_PAST = cues("answers")["past"]
_DONE = cues("answers")["done"]
_NEXT = cues("answers")["next"]
_SAID = cues("answers")["said"]
_WHOSE = cues("answers")["whose"]
_WHY = cues("answers")["why"]
_WHO = cues("answers")["who"]
_TO_DO = cues("answers")["to_do"]
_STOPPED = re.compile(r"(?=.*\b(?:why|how come|what for|what made|who)\b).*\b(?:stop|stopped|stopping|halt|halted)\b")
_WAITS = re.compile(r"(?=.*\b(?:why|how come|what)\b).*\b(?:waiting|not moving|standing (?:still|there)|stuck)\b")
_CONTENTS = re.compile(r" (?:something|anything|much|some|any|coffee|tea|water|milk|cream) (?:\w+ )?in ")
_FROM_WHERE = re.compile(r" where (?:did|was|were|had) .*(?:before(?: you .*)?|at first|first|originally|from) $")
_HAPPENED = re.compile(
    r" (?:did|have|has|was) .*(?:do|done)(?: anything| something)? (?:with|to) "
    r"| happen(?:ed)? to | (?:became|become) of "
)
"""Asks what was done with one thing, and not what was done."""
_ASKS_OR_LEAVES = re.compile(r" (?:not|never|ask|say|want|wait|leave|left|stop|refuse|keep|kept) ")
_OF_HAND = re.compile(
    r" (?:holding|carrying|you hold|(?:have you(?: got)?|you have(?: got)?|got) there|in your (?:hand|gripper)) "
)
_APART = re.compile(r" (?:besides|apart from|except(?: for)?|other than|but) ")
TURNS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
_DEEDS = {
    "touch": r"touch(?:ed)?|hands? on|finger on|in your (?:hand|gripper)|held|hold",
    "rinse": r"rins(?:e|ed)|wash(?:ed)?|clean(?:ed)?",
    "wipe": r"wiped?",
    "open": r"open(?:ed)?", "close": r"closed?|shut", "pour": r"pour(?:ed)?|empt(?:y|ied)|tip(?:ped)?",
    "hand_over": r"g[ai]ven?|hand(?:ed)?|pass(?:ed)?|g[eo]t(?= from you )",
    "wait_here": r"fill(?:ed)?|used?|ma[kd]e|brew(?:ed)?",
    "place": r"put|moved?|shift(?:ed)?|t[ao]ken?|took|br(?:ing|ought)|carr(?:y|ied)|clear(?:ed)?|placed?|thr[eo]wn?"
    r"|chuck(?:ed)?|bin(?:ned)?|get rid|got rid|went|gone|tid(?:y|ied)|remov(?:e|ed)|pick(?:ed)?|end(?:ed)?|manage[d]?",
}  # fmt: skip
"""How deeds are spoken of, looked for in this order."""
_TOLD = {
    "rinse": "washed the {name}",
    "open": "opened the {name}", "close": "closed the {name}", "pour": "emptied the {name}",
    "hand_over": "handed over the {name}", "wipe": "wiped the {place}", "wait_here": "filled the {name} at the {place}",
    "place": "put the {name} {relation} the {place}", "put_back": "put the {name} back",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WhyLeft:
    """Why something is left alone: who said what of which things."""

    ids: frozenset[str]
    speaker: str
    text: str
    is_unclear: bool = False  # it was asked what that means, and nobody has said


@dataclass(frozen=True, slots=True)
class DoneDeed:
    """What the robot did with one thing, and for whom."""

    skill: str
    id: str = ""
    name: str = ""
    place: str = ""
    origin: str = ""
    by: str = ""
    words: str = ""  # which asked for it
    within: str = ""  # what was in it till then


@dataclass(frozen=True, slots=True)
class Answerable:
    """What a question is answered from."""

    scene: Scene
    skills: Sequence[SkillSpec] = ()
    order: Order | None = None
    later: Sequence[Order] = ()
    deeds: Sequence[DoneDeed] = ()
    causes: Mapping[Order, tuple[str, str]] = field(default_factory=dict)  # who ordered it, by which words
    asked: str = ""  # the question that the robot waits with
    help: str = ""  # what it has asked somebody to do
    is_stopped: bool = False  # nothing moves before a "go on"
    stop: tuple[str, str] = ("", "")  # who stopped it last, by which words
    told: Sequence[WhyLeft] = ()
    heard: Sequence[tuple[str, str]] = field(default=())  # who said what, the newest last
    names: Mapping[str, str] = field(default_factory=dict)
    dropped: Sequence[WhyLeft] = ()  # why something is no longer done

    @property
    def by(self) -> str:
        """Who ordered what is carried out."""
        return self.causes.get(self.order, ("", ""))[0] if self.order is not None else ""


@dataclass(frozen=True, slots=True)
class AskedOf:
    """What is asked, as it was read."""

    words: str  # in small letters, with a space before and behind
    things: tuple[SeenObject, ...] = ()  # which it is about
    is_named: bool = False  # by their names, and not by "it"
    kinds: frozenset[str] = frozenset()
    colour: str = ""
    place: str = ""
    unseen: str = ""  # what is named and not seen
    speaker: str = ""
    is_of_contents: bool = False  # "my coffee": what is or was in it

    @property
    def asks(self) -> str:
        """Its word of asking; "" where yes or no answers it."""
        found = re.search(r" (how many|who|whose|whom|what|which|where|why|when|how) ", self.words)
        is_aside = found is not None and re.match(r" (?:is|are|was|were|did|do|does|have|has) ", self.words)
        return "" if found is None or is_aside else found[1]

    @property
    def skill(self) -> str:
        """The deed that it speaks of; "" where none."""
        return next((one for one, words in _DEEDS.items() if re.search(rf" (?:{words}) ", self.words)), "")


def answer(asked: AskedOf, now: Answerable) -> str:
    """The answer to a question."""
    readers: tuple[Callable[[AskedOf, Answerable], str], ...] = (
        _of_talk, _of_row, _of_reasons, _of_plans, _of_work, _of_deeds, _of_things,
    )  # fmt: skip
    told = next((said for reader in readers if (said := reader(asked, now))), "")
    return told or UNKNOWN


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


def _has(words: str, *any_of: str) -> bool:
    return any(f" {one} " in words for one in any_of)


def _the(things: Sequence[SeenObject]) -> str:
    return list_words([f"the {one.name}" for one in things[:MOST_NAMED]], "and")


def _of_talk(asked: AskedOf, now: Answerable) -> str:
    """Of who said what, of the robot itself, and manners."""
    words = asked.words
    if _SAID.search(words) and now.heard:
        return _said(asked, now)
    if _WHO.search(words) and " said: “" in now.asked:
        return now.asked
    if _WHO.search(words) or (asked.asks in ("who", "whom") and _has(words, "for")):
        return _who(asked, now)
    if _has(words, "hear me"):
        return "Yes, I hear you."
    if _has(words, "who are you", "help") or re.search(
        r" what (?:else )?(?:can you do|are you able|do you know how) ", words
    ):
        return f"I am a robot with one arm. I can {abilities(now.skills) or 'do nothing yet'}."
    if _ABOUT_ROBOT.search(words):
        return "I am a robot; I cannot tell you more about that."
    is_of_name = re.search(r" (?:called|name) | who is the \w+(?: \w+)? $", words) is not None
    is_of_name = is_of_name or any(
        one.id in now.names.values()
        and re.fullmatch(rf" (?:what|which(?: one)?) (?:is|was) the {one.name}(?: again)? ", words)
        for one in asked.things
    )  # "Which one was Joe again?", with the name written out
    if asked.asks in ("who", "which", "what") and is_of_name:
        return _called(asked, now)
    if not asked.asks and _has(words, "hello", "hi", "hey", "morning", "evening", "afternoon", "welcome"):
        return f"Hello. {doing(now)}"
    return ""


def _called(asked: AskedOf, now: Answerable) -> str:
    told = [f"The {one.name} is called {name.title()}." for name, ident in now.names.items()
            for one in asked.things
            if one.id == ident]  # fmt: skip
    what = f"the {asked.things[0].name}" if asked.things else "it"
    told += [f"{one.owner} owns it." for one in asked.things if told and one.owner]
    return " ".join(told) or f"Nobody has told me a name of {what}."


def _said(asked: AskedOf, now: Answerable) -> str:
    ids = {one.id for one in asked.things}
    subject = re.search(r" (?:did|what|has|have)(?: not)? (?!did )([a-z]+) ", asked.words)
    who = subject[1] if subject is not None else "i"
    speakers = {asked.speaker.lower() if who == "i" else who}
    about = [one for one in now.told if one.ids & ids]
    if about and (asked.asks or about[-1].speaker.lower() in speakers) and not _has(asked.words, "first"):
        return f"{about[-1].speaker or 'Somebody'} said: “{about[-1].text}”"
    if asked.is_named:
        named = [one for one in now.heard[:-1] if any(each.name in one[1].lower() for each in asked.things)]
        named = named or [one for one in now.heard[:-1] if any(each.label in one[1].lower() for each in asked.things)]
        own = [one for one in named if one[0].lower() in speakers]
        found = [one for one in own or named if "?" not in one[1]] or own or named
        yes = "" if asked.asks or not found else "Yes. " if own else "No. "
        one = found[0 if _has(asked.words, "first") else -1] if found else ("", "")
        return f"{yes}{one[0] or 'Somebody'} said: “{one[1]}”" if found else f"Nothing of {_the(asked.things)}."
    told = [one for one in now.heard[:-1] if not all(asks for _, asks in asked_apart(one[1]))]
    told = [one for one in told if "?" not in one[1]] or told
    if who in {one.lower() for one, _ in told}:
        before = [one for one in told if one[0].lower() == who]
    elif who in ("he", "she", "they"):
        before = [one for one in told if one[0] != asked.speaker]
    else:
        before = [one for one in told if one[0] == asked.speaker] or told
    if not before:
        return "You have told me nothing before that."
    return f"{before[-1][0] or 'Somebody'} said: “{before[-1][1]}” {now.asked}".strip()


def _who(asked: AskedOf, now: Answerable) -> str:
    """Who wanted it: the deed with what is named, what is left alone, or what is done now."""
    ids = {one.id for one in asked.things}
    deed = next((deed for one in asked.things if (deed := _deed_with(one, asked.skill, now))), None)
    deed = deed or next((one for one in reversed(now.deeds) if one.id in ids), None)
    if asked.things and deed is None and (why := [one for each in asked.things if (one := reason_of(each, now))]):
        return " ".join(why)
    if deed is not None and (now.order is None or asked.is_named):
        return f"{deed.by or 'Somebody'} asked me. I {_did(deed, now)}."
    order = next((two for one in asked.things if (two := _order_of(one, now)) is not None), now.order)
    if order is not None:
        return f"{now.causes.get(order, ('',))[0] or 'Somebody'} asked me to {small(describe(order))}."
    if now.deeds:
        return f"{now.deeds[-1].by or 'Somebody'} asked me. I {_did(now.deeds[-1], now)}."
    return "Nobody has asked me for anything yet. I tell what I see."


def _of_row(asked: AskedOf, now: Answerable) -> str:
    """Of what stands where, seen from somebody's side."""
    scene, said = now.scene, set(asked.words.split())
    is_whose = _has(asked.words, "whose left", "whose right")
    if {"left", "right"} & said and (is_whose or ({"my", "mine"} & said and {"your", "yours"} & said)):
        return _whose_side(asked, now)
    if _has(asked.words, "next to", "beside") and asked.is_named and asked.asks in ("what", "which", ""):
        return _beside(asked.things, now)
    of_these = asked.things if len(asked.things) > 1 else ()
    marks = {one.label for one in asked.things} if asked.is_named and len(asked.things) == 1 else set()
    kinds = asked.kinds - marks
    things = [one for one in of_these or scene.things if not one.is_place and (not kinds or one.label in kinds)]
    things = [one for one in scene.things if not one.is_place] if len(of_these) == 2 and asked.is_named else things
    if not of_these and asked.place and not re.search(r" (?:near|clos|furth|farth)\w+ (?:to|from) ", asked.words):
        things = [one for one in things if place_of(one.id, scene) == asked.place]
    named = asked.things if asked.is_named or len(asked.things) == 2 else ()
    return place_in_row(asked.words, things, named, scene, asked.speaker)


def _whose_side(asked: AskedOf, now: Answerable) -> str:
    """Whose left and right was meant: whose the words were that spoke of a side last."""
    for who, text in reversed([one for one in now.heard[:-1] if "?" not in one[1]]):
        said = text.lower().replace(",", " ").replace(".", " ").split()
        if {"left", "right"} & {*said} and {"my", "your"} & {*said}:
            whose = "mine" if "your" in said else "yours" if who == asked.speaker else f"{who}'s"
            return f"I went by {whose}: {who} said “{text}”"
    return "Your left and right, where you say “my”, and mine, where you say “your”; else I ask."


def _beside(things: Sequence[SeenObject], now: Answerable) -> str:
    """What stands next to the first of these; of two, whether they do."""
    place = place_of(things[0].id, now.scene)
    alike = [one for one in now.scene.things if not one.is_place and place_of(one.id, now.scene) == place]
    row = from_left(SeenPerson(id="robot", x_m=0.0, y_m=0.0), standing(alike, now.scene))
    if things[0] not in row or things[0].id in {one.subject for one in now.scene.relations if one.relation == "in"}:
        return where_are(things[:1], now.scene)
    at = row.index(things[0])
    near = [row[one] for one in (at - 1, at + 1) if 0 <= one < len(row)]
    yes = "" if len(things) == 1 else "Yes. " if things[1] in near else "No. "
    return f"{yes}{capital(_the(near)) or 'Nothing'} {'is' if len(near) < 2 else 'are'} next to the {things[0].name}."


def _of_reasons(asked: AskedOf, now: Answerable) -> str:
    """Why something stands where it does, or why the robot does what it does, or does not."""
    words = asked.words
    if not asked.is_named and (_STOPPED.search(words) or (now.is_stopped and _WAITS.search(words))):
        told = f"{now.stop[0] or 'Somebody'} said: “{now.stop[1]}” " if now.stop[1] else ""
        return f"{told}{following(now) if now.is_stopped else 'That is why I stopped.' if told else ''}".strip()
    if not _WHY.search(words):
        return ""
    things = asked.things or (() if now.order is not None else _left_alone(now))
    is_clear = asked.is_named or any(reason_of(one, now) or _let_go(one, now) for one in things)
    is_dark = _has(words, "not") and not is_clear
    if is_dark and now.is_stopped and now.stop[1]:
        return f"{now.stop[0] or 'Somebody'} said: “{now.stop[1]}” {following(now)}"
    if is_dark and now.told:  # "Why did you not bin that last one?": what was forbidden last
        things = tuple(one for one in now.scene.things if one.id in now.told[-1].ids)
    is_of_deed = asked.skill and asked.is_named and _PAST.search(words) and not _ASKS_OR_LEAVES.search(words)
    if is_of_deed and not any(_deed_with(one, asked.skill, now) for one in things):
        return " ".join(_told_not(_did_it(one, asked.skill, asked.place, now)) for one in things[:MOST_NAMED])
    reasons = list(dict.fromkeys(why for one in things if (why := reason_of(one, now) or _let_go(one, now))))
    if reasons and not is_of_deed:
        return " ".join(reasons)
    if _has(words, "first", "second", "last", "before", "after", "later") and (turns := _in_turn(things, now)):
        return turns
    deed = next((deed for one in things if (deed := _deed_with(one, asked.skill, now))), None)
    deed = deed or next((deed for one in things if (deed := _deed_with(one, "", now))), None)
    if deed is not None:
        return f"{deed.by or 'Somebody'} asked me to{f': “{deed.words}”' if deed.words else '.'} I {_did(deed, now)}."
    if now.help and (not things or any(f"the {one.name}" in now.help.lower() for one in things)):
        return now.help.partition(". ")[0] + "."
    if now.asked:
        return f"I wait for an answer: {now.asked}"
    order = next((two for one in things if (two := _order_of(one, now)) is not None), None)
    if order is not None and _has(words, "not"):
        return f"{now.causes.get(order, ('',))[0] or 'Somebody'} asked me to {small(describe(order))}."
    if order is not None:
        late = "" if held_by_robot(now.scene) & {one.id for one in things} else " I have not come to that yet."
        return f"{now.causes.get(order, ('',))[0] or 'Somebody'} asked me to.{late} {doing(now)}"
    if things and now.order is None:
        return f"Nobody has asked me to move {_the(things)}."
    return _who(asked, now)


def _let_go(thing: SeenObject, now: Answerable) -> str:
    """By whose words something is no longer done with it, or was not from the first; "" where it is done."""
    deed = _deed_with(thing, "", now)
    if deed is not None and deed.skill != "put_back":
        return ""
    told = [(one.speaker, one.text) for one in now.dropped if thing.id in one.ids]
    told += [why for order, why in now.causes.items() if any(fits(thing, one, now.scene) for one in order.excluding)]
    back = f" I {_did(deed, now)}." if deed is not None else ""
    return f"{told[0][0] or 'Somebody'} said: “{told[0][1]}”{back}" if told else ""


def _in_turn(things: Sequence[SeenObject], now: Answerable) -> str:
    """Who asked for this, or for what is done last, and for what before it."""
    deeds = [one for one in now.deeds if one.skill != "put_back"]
    at = max((number for number, one in enumerate(deeds, 1) if one.id in {two.id for two in things}), default=None)
    told = [(one.by, one.words) for one in deeds[:at]]
    told += [now.causes.get(one, ("", "")) for one in _orders(now)] if at is None else []
    said = [f"{who or 'somebody'} said: “{words}”" for who, words in dict.fromkeys(told) if words]
    return capital(f"{' Then '.join(said[-2:])} I do it in that turn.") if said else ""


def _of_plans(asked: AskedOf, now: Answerable) -> str:
    """Of what is done now and will be."""
    words, plans = asked.words, todo(now)
    thing = asked.things[0] if asked.things else None
    if asked.place and asked.asks in ("what", "which") and re.search(r" will (?:\w+ )?(?:be|stand|stay) ", words):
        there = [one for one in now.scene.things if not one.is_place and _place_then(one, now) == asked.place]
        return f"{capital(_the(there)) or 'Nothing'} will be {relation_to(asked.place, now.scene)} the {asked.place}."
    if asked.asks in ("which", "what") and _has(words, "staying", "stay", "stays") and not asked.place:
        return " ".join(dict.fromkeys(why for one in _left_alone(now) if (why := reason_of(one, now))))
    is_going = thing is not None and asked.asks in ("where", "what") and not _PAST.search(words)
    if thing is not None and is_going and re.search(
        r" (?:going|go|goes|taking|take|putting|bringing|headed|up to|doing with|do with) ", words
    ):  # fmt: skip
        order = next((one for one in _orders(now) if any(fits(thing, ref, now.scene) for ref in one.things)), None)
        if order is not None:
            return f"I {'am to' if now.asked else 'will'} {small(describe(order))}."
        return f"{where_are([thing], now.scene)} I am to do nothing with it." if asked.asks == "what" else ""
    if asked.asks == "how" and _has(words, "how long", "how much longer") and plans:
        return f"I cannot tell how long. I still have to {list_words(plans)}."
    if asked.asks == "how many" and _TO_DO.search(words):
        return f"{capital(_number(len(plans)))}: {list_words(plans)}." if plans else f"None. {now.asked}".strip()
    is_left = (asked.asks or _has(words, "anything")) and _has(words, "left", "remaining")
    is_left = is_left and not (asked.is_named or asked.place or asked.kinds or asked.colour)
    if _TO_DO.search(words) or is_left:
        kept = " ".join(dict.fromkeys(why for one in _left_alone(now) if (why := reason_of(one, now))))
        none = now.asked or "I have nothing left to do."
        there = standing([one for one in now.scene.things if not one.is_place], now.scene)
        none = at_place(place_of(there[0].id, now.scene), now.scene) if is_left and there else none
        return f"{f'I still have to {list_words(plans)}.' if plans else none} {kept}".strip()
    if asked.asks in ("what", "which", "where") and re.search(
        r" (?:after|once|when) .*(?:that|this|it|one|those|done) $| com(?:es|ing) after| (?:next|then) $", words
    ):  # fmt: skip
        if now.order is None:
            return now.asked or f"Nothing. {doing(now)}"
        return f"Then I will {list_words(plans[1:])}." if plans[1:] else f"Nothing comes after that. {doing(now)}"
    if asked.asks in ("what", "which") and plans and (at := re.search(r" (?:comes?|goes?|is) (first|last) $", words)):
        return f"{capital(at[1])}, I {plans[0 if at[1] == 'first' else -1]}."
    is_future = (_NEXT.search(words) or _has(words, "about to")) and not asked.is_named
    is_progress = asked.asks == "how" and _has(words, "coming", "going", "getting on", "getting along", "far")
    is_progress = is_progress or (asked.asks == "what" and _has(words, "is going on"))
    is_of_hand = _OF_HAND.search(words) and not (asked.is_named or asked.place) and asked.asks in ("what", "which", "")
    if is_of_hand and re.search(r" (?:was|were|did|had) ", words) and now.deeds:
        return f"I held the {now.deeds[-1].name}. I {_did(now.deeds[-1], now)}."
    if is_of_hand and not held_by_robot(now.scene):
        return f"My hand is empty. {doing(now)}"
    if is_future or is_of_hand or is_progress:
        is_more = plans[1:] and now.order is not None and not now.is_stopped
        then = f" Then I will {list_words(plans[1:])}." if is_more else ""
        return f"{doing(now)}{then}"
    is_meant = re.match(
        r" (?:are|were|will|do)(?: not)? you .*(?:ing|plan|about to) |.* you (?:are|will)(?: not)? (?:\w+ing|forget) ",
        words,
    )
    if not asked.asks and is_meant and not _PAST.search(words):
        machines = [one.place for one in _orders(now) if f" {one.place.split(' ')[0]} " in words]
        is_yes = any(_is_pending(one, now) for one in asked.things)
        is_yes = bool(machines) if re.search(r" (?:cream|milk) ", words) else is_yes
        no = "That is not among what I am to do" if _has(words, "forget") else "No"
        return f"{'Yes' if is_yes else no}. {doing(now)}"
    return ""


def _orders(now: Answerable) -> list[Order]:
    return [one for one in (now.order, *now.later) if one is not None]


def _order_of(thing: SeenObject, now: Answerable) -> Order | None:
    """What is still to be done with it."""
    return next((one for one in _orders(now) if is_still_meant(thing, one, now.scene)), None)


def _is_pending(thing: SeenObject, now: Answerable) -> bool:
    return _order_of(thing, now) is not None


def _place_then(thing: SeenObject, now: Answerable) -> str:
    """Where it will be once all that is ordered is done."""
    moved = [one for one in _orders(now) if one.skill in ("place", "hand_over")]
    moved = [one for one in moved if any(fits(thing, ref, now.scene) for ref in one.things)]
    return moved[-1].place if moved else place_of(thing.id, now.scene)


def todo(now: Answerable) -> list[str]:
    """What is still to be done, thing by thing, what is in the hand first."""
    found: list[Order] = []
    held = held_by_robot(now.scene)
    for order in _orders(now):
        things = [one for one in now.scene.things if not one.is_place and is_still_meant(one, order, now.scene)]
        if order.skill != "place" or len(things) < 2 or all(one.count == 1 for one in order.things):
            found.append(order)
            continue
        for one in sorted(things, key=lambda each: each.id not in held):
            ref = Reference(label=one.label, colour=one.colour)
            found.append(Order("place", (ref,), (), order.place, order.relation))
    return list(dict.fromkeys(in_short(found)))


def _is_past(words: str) -> bool:
    return _PAST.search(words) is not None or _has(words, "went", "got", "took", "came", "gone")


def _of_work(asked: AskedOf, now: Answerable) -> str:
    """Of the work as a whole: whether it is finished, and what was done in which order."""
    words, skill, is_past = asked.words, asked.skill, _is_past(asked.words)
    if _has(words, "which one was that", "what was that", "which was that") or (
        asked.asks and _has(words, "was that one")
    ):
        return f"That was the {now.deeds[-1].name}." if now.deeds else f"I have moved nothing yet. {now.asked}".strip()
    is_any = _has(words, "anything", "everything") and not _has(words, "done", "finished")
    is_of_work = _DONE.search(words) and not (asked.is_named or asked.place or (skill and (asked.things or is_any)))
    if not asked.asks and is_of_work and (is_past or re.match(r" (?:is|are|all|done|ready|finished|every)", words)):
        return _finished(now)
    if is_past and now.deeds and re.search(r" (?:which|what) order ", words):
        return f"I {', then '.join(_did(one, now) for one in now.deeds)}."
    turn = asked.asks in ("which", "what") and _turn_in(words)
    is_said = _has(words, "ask", "asked", "say", "said", "want", "wanted")
    if turn and is_past and not is_said and (not skill or _has(words, "do", "done")):
        return _which_deed(replace(asked, words=f" place {turn} "), "", now)
    is_told = asked.things and _HAPPENED.search(words)
    if is_past and asked.asks in ("what", "how") and re.search(r" (?:done|do|doing|been up to) ", words):
        return "" if is_told else _told_deeds(now)
    return ""


def _of_deeds(asked: AskedOf, now: Answerable) -> str:
    """Of what was done with something, or touched."""
    words, skill, things = asked.words, asked.skill, asked.things[:MOST_NAMED]
    ids, place = {one.id for one in things}, asked.place
    if asked.asks == "who" and (skill or asked.is_of_contents) and any(_deed_with(one, "", now) for one in things):
        return _who(asked, now)
    is_gone = asked.is_of_contents and not any(one not in STATES for thing in things for one in thing.state)
    is_put = asked.asks == "where" and skill == "place" and _has(words, "did you", "have you") and not asked.place
    is_put = is_put and any(_deed_with(one, "", now) for one in things)
    if is_gone or is_put or (asked.asks == "what" and things and _HAPPENED.search(words)):
        return " ".join(dict.fromkeys(_told_of(one, now) for one in things))
    if asked.asks == "where" and things and _FROM_WHERE.search(words):
        origins = {deed.name: deed.origin for deed in reversed(now.deeds) if deed.origin and deed.id in ids}
        came = [f"the {name} was {relation_to(at, now.scene)} the {at}" for name, at in origins.items()]
        return f"{capital(list_words(came))}." if came else ""
    skill = "touch" if not asked.asks and _HAPPENED.search(words) else skill
    if things and asked.is_named and not (skill or asked.asks) and _is_past(words) and _has(words, "do", "done"):
        orders = [(one, _order_of(one, now)) for one in things]  # "Have you done the red one yet?"
        return " ".join(dict.fromkeys(_did_it(one, "touch" if x is None else x.skill, "", now) for one, x in orders))
    if not _is_past(words) or not skill:
        return ""
    if _has(words, "thrown", "threw", "bin", "binned") and not place:
        place = next((one.label for one in now.scene.things if one.is_place and "waste" in one.state), "bin")
    if asked.asks in ("which", "what", "how many", "where", "how", "who"):
        return _which_deed(asked, place, now)
    if asked.asks:
        return ""
    if things:
        return " ".join(dict.fromkeys(_did_it(one, skill, place, now) for one in things))
    found = [one for one in now.deeds if skill in (one.skill, "place", "touch") and place in ("", one.place)]
    done = list_words(list(dict.fromkeys(_did(one, now) for one in found)))
    if found and _has(words, "else"):
        return f"I {done}, and nothing else."
    return f"Yes. I {done}.{_besides(now)}" if found else f"No. {_told_deeds(now)}"


def _turn_in(words: str) -> str:
    return next((one for one in TURNS if _has(words, one)), "")


def _which_deed(asked: AskedOf, place: str, now: Answerable) -> str:
    skill, turn = asked.skill, _turn_in(asked.words)
    is_any = skill == "place" and not place
    moved = [one for one in now.deeds if one.skill != "put_back"]
    found = [one for one in moved if is_any or (one.skill == skill and (not place or one.place == place))]
    if asked.kinds:
        found = [one for one in found if any(one.name.endswith(kind) for kind in asked.kinds)]
    if not found:
        return f"None. {_told_deeds(now)}" if asked.asks in ("which", "how many") else _told_deeds(now)
    names = list(dict.fromkeys(one.name for one in found))
    if asked.asks == "how many":
        return f"{capital(_number(len(names)))}: {list_words([f'the {one}' for one in names])}."
    if turn and -len(names) <= TURNS[turn] < len(names):
        return f"{capital(turn)} I {next(_did(one, now) for one in found if one.name == names[TURNS[turn]])}."
    return f"I {list_words(list(dict.fromkeys(_did(one, now) for one in found)))}.{_besides(now)}"


def _did(deed: DoneDeed, now: Answerable) -> str:
    relation = relation_to(deed.place, now.scene) if deed.place else "at"
    told = _TOLD.get(deed.skill, deed.skill.replace("_", " ") + " the {name}")
    told = f"tipped the {deed.within} out and {told}" if deed.within else told
    return told.format(name=deed.name or "thing", place=deed.place, relation=relation)


def _deed_with(thing: SeenObject, skill: str, now: Answerable) -> DoneDeed | None:
    """The last deed with this thing; "place" is any that has moved it, "" any at all."""
    mine = [one for one in now.deeds if one.id == thing.id]
    return next((one for one in reversed(mine) if skill in ("", "place", "touch", one.skill)), None)


def _told_not(said: str) -> str:
    """What is so, to who asked neither yes nor no."""
    return capital(re.sub(r"^(?:Yes, |No, |Not yet: )", "", said))


def _told_of(thing: SeenObject, now: Answerable) -> str:
    """What was done with this thing, in turn, and where it is."""
    mine = list(dict.fromkeys(_did(one, now) for one in now.deeds if one.id == thing.id))
    if thing.id in held_by_robot(now.scene) or _is_pending(thing, now):
        return _told_not(_did_it(thing, "touch", "", now))
    if not mine:
        return f"{where_are([thing], now.scene)} {reason_of(thing, now)}".strip()
    place = place_of(thing.id, now.scene)
    where = where_are([thing], now.scene) if place and place not in mine[-1] else ""
    return f"I {list_words(mine)}. {where}".strip()


def _did_it(thing: SeenObject, skill: str, place: str, now: Answerable) -> str:
    """Whether it was done to this thing, with what is so instead."""
    mine = [one for one in now.deeds if one.id == thing.id]
    found = [one for one in mine if skill == "touch" or (one.skill == skill and (not place or one.place == place))]
    found = found or [one for one in mine if skill == "place" and not place]
    if thing.id in held_by_robot(now.scene):
        is_yes = skill in ("touch", "pick") or bool(found)
        return f"{'Yes, the' if is_yes else 'Not yet: the'} {thing.name} is in my hand."
    if found:
        where = where_are([thing], now.scene) if skill in ("place", "touch") and place_of(thing.id, now.scene) else ""
        return f"Yes, I {_did(found[-1], now)}.{f' {where}' if where and found[-1].place not in where else ''}"
    if _is_pending(thing, now):
        return f"Not yet. {doing(now)}"
    verb = {"touch": "touched", "place": "moved", "hand_over": "given"}.get(skill) or (
        _TOLD[skill].partition(" ")[0] if skill in _TOLD else "done that to"
    )
    verb = "put" if skill == "place" and mine else verb
    there = f" {relation_to(place, now.scene)} the {place}" if verb == "put" and place else ""
    where, why = where_are([thing], now.scene), reason_of(thing, now)
    return f"No, I have not {verb} the {thing.name}{there}. {where} {why}".strip()


def _told_deeds(now: Answerable) -> str:
    """All that was done."""
    if not now.deeds:
        return f"I have finished nothing yet.{_besides(now)}"
    return f"I {list_words(list(dict.fromkeys(_did(one, now) for one in now.deeds)))}.{_besides(now)}"


def _besides(now: Answerable) -> str:
    return f" {doing(now)}" if now.order is not None else ""


def _finished(now: Answerable) -> str:
    """Whether all is done, and what is not."""
    kept = " ".join(dict.fromkeys(why for one in _left_alone(now) if (why := reason_of(one, now))))
    if now.asked:
        return f"Not yet. {now.asked}"
    if plans := todo(now):
        return f"Not yet: I still have to {list_words(plans)}. {kept}".strip()
    if not now.deeds:
        return f"I have nothing to do. {kept}".strip()
    return f"Yes, my part is done. {_told_deeds(now)} {kept}".strip()


def _of_things(asked: AskedOf, now: Answerable) -> str:
    """Of what is seen: whose, how, how many, where, and what is there."""
    for reader in (_of_state, _of_place):
        if said := reader(asked, now):
            return said
    words, scene, things = asked.words, now.scene, asked.things
    if said := _of_person(asked, now):
        return said
    if asked.unseen and not things:
        return f"I have not seen a {short(asked.unseen)}. It may be where I have not looked."
    is_where = asked.asks == "where" or re.search(
        r" (?:here|there|in|on|still|gone|missing|left|leave|remains?|stand|going|see|got|have) ", words
    )
    if things and is_where and (asked.is_named or asked.asks in ("where", "what", "which")):
        kept = [reason_of(one, now) for one in things if asked.asks != "where"]
        return " ".join(dict.fromkeys([where_are(things, scene), *(one for one in kept if one)]))
    if re.search(r" (?:see|what is (?!the |an? )[a-z]+|there|here|where do things stand) ", words):
        names = [f"the {one.name}" for one in scene.things]
        return f"I see {list_words(names[:MOST_NAMED]) or 'nothing'}."
    return ""


def _of_person(asked: AskedOf, now: Answerable) -> str:
    """Which one somebody may have, or which one was spoken of with a name: "Which one was Omar using?"."""
    if asked.asks not in ("which", "what") or asked.colour:
        return ""
    if re.search(r" (?:can|could|may|might|shall) (?:i|we) (?:\w+ )?(?:have|use|take|get) ", asked.words):
        alike = [one for one in now.scene.things if not one.is_place and (not asked.kinds or one.label in asked.kinds)]
        free = [one for one in standing(alike, now.scene) if one.owner.lower() in ("", asked.speaker.lower())]
        free = [one for one in free if not why_left(one, now.told) or one.owner]
        return f"{capital(_the(free))}." if free else "None of them is nobody's."
    names = {*asked.words.split()} - english_words() if not asked.is_named else set()
    said = [(one.speaker, one.text) for one in now.told] + [one for one in now.heard[:-1] if "?" not in one[1]]
    found = [one for one in said if names & {*re.findall(r"[a-z]+", one[1].lower())}]
    return f"{found[-1][0] or 'Somebody'} said: “{found[-1][1]}”" if found else ""


def _of_state(asked: AskedOf, now: Answerable) -> str:
    """Whose it is, how it is, and what is in it."""
    words, things = asked.words, list(asked.things)
    if _WHOSE.search(words.replace(" of mine ", " ")) or (things and re.search(r" 's (?:again )?$", words)):
        return _whose(asked, now)
    if re.search(r" colou?r ", words) and things:
        return " ".join(f"That is the {one.name}." for one in things[:MOST_NAMED])
    alike = [one for one in now.scene.things if not one.is_place and (not asked.kinds or one.label in asked.kinds)]
    state = next((one for one in STATES if _has(words, one)), "")
    if asked.place and (state or asked.asks in ("which", "what", "how many")):
        alike = [one for one in alike if place_of(one.id, now.scene) == asked.place]
    asks_inside = re.match(r" (?:and )?what (?:is|have we got|do you see)(?: \w+)? in(?:side)? ", words)
    if things and not asked.place and asks_inside:
        if len(things) == 1 and (filling := _filled(things[0], now)):
            return filling[1] if filling[0] else f"Nothing: {filling[1]}"
        told = [f"the {one.name} is {_state_of(one)}" for one in things if one.state]
        return f"As far as I see, {list_words(told)}." if told else f"I see nothing in {_the(things)}."
    if _CONTENTS.search(words) and not asked.place and len(things) == 1 and (filling := _filled(things[0], now)):
        return f"{'Yes' if filling[0] else 'No'}: {filling[1]}"
    if _CONTENTS.search(words) and not asked.place:
        filled = [one for one in things or alike if {"full", "half full"} & set(one.state)]
        if asked.asks == "which":
            none = "I do not see that anything is in one of them."
            return f"{capital(_the(filled))}, as far as I see." if filled else none
        return _how(things, "full", filled) if things else ""
    if not state:
        return ""
    fitting = [one for one in alike if is_so(one, state)]
    is_of_many = asked.asks in ("which", "what", "how many") or (
        not things and re.search(r" (?:any|anything|is there|are there) ", words)
    )
    if is_of_many:
        count = f"{capital(_number(len(fitting)))}: " if asked.asks == "how many" and fitting else ""
        found = f"{count or 'As far as I see, '}{_the(fitting)} {'is' if len(fitting) == 1 else 'are'} {state}."
        return found if fitting else f"None, as far as I see, is {state}."
    washed = [one for one in things if (deed := _deed_with(one, "rinse", now)) is not None and is_so(one, "clean")]
    if state == "clean" and things and len(washed) == len(things):
        return f"Yes. {' '.join(f'I {_did(deed, now)}.' for one in washed if (deed := _deed_with(one, 'rinse', now)))}"
    return _how(things, state, [one for one in things if is_so(one, state)]) if things else ""


def _filled(thing: SeenObject, now: Answerable) -> tuple[bool, str] | None:
    """Whether something is in it by what was done, and that; None where its looks tell, or nothing was done."""
    mine = [one for one in now.deeds if one.id == thing.id and one.skill in ("wait_here", "pour", "rinse")]
    if not mine or {"full", "half full"} & set(thing.state):
        return None
    emptied = [number for number, one in enumerate(mine) if one.skill != "wait_here"]
    if mine[-1].skill != "wait_here":
        return False, f"I {_did(mine[-1], now)}."
    return True, f"I {list_words([_did(one, now) for one in mine[emptied[-1] + 1 if emptied else 0 :]])}."


def _how(things: Sequence[SeenObject], state: str, so: Sequence[SeenObject]) -> str:
    told = [f"the {one.name} is {_state_of(one)}" for one in things[:MOST_NAMED] if one.state]
    said = "Yes" if len(so) == len(things) else "No" if not so else "Not all"
    if told:
        return f"{said}: as far as I see, {list_words(told)}."
    are = "is" if len(things) == 1 else "are"
    if state in ("closed", "shut"):
        return f"Yes, {_the(things)} {are} closed, as far as I see."
    no = "" if state in ("clean", "empty") else "No, "
    return f"{no}I do not see that {_the(things)} {are} {state}."


def _state_of(thing: SeenObject) -> str:
    """ "Half full of coffee": what it is, and what is in it."""
    known = [one for one in thing.state if one in STATES]
    within = [one for one in thing.state if one not in STATES]
    return f"{list_words(known)} of {list_words(within)}" if known and within else list_words(thing.state)


def _of_place(asked: AskedOf, now: Answerable) -> str:
    """What and how many are somewhere, and whether something is."""
    words, scene, place = asked.words, now.scene, asked.place
    apart = _APART.split(words)
    is_open = bool(asked.kinds or asked.colour) and bool(
        re.search(
            r" (?:any|anything|something|a|an|some|which|what|how many|are there|have we got|do you see|can you see) ",
            apart[0],
        )
    )
    fitting = [
        one for one in scene.things
        if (not one.is_place or one.label in asked.kinds) and one.id not in held_by_robot(scene)
        and (not asked.kinds or len(apart) > 1 or one.label in asked.kinds) and asked.colour in ("", one.colour)
        and (not place or one.label == place or place_of(one.id, scene) == place)
        and (not _has(words, "of mine", "my", "mine") or one.owner.lower() == asked.speaker.lower())
    ]  # fmt: skip
    fitting = [one for one in fitting if not (len(apart) > 1 and one.label in asked.kinds)]
    at = f" {relation_to(place, scene)} the {place}" if place else ""
    if asked.asks == "how many" and (is_open or place or asked.kinds):
        kind = next(iter(asked.kinds)) if len(asked.kinds) == 1 else "thing"
        kind = kind if len(fitting) == 1 else plural_of(kind)
        return f"I see {len(fitting)} {asked.colour} {kind}{at}.".replace("  ", " ")
    is_of_it = asked.is_named or re.match(
        r" (?:is|are|was|were)(?: not)? (?:it|that|this|they|he|she|those|both) ", words
    )
    if place and not asked.asks and is_of_it and asked.things and not is_open:
        there = [one for one in asked.things if place_of(one.id, scene) == place]
        return f"{'Yes' if len(there) == len(asked.things) else 'No'}. {where_are(asked.things, scene)}"
    if place and (asked.asks == "which" or (asked.asks and asked.kinds and not asked.is_named)):
        name = list_words(sorted(asked.kinds), "or") or "thing"
        found = f"{capital(_the(fitting))} {'is' if len(fitting) == 1 else 'are'}{at}."
        return found if fitting else f"I see no {name}{at}."
    if place and asked.asks in ("", "what") and (not asked.is_named or is_open):
        if not asked.asks and (is_open or _has(words, "anything", "something", "any")):
            none = f"No, I see nothing{' like that' if is_open else ''}{at}."
            return f"Yes: I see {_the(fitting)}{at}." if fitting else none
        return at_place(place, scene) if not asked.kinds else f"I see {_the(fitting) or 'nothing like that'}{at}."
    if is_open and not place and not asked.asks and fitting and not asked.unseen:
        return f"Yes: {where_are(fitting, scene)}"
    return "No, I see nothing like that." if is_open and not fitting and not asked.asks and not asked.unseen else ""


def _number(count: int) -> str:
    return ("none", "one", "two", "three", "four", "five", "six")[count] if count < 7 else str(count)


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def why_left(thing: SeenObject, told: Sequence[WhyLeft]) -> str:
    """Who said what of a thing that is left alone; "" where nobody did."""
    found = next((one for one in reversed(told) if thing.id in one.ids), None)
    if found is not None and found.is_unclear:
        return f"I do not know what {found.speaker or 'somebody'} means by “{found.text}”"
    return f"{found.speaker or 'somebody'} said: “{found.text}”" if found is not None else ""


def reason_of(thing: SeenObject, now: Answerable) -> str:
    """Why it is left alone, as a sentence; "" where nobody said so."""
    why = why_left(thing, now.told)
    return f"I leave the {thing.name}, as {why}" if why else ""


def _left_alone(now: Answerable) -> tuple[SeenObject, ...]:
    return tuple(one for one in now.scene.things if any(one.id in why.ids for why in now.told))


def _whose(asked: AskedOf, now: Answerable) -> str:
    things = asked.things
    asks_theirs = _has(asked.words, "theirs", "anyone 's", "anybody 's", "somebody 's", "someone 's")
    if things and not asked.asks and asks_theirs:
        said = [f"{one.owner} owns the {one.name}." for one in things if one.owner]
        return " ".join(said) or f"No, nobody has told me whose the {things[0].name} is."
    is_mine = re.search(r" (?:mine|my \w+) ", asked.words) is not None
    if is_mine and asked.asks in ("which", "what"):
        own = [one for one in now.scene.things if one.owner and one.owner.lower() == asked.speaker.lower()]
        return f"{capital(_the(own))}." if own else "I do not know which one is yours."
    who = re.search(r" (\w+) 's ", asked.words)
    if len(things) == 1 and things[0].owner and not asked.asks and (is_mine or who is not None):
        wanted = asked.speaker if is_mine or who is None else who[1]
        is_so = things[0].owner.lower() == wanted.lower()
        return f"{'Yes' if is_so else 'No'}: {things[0].owner} owns the {things[0].name}."
    said = [f"{one.owner} owns the {one.name}." for one in things if one.owner]
    said += [f"Of the {one.name}, {why}" for one in things if not one.owner and (why := why_left(one, now.told))]
    dark = [one for one in things if not (one.owner or why_left(one, now.told))]
    is_are = "is" if len(dark) == 1 else "are"
    said += [f"I do not know whose {_the(dark)} {is_are}."] if dark else []
    return " ".join(said) or "I do not know whose it is."


def at_place(place: str, scene: Scene) -> str:
    """What stands there."""
    names = [f"the {one.name}" for one in scene.things if not one.is_place and place_of(one.id, scene) == place]
    return f"I see {list_words(names[:MOST_NAMED]) or 'nothing'} on or in the {place}."


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
