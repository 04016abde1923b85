"""How a message looks in a recording: a JSON document with its envelope, and the JSON Schema that describes it.

Everything a viewer such as Foxglove needs in order to plot a field is in the schema's plain part: no references, no
alternatives with null (Foxglove's parser refuses a schema that has one), one item type per list. So a field that is
None, or not a finite number, is left out of the document, and each document is valid by its schema. Arrays of up to
`LISTED` elements are lists of numbers; larger ones are objects with dtype, shape and base64 data.
"""

from __future__ import annotations

import base64
import functools
import math
import typing
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtime.message import UNKNOWN_NS, Envelope, M, Message, array_fields

ENVELOPE_KEY = "_envelope"
_SHOWN = ("image", "utterance", "plan")
"""Origins whose ages a viewer is told of, also where the first message has none; others where it has."""
LISTED = 4096
"""Elements of the largest array that is written as a list."""

Document = dict[str, Any]


def envelope_document(envelope: Envelope) -> Document:
    """The envelope by field name, with the age at publication of each origin that it has."""
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


def encode_message(message: Message, envelope: Envelope) -> bytes:
    """The message as JSON, its envelope under `_envelope`; what is None or no finite number is left out.

    Inside a list of numbers, what is not finite becomes null, which no schema that viewers read can tell.
    """
    body = msgspec.structs.asdict(message)  # type: ignore[arg-type]  # a Struct at run time
    body[ENVELOPE_KEY] = envelope_document(envelope)
    data = msgspec.json.encode(body, enc_hook=_encode_array)
    if b"null" not in data:
        return data
    return msgspec.json.encode(_without_nulls(msgspec.json.decode(data)))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def decode_message(document: Document, message: type[M]) -> M:
    """The typed message. Raises msgspec.ValidationError where the document does not fit the type."""
    body = {**_left_out(message), **document}
    body.pop(ENVELOPE_KEY, None)
    return msgspec.convert(body, message, dec_hook=_decode_array)


@functools.cache
def _left_out(message: type[Message]) -> Document:
    """What stands for each required field that a document leaves out: None or NaN, by the field's type.

    Kept for each class: its annotations cost more to evaluate than a message costs to read.
    """
    values: Document = {}
    for field in msgspec.structs.fields(message):  # type: ignore[arg-type]  # a Struct at run time
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
    if 0 < value.size <= LISTED:
        return value.tolist()
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
    return {"dtype": value.dtype.str, "shape": list(value.shape), "data": data}


def _decode_array(expected: Any, value: object) -> NDArray[Any]:
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
    """The JSON Schema of a message type as it is recorded; how many dimensions its arrays have, an example tells."""
    whole = msgspec.json.schema(message, schema_hook=_array_schema)
    definitions: Document = whole.get("$defs", {})
    schema = _plain(whole, definitions, ())
    for name in array_fields(message):
        array = getattr(example, name, None)
        if array is not None:
            schema["properties"][name] = _schema_of(array)
    schema["properties"][ENVELOPE_KEY] = envelope_schema(origins)
    return msgspec.json.encode(schema)


def envelope_schema(origins: Iterable[str] = ()) -> Document:
    """The JSON Schema of what stands under `_envelope`, with the ages of these origins."""
    fields: list[tuple[str, Any]] = [(field.name, field.type) for field in msgspec.structs.fields(Envelope)]
    by_name = msgspec.defstruct("Envelope", fields)
    whole = msgspec.json.schema(by_name)
    schema = _plain(whole, whole.get("$defs", {}), ())
    for origin in {**dict.fromkeys(_SHOWN), **dict.fromkeys(origins)}:
        schema["properties"][f"{origin}_age_s"] = {"type": "number"}
    return schema


def _array_schema(annotation: Any) -> Document:
    return {"type": "array", "items": {"type": _json_type(_dtype_of(annotation))}}


def _schema_of(array: NDArray[Any]) -> Document:
    """Of an array as `_encode_array` writes it."""
    if not 0 < array.size <= LISTED:
        shape = {"type": "array", "items": {"type": "integer"}}
        return {
            "type": "object",
            "properties": {"dtype": {"type": "string"}, "shape": shape, "data": {"type": "string"}},
        }
    schema: Document = {"type": _json_type(array.dtype)}
    for _ in range(array.ndim):
        schema = {"type": "array", "items": schema}
    return schema


def _json_type(dtype: np.dtype[Any] | None) -> str:
    return "number" if dtype is None or dtype.kind == "f" else "boolean" if dtype.kind == "b" else "integer"


def _plain(schema: Document, definitions: Document, inside: tuple[str, ...]) -> Document:
    """The schema with references written out, `X or null` as X, and one type per list; viewers follow no more."""
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
    if "enum" in schema:
        plain["enum"] = schema["enum"]
        plain.setdefault("type", "string" if all(isinstance(value, str) for value in schema["enum"]) else "integer")
    if "properties" in schema:
        plain["properties"] = {name: _plain(part, definitions, inside) for name, part in schema["properties"].items()}
    if "prefixItems" in schema:
        del plain["prefixItems"]
        plain["items"] = _plain(schema["prefixItems"][0], definitions, inside)
    elif isinstance(schema.get("items"), dict):
        plain["items"] = _plain(schema["items"], definitions, inside)
    return plain
