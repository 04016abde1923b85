"""[nodes.NAME] tables of a launch file: the class that `use` names, and what else the node is given."""

from __future__ import annotations

import importlib
import os
import re
import traceback
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any

from msgspec import Meta, field
from msgspec.structs import replace

from runtime.abilities import ShapesPorts, TakesFromRun
from runtime.errors import LaunchFileError, UserError, choices, naming
from runtime.extras import lacking
from runtime.hosts.hosts_table import Host
from runtime.journal.answers import kept_of
from runtime.launch.checks.class_check import place_of_problem
from runtime.launch.graph import NodeSpec, Restart
from runtime.launch.tables.handler_latency import Latency, read_trace
from runtime.node import Node, Timer, handlers_of, rate_problem
from runtime.operating_system.loading import WholeImports
from runtime.qos import QoS
from runtime.refusals import refusing
from runtime.renamed import RENAMED_FILE, renamed
from runtime.serialization.toml_errors import Table, convert

_NODE_NAME = "[a-z][a-z0-9_]{0,63}"
_PORT_CALL = re.compile(r"(\w+)\.__init__\(\)")
_PORT_CALLS = {
    "Publisher": "Publisher(Beat, 'beat', qos=QoS(...)), qos where it is needed",
    "Subscription": "Subscription(Beat, 'beat', qos=QoS(...)), qos where it is needed",
    "ServiceClient": "ServiceClient(AddTwo, Sum, 'add'): what it asks, the answer, and its name",
    "ServiceServer": "ServiceServer(AddTwo, Sum, 'add'): what it is asked, the answer, and its name",
    "GoalClient": "GoalClient(DriveTo, Progress, Arrived, 'drive'): goal, feedback, result, and its name",
    "GoalServer": "GoalServer(DriveTo, Progress, Arrived, 'drive'): goal, feedback, result, and its name",
}
_QOS_WORD = re.compile(r"QoS\.__init__\(\) got an unexpected keyword argument '(\w+)'")
_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class NodeTable(Table, frozen=True):
    """One [nodes.NAME], as written."""

    use: Annotated[str, Meta(description="a class like 'nodes.hello:Talker'")]
    stand_in: Annotated[str, Meta(description="a function like 'nodes.recording.replay.played:played'")] = ""
    params: Annotated[dict[str, Any], Meta(description="a table")] = field(default_factory=dict)
    remap: Annotated[dict[str, str], Meta(description="a table of topic = topic")] = field(default_factory=dict)
    hz: Annotated[float | dict[str, float] | None, Meta(description="a number, or a table of timer = number")] = None
    after: Annotated[str | dict[str, str] | None, Meta(description="a topic, or a table of timer = topic")] = None
    process: Annotated[str, Meta(pattern=rf"^({_NODE_NAME})?\Z", description="a-z, 0-9 and _")] = ""
    host: Annotated[str, Meta(description="the name of a table [hosts.NAME]")] = ""
    restart: Restart = "on-failure"
    latency: Any = None  # as `Latency.parse` takes it, { trace = "FILE" }, or a table of handler = one of these


class Instead(Table, frozen=True):
    """One [instead.NAME]: another class for a node, used where one of its parameters is set."""

    node: Annotated[str, Meta(description='node = "NODE" and use = "module:Class"')]
    use: Annotated[str, Meta(description='node = "NODE" and use = "module:Class"')]


NODE_KEYS = NodeTable.__struct_fields__


def node_spec(
    path: Path, name: str, table: Any, *, hosts: Mapping[str, Host] | None = None, here: str = ""
) -> NodeSpec:
    """The node of one [nodes.NAME] table; the environment is that of the host `here`. Raises LaunchFileError."""
    where = f"{path}: [nodes.{name}]"
    if not re.fullmatch(_NODE_NAME, name):
        raise LaunchFileError(f"{where} is no node name; expected a-z, 0-9 and _, starting with a letter", code="P003")
    with naming(f"{path}:", LaunchFileError):
        written = convert(table, NodeTable, table=f"nodes.{name}")
    is_elsewhere = here != "" and (written.host or next(iter(hosts or ()), "")) != here
    with naming(where, LaunchFileError):
        with refusing("P010"):
            cls = load_name(written.use)
        if not (isinstance(cls, type) and issubclass(cls, Node)):
            raise UserError(
                f"{written.use!r} is no Node; write `class {written.use.rpartition(':')[2]}(Node):`", code="P010"
            )
        params = dict(written.params) if is_elsewhere else {k: _from_environment(v) for k, v in written.params.items()}
        with refusing("P013"):
            cls = cls.with_ports(params) if issubclass(cls, ShapesPorts) else cls
        with refusing("P010"):
            cls = _stand_in(cls, written.stand_in) if written.stand_in else cls
        with refusing("P023"):
            hz, after = rates_of(cls, written.hz), _followed(cls, written.after)
            latency = _latencies(cls, written.latency, name, path.parent)
        return NodeSpec(
            name=name,
            cls=cls,
            params=params,
            remap=written.remap,
            hz=hz,
            after=after,
            latency=latency,
            process=written.process,
            host=written.host,
            restart=written.restart,
            hidden={
                key: kept
                for key, value in written.params.items()
                if (kept := kept_of(name, key, value)) is not params[key]
            },
            unset=() if is_elsewhere else tuple(filter(None, map(_unset, written.params.values()))),
        )


