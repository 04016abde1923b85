"""`read_json`: the JSON object in what a model wrote, read generously: the last whole one counts.

Left aside are a model's thoughts, fences and words around the object. Borne are raw newlines, comments, trailing
commas, single and curly quotes, quotes inside of quotes, Python's constants, and a cut end, which is told.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from runtime.errors import PolyrhythmError

LONGEST_ANSWER = 65_536
DEEPEST = 50
MOST_TRIES = 200
"""Of braces that begin no object: a model's prose may hold some, and no answer holds as many."""

_THINKS = "(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_BEGINS = rf"<{_THINKS}>|\[THINK\]|◁think▷|<\|(?:start_thinking|begin_of_thought)\|>|<unused94>thought"
_ENDS = rf"</{_THINKS}>|\[/THINK\]|◁/think▷|<\|(?:end_thinking|end_of_thought)\|>|<unused95>"
_THOUGHTS = re.compile(rf"(?:{_BEGINS}).*?(?:{_ENDS})", re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS, _THOUGHT_BEGINS = re.compile(_ENDS, re.IGNORECASE), re.compile(_BEGINS, re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)(?:(?!<\|message\|>).)*<\|message\|>(.*?)(?=<\|(?:end|return|call|start)\|>|\Z)", re.DOTALL
)
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_AFTER_TEXT = re.compile(
    r"\s*(?:[:}\]]|//|/\*|\Z|,\s*(?:[\"'“”{\[}\]]|\w+\s*:|[+-]?\d|(?:true|false|null|None|True|False)\b|//|\Z))"
)
_BARE = re.compile(r"[^\s,:{}\[\]\"']+")
_NUMBER = re.compile(r"[+\-−]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_CLOSES = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’"}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "nan": None, "undefined": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_Found = TypeVar("_Found")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


ONLY_THOUGHT = (
    "only a thought came and no answer; give it more tokens (max_tokens), or have it think less: reasoning_effort, "
    "or its server's own switch in extra_body"
)


class UnreadableError(PolyrhythmError):
    """A model's answer is not what was asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class JsonFound:
    """An object; where its end was cut off, what stood there whole, and of a text its whole sentences."""

    fields: dict[str, object]
    is_cut: bool = False


def read_object(text: str) -> dict[str, object]:
    """The whole object in the text. Raises UnreadableError, also where its end was cut off."""
    found = read_json(text)
    if found.is_cut:
        raise UnreadableError("it was cut off before its end")
    return found.fields


def read_json(text: str) -> JsonFound:
    """The last whole object in the text, else one whose end was cut off. Raises UnreadableError."""
    if len(text) > LONGEST_ANSWER:
        raise UnreadableError(f"the answer has {len(text)} characters; at most {LONGEST_ANSWER} are read")
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        said = without_thoughts(text)
        if text.strip() and not said.strip():
            raise UnreadableError(ONLY_THOUGHT) from None
        return _object_in(said)
    if isinstance(found, str) and "{" in found:
        return read_json(found)  # written as a text in a text
    for _ in range(4):
        if isinstance(found, list) and found and isinstance(found[-1], list | dict):
            found = found[-1]
    if not isinstance(found, dict):
        raise UnreadableError(f"the answer is {type(found).__name__}, not a JSON object")
    return JsonFound({str(key): value for key, value in found.items()})


def without_thoughts(text: str) -> str:
    """What a model says, without what it thinks before it says it."""
    if channels := _CHANNEL.findall(text):
        said = {name: "".join(words for other, words in channels if other == name) for name, _ in channels}
        return said.get("final") or said.get("commentary", "")  # a tool is called in the latter
    text = _THOUGHTS.sub("", text)
    text = _THOUGHT_ENDS.split(text)[-1]
    return _THOUGHT_BEGINS.split(text)[0]


def as_thought(text: str) -> str:
    """What a server says apart from the answer, marked so that `without_thoughts` knows it."""
    return f"<think>{text}"


def whole_characters(text: str) -> str:
    """The text with halves of characters put together, and lone ones as the sign for what cannot be shown."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def folded(fields: dict[str, object]) -> dict[str, object]:
    """The same by keys as models may have meant them: "Action Type" as "action_type"."""
    return {re.sub(r"[\s\-]+", "_", key.strip().casefold()): value for key, value in fields.items()}


def layers(fields: dict[str, object]) -> Iterator[dict[str, object]]:
    """The object, and those in it, the outer ones first: whatever a model has wrapped its answer into.

    A list of one is that one, and a text that holds an object is that object.
    """
    found = [fields]
    for _ in range(4):
        yield from found
        found = [inner for outer in found for one in outer.values() if (inner := _object_of(one)) is not None]


def _object_of(value: object) -> dict[str, object] | None:
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return read_object(value)
        except UnreadableError:
            return None
    return {str(key): one for key, one in value.items()} if isinstance(value, dict) else None


