"""The scripted planner's rules: from what is heard, seen and reported to the next subtask and reply, as pure functions.

What it knows of kinds, places and skills comes from the scene and the skill catalogue. It does what was understood,
asks or refuses the rest, and says "done" of what the scene shows to have moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodes.interrupts.intent import understand
from nodes.msgs import Condition, Reference, Scene, SceneDescription, SeenObject, Subtask
from nodes.planner.languages import in_another_language
from nodes.planner.lexicon import lexicon_file, plural_of
from nodes.planner.orders import (
    ALIASES,
    ALL,
    ANSWER_WITHIN_S,
    LEAVE,
    MOST_ORDERS,
    Order,
    Surroundings,
    Unnamed,
    covers,
    is_vague,
)
from nodes.planner.parser import parser_of
from nodes.planner.referents import as_references, fits, is_still_meant, named_under_way, referents, stands
from nodes.planner.replies import (
    MOST_NAMED,
    answer,
    anything_else,
    list_words,
    name_of_reference,
    question,
    refusal,
    remark,
    things_words,
    where_are,
)
from nodes.planner.spelled import SpelledOut, naming, spelled_out
from nodes.planner.stopped import objects, read_beside_stop, speaks_of_rest, told_as_paused, why_unread
from nodes.planner.understanding import INSIDE, Conversation, Intent, forbids_ordered, spared_by, understand_in
from runtime.clock import to_s

DOUBTS_WITHIN_S = 10.0
"""An order for something not seen yet is asked about, if several such things come into sight within this time."""
CONTRADICTS_WITHIN_S = 6.0
"""Two orders for the same thing within this time are asked about, unless the second corrects the first."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An order that was carried out, and what it moved: for who says that it was wrong."""

    order: Order
    moved: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class OrdersUnderWay:
    """The orders being carried out, the first one now; `number` 0: none yet."""

    number: int = 0
    revision: int = 0
    orders: tuple[Order, ...] = ()
    is_over: bool = False
    is_paused: bool = False
    is_held: bool = False  # until the question is answered
    talk: Conversation = field(default_factory=Conversation)
    last: Finished | None = None
    was_there: frozenset[str] = frozenset()  # ids of things that stood so before the order
    ordered_ns: int = 0
    asked_ns: int = 0  # a question waits for an answer since; 0: none does
    choices: tuple[Reference, ...] = ()  # one of these is to be left alone: it is asked which
    at_stop: str = ""  # a question that was asked beside a stop, and is asked again when that is lifted
    by: str = ""  # who ordered what is carried out
    names: Mapping[str, str] = field(default_factory=dict)  # names that people gave, in small letters, and ids
    unseen_ns: int = 0  # the order came then, when nothing that it may mean had been seen; 0: something had

    @property
    def order(self) -> Order | None:
        """What is carried out now."""
        return self.orders[0] if self.orders and not self.is_over else None

    @property
    def subtask(self) -> Subtask | None:
        """What the VLM is to do for it, or None before the first order."""
        if not self.number or not self.orders:
            return None
        order = self.orders[0]
        return Subtask(
            id=f"task-{self.number}.{self.revision}",
            text=describe(order),
            state="done" if self.is_over else "wait" if self.is_paused or (self.is_held and self.asked_ns) else "work",
            skill=ALIASES.get(order.skill, order.skill),
            things=order.things,
            excluding=order.excluding,
            place=order.place,
            relation=order.relation,
            done_when=condition_of(order),
        )


def condition_of(order: Order) -> Condition | None:
    """When it is done, where that can be seen."""
    if order.skill == "place":
        return Condition(things=order.things, relation=order.relation, place=order.place)
    if order.skill == "pick":
        return Condition(things=order.things, relation="held by", place="robot")
    if order.skill == "hand_over":
        return Condition(things=order.things, relation="held by", place="person")
    return None


def describe(order: Order) -> str:
    """The order in words: "Put every cup except the blue cup in the bin"."""
    verbs = {"place": "put", "put_back": "put back", "hand_over": "hand over", "point": "point at", "look": "look at"}
    words = [verbs.get(order.skill, order.skill.replace("_", " "))]
    if order.things:
        words.append(list_words([name_of_reference(thing) for thing in order.things]))
    if order.excluding:
        words.append(f"except {list_words([f'the {_bare(one)}' for one in order.excluding])}")
    if order.place:
        words.append(f"{order.relation or 'at'} the {order.place}")
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _bare(reference: Reference) -> str:
    label = reference.label if reference.label != "*" else "thing"
    return f"{reference.colour} {label if reference.count == 1 else plural_of(label)}".strip()


