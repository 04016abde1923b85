"""How a message looks in a recording: a JSON document with its envelope, and the JSON Schema that describes it.

Everything a viewer such as Foxglove needs in order to plot a field is in the schema's plain part: no references, no
alternatives with null, one item type per list, no lists of lists (Foxglove's parser refuses a schema that has one).
So a field that is None is left out of the document, and each document is valid by its schema. A number that is not
finite, and a list that holds one or a null, stand under `_not_finite`, for readers of ours. Arrays of one dimension and
of up to `LISTED` elements are lists of numbers; those of more dimensions have shape and values, larger ones dtype,
shape and base64 data. A topic's first message decides that for all (`array_forms`), so that its schema fits them.
"""

from __future__ import annotations

import base64
import functools
import math
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtime.message import UNKNOWN_NS, Envelope, M, Message, array_fields, fields_of

ENVELOPE_KEY = "_envelope"
ASIDE_KEY = "_not_finite"
_SHOWN = ("image", "utterance", "plan")
"""Origins whose ages a viewer always sees; others appear where the first message has them."""
LISTED = 4096
"""Largest number of elements of an array that is written as a list."""

Document = dict[str, Any]
Form = Literal["list", "values", "bytes"]
"""How an array is written: as a list of numbers; as its shape and its values; as dtype, shape and base64."""


def envelope_document(envelope: Envelope) -> Document:
    """The envelope by field name, with the age at publication of each of its origins."""
    document: Document = msgspec.structs.asdict(envelope)
    for origin, stamp_ns in envelope.origins.items():
        if stamp_ns != UNKNOWN_NS:
            document[f"{origin}_age_s"] = round((envelope.published_ns - stamp_ns) * 1e-9, 9)
    return document


def envelope_of(document: Document) -> Envelope:
    """The envelope that `envelope_document` wrote. Raises msgspec.ValidationError where it is none."""
    if not isinstance(document, dict):
        raise msgspec.ValidationError("the envelope is no object")
    values = [document[name] for name in Envelope.__struct_fields__ if name in document]
    return msgspec.convert(values, Envelope)


def array_forms(example: Message) -> dict[str, Form]:
    """How each array of a topic is written, by its first message; None in that message means shape and values."""
    arrays = {name: getattr(example, name) for name in array_fields(type(example))}
    return {name: "values" if array is None else _form_of(array) for name, array in arrays.items()}


def forms_in(document: Document, message: type[Message]) -> dict[str, Form]:
    """How the arrays of a recorded message are written, without those that are absent or stand aside."""
    found: dict[str, Form] = {}
    for name in array_fields(message):
        written = document.get(name)
        if written is not None:
            found[name] = "list" if isinstance(written, list) else "values" if "values" in written else "bytes"
    return found


def encode_message(message: Message, envelope: Envelope, forms: Mapping[str, Form] | None = None) -> bytes:
    """The message as JSON, with its envelope under `_envelope`; None is left out, and what is not finite stands aside.

    `forms` are those of its topic; None uses its own. A list that has another dimension later is written with its
    shape.
    """
    body = msgspec.structs.asdict(message)  # type: ignore[arg-type]  # a Struct at run time
    for name, form in (forms or {}).items():
        if body[name] is not None:
            body[name] = _written_array(body[name], form)
    body[ENVELOPE_KEY] = envelope_document(envelope)
    data = msgspec.json.encode(body, enc_hook=_encode_array)
    if b"null" not in data:
        return data
    aside: Document = {}
    plain = _put_aside(msgspec.to_builtins(body, enc_hook=_encode_array), "", aside)
    return msgspec.json.encode({**plain, ASIDE_KEY: aside} if aside else plain)


def _put_aside(value: Any, path: str, aside: Document) -> Any:
    """The value without what viewers cannot read; `aside` gets it by its path."""
    if isinstance(value, list | tuple):
        return [_put_aside(part, f"{path}{place}.", aside) for place, part in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, part in value.items():
        if _is_odd(part):
            aside[f"{path}{key}"] = _written(part)
        elif part is not None:
            kept[key] = _put_aside(part, f"{path}{key}.", aside)
    return kept


def _is_odd(value: Any) -> bool:
    """Whether it is no finite number, or a list that holds such a one or a null."""
    if isinstance(value, list | tuple):
        return any(part is None or _is_odd(part) for part in value)
    return isinstance(value, float) and not math.isfinite(value)


def _written(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_written(part) for part in value]
    return {"float": str(value)} if _is_odd(value) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(part) for part in value]
    return float(value["float"]) if isinstance(value, dict) and value.keys() == {"float"} else value


def _put_back(body: Document, aside: Document) -> Document:
    """The body with what stood aside. Raises msgspec.ValidationError where it has no such place."""
    whole: Document = msgspec.json.decode(msgspec.json.encode(body))
    for path, value in aside.items():
        *way, last = path.split(".")
        part: Any = whole
        try:
            for step in way:
                part = part[int(step)] if isinstance(part, list) else part[step]
            part[last] = _read(value)
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            raise msgspec.ValidationError(f"it puts {path!r} aside and has no such place") from problem
    return whole


def decode_message(document: Document, message: type[M]) -> M:
    """The typed message. Raises msgspec.ValidationError where the document does not fit the type."""
    if aside := document.get(ASIDE_KEY):
        document = _put_back(document, aside)
    body = {**_left_out(message), **document}
    body.pop(ENVELOPE_KEY, None)
    body.pop(ASIDE_KEY, None)
    return msgspec.convert(body, message, dec_hook=_decode_array)


