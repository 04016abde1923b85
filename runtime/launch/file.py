"""Launch files: TOML that names nodes, their parameters and processes. Errors name file, table and key."""

from __future__ import annotations

import difflib
import importlib.util
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runtime.control_messages.health import GatewayHealth, gateway_topic
from runtime.errors import LaunchFileError, UserError, choices
from runtime.hosts.hosts_table import Host, parse_hosts
from runtime.launch.budgets_table import Budgets, parse_budgets
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.links_table import LinkModel
from runtime.launch.nodes_table import NODE_KEYS, node_spec, told_of_robot
from runtime.launch.path_check import PathAccount, accounts
from runtime.launch.processes_table import RealTime, parse_processes
from runtime.launch.seats_table import SeatTable, holders_of, parse_seats

TABLES = ("nodes", "instead", "processes", "seats", "links", "budgets", "hosts", "run")
RUN_KEYS = ("view", "report", "seed", "for_s", "robot")


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch file, read and resolved."""

    path: Path
    text: str
    tables: Mapping[str, Any]  # as parsed, with overrides applied
    graph: Graph
    view: str = ""  # "module:Class" that draws a run live
    report: str = ""  # "module:function" called with a run's recording
    seed: int = 0
    for_s: float | None = None
    robot: str = ""  # "module:NAME" of its limits; "": a Stretch 3
    links: tuple[LinkModel, ...] = ()  # in virtual time only
    seats: Mapping[str, SeatTable] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    host: str = ""  # the one that is meant; "": all of them
    budgets: Budgets = field(default_factory=Budgets)
    realtime: Mapping[str, RealTime] = field(default_factory=dict)  # by process

    @property
    def processes(self) -> dict[str, list[NodeSpec]]:
        """The nodes of each process of the host that is meant; a node without one has a process of its own."""
        groups: dict[str, list[NodeSpec]] = {}
        for spec in self.here:
            groups.setdefault(spec.process or spec.name, []).append(spec)
        return groups

    @property
    def robot_facts(self) -> dict[str, object]:
        """What its nodes make of the robot that `[run]` names, for those who read a recording; {} without one."""
        classes = [spec.cls for spec in self.graph.nodes.values()] if self.robot else []
        return {key: fact for cls in classes for key, fact in cls.robot_facts(self.robot).items()}

    @property
    def here(self) -> list[NodeSpec]:
        """The nodes of the host that is meant."""
        return self.on(self.host) if self.host else list(self.graph.nodes.values())

    def on(self, host: str) -> list[NodeSpec]:
        """The nodes of a host."""
        return [spec for spec in self.graph.nodes.values() if spec.host == host]


def find(name: str) -> Path:
    """The file of that path, or the shipped one of that name. Raises LaunchFileError where there is neither."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = {file.stem: file for folder in _shipped_folders() for file in sorted(folder.glob("*.toml"))}
    if name in shipped:
        return shipped[name]
    raise LaunchFileError(f"{name}: no such launch file; shipped ones, by name: {choices(shipped)}")


def _shipped_folders() -> list[Path]:
    package = Path(__file__).resolve().parents[1]
    return [folder for folder in (package.parent / "launch", package / "launch_files") if folder.is_dir()]