def hear(
    plan: OrdersUnderWay, text: str, around: Surroundings, now_ns: int = 0, speaker: str = ""
) -> tuple[OrdersUnderWay, str]:
    """The plan after a person's utterance, and what to answer (empty: nothing)."""
    pointed_at = {one.points_at for one in around.scene.people if one.points_at}
    names, named = naming(text, around.scene, plan.names, pointed_at.pop() if len(pointed_at) == 1 else "")
    if named:
        return replace(plan, names=names), named
    spelled = spelled_out(text, around.scene, plan.names, speaker, _kind_meant(plan), is_owner=_knows_owner(plan.talk))
    if spelled.reply:
        return _untold(plan, spelled, around, now_ns)
    plan, reply = _hear(plan, spelled.text, around, now_ns, speaker)
    return plan, f"{spelled.aside} {reply}" if spelled.aside and "?" in reply else reply


def _untold(plan: OrdersUnderWay, spelled: SpelledOut, around: Surroundings, now_ns: int) -> tuple[OrdersUnderWay, str]:
    """What cannot be told is asked, and what it may forbid is held until then."""
    if not spelled.is_untold:
        return plan, spelled.reply
    clauses, scene, order = parser_of(around.world).clauses(spelled.text), around.scene, plan.order
    is_order = all(one.type in ("order", "question") and not one.is_negated for one in clauses)
    if order is None or (is_order and not spelled.is_objection):
        return plan, f"{spelled.reply} Which one do you mean?"
    held = {one.subject for one in scene.relations if one.relation == "held by" and one.object == "robot"}
    open_ones = [one for one in scene.things if one.id in held or is_still_meant(one, order, scene)]
    plan, which = _ask_which(plan, as_references(open_ones, scene) or order.things, now_ns)
    return plan, f"{spelled.reply} {which}"


def _knows_owner(talk: Conversation) -> bool:
    return any(owner == "my" for owner, _ in talk.owners)


def _kind_meant(plan: OrdersUnderWay) -> str:
    """What "the one on the left" is: of the kind that is asked for, or worked on."""
    order = plan.talk.question or next(iter(plan.orders), None)
    kinds = {one.label for one in order.things} if order is not None else set()
    return kinds.pop() if len(kinds) == 1 and "*" not in kinds else ""


def _hear(
    plan: OrdersUnderWay, text: str, around: Surroundings, now_ns: int, speaker: str
) -> tuple[OrdersUnderWay, str]:
    meaning, world = understand(text), around.world
    wants = meaning.wants
    is_cancelled = any(clause.type == "cancel" for clause in parser_of(world).clauses(text))
    if meaning.is_listening and not (plan.talk.awaits or is_cancelled) and "thank" not in text.lower():
        return plan, ""  # "mhm", and not "okay, never mind"
    if wants == "stop":
        return _by(plan, speaker, *_stopped(plan, text, around, now_ns))
    if wants == "resume":
        again, plan = plan.at_stop, replace(plan, is_paused=bool(plan.choices), at_stop="")
        if again:
            return replace(plan, asked_ns=now_ns), again  # who lifts the stop has not answered what was asked at it
        if plan.talk.question is None or plan.talk.awaits != "yes":
            return plan, ""  # else it is a yes as well: "Go ahead."
    after, reply = _by(plan, speaker, *_heard(plan, text, around, now_ns, speaker))
    order, asked = plan.order, after.talk.question
    is_as_before = after.orders == plan.orders and after.talk.protected == plan.talk.protected
    is_asked = asked is not None and asked.skill == LEAVE
    if order is None or not _is_free_to_ask(plan) or not is_as_before or is_asked:
        return after, reply
    if speaks_of_rest(text, parser_of(world).clauses(text)):
        return _ask_whether(after, order.things, now_ns)
    return after, reply


def _by(before: OrdersUnderWay, speaker: str, plan: OrdersUnderWay, reply: str) -> tuple[OrdersUnderWay, str]:
    """The plan, with who ordered it."""
    return (replace(plan, by=speaker) if plan.number != before.number else plan), reply


