"""`Lexicon`: which words mean what, from a data file, the kinds and places of a scene, and the declared skills."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

VOWELS = "aeiou"
LEAST_LETTERS = 4
"""A shorter word is not corrected: too many words look like it."""
SMALL_WORDS = ("into", "onto", "please", "next", "with", "from", "that", "there", "where", "could", "would")
NO_SLIPS = (
    "blow", "blows", "cusp", "whit", "hoop", "form", "matt", "loose", "bare", "bleu", "sheet", "shell", "buy", "cooky",
    "too",
)  # fmt: skip
"""Words of their own that are a slip away from one of ours."""


class LexiconFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file beside this module."""

    contractions: dict[str, str]
    synonyms: dict[str, str]
    groups: dict[str, tuple[str, ...]]
    irregular: dict[str, str]
    pasts: dict[str, str]
    verbs: dict[str, tuple[str, ...]]
    skill_of: dict[str, str]
    relations: dict[str, tuple[str, ...]]
    words: dict[str, tuple[str, ...]]
    parts: dict[str, str]
    frames: dict[str, tuple[str, ...]]
    household: dict[str, tuple[str, ...]]
    sets: dict[str, frozenset[str]]


@cache
def lexicon_file() -> LexiconFile:
    """As read once."""
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8")), LexiconFile)


WORDS, SETS = lexicon_file().words, lexicon_file().sets
"""Words and skills that a reading asks for, by name."""
FRAME_WORDS = 16
"""The longest phrase that a frame makes."""


@cache
def frames_of(table: str) -> re.Pattern[str] | None:
    """The frames of a table as one pattern, for words with a space behind each; None where it has none."""
    data = lexicon_file()
    frames = data.frames.get(table, ())

    def written_out(text: str) -> str:
        while (full := re.sub(r"\{([a-z]+)\}", lambda found: f"(?:{data.parts[found[1]]})", text)) != text:
            text = full
        return re.sub(r"\((?!\?)", "(?:", text)

    return re.compile("|".join(f"(?:(?:{written_out(one)}) )" for one in frames)) if frames else None


Phrase = tuple[str, ...]


