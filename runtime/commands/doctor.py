"""`polyrhythm doctor`: what this machine, and a launch file on it, lack."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from runtime.abilities import HasModels, LoadsLater
from runtime.command_line.arguments import add_launch_options
from runtime.commands.companions import check_companions
from runtime.errors import LaunchFileError, PolyrhythmError, UserError
from runtime.execution.process_priorities import refusals
from runtime.extras import missing, or_absent
from runtime.hosts.joining import joining
from runtime.launch.file import Launch, check, find, load
from runtime.launch.graph import NodeSpec, convert_params, unset_variables
from runtime.launch.tables.nodes_table import load_name, node_spec
from runtime.node import Node
from runtime.serialization.toml_errors import guess, read_toml
from runtime.supervision.diagnostics import Finding, Level, as_lines, examine

DEVICES = "polyrhythm.doctor"
"""Entry points of functions that examine a device and return findings."""


def doctor_main(argv: list[str]) -> int:
    """`polyrhythm doctor`; 1 where something will not work."""
    asked = _parser().parse_args(argv)
    path = find(asked.file) if asked.file else None
    findings = examine()
    if path is not None:
        findings += examine_launch(
            path, asked.set, asked.host, added=asked.add, without=asked.without, is_timed=asked.models
        )
    elif asked.host:
        raise UserError(f"doctor --host {asked.host}: of which launch file? polyrhythm doctor FILE --host {asked.host}")
    elif asked.models:
        raise UserError("doctor --models: of which launch file? polyrhythm doctor FILE --models")
    if asked.device:
        findings += examine_device(asked.device)
    problems = sum(finding.level == "problem" for finding in findings)
    if asked.json:
        print(msgspec.json.encode({"ok": not problems, "findings": findings}).decode())
    else:
        print(as_lines(findings))
        print(f"{problems} problem{'s' if problems != 1 else ''}" if problems else "nothing stands in the way")
    return 1 if problems else 0


def examine_launch(
    path: Path,
    overrides: Sequence[str] = (),
    host: str = "",
    *,
    added: Sequence[str] = (),
    without: Sequence[str] = (),
    is_timed: bool = False,
) -> list[Finding]:
    """What the nodes of a launch file miss here: packages, variables, model files and whatever else they check.

    With `host` of the nodes that run there, and what that host lacks to meet the others. `is_timed`: their models are
    loaded and run.
    """
    try:
        launch = load(path, overrides, added=added, without=without, host=host)
    except LaunchFileError as problem:
        return [Finding("launch file", "problem", text) for text in _each_node(path, without) or [str(problem)]]
    findings = [
        Finding(node, "problem", problem)
        for node, problem in launch.graph.problems(host) + launch.graph.process_problems()
    ]
    notes = [Finding(name, "note", refusal) for name, asked in launch.realtime.items() for refusal in refusals(asked)]
    if not findings:
        try:
            check(launch)
        except LaunchFileError as problem:
            findings.append(Finding("launch file", "problem", str(problem)))
    try:
        check_companions(launch)
    except LaunchFileError as problem:
        findings.append(Finding("launch file", "problem", str(problem)))
    findings += [finding for spec in launch.here for finding in _libraries(spec)]
    if not findings:
        findings.append(Finding("launch file", "ok", f"{path}: {len(launch.graph.nodes)} nodes, none lacks anything"))
    elsewhere = [finding for spec in launch.here for finding in _elsewhere(spec)]
    models = [finding for spec in launch.here for finding in _models(spec, is_timed=is_timed)]
    return findings + notes + models + elsewhere + _hosts(launch, host)


def _hosts(launch: Launch, here: str) -> list[Finding]:
    """What this machine lacks to meet the other hosts."""
    try:
        found: list[Finding] = joining("doctor")(launch.hosts, here, moves=launch.moves) if launch.hosts else []
    except UserError as problem:
        return [Finding("hosts", "problem", str(problem))]
    return found


def _libraries(spec: NodeSpec) -> list[Finding]:
    """What it would import only once it runs, and would not find."""
    try:
        lacks = missing(_loads(spec.build()))
    except UserError:
        return []  # what is wrong with its parameters has been told
    return [Finding(spec.name, "problem", lacks)] if lacks else []


def _loads(node: Node) -> tuple[str, ...]:
    return node.libraries() if isinstance(node, LoadsLater) else ()


def _models(spec: NodeSpec, *, is_timed: bool) -> list[Finding]:
    """What is to be told of its models, and where asked for how long they take here."""
    try:
        node = spec.build()
        if not isinstance(node, HasModels) or missing(_loads(node)) or node.problems():
            return []  # the rest was told
        return [Finding(spec.name, level, text) for level, text in node.model_findings(is_timed=is_timed)]
    except ModuleNotFoundError:
        return []
    except PolyrhythmError as problem:
        return [Finding(spec.name, "problem", str(problem))] if is_timed else []


def _elsewhere(spec: NodeSpec) -> list[Finding]:
    """What a node's class finds out about others that it needs, such as a server: `examine(**params)`, where it can."""
    if not isinstance(inspect.getattr_static(spec.cls, "examine", None), classmethod):
        return []
    examine_it: Callable[..., list[tuple[Level, str]]] = getattr(spec.cls, "examine")  # noqa: B009  # of some nodes
    try:
        spec.build()  # what is wrong with its parameters has been told
    except UserError:
        return []
    try:
        found = examine_it(**convert_params(spec.cls, spec.params))
    except UserError as problem:
        found = [("problem", str(problem))]
    return [Finding(spec.name, level, text) for level, text in found]