@functools.cache
def _left_out(message: type[Message]) -> Document:
    """What stands for each required field that a document leaves out: None or NaN, by the field's type.

    Kept for each class: its annotations cost more to evaluate than a message costs to read.
    """
    values: Document = {}
    for field in fields_of(message):
        if field.required and type(None) in typing.get_args(field.type):
            values[field.name] = None
        elif field.required and field.type is float:
            values[field.name] = math.nan
    return values


def _encode_array(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"a recording has no form for {type(value).__name__}")
    return _written_array(value, _form_of(value))


def _form_of(array: NDArray[Any]) -> Form:
    return "bytes" if not 0 < array.size <= LISTED else "list" if array.ndim == 1 else "values"


def _written_array(array: NDArray[Any], form: Form) -> object:
    if form == "list" and array.ndim == 1:
        return array.tolist()
    if form != "bytes":
        return {"shape": list(array.shape), "values": array.ravel().tolist()}
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def _decode_array(expected: Any, value: object) -> NDArray[Any]:
    if isinstance(value, dict) and "values" in value:
        return np.asarray(value["values"], dtype=_dtype_of(expected)).reshape(value["shape"])
    if isinstance(value, dict):
        dtype = np.dtype(value["dtype"])
        if dtype.hasobject:
            raise ValueError("arrays of objects are not read")
        return np.frombuffer(base64.b64decode(value["data"]), dtype).reshape(value["shape"])
    return np.asarray(value, dtype=_dtype_of(expected))


def _dtype_of(annotation: Any) -> np.dtype[Any] | None:
    """The dtype that an annotation like NDArray[np.float32] names, or None."""
    for inner in typing.get_args(annotation):
        if isinstance(inner, type) and issubclass(inner, np.generic):
            return np.dtype(inner)
        found = _dtype_of(inner)
        if found is not None:
            return found
    return None


def message_schema(message: type[Message], example: Message | None = None, origins: Iterable[str] = ()) -> bytes:
    """The JSON Schema of a message type as recorded; the dimensions of its arrays come from an example."""
    whole = msgspec.json.schema(message, schema_hook=_array_schema)
    definitions: Document = whole.get("$defs", {})
    schema = _plain(whole, definitions, ())
    hints = {field.name: field.type for field in fields_of(message)}
    for name, form in ({} if example is None else array_forms(example)).items():
        array = getattr(example, name)
        dtype = _dtype_of(hints[name]) if array is None else array.dtype
        schema["properties"][name] = _schema_of(form, {"type": "array", "items": {"type": _json_type(dtype)}})
    schema["properties"][ENVELOPE_KEY] = envelope_schema(origins)
    return msgspec.json.encode(schema)


def envelope_schema(origins: Iterable[str] = ()) -> Document:
    """The JSON Schema of the document under `_envelope`, with the ages of these origins."""
    fields: list[tuple[str, Any]] = [(field.name, field.type) for field in msgspec.structs.fields(Envelope)]
    by_name = msgspec.defstruct("Envelope", fields)
    whole = msgspec.json.schema(by_name)
    schema = _plain(whole, whole.get("$defs", {}), ())
    for origin in {**dict.fromkeys(_SHOWN), **dict.fromkeys(origins)}:
        schema["properties"][f"{origin}_age_s"] = {"type": "number"}
    return schema


def _array_schema(annotation: Any) -> Document:
    return {"type": "array", "items": {"type": _json_type(_dtype_of(annotation))}}


def _schema_of(form: Form, values: Document) -> Document:
    """Of an array as it is written in that form; `values` is the schema of a list of its values."""
    if form == "list":
        return values
    shape: Document = {"type": "array", "items": {"type": "integer"}}
    if form == "values":
        return {"type": "object", "properties": {"shape": shape, "values": values}}
    parts = {"dtype": {"type": "string"}, "shape": shape, "data": {"type": "string"}}
    return {"type": "object", "properties": parts}


def _json_type(dtype: np.dtype[Any] | None) -> str:
    return "number" if dtype is None or dtype.kind == "f" else "boolean" if dtype.kind == "b" else "integer"


def _is_shown(part: Document) -> bool:
    """Whether a viewer can read a property of that schema."""
    if part.get("type") == "array":
        return part.get("items", {}).get("type") not in (None, "array")
    return "type" in part


def _plain(schema: Document, definitions: Document, inside: tuple[str, ...]) -> Document:
    """The schema with references written out, `X or null` as X, and one type per list; viewers follow no more.

    What else has several types, and lists of lists, are not told of: a document may hold more than its schema tells.
    """
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        if name in inside:
            return {"type": "object"}
        return _plain(definitions[name], definitions, (*inside, name))
    if "anyOf" in schema:
        known = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return _plain(known[0], definitions, inside) if len(known) == 1 else {}
    plain = {
        key: value for key, value in schema.items() if key not in ("$defs", "default", "enum", "const", "required")
    }
    for name in ("additionalProperties", "propertyNames"):  # of a dict, by name
        if plain.get(name) is False:
            del plain[name]
        elif isinstance(plain.get(name), dict):
            plain[name] = _plain(plain[name], definitions, inside)
    if "enum" in schema:
        plain["enum"] = schema["enum"]
        plain.setdefault("type", "string" if all(isinstance(value, str) for value in schema["enum"]) else "integer")
    if "properties" in schema:
        parts = {name: _plain(part, definitions, inside) for name, part in schema["properties"].items()}
        plain["properties"] = {name: part for name, part in parts.items() if _is_shown(part)}
    if "prefixItems" in schema:
        del plain["prefixItems"]
        plain["items"] = _plain(schema["prefixItems"][0], definitions, inside)
    elif isinstance(schema.get("items"), dict):
        plain["items"] = _plain(schema["items"], definitions, inside)
    return plain
