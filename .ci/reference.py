"""Write the reference of topics, messages and nodes from the code: python .ci/reference.py

`make reference` writes the two pages; a test sees that they are as the code is.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import os
import pkgutil
import re
import sys
import tokenize
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import bridges
import nodes
from runtime import Message, Node, Publisher, Subscription, UserError
from runtime.launch.checks.class_check import parameters_of
from runtime.launch.graph import convert_params
from runtime.node import MessageHandler, Timer, handlers_of, ports_of

ROOT = Path(__file__).resolve().parents[1]
MESSAGES = ROOT / "docs" / "reference" / "messages.md"
NODES = ROOT / "docs" / "reference" / "nodes.md"
UNITS = {
    "_ns": "ns", "_s": "s", "_ms": "ms", "_hz": "Hz", "_mps": "m/s", "_mps2": "m/s²", "_radps": "rad/s", "_rad": "rad",
    "_deg": "°", "_m": "m", "_px": "pixels", "_n": "N", "_v": "V", "_a": "A", "_db": "dB", "_mb": "MB", "_gb": "GB",
    "_mbit": "Mbit/s", "_kb": "kB", "fps": "Hz", "_pct": "%", "_percent": "%",
}  # fmt: skip
NO_NODES = ("nodes.hello", "nodes.evaluation", "nodes.scaffold")
"""Examples and what measures: nobody puts these into a launch file of their own."""
NUMBERED = re.compile(r"(?<=seat)\d+$")
"""Sixteen seats of an episode have a topic each."""
NOT_AT_HAND = ("torch", "grpc")
"""Programs that run in another Python import these; no node stands in their files."""
PROBES: tuple[object, ...] = (-1, 0, 1e9, "no such word")
"""Values that a parameter with a range or a list of words refuses, and in refusing says what it takes."""


def shipped_nodes() -> dict[str, type[Node]]:
    """Every class that a launch file may name, as `module:Class`, in the order of the house."""
    found: dict[str, type[Node]] = {}
    for package in (nodes, bridges):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            try:
                loaded = importlib.import_module(module.name)
            except ModuleNotFoundError as problem:
                if problem.name not in NOT_AT_HAND:
                    raise
                continue
            for name, member in vars(loaded).items():
                is_node = isinstance(member, type) and issubclass(member, Node)
                if is_node and member.__module__ == module.name and not module.name.startswith(NO_NODES):
                    found[f"{module.name}:{name}"] = member
    bases = {base for cls in found.values() for base in cls.__mro__[1:]}
    return {use: cls for use, cls in found.items() if cls not in bases or handlers_of(cls)}


def topics(found: dict[str, type[Node]]) -> dict[str, dict[str, Any]]:
    """By topic: its message, and the nodes that send and read it by their own ports."""
    table: dict[str, dict[str, Any]] = {}
    for use, cls in found.items():
        ports = (("from", ports_of(cls, Publisher)), ("to", ports_of(cls, Subscription)))
        for role, port in ((role, port) for role, mine in ports for port in mine.values()):
            topic = NUMBERED.sub("N", port.topic)
            row = table.setdefault(topic, {"message": port.message, "from": [], "to": []})
            row[role].append(use.partition(":")[2])
    return dict(sorted(table.items()))


@cache
def comments_of(module: str) -> dict[int, str]:
    """By line, what a comment of a source file says behind code."""
    source = inspect.getsource(sys.modules[module])
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


@cache
def fields_of(module: str, name: str) -> tuple[tuple[str, str, str | None, str], ...]:
    """A class's own fields: name, type and default as written, and what its comment or docstring says."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    body = next(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    found = []
    for at, statement in enumerate(body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        after = body[at + 1] if at + 1 < len(body) else None
        said = comments_of(module).get(statement.end_lineno or 0, "")
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            said = after.value.value
        default = None if statement.value is None else _default(ast.unparse(statement.value))
        found.append((statement.target.id, ast.unparse(statement.annotation), default, " ".join(said.split())))
    return tuple(found)


def _default(written: str) -> str:
    factory = re.fullmatch(r"(?:msgspec\.)?field\(default_factory=(.+)\)", written)
    if factory is None:
        return written
    return {"dict": "{}", "list": "[]"}.get(factory[1], f"{factory[1]}()")


def all_fields(message: type) -> Iterator[tuple[str, str, str | None, str]]:
    """The fields of a message, those of its bases first."""
    for base in reversed(message.__mro__):
        if base.__module__.startswith(("runtime.", "nodes.", "bridges.")) and base is not Message:
            for row in fields_of(base.__module__, base.__name__):
                if not row[1].startswith("ClassVar") and row[0] in getattr(message, "__struct_fields__", ()):
                    yield row


def parts_of(message: type) -> Iterator[type]:
    """A message and the messages inside it, each once, the outer first."""
    waiting, seen = [message], set[type]()
    while waiting:
        one = waiting.pop(0)
        if one in seen:
            continue
        seen.add(one)
        yield one
        for annotation in typing.get_type_hints(one).values():
            waiting += [part for part in _classes_in(annotation) if hasattr(part, "__struct_fields__")]


def _classes_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _classes_in(part)


def unit_of(name: str) -> str:
    """The unit that a name ends with, "" where it has none."""
    ends = sorted((end for end in UNITS if name.endswith(end)), key=len)
    return UNITS[ends[-1]] if ends else ""


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    return f"`{cell(text)}`" if text else ""


def said_of(thing: type | ModuleType) -> str:
    return inspect.cleandoc(thing.__doc__ or "").strip()


def taken(cls: type[Node], name: str, annotation: Any) -> str:
    """What a parameter takes, in the words in which the node refuses all else; "" where it refuses none."""
    words = [value for value in typing.get_args(annotation) if isinstance(value, str)]
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(map(str, typing.get_args(annotation)))
    if words:
        return ", ".join(words)
    for value in PROBES:
        try:
            built = cls(**convert_params(cls, {name: value}))
            refusals = [] if cls.problems is Node.problems else list(built.problems())
        except UserError as problem:
            refusals = [str(problem)]
        for refusal in refusals:
            at = refusal.find(f"{name} is ")
            if at >= 0 and (said := re.search(r"; (?:expected (.+)|(known: .+))$", refusal[at:])):
                return said[1] or said[2]
    return ""


def messages_page() -> str:
    """The page of topics and messages."""
    table = topics(shipped_nodes())
    lines = [
        "# Topics and messages",
        "",
        "Made by `make reference` from the code, not edited. A *state* is what is true now: the newest wins. An",
        "*event* comes in order, and each counts ([QoS](../qos.md)). Names end with their units. A node's `remap`",
        "gives a topic another name. What a launch file adds (a bridge's rows, another episode's seats) is not here.",
        "",
        "| topic | message | kind | from | to |",
        "|---|---|---|---|---|",
    ]
    for topic, row in table.items():
        message = row["message"]
        ends = [", ".join(sorted(set(row[role]))) or "-" for role in ("from", "to")]
        link = f"[{message.__name__}](#{message.__name__.lower()})"
        lines.append(f"| `{topic}` | {link} | {message.message_kind} | {ends[0]} | {ends[1]} |")
    told = {part for row in table.values() for part in parts_of(row["message"])}
    for message in sorted(told, key=lambda one: one.__name__):
        lines += ["", f"## {message.__name__}", "", said_of(message), "", code(message.__module__), ""]
        rows = list(all_fields(message))
        if rows:
            lines += ["| field | type | default | unit | says |", "|---|---|---|---|---|"]
        for name, annotation, default, said in rows:
            shown = "" if default is None else code(default)
            lines.append(f"| `{name}` | {code(annotation)} | {shown} | {unit_of(name)} | {cell(said)} |")
    return "\n".join(lines) + "\n"


def nodes_page() -> str:
    """The page of nodes and their parameters, the same on a machine on which keys of servers are set."""
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("OPENAI_") or name.endswith("_API_KEY")]:
            del os.environ[name]
        return _nodes_page()


