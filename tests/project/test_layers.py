"""What the tree promises of itself: light imports, one direction, one reader of time, data-only launch folder."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import runtime
from bench.rooms import count, table, working_tree
from tests.support.syntax import parsed, without_garbage  # noqa: F401  # a fixture

pytestmark = pytest.mark.usefixtures("without_garbage")

ROOT = Path(__file__).resolve().parents[2]
MOST_FILES = 16
"""Of a room that needs no plan."""
HEAVY = ("zmq", "mcap", "numpy", "mujoco", "cv2", "onnxruntime", "openai", "rich", "matplotlib", "PIL")
CLOCK_READERS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep", "strftime",
             "localtime", "gmtime", "clock_gettime", "clock_gettime_ns"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}  # fmt: skip


@pytest.mark.parametrize("module", ["runtime", "runtime.cli", "nodes.hello"])
def test_an_import_loads_no_heavy_library(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


@pytest.mark.parametrize(
    "module", ["runtime.commands.run", "runtime.commands.check", "runtime.supervision.process_main"]
)
def test_what_every_run_starts_with_is_light(module: str) -> None:
    """A graph without images needs no numpy, which takes longer to load than all that a run starts with."""
    program = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules) - {{'zmq'}}))"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_all_names_exactly_what_runtime_offers() -> None:
    tree = ast.parse((ROOT / "runtime" / "__init__.py").read_text())
    imported = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If)  # what a type checker reads
        for node in block.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("runtime.")
        for alias in node.names
    }
    assert set(runtime.__all__) == imported
    assert len(runtime.__all__) == len(set(runtime.__all__))
    assert all(hasattr(runtime, name) for name in runtime.__all__)


def test_launch_holds_data_only() -> None:
    assert [file.name for file in (ROOT / "launch").rglob("*") if file.is_file() and file.suffix != ".toml"] == []


def readings(tree: ast.AST) -> list[int]:
    """The lines that read or spend the machine's time other than by `runtime.clock`."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if node.attr in CLOCK_READERS.get(owner, ()):
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            lines.append(node.lineno)
    return lines


def test_the_search_for_clock_readers_finds_them() -> None:
    program = (
        "import time\ntime.time()\nfrom time import sleep\ndatetime.datetime.now()\ndatetime.now()\ntime.struct_time"
    )
    assert sorted(readings(ast.parse(program))) == [2, 3, 4, 5]


def test_nobody_but_the_clock_reads_the_time() -> None:
    files = [file for folder in ("runtime", "nodes", "bridges") for file in sorted((ROOT / folder).rglob("*.py"))]
    found = {
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        if file not in (ROOT / "runtime" / "clock.py", ROOT / "runtime" / "virtual" / "sandbox.py")
        and file != ROOT / "nodes" / "guard" / "watchdog.py"  # imports nothing of ours
        and file.parent != ROOT / "bridges" / "stretch" / "onboard"  # a process on Python 3.10, without our runtime
        and file.parent != ROOT / "bridges" / "lerobot" / "side"  # likewise, on LeRobot's
        for line in readings(parsed(file))
    }
    assert found == set()


def escapes(tree: ast.AST) -> list[int]:
    """The lines that draw randomness without a seed, or start a thread."""
    seeded = {("random", "Random"), ("random", "default_rng"), ("random", "Generator")}
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func).split(".")
        owner, name = (called[-2] if len(called) > 1 else ""), called[-1]
        is_random = owner == "random" and called[0] in ("random", "np", "numpy") and len(called) <= 3
        if (
            (is_random and ((owner, name) not in seeded or not node.args))
            or (owner in ("uuid", "secrets") or (owner, name) == ("os", "urandom"))
            or name in ("Thread", "ThreadPoolExecutor", "ProcessPoolExecutor", "run_in_executor")
        ):
            lines.append(node.lineno)
    return lines


def test_the_search_for_escapes_finds_them() -> None:
    program = (
        "random.random()\nself.random.random()\nrandom.Random(3)\nrandom.Random()\nnp.random.rand()\n"
        "np.random.default_rng(3)\nuuid.uuid4()\nos.urandom(3)\nthreading.Thread()\nloop.run_in_executor(None)"
    )
    assert sorted(escapes(ast.parse(program))) == [1, 4, 5, 7, 8, 9, 10]