def examine_device(name: str) -> list[Finding]:
    """What the device of that name lacks, as its entry point says, or the "module:function" named."""
    known = {entry.name: entry for entry in entry_points(group=DEVICES)}
    if ":" not in name and name not in known:
        raise UserError(or_absent(f"--device {name}: {guess(name, known)}; or a function of yours, as module:function"))
    examine_it: Callable[[], object] = load_name(name) if ":" in name else known[name].load()
    try:
        findings = msgspec.convert(msgspec.to_builtins(examine_it()), list[Finding])  # a Finding does not check itself
    except (TypeError, msgspec.ValidationError) as problem:
        raise UserError(
            f"--device {name}: examines no device; expected a function that returns findings ({problem})"
        ) from problem
    return findings


def _each_node(path: Path, without: Sequence[str]) -> list[str]:
    """The problem of every node by itself, where `load` ends at the first."""
    try:
        nodes = read_toml(path)["nodes"].items()
    except (UserError, KeyError, AttributeError):
        return []
    problems = []
    for name, table in nodes:
        if name in without:
            continue
        try:
            spec = node_spec(path, name, table)
            problems += [f"{path}: [nodes.{name}] {problem}" for problem in unset_variables(spec)]
        except LaunchFileError as problem:
            problems.append(str(problem))
    return problems


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm doctor",
        description="Say what this machine lacks, and what the nodes of a launch file miss on it. "
        "Exit code 1 where something will not work.",
        epilog="example: polyrhythm doctor laptop --set planner.use=nodes.planner.openai_api:OpenAIPlanner",
    )
    parser.add_argument("file", nargs="?", help="a launch file, or the name of a shipped one")
    add_launch_options(parser)
    parser.add_argument("--host", default="", metavar="NAME", help="this machine's part of several ([hosts.NAME])")
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="also take hold of this device for a moment, without moving it, such as a robot: "
        + ", ".join(sorted(entry.name for entry in entry_points(group=DEVICES))),
    )
    parser.add_argument("--robot", dest="device", help=argparse.SUPPRESS)  # its name before version 0.2
    parser.add_argument(
        "--models", action="store_true", help="load the nodes' models or ask their servers, and tell how long it takes"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
