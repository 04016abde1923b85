"""Whose a thing is, as people say it: "the green cup belongs to Granny", "mine's the red one", "that's the dog's ball".

An owner may be absent, and need not have a name: "Ann's mother", "the dog". Pure functions of the words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from nodes.msgs import Scene, SeenObject
from nodes.planner.words.lexicon import plural_of
from nodes.planner.words.replies import list_words

_WHO = r"(?:(?:my|our|his|her|their|the) (?:[a-z]+ )?[a-z]+|[A-Z][a-z]+|(?:guests|visitors|children|kids)\b)"
_THEIRS = rf"(?:mine|ours|{_WHO}'s)"
_BE = r"(?:\b(?:is|are|was|were)|(?<=[a-z])'s)(?: (?:all|both|also|really|actually|still|already|only|just))*"
_SAYS = tuple(
    re.compile(one)
    for one in (
        rf"{_BE} (?P<who>{_THEIRS})(?: (?P<kind>[a-z]+))?(?=\s*$|\s+and\b| now\b| too\b| by the way\b)",
        rf"\bbelongs? to (?P<who>me|us|{_WHO})",
        rf"{_BE} (?:meant |reserved |kept )*for (?P<who>me|us|{_WHO})(?=\s*$|\s+and\b)",
        rf"{_BE} (?P<who>my|our) (?P<kind>[a-z]+)(?=\s*$|\s+and\b)",
    )
)
_IS_THE = re.compile(
    rf"(?:^|\band |\bthat )(?P<who>(?i:mine|ours|my|our)|{_WHO}'s|(?i:my|our|the) [a-z]+'s)(?: (?P<kind>[a-z]+))?"
    r"(?:'s| is| are) (?=the |that |this )"
)
_PARTS = re.compile(r"([.,;:!?–—]+\s*|\b(?:but|so|because|since|though|or)\b)")
_ASKS = re.compile(r"(?:and |but |so |oh )*(?:who|whose|which|what|where|why|how|is|are|was|do|does|did|can)\b", re.I)
_NOBODY = frozenset(
    ("it", "that", "this", "there", "here", "what", "who", "he", "she", "let", "one", "other", "all", "today")
)
_ANYBODY = frozenset({"anybody", "anyone"})
_ANY_KIND = frozenset({"", "one", "ones", "thing", "own", "favourite"})
_POINTS = re.compile(r"\W*(?:(?:and|oh|well|no|hey|because|as) )*(?:it|that|this|that one|this one)\W*", re.I)
_OWNED = re.compile(
    rf"\b(?:(?:what|whatever|all that|everything that)(?: is|'s) (?P<a>{_THEIRS})"
    rf"|(?:anything|everything|something|all) (?:that is |of )(?P<b>{_THEIRS})"
    rf"|(?P<c>{_WHO}'s|(?i:my|our)) (?:things|stuff|belongings|property))(?! [a-z]*(?:is|are|was)\b)"
)
_NOT_OWNED = re.compile(
    r"\b(?P<all>anything|everything|all|whatever|(?:all )?(?:of )?the [a-z]+(?= (?:that|which)))(?: that| which)?"
    rf"(?:(?: is|'s| are|'re) not| isn't| aren't|(?: does not| doesn't| do not| don't) belong to)"
    rf" (?P<who>{_THEIRS}|me|us|{_WHO})(?! [a-z]*(?:is|are|was)\b)", re.I
)  # fmt: skip
"""All but what is somebody's: "everything that isn't Ben's"."""
_OF_KIND = re.compile(rf"\b(?P<who>{_WHO}'s|(?i:my|our)(?= own )) (?:own )?(?P<kind>[a-z]+)\b")
_OF_OTHER = re.compile(r"(?<!give )(?<!hand )(?<!bring )(?<!pass )(?<!get )(?<!for )(?<!to )(?<!let )"
                       r"\b(?:his|her|their) (?:own )?(?P<kind>[a-z]+)\b", re.I)  # fmt: skip