class PhraseTable:
    """Phrases of one or more words and what each means; found at a place in a list of words, longest first."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._by_first: dict[str, list[tuple[Phrase, str]]] = {}
        for text, meaning in entries.items():
            phrase = tuple(text.split())
            self._by_first.setdefault(phrase[0], []).append((phrase, meaning))
        for found in self._by_first.values():
            found.sort(key=lambda entry: -len(entry[0]))

    def phrases(self) -> Iterable[Phrase]:
        """All of them."""
        return (phrase for found in self._by_first.values() for phrase, _ in found)

    def at(self, words: Sequence[str], start: int) -> tuple[int, str]:
        """How many words the longest phrase there has, and its meaning; (0, "") where there is none."""
        if start >= len(words):
            return 0, ""
        for phrase, meaning in self._by_first.get(words[start], ()):
            if tuple(words[start : start + len(phrase)]) == phrase:
                return len(phrase), meaning
        return 0, ""


class Lexicon:
    """All words that the parser knows for one scene and one set of skills."""

    def __init__(
        self, kinds: Iterable[str], places: Iterable[str], skill_words: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        data = lexicon_file()
        self.kinds = frozenset(kinds)
        self.places = frozenset(places)
        self.colours = frozenset(data.words["colours"])
        self._tables = {name: PhraseTable(dict.fromkeys(phrases, name)) for name, phrases in data.words.items()}
        known = self.kinds | self.places
        synonyms = {word: name for word, name in data.synonyms.items() if name in known and word not in known}
        self.colour_synonyms = {word: name for word, name in data.synonyms.items() if name in self.colours}
        self.groups = {
            word: kinds for word, kinds in data.groups.items() if word not in known and self.kinds.intersection(kinds)
        }
        names = {name: name for name in known} | synonyms | {word: word for word in self.groups}
        plurals = {plural: one for plural, one in data.irregular.items() if one in names}
        self._nouns = PhraseTable(  # a plural's meaning ends with "|"
            {plural_of(name): f"{meaning}|" for name, meaning in names.items()}
            | {plural: f"{names[one]}|" for plural, one in plurals.items()}
            | names
        )
        verbs = {phrase: verb for verb, phrases in data.verbs.items() for phrase in phrases}
        self.skill_of = dict(data.skill_of)
        for skill, phrases in (skill_words or {}).items():
            for phrase in phrases:
                if phrase not in verbs:
                    verbs[phrase] = skill
                    self.skill_of[skill] = skill
        self.verbs = PhraseTable(verbs)
        self.gerunds = PhraseTable({form: verb for phrase, verb in verbs.items() for form in gerunds_of(phrase)})
        self.pasts = PhraseTable(
            {form: verb for phrase, verb in verbs.items() for form in pasts_of(phrase, data.pasts)}
        )
        self.relations = PhraseTable({word: name for name, words in data.relations.items() for word in words})
        slips = {*names, *plurals, *map(plural_of, names), *self.colours, *SMALL_WORDS, *verbs}
        self._slips = frozenset(word for word in slips if word.isalpha())
        tables = (*data.words.values(), *data.relations.values(), *data.verbs.values())
        phrases = [*slips, *(phrase for table in tables for phrase in table), *NO_SLIPS]
        frames = [*data.parts.values(), *(frame for frames in data.frames.values() for frame in frames)]
        self._vocabulary = frozenset(word for phrase in phrases for word in phrase.split()) | frozenset(
            word for frame in frames for word in re.findall(r"[a-z]+", frame)
        )
        every = (*self._tables.values(), self._nouns, self.verbs, self.gerunds, self.pasts, self.relations)
        self._known = PhraseTable({" ".join(phrase): "" for table in every for phrase in table.phrases()})
        self._closed = {
            word for name in CLOSED for phrase in data.words[name] if " " not in phrase for word in [phrase]
        }
        self._closed |= {word for words in data.relations.values() for phrase in words for word in phrase.split()[:1]}

    def has(self, table: str, words: Sequence[str], start: int) -> int:
        """How many words a phrase of that table has there; 0 where there is none."""
        n, frames = self._tables[table].at(words, start)[0], frames_of(table)
        if frames is None or start >= len(words):
            return n
        found = frames.match(" ".join([*words[start : start + FRAME_WORDS], ""]))
        return max(n, found[0].count(" ")) if found is not None else n

    def known_at(self, words: Sequence[str], start: int) -> int:
        """How many words the longest phrase of any table has there; 0 where no table has the word."""
        framed = max(self.has(table, words, start) for table in lexicon_file().frames)
        return max(self._known.at(words, start)[0], framed) or (1 if self.colour(words[start]) else 0)

    def spelled(self, word: str) -> str:
        """The word of ours that it is but for two letters that changed places, or one that was doubled or lost a twin.

        Other slips are left alone: what lacks a letter, or has another one, is too often another word.
        """
        if len(word) < LEAST_LETTERS or not word.isalpha() or word in self._vocabulary:
            return word
        swapped = (word[:k] + word[k + 1] + word[k] + word[k + 2 :] for k in range(len(word) - 1))
        single = (word[:k] + word[k + 1 :] for k in range(len(word) - 1) if word[k] == word[k + 1])
        double = (word[:k] + word[k] + word[k:] for k in range(len(word)))
        found = {one for one in (*swapped, *single, *double) if one in self._slips}
        return found.pop() if len(found) == 1 else word

    def noun_at(self, words: Sequence[str], start: int) -> tuple[int, str, bool]:
        """Length, name and whether it is a plural; of the longest name of a kind, a group or a place there."""
        length, meaning = self._nouns.at(words, start)
        return length, meaning.rstrip("|"), meaning.endswith("|")

    def is_closed(self, word: str) -> bool:
        """Whether it cannot be part of a name: a preposition, an article, a pronoun, an auxiliary, a particle."""
        return word in self._closed or (word.endswith("ly") and word not in ("jelly", "lily", "fly"))

    def colour(self, word: str) -> str:
        """Its own name for a colour, or ""."""
        return word if word in self.colours else self.colour_synonyms.get(word, "")


CLOSED = (
    "auxiliaries", "particles", "adverbs", "conjunctions", "negations", "pronouns", "articles", "owners", "subjects",
    "robot_subjects", "tails", "stays", "dues", "needs", "reports", "fillers", "me", "repair", "exceptions", "wh_words",
    "hedges", "conditions", "reasons", "times",
)  # fmt: skip


def plural_of(name: str) -> str:
    """ "cups", "boxes", "cookie jars"."""
    if re.search(r"(s|x|ch|sh)$", name):
        return f"{name}es"
    if re.search(rf"[^{VOWELS}]y$", name):
        return f"{name[:-1]}ies"
    return f"{name}s"


def gerunds_of(phrase: str) -> tuple[str, ...]:
    """The -ing forms of a verb of one or more words: "put down" gives "putting down"."""
    first, _, rest = phrase.partition(" ")
    stems = [first]
    if first.endswith("e") and not first.endswith("ee"):
        stems = [first[:-1]]
    elif re.fullmatch(rf".*[^{VOWELS}][{VOWELS}][^{VOWELS}wxy]", first) and len(first) < 6:
        stems = [first, first + first[-1]]
    return tuple(f"{stem}ing {rest}".strip() for stem in stems)


def pasts_of(phrase: str, irregular: Mapping[str, str]) -> tuple[str, ...]:
    """The past forms of a verb of one or more words: "wipe down" gives "wiped down"."""
    first, _, rest = phrase.partition(" ")
    forms = [f"{first}d" if first.endswith("e") else f"{first}ed"]
    if first in irregular:
        forms = irregular[first].split()
    elif re.fullmatch(rf".*[^{VOWELS}][{VOWELS}][^{VOWELS}wxy]", first) and len(first) < 6:
        forms.append(f"{first}{first[-1]}ed")
    elif re.search(rf"[^{VOWELS}]y$", first):
        forms = [f"{first[:-1]}ied"]
    return tuple(f"{form} {rest}".strip() for form in forms)
