"""`polyrhythm run`: a launch file in real time as processes, or in virtual time in this one."""

from __future__ import annotations

import argparse
import asyncio
import copy
import gc
import importlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.abilities import ClaimsNames, devices_of
from runtime.clock import wall_time_text
from runtime.command_line.arguments import add_launch_options, check_new, seconds, unique_path
from runtime.commands.broken_promises import PROMISES, lines, not_kept
from runtime.commands.companions import check_companions, make_view, reported
from runtime.commands.message_counts import MessageCounts
from runtime.errors import PolyrhythmError, UserError, choices
from runtime.execution.log_filter import log_to
from runtime.hosts.joining import joining
from runtime.launch.checks.class_check import place_of_problem
from runtime.launch.file import Launch, as_recorded, check, find, load, resolve
from runtime.launch.process_plan import plan
from runtime.launch.provenance import git_asked, machine, versions
from runtime.launch.tables.more_tables import HasPrograms
from runtime.launch.tables.nodes_table import load_name
from runtime.launch.tables.seats_table import as_data
from runtime.operating_system import telling
from runtime.operating_system.processes import open_more_files
from runtime.operating_system.terminal import Terminal
from runtime.supervision.view import SilentView, View, ViewLog

RECORDING = "run.mcap"
RECORDER = "nodes.recording.recorder:Recorder"
RECORDED_ANSWERS = "nodes.recording.replay.recorded_launch:recorded_answers"
"""What --record adds to a launch file that records nothing."""
LOOKS_ON = "view"
"""The subcommand that --open starts."""
LARGE_MB = 20.0
"""A report of so much takes some ten seconds on two cores."""

if TYPE_CHECKING:
    from runtime.supervision.fork_server import ForkServer


def main(argv: list[str]) -> int:
    """Run a launch file to its end; 0 where it succeeded, 1 where it did not."""
    arguments = _parser().parse_args(argv)
    if not arguments.json:  # else what goes there is what is asked for
        telling.use("stdout")
    with ExitStack() as ends:
        code = _run(arguments, ends)
        telling.finish()
        lost = telling.untold()
        if words := telling.untold_in_words(lost):
            print(words, file=sys.stderr)
        return code or int(telling.is_lost_to_somebody(lost))