def _nodes_page() -> str:
    lines = [
        "# Shipped nodes",
        "",
        "Made by `make reference` from the code, not edited. `use` in a launch file takes the name below a heading,",
        "`params` what the table lists. *Takes* repeats what the node says where it refuses a value. Topics have",
        "[a page of their own](messages.md).",
    ]
    room = ""
    for use, cls in shipped_nodes().items():
        if (now := ".".join(use.split(":")[0].split(".")[:2])) != room:
            room = now
            lines += ["", f"## {room}", "", said_of(sys.modules[room])]
        lines += ["", f"### {cls.__name__}", "", code(use), "", said_of(cls)]
        if parameters := parameters_of(cls):
            lines += ["", "| parameter | type | default | unit | takes |", "|---|---|---|---|---|"]
        for name, parameter in parameters.items():
            default = "required" if parameter.default is parameter.empty else code(repr(parameter.default))
            kind = inspect.formatannotation(parameter.annotation).replace("typing.", "")
            is_words = "Literal" in kind
            shown = (
                "one of"
                if is_words
                else code(re.sub(r"\b(?:runtime|nodes|bridges|collections|numpy)[\w.]*\.", "", kind))
            )
            takes = taken(cls, name, parameter.annotation)
            lines.append(f"| `{name}` | {shown} | {default} | {unit_of(name)} | {cell(takes)} |")
        if timers := [handler for handler in handlers_of(cls) if isinstance(handler, Timer)]:
            lines += ["", "Timers: " + ", ".join(f"`{timer.name}` {timer.hz:g} Hz" for timer in timers) + "."]
        handled = {handler.port for handler in handlers_of(cls) if isinstance(handler, MessageHandler)}
        read = ports_of(cls, Subscription)
        reads = [f"`{port.topic}`" + ("" if name in handled else " (newest)") for name, port in read.items()]
        sends = [f"`{port.topic}`" for port in ports_of(cls, Publisher).values()]
        for word, ports in (("Reads", reads), ("Sends", sends)):
            if ports:
                lines += ["", f"{word} {', '.join(ports)}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write both pages."""
    MESSAGES.parent.mkdir(exist_ok=True)
    MESSAGES.write_text(messages_page())
    NODES.write_text(nodes_page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
