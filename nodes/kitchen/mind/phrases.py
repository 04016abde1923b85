"""What people in a kitchen say around an order, told from the words alone: "that is wrong", "not the blue one", "mine".

Orders themselves are read by the parser of `nodes.planner`. Each function takes a sentence as `plain` gives it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodes.interrupts.intent import says_yes
from nodes.kitchen.mind.household import household
from nodes.msgs import SeenObject

_NOT = re.compile(r"\b(?:not|leave|keep|except|spare|without) (?:the |that |my )?(\w+)\b")
_NOTHING_WRONG = re.compile(r"\b(?:nothing|not|isn't) wrong\b|\bwrong with\b")
_ALL = re.compile(r"(?:oh |well |please )?(?:both|all)(?: of them| mugs| of those)?(?: please)?$")
_DENIED = re.compile(r"\b(?:not|but|except|never|nor) (?:in|on|to|at|into|onto)? ?(?:the )?\w+")
_WRONG = re.compile(r"\b(wrong|not right|mistake|isn't right)\b")
_OUT = re.compile(r"\b(out|back)\b")
_THIS = re.compile(r"\b(this|that)( one)?\b")
_YOU = re.compile(r"^(you|robot)[, ]+(?=take|put|do|bring|wipe|clear)", re.I)
_KEEPS = re.compile(r"\b(still|not yet|not finished|want to finish|finish it|leave it|keep it)\b")
_YES = re.compile(r"(yes|yeah|sure|ok|okay|please do|go ahead|i am (done|finished))\b")
_NO = re.compile(r"(no|nope|not)\b")
_WANTS = re.compile(r"\b(make|like|want|bring|get|have|could|can|please)\b")
_COUNTS = {"two": 2, "both": 2, "three": 3, "four": 4}
_WITH = re.compile(r"\bcoffees? with ((?:(?:and|a|some|little|bit|of|with|lots|no|please) |\w+ and )*\w+)")
_SMALL = frozenset({"and", "a", "some", "little", "bit", "of", "with", "lots", "please"})
_GO = re.compile(r"^(?:no,? |well,? |and |but )*(?:the )?\w+(?: \w+)? (?:go|belong|live|always go) (?:in|on)(?:to)?\b")
_AWAY = re.compile(r"\bput\b.*\baway\b")
_TIDIES = re.compile(r"\beverything off\b|\bneeds? (clearing|tidying)\b")
_NO_TIDYING = re.compile(r"\bwipe|\bmy\b")


def small(text: str) -> str:
    """Small letters, written out."""
    return (
        text.lower()
        .replace("’", "'")
        .replace("don't", "do not")
        .replace("i'll", "i will")
        .replace("i'm", "i am")
        .replace("that's", "that is")
    )


def plain(text: str) -> str:
    """Small letters, written out, and without marks of shouting and asking."""
    return re.sub(r"[!?]", " ", small(text)).replace(" ,", ",").strip(" .,")


# --- of what was done


def says_wrong(sentence: str) -> bool:
    """That something should not have been done."""
    return bool(_WRONG.search(_NOTHING_WRONG.sub("", sentence)))


def wants_back(sentence: str) -> bool:
    """That it is to be taken out or back."""
    return bool(_OUT.search(sentence))


def wants_kept(sentence: str) -> bool:
    """That somebody still needs it."""
    return bool(_KEEPS.search(sentence))


def barred(sentence: str) -> set[str]:
    """The words behind "not", "leave", "keep"."""
    return set(_NOT.findall(sentence))


def barred_vessels(sentence: str) -> set[str]:
    """The words behind "not in the"."""
    return set(re.findall(r"\bnot (?:in |into |with )?(?:the |my |a )?(\w+)", sentence))


def means_all(sentence: str) -> bool:
    """ "Both", of what can be chosen."""
    return bool(_ALL.match(sentence.strip(" .,")))


def without_denied(sentence: str) -> str:
    """Without the places that are not meant: "not in the sink"."""
    return _DENIED.sub("", sentence)


# --- answers


def yes_or_no(text: str, sentence: str) -> bool | None:
    """Of an answer to a question that can be answered so; None where it is neither."""
    if says_yes(text) or _YES.match(sentence):
        return True
    return False if _NO.match(sentence) or wants_kept(sentence) else None


def says_no(sentence: str) -> bool:
    """Whether it begins with a no."""
    return bool(_NO.match(sentence))


def points_out(sentence: str) -> bool:
    """ "This", "that one"."""
    return bool(_THIS.search(sentence))


# --- what is wished for


def is_without_cream(sentence: str) -> bool:
    """That a coffee is to be black."""
    return bool(re.search(household().chores["without"], sentence))


def speaks_of_coffee(sentence: str) -> bool:
    """Of coffee at all."""
    return bool(re.search(household().chores["coffee"], sentence))


def wants_coffee(sentence: str) -> bool:
    """That one is to be made."""
    return speaks_of_coffee(sentence) and bool(_WANTS.search(sentence))


def cups_of_coffee(sentence: str) -> int:
    """How many are wished for."""
    words = sentence.split()
    return next((_COUNTS.get(word) or int(word) for word in words if word in _COUNTS or word in ("2", "3", "4")), 1)


def put_into_coffee(sentence: str) -> list[str]:
    """What is to be in it: "milk", "sugar"."""
    found = _WITH.search(sentence.replace(",", " and"))
    return [word for word in found[1].split() if word not in _SMALL] if found else []


def wants_drink(sentence: str) -> bool:
    """Anything to drink."""
    return bool(re.search(household().chores["drink"], sentence))


def wants_dishes(sentence: str) -> bool:
    """That what is dirty is washed."""
    return bool(re.search(household().chores["dishes"], sentence))


def wants_fruit_washed(sentence: str) -> bool:
    """That fruit is."""
    return bool(re.search(household().chores["fruit"], sentence))


def wants_table_cleared(sentence: str) -> bool:
    """That the table is; not a wish about the fruit or somebody's own things."""
    is_table = "table" in sentence.split() or not wants_fruit_washed(sentence)
    tidies = re.search(household().chores["tidy"], sentence) or _TIDIES.search(sentence)
    return is_table and bool(tidies) and not _NO_TIDYING.search(sentence)


def tells_where_kinds_go(sentence: str) -> bool:
    """ "The mugs go on the shelf": what holds from now on, beside being an order."""
    return bool(_GO.match(sentence))


def puts_away(sentence: str) -> bool:
    """That a thing is to go where it belongs."""
    return bool(_AWAY.search(sentence))


# --- orders with more in them than an order


def without_you(sentence: str) -> str:
    """Without being spoken to."""
    return _YOU.sub("", sentence)


def spelled_out(sentence: str, own: Sequence[SeenObject], shown: SeenObject | None, held: Sequence[SeenObject]) -> str:
    """With "this one", "my mug" and other names as what they mean here.

    `own`: what the speaker owns; `shown`: what is pointed at or held out; `held`: what people hold.
    """
    for word, meant in household().words.items():
        sentence = re.sub(rf"\b{word}\b", meant, sentence)

    def mine(found: re.Match[str]) -> str:
        fitting = [one for one in own if one.label == found[1]]
        return f"the {fitting[0].name}" if len(fitting) == 1 else found[0]

    sentence = re.sub(r"\bmy (\w+)\b", mine, sentence)
    if shown is None:
        return sentence
    name = f"the {shown.name}"
    sentence = _THIS.sub(name, re.sub(rf"\b(this|that) {shown.label}\b", name, sentence), count=1)
    return re.sub(rf"\btake {name}\b(?: from me)? and put it\b", f"put {name}", sentence) if shown in held else sentence