def _heard(
    plan: OrdersUnderWay, text: str, around: Surroundings, now_ns: int, speaker: str
) -> tuple[OrdersUnderWay, str]:
    """What was said of the work, and not of stopping or going on."""
    world = around.world
    known = frozenset(word for name in (*world.kinds, *world.places) for word in name.split())
    if foreign := in_another_language(text, known):
        return plan, foreign
    asked = _talk_about(plan)
    intent, talk = understand_in(text, world, asked, parser_of(world))
    if (answered := _answered(replace(plan, talk=talk), asked, intent)) is not None:
        return answered
    if plan.asked_ns and intent.deed in ("answer", "refuse"):  # the question stays open
        talk = replace(talk, question=asked.question, awaits=asked.awaits)
    plan = replace(plan, talk=talk)
    match intent.deed:
        case "answer":
            return plan, answer(text, intent, around.scene, around.skills, plan.order, plan.last, plan.by)
        case "ask" if forbids_ordered(intent, parser_of(world).clauses(text)):
            return _spare(plan, Intent("nothing", protected=intent.protected), around, now_ns, is_stopped=False)
        case "ask" if shown := _shown(intent, around):
            return _do(plan, shown, around, now_ns)
        case "ask" if plan.choices:
            return _ask_which(plan, plan.choices, now_ns)
        case "ask" | "refuse" if named := _named_unread(plan, intent, around):
            plan, whether = _ask_whether(plan, as_references(named, around.scene), now_ns)
            return plan, whether if intent.why == "what" else f"{why_not(intent, around)} {whether}"
        case "ask" | "refuse" if objects(intent, parser_of(world).clauses(text)) and _is_free_to_ask(plan):
            assert plan.order is not None
            plan, whether = _ask_whether(plan, plan.order.things, now_ns)
            return plan, f"{why_not(intent, around)} {whether}"  # "No, bring it to Ben."
        case "ask":
            return replace(plan, asked_ns=now_ns), why_not(intent, around) + _goes_on(plan)
        case "refuse":
            return plan, why_not(intent, around) + _goes_on(plan)
        case "nothing" if plan.order is None and intent.taken and intent.why == "told":
            return _spare(plan, Intent("nothing", protected=intent.taken), around, now_ns, is_stopped=False)
        case "nothing":
            return _nothing(plan, intent, around, now_ns)
    plan, reply = _do(plan, intent, around, now_ns, plan.by if plan.by != speaker else "")
    apart = tuple(one for one in intent.unnamed if one.label)
    if apart and plan.order is not None and not plan.asked_ns:  # "all cups but that one"
        plan, left = _spare(
            plan, Intent("nothing", unnamed=apart), replace(around, target=None), now_ns, is_stopped=False
        )
        return plan, f"{reply} {left}"
    return plan, reply


def _is_free_to_ask(plan: OrdersUnderWay) -> bool:
    """Whether something is moved, and nothing is asked about it yet."""
    return plan.order is not None and bool(plan.order.things) and not (plan.asked_ns or plan.choices)


def _stopped(plan: OrdersUnderWay, text: str, around: Surroundings, now_ns: int) -> tuple[OrdersUnderWay, str]:
    """The reflex has stopped the robot, and the VLM says so; what else was said counts after a "go on"."""
    rest = read_beside_stop(text, around, _talk_about(plan), parser_of(around.world))
    under_way, before = plan.order, plan
    plan = replace(plan, talk=rest.talk)
    match rest.reading:
        case "nothing":
            return before, ""
        case "answer":
            return plan, answer(rest.words, rest.intent, around.scene, around.skills, plan.order, plan.last, plan.by)
        case "spare":
            return _nothing(plan, rest.intent, around, now_ns, is_stopped=True)
        case "do":
            new, reply = _do(plan, rest.intent, around, now_ns)
            if not new.asked_ns:
                is_new = new.orders != before.orders and new.orders == rest.intent.orders
                return new, told_as_paused([_small(describe(one)) for one in new.orders]) if is_new else reply
            plan, asked = new, f"Stopped. {reply}"
        case "unread":
            asked = why_unread(rest, around)
    if under_way is None:
        return replace(plan, asked_ns=now_ns), asked
    things = as_references((around.target,), around.scene) if around.target is not None else under_way.things
    if plan.talk.question is not None:
        return replace(plan, asked_ns=now_ns, choices=things, is_paused=True, at_stop=asked), asked
    plan, whether = _ask_whether(plan, things, now_ns)
    return replace(plan, at_stop=whether), f"{asked} {whether}"


def _named_unread(plan: OrdersUnderWay, intent: Intent, around: Surroundings) -> tuple[SeenObject, ...]:
    """What is worked on and was named by words that are no order that the robot can read."""
    is_read = plan.choices or any(order.skill for order in intent.orders)
    return () if is_read else named_under_way(intent.told_of, plan.order, around.scene, around.target)


def why_not(intent: Intent, around: Surroundings) -> str:
    """What is asked or refused, in words."""
    if intent.deed == "refuse":
        return refusal(intent, around.world, around.skills)
    return question(intent, around.scene, around.world)


def _talk_about(plan: OrdersUnderWay) -> Conversation:
    """The conversation, with what is being done as the last order."""
    return replace(plan.talk, orders=plan.orders[:1] if plan.orders else plan.talk.orders)


