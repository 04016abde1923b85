"""Launch files: TOML that names nodes, their parameters and processes. Errors name file, table and key."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from runtime.coordination.health import GatewayHealth, gateway_topic
from runtime.errors import LaunchFileError, MissingVariable, UserError, choices, naming, nearest
from runtime.extras import or_absent
from runtime.hosts.hosts_table import Host, parse_hosts
from runtime.journal.answers import kept_of
from runtime.launch.checks.function_source import source_of
from runtime.launch.checks.path_check import PathAccount, accounts
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.left_out import leave_out
from runtime.launch.tables.budgets_table import Budgets, parse_budgets
from runtime.launch.tables.links_table import LinkModel, parse_links
from runtime.launch.tables.more_tables import entries, read_more
from runtime.launch.tables.nodes_table import NODE_KEYS, Instead, facts_of, node_spec, taken_from_run, told
from runtime.launch.tables.processes_table import RealTime, parse_processes
from runtime.launch.tables.seats_table import SeatTable, holders_of, parse_seats
from runtime.refusals import code_of, refusing
from runtime.serialization.toml_errors import Seconds, Table, convert, guess, parse_toml, read_text

INSTALLED = "'module:name' of a module that is installed"


class RunTable(Table, frozen=True):
    """[run], as written."""

    view: Annotated[str, Meta(description=INSTALLED)] = ""
    report: Annotated[str, Meta(description=INSTALLED)] = ""
    beside: Annotated[str, Meta(description="a subcommand that looks on, like 'view'")] = ""
    seed: int = 0
    for_s: Seconds | None = None
    frozen_s: Annotated[float, Meta(gt=0, le=60.0, description="more than 0 and at most 60 s")] = 2.0
    start: Literal["fork", "spawn"] = "fork"
    one_user: bool = False  # of this machine: what comes by its loopback is theirs


TABLES = ("nodes", "instead", "processes", "seats", "links", "budgets", "hosts", "run")


class Launch(msgspec.Struct, frozen=True):
    """A launch file, read and resolved."""

    path: Path
    text: str
    tables: Mapping[str, Any]  # as parsed, with overrides applied
    graph: Graph
    view: str = ""  # "module:Class" that draws a run live
    report: str = ""  # "module:function" called with a run's recording
    beside: str = ""  # a subcommand that is started beside a run in real time, with --run PID
    seed: int = 0
    for_s: float | None = None
    frozen_s: float = 2.0  # a process of which no thread ran for so long is killed, and restarted
    is_forked: bool = True  # its processes are forked from one that has imported their nodes
    shared: Mapping[str, str] = msgspec.field(default_factory=dict)  # other keys of [run], for the nodes that take them
    one_user: bool = False  # of this machine
    links: tuple[LinkModel, ...] = ()  # in virtual time only
    seats: Mapping[str, SeatTable] = msgspec.field(default_factory=dict)
    hosts: Mapping[str, Host] = msgspec.field(default_factory=dict)
    host: str = ""  # the one that is meant; "": all of them
    budgets: Budgets = msgspec.field(default_factory=Budgets)
    realtime: Mapping[str, RealTime] = msgspec.field(default_factory=dict)  # by process
    more: Mapping[str, Any] = msgspec.field(default_factory=dict)  # what other rooms make of their tables

    @property
    def processes(self) -> dict[str, list[NodeSpec]]:
        """The nodes of each process of this host; a node that names none has a process of its own."""
        groups: dict[str, list[NodeSpec]] = {}
        for spec in self.here:
            groups.setdefault(spec.process or spec.name, []).append(spec)
        return groups

    def notes(self) -> list[tuple[str, str]]:
        """What an author should know and no run is refused for: the table, such as "nodes.guard", and a sentence."""
        found = [(f"nodes.{name}", note) for name, note in self.graph.notes()]
        any_core = "cpus = [] means any core, as without it; name cores, or leave it out"
        found += [(f"processes.{name}", any_core) for name, asked in self.realtime.items() if asked.cpus == ()]
        keeper = self.graph.keeper
        return found if keeper is None else [*found, *keeper.graph_notes(self.graph.authority, self)]

    @property
    def shared_facts(self) -> dict[str, object]:
        """What its nodes know of the values that `[run]` shares out, for readers of a recording; {} without one."""
        classes = {spec.cls for spec in self.graph.nodes.values()}
        known = [facts_of(cls, key, value) for key, value in self.shared.items() for cls in classes]
        return {name: fact for one in known for name, fact in one.items()}

    @property
    def moves(self) -> bool:
        """Whether its graph has a node that issues fences, on a machine that may have other users."""
        return self.graph.authority != "" and not self.one_user

    @property
    def here(self) -> list[NodeSpec]:
        """The nodes of this host."""
        return self.on(self.host) if self.host else list(self.graph.nodes.values())

    def on(self, host: str) -> list[NodeSpec]:
        """The nodes of the host with this name."""
        return [spec for spec in self.graph.nodes.values() if spec.host == host]


def find(name: str) -> Path:
    """The file of this path, or the shipped one of this name. Raises LaunchFileError where there is neither."""
    path = Path(name)
    if path.is_file():
        return path
    known = shipped()
    if name in known:
        return known[name]
    folder = path if path.is_dir() else path.parent
    beside = [str(file) for file in sorted(folder.glob("*.toml"))] if folder.is_dir() else []
    if path.is_dir():
        what = (
            f"is a folder; the .toml files in it: {choices(beside)}" if beside else "is a folder without a .toml file"
        )
        raise LaunchFileError(f"{name}: {what}; expected a launch file, or the name of a shipped one", code="P001")
    near = nearest(name, [*beside, *known])
    meant = f"did you mean {near}? " if near else ""
    there = f"shipped ones, by name: {choices(known)}" if known else or_absent("expected a path")
    raise LaunchFileError(f"{name}: no such launch file; {meant}{there}", code="P001")


def shipped() -> dict[str, Path]:
    """The shipped launch files, by name: they come with the nodes."""
    nodes = importlib.util.find_spec("nodes")
    homes = [Path(place) for place in (nodes.submodule_search_locations or () if nodes else ())]
    homes.append(Path(__file__).resolve().parents[2] / "nodes")  # also where a folder of the user's hides them
    folders = [folder for home in homes for folder in (home.parent / "launch", home / "launch_files")]
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.toml"))}


def load(
    path: Path,
    overrides: Sequence[str] = (),
    *,
    added: Sequence[str] = (),
    without: Sequence[str] = (),
    host: str = "",
) -> Launch:
    """Read a launch file, to run the part of `host`. Raises LaunchFileError at the first thing that is wrong.

    `added` are nodes that the file lacks, as NAME=MODULE:CLASS. `overrides` are NODE.PARAM=VALUE, also of those.
    `without` are nodes to leave out: never those that the graph's keeper needs.
    """
    try:
        text = read_text(path)
        tables = parse_toml(text, path)
    except UserError as problem:
        raise LaunchFileError(str(problem)) from problem
    for text_of_node in added:
        add_node(tables, text_of_node)
    for change in in_order(overrides):
        override(tables, change)
    leave_out(tables, without, path)
    return resolve(tables, path=path, text=text, host=host)


def resolve(tables: Mapping[str, Any], *, path: Path, text: str = "", host: str = "") -> Launch:
    """The launch that these tables describe."""
    known = TABLES if set(tables) <= {*TABLES} else (*TABLES, *sorted(entry.name for entry in entries()))
    if tables and not any(table in known or nearest(table, known, cutoff=0.8) for table in tables):
        raise LaunchFileError(
            f"{path}: is no launch file: it has none of the tables {', '.join(f'[{name}]' for name in known)}; "
            f"a file that a node reads is checked with its node: check FILE --set NODE.PARAM={path}",
            code="P003",
        )
    for table in tables:
        if table not in known:
            raise LaunchFileError(or_absent(f"{path}: unknown table [{table}]; {guess(table, known)}"), code="P003")
    nodes = tables.get("nodes", {})
    if not isinstance(nodes, dict) or not nodes:
        raise LaunchFileError(f"{path}: no nodes; expected at least one table like [nodes.talker]", code="P004")
    try:
        instead = convert(tables.get("instead", {}), dict[str, Instead], table="instead")
        for name, other in instead.items():
            if other.node not in nodes:
                raise UserError(f"[instead.{name}] node is {other.node!r}; {guess(other.node, nodes)}", code="P004")
        with refusing("P041"):
            hosts = parse_hosts(tables.get("hosts", {}))
        if host and host not in hosts:
            raise UserError(f"--host {host}: no such host; known: {choices(hosts) if hosts else 'none'}", code="P005")
        specs = [_placed(node_spec(path, name, table, hosts=hosts, here=host), hosts) for name, table in nodes.items()]
        run, shared = _run_table(tables.get("run", {}), specs, path)
        with refusing("P013"):
            specs = [told(spec, shared) for spec in specs]
        with refusing("P045"):
            realtime = parse_processes(tables.get("processes", {}), {spec.process or spec.name for spec in specs})
        with refusing("P040"):
            seats = parse_seats(tables.get("seats", {}), {spec.name: spec for spec in specs})
        graph = Graph(specs, {seat: table.candidates for seat, table in seats.items()}, one_user=run.one_user)
        graph.gateways.update({gateway_topic(name): GatewayHealth for name in hosts})
        with refusing("P043"):
            budgets = parse_budgets(tables.get("budgets", {}), graph)
        with refusing("P004"):
            more = read_more({name: table for name, table in tables.items() if name not in TABLES}, graph)
        with refusing("P042"):
            links = parse_links(tables.get("links", {}), nodes=graph.nodes, topics=graph.topics)
    except LaunchFileError:
        raise
    except UserError as problem:
        raise LaunchFileError(f"{path}: {problem}") from problem
    return Launch(
        path=path,
        text=text,
        tables=tables,
        graph=graph,
        view=run.view,
        report=run.report,
        beside=run.beside,
        seed=run.seed,
        for_s=run.for_s,
        frozen_s=run.frozen_s,
        is_forked=run.start == "fork",
        shared=shared,
        seats=seats,
        hosts=hosts,
        host=host,
        budgets=budgets,
        realtime=realtime,
        links=links,
        one_user=run.one_user,
        more=more,
    )


def _run_table(written: Any, specs: Sequence[NodeSpec], path: Path) -> tuple[RunTable, dict[str, str]]:
    """[run], and of its keys those that nodes take, as [run] gives them to all alike."""
    table = "[run]"
    taken = {key: parameter for spec in specs for key, parameter in taken_from_run(spec.cls).items() if parameter}
    others = set(written) - {*RunTable.__struct_fields__} if isinstance(written, dict) else set()
    for key in sorted(others - {*taken}):
        known = [*RunTable.__struct_fields__, *taken]
        if nearest(key, known):
            raise UserError(f"{table} has the unknown key {key!r}; {guess(key, known)}", code="P003")
        why = f"{table} {key} is {written[key]!r}, but no node of this file takes it; leave it out"
        raise UserError(why, code="P013")
    own = {key: value for key, value in written.items() if key not in taken} if others else written
    shared = convert({key: written[key] for key in others & {*taken}}, dict[str, str], table="run")
    return convert(own, RunTable, table="run"), {key: _beside(path, one) for key, one in shared.items() if one}


def _beside(path: Path, name: str) -> str:
    """The value; where it is the name of a file beside the launch file, its whole path."""
    file = path.parent / name
    return str(file.resolve()) if file.is_file() else name


def _placed(spec: NodeSpec, hosts: Mapping[str, Host]) -> NodeSpec:
    """The node with its host: the one that it names, or else the first."""
    if spec.host and spec.host not in hosts:
        known = choices(hosts) if hosts else "none; add tables like [hosts.robot]"
        raise UserError(f"[nodes.{spec.name}] host is {spec.host!r}; known hosts: {known}", code="P041")
    return replace(spec, host=spec.host or next(iter(hosts), ""))


def check(launch: Launch, *, needs_variables: bool = True) -> list[str]:
    """Raise LaunchFileError with the first thing that can be known to be wrong before the start.

    Where environment variables are not needed, to look at a file elsewhere than it runs, those that are not set are
    returned.
    """
    problems = launch.graph.problems(launch.host) + launch.graph.process_problems()
    missing = [f"[nodes.{node}] {problem}" for node, problem in problems if isinstance(problem, MissingVariable)]
    for node, problem in problems:
        if needs_variables or not isinstance(problem, MissingVariable):
            raise LaunchFileError(f"{launch.path}: [nodes.{node}] {problem}", code=code_of(problem))
    for name, group in launch.processes.items():
        if len({spec.restart for spec in group}) > 1:
            raise LaunchFileError(
                f"{launch.path}: process {name!r} holds nodes with different restart policies; give them the same one",
                code="P045",
            )
        if len(hosts := {spec.host for spec in group}) > 1:
            raise LaunchFileError(
                f"{launch.path}: process {name!r} holds nodes of {choices(hosts)}; a process has one host", code="P045"
            )
    for account in path_accounts(launch):
        if account.problem:
            raise LaunchFileError(f"{launch.path}: [budgets.paths.{account.name}] {account.problem}", code="P044")
    source_of.cache_clear()  # what was found in them is kept; the trees would be megabytes of a supervisor
    return missing


def path_accounts(launch: Launch) -> list[PathAccount]:
    """The path budgets against what is declared. Raises LaunchFileError where no nodes link a path's topics."""
    with naming(f"{launch.path}:", LaunchFileError), refusing("P043"):
        return accounts(launch.budgets, launch.graph, holders_of(launch.seats), launch.links)