def _run(arguments: argparse.Namespace, ends: ExitStack) -> int:
    gc.disable()  # until the run begins: what is loaded and checked stays, and looking through it takes time
    ends.callback(gc.enable)
    use_one_thread(is_virtual=arguments.virtual)
    open_more_files()
    file = find(arguments.file)
    git = git_asked(file.parent)  # it looks through all files meanwhile
    ends.callback(git)  # where a check fails
    launch = load(file, arguments.set, added=arguments.add, without=arguments.without, host=arguments.host)
    if arguments.lan:
        opened = [*arguments.set, *_on_network(launch)]
        launch = load(file, opened, added=arguments.add, without=arguments.without, host=arguments.host)
    if arguments.record is not None:
        launch = _recorded(launch, arguments.record)
    server = None if arguments.virtual else _server_of(launch)  # it loads what the nodes share meanwhile
    if server is not None:
        ends.callback(server.close)
    check(launch)
    check_companions(launch)
    seed = launch.seed if arguments.seed is None else arguments.seed
    _check_time(arguments)
    for_s = arguments.for_s if arguments.for_s is not None else launch.for_s
    if arguments.until is not None:  # a run starts at 0
        for_s = arguments.until if arguments.for_s is None else min(arguments.until, arguments.for_s)
    folder = _run_folder(arguments.out, launch, needed=bool(launch.report) or _records(launch))
    nodes = [spec.build() for spec in launch.here]
    run_info: dict[str, Any] = {
        "launch_text": launch.text,
        "launch_file": str(launch.path),
        "seed": seed,
        "folder": str(folder),
        "overrides": as_recorded(arguments.set),
        "added": list(arguments.add),
        "without": list(arguments.without),
        "seats": as_data(launch.seats),
        **launch.graph.facts,
        "budgets": launch.budgets.as_data(),
        "claims": sorted({one for node in nodes if isinstance(node, ClaimsNames) for one in node.claims()}),
        "devices": sorted({one for node in nodes for one in devices_of(node)}),
        "programs": []
        if arguments.virtual
        else [name for name, one in launch.more.items() if isinstance(one, HasPrograms)],
        **launch.shared_facts,
        "shared": launch.shared_facts,
        "versions": versions(),
        "machine": machine(),
        "git": git(),
    }
    recording: Path = arguments.record or folder / RECORDING
    _check_new_recordings(launch, recording, arguments)
    if not arguments.virtual:  # from here on there may be threads
        ends.enter_context(telling.apart("stderr") if arguments.json else telling.apart("stdout", "stderr"))
    terminal = None if arguments.virtual else Terminal.own()
    if terminal is not None:
        ends.callback(terminal.close)
    view = MessageCounts(_view(launch, arguments))
    restarted: dict[str, list[str]] = {}
    unclean: dict[str, str] = {}
    try:
        gc.enable()
        if arguments.virtual:
            outcome = run_virtual(
                launch, recording,
                seed=seed, for_s=for_s, run_info=run_info, view=view, pause_on=arguments.pause_on,
                answers=arguments.answers,
            )  # fmt: skip
        else:
            server = _ready(server, launch)
            outcome, restarted, unclean = _run_real(
                launch, folder, seed=seed, for_s=for_s, run_info=run_info, view=view,
                beside=_beside(launch, arguments), server=server,
            )  # fmt: skip
    except KeyboardInterrupt:  # in virtual time: in real time it ends the run as its time does
        if recording.is_file():
            print(f"\nstopped; recorded until then, to be summed up: polyrhythm report {recording}", file=sys.stderr)
        raise
    finally:
        view.close()
    broken = not_kept(view, restarted, unclean)
    allowed = {one.option for one in PROMISES if one.option and getattr(arguments, _attribute(one.option))}
    counted = [one.text for one in broken if one.promise.option not in allowed]
    told = lines(broken, allowed)
    is_failed = outcome is not None and not outcome[0]
    if is_failed:
        _tell_not_kept(told)  # the reason why it failed stands last
    is_seen = terminal is None or not terminal.is_lost  # a report takes a while, and can be made later
    if launch.report and recording.is_file() and is_seen:
        if patience := what_takes_time(recording):
            print(patience, file=sys.stderr, flush=True)
        more = {"film": True} if arguments.film else {}
        # Nobody judges a run that ends by its time or by Ctrl-C: no failure, as where there is no report.
        told_of = {"outcome": outcome, "as_json": arguments.json, "not_kept": counted, **more}
        try:
            is_good = reported(launch.report, recording, folder, **told_of) is not False
        except PolyrhythmError as problem:  # such as a recording without a message: how the run ended is told, too
            print(f"polyrhythm: {problem}", file=sys.stderr)
            _tell(outcome, run_info.get("trace"), recording, view, counted, as_json=arguments.json)
            is_good = False
    else:
        kept = recording if recording.is_file() else None
        _tell(outcome, run_info.get("trace"), kept, view, counted, as_json=arguments.json)
        is_good = outcome is None or outcome[0]
    if not is_failed:
        _tell_not_kept(told)
    return 0 if is_good and not counted else 1


def _check_time(arguments: argparse.Namespace) -> None:
    """Raise UserError for an option of the other kind of time."""
    if arguments.host and arguments.virtual:
        raise UserError("--host names one of several machines, and virtual time has one; leave out --host")
    if arguments.pause_on and not arguments.virtual:
        raise UserError("--pause-on works in virtual time only, where the world can wait; add --virtual")
    if arguments.answers and not arguments.virtual:
        raise UserError("--answers gives recorded answers in virtual time only; add --virtual")


def _tell_not_kept(told: Sequence[str]) -> None:
    for line in told:
        print(line, file=sys.stderr)


def _attribute(option: str) -> str:
    """Where the parser keeps an option."""
    return option.removeprefix("--").replace("-", "_")


def _beside(launch: Launch, asked: argparse.Namespace) -> list[str]:
    """The subcommand that looks on, with its options; [] where nobody is in front to be told where."""
    if asked.open:
        return [launch.beside or LOOKS_ON, "--open"]
    return [launch.beside] if launch.beside and not asked.json else []


def _on_network(launch: Launch) -> list[str]:
    """Settings that open the pages of these nodes to the machines of the network. Raises UserError without a page."""
    pages = [(name, getattr(spec.cls, "lan_parameter", "")) for name, spec in launch.graph.nodes.items()]
    found = [f"{name}.{parameter}=lan" for name, parameter in pages if parameter]
    if not found:
        raise UserError(f"--lan: no node of {launch.path.name} has a page; leave out --lan")
    return found


def what_takes_time(recording: Path) -> str:
    """What to say before a report of a recording that takes a while to read; "" of a small one."""
    size_mb = recording.stat().st_size / 1e6
    if size_mb < LARGE_MB:
        return ""
    return (
        f"the run is over and recorded; summary and pictures of {size_mb:.0f} MB take a while. Ctrl-C leaves them out; "
        f"later: polyrhythm report {recording}"
    )