def taken_from_run(cls: type[Node]) -> Mapping[str, str]:
    """The keys of `[run]` whose values a class takes, each with the parameter that gets it, or ""."""
    return cls.run_parameters() if issubclass(cls, TakesFromRun) else {}


def with_shared(table: Mapping[str, Any], cls: type[Node], shared: Mapping[str, str]) -> dict[str, Any]:
    """The [nodes.NAME] table of a node, for the process that will run it, which sees no other table of the file."""
    given = {parameter: shared[key] for key, parameter in taken_from_run(cls).items() if parameter and key in shared}
    return {**table, "params": {**table.get("params", {}), **given}} if given else dict(table)


def told(spec: NodeSpec, shared: Mapping[str, str]) -> NodeSpec:
    """The node with what `[run]` shares out. Raises UserError where a value is not for it, or it has another."""
    params = dict(spec.params)
    for key, parameter in taken_from_run(spec.cls).items():
        if key not in shared:
            continue
        with naming(f"[nodes.{spec.name}]"):
            facts_of(spec.cls, key, shared[key])
        if parameter and params.setdefault(parameter, shared[key]) != shared[key]:
            raise UserError(
                f"[nodes.{spec.name}] {parameter} is {params[parameter]!r}, but [run] {key} is {shared[key]!r}; leave "
                "one of the two out, so that all nodes have the same"
            )
    return replace(spec, params=params)


def facts_of(cls: type[Node], key: str, value: str) -> Mapping[str, object]:
    """What a class that takes this key of `[run]` notes of its value."""
    return cls.run_facts(key, value) if issubclass(cls, TakesFromRun) and key in cls.run_parameters() else {}


def _stand_in(cls: type[Node], name: str) -> type[Node]:
    """What that function puts in the place of a node class: a class with the same publishers."""
    make = load_name(name)
    refused = f"stand_in is {name!r}, which makes no node class of {cls.__name__}"
    try:
        stand_in = make(cls) if callable(make) else None
    except UserError:
        raise
    except Exception as problem:  # whatever a user's function may raise
        raise UserError(f"{refused}: {type(problem).__name__}: {problem}") from problem
    if not (isinstance(stand_in, type) and issubclass(stand_in, Node)):
        raise UserError(refused)
    return stand_in


def rates_of(cls: type[Node], value: float | dict[str, float] | None) -> dict[str, float]:
    """`hz = 5` for a node with one timer, `hz = { look = 5 }` for any."""
    if value is None:
        return {}
    if isinstance(value, float | int):
        value = {_only_timer(cls, f"hz is {value:g}"): value}
    for name, rate in value.items():
        if problem := rate_problem(rate):
            raise UserError(f"hz of {name!r} is {rate:g}; {problem}")
    return value


def _followed(cls: type[Node], value: str | dict[str, str] | None) -> dict[str, str]:
    """`after = "head/image"` for a node with one timer, `after = { tick = "head/image" }` for any."""
    if isinstance(value, str):
        return {_only_timer(cls, f"after is {value!r}"): value}
    return value or {}


def _only_timer(cls: type[Node], said: str) -> str:
    timers = [handler.name for handler in handlers_of(cls) if isinstance(handler, Timer)]
    if len(timers) != 1:
        raise UserError(f"{said}, but {cls.__name__} has the timers {choices(timers)}; name the one meant")
    return timers[0]


def _latencies(cls: type[Node], value: Any, node: str, folder: Path) -> dict[str, Latency]:
    if value is None:
        return {}
    names = [handler.name for handler in handlers_of(cls)]
    if _is_trace(value):
        return {name: part for name, part in read_trace(folder / value["trace"], node).items() if name in names}
    if not isinstance(value, dict) or set(value) == {"p50", "p99"}:
        value = dict.fromkeys(names, value)
    latencies = {}
    for name, part in value.items():
        if _is_trace(part):
            measured = read_trace(folder / part["trace"], node)
            if name not in measured:
                raise UserError(f"latency trace {part['trace']} holds nothing of {node}.{name}; {choices(measured)}")
            latencies[name] = measured[name]
        else:
            latencies[name] = Latency.parse(part, f"{node}.{name}")
    return latencies


def _is_trace(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"trace"} and isinstance(value["trace"], str)


def _from_environment(value: Any) -> Any:
    """`"${NAME}"` is what the environment holds under that name, so that no secret stands in a file."""
    match = _ENVIRONMENT.fullmatch(value) if isinstance(value, str) else None
    return value if match is None else os.environ.get(match[1], value)


def _unset(value: Any) -> str:
    """The variable that a parameter is taken from, where the environment lacks it; "" otherwise."""
    match = _ENVIRONMENT.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match is not None and match[1] not in os.environ else ""