def test_no_node_draws_unseeded_randomness_or_starts_a_thread() -> None:
    files = [file for folder in ("nodes", "bridges") for file in sorted((ROOT / folder).rglob("*.py"))]
    outside = {  # what these do has no part in virtual time
        "nodes/recording/bag/export/video.py": "the encoders of a command, not of a node",
        "nodes/evaluation/running.py": "starts runs side by side, and is part of none",
        "nodes/terminal/typed_lines.py": "a person's keys at a live view; there is none in virtual time",
        "nodes/voice/hearing/whisper.py": "a model that is asked as the world is, by `clock.external`",
        "nodes/hosts/gateway.py": "the process that joins two hosts; there is none in virtual time",
        "nodes/hosts/sockets.py": "its sockets, and their names",
        "bridges/ros2/rosbridge.py": "the socket of a bridge, which refuses virtual time",
        "bridges/ros2/zenoh_link.py": "the names of sender and goal, of a bridge that refuses virtual time",
        "bridges/telemetry/otlp.py": "what a command posts, beside a graph",
        "bridges/telemetry/prometheus.py": "the page of a command, beside a graph",
        "bridges/foxglove/command.py": "a secret that nobody may guess, of a command",
        "nodes/msgs/signature.py": "the token of a run",
        "nodes/guard/estop_signal.py": "waits for a signal of the system; there is none in virtual time",
        "nodes/episodes/results/store.py": "secrets that nobody may guess, of a command",
        "nodes/report/room_pictures.py": "the pictures of a command, drawn on all cores",
        "bridges/stretch/link.py": "a secret that nobody may guess; real robots are refused in virtual time",
        "bridges/lerobot/side/device.py": "a process of its own, for a real robot",
        "bridges/stretch/onboard/__main__.py": "a process of its own, for a real robot",
        "bridges/web/console/view_command.py": "a command beside a graph; it is no node of one",
        "bridges/web/http/auth.py": "a secret that nobody may guess",
        "bridges/web/http/server.py": "a web server and its sessions' names; there is no page in virtual time",
    }
    found = {
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        if str(file.relative_to(ROOT)) not in outside
        for line in escapes(parsed(file))
    }
    assert found == set()


def test_every_room_says_in_one_sentence_what_lives_there() -> None:
    for package in ("runtime", "nodes", "bridges", "polyrhythm"):
        for folder in {file.parent for file in (ROOT / package).rglob("*.py")}:
            text = ast.get_docstring(parsed(folder / "__init__.py")) or ""
            first = text.partition("\n\n")[0]
            assert first.endswith("."), f"{folder}/__init__.py: {first!r}"
            files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
            if len(files) > MOST_FILES:  # a plan of the room, in groups
                assert {name for name in files if f"`{name}`" not in text} == set(), folder


def test_the_page_of_the_house_says_what_each_room_says_of_itself_and_names_paths_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = table(working_tree())[2:]
    assert len(rooms) > 40
    told = page.partition("### The rooms\n")[2].partition("###")[0]
    assert [row for row in told.splitlines() if row.startswith("| `")] == rooms, "python -m bench.rooms --table"
    changes = page.partition("### Where a change belongs\n")[2].partition("\n## ")[0].strip().splitlines()[2:]
    assert len(changes) >= 12
    for change in changes:
        paths = re.findall(r"`([^`]+)`", change.split("|")[2])
        assert paths, change
        assert [path for path in paths if not (ROOT / path).is_dir()] == [], change


def test_the_picture_of_the_house_is_that_of_the_contracts() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text().partition("### The rooms")[0].rpartition("```mermaid")[2]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for package in ("runtime", "nodes"):
        folders = {folder.name for folder in (ROOT / package).iterdir() if (folder / "__init__.py").is_file()}
        (layers,) = (one["layers"] for one in contracts if one.get("containers") == [package])
        told = [row for row in ({*re.findall(r"\w+", layer)} & folders for layer in layers) if row]
        part = picture.partition(f"subgraph {package}[")[2].partition("    end")[0]
        drawn = [
            row
            for line in part.splitlines()
            for row in ({*re.findall(r"\w+", step)} & folders for step in line.split("-->"))
            if row
        ]
        drawn = [row for number, row in enumerate(drawn) if not number or row != drawn[number - 1]]  # a line goes on
        assert drawn == told
    bridges = {folder.parent.name for folder in (ROOT / "bridges").glob("*/__init__.py")}
    assert bridges <= {*re.findall(r"\w+", picture.partition("subgraph bridges[")[2].partition("    end")[0])}


def test_rooms_and_arrows_are_counted_as_they_are() -> None:
    files = {
        "nodes/a/__init__.py": "",
        "nodes/a/one.py": "from nodes.b import two\nfrom nodes.a import three",
        "nodes/a/three.py": "import nodes.b.two\nif TYPE_CHECKING:\n    from nodes import hello",
        "nodes/b/two.py": "from nodes.b.deeper.four import x",
        "nodes/b/deeper/four.py": "",
        "nodes/hello.py": "from runtime.x import y",
        "runtime/x.py": "",
    }
    rooms, arrows = count(files)["nodes"]
    assert rooms == {"nodes.a", "nodes.b", "nodes.b.deeper", "nodes.hello"}
    assert arrows == {("nodes.a", "nodes.b"), ("nodes.b", "nodes.b.deeper")}


