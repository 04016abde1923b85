"""Finds the phrases of `intent.toml` in an utterance, in one pass over its words."""

from __future__ import annotations

import itertools
import marshal
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import msgspec

from runtime.operating_system.whole_file import write_whole

END_CHARS = 300
"""Of a longer utterance, only this many characters at either end are read, because a stop waits for the result."""

TABLE = Path(__file__).with_name("intent.toml")
_QUOTES = frozenset('"«»“”„「」『』')
_CLAUSE_END = re.compile(r"[.,;:!?…–—、。！？，；：؟،۔।॥¡¿\n\r\t\x00-\x1f|/()\"«»“”„「」『』]+")
_STRAIGHT = str.maketrans(dict.fromkeys("'’ʼ`´\u0640\u093c\u200b\u200c\u200d\u200e\u200f\ufeff", ""))
_ALIKE = str.maketrans(
    {"ى": "ي", "ة": "ه", "ٱ": "ا", "ँ": "ं", "ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"}
    | {chr(code): chr(code - 0x60) for code in range(0x30A1, 0x30F7)}  # katakana as hiragana
)
_MARKS = re.compile(r"[\u0300-\u036f\u064b-\u065f\u0670\u06d6-\u06ed]")
# A vowel that is drawn out in Devanagari stands as independent letters behind its sign; in Japanese as a dash.
_DRAWN_OUT = re.compile(r"(?<=[\u093e-\u094c])[\u0905-\u0914\u093d]+|([^\W\d\u3400-\u9fff])\1{2,}|[ー〜~]+")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|(?:[^\W_\u3040-\u30ff\u3400-\u9fff][\u0900-\u0903\u093a-\u094f\u0955-\u0957\u0962\u0963]*)+"
)
_TABLE_WORD = re.compile(rf"(?:{_WORD.pattern})\*?|\*")
_DOUBLED = re.compile(r"([^\W\d_])\1+")
_GROUP = re.compile(r"\(([^()]*)\)(\??)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")

_CALLS = ("stop", "stop_end", "stop_alone", "cry", "distress")

ANY_LANGUAGE = "any"
"""The key of phrases that belong to every language."""

Ways = list[tuple[str, ...]]
"""Of a part of a phrase: the words that it may stand for."""

Node = dict[str, Any]  # the next word -> Node; "" -> tuple of (table, name) that end here
_HERE = ""
_BODY = "{body}"


class Match(msgspec.Struct, frozen=True):
    """One phrase in a clause, by the positions of its words: `start` of the first, `end` after the last."""

    start: int
    end: int
    name: str  # the key under which it stands: a language, or the robot's own word