def load(path: Path, overrides: Sequence[str] = (), *, added: Sequence[str] = (), host: str = "") -> Launch:
    """Read a launch file, to run that host's part of it. Raises LaunchFileError at what is not understood.

    `added`: nodes that the file does not have, as NAME=MODULE:CLASS; `overrides`: NODE.PARAM=VALUE, of those too.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise LaunchFileError(f"{path}: cannot be read as TOML: {problem}") from problem
    for text_of_node in added:
        add_node(tables, text_of_node)
    for change in in_order(overrides):
        override(tables, change)
    return resolve(tables, path=path, text=text, host=host)


def resolve(tables: Mapping[str, Any], *, path: Path, text: str = "", host: str = "") -> Launch:
    """The launch that these tables describe."""
    if tables and not any(difflib.get_close_matches(table, TABLES, cutoff=0.8) for table in tables):
        raise LaunchFileError(
            f"{path}: is no launch file: it has none of the tables {', '.join(f'[{name}]' for name in TABLES)}; "
            f"a file that a node reads is checked with its node: check FILE --set NODE.PARAM={path}"
        )
    for table in tables:
        if table not in TABLES:
            raise LaunchFileError(f"{path}: unknown table [{table}]; known: {', '.join(TABLES)}")
    nodes = tables.get("nodes", {})
    if not isinstance(nodes, dict) or not nodes:
        raise LaunchFileError(f"{path}: no nodes; expected at least one table like [nodes.talker]")
    instead = tables.get("instead", {})
    if not isinstance(instead, dict):
        raise LaunchFileError(f"{path}: instead is {instead!r}; expected tables like [instead.camera]")
    for name, table in instead.items():
        _instead_of(nodes, name, table, f"{path}: ")
    run = tables.get("run", {})
    if not isinstance(run, dict):
        raise LaunchFileError(f"{path}: run is {run!r}; expected a table [run]")
    for key in run:
        if key not in RUN_KEYS:
            raise LaunchFileError(f"{path}: [run] unknown key {key!r}; known: {', '.join(RUN_KEYS)}")
    seed, for_s = run.get("seed", 0), run.get("for_s")
    for key in ("view", "report"):
        _check_name(path, key, run.get(key, ""))
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise LaunchFileError(f"{path}: [run] seed is {seed!r}; expected a whole number")
    robot = run.get("robot", "")
    if not isinstance(robot, str):
        raise LaunchFileError(f"{path}: [run] robot is {robot!r}; expected a name like 'my_robot.limits:LIMITS'")
    is_number = isinstance(for_s, int | float) and not isinstance(for_s, bool)
    if for_s is not None and not (is_number and 0 < for_s < float("inf")):
        raise LaunchFileError(f"{path}: [run] for_s is {for_s!r}; expected a positive number of seconds")
    try:
        hosts = parse_hosts(tables.get("hosts", {}))
        if host and host not in hosts:
            raise UserError(f"--host {host}: no such host; known: {choices(hosts) if hosts else 'none'}")
        specs = [_placed(node_spec(path, name, table, hosts=hosts, here=host), hosts) for name, table in nodes.items()]
        specs = [told_of_robot(spec, robot) for spec in specs] if robot else specs
        realtime = parse_processes(tables.get("processes", {}), {spec.process or spec.name for spec in specs})
        seats = parse_seats(tables.get("seats", {}), {spec.name: spec for spec in specs})
    except LaunchFileError:
        raise
    except UserError as problem:
        raise LaunchFileError(f"{path}: {problem}") from problem
    graph = Graph(specs, {seat: table.candidates for seat, table in seats.items()})
    graph.gateways.update({gateway_topic(name): GatewayHealth for name in hosts})
    try:
        budgets = parse_budgets(tables.get("budgets", {}), graph)
    except UserError as problem:
        raise LaunchFileError(f"{path}: {problem}") from problem
    return Launch(
        path=path,
        text=text,
        tables=tables,
        graph=graph,
        view=run.get("view", ""),
        report=run.get("report", ""),
        seed=seed,
        for_s=for_s,
        robot=robot,
        seats=seats,
        hosts=hosts,
        host=host,
        budgets=budgets,
        realtime=realtime,
        links=_links(path, tables.get("links", {}), graph),
    )


def _placed(spec: NodeSpec, hosts: Mapping[str, Host]) -> NodeSpec:
    """The node with its host: the one that it names, or else the first."""
    if spec.host and spec.host not in hosts:
        known = choices(hosts) if hosts else "none; add tables like [hosts.robot]"
        raise UserError(f"[nodes.{spec.name}] host is {spec.host!r}; known hosts: {known}")
    return replace(spec, host=spec.host or next(iter(hosts), ""))


def _links(path: Path, tables: Any, graph: Graph) -> tuple[LinkModel, ...]:
    if not isinstance(tables, dict):
        raise LaunchFileError(f"{path}: links is {tables!r}; expected tables like [links.wifi]")
    links = []
    for name, table in tables.items():
        try:
            links.append(LinkModel.parse(name, table, nodes=graph.nodes, topics=graph.topics))
        except UserError as problem:
            raise LaunchFileError(f"{path}: [links.{name}] {problem}") from problem
    return tuple(links)


def _check_name(path: Path, key: str, name: object) -> None:
    """What draws or reports a run is loaded later, when it is needed; that its module exists is known now."""
    if name == "":
        return
    module, colon, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    try:
        found = bool(colon and module and attribute) and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise LaunchFileError(f"{path}: [run] {key} is {name!r}; expected 'module:name' of a module that is installed")


def check(launch: Launch) -> None:
    """Raise LaunchFileError with the first thing that can be known to be wrong before starting."""
    for node, problem in launch.graph.problems(launch.host):
        raise LaunchFileError(f"{launch.path}: [nodes.{node}] {problem}")
    for name, group in launch.processes.items():
        if len({spec.restart for spec in group}) > 1:
            raise LaunchFileError(
                f"{launch.path}: process {name!r} holds nodes with different restart policies; give them the same one"
            )
        if len(hosts := {spec.host for spec in group}) > 1:
            raise LaunchFileError(
                f"{launch.path}: process {name!r} holds nodes of {choices(hosts)}; a process has one host"
            )
    for account in path_accounts(launch):
        if account.problem:
            raise LaunchFileError(f"{launch.path}: [budgets.paths.{account.name}] {account.problem}")


def path_accounts(launch: Launch) -> list[PathAccount]:
    """The path budgets against what is declared. Raises LaunchFileError where a path's topics are not linked."""
    try:
        return accounts(launch.budgets, launch.graph, holders_of(launch.seats), launch.links)
    except UserError as problem:
        raise LaunchFileError(f"{launch.path}: {problem}") from problem