def add_node(tables: dict[str, Any], node: str) -> None:
    """Add to the tables a node that the file lacks, given as NAME=MODULE:CLASS."""
    name, equals, use = node.partition("=")
    if not equals or not name or not use:
        raise LaunchFileError(
            f"--add {node}: expected name=module:Class, like mqtt=bridges.mqtt.bridge:MqttBridge", code="P005"
        )
    nodes = tables.setdefault("nodes", {})
    if isinstance(nodes, dict) and name in nodes:
        raise LaunchFileError(
            f"--add {node}: there is a node {name!r} already; --set {name}.use={use} changes it", code="P005"
        )
    if isinstance(nodes, dict):
        nodes[name] = {"use": use}


def in_order(changes: Sequence[str]) -> list[str]:
    """The changes with each node's first `use` in front, because a new class drops what was set for the old one."""
    classes: dict[str, int] = {}
    for place, change in enumerate(changes):
        node, _, key = change.partition("=")[0].strip().partition(".")
        if key == "use":
            classes.setdefault(node, place)
    first = list(classes.values())
    return [changes[place] for place in first] + [one for place, one in enumerate(changes) if place not in first]


def as_recorded(changes: Sequence[str]) -> list[str]:
    """The changes in order, without the keys that were typed into them (`kept_of`)."""
    return [_without_key(change) for change in in_order(changes)]