class MatchedClause(msgspec.Struct):
    """The words between two punctuation marks, and the phrases of each table among them, in order."""

    words: tuple[str, ...]
    found: dict[str, list[Match]]
    unknown: frozenset[int] = frozenset()  # the places of words that no table has, not even their beginning
    is_corrected: bool = False  # a word was none, and read as the one that it looks like
    is_asked: bool = False  # a question mark follows
    is_quoted: bool = False  # it stands between quotation marks, and other words beside them
    is_behind_colon: bool = False

    def of(self, *tables: str) -> Iterable[Match]:
        """The matches of these tables."""
        return itertools.chain.from_iterable(self.found.get(table, ()) for table in tables)

    def has(self, table: str) -> bool:
        """Whether a phrase of the table occurs."""
        return table in self.found

    def opening(self, *around: str) -> set[int]:
        """The positions that have only phrases of these tables before them."""
        return self._reach(sorted((match.start, match.end) for match in self.of(*around)), 0)

    def ending(self, *around: str) -> set[int]:
        """The positions that have only phrases of these tables after them."""
        pairs = sorted(((match.end, match.start) for match in self.of(*around)), reverse=True)
        return self._reach(pairs, len(self.words))

    @staticmethod
    def _reach(pairs: list[tuple[int, int]], first: int) -> set[int]:
        reached = {first}
        for start, end in pairs:
            if start in reached:
                reached.add(end)
        return reached

    def opens(self, table: str, *around: str) -> bool:
        """Whether a phrase of the table comes first, after nothing but phrases of `around`."""
        if table not in self.found:
            return False
        places = self.opening(*around)
        return any(match.start in places for match in self.found[table])

    def ends(self, table: str, *around: str) -> bool:
        """Whether a phrase of the table comes last, before nothing but phrases of `around`."""
        if table not in self.found:
            return False
        places = self.ending(*around)
        return any(match.end in places for match in self.found[table])

    def is_all(self, tables: Sequence[str], *around: str, language: str = "", first: int = 0) -> bool:
        """Whether the clause consists of phrases of these tables and of `around` only, with at least one of `tables`.

        With a `language`, only phrases of that language and of `ANY_LANGUAGE` count; with `first`, only the words from
        that place on.
        """
        if not any(table in self.found for table in tables):
            return False
        around_only, said = {first}, set[int]()
        names = (language, ANY_LANGUAGE)
        marked = [(one.start, one.end, True) for one in self.of(*tables) if not language or one.name in names]
        marked += [(one.start, one.end, False) for one in self.of(*around) if not language or one.name in names]
        for start, end, counts in sorted(marked):
            if start in said or (counts and start in around_only):
                said.add(end)
            if not counts and start in around_only:
                around_only.add(end)
        return len(self.words) in said


class _Trees(dict[str, Node]):
    """By first word of a phrase: what may follow. All at once they are 300,000 dicts, and few are ever walked."""

    def __init__(self, packed: dict[str, bytes]) -> None:
        self.packed = packed

    def __missing__(self, word: str) -> Node:
        tree: Node = marshal.loads(self.packed[word])
        self[word] = tree
        return tree


class _Phrases(msgspec.Struct, frozen=True):
    trees: _Trees
    known: frozenset[str]  # every word of every phrase
    stems: frozenset[str]
    spelled: dict[str, str]  # how a word of a stop may be misspelled -> the word
    calls: dict[str, tuple[str, ...]]  # what stops by itself: its letters without spaces -> its words