_OF_NOBODY = re.compile(
    r"\bthe (?P<kind>[a-z]+) (?:that|which)(?: is|'s| are) (?:nobody|no[ -]one)(?:'s)?(?: else's)?\b"
    r"|\bthe (?P<which>[a-z]+) (?:(?:that|which) belongs? to (?:nobody|no[ -]one)|without an owner)\b", re.I
)  # fmt: skip
_OF_WHOM = re.compile(
    r"\b(?:the|that) (?P<kind>[a-z]+) (?:(?:that|which) ?(?:'s|is)|(?:that |which )?belong(?:s|ing) to) "
    rf"(?P<who>{_THEIRS}|me|us|{_WHO})"
)
"""Which one it is, told by whose it is: "the mug that belongs to her"."""
_LEAVES = re.compile(r"\b(?:stays?|leave (?:it|that|them)|hands off|nobody|no one|not|never)\b|n't\b", re.I)
"""What behind it says no more than that it is left: "..., so please don't touch it"."""

_FOR_ALL = re.compile(r"\b(?:nobody|no one|none of (?:us|you)|never|ever)\b", re.I)
_NOT_EVEN_I = re.compile(r"\bnot even (?:me|us|i|myself)\b", re.I)


class Named(Protocol):
    """What words name, or, with `is_behind`, what "that" behind them means."""

    def __call__(self, words: str, *, is_behind: bool = False) -> Sequence[SeenObject]: ...


def binds_all(text: str, *, is_owner: bool) -> bool:
    """Whether words that forbid something bind who says them as well; an owner forbids it to others."""
    return (_NOT_EVEN_I if is_owner else _FOR_ALL).search(text) is not None


def forbids(text: str) -> bool:
    """Whether words that say whose something is forbid to take it as well."""
    return _LEAVES.search(text) is not None


def _owner(who: str, speaker: str) -> str:
    """The name of an owner; "" for a word that is none."""
    who = re.sub(r"'s$", "", who)
    if who.lower() in ("mine", "ours", "me", "us", "my", "our"):
        return speaker
    first, _, rest = who.partition(" ")
    if first.lower() in ("my", "our"):
        return f"{speaker}'s {rest}" if speaker else who
    return "" if who.lower() in _NOBODY else who


def _told_in(part: str, *, is_asked: bool) -> list[re.Match[str]]:
    """Where it is said whose something is."""
    if is_asked and _ASKS.match(part.strip()):
        return []
    found = [one for way in _SAYS for one in way.finditer(part)]
    return [*sorted(found, key=lambda one: one.start()), *_IS_THE.finditer(part)]


