"""Write what the pages send as TypeScript's types, from the server's own messages: python .ci/wire_types.py

`make pages` checks the pages against them; a test sees that they are as the messages are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import inspect

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "bridges" / "web" / "static" / "wire.d.ts"
HEAD = "// Made by .ci/wire_types.py from the server's messages: what each page may send. Not to be edited.\n"


def pages() -> dict[str, tuple[type, ...]]:
    """What each page may send."""
    from bridges.web.episode import node as episode
    from bridges.web.http import wire as console
    from bridges.web.recordings import list_page, rating_page
    from bridges.web.study import wire as study

    shared = (console.PageHello, console.FrameSeen, console.WatchCameras)
    return {
        "FromConsole": get_args(console.Incoming),
        "FromStudy": get_args(study.Incoming),
        "FromEpisode": get_args(episode.Incoming),
        "FromRecordings": (*shared, list_page.OpenRecording, rating_page.Seek, rating_page.RateRecording),
    }


def written() -> str:
    """The file's text."""
    unions = pages()
    lines, seen = [HEAD], set[type]()
    for one in (message for messages in unions.values() for message in messages):
        if one not in seen:
            seen.add(one)
            lines.append(_struct(one))
    for name, messages in unions.items():
        lines.append(f"export type {name} = {' | '.join(one.__name__ for one in messages)};\n")
    return "\n".join(lines)


def _struct(kind: type) -> str:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    about = " ".join((kind.__doc__ or "").split())
    return f"/** {about} */\nexport type {kind.__name__} = {_body(info)};\n"


def _body(info: inspect.StructType) -> str:
    fields = [f't: "{info.tag}"'] if info.tag else []
    for one in info.fields:
        fields.append(f"{one.encode_name}{'' if one.required else '?'}: {_type(one.type)}")
    return f"{{ {'; '.join(fields)} }}"


def _type(info: inspect.Type) -> str:
    match info:
        case inspect.StrType() | inspect.BytesType():  # bytes go as base64
            return "string"
        case inspect.IntType() | inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "boolean"
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType():
            return " | ".join(msgspec.json.encode(value).decode() for value in info.values)
        case inspect.VarTupleType() | inspect.ListType():
            return f"Array<{_type(info.item_type)}>"
        case inspect.DictType():
            return f"{{ [key in {_type(info.key_type)}]?: {_type(info.value_type)} }}"
        case inspect.UnionType():
            return " | ".join(_type(one) for one in info.types)
        case inspect.StructType():
            return _body(info)
        case _:
            raise TypeError(f"{info} has no type of TypeScript here")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    OUT.write_text(written(), encoding="utf-8")