def load_name(name: str) -> Any:
    """What "module:attribute" names. Raises UserError where it names nothing."""
    module, attribute = load_module(name, "class; expected 'module:Class', like 'nodes.hello:Talker'")
    if not hasattr(module, attribute):
        _check_renamed(name)
        there = vars(module).items()
        nodes = {key for key, value in there if isinstance(value, type) and issubclass(value, Node)} - {"Node"}
        functions = {
            key for key, value in there if isinstance(value, FunctionType) and value.__module__ == module.__name__
        }
        is_function = attribute.islower()
        known = f"functions there: {choices(functions)}" if is_function else f"nodes there: {choices(nodes)}"
        raise UserError(f"{name!r}: {_place(module)} has no {attribute!r}; {known}")
    return getattr(module, attribute)


def load_as(name: str, kind: type) -> Any:
    """What "module:attribute" names, where it has all that a protocol asks for. Raises UserError."""
    found = load_name(name)
    if missing := lacks(found, kind):
        raise UserError(f"{name!r} is no {kind.__name__}: it lacks {missing}")
    return found


def lacks(found: object, kind: type) -> str:
    """The names of a protocol that it does not have; "" where it has all."""
    return ", ".join(name for name in vars(kind) if not name.startswith("_") and not hasattr(found, name))


def load_module(name: str, kind: str) -> tuple[ModuleType, str]:
    """The imported module of "module:attribute", and the attribute's name. Raises UserError.

    `kind` ends the sentence about a name of another form.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not attribute or "" in module_name.split("."):  # also where it begins with a dot
        raise UserError(f"{name!r} names no {kind}")
    try:
        with WholeImports():
            return importlib.import_module(module_name), attribute
    except ModuleNotFoundError as problem:
        _check_renamed(name)
        if extra := lacking(problem):
            raise UserError(f"{name!r}: {extra}") from problem
        missing = problem.name or module_name
        if (now := renamed("modules").get(missing)) is not None:
            raise UserError(f"{name!r}: {_importing(problem)} imports {missing!r}, which is now {now!r}") from problem
        parent = importlib.sys.modules.get(module_name.partition(".")[0])  # type: ignore[attr-defined]
        where = f" ({parent.__name__} was found at {_place(parent)})" if parent is not None else ""
        if missing.endswith(".py"):
            raise UserError(
                f"{name!r}: a module is named without '.py'; write {name.replace('.py', '')!r}"
            ) from problem
        own = missing == module_name.partition(".")[0]
        do = (
            f"install its package, or start from the folder that holds {missing}"
            if own
            else hidden(missing) or "is its package installed?"
        )
        raise UserError(f"{name!r}: there is no module {missing!r}{where}; {do}") from problem
    except Exception as problem:  # whatever a module's first lines may raise
        if _is_ctrl_c(problem):
            raise KeyboardInterrupt from problem
        what = str(problem) if isinstance(problem, UserError) else f"{type(problem).__name__}: {problem}"
        port = _PORT_CALL.match(str(problem)) if isinstance(problem, TypeError) else None
        if port is not None and port[1] in _PORT_CALLS:
            what += f"; write {_PORT_CALLS[port[1]]}"
        if isinstance(problem, TypeError) and (word := _QOS_WORD.match(str(problem))):
            what = f"QoS knows no {word[1]!r}; known: {', '.join(field.name for field in fields(QoS))}"
        place = place_of_problem(problem)
        at = f" at {place}" if place and not isinstance(problem, SyntaxError) else ""
        raise UserError(f"{name!r}: module {module_name!r} cannot be imported{at}: {what}") from problem


def _is_ctrl_c(problem: BaseException | None) -> bool:
    """Whether it is what a library made of Ctrl-C that came while it was imported."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__cause__ or problem.__context__
    return problem is not None


def _importing(problem: ModuleNotFoundError) -> str:
    """The file and line of whoever imports what is not there."""
    own = [one for one in traceback.extract_tb(problem.__traceback__) if not one.filename.startswith("<")]
    at = next((one for one in reversed(own) if one.filename != RENAMED_FILE), own[-1])
    return f"{at.filename}:{at.lineno}"


def _check_renamed(name: str) -> None:
    if name in renamed("names"):
        raise UserError(f"{name!r} is now {renamed('names')[name]!r}")
    if (module := name.partition(":")[0]) in renamed("modules"):
        raise UserError(f"{name!r}: module {module!r} is now {renamed('modules')[module]!r}")


def hidden(module: str) -> str:
    """What to do where another package hides one of Polyrhythm's own; "" where none does."""
    first = module.partition(".")[0]
    found = importlib.sys.modules.get(first)  # type: ignore[attr-defined]
    home = Path(__file__).resolve().parents[3]
    if first not in ("nodes", "bridges") or found is None or not (home / first).is_dir():
        return ""
    places = [Path(place).resolve() for place in getattr(found, "__path__", ())] or [Path(_place(found)).resolve()]
    if home / first in places:
        return ""
    return f"{places[0]} hides Polyrhythm's own {first!r}: rename it, or start from another folder"


def _place(module: Any) -> str:
    return str(getattr(module, "__file__", None) or getattr(module, "__path__", "an unknown place"))