def _small(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


def _ask_whether(plan: OrdersUnderWay, things: Sequence[Reference], now_ns: int) -> tuple[OrdersUnderWay, str]:
    """Hold, and ask whether these are still meant: something was said of them that may forbid it."""
    order = plan.order
    assert order is not None
    about = Order(order.skill, tuple(things), (), order.place, order.relation)
    plan = replace(
        plan, talk=replace(plan.talk, question=about, awaits="yes"), asked_ns=now_ns, choices=tuple(things),
        is_paused=True,
    )  # fmt: skip
    return plan, f"Shall I still {_small(describe(about))}?"


def _answered(plan: OrdersUnderWay, asked: Conversation, intent: Intent) -> tuple[OrdersUnderWay, str] | None:
    """The plan after a yes or a no to `_ask_whether`; None where that was not asked, or not answered."""
    about = asked.question
    if about is None or asked.awaits != "yes" or not plan.choices or about.things != plan.choices:
        return None
    is_yes = intent.deed == "do" and intent.orders == (about,)
    is_no = intent.why in ("declined", "cancelled") or (intent.what == "no" and intent.deed == "nothing")
    if plan.order is None or not (is_yes or is_no):
        return None
    left = plan.choices
    plan = replace(plan, asked_ns=0, choices=(), is_paused=False, at_stop="")
    if is_yes:
        return plan, "All right, I go on."
    return _with_exclusions(plan, plan.order or about, left, ()), f"All right, I leave {_named(left)}."


def _named(things: Sequence[Reference]) -> str:
    return list_words([f"the {_bare(one)}" for one in things])


def _goes_on(plan: OrdersUnderWay) -> str:
    order = plan.order
    return "" if order is None or plan.is_paused else f" I go on: {_small(describe(order))}."


def _nothing(
    plan: OrdersUnderWay, intent: Intent, around: Surroundings, now_ns: int, *, is_stopped: bool = False
) -> tuple[OrdersUnderWay, str]:
    """No order; but something may be protected from now on, or free again, or the order taken back."""
    if intent.why in ("cancelled", "declined"):
        if plan.choices and intent.why == "declined":
            return _ask_which(plan, plan.choices, now_ns)  # neither a yes nor a no says which
        if plan.choices:
            return replace(plan, asked_ns=0, choices=(), is_paused=False), "All right."
        was_asked = plan.asked_ns > 0
        down = _put_down(plan, around, now_ns) if plan.order is not None and not was_asked else None
        if down is not None:
            return down, f"All right. {_promise(down.orders[0])}"
        plan = replace(plan, asked_ns=0, is_over=plan.is_over or not was_asked)
        is_held = was_asked and plan.is_held and plan.order is not None
        return plan, f"All right.{_goes_on(plan)}" if is_held else "All right, I leave it."
    if not (intent.protected or intent.released or intent.unnamed):
        named = named_under_way(intent.told_of, plan.order, around.scene, around.target)
        if named and intent.why in ("told", "") and not plan.choices:
            return _ask_whether(plan, as_references(named, around.scene), now_ns)
        return plan, remark(intent)
    return _spare(plan, intent, around, now_ns, is_stopped=is_stopped)


def _spare(
    plan: OrdersUnderWay, intent: Intent, around: Surroundings, now_ns: int, *, is_stopped: bool
) -> tuple[OrdersUnderWay, str]:
    """Leave alone what is meant, and ask where nobody can tell what that is."""
    order = plan.order
    is_heard_by_vlm = around.target is not None and order is not None and not (is_stopped or plan.is_paused)
    found = _meant(plan, intent, around, is_heard_by_vlm=is_heard_by_vlm)
    if found is None:
        return replace(plan, is_over=True), "All right, I leave it."  # wiping, and not a thing
    left, open_, is_left_by_vlm = found
    if order is None and intent.unnamed and plan.last is not None and plan.last.moved:
        meant = [one for one in plan.last.moved if any(covers(two, one) for two in (*left, *open_))]
        if meant:
            talk = replace(plan.talk, question=Order("undo"), awaits="yes")
            moved = things_words(plan.last.moved, plan.last.order)
            return replace(plan, talk=talk, asked_ns=now_ns), f"{moved} Shall I take that back?"
    if order is None and intent.what == "no":
        return plan, "All right."
    if plan.choices and not any(covers(one, two) or covers(two, one) for one in plan.choices for two in left):
        open_ = list(plan.choices)
    protected = [one for one in plan.talk.protected if one not in intent.protected]
    plan = replace(plan, talk=replace(plan.talk, protected=tuple(dict.fromkeys((*protected, *left)))))
    if order is not None:
        plan = _with_exclusions(plan, order, left, intent.released)
    told = f"All right, I leave the {list_words([_bare(one) for one in left], 'and the')}." if left else ""
    if open_:
        plan, asked = _ask_which(plan, open_, now_ns)
        return plan, f"{told} {asked}".strip()
    if plan.choices:
        plan = replace(plan, asked_ns=0, choices=(), is_paused=False)
    if left and plan.order is not None and not is_left_by_vlm and _is_all_left(plan.order, around):
        plan = replace(plan, is_over=True)
    return plan, told or ("" if is_left_by_vlm else "All right.")


def _meant(
    plan: OrdersUnderWay, intent: Intent, around: Surroundings, *, is_heard_by_vlm: bool
) -> tuple[list[Reference], list[Reference], bool] | None:
    """What is to be left alone; what nobody can tell apart; whether the VLM has left it. None: the work itself."""
    scene, order = around.scene, plan.order
    vague = [one for one in intent.protected if is_vague(one)]
    left = [_as_seen(one, scene) for one in intent.protected if not is_vague(one)]
    open_: list[Reference] = []
    is_left_by_vlm = False
    for what in spared_by(intent):
        found = referents(what, order, scene, around.target)
        if order is not None and not order.things and found.by == "words":
            return None
        if found.by == "words" and plan.choices:
            found = replace(found, things=_among(plan.choices, found.things, scene))
        if found.by == "action" and is_heard_by_vlm:
            is_left_by_vlm = True  # who moves it has left it already, and says so
        elif found.is_clear or 0 < len(found.things) <= what.count:
            left += as_references(found.things, scene)
        elif found.things:
            open_ += as_references(found.things, scene)
        elif what.label:
            left += [one for one in vague if one.label == what.label]  # not seen yet
        else:
            open_ += order.things if order is not None else (Reference(label="*"),)
    return left, open_, is_left_by_vlm


def _as_seen(one: Reference, scene: Scene) -> Reference:
    """ "The red one", as the only red thing that is seen."""
    fitting = {(thing.label, thing.colour) for thing in scene.things if one.label == "*" and fits(thing, one, scene)}
    label, colour = fitting.pop() if len(fitting) == 1 and one.colour else (one.label, one.colour)
    return Reference(label=label, colour=colour, count=one.count, source=one.source)


def _ask_which(plan: OrdersUnderWay, choices: Sequence[Reference], now_ns: int) -> tuple[OrdersUnderWay, str]:
    """Ask which of them is to be left alone, and touch none of them before that is known."""
    kinds = {one.label for one in choices}
    asked = Order(LEAVE, (Reference(label=kinds.pop() if len(kinds) == 1 else "*"),))
    names = sorted({_bare(one) for one in choices})[:MOST_NAMED]
    plan = replace(
        plan, talk=replace(plan.talk, question=asked, awaits="thing"), asked_ns=now_ns, choices=tuple(choices),
        is_paused=plan.order is not None,
    )  # fmt: skip
    named = f": {list_words([f'the {name}' for name in names], 'or')}" if len(names) > 1 else ""
    return plan, f"Which one shall I leave{named}?"


def _shown(intent: Intent, around: Surroundings) -> Intent | None:
    """The order with what somebody points at, where it lacks only that; None where it lacks more, or nobody does."""
    order = intent.orders[0] if len(intent.orders) == 1 == len(intent.unnamed) and intent.why == "which" else None
    found = referents(intent.unnamed[0], None, around.scene) if order is not None else None
    if order is None or found is None or found.by != "pointing" or (order.skill == "place" and not order.place):
        return None
    things = as_references(found.things, around.scene)
    return Intent("do", (Order(order.skill, things, order.excluding, order.place, order.relation),))


def _among(choices: Sequence[Reference], things: Sequence[SeenObject], scene: Scene) -> tuple[SeenObject, ...]:
    """Those of them that were asked about, where one was."""
    return tuple(one for one in things if any(fits(one, choice, scene) for choice in choices)) or tuple(things)


def _is_all_left(order: Order, around: Surroundings) -> bool:
    """Whether nothing that is seen is left to do of an order, and the hand is empty."""
    scene = around.scene
    is_held = any(one.relation == "held by" and one.object == "robot" for one in scene.relations)
    everything = Order(order.skill, order.things, (), order.place, order.relation)
    was_meant = [one for one in scene.things if is_still_meant(one, everything, scene)]
    return (
        not is_held
        and around.target is None
        and bool(was_meant)
        and not any(is_still_meant(one, order, scene) for one in was_meant)
    )


def _with_exclusions(
    plan: OrdersUnderWay, order: Order, left: Sequence[Reference], released: Sequence[Reference]
) -> OrdersUnderWay:
    kept = [one for one in order.excluding if not any(covers(free, one) for free in released)]
    new = [Reference(id=one.id, label=one.label, colour=one.colour, count=one.count) for one in left]
    excluding = tuple(dict.fromkeys((*kept, *new)))
    if excluding == order.excluding:
        return plan
    changed = Order(order.skill, order.things, excluding, order.place, order.relation)
    return replace(plan, orders=(changed, *plan.orders[1:]), revision=plan.revision + 1)


def _do(
    plan: OrdersUnderWay, intent: Intent, around: Surroundings, now_ns: int, other: str = ""
) -> tuple[OrdersUnderWay, str]:
    """Take on what is ordered; `other` is who ordered what is under way, if that is somebody else."""
    orders = intent.orders
    if orders[0].skill == "stop":
        return replace(plan, is_over=True), "All right, I stop that."
    if orders[0].skill == "wait":
        return replace(plan, is_paused=True), "I wait until you tell me."
    if orders[0].skill == "undo":
        return _undo(plan, around, now_ns)
    is_new = not plan.asked_ns and not intent.is_addition
    if is_new and (asked := _contradiction(plan, intent, now_ns, other)):
        talk = replace(plan.talk, question=orders[0], awaits="yes")
        return replace(plan, asked_ns=now_ns, talk=talk, is_held=True), asked
    orders = tuple(_pointed_out(order, around) for order in orders)
    if asked := _ambiguous(orders, around.scene):
        talk = replace(plan.talk, question=orders[0], awaits="thing")
        return replace(plan, asked_ns=now_ns, talk=talk), asked
    if (intent.is_addition or other) and plan.order is not None and not plan.asked_ns:
        return _added(plan, orders)
    before = plan.order
    is_amended = (
        before is not None and len(orders) == 1
        and (before.skill, before.things, before.place) == (orders[0].skill, orders[0].things, orders[0].place)
    )  # fmt: skip
    plan = replace(
        plan,
        number=plan.number if is_amended else plan.number + 1,
        revision=plan.revision + 1 if is_amended else 0,
        orders=orders,
        is_over=False,
        is_paused=False,
        is_held=False,
        was_there=plan.was_there if is_amended else _ids_there(orders[0], around.scene),
        ordered_ns=now_ns,
        asked_ns=0,
        choices=(),
        at_stop="",
        unseen_ns=0 if is_amended or _is_seen(orders[0], around.scene) else now_ns,
    )
    if is_amended:
        left = list_words([_bare(one) for one in orders[0].excluding], "and the")
        return plan, f"All right, I leave the {left}." if left else "All right."
    is_dropped = before is not None and not intent.is_correction and orders[0].things != before.things
    dropped = f" I no longer {_small(describe(before))}." if before is not None and is_dropped else ""
    return plan, f"Sure. {' Then '.join(_promise(order) for order in orders)}{dropped}"


def _added(plan: OrdersUnderWay, orders: Sequence[Order]) -> tuple[OrdersUnderWay, str]:
    """More to do, after what is being done."""
    new = [order for order in orders if order not in plan.orders]
    plan = replace(plan, orders=(*plan.orders, *new)[:MOST_ORDERS])
    return plan, f"All right. Then {' Then '.join(_promise(order) for order in orders)}"


def _promise(order: Order) -> str:
    return f"I will {_small(describe(order))}."


def _contradiction(plan: OrdersUnderWay, intent: Intent, now_ns: int, other: str) -> str:
    """What to ask where the order contradicts one of a moment ago, without correcting it, or one of somebody else."""
    order, new = plan.order, intent.orders[0]
    is_soon = plan.ordered_ns > 0 and to_s(now_ns - plan.ordered_ns) < CONTRADICTS_WITHIN_S
    is_about_place = new.skill == "place" or (bool(other) and new.skill == "hand_over")
    is_doubtful = bool(other) or (is_soon and not intent.is_correction)
    if order is None or not is_doubtful or order.skill != "place" or not is_about_place:
        return ""
    if order.place == new.place or not any(
        covers(one, two) or covers(two, one) for one in order.things for two in new.things
    ):
        return ""
    first = f"{other} said the {order.place}." if other else f"You said the {order.place} a moment ago."
    return (
        f"{first} Shall I {_small(describe(new))} instead?"
        if other
        else f"{first} Shall I use the {new.place} instead?"
    )


def _pointed_out(order: Order, around: Surroundings) -> Order:
    """The order about the things that somebody points at, where its words leave it open which are meant."""
    things: list[Reference] = []
    for one in order.things:
        found = referents(Unnamed(label=one.label), None, around.scene) if is_vague(one) and not one.is_any else None
        is_shown = found is not None and found.by == "pointing"
        things += as_references(found.things, around.scene) if found is not None and is_shown else [one]
    return Order(order.skill, tuple(things), order.excluding, order.place, order.relation)


def _ambiguous(orders: Sequence[Order], scene: Scene) -> str:
    """What to ask where "the cup" could be one of several that are seen."""
    for order in orders:
        for one in order.things:
            if one.count == ALL or one.is_any or one.colour or one.label == "*":
                continue
            fitting = [thing for thing in scene.things if fits(thing, one, scene) and not _is_at(thing, order, scene)]
            names = sorted({thing.name for thing in fitting})
            if one.count == 1 and len(names) > 1:
                return f"Which {one.label} do you mean: {list_words([f'the {name}' for name in names], 'or')}?"
    return ""


def _is_seen(order: Order, scene: Scene) -> bool:
    return any(fits(thing, one, scene) for one in order.things for thing in scene.things)


def doubt(plan: OrdersUnderWay, around: Surroundings, now_ns: int) -> tuple[OrdersUnderWay, str]:
    """What to ask where "the cup" was ordered before any was seen, and now there are several."""
    if not plan.unseen_ns or plan.order is None or plan.asked_ns:
        return plan, ""
    if to_s(now_ns - plan.unseen_ns) > DOUBTS_WITHIN_S:
        return replace(plan, unseen_ns=0), ""
    asked = _ambiguous(plan.orders[:1], around.scene)
    if not asked:
        return plan, ""
    talk = replace(plan.talk, question=plan.order, awaits="thing")
    return replace(plan, asked_ns=now_ns, unseen_ns=0, talk=talk, is_over=True), asked


def _is_at(thing: SeenObject, order: Order, scene: Scene) -> bool:
    return order.skill == "place" and stands(thing, order.place, scene)


def _ids_there(order: Order, scene: Scene) -> frozenset[str]:
    return frozenset(thing.id for thing in scene.things if thing.id and _is_at(thing, order, scene))


def _put_down(plan: OrdersUnderWay, around: Surroundings, now_ns: int) -> OrdersUnderWay | None:
    """The plan to put back what is in the hand; None where nothing is."""
    held = {one.subject for one in around.scene.relations if one.relation == "held by" and one.object == "robot"}
    in_hand = as_references([one for one in around.scene.things if one.id in held], around.scene)
    if not in_hand or around.spec("put_back") is None:
        return None
    down = (Order("put_back", in_hand),)
    return replace(
        plan, number=plan.number + 1, revision=0, orders=down, is_over=False, is_paused=False, ordered_ns=now_ns
    )  # fmt: skip


def _undo(plan: OrdersUnderWay, around: Surroundings, now_ns: int) -> tuple[OrdersUnderWay, str]:
    """Take the last deed back, by what its skill declares; or say why not."""
    order = plan.order
    if order is not None:
        done = Finished(order, _moved(plan, order, around.scene))
    elif plan.last is not None:
        done = plan.last
    else:
        return plan, "I have not done anything yet that I could take back."
    spec = around.spec(done.order.skill)
    is_undone = spec is not None and spec.undo != ""
    if not done.moved and (down := _put_down(plan, around, now_ns)) is not None:
        return down, f"I am sorry. {_promise(down.orders[0])}"
    if not done.moved and (is_undone or order is not None):
        return replace(plan, is_over=True), "All right, I stop that. I have moved nothing yet."
    if not is_undone or spec is None:
        return plan, f"I cannot take that back: nothing undoes {done.order.skill.replace('_', ' ')}."
    places = [place for place in around.world.places if place != done.order.place]
    if not places or around.spec(spec.undo) is None:
        return plan, "I cannot take that back: I know no other place."
    home = next((place for place in lexicon_file().household["home"] if place in places), sorted(places)[0])
    back = Order("place", done.moved, (), home, "in" if home in INSIDE else "on")
    plan = replace(
        plan, number=plan.number + 1, revision=0, orders=(back,), is_over=False, is_paused=False,
        was_there=_ids_there(back, around.scene), ordered_ns=now_ns, last=None,
    )  # fmt: skip
    return plan, f"I am sorry. {_promise(back)}"


def _moved(plan: OrdersUnderWay, order: Order, scene: Scene) -> tuple[Reference, ...]:
    """What stands at the order's place now and did not before."""
    return tuple(
        Reference(id=thing.id, label=thing.label, colour=thing.colour)
        for thing in scene.things
        if not thing.is_place and _is_at(thing, order, scene) and thing.id not in plan.was_there
    )


def report(
    plan: OrdersUnderWay, description: SceneDescription, around: Surroundings, now_ns: int = 0
) -> tuple[OrdersUnderWay, str]:
    """The plan after a description by the VLM, and what to say about it."""
    subtask = plan.subtask
    if subtask is None:
        return _recover(plan, description), ""
    order = plan.order
    if order is None or description.subtask_id != subtask.id:
        return plan, ""
    left = [one for one in description.left if not any(covers(two, one) for two in order.excluding)]
    if left:  # "not that one": only the VLM knew which
        talk = replace(plan.talk, protected=tuple(dict.fromkeys((*plan.talk.protected, *left))))
        plan = replace(_with_exclusions(plan, order, left, ()), revision=plan.revision, talk=talk)
        order = plan.orders[0]
    if description.progress not in ("finished", "failed"):
        return plan, ""
    moved = _moved(plan, order, around.scene) if order.skill == "place" else ()
    done = replace(plan, last=Finished(order, moved))
    if description.progress == "failed":
        so_far = f" {things_words(moved, order)}" if moved else " Nothing was moved." if order.skill == "place" else ""
        why = description.why.rstrip(".") or "something does not work"
        return replace(
            done, is_over=True
        ), f"I have to give up: {why}.{so_far}{_left_undone(order, description, around)}"
    if order.skill == "place" and not moved:
        text = f"I moved nothing: I see {_nothing_to_move(order, around.scene)}."
    else:
        text = _outcome(order, moved)
    if order.skill == "place" and all(one.count in (1, ALL) for one in order.things):
        text += _left_undone(order, description, around)
    if len(plan.orders) > 1:
        rest = plan.orders[1:]
        plan = replace(
            done, number=plan.number + 1, revision=0, orders=rest, was_there=_ids_there(rest[0], around.scene),
            ordered_ns=now_ns,
        )  # fmt: skip
        return plan, f"{text} {_promise(rest[0])}"
    is_said = moved or order.skill not in ("place", "point")
    return replace(done, is_over=True), f"I am done. {text}" if is_said else text


def _left_undone(order: Order, description: SceneDescription, around: Surroundings) -> str:
    """Where the things are that it was about and that were not brought there; and what is found no more."""
    scene, gone = around.scene, [(one.label, one.colour) for one in description.gone]
    left = [one for one in scene.things if is_still_meant(one, order, scene) and (one.label, one.colour) not in gone]
    text = f" {where_are(left, scene)}" if left else ""
    return f"{text} I do not find {_named(description.gone)} any more." if gone else text


def _outcome(order: Order, moved: tuple[Reference, ...]) -> str:
    if order.skill == "place":
        left = list_words([f"the {_bare(one)}" for one in order.excluding])
        return things_words(moved, order) + (f" I left {left}." if left else "")
    if order.skill == "pick":
        return f"I hold {list_words([name_of_reference(one) for one in order.things])}."
    if order.skill == "hand_over":
        return f"You have {list_words([name_of_reference(one) for one in order.things])}."
    if order.skill == "put_back":
        return f"I put back {list_words([name_of_reference(one) for one in order.things])}."
    if order.skill == "point":
        return f"That is {list_words([name_of_reference(one) for one in order.things]) or f'the {order.place}'}."
    return ""


def _nothing_to_move(order: Order, scene: Scene) -> str:
    """Why nothing was moved: "no bowl", "no cup that is not in the bin already"."""
    names = []
    for one in order.things:
        there = [thing for thing in scene.things if fits(thing, one, scene) and _is_at(thing, order, scene)]
        bare = "thing" if one.label == "*" else one.label
        kind = bare if one.count == 1 else plural_of(bare)
        words = f"{one.colour} {kind}".strip()
        names.append(
            f"no {words} that {'is' if one.count == 1 else 'are'} not {order.relation} the {order.place} already"
            if there
            else f"no {words}"
        )
    return list_words(names) or "nothing"


def given_up(plan: OrdersUnderWay, now_ns: int) -> tuple[OrdersUnderWay, str]:
    """After a question that nobody answered: it is closed, and that is said."""
    if not plan.asked_ns or to_s(now_ns - plan.asked_ns) < ANSWER_WITHIN_S:
        return plan, ""
    talk = replace(plan.talk, question=None, awaits="")
    if plan.choices:
        left, plan = plan.choices, replace(plan, asked_ns=0, choices=(), is_paused=False, talk=talk)
        plan = _with_exclusions(plan, plan.order, left, ()) if plan.order is not None else plan
        names = list_words([f"the {_bare(one)}" for one in left])
        return plan, f"Nobody answered for {ANSWER_WITHIN_S:.0f} seconds, so I leave {names}."
    return replace(
        plan, asked_ns=0, talk=talk
    ), f"Nobody answered for {ANSWER_WITHIN_S:.0f} seconds, so I leave it. {anything_else(plan.order)}".strip()


def _recover(plan: OrdersUnderWay, description: SceneDescription) -> OrdersUnderWay:
    """After a restart of the planner: the order that the VLM still works on."""
    subtask = description.subtask
    if subtask is None or subtask.state != "work" or description.progress == "idle":
        return plan
    number, _, revision = subtask.id.removeprefix("task-").partition(".")
    if not (subtask.id.startswith("task-") and number.isdigit() and revision.isdigit()):
        return plan
    skill = {name: alias for alias, name in ALIASES.items()}.get(subtask.skill, subtask.skill)
    order = Order(skill, subtask.things, subtask.excluding, subtask.place, subtask.relation)
    return replace(plan, number=int(number), revision=int(revision), orders=(order,))