def owners_told(
    text: str, scene: Scene, speaker: str, owners: Mapping[str, str], named: Named
) -> tuple[Mapping[str, str], str]:
    """Whose each thing is, by its id, after an utterance, and what else that says; `named` tells what words mean."""
    told, rest = dict(owners), ""
    last: Sequence[SeenObject] = ()
    labels = {word for one in scene.things if not one.is_place for word in (one.label, plural_of(one.label))}
    names = {"bin", *labels, *(name for one in scene.things for name in (one.label, one.colour) if name)}
    cut = False
    parts = _PARTS.split(text.replace("’", "'"))
    for number in range(0, len(parts), 2):
        part, mark, kind, begun = parts[number], "".join(parts[number + 1 : number + 2]), "", 0
        behind = "".join(parts[number + 2 : number + 3]).lower() if mark.startswith(",") else ""  # of this sentence
        for found in _told_in(part, is_asked=mark.startswith("?")):
            who, label = _owner(found["who"], speaker), (found.groupdict().get("kind") or "").lower()
            if found.re is _IS_THE:
                things, end = named(re.sub(r"\bone\b", label or "one", part[found.end() :])), len(part)
            else:
                subject, end = part[begun : found.start()], found.end()
                if _POINTS.fullmatch(subject):
                    is_apposed = behind.lstrip().startswith("the ")
                    apposed = named(re.sub(r"\bone\b", label or "one", behind)) if is_apposed else ()
                    shown = [one for one in apposed if one.colour in behind.split()]
                    things = tuple(shown) or tuple(one for one in last if label in ("", one.label)) or named(subject)
                    things = named(f"the {label}") or things if label in labels and not shown and not last else things
                else:
                    things = named(re.sub(r"\bone$", kind or "one", subject.strip()))
            is_kind = label in _ANY_KIND or label in labels
            if (
                who
                and is_kind
                and things
                and names.isdisjoint(who.lower().split())
                and " not" not in part[: found.end()]
            ):
                told |= {one.id: who for one in things if one.id}
                kind, begun = things[0].label, end
        is_said = begun == 0 and cut and _LEAVES.search(part) and not {*part.lower().split()} & names
        cut = begun > 0 or (bool(is_said) and mark[:1] not in ".!?")
        begun = len(part) if is_said else begun
        last = (named(part, is_behind=True) if begun == 0 else ()) or last
        rest += part[begun:] + (mark if part[begun:].strip() or rest.strip() else "")
    return told, rest.strip()


def with_owned(text: str, scene: Scene, speaker: str) -> str:
    """An utterance with "Ben's cup" and "what is mine" as what these are."""

    def owned(who: str, kind: str = "") -> list[SeenObject]:
        name = _owner(who, speaker).lower()
        names = ({name} if name not in _ANYBODY else {one.owner.lower() for one in scene.things}) - {""}
        return [one for one in scene.things if one.owner.lower() in names and (kind == one.label or kind in _ANY_KIND)]

    def named(things: Sequence[SeenObject], found: re.Match[str]) -> str:
        return list_words([f"the {one.name}" for one in things]) if things else found[0]

    def all_but(found: re.Match[str]) -> str:
        every = "everything" if found["all"].lower() in ("anything", "whatever") else found["all"]
        things = owned(found["who"])
        is_free = not things and _owner(found["who"], speaker).lower() in _ANYBODY  # nobody has any
        return every if is_free else f"{every} except {named(things, found)}" if things else found[0]

    def of_nobody(found: re.Match[str]) -> str:
        kind = (found["kind"] or found["which"]).lower()
        free = [one for one in scene.things if not (one.owner or one.is_place)]
        things = [one for one in free if kind in (one.label, plural_of(one.label), "one", "ones", "thing", "things")]
        return named(things if len(things) == 1 or kind.endswith("s") else (), found)

    def one_of(found: re.Match[str]) -> str:
        things = owned(found["who"], found["kind"].lower())
        return named(things if len(things) == 1 else (), found)

    def of_other(found: re.Match[str]) -> str:
        kind = found["kind"].lower()
        things = [one for one in scene.things if one.owner.lower() not in ("", speaker.lower())]
        things = [one for one in things if kind in (one.label, "one")]
        return named(things if len(things) == 1 else (), found)

    text = _NOT_OWNED.sub(all_but, text.replace("’", "'"))
    text = _OWNED.sub(lambda found: named(owned(found["a"] or found["b"] or found["c"]), found), text)
    text = _OF_OTHER.sub(of_other, text)
    return _OF_KIND.sub(one_of, _OF_WHOM.sub(one_of, _OF_NOBODY.sub(of_nobody, text)))


def with_owners(scene: Scene, owners: Mapping[str, str]) -> Scene:
    """The scene, with whose a thing is as people told."""
    if not owners:
        return scene
    things = tuple(
        msgspec.structs.replace(one, owner=owners.get(one.id) or one.owner)  # type: ignore[type-var]  # a Struct
        for one in scene.things
    )
    return msgspec.structs.replace(scene, things=things)  # type: ignore[type-var]  # a Struct