def add_node(tables: dict[str, Any], node: str) -> None:
    """Put a node into the tables that the file does not have, given as NAME=MODULE:CLASS."""
    name, equals, use = node.partition("=")
    if not equals or not name or not use:
        raise LaunchFileError(f"--add {node}: expected name=module:Class, like mqtt=bridges.mqtt.bridge:MqttBridge")
    nodes = tables.setdefault("nodes", {})
    if isinstance(nodes, dict) and name in nodes:
        raise LaunchFileError(f"--add {node}: there is a node {name!r} already; --set {name}.use={use} changes it")
    if isinstance(nodes, dict):
        nodes[name] = {"use": use}


def in_order(changes: Sequence[str]) -> list[str]:
    """The changes with each node's first `use` ahead: taking a class drops what was set for the one before."""
    classes: dict[str, int] = {}
    for place, change in enumerate(changes):
        node, _, key = change.partition("=")[0].strip().partition(".")
        if key == "use":
            classes.setdefault(node, place)
    first = list(classes.values())
    return [changes[place] for place in first] + [one for place, one in enumerate(changes) if place not in first]


def override(tables: dict[str, Any], change: str) -> None:
    """Apply one `node.key=value`; the key is one of a node's own, or else a parameter.

    `host` is the node's own where the value is one of `[hosts]`; else it is a parameter, such as a broker's address.
    """
    target, equals, text = change.partition("=")
    node, dot, key = target.strip().partition(".")
    if not equals or not dot or not node or not key:
        raise LaunchFileError(f"--set {change}: expected node.param=value, like talker.start=40")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string
    nodes = tables.get("nodes")
    if not isinstance(nodes, dict) or not all(isinstance(own, dict) for own in nodes.values()):
        return  # `resolve` says what is wrong with the file
    if node not in nodes and node in tables.get("instead", {}):
        node = _take_instead(tables, node)
    if node == "run":
        table = tables.setdefault("run", {})
    elif node in ("links", "budgets", "hosts", "processes"):
        table = tables.setdefault(node, {})
    elif node in nodes:
        table = nodes[node]
        if key.partition(".")[0] not in NODE_KEYS or (key == "host" and value not in _host_names(tables)):
            table = table.setdefault("params", {})
    else:
        known = choices([*nodes, *tables.get("instead", {})])
        raise LaunchFileError(f"--set {change}: there is no node {node!r}; known: {known}")
    *outer, first = key.split(".")
    for name in outer:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise LaunchFileError(f"--set {change}: {name!r} is {table!r}, not a table")
    if key == "use":
        _use(table, value)
    table[first] = value


def _host_names(tables: Mapping[str, Any]) -> list[object]:
    hosts = tables.get("hosts", {})
    return list(hosts) if isinstance(hosts, dict) else []


def _use(table: dict[str, Any], name: object) -> None:
    if table.get("use") != name:
        for key in ("params", "latency", "hz"):
            table.pop(key, None)  # another class has others
    table["use"] = name


def _take_instead(tables: dict[str, Any], name: str) -> str:
    """Put what [instead.NAME] names into its node's place; that node's name."""
    node, use = _instead_of(tables["nodes"], name, tables["instead"][name])
    _use(tables["nodes"][node], use)
    return node


def _instead_of(nodes: Mapping[str, Any], name: str, table: object, where: str = "") -> tuple[str, str]:
    node, use = (table.get("node"), table.get("use")) if isinstance(table, dict) and len(table) == 2 else (None, None)
    if not isinstance(node, str) or not isinstance(use, str) or node not in nodes:
        expected = f'node = "NODE" and use = "module:Class"; nodes: {choices(nodes)}'
        raise LaunchFileError(f"{where}[instead.{name}] is {table!r}; expected {expected}")
    return node, use
