"""What a language model's server is asked for and how its text becomes a typed answer, without any HTTP.

Model output is data: an answer is a struct with bounded fields or it is refused. The JSON in it is read as generously
as `json_reading.py` reads.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import inspect

from nodes.models.address import key_problem, url_problem, where_of
from nodes.models.json_reading import UnreadableError, layers, read_number, read_object
from runtime.errors import MissingVariable, PolyrhythmError, UserError
from runtime.serialization.msgspec_cache import from_json
from runtime.serialization.toml_errors import read_toml

A = TypeVar("A")

ExtraBody: TypeAlias = dict[str, int | float | str | bool | dict[str, int | float | str | bool]]
"""Further fields of each request, for switches that a server has of its own."""

OPENAI_URL = "https://api.openai.com/v1"
MOST_TOKENS = 2000
"""Of an answer, where nobody says otherwise."""


class ModelError(PolyrhythmError):
    """A model's server did not answer, or not with what was asked; the text never holds a key."""

    def __init__(
        self,
        text: str,
        *,
        may_retry: bool = False,
        retry_after_s: float = 0.0,
        is_about_images: bool = False,
        is_unusable: bool = False,
    ) -> None:
        super().__init__(text)
        self.is_unusable = is_unusable  # the server is well; its model may answer otherwise when told why
        self.is_about_images = is_about_images  # the server takes none
        self.may_retry = may_retry
        self.retry_after_s = retry_after_s


class BudgetError(ModelError):
    """All calls that this run may make are made; `spent` says which budget that is, without the server's name."""

    def __init__(self, text: str, *, spent: str = "", is_servers: bool = False) -> None:
        super().__init__(text)
        self.spent = spent
        self.is_servers = is_servers  # not a budget of ours: the server's limit of the day, or the account's


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Where the model is and how long, how often and how it may be asked."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    deadline_s: float = 5.0
    max_calls: int = 200
    max_tokens: int = MOST_TOKENS
    stream: bool = False
    context: int = 0  # tokens that the model reads, question and answer together; 0: not known
    extra_body: Mapping[str, object] = field(default_factory=dict)  # further fields of each request
    fallback: ChatSettings | None = None  # who is asked where this one does not answer
    prefix: str = "OPENAI"  # of the environment variables that name server, model and key

    @property
    def where(self) -> str:
        """The server's host and port, which is all that messages show of its address."""
        return where_of(self.base_url)

    def problems(self) -> list[str]:
        """What is wrong with these settings, in sentences; empty where nothing is."""
        key_name = f"{self.prefix}_API_KEY"
        found = [one for one in (url_problem(self.base_url), key_problem(self.api_key, key_name)) if one]
        if not self.model:
            found.append(
                MissingVariable(
                    f"no model is named; set the parameter model or the environment variable {self.prefix}_MODEL"
                )
            )
        if not self.api_key and self.base_url.rstrip("/") == OPENAI_URL:
            found.append(
                MissingVariable(
                    f"{self.prefix}_API_KEY is not set; set it, or {self.prefix}_BASE_URL to a server that needs no key"
                )
            )
        if not 0.0 < self.deadline_s < math.inf:
            found.append(f"deadline_s is {self.deadline_s}; expected a number of seconds above 0")
        if self.max_calls < 1:
            found.append(f"max_calls is {self.max_calls}; expected at least 1")
        if self.max_tokens < 1:
            found.append(f"max_tokens is {self.max_tokens}; expected at least 1")
        if self.context and self.context < 2 * self.max_tokens:
            found.append(f"context is {self.context}; expected at least twice max_tokens, which is {self.max_tokens}")
        if self.fallback is not None:
            found += [f"fallback: {problem}" for problem in self.fallback.problems()]
        return found


