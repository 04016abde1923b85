"""What an utterance asks for, from its words alone; the phrases are in `understanding.toml`.

A stop outranks everything, then a request to go on, a bare "mhm", a correction, an order. Colours behind a negator are
to be left alone ("not the blue one"), other colours of a correction are wanted ("no, the green one").
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Wants = Literal["stop", "resume", "amend", "order", "nothing"]

_TABLE = Path(__file__).with_suffix(".toml")
_CLAUSE_END = re.compile(r"[.,;:!?…–—、。！？，；：\n]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_DRAWN_OUT = re.compile(r"([a-z])\1{2,}")
_CJK_NEGATIONS = ("不要", "不用", "别", "別", "不", "没")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one utterance asks for; kinds, colours and places in the robot's own words ("cup", "blue", "bin")."""

    wants: Wants
    can_do: bool = False  # an order whose verb is to put things somewhere
    kind: str = ""
    is_everything: bool = False
    where: str = ""
    excluding: tuple[str, ...] = ()  # colours to leave alone
    including: tuple[str, ...] = ()  # colours wanted
    is_about_current: bool = False  # objects to what is being done, without naming it
    puts_back: bool = False
    takes_back: bool = False  # says that what made the robot stop was a false alarm
    is_sure: bool = True  # stop: said plainly, and not a bare "ah" or "hey"
    is_listening: bool = False  # says only "mhm" or "okay"


@cache
def _tables() -> dict[str, dict[str, tuple[str, ...]]]:
    with _TABLE.open("rb") as file:
        loaded = tomllib.load(file)
    return {
        table: {key: tuple(_words(phrase) for phrase in phrases) for key, phrases in entries.items()}
        for table, entries in loaded.items()
    }


@cache
def _phrases(table: str) -> tuple[str, ...]:
    """All phrases of a table, longest first."""
    found = {phrase for phrases in _tables()[table].values() for phrase in phrases}
    return tuple(sorted(found, key=lambda phrase: (-len(phrase), phrase)))


def _words(text: str) -> str:
    """Lower case without accents, apostrophes and punctuation, one space between words; "owwww" is "ow"."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = unicodedata.normalize("NFC", re.sub(r"[\u0300-\u036f]", "", decomposed))
    plain = re.sub(r"['’ʼ`]", "", plain).replace("-", " ")
    return _DRAWN_OUT.sub(r"\1", " ".join(re.findall(r"\w+", plain)))


def clauses_of(text: str) -> tuple[str, ...]:
    """The parts between punctuation marks, normalised, without empty ones."""
    return tuple(words for part in _CLAUSE_END.split(text) if (words := _words(part)))


def _find(clause: str, phrase: str) -> int:
    """Where the phrase starts in the clause, or -1: whole words, in Chinese and Japanese any part."""
    # No regular expressions: there are more phrases than `re` keeps compiled, and a stop waits for this.
    if _is_cjk(phrase):
        return clause.find(phrase)
    return f" {clause} ".find(f" {phrase} ")  # the leading space makes the place that of the phrase in the clause


@cache
def _is_cjk(phrase: str) -> bool:
    return _CJK.search(phrase) is not None


def _opens(clause: str, table: str) -> bool:
    return any(_find(clause, phrase) == 0 for phrase in _phrases(table))


def _without_courtesy(clause: str) -> str:
    while True:
        for phrase in _phrases("courtesy"):
            if _find(clause, phrase) == 0 and len(clause) > len(phrase):
                clause = clause[len(phrase) :].strip()
                break
        else:
            return clause


def _is_negated(clause: str, start: int) -> bool:
    """Whether one of the three words before that place turns it round."""
    before = clause[:start].rstrip()
    if before.endswith(_CJK_NEGATIONS):
        return True
    near = " ".join(before.split()[-3:])
    return any(_find(near, phrase) >= 0 for phrase in _phrases("negator") if phrase not in ("but", "no"))


def _has(part: str, table: str) -> bool:
    return any(_find(part, phrase) >= 0 for phrase in _phrases(table))


def _is_forbidden(clause: str, start: int, phrase: str) -> bool:
    """Whether going on is forbidden there, by any word before it or the last one behind; in doubt it is."""
    before, behind = clause[:start], clause[start + len(phrase) :]
    if any(_find(before, negator) >= 0 for negator in _phrases("negator") if negator not in ("but", "no")):
        return True
    return any(
        _find(behind, word) >= 0 if _is_cjk(word) else behind.split()[-1:] == [word] for word in _phrases("not_so")
    )


def _says(clauses: tuple[str, ...], table: str) -> tuple[bool, bool]:
    """Whether a phrase of the table is said plainly, and whether one is said negated."""
    plainly = negated = False
    for clause in clauses:
        for phrase in _phrases(table):
            start = _find(clause, phrase)
            if start < 0:
                continue
            is_resume = table == "resume"
            if is_resume and _has(clause[:start], "asks"):
                continue
            if _is_negated(clause, start) or (is_resume and _is_forbidden(clause, start, phrase)):
                negated = True
            elif not (is_resume and _has(clause[:start], "withheld")):
                plainly = True
    return plainly, negated


def _is_all(clauses: tuple[str, ...], table: str) -> bool:
    return all(_is_repeated(clause, _phrases(table)) for clause in clauses)


def _is_repeated(clause: str, phrases: tuple[str, ...]) -> bool:
    """Whether the clause consists of nothing but these phrases."""
    rest = clause
    while rest:
        for phrase in phrases:
            if _find(rest, phrase) == 0:
                rest = rest[len(phrase) :].strip()
                break
        else:
            return False
    return True


def _names(clause: str, table: str) -> list[tuple[int, str]]:
    """Which entries of a table keyed by our own words the clause names, with their places, in order."""
    found = []
    for name, phrases in _tables()[table].items():
        starts = [start for phrase in phrases if (start := _find(clause, phrase)) >= 0]
        if starts:
            found.append((min(starts), name))
    return sorted(found)


def _colours(clauses: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Colours to leave alone and colours wanted."""
    excluding: list[str] = []
    including: list[str] = []
    for clause in clauses:
        negators = [start for phrase in _phrases("negator") if (start := _find(clause, phrase)) >= 0]
        first = min(negators, default=len(clause))
        for start, colour in _names(clause, "colour"):
            (excluding if start > first else including).append(colour)
    return tuple(dict.fromkeys(excluding)), tuple(dict.fromkeys(c for c in including if c not in excluding))