def _tell(
    outcome: tuple[bool, str] | None,
    trace: str | None,
    recording: Path | None,
    tally: MessageCounts,
    counted: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """What is to be said at the end of a run whose launch file names no report."""
    if as_json:
        ended = {"ok": outcome[0], "reason": outcome[1]} if outcome is not None else None
        told = {"outcome": ended, "trace": trace, "recording": str(recording) if recording else None}
        print(json.dumps({**told, "not_kept": list(counted), "messages": tally.as_data()}))
        return
    for line in tally.lines():
        print(line, file=sys.stderr)
    if outcome is not None:
        print(("done: " if outcome[0] else "failed: ") + outcome[1], file=sys.stderr)
    if recording is not None:
        print(f"recording: {recording}", file=sys.stderr)
    if trace is not None:
        print(f"trace: {trace}", file=sys.stderr)


def use_one_thread(*, is_virtual: bool) -> None:
    """Read when numpy and OpenCV are loaded, so before the nodes are.

    In virtual time, because sums of many threads differ from run to run. In real time, because many processes share
    the cores, and this one can be forked only while it has one thread.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
        os.environ[name] = "1" if is_virtual else os.environ.get(name, "1")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm run",
        description="Run a launch file: in real time as processes, or with --virtual in virtual time.",
        epilog="example: polyrhythm run laptop --virtual --seed 7 --json",
    )
    parser.add_argument(
        "file", help="a launch file, or the name of a shipped one: laptop, say (any other word lists them)"
    )
    parser.add_argument("--virtual", action="store_true", help="in one process, in deterministic virtual time")
    parser.add_argument(
        "--answers", type=Path, metavar="RUN.mcap",
        help="with --virtual: models and servers are not asked; their answers come from this recording, in order",
    )  # fmt: skip
    parser.add_argument("--host", default="", metavar="NAME", help="run this host's part; default: all of the file")
    parser.add_argument("--seed", type=int, help="of all randomness; default: the launch file's, or 0")
    parser.add_argument("--until", type=seconds, metavar="S", help="end at that time of the run's clock")
    parser.add_argument(
        "--pause-on", action="append", default=[], metavar="TOPIC", help="with --virtual: stop at each message on it"
    )
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for recording and pictures; default: runs/...")
    add_launch_options(parser)
    parser.add_argument("--lan", action="store_true", help="open its pages to the machines of this network, with TLS")
    parser.add_argument("--open", action="store_true", help="open a page in the browser that looks on")
    parser.add_argument("--film", action="store_true", help="at the end of a simulated run, draw a film of it, too")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record into this file; adds a recorder if needed")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON and nothing else")
    for promise in PROMISES:
        if promise.help:
            parser.add_argument(promise.option, action="store_true", help=promise.help)
    return parser


def _recorded(launch: Launch, path: Path) -> Launch:
    """The same launch with a recorder that writes this file: its own, or one that is added."""
    tables = copy.deepcopy(dict(launch.tables))
    own = [spec.name for spec in launch.here if spec.cls.subscribes_all and "path" in signature(spec.cls).parameters]
    if launch.host:
        added, table = f"recorder_{launch.host}", {"use": RECORDER, "host": launch.host}
    else:
        added, table = "recorder", {"use": RECORDER}
    table = tables["nodes"].setdefault(own[0] if own else added, table)
    if path.is_dir():
        raise UserError(f"--record {path}: is a folder; expected the name of a file")
    if launch.host and not own:  # the other ends do not know of this recorder
        others = choices(name for name in launch.hosts if name != launch.host)
        told = f"{launch.host} records what its own nodes say and hear; what stays on {others} is recorded there"
        print(f"--record {path}: {told}, with --record as well", file=sys.stderr)
    table.setdefault("params", {})["path"] = str(path.resolve())
    return resolve(tables, path=launch.path, text=launch.text, host=launch.host)


def _check_new_recordings(launch: Launch, recording: Path, asked: argparse.Namespace) -> None:
    """Raise UserError where an earlier run recorded there: it is not written over."""
    if not _records(launch):
        return
    check_new(recording, "--record" if asked.record is not None else "--out")
    for spec in launch.here:
        path = spec.params.get("path")
        if spec.cls.subscribes_all and isinstance(path, str) and path and Path(path) != recording.resolve():
            check_new(Path(path), f"[nodes.{spec.name}] path")


def _records(launch: Launch) -> bool:
    return any(spec.cls.subscribes_all for spec in launch.here)


def _run_folder(out: Path | None, launch: Launch, *, needed: bool) -> Path:
    """The folder for what the run leaves behind; made only where something will be left.

    Where nobody named one and it cannot be made here, another is made where temporary files go. Raises UserError.
    """
    folder = out or unique_path(Path("runs") / f"{wall_time_text()}-{re.sub(r'[^a-z0-9_-]', '_', launch.path.stem)}")
    if needed or out is not None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # cameras and words of people are in it
        except OSError as problem:
            why = f"{folder}: cannot be made: {problem.strerror}"
            if out is not None:
                raise UserError(f"--out {why}; name another") from problem
            try:
                folder = Path(tempfile.mkdtemp(prefix=f"polyrhythm-{launch.path.stem}-"))
            except OSError:
                raise UserError(f"{why}; name another with --out") from problem
            print(f"{why}; what the run leaves is in {folder}", file=sys.stderr)
    return folder.resolve()


def _view(launch: Launch, arguments: argparse.Namespace) -> View:
    if arguments.json:
        return SilentView()
    clock = "virtual time" if arguments.virtual else "real time"
    live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not arguments.virtual
    return make_view(launch.view, f"{launch.path.stem} in {clock}", live=live)


def _server_of(launch: Launch) -> ForkServer | None:
    """What forks the processes of the run; made of this one before it has a thread."""
    from runtime.supervision.fork_server import fork_server  # virtual time needs none

    server = fork_server(launch)
    importlib.import_module("runtime.supervision.supervisor")  # while the server loads what is its own
    return server


def _ready(server: ForkServer | None, launch: Launch) -> ForkServer | None:
    from runtime.supervision.fork_server import ready

    return ready(server, launch)


def _run_real(
    launch: Launch,
    folder: Path,
    *,
    seed: int,
    for_s: float | None,
    run_info: dict[str, Any],
    view: View,
    beside: Sequence[str],
    server: ForkServer | None,
) -> tuple[tuple[bool, str] | None, dict[str, list[str]], dict[str, str]]:
    from runtime.supervision.supervisor import Supervisor

    if launch.host:
        _check_keys(launch)

    async def run() -> tuple[tuple[bool, str] | None, dict[str, list[str]], dict[str, str]]:
        supervisor = Supervisor(
            launch, folder=folder, seed=seed, run_info=run_info, view=view, beside=beside, server=server
        )
        return await supervisor.run(for_s), supervisor.restarted, supervisor.unclean

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return asyncio.run(run())
    finally:  # asyncio leaves its own
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_keys(launch: Launch) -> None:
    """Raise UserError where this host's secret key is missing or is not the one of the launch file."""
    for part in plan(launch).values():
        if part.gateway is not None:
            joining("keys")(part.gateway)


def run_virtual(
    launch: Launch,
    recording: Path,
    *,
    seed: int,
    for_s: float | None,
    run_info: dict[str, Any],
    view: View,
    pause_on: list[str],
    answers: Path | None = None,
) -> tuple[bool, str] | None:
    """Run a launch in virtual time, in this process; returns the outcome that a node gave, or None."""
    from runtime.virtual.debugger import Stepper
    from runtime.virtual.simulation import Simulation, few_collections  # a run in real time starts sooner without these
    from runtime.virtual.trace import MessageTrace

    simulation = Simulation(
        *launch.graph.nodes.values(),
        seed=seed,
        health_hz=1.0,
        links=launch.links,
        seats=launch.seats,
        budgets=launch.budgets,
        trace=MessageTrace(),
        goes_on=True,
    )
    simulation.run_info.update(run_info)
    simulation.observe(view.message)
    view.process("simulation", os.getpid(), "running")
    log_to(ViewLog(view, simulation.clock))
    try:
        if answers is not None:
            known = load_name(RECORDED_ANSWERS)(answers)
            for name, bound in simulation.bound_nodes.items():
                bound.answer_from(known.get(name, ()))
        stepper = None
        if pause_on:
            stepper = Stepper(simulation, pause_on, ask=_ask, tell=lambda text: print(text, file=sys.stderr))
        with few_collections():
            (stepper or simulation).run(for_s)
    except SystemExit as wish:
        raise PolyrhythmError(f"a handler ended itself at {place_of_problem(wish)}: sys.exit({wish.code!r})") from wish
    finally:
        simulation.close()
    run_info["trace"] = simulation.run_info["trace"]
    return simulation.outcome


def _ask(prompt: str) -> str | None:
    if not sys.stdin.isatty():
        return None
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline() or None