def settings_from(
    prefix: str,
    environment: Mapping[str, str] = os.environ,
    *,
    base_url: str,
    model: str,
    default_url: str = OPENAI_URL,
    default_model: str,
    deadline_s: float,
    max_calls: int,
    max_tokens: int = MOST_TOKENS,
    stream: bool = False,
    context: int = 0,
    extra_body: Mapping[str, object] | None = None,
    fallback: str = "",
) -> ChatSettings:
    """Parameters, else e.g. OPENAI_BASE_URL and OPENAI_MODEL, else the defaults; the key only from OPENAI_API_KEY.

    OPENAI_API_KEY goes to OpenAI's own host and to OPENAI_BASE_URL, and to no other server that a parameter names.
    `max_tokens` and `stream` are for those that answer with text. The prefix differs per seat, so that the key of a
    cloud planner is never sent to a VLM's server. `fallback` is "MODEL@URL"; a key of its
    own is in e.g. OPENAI_FALLBACK_API_KEY.
    """
    url = base_url or environment.get(f"{prefix}_BASE_URL", "") or default_url
    settings = ChatSettings(
        base_url=url,
        model=model or environment.get(f"{prefix}_MODEL", "") or default_model,
        api_key=environment.get(f"{prefix}_API_KEY", "")
        if prefix != "OPENAI" or has_openai_key(url, environment)
        else "",
        deadline_s=deadline_s,
        max_calls=max_calls,
        max_tokens=max_tokens,
        stream=stream,
        context=context,
        extra_body=extra_body or {},
        prefix=prefix,
    )
    if not fallback:
        return settings
    other, _, other_url = fallback.partition("@")
    second = replace(settings, model=other, context=0, extra_body={})
    if other_url and other_url != url:
        own = f"{prefix}_FALLBACK"
        second = replace(second, base_url=other_url, prefix=own, api_key=environment.get(f"{own}_API_KEY", ""))
    return replace(settings, fallback=second)


def language_problem(language: str) -> str:
    """What is wrong with the language that a server is to listen for, in a sentence; "" where nothing is."""
    if not language or re.fullmatch(r"[a-z]{2,3}(-[A-Za-z]{2,4})?", language):
        return ""
    return f'language is {language!r}; expected a code of ISO 639 such as "en" or "de", or "" for any'