def normalised(text: str) -> str:
    """The text in lower case without accents and apostrophes, and with one spelling for scripts that have several."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_STRAIGHT).casefold()).translate(_STRAIGHT)
    plain = unicodedata.normalize("NFC", _MARKS.sub("", decomposed)).translate(_ALIKE)
    return _DRAWN_OUT.sub(r"\1", plain)


def words_of(text: str) -> tuple[str, ...]:
    """The normalised words of a text; in Chinese and Japanese each character is a word; "owwww" becomes "ow"."""
    return tuple(_WORD.findall(normalised(text)))


def clipped(text: str) -> str:
    """The part of an utterance that is read: its first and last `END_CHARS` characters."""
    return text if len(text) <= 2 * END_CHARS else f"{text[:END_CHARS]}\n{text[-END_CHARS:]}"


def is_clipped(text: str) -> bool:
    """Whether a part in the middle of the text, or of its `clipped` form, is not read."""
    return len(text) > 2 * END_CHARS or len(normalised(text)) > 4 * END_CHARS


def clauses_in(text: str) -> tuple[MatchedClause, ...]:
    """The parts between punctuation marks with the phrases found in them, without empty ones."""
    clauses: list[MatchedClause] = []
    quoted: list[int] = []  # since the quotation mark that opened
    closed: set[int] = set()
    is_inside = has_colon = False
    text = normalised(clipped(text))
    if len(text) > 4 * END_CHARS:  # one character may stand for eighteen
        text = f"{text[: 2 * END_CHARS]}\n{text[-2 * END_CHARS :]}"
    at = 0
    for mark in itertools.chain(_CLAUSE_END.finditer(text), (None,)):
        part = text[at : mark.start()] if mark is not None else text[at:]
        words = tuple(_WORD.findall(part))
        if words:
            clauses.append(find(words))
            clauses[-1].is_asked = mark is not None and ("?" in mark[0] or "؟" in mark[0])
            clauses[-1].is_behind_colon = has_colon
            if is_inside:
                quoted.append(len(clauses) - 1)
        if mark is None:
            break
        for _ in _QUOTES.intersection(mark[0]):
            is_inside = not is_inside
            if not is_inside:
                closed |= set(quoted)
            quoted.clear()
        has_colon = ":" in mark[0] or "：" in mark[0]
        at = mark.end()
    if len(closed) < len(clauses):
        for place in closed:
            clauses[place].is_quoted = True
    return tuple(clauses)


def split_clauses(text: str) -> list[str]:
    """The parts up to and with each punctuation mark, as they were written."""
    ends = [mark.end() for mark in _CLAUSE_END.finditer(text)]
    return [text[start:end].strip() for start, end in itertools.pairwise([0, *ends, len(text)])]


def find(words: tuple[str, ...]) -> MatchedClause:
    """The clause made of these words, with every phrase that occurs in it."""
    phrases = load()
    found: dict[str, list[Match]] = {}
    trees, first, known, stems = phrases.trees, phrases.trees.packed, phrases.known, phrases.stems
    ways: list[tuple[str, ...]] = []
    is_corrected = False
    for word in words:
        read = word
        if word not in known and len(word) > 2:
            single = _DOUBLED.sub(r"\1", word)
            if better := single if single in known else phrases.spelled.get(single):
                read, is_corrected = better, True
        way = [read, "*"]
        for length in range(len(word) + 1):
            if word[:length] in stems:
                way.append(f"{word[:length]}*")
        ways.append(tuple(way))
    for start in range(len(words)):
        nodes = [trees[way] for way in ways[start] if way in first]
        end = start + 1
        while nodes:
            for node in nodes:
                for table, name in node.get(_HERE, ()):
                    found.setdefault(table, []).append(Match(start, end, name))
            if end == len(words):
                break
            nodes = [node[way] for node in nodes for way in ways[end] if way in node]
            end += 1
    if ordinary := found.get("ordinary"):
        # Who says "halt halt das" shouts; "halt das" alone asks to hold something.
        _drop_ordinary(found, [one for one in ordinary if one.start == 0 or words[one.start - 1] != words[one.start]])
    unknown = frozenset(
        place for place, way in enumerate(ways) if len(way) == 2 + ("" in stems) and way[0] not in known
    )
    return MatchedClause(words, found, unknown, is_corrected)


_DROPPED = (
    "stop",
    "stop_end",
    "stop_alone",
    "cry",
    "cry_behind",
    "stop_between",
    "stop_verb",
    "negator",
    "distress",
    "harm",
    "hurting",
    "caught",
    "order",
    "correction",
    "resume",
)


def _drop_ordinary(found: dict[str, list[Match]], ordinary: list[Match]) -> None:
    """Drop matches inside a phrase that only looks like them: "bus stop"."""
    for table in _DROPPED:
        if matches := found.get(table):
            is_whole = table == "stop_between"  # "halt das gehört" beside "halt das *": whoever says all of it means it
            left = [one for one in matches if not any(_is_inside(one, it, is_whole) for it in ordinary)]
            if left:
                found[table] = left
            else:
                del found[table]


def _is_inside(one: Match, ordinary: Match, is_whole_kept: bool = False) -> bool:
    """Whether it is a part of the phrase; of a single word only in that word's own language."""
    is_phrase = ordinary.end - ordinary.start > 1
    if is_whole_kept and is_phrase and one == ordinary:
        return False
    return ordinary.start <= one.start and one.end <= ordinary.end and (is_phrase or one.name == ordinary.name)


