"""`polyrhythm serve`: one machine runs policies' models for several robots."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nodes.hosts import keys
from nodes.models.onnx_file import read_model
from runtime.errors import PolyrhythmError, UserError, choices, naming
from runtime.hosts.address import find, split, written
from runtime.hosts.hosts_table import is_public_key
from runtime.operating_system.terminal import signals_of_end
from runtime.serialization.toml_errors import read_toml

if TYPE_CHECKING:
    from nodes.policy.remote.served import ServedModels

MOST_PX = 8192


def main(argv: list[str]) -> int:
    """Serve until interrupted; 0 then, 2 for what cannot be served."""
    arguments = _parser().parse_args(argv)
    for model in arguments.models:
        if problems := read_model(str(model))[1]:
            raise UserError("; ".join(problems))
    names = [model.stem for model in arguments.models]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(f"two models are called {choices(sorted(twice))}; robots ask for a model by its file's name")
    clients = _clients(arguments.clients)
    with naming(f"--bind {written(*arguments.bind)}:"):
        place = find(*arguments.bind)
    if not clients and not place.is_loopback:
        raise UserError(
            f"--bind {written(*arguments.bind)} can be reached by anyone; "
            "name the robots that may ask with --clients FILE"
        )
    from runtime.hosts.service import QuestionServer

    try:
        workers = _load(arguments)
    except PolyrhythmError as problem:  # nothing runs yet: it was asked for what this model or machine has not
        width_px, height_px = arguments.size
        asked = f"--size {width_px}x{height_px} --provider {' --provider '.join(_providers(arguments))}"
        raise UserError(f"{problem}; this was asked with {asked}") from problem
    secret = keys.secret_of(arguments.host) if clients else ""
    server = QuestionServer(
        place.endpoint,
        workers,
        secret=secret,
        public=keys.public_of(arguments.host) if clients else "",
        clients=clients,
    )
    who = choices(clients.values()) if clients else "anyone on this machine"
    what = ", ".join(map(str, arguments.models))
    print(f"serving {what} at {server.address} for {who}; Ctrl-C ends it", flush=True)
    stop, wake = threading.Event(), threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: wake.set())

    def end(*_: object) -> None:
        stop.set()
        wake.set()

    for number in signals_of_end():
        signal.signal(number, end)
    while not stop.is_set():
        wake.wait()
        wake.clear()
        if not stop.is_set():
            _swap(workers, arguments)
    server.close()
    counts = server.questions.counts
    told = ", ".join(f"{name} {counts[name]}" for name in ("taken", "replaced", "late"))
    print(f"questions: {told}", file=sys.stderr)
    return 0


def _providers(arguments: argparse.Namespace) -> tuple[str, ...]:
    return tuple(arguments.provider or ["CPUExecutionProvider"])


def _load(arguments: argparse.Namespace) -> list[ServedModels]:
    """The models once for each worker, warm and measured; told on standard error. Raises PolyrhythmError."""
    from nodes.policy.onnx.session import PolicySession
    from nodes.policy.remote.served import ServedModels

    width_px, height_px = arguments.size
    workers, notes = [], []
    for _ in range(arguments.workers):
        models: dict[str, PolicySession] = {}
        for file in arguments.models:
            data, problems = read_model(str(file))
            if problems:
                raise PolyrhythmError("; ".join(problems))
            models[file.stem] = one = PolicySession(
                data,
                name=f"model {str(file)!r}",
                width_px=width_px,
                height_px=height_px,
                providers=_providers(arguments),
                threads=arguments.threads,
            )
            notes += [one.fallback] if one.fallback else []
        workers.append(ServedModels(models, arguments.batch))
    for line in dict.fromkeys([*notes, *workers[0].told]):
        print(line, file=sys.stderr, flush=True)
    return workers


def _swap(workers: list[ServedModels], arguments: argparse.Namespace) -> None:
    """Load the files again beside what answers, which goes on; then take their place, or say why not."""
    try:
        loaded = _load(arguments)
    except PolyrhythmError as problem:
        print(f"the models stay as they were: {problem}", file=sys.stderr, flush=True)
        return
    for worker, other in zip(workers, loaded, strict=True):
        worker.swap(other)
    print("the models were loaded again", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm serve",
        description="Run policies' ONNX models for several robots: nodes.policy.remote.policy:RemotePolicy. "
        "Of each robot the newest question waits; the one that is due first goes first, and with it as many others as "
        "leave every one in time; late ones are not answered. SIGUSR1 loads the files again while the old ones answer.",
        epilog="example: polyrhythm serve policy.onnx --bind 192.168.1.30:7500 --host desktop --clients robots.toml",
    )
    parser.add_argument(
        "models", type=Path, nargs="+", metavar="model", help="ONNX files; robots ask by the file's name, or the first"
    )
    parser.add_argument(
        "--bind", type=_place, default="127.0.0.1:7500", metavar="ADDRESS:PORT", help="default: %(default)s"
    )
    parser.add_argument(
        "--host", default="desktop", help="whose key this is: polyrhythm keys new NAME; default: %(default)s"
    )
    parser.add_argument("--clients", type=Path, metavar="FILE", help='TOML, a line for each robot: name = "public key"')
    parser.add_argument(
        "--size", type=_size, default=(160, 120), metavar="WxH", help="of the model's image; default: 160x120"
    )
    parser.add_argument(
        "--workers", type=int, default=1, choices=range(1, 17), metavar="N", help="answers at the same time"
    )
    parser.add_argument(
        "--batch", type=int, default=8, choices=range(1, 65), metavar="N", help="answers in one run; default: 8"
    )
    parser.add_argument(
        "--threads", type=int, default=1, choices=range(1, 65), metavar="N", help="of one run on the CPU; default: 1"
    )
    parser.add_argument("--provider", action="append", help="of ONNX Runtime; default: CPUExecutionProvider")
    return parser


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and 0 < int(width) <= MOST_PX and 0 < int(height) <= MOST_PX):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size; expected width and height in pixels, at most {MOST_PX} each, like 160x120"
        )
    return int(width), int(height)


def _place(text: str) -> tuple[str, int]:
    expected = "expected an address and a port, like 192.168.1.30:7500 or [::1]:7500"
    try:
        address, port = split(text)
    except UserError as problem:
        raise argparse.ArgumentTypeError(f"{problem}; {expected}") from problem
    if port is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no place; {expected}")
    return address, port


def _clients(path: Path | None) -> dict[str, str]:
    """Name by public key. Raises UserError."""
    if path is None:
        return {}
    try:
        table = msgspec.convert(read_toml(path), dict[str, str])
    except msgspec.MsgspecError as problem:
        raise UserError(f'{path}: {problem}; expected a line for each robot: name = "public key"') from problem
    wrong = [name for name, key in table.items() if not is_public_key(key)]
    if wrong or not table:
        who = choices(wrong) if wrong else "no robot"
        raise UserError(f"{path}: {who} has no key of 40 characters; polyrhythm keys show NAME prints it")
    clients: dict[str, str] = {}
    for name, key in table.items():
        if key in clients:
            raise UserError(
                f"{path}: {name} has the key of {clients[key]}; each robot has its own, or they share a turn"
            )
        clients[key] = name
    return clients
