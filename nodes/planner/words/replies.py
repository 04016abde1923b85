"""What the scripted planner says: answers, questions and refusals, in sentences about what is seen. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.msgs import Reference, Scene, SeenObject, SkillSpec
from nodes.planner.orders import ALL, Order, OrderVocabulary
from nodes.planner.words.lexicon import plural_of
from nodes.planner.words.referents import fits, standing, stands
from nodes.planner.words.understanding import Intent

MOST_NAMED = 8
LONGEST_WORD = 40
NEEDS = frozenset({"thirsty", "hungry", "starving", "parched"})
DISCOMFORTS = frozenset(
    {"cold", "hot", "warm", "dark", "loud", "tired", "exhausted", "ill", "sick", "sad", "bored", "hurts", "freezing"}
)
ARRIVALS = frozenset({"coming", "comes", "arriving", "arrives", "here", "soon", "ringing", "back", "leaving"})
HUSHES = frozenset({"quiet", "shut", "hush", "silence"})


def list_words(words: Sequence[str], joint: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def name_of_reference(reference: Reference) -> str:
    """ "every red cup", "the red cup", "a cup", "two cups"."""
    label = "thing" if reference.label in ("*", "") else reference.label
    words = label if reference.colour == label else f"{reference.colour} {label}".strip()
    where = f" from the {reference.source}" if reference.source else ""
    if reference.count == ALL:
        return f"every {words}{where}" if words != "thing" else f"everything{where}"
    if reference.count > 1:
        return f"{reference.count} {reference.colour} {plural_of(label)}".replace("  ", " ") + where
    return f"{'a' if reference.is_any else 'the'} {words}{where}"


def bare(reference: Reference) -> str:
    """ "red cup", "things"."""
    label = reference.label if reference.label != "*" else "thing"
    colour = reference.colour if reference.colour != label else ""
    return f"{colour} {label if reference.count == 1 else plural_of(label)}".strip()


def named(things: Sequence[Reference]) -> str:
    """ "the red cup and the blue cup"."""
    return list_words([f"the {bare(one)}" for one in things])


def small(text: str) -> str:
    """With a small letter, for the middle of a sentence."""
    return f"{text[:1].lower()}{text[1:]}"


_VERBS = {
    "place": "put", "put_back": "put back", "hand_over": "hand over", "point": "point at", "look": "look at",
    "rinse": "wash", "wait_here": "wait", "drive": "drive to",
}  # fmt: skip


def describe(order: Order) -> str:
    """The order in words: "Put every cup except the blue cup in the bin"."""
    words = [_VERBS.get(order.skill, order.skill.replace("_", " "))]
    if order.things and order.skill not in ("wipe", "wait_here"):
        words.append(list_words([name_of_reference(thing) for thing in order.things]))
    if order.skill in ("wipe", "drive", "look", "point"):
        words += [f"the {order.place}"] if order.place else []
    elif not (order.skill == "rinse" and order.things):
        is_of_several = any(one.count != 1 for one in order.things) or not order.things
        words += [f"except {named(order.excluding)}"] if order.excluding and is_of_several else []
        words += [f"{order.relation or 'at'} the {order.place}"] if order.place else []
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def promise(order: Order) -> str:
    """ "I will put the red cup in the bin."."""
    return f"I will {small(describe(order))}."


def in_short(orders: Sequence[Order]) -> list[str]:
    """Each in words, with a small letter; to be filled at machines and handed over is one deed with a vessel."""
    fills = {(one.things, one.place) for one in orders if one.skill == "wait_here"}
    filled = {things for things, _ in fills}
    told = [one for one in orders if one.skill != "wait_here" and (one.things, one.place) not in fills]
    return [
        f"fill {named(one.things)} and hand it over" if one.skill == "hand_over" and one.things in filled
        else small(describe(one))
        for one in told or orders
    ]  # fmt: skip


def outcome(order: Order, moved: Sequence[Reference]) -> str:
    """What has become of an order that is done."""
    things = list_words([name_of_reference(one) for one in order.things])
    match order.skill:
        case "place":
            left = f" I left {named(order.excluding)}." if order.excluding else ""
            return f"{things_words(moved, order)}{left}"
        case "pick":
            return f"I hold {things}."
        case "hand_over":
            return f"You have {things}."
        case "put_back":
            return f"I put back {things}."
        case "point":
            return f"That is {things or f'the {order.place}'}."
    return ""


def moved_nothing(order: Order, scene: Scene) -> str:
    """Why nothing was moved: "no bowl", "no cup that is not in the bin already"."""
    names = []
    for one in order.things:
        there = [each for each in scene.things if fits(each, one, scene) and stands(each, order.place, scene)]
        is_are = f" that {'is' if one.count == 1 else 'are'} not {order.relation} the {order.place} already"
        names.append(f"no {bare(one)}{is_are if there else ''}")
    return list_words(names) or "nothing"


def things_words(moved: Sequence[Reference], order: Order) -> str:
    """ "The red cup and the blue cup are in the bin."."""
    names = [f"the {one.colour} {one.label}".replace("  ", " ") for one in moved]
    text = f"{list_words(names)} {'is' if len(names) == 1 else 'are'} {order.relation or 'at'} the {order.place}."
    return text[:1].upper() + text[1:]


def _places(world: OrderVocabulary) -> str:
    return list_words([f"the {place}" for place in sorted(world.places)]) or "no place yet"


def abilities(skills: Sequence[SkillSpec]) -> str:
    """Names of all skills but to hold still."""
    return list_words([spec.name.replace("_", " ") for spec in skills if spec.name != "hold"])


def short(word: str) -> str:
    """A word of an utterance as it is said again, cut where it is too long."""
    return word if len(word) <= LONGEST_WORD else f"{word[:LONGEST_WORD]}..."


def question(intent: Intent, scene: Scene, world: OrderVocabulary) -> str:
    """What to ask where something is missing or contradicts itself."""
    order = intent.orders[0] if intent.orders else Order("")
    thing = list_words([name_of_reference(one) for one in order.things]) or "it"
    what = short(intent.what)
    match intent.why:
        case "where":
            if intent.what and intent.what in world.kinds:
                return f"I cannot put things on or in a {what}. I can reach {_places(world)}. Which shall I use?"
            is_put = order.skill == "place"
            asked = f"Where shall I put {thing}? I can reach" if is_put else "Which place do you mean? I know"
            return f"{asked} {_places(world)}."
        case "relative":
            return refusal(intent, world, ())
        case "tidy":
            return f"What shall I put where? I can reach {_places(world)}."
        case "protected":
            return f"I was asked to leave the {what}. Shall I take it now?"
        case "contradiction":
            return f"I heard two things that do not go together{f' about the {what}' if what else ''}. Which one is it?"
        case "waste":
            return f"Shall I really throw {thing} away?"
        case "owner":
            whose = "yours" if what == "my" else f"{what}'s" if what not in ("his", "her", "our", "their") else what
            return f"I do not know which one is {whose}. Which one do you mean?"
        case "words":
            return f"I do not know what {what!r} changes here. Can you say it in other words?"
        case "choice":
            return "Which of them do you mean?"
        case "condition":
            return f"I cannot tell when that is so ({what!r}). Shall I {small(describe(order))} now?"
        case "which_place":
            return f"I know one {what} only. Shall I use it?" if what in world.places else f"Which {what} do you mean?"
        case "unsure":
            return f"I am not sure about the {what}. What shall I do with it?" if what else "Tell me when you know."
        case "which":
            there = standing([one for one in scene.things if not one.is_place], scene)
            seen = [f"the {one.name}" for one in there][:MOST_NAMED]
            return f"Which one do you mean? I see {list_words(seen) or 'nothing that I could take'}."
    return f"What shall I do? I can reach {_places(world)}."


def refusal(intent: Intent, world: OrderVocabulary, skills: Sequence[SkillSpec]) -> str:
    """Why not, and what there is instead; nothing is substituted."""
    what = short(intent.what)
    match intent.why:
        case "place":
            return f"I cannot reach a {what!r}. I can reach {_places(world)}. Which shall I use?"
        case "kind":
            known = list_words([plural_of(kind) for kind in sorted(world.kinds)]) or "nothing yet"
            if len(world.kinds) > MOST_NAMED:  # nobody listens to so many
                return f"I know no {what!r} here, so I cannot do that."
            return f"I know no {what!r}. I can tell apart {known}."
        case "relative":
            return f"I cannot put things “{what}”. I can put them in, on or beside {_places(world)}."
        case "relation":
            return f"I cannot put or look there ({what}). I can put things in, on or beside {_places(world)}."
    return f"I cannot do that: I have no skill for {what!r}. I can {abilities(skills) or 'do nothing yet'}."


def remark(intent: Intent) -> str:
    """What to say to something that orders and asks nothing; "" where somebody else is spoken to.

    A need is answered with what would help, and never with a deed: nobody ordered one.
    """
    if intent.why == "elsewhere":
        return ""
    words = set(intent.what.split())
    if words & HUSHES:
        return "All right."
    if words & NEEDS:
        return "I hear you. Tell me what I can bring you."
    if words & DISCOMFORTS:
        return "I am sorry to hear that. Tell me if I can help."
    if words & ARRIVALS:
        return "Thank you for telling me."
    return "I see."


def where_are(things: Sequence[SeenObject], scene: Scene) -> str:
    """ "The red cup is on the table and the ball is in my hand."; "" of no things."""
    by_id = {thing.id: thing for thing in scene.things}
    told = []
    for thing in things[:MOST_NAMED]:
        where = next((one for one in scene.relations if one.subject == thing.id and one.relation != "beside"), None)
        if where is None:
            told.append(f"the {thing.name} is here")
        elif where.object == "robot":
            told.append(f"the {thing.name} is in my hand")
        else:
            place = by_id.get(where.object)
            told.append(f"the {thing.name} is {where.relation} the {place.label if place else where.object}")
    text = list_words(told)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