def test_all_imports_are_absolute() -> None:
    for folder in ("runtime", "nodes", "bridges"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(parsed(file)):
                assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}:{node.lineno}"


def named_twice(files: dict[str, ast.Module]) -> dict[str, list[str]]:
    """The public classes at the top of more than one of these files, each with the files; `files` by path."""
    places: dict[str, list[str]] = {}
    for path, tree in files.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_the_search_for_names_that_stand_twice_finds_them() -> None:
    programs = {"a": "class One: ...\nclass _Own: ...", "b": "class One: ...\nclass _Own: ...", "c": "class Two: ..."}
    assert named_twice({path: ast.parse(text) for path, text in programs.items()}) == {"One": ["a", "b"]}


def test_a_public_class_name_of_the_packages_stands_once() -> None:
    files = [file for folder in ("runtime", "nodes", "bridges") for file in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    assert named_twice({str(file.relative_to(ROOT)): parsed(file) for file in files}) == {}


PUBLIC = {"runtime"}
BEYOND_PUBLIC = {
    "nodes/interrupts/people.py": {
        "runtime.message": "judges an envelope",
        "runtime.run_facts": "and what is known of the run",
    },
    "bridges/ros2/bridge.py": {
        "runtime.launch.tables.nodes_table": "loads what its parameters name",
    },
    "bridges/web/console/view_command.py": dict.fromkeys(
        (
            "runtime.clock",
            "runtime.command_line.arguments",
            "runtime.command_line.attach",
            "runtime.command_line.plain_messages",
            "runtime.errors",
            "runtime.execution.executor",
            "runtime.launch.graph",
            "runtime.message",
            "runtime.serialization.codec",
            "runtime.node",
            "runtime.ports",
            "runtime.supervision.registry",
        ),
        "a command that attaches to a run from outside",
    ),
    "bridges/web/console/node.py": {"runtime.launch.tables.nodes_table": "loads what its parameters name"},
    "nodes/episodes/runner/by_hand.py": {
        "runtime.clock": "asks in a terminal before there is a run",
        "runtime.supervision.view": "draws in a terminal",
    },
    "nodes/guard/node.py": {
        "runtime.supervision.registry": "a real robot's latch lies in the account's own home",
    },
    "nodes/policy/remote/policy.py": {
        "runtime.hosts.address": "asks another host, named as in a launch file",
        "runtime.hosts.hosts_table": "the same",
        "runtime.hosts.service": "the same",
    },
    "nodes/recording/replay/played.py": {
        "runtime.abilities": "is to others what the original was",
        "runtime.context": "speaks with the ages and causes of the recording",
        "runtime.node": "makes ports from a recording",
    },
    "nodes/seats/ladder.py": {"runtime.launch.tables.seats_table": "climbs the ladders of the launch file"},
    "nodes/seats/replayed.py": {"runtime.node": "plays by whichever ports its subclass declares"},
    "nodes/policy/remote/openpi.py": {"runtime.hosts.proxies": "asks nobody on this machine through a proxy"},
    **{
        file: {"runtime.extras": "says what brings its library, from where there is no index"}
        for file in (
            "bridges/mqtt/bridge.py",
            "bridges/mqtt/broker_node.py",
            "nodes/voice/loudspeaker.py",
            "nodes/voice/microphone.py",
        )
    },
}


@functools.cache
def node_files() -> list[Path]:
    """The files of `nodes` and `bridges` that hold a node: a class that stands on `Node`, by whichever others."""
    files = [file for folder in ("nodes", "bridges") for file in sorted((ROOT / folder).rglob("*.py"))]
    classes = [(file, one) for file in files for one in ast.walk(parsed(file)) if isinstance(one, ast.ClassDef)]
    found, known = set(), {"Node"}
    while more := {
        (file, one.name)
        for file, one in classes
        if (file, one.name) not in found and any(ast.unparse(base).rpartition(".")[2] in known for base in one.bases)
    }:
        found |= more
        known |= {name for _, name in more}
    return sorted({file for file, _ in found})


def imports_from_runtime(file: Path) -> set[str]:
    """The modules of `runtime` that a file imports from."""
    found = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] == "runtime"}