def has_openai_key(base_url: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether OPENAI_API_KEY is for that address: OpenAI's own host, or the user's OPENAI_BASE_URL."""
    parts, own = urlsplit(base_url), urlsplit(OPENAI_URL)
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    return base_url.rstrip("/") == environment.get("OPENAI_BASE_URL", "").rstrip("/")


NOTHING = ("", "none", "null", "nil", "n/a", "nothing")
"""Words in place of what is left out."""


def read_answer(text: str, kind: type[A]) -> A:
    """The answer that the text holds, read as it was meant. Raises ModelError where it holds none, or not all of one.

    Meant are keys in other cases, null for "nothing", "1" for 1, one thing for a list of one, its name for a thing, an
    object wrapped into another; keys that nobody asked for are left out.
    """
    try:
        return from_json(text.encode("utf-8", errors="replace"), kind)
    except msgspec.MsgspecError:
        pass
    asked: object = kind
    try:
        return msgspec.convert(_meant(read_object(text), _shape(asked)), kind, strict=False)
    except (UnreadableError, msgspec.ValidationError) as problem:
        raise ModelError(f"the model's answer is not what was asked for: {problem}") from problem


@cache
def _shape(kind: object) -> inspect.Type:
    return inspect.type_info(kind)


def _meant(value: object, shape: inspect.Type) -> object:
    """The value as a model may have meant it where this is asked for; what nobody can mean stays, to be refused."""
    if isinstance(shape, inspect.StructType):
        return _meant_fields(value, shape)
    if isinstance(shape, inspect.ListType | inspect.VarTupleType):
        items = value if isinstance(value, list) else [value]
        return [_meant(one, shape.item_type) for one in items if not _is_nothing(one)]
    if isinstance(value, list) and len(value) == 1:
        return _meant(value[0], shape)
    if isinstance(value, str) and isinstance(shape, inspect.LiteralType):
        return next((word for word in shape.values if str(word).casefold() == value.strip().casefold()), value)
    if isinstance(shape, inspect.StrType) and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if math.isfinite(value) else value
    if isinstance(shape, inspect.IntType | inspect.FloatType) and isinstance(value, str):
        number = read_number(value)
        return value if number is None else number
    return value


def _meant_fields(value: object, shape: inspect.StructType) -> object:
    names = {_bare(field.encode_name): field for field in shape.fields}
    if isinstance(value, str):
        return {shape.fields[0].encode_name: value}
    if not isinstance(value, dict):
        return value
    for layer in layers(value):
        given = {_bare(key): one for key, one in layer.items()}
        if names.keys() & given.keys():
            break
    found: dict[str, object] = {}
    for key, asked in names.items():
        is_list = isinstance(asked.type, inspect.ListType | inspect.VarTupleType)
        may_lack = asked.default == "" and _is_nothing(given.get(key))
        if key in given and (given[key] is not None or is_list) and not may_lack:
            found[asked.encode_name] = _meant(given[key], asked.type)
    return found


def _is_nothing(value: object) -> bool:
    """Whether that stands for nothing: null, an empty object, or a word for it."""
    return value in (None, {}) or (isinstance(value, str) and value.strip().casefold() in NOTHING)


def schema_of(kind: type, *, without: Collection[str] = (), **instead: object) -> dict[str, object]:
    """JSON schema of an answer, in the subset that structured output takes: all required, nothing else.

    `instead` are what its fields of these names are, at any depth; the fields `without` are none of it.
    """
    return _schema(_shape(kind), without, instead)


def _schema(shape: inspect.Type, without: Collection[str], instead: Mapping[str, object]) -> dict[str, object]:
    match shape:
        case inspect.StructType(fields=fields):
            properties = {
                one.name: instead.get(one.name) or _schema(one.type, without, instead)
                for one in fields
                if one.name not in without
            }
            required = list(properties)
            return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        case inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": _schema(item, without, instead)}
        case inspect.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
    return {"type": _SCHEMA_TYPES[type(shape)]}


_SCHEMA_TYPES: Mapping[type, str] = {
    inspect.StrType: "string", inspect.IntType: "integer", inspect.FloatType: "number", inspect.BoolType: "boolean",
}  # fmt: skip


def one_of(words: Iterable[str]) -> dict[str, object]:
    """JSON schema of one of these words, or of none; of any where there are none."""
    known = list(words)
    return {"type": "string", "enum": ["", *known]} if known else {"type": "string"}


def named(word: str, known: Iterable[str]) -> str:
    """Which of these a model means that writes it in another case, with an article, or as a call; "" for a word like
    "none"; else the word.
    """
    bare = _bare(re.sub(r"^\s*(?:the|a|an)\s+|\(\)\s*$", "", word, flags=re.IGNORECASE))
    same = [name for name in known if _bare(name) == bare]
    if not same and _is_nothing(word):
        return ""
    return word if word in same or len(same) != 1 else same[0]


def _bare(key: str) -> str:
    return re.sub(r"[\s_\-]", "", key).casefold()


def texts_beside(module: str, prompt: str, kind: type[A]) -> A:
    """The texts of the TOML file beside a module, with the keys of another, `prompt`, in place of ours ("": none).

    Raises UserError where that one cannot be read.
    """
    ours = read_toml(Path(module).with_suffix(".toml"))
    own = read_toml(Path(prompt)) if prompt else {}
    try:
        return msgspec.convert({**ours, **own}, kind)
    except msgspec.ValidationError as problem:
        raise UserError(f"prompt {prompt}: {problem}") from problem


def quoted(text: str) -> str:
    """Somebody's words as one JSON string on one line, so that they cannot pass for the prompt's own."""
    return msgspec.json.encode(text[:500]).decode()