def _without_key(change: str) -> str:
    target, _, text = change.partition("=")
    node, _, key = target.strip().partition(".")
    value = _value_of(text)
    kept = kept_of(node, key.removeprefix("params."), value)
    return change if kept is value else f'{target.strip()}="{kept}"'


def _value_of(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()  # a bare word is a string


def override(tables: dict[str, Any], change: str) -> None:
    """Apply one `node.key=value`; the key is one of the node's table, or else a parameter.

    `host` is the node's host where the value names one of `[hosts]`; otherwise it is a parameter, such as a broker's
    address.
    """
    target, equals, text = change.partition("=")
    node, dot, key = target.strip().partition(".")
    if not equals or not dot or not node or not key:
        raise LaunchFileError(f"--set {change}: expected node.param=value, like talker.start=40", code="P005")
    value = _value_of(text)
    nodes = tables.get("nodes")
    if not isinstance(nodes, dict) or not all(isinstance(own, dict) for own in nodes.values()):
        return  # `resolve` says what is wrong with the file
    if node not in nodes and node in tables.get("instead", {}):
        node = _take_instead(tables, node)
    if node == "run":
        table = tables.setdefault("run", {})
    elif node in ("links", "budgets", "hosts", "processes", "seats"):
        table = tables.setdefault(node, {})
    elif node in nodes:
        table = nodes[node]
        if key.partition(".")[0] not in NODE_KEYS or (key == "host" and value not in _host_names(tables)):
            table = table.setdefault("params", {})
    else:
        known = choices([*nodes, *tables.get("instead", {})])
        raise LaunchFileError(f"--set {change}: there is no node {node!r}; known: {known}", code="P005")
    *outer, first = key.split(".")
    for name in outer:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise LaunchFileError(f"--set {change}: {name!r} is {table!r}, not a table", code="P005")
    if key == "use":
        _use(table, value)
    table[first] = value


def _host_names(tables: Mapping[str, Any]) -> list[object]:
    hosts = tables.get("hosts", {})
    return list(hosts) if isinstance(hosts, dict) else []


def _use(table: dict[str, Any], name: object) -> None:
    if table.get("use") != name:
        for key in ("params", "latency", "hz", "after"):
            table.pop(key, None)  # another class has others
    table["use"] = name


def _take_instead(tables: dict[str, Any], name: str) -> str:
    """Put what [instead.NAME] names into its node's place; that node's name."""
    try:
        other = convert(tables["instead"][name], Instead, table=f"instead.{name}")
        table = tables["nodes"][other.node]
    except KeyError:
        known = guess(other.node, tables["nodes"])
        raise LaunchFileError(f"[instead.{name}] node is {other.node!r}; {known}", code="P004") from None
    _use(table, other.use)
    return other.node