def test_shipped_nodes_use_what_runtime_offers_to_everybody() -> None:
    files = node_files()
    assert len(files) > 30
    found = {str(file.relative_to(ROOT)): imports_from_runtime(file) - PUBLIC for file in files}
    assert {name: modules for name, modules in found.items() if modules} == {
        name: set(reasons) for name, reasons in BEYOND_PUBLIC.items()
    }


def test_no_node_asks_for_the_call_that_runs_but_the_replay() -> None:
    users = {
        str(file.relative_to(ROOT))
        for file in node_files()
        for node in ast.walk(parsed(file))
        if getattr(node, "id", getattr(node, "attr", "")) == "current_call"
    }
    assert users == {"nodes/recording/replay/played.py"}


OTHER_WORDS = {
    "address": {"bind", "hostname", "ip", "listen", "server_address", "broker_address"},
    "certificate": {"cert", "certfile", "cert_file", "certificate_file", "tls_certificate"},
    "key": {"keyfile", "key_file", "private_key", "tls_key", "certificate_key"},
    "base_url": {"url", "api_url", "endpoint"},
}
"""Of a parameter of nodes, and what nobody calls it here."""


def test_a_setting_of_nodes_has_one_word() -> None:
    taken = {
        one.arg
        for file in node_files()
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for one in (*node.args.args, *node.args.kwonlyargs)
    }
    assert taken >= OTHER_WORDS.keys()
    assert {word: found for word, others in OTHER_WORDS.items() if (found := taken & others)} == {}


CHANGES = {
    *("append", "appendleft", "add", "update", "setdefault", "pop", "popitem", "popleft", "clear", "extend"),
    *("insert", "remove", "discard"),
}


def written_at_run_time(tree: ast.Module) -> set[str]:
    """The names of a module's own values that its functions change in place, or set anew."""
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        arguments = function.args
        nodes = list(ast.walk(function))
        local = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        local |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in nodes:
            if isinstance(node, ast.Global):
                found.update(node.names)
            changed: ast.expr | None = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                changed = node.func.value
            elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                changed = node.value
            if isinstance(changed, ast.Name) and changed.id in own - local:
                found.add(changed.id)
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("known = {}\ndef add(x):\n    known[x] = 1", {"known"}),
        ("known: list[int] = []\ndef add(x):\n    known.append(x)", {"known"}),
        ("known = None\ndef set(x):\n    global known\n    known = x", {"known"}),
        ("known = {}\ndef add(known):\n    known[1] = 2", set()),
        ("known = {1: 2}\ndef look(x):\n    return known[x]", set()),
    ],
)
def test_what_a_registry_is(text: str, found: set[str]) -> None:
    assert written_at_run_time(ast.parse(text)) == found


def test_there_is_no_registry_at_module_level() -> None:
    """What stands in for functions of the standard library asks, thread by thread, which simulation runs there."""
    found = {
        (str(file.relative_to(ROOT)), name)
        for package in ("runtime", "nodes", "bridges", "polyrhythm")
        for file in (ROOT / package).rglob("*.py")
        for name in written_at_run_time(parsed(file))
    }
    assert found == {("runtime/virtual/sandbox.py", "_active")}


SAID = {"why", "reason", "refusal"}
"""How fields and variables are called that hold a sentence for people."""
READS = {"startswith", "endswith", "partition", "rpartition", "split", "find", "index", "removeprefix", "removesuffix"}


def sentences_read(tree: ast.AST) -> list[int]:
    """The lines in which a program looks into what is said to people."""

    def is_said(node: ast.expr) -> bool:
        return (node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "") in SAID

    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_read = node.func.attr in READS and is_said(node.func.value)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            is_read = isinstance(node.left, ast.Constant) and is_said(node.comparators[0])
        else:
            continue
        found += [node.lineno] if is_read else []
    return found


def test_the_search_for_sentences_that_are_read_finds_them() -> None:
    program = (
        "feedback.why.endswith(PLEASE)\n'reach' in why\nself.reason.partition(': ')\nname.endswith('x')\n"
        "why in known\ncode == 'consent'"
    )
    assert sorted(sentences_read(ast.parse(program))) == [1, 2, 3]


def test_programs_read_codes_and_not_sentences() -> None:
    among_themselves = {
        "nodes/msgs/robot.py": "puts mode and reason together for people",
        "nodes/episodes/results/figures.py": "the rules' exact words, in front of a colon",
        "nodes/policy/onnx/lerobot_process.py": "the last line of somebody else's program",
    }
    found = {
        str(file.relative_to(ROOT))
        for package in ("runtime", "nodes", "bridges")
        for file in (ROOT / package).rglob("*.py")
        if sentences_read(parsed(file))
    }
    assert found == set(among_themselves)