def _is_everything(clause: str) -> bool:
    """Whether things of any kind are meant: "all the cups" are cups, "all but the cup" is everything else."""
    if _has(clause, "everything"):
        return True
    for phrase in _phrases("all"):
        if (start := _find(clause, phrase)) >= 0:
            behind = clause[start + len(phrase) :]
            kinds = [place for place, _ in _names(behind, "kind")]
            return not kinds or _has(behind[: kinds[0]], "negator")
    return False


def _take_back(clauses: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The clauses without the words that take something back, and whether there were any."""
    left, is_said = [], False
    for clause in clauses:
        for phrase in _phrases("false_alarm"):
            start = _find(clause, phrase)
            if start >= 0 and not _is_negated(clause, start):
                is_said = True
                clause = f"{clause[:start]} {clause[start + len(phrase) :]}"
        if words := " ".join(clause.split()):
            left.append(words)
    return tuple(left), is_said


def _is_plain_stop(clauses: tuple[str, ...]) -> bool:
    """Whether a stop is said that is more than a short sound which may have been meant for anybody."""
    says_stop, _ = _says(clauses, "stop")
    _, denies_resume = _says(clauses, "resume")
    is_cry = any(_opens(clause, "cry") or _is_repeated(clause, _phrases("alarm")) for clause in clauses)
    return says_stop or denies_resume or is_cry or (bool(clauses) and _is_all(clauses, "plea"))


def _wants(clauses: tuple[str, ...], names_something: bool, has_exclusion: bool) -> Wants:
    _, denies_stop = _says(clauses, "stop")
    says_resume, _ = _says(clauses, "resume")
    if _is_plain_stop(clauses):
        return "stop"
    if any(_is_repeated(clause, _phrases("alone")) for clause in clauses):
        return "stop"
    if says_resume:
        return "nothing" if _is_all(clauses[-1:], "refusal") else "resume"  # "Go on? No!"
    if not clauses or denies_stop or _is_all(clauses, "backchannel"):
        return "nothing"
    cores = tuple(_without_courtesy(clause) for clause in clauses)
    if _opens(cores[0], "correction"):
        return "amend"
    if any(_opens(core, "order") for core in cores):
        return "order"
    if has_exclusion or any(_opens(core, "correction") for core in cores) or names_something:
        return "amend"
    return "nothing"


def says_yes(text: str) -> bool:
    """Whether the utterance says yes to a question and nothing else."""
    words = _words(text)
    return bool(words) and _is_repeated(words, _phrases("yes"))


def is_stop(text: str) -> bool:
    """Whether who says this wants the robot to stop."""
    return understand(text).wants == "stop"


def understand(text: str) -> Meaning:
    """What the utterance asks for; unknown languages and small talk ask for nothing."""
    clauses, takes_back = _take_back(clauses_of(text))
    cores = tuple(_without_courtesy(clause) for clause in clauses)
    excluding, including = _colours(clauses)
    kinds = [name for clause in clauses for _, name in _names(clause, "kind")]
    places = [name for clause in clauses for _, name in _names(clause, "place")]
    puts_back = any(_find(clause, phrase) >= 0 for clause in clauses for phrase in _phrases("back"))
    is_everything = any(_is_everything(clause) for clause in clauses)
    wants = _wants(clauses, bool(including), bool(excluding))
    can_do = wants == "order" and any(_opens(core, "put") for core in cores) and bool(kinds or is_everything or places)
    return Meaning(
        wants=wants,
        can_do=can_do,
        kind=kinds[0] if kinds else "",
        is_everything=is_everything,
        where=places[0] if places else "",
        excluding=excluding,
        including=including,
        is_about_current=wants == "amend" and not (excluding or including or kinds),
        puts_back=puts_back,
        takes_back=takes_back and wants != "stop",
        is_sure=wants != "stop" or _is_plain_stop(clauses),
        is_listening=bool(clauses) and wants == "nothing" and _is_all(clauses, "backchannel"),
    )