def read_number(value: object, out_of: tuple[float, ...] = ()) -> float | None:
    """A number as models write one: 7, "+3", "−2", "7/10", "8 out of 10", "eight"; None for anything else.

    "3/5" is one only where `out_of` is empty or holds the 5: on another scale it is another number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        return float(value) if value == value and abs(value) < 1e300 else None
    said = unicodedata.normalize("NFKC", value).strip().strip("*").casefold().removesuffix(".")
    if said in _WORDS or said.removeprefix("minus ") in _WORDS:
        number = float(_WORDS.index(said.removeprefix("minus ")))
        return -number if said.startswith("minus ") else number
    found = re.fullmatch(rf"({_NUMBER.pattern})\s*(?:(?:/|of|out of)\s*(\d+))?", said)
    if found is None or (out_of and found[2] and float(found[2]) not in out_of):
        return None
    return float(found[1].replace("−", "-"))


def _object_in(text: str) -> JsonFound:
    whole: dict[str, object] | None = None
    cut: JsonFound | None = None
    strict, at, why = json.JSONDecoder(strict=False), text.find("{"), ""
    if at < 0:
        raise UnreadableError("the answer holds no JSON object")
    for _ in range(MOST_TRIES):
        if at < 0:
            break
        try:
            whole, end = strict.raw_decode(text, at)
            at = text.find("{", end)
            continue
        except (ValueError, RecursionError):
            pass
        try:
            scanner = _Scanner(text, at)
            value = scanner.mapping(0)
        except UnreadableError as problem:
            why = why or str(problem)
            at = text.find("{", at + 1)
            continue
        if scanner.is_cut:
            cut = cut or JsonFound(value, is_cut=True)
            break
        whole, at = value, text.find("{", scanner.at)
    if whole is not None:
        return JsonFound({str(key): value for key, value in _shown(whole).items()})
    if cut is None or not cut.fields:
        raise UnreadableError(f"the answer is no JSON: {why or 'it ends too soon'}")
    return replace(cut, fields=_shown(cut.fields))


def _shown(found: _Found) -> _Found:
    """The same with whole characters in all texts: what is half a one can go over no wire."""
    if isinstance(found, str):
        return whole_characters(found)  # type: ignore[return-value]  # a str for a str
    if isinstance(found, dict):
        return {_shown(key): _shown(value) for key, value in found.items()}  # type: ignore[return-value]  # and so on
    return [_shown(one) for one in found] if isinstance(found, list) else found  # type: ignore[return-value]


class _Scanner:
    """Reads one object that a strict decoder refuses."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.is_cut = False

    def mapping(self, depth: int) -> dict[str, object]:
        """From its brace on; what is not whole when the text ends is left out."""
        self._deep(depth)
        self.at += 1
        fields: dict[str, object] = {}
        while True:
            mark = self._next()
            if mark in ("}", ""):
                return self._closed(mark, fields)
            if mark == ",":
                self.at += 1
                continue
            key = self._quoted() if mark in _CLOSES else self._bare(":")
            mark = self._next()
            if mark == "":
                return self._closed(mark, fields)
            if mark != ":":
                raise UnreadableError(f"expected ':' after {key!r} at character {self.at}")
            self.at += 1
            value, is_whole = self._value(depth)
            if is_whole:
                fields[str(key)] = value

    def _list(self, depth: int) -> list[object]:
        self._deep(depth)
        self.at += 1
        values: list[object] = []
        while True:
            mark = self._next()
            if mark in ("]", ""):
                return self._closed(mark, values)
            if mark == ",":
                self.at += 1
                continue
            value, is_whole = self._value(depth)
            if is_whole:
                values.append(value)

    def _value(self, depth: int) -> tuple[object, bool]:
        """A value, and whether there is something of it."""
        mark = self._next()
        if mark == "":
            self.is_cut = True
            return None, False
        if mark == "{":
            return self.mapping(depth + 1), True
        if mark == "[":
            return self._list(depth + 1), True
        if mark in _CLOSES:
            said = self._quoted()
            return said, said is not None
        word = self._bare(",")
        if self.at >= len(self.text):  # "1" may have been the beginning of "10"
            self.is_cut = True
            return None, False
        if word.casefold() in _CONSTANTS:
            return _CONSTANTS[word.casefold()], True
        if _NUMBER.fullmatch(word):
            number = float(word.replace("−", "-"))
            return (int(number) if number.is_integer() else number), True
        raise UnreadableError(f"{word[:40]!r} is no value at character {self.at}")

    def _quoted(self) -> str | None:
        """A text; None of one that was cut off before its first sentence ended."""
        close, said = _CLOSES[self.text[self.at]], []
        self.at += 1
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == "\\" and self.at + 1 < len(self.text):
                said.append(self._escaped())
                continue
            if mark == close and self._ends_here():
                self.at += 1
                return "".join(said)
            said.append(mark)
            self.at += 1
        self.is_cut = True
        words = "".join(said)
        last = max(words.rfind(mark) for mark in ".!?")
        return words[: last + 1] if last >= 0 else None

    def _escaped(self) -> str:
        mark = self.text[self.at + 1]
        digits = self.text[self.at + 2 : self.at + 6]
        if mark == "u" and re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            self.at += 6
            return chr(int(digits, 16))
        self.at += 2
        return _ESCAPES.get(mark, mark)

    def _ends_here(self) -> bool:
        """Whether this quote ends its text: after one inside of it words go on."""
        return _AFTER_TEXT.match(self.text, self.at + 1) is not None

    def _bare(self, expected: str) -> str:
        found = _BARE.match(self.text, self.at)
        if found is None:
            raise UnreadableError(f"expected a word before {expected!r} at character {self.at}")
        self.at = found.end()
        return found[0]

    def _next(self) -> str:
        """The next mark that says something; "" at the end."""
        while self.at < len(self.text):
            if self.text[self.at].isspace() or self.text[self.at] == "\ufeff":
                self.at += 1
            elif comment := _COMMENT.match(self.text, self.at):
                self.at = comment.end()
            else:
                return self.text[self.at]
        return ""

    def _closed(self, mark: str, found: _Found) -> _Found:
        self.at += 1
        self.is_cut = self.is_cut or not mark
        return found

    def _deep(self, depth: int) -> None:
        if depth > DEEPEST:
            raise UnreadableError(f"objects stand more than {DEEPEST} deep in each other")