@cache
def load() -> _Phrases:
    """The tables of `intent.toml`. To build their tree takes half a second, so it is kept where Python keeps compiled
    modules, and built anew where the tables or this file have changed.
    """
    source = TABLE.read_bytes()
    mark = sha256(source + Path(__file__).read_bytes()).digest()
    kept = Path(cache_from_source(str(TABLE.with_suffix(".phrases.py"))))
    with suppress(OSError, EOFError, TypeError, ValueError):
        data = kept.read_bytes()
        if data.startswith(mark):
            packed, *others = marshal.loads(data[len(mark) :])
            return _Phrases(_Trees(packed), *others)
    phrases = _built(tomllib.loads(source.decode()))
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            kept.parent.mkdir(exist_ok=True)
            packed, others = phrases.trees.packed, msgspec.structs.astuple(phrases)[1:]
            write_whole(kept, mark + marshal.dumps((packed, *others)))
    return phrases


def _built(tables: Mapping[str, Mapping[str, Sequence[str]]]) -> _Phrases:
    parts = [
        (table, name, [_parts(text) for text in texts])
        for table, names in tables.items()
        for name, texts in names.items()
    ]
    ways = _ways(parts, tables["body"])
    root: Node = {}
    stops: set[str] = set()
    calls: dict[str, tuple[str, ...]] = {}
    for table, name, phrases in parts:
        for phrase in phrases:
            said = [ways[part, name if _BODY in part else ""] for part in phrase]
            _add(root, said, (table, name))
            if table in ("stop", "cry"):
                stops |= _first_words(said)
            if table in _CALLS:
                for words in _short(said, _PIECES if table != "distress" else 1):
                    calls.setdefault(_letters("".join(words).replace("*", "")), words)
    known = frozenset(itertools.chain.from_iterable(itertools.chain.from_iterable(ways.values())))
    stems = frozenset(word[:-1] for word in known if word.endswith("*") and len(word) > 1)
    spelled = _spellings((word for word in stops if len(word) > 3 and word.isascii()), known)
    packed = {word: marshal.dumps(node) for word, node in root.items()}
    return _Phrases(_Trees(packed), known, stems, spelled, calls)


def _add(root: Node, phrase: Iterable[Ways], end: tuple[str, str]) -> None:
    """Add a phrase of parts, in all their ways; what begins alike stands once."""
    nodes = [root]
    for ways in phrase:
        behind = []
        for node in nodes:
            for words in ways:
                at = node
                for word in words:
                    at = at.setdefault(word, {})
                behind.append(at)
        nodes = behind
    for node in nodes:
        ends = node.get(_HERE, ())
        if end not in ends and node is not root:
            node[_HERE] = (*ends, end)


def _first_words(phrase: Iterable[Ways]) -> set[str]:
    found: set[str] = set()
    for ways in phrase:
        found |= {words[0] for words in ways if words}
        if () not in ways:
            break
    return found


def _short(phrase: Sequence[Ways], most: int) -> Iterable[tuple[str, ...]]:
    """The ways of saying it in at most so many words, and those are no "*"."""
    if sum(min(map(len, ways), default=0) for ways in phrase) > most:
        return
    for said in itertools.product(*([words for words in ways if len(words) <= most] for ways in phrase)):
        words = tuple(itertools.chain.from_iterable(said))
        if 0 < len(words) <= most and "*" not in words:
            yield words


def _parts(text: str) -> list[str]:
    """A phrase of a table, cut at each space that is in no group."""
    parts: list[str] = []
    depth = 0
    for piece in text.split(" "):
        if depth:
            parts[-1] += f" {piece}"
        else:
            parts.append(piece)
        depth += piece.count("(") - piece.count(")")
    return parts


def _ways(
    parts: Iterable[tuple[str, str, list[list[str]]]], bodies: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], Ways]:
    """By part, and language where it names a body: the words that it stands for.

    "*" stands for any word, "hurt*" for every word with that beginning.
    """
    texts: dict[tuple[str, str], list[str]] = {}
    for table, name, phrases in parts:
        for part in itertools.chain.from_iterable(phrases):
            if (key := (part, name if _BODY in part else "")) not in texts:
                texts[key] = list(_expanded(part, bodies.get(name, ()) if table != "body" else ()))
    lines = iter(normalised("\n".join(itertools.chain.from_iterable(texts.values()))).split("\n"))  # in one go: quicker
    return {
        key: list(dict.fromkeys(tuple(_TABLE_WORD.findall(line)) for line in itertools.islice(lines, len(part))))
        for key, part in texts.items()
    }


