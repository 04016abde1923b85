"""Images in a recording: Foxglove's CompressedImage with a PNG (lossless) or a JPEG, and back.

Depth goes to a topic beside the image's: exactly (every bit of its 32-bit floats, so that a replay sees what the nodes
saw), or as a PNG of 16-bit millimetres, which viewers show.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray

from nodes.mcap.schema import ENVELOPE_KEY, Document, envelope_document, envelope_schema
from nodes.msgs import Image
from runtime.clock import NS_PER_S
from runtime.errors import RecordingError
from runtime.message import Envelope

SCHEMA_NAME = "foxglove.CompressedImage"
MAX_PIXELS = 16_000_000
"""Larger than any camera of a robot: a file that claims more is refused before it is decoded."""

EXACT_DEPTH = "float32-planes-zstd"
DEPTH_SCHEMA_NAME = "polyrhythm.Depth"

SCHEMA = msgspec.json.encode(
    {
        "title": SCHEMA_NAME,
        "description": "A compressed image",
        "$comment": "foxglove.CompressedImage, with the fields of nodes.msgs:Image that it lacks",
        "type": "object",
        "properties": {
            "timestamp": {
                "type": "object",
                "title": "time",
                "properties": {
                    "sec": {"type": "integer", "minimum": 0},
                    "nsec": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
                },
                "description": "When the image was captured",
            },
            "frame_id": {"type": "string", "description": "The camera"},
            "data": {"type": "string", "contentEncoding": "base64", "description": "The file"},
            "format": {"type": "string", "description": "png or jpeg"},
            "captured_ns": {"type": "integer"},
            "focal_px": {"type": "number"},
            "has_depth": {"type": "boolean"},
            ENVELOPE_KEY: envelope_schema(),
        },
    }
)

DEPTH_SCHEMA = msgspec.json.encode(
    {
        "title": DEPTH_SCHEMA_NAME,
        "description": "Depth along the optical axis in m: 32-bit floats, byte by byte in four planes, zstd",
        "type": "object",
        "properties": {
            **{name: part for name, part in msgspec.json.decode(SCHEMA)["properties"].items() if name != "has_depth"},
            "width": {"type": "integer"},
            "height": {"type": "integer"},
        },
    }
)


def image_document(image: Image, envelope: Envelope, *, wall_offset_ns: int, jpeg_quality: int) -> Document:
    """The colour image as a document; `jpeg_quality` 0 keeps every pixel (PNG), 1 to 100 is a JPEG."""
    if jpeg_quality:
        import cv2

        bgr = np.asarray(cv2.cvtColor(image.rgb, cv2.COLOR_RGB2BGR), np.uint8)
        data = _encode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, jpeg_quality])
    else:
        from nodes.recording.png import encode_png

        data = encode_png(image.rgb)
    return _document(image, envelope, "jpeg" if jpeg_quality else "png", data, wall_offset_ns)


def depth_document(image: Image, envelope: Envelope, *, wall_offset_ns: int) -> Document:
    """The depth image as a document; 16-bit millimetres, 0 where unknown or beyond 65 m."""
    assert image.depth_m is not None
    millimetres = np.nan_to_num(image.depth_m * 1000.0, nan=0.0, posinf=0.0, neginf=0.0)
    millimetres[millimetres > 65535] = 0
    data = _encode(".png", np.rint(millimetres).astype(np.uint16), _png_speed())
    return _document(image, envelope, "png", data, wall_offset_ns)


def _png_speed() -> list[int]:
    """Options of OpenCV for depth in millimetres."""
    import cv2

    options = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE]
    if not hasattr(cv2, "IMWRITE_PNG_FILTER"):  # before OpenCV 4.12 the first of these filters is all there is
        return options
    return [*options, cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_SUB]


def exact_depth_document(image: Image, envelope: Envelope, *, wall_offset_ns: int) -> Document:
    """The depth image bit for bit: all first bytes of its numbers, all second ones..., which compresses well."""
    assert image.depth_m is not None
    depth = np.ascontiguousarray(image.depth_m, np.float32)
    planes = depth.view(np.uint8).reshape(-1, 4).T.tobytes()
    document = _document(image, envelope, EXACT_DEPTH, _depth_compressor().compress(planes), wall_offset_ns)
    return {**document, "height": depth.shape[0], "width": depth.shape[1]}


@cache
def _depth_compressor() -> zstandard.ZstdCompressor:
    """Made once: to set one up takes a sixth of what a small image takes."""
    return zstandard.ZstdCompressor(level=1)


def depth_of(document: Document) -> tuple[NDArray[np.float32], bool]:
    """A recorded depth image in m, and whether it is exact. Raises RecordingError where it is damaged."""
    try:
        data = base64.b64decode(document["data"], validate=True)
        if document["format"] != EXACT_DEPTH:
            millimetres = _decoded_as_is(data)
            if millimetres is None:
                raise ValueError("its PNG cannot be decoded")
            return (np.asarray(millimetres, np.float32) / np.float32(1000.0)), False
        height, width = int(document["height"]), int(document["width"])
        if not 0 < height * width <= MAX_PIXELS or zstandard.frame_content_size(data) != height * width * 4:
            raise ValueError(f"it claims {width} x {height} pixels")
        planes = np.frombuffer(zstandard.decompress(data), np.uint8).reshape(4, height * width)
    except (KeyError, TypeError, ValueError, zstandard.ZstdError) as error:
        raise RecordingError(f"a recorded depth image cannot be read ({error})") from error
    return np.ascontiguousarray(planes.T).view(np.float32).reshape(height, width), True


def _decoded_as_is(png: bytes) -> NDArray[Any] | None:
    import cv2

    try:
        return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise ValueError(str(error)) from error


def image_of(document: Document, depth: Document | None) -> tuple[Image, bool]:
    """The image as nodes saw it, and whether its depth is exact (True where it had none). Raises RecordingError."""
    depth_m, is_exact = depth_of(depth) if depth is not None else (None, not document.get("has_depth", False))
    try:
        image = Image(
            camera=str(document["frame_id"]),
            captured_ns=int(document["captured_ns"]),
            rgb=pixels(document),
            depth_m=depth_m,
            focal_px=float(document["focal_px"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"a recorded image lacks a field ({error})") from error
    return image, is_exact


def as_stored(document: Document) -> NDArray[Any]:
    """The numbers of a recorded picture, colours or depth, as its file has them. Raises RecordingError."""
    try:
        found = _decoded_as_is(base64.b64decode(document["data"], validate=True))
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"a recorded image has no readable data ({error})") from error
    if found is None:
        raise RecordingError("a recorded image cannot be decoded")
    return found


def pixels(document: Document) -> NDArray[np.uint8]:
    """The colour pixels of a recorded image, (height, width, 3) RGB. Raises RecordingError where it is damaged."""
    try:
        data = base64.b64decode(document["data"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"a recorded image has no readable data ({error})") from error
    if not data:
        raise RecordingError("a recorded image is empty")
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        if width * height > MAX_PIXELS:
            raise RecordingError(f"a recorded image claims {width} x {height} pixels; refused")
    import cv2

    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if decoded is None:
        raise RecordingError("a recorded image cannot be decoded")
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), np.uint8)


def _encode(extension: str, array: NDArray[Any], options: list[int]) -> bytes:
    import cv2

    is_encoded, data = cv2.imencode(extension, array, options)
    if not is_encoded:
        raise RecordingError(f"an image of shape {array.shape} cannot be encoded as {extension}")
    return bytes(data)


def _document(image: Image, envelope: Envelope, form: str, data: bytes, wall_offset_ns: int) -> Document:
    sec, nsec = divmod(max(0, image.captured_ns + wall_offset_ns), NS_PER_S)
    return {
        "timestamp": {"sec": sec, "nsec": nsec},
        "frame_id": image.camera,
        "format": form,
        "data": data,  # base64 once it is written as JSON
        "captured_ns": image.captured_ns,
        "focal_px": image.focal_px,
        "has_depth": image.depth_m is not None,
        ENVELOPE_KEY: envelope_document(envelope),
    }