def _expanded(text: str, bodies: Sequence[str]) -> Iterable[str]:
    if _BODY in text:
        return itertools.chain.from_iterable(_expanded(text.replace(_BODY, body), ()) for body in bodies)
    group = _GROUP.search(text)
    if group is None:
        return (text,)
    choices = [*group[1].split("|"), *([""] if group[2] else [])]
    return itertools.chain.from_iterable(
        _expanded(text[: group.start()] + choice + text[group.end() :], ()) for choice in choices
    )


def _spellings(stops: Iterable[str], known: frozenset[str]) -> dict[str, str]:
    """How recognisers may misspell a word of a stop: doubled letters, and in longer words a missing or swapped one."""
    found: dict[str, str] = {}
    for word in sorted(stops, key=lambda word: (-len(word), word), reverse=True):
        ways = {_DOUBLED.sub(r"\1", word)}
        if len(word) > 5:
            ways |= {word[:at] + word[at + 1 :] for at in range(1, len(word))}
            ways |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, len(word) - 1)}
        for way in ways:
            if way not in known:
                found.setdefault(way, word)
    return found


_LEAST, _LEAST_JOINED = 4, 6
"""Letters of a word, and of several that were one, that may be those of a stop with another letter."""
_PIECES = 3


def sounded(words: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """The words as a stop that they sound like: cut elsewhere ("s top"), other words of the same sound ("weight"), or
    said again and again with one letter wrong ("stob stob"); and how many words were read as another one.
    """
    phrases = load()
    alike: dict[int, Match] = {one.start: one for one in find(words).of("sounds")}  # the longest, which comes last
    letters = [_letters(word) for word in words]
    read: list[str] = []
    others = at = 0
    while at < len(words):
        for end in range(min(at + _PIECES, len(words)), at, -1):
            piece = words[at:end]
            if at in alike and alike[at].end == end:
                read += words_of(alike[at].name)
                others += len(piece) == 1
                break
            if (len(piece) > 1 or piece[0] not in phrases.known) and (said := _said_as(piece, letters[at:end], words)):
                read += said
                break
        else:
            end = at + 1
            read.append(words[at])
        at = end
    return tuple(read), others


def _said_as(piece: tuple[str, ...], letters: Sequence[str], words: tuple[str, ...]) -> tuple[str, ...]:
    """The call whose letters these are, or but for one letter where they are said again; () where there is none."""
    phrases = load()
    said = _DOUBLED.sub(r"\1", "".join(letters))  # "stand stil"
    if said in phrases.calls:
        return phrases.calls[said]
    least = _LEAST if len(piece) == 1 else _LEAST_JOINED
    if len(said) < least or is_cjk(said) or phrases.known.issuperset(piece):
        return ()
    if sum(words[at : at + len(piece)] == piece for at in range(len(words))) < 2:
        return ()
    return next((call for its, call in phrases.calls.items() if len(its) >= least and _is_one_off(said, its)), ())


def _letters(word: str) -> str:
    """The letters of a word, a doubled one once; a syllable of Korean as its letters."""
    return _DOUBLED.sub(r"\1", unicodedata.normalize("NFD", word))


def _is_one_off(word: str, other: str) -> bool:
    """Whether one letter is another one, too many or missing."""
    if len(word) == len(other):
        return sum(one != its for one, its in zip(word, other, strict=True)) < 2
    short, long = sorted((word, other), key=len)
    return short in {long[:at] + long[at + 1 :] for at in range(len(long))}


def is_cjk(word: str) -> bool:
    """Whether the word is one character of Chinese or Japanese."""
    return _CJK.match(word) is not None


def is_hangul(word: str) -> bool:
    """Whether the word is of Korean syllables."""
    return "\uac00" <= word[:1] <= "\ud7a3"
