"""A launch file says what runs; every mistake in it is a sentence that names file, table, key and the choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nodes.hello
from runtime.cli import main
from runtime.errors import LaunchFileError
from runtime.launch.file import as_recorded, check, find, in_order, load, override
from runtime.refusals import CODES
from tests.support.sentences import sentence

HELLO = """
[nodes.talker]
use = "nodes.hello:Talker"
params = { start = 40 }

[nodes.listener]
use = "nodes.hello:Listener"
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write graph.toml in the current folder, which the sentences then name without its path."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> Path:
        Path("graph.toml").write_text(text, encoding="utf-8")
        return Path("graph.toml")

    return written


def told(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What `polyrhythm check` says of graph.toml, which it must refuse as asked wrongly; without its code."""
    assert main(["check", "graph.toml", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("polyrhythm: ")
    words, _, code = captured.err.removeprefix("polyrhythm: ").removesuffix("]\n").rpartition(" [")
    assert code in CODES, captured.err
    return words


TALKER = '[nodes.talker]\nuse = "nodes.hello:Talker"\n'
NODE_KEYS = "after, host, hz, latency, params, process, remap, restart, stand_in, use"
RUN_KEYS = "beside, for_s, frozen_s, one_user, report, seed, start, view"

MISTAKES = {
    "graph.toml: unknown table [node]; did you mean 'nodes'? known: budgets, export, hosts, instead, "
    "links, nodes, processes, run, seats, watchdog": ('[node.talker]\nuse = "nodes.hello:Talker"'),
    f"graph.toml: {sentence('runtime.no_launch_tables')}": (
        'title = "A study"\ncode = "P{number}"\n[consent]\ntext = "You may stop at any time."'
    ),
    f"graph.toml: {sentence('runtime.no_nodes')}": "",
    f"graph.toml: [run] is 3; expected a table [run] with {RUN_KEYS}": "run = 3\n" + TALKER,
    f"graph.toml: [run] has the unknown key 'sed'; did you mean 'seed'? known: {RUN_KEYS}": TALKER + "[run]\nsed = 3",
    f"graph.toml: [run] seed is 'x'; {sentence('runtime.whole_number')}": TALKER + '[run]\nseed = "x"',
    f"graph.toml: [run] for_s is 0; {sentence('runtime.positive_seconds')}": TALKER + "[run]\nfor_s = 0",
    f"graph.toml: [run] view is 3; {sentence('runtime.module_name_expected')}": TALKER + "[run]\nview = 3",
    f"graph.toml: [nodes.Talker] {sentence('runtime.no_node_name')}": (TALKER.replace("talker", "Talker")),
    f"graph.toml: [nodes.talker] is 3; expected a table [nodes.talker] with {NODE_KEYS}": "[nodes]\ntalker = 3",
    f"graph.toml: [nodes.talker] has the unknown key 'parms'; did you mean 'params'? known: {NODE_KEYS}": TALKER
    + "parms = { start = 40 }",
    f"graph.toml: [nodes.talker] {sentence('runtime.no_use')}": "[nodes.talker]",
    "graph.toml: [nodes.talker] params is 3; expected a table": TALKER + "params = 3",
    'graph.toml: [nodes.talker] restart is \'sometimes\'; expected "always" or "on-failure" or "never"': (
        TALKER + 'restart = "sometimes"'
    ),
    "graph.toml: [nodes.talker] process is 'My Process'; expected a-z, 0-9 and _": TALKER + 'process = "My Process"',
    f"graph.toml: [nodes.talker] {sentence('runtime.names_no_class', use='nodes.hello')}": (
        '[nodes.talker]\nuse = "nodes.hello"'
    ),
    **{
        f"graph.toml: [nodes.talker] {sentence('runtime.names_no_class', use=use)}": f'[nodes.talker]\nuse = "{use}"'
        for use in ("..hello:Talker", ".hello:Talker", "nodes..hello:Talker", "nodes.:Talker", ":Talker")
    },
    f"graph.toml: [nodes.talker] {sentence('runtime.makes_no_node', use='nodes.hello:Beat', node='Talker')}": (
        TALKER + 'stand_in = "nodes.hello:Beat"'
    ),
    f"graph.toml: [nodes.talker] 'nodes.hello:Taker': {nodes.hello.__file__} has no 'Taker'; "
    "nodes there: Listener, Talker": '[nodes.talker]\nuse = "nodes.hello:Taker"',
    "graph.toml: [nodes.talker] 'no_such_package.hello:Talker': "
    + sentence("runtime.no_module", module="no_such_package"): ('[nodes.talker]\nuse = "no_such_package.hello:Talker"'),
    f"graph.toml: [nodes.talker] {sentence('runtime.is_no_node', use='nodes.hello:Beat', node='Beat')}": (
        '[nodes.talker]\nuse = "nodes.hello:Beat"'
    ),
    "graph.toml: [nodes.talker] 'broken_nodes:X': module 'broken_nodes' cannot be imported at broken_nodes.py:1: "
    "NameError: name 'missing' is not defined": '[nodes.talker]\nuse = "broken_nodes:X"',
    f"graph.toml: [nodes.talker] hz of 'tick' is 0; {sentence('runtime.rate_expected')}": TALKER + "hz = 0",
    f"graph.toml: [nodes.talker] hz of 'tick' is nan; {sentence('runtime.rate_expected')}": TALKER
    + "hz = { tick = nan }",
    f"graph.toml: [nodes.talker] hz of 'tick' is 1e+300; {sentence('runtime.rate_expected')}": (TALKER + "hz = 1e300"),
    f"graph.toml: [nodes.talker] hz of 'tick' is 1e-300; {sentence('runtime.rate_expected')}": (TALKER + "hz = 1e-300"),
    "graph.toml: [nodes.talker] hz.tick is true; expected a number": (TALKER + "hz = { tick = true }"),
    f"graph.toml: [run] for_s is inf; {sentence('runtime.positive_seconds')}": TALKER + "[run]\nfor_s = inf",
    f"graph.toml: [run] for_s is true; {sentence('runtime.positive_seconds')}": TALKER + "[run]\nfor_s = true",
    f"graph.toml: [run] seed is true; {sentence('runtime.whole_number')}": TALKER + "[run]\nseed = true",
    f"graph.toml: [nodes.talker] hz is 'fast'; {sentence('runtime.hz_expected')}": TALKER + 'hz = "fast"',
    f"graph.toml: [nodes.talker] hz {sentence('runtime.no_timer', name='tock', node='Talker', known='tick')}": (
        TALKER + "hz = { tock = 3 }"
    ),
    f"graph.toml: [nodes.listener] {sentence('runtime.hz_of_which_timer', hz=3, node='Listener', timers='(none)')}": (
        TALKER + '[nodes.listener]\nuse = "nodes.hello:Listener"\nhz = 3'
    ),
    f"graph.toml: [nodes.talker] talker.tick: {sentence('runtime.latency_expected', value=-1)}": (
        TALKER + "latency = -1"
    ),
    "graph.toml: [nodes.talker] unknown parameter 'begin' of Talker; known: start": TALKER + "params = { begin = 1 }",
    f"graph.toml: {sentence('runtime.rate_means_hz')}": TALKER + "rate = 20",
    f"graph.toml: {sentence('runtime.rate_is_no_parameter')}": TALKER + "params = { rate = 20 }",
    f"graph.toml: {sentence('runtime.byte_order_mark')}": "\ufeff" + TALKER,
    f"graph.toml: [nodes.talker] parameter 'start' of Talker is 'x'; {sentence('runtime.whole_number')}": (
        TALKER + 'params = { start = "x" }'
    ),
    "graph.toml: [nodes.policy] parameter 'tallest_m' of ExpertPolicy is nan; expected a number": (
        '[nodes.policy]\nuse = "nodes.policy.expert:ExpertPolicy"\nparams = { tallest_m = nan }'
    ),
    f"graph.toml: [nodes.policy] policy: {sentence('runtime.tallest_expected', value='1e+300')}": (
        '[nodes.policy]\nuse = "nodes.policy.expert:ExpertPolicy"\nparams = { tallest_m = 1e300 }'
    ),
    f"graph.toml: [nodes.sam] {sentence('runtime.wrong_patience', value='inf')}": (
        '[nodes.sam]\nuse = "nodes.sim.people.person:ScenarioPerson"\nparams = { patience_s = inf }'
    ),
    "graph.toml: [nodes.ana] temperature is -1; expected 0 to 2": (
        '[nodes.ana]\nuse = "nodes.episodes.agents.agent:Agent"\nparams = { temperature = -1 }'
    ),
    f"graph.toml: [nodes.checker] {sentence('runtime.parameter_is_missing', name='last', node='Checker')}": (
        '[nodes.checker]\nuse = "tests.support.graph_nodes:Checker"'
    ),
    f"graph.toml: [nodes.listener] topic {sentence('runtime.nobody_publishes', name='beat', node='listener')}; "
    "published topics: (none)": ('[nodes.listener]\nuse = "nodes.hello:Listener"'),
    "graph.toml: [nodes.listener] "
    + sentence("runtime.two_types", topic="count", node="listener", own="Beat", other="counter", others="Count"): (
        '[nodes.counter]\nuse = "tests.support.graph_nodes:Counter"\n'
        '[nodes.listener]\nuse = "nodes.hello:Listener"\nremap = { beat = "count" }'
    ),
    f"graph.toml: [nodes.right] topic 'image': left, right all publish it, but {sentence('runtime.two_publishers')}": (
        '[nodes.left]\nuse = "tests.support.graph_nodes:Painter"\n'
        '[nodes.right]\nuse = "tests.support.graph_nodes:Painter"'
    ),
    f"graph.toml: {sentence('runtime.two_restart_policies', process='both')}": (
        TALKER + 'process = "both"\n[nodes.listener]\nuse = "nodes.hello:Listener"\nprocess = "both"\nrestart = "never"'
    ),
    "graph.toml, line 3, column 14: is no TOML: Cannot declare ('nodes', 'talker') twice: [nodes.talker]": (
        TALKER + TALKER
    ),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_refused_before_anything_starts(
    write: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    write(MISTAKES[words])
    Path("broken_nodes.py").write_text("print(missing)")
    monkeypatch.syspath_prepend(Path.cwd())
    assert told(capsys) == words


def test_a_model_file_that_is_missing_is_told_before_anything_starts(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write('[nodes.policy]\nuse = "nodes.policy.onnx.policy:OnnxPolicy"\nparams = { model = "cup.onnx" }')
    assert told(capsys) == "graph.toml: [nodes.policy] model 'cup.onnx' does not exist"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("talker", sentence("runtime.set_expected", change="talker")),
        ("talker=3", sentence("runtime.set_expected", change="talker=3")),
        ("taker.start=3", "--set taker.start=3: there is no node 'taker'; known: listener, talker"),
        ("talker.begin=3", "graph.toml: [nodes.talker] unknown parameter 'begin' of Talker; known: start"),
        (
            "talker.start=x",
            f"graph.toml: [nodes.talker] parameter 'start' of Talker is 'x'; {sentence('runtime.whole_number')}",
        ),
        ("talker.hz=0", f"graph.toml: [nodes.talker] hz of 'tick' is 0; {sentence('runtime.rate_expected')}"),
        ("talker.use.x=1", "--set talker.use.x=1: 'use' is 'nodes.hello:Talker', not a table"),
        ("run.sed=3", f"graph.toml: [run] has the unknown key 'sed'; did you mean 'seed'? known: {RUN_KEYS}"),
    ],
)
def test_a_mistake_in_set_is_refused_in_words(
    write: Any, capsys: pytest.CaptureFixture[str], override: str, words: str
) -> None:
    write(HELLO)
    assert told(capsys, "--set", override) == words


@pytest.mark.parametrize("text", ["nodes = 3", "[nodes]\ntalker = 3"])
def test_set_on_a_broken_file_tells_what_is_wrong_with_the_file(
    write: Any, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    write(text)
    assert told(capsys, "--set", "talker.start=3").startswith("graph.toml: ")


def test_a_file_that_is_not_there_is_told_with_the_shipped_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "no_such_file"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"polyrhythm: no_such_file: {sentence('runtime.no_launch_file')} ")
    assert "hello" in error


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mine", "did you mean mine.toml? "),
        ("my/arms.toml", "did you mean my/arm.toml? "),
        ("lapptop", "did you mean laptop? "),
        ("my", sentence("runtime.is_a_folder", files="my/arm.toml")),
        ("empty", sentence("runtime.is_an_empty_folder")),
    ],
)
def test_a_name_that_is_nearly_right_is_told_with_what_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("my", "empty"):
        (tmp_path / folder).mkdir()
    for file in ("mine.toml", "my/arm.toml"):
        (tmp_path / file).write_text("")
    assert main(["check", name]) == 2
    assert told in capsys.readouterr().err


def test_bytes_that_are_no_text_are_told(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write("").write_bytes(b"\xff\xf0")
    assert told(capsys).startswith(f"graph.toml: {sentence('runtime.no_utf8', byte=0)}")


def test_a_file_that_fits_is_told_so(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(HELLO)
    assert main(["check", "graph.toml"]) == 0
    assert (
        capsys.readouterr().out
        == f"graph.toml: 2 nodes in 2 processes on 1 topic; {sentence('runtime.all_of_it_fits')}\n"
    )


def test_the_graph_is_drawn(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(HELLO)
    assert main(["graph", "graph.toml"]) == 0
    assert capsys.readouterr().out == (
        "process talker: talker (Talker)\nprocess listener: listener (Listener)\n"
        "beat  [Beat, event]\n    talker -> listener\n"
    )
    assert main(["graph", "graph.toml", "--mermaid"]) == 0
    assert capsys.readouterr().out == "flowchart LR\n    talker -- beat --> listener\n"


def test_values_reach_the_nodes(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYRHYTHM_MODEL", "tiny")
    launch = load(write(HELLO + "[run]\nseed = 7\nfor_s = 2.5\n"), ["talker.start=50", "talker.hz=4", "run.seed=8"])
    check(launch)
    spec = launch.graph.nodes["talker"]
    assert (spec.params, spec.hz, launch.seed, launch.for_s) == ({"start": 50}, {"tick": 4.0}, 8, 2.5)
    assert launch.text.endswith("for_s = 2.5\n")


def test_a_parameter_may_come_from_the_environment_and_is_recorded_as_written(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYRHYTHM_MODEL", "tiny")
    file = write(
        '[nodes.policy]\nuse = "tests.runtime.launch.test_graph:Picky"\nparams = { model = "${POLYRHYTHM_MODEL}" }'
    )
    graph = load(file).graph
    assert graph.nodes["policy"].params == {"model": "tiny"}
    assert graph.facts["parameters"] == {"policy": {"model": "${POLYRHYTHM_MODEL}"}}, "it may be a key"


def test_a_key_that_is_typed_is_recorded_as_the_variable_from_which_a_replay_takes_it(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY_OF_MODELS", "sk-another")
    lying = str(Path(__file__))
    node = '[nodes.cloud]\nuse = "nodes.policy.remote.openpi:OpenPiPolicy"'
    graph = load(write(node), overrides=["cloud.key=sk-123456"]).graph
    assert graph.nodes["cloud"].params["key"] == "sk-123456"
    assert graph.facts["parameters"]["cloud"]["key"] == "${CLOUD_KEY}"
    changes = ["cloud.key=sk-1", 'cloud.params.password = "pw"', f"cloud.key={lying}", "cloud.key=THE_KEY_OF_MODELS"]
    changes += ["cloud.max_tokens=20", "cloud.key=${NAME}", "talker.start=4"]
    kept = ['cloud.key="${CLOUD_KEY}"', 'cloud.params.password="${CLOUD_PASSWORD}"']
    assert as_recorded(changes) == [*kept, *changes[2:]]


def test_an_old_module_that_a_users_file_imports_is_told_with_its_line_and_its_new_name(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project_of_before.py").write_text("import json\nfrom runtime.msgs import Utterance\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LaunchFileError) as refusal:
        load(write('[nodes.ears]\nuse = "project_of_before:Ears"'))
    told = sentence("runtime.old_module_imported", line=f"{tmp_path / 'project_of_before.py'}:2")
    assert str(refusal.value).endswith(told)


def test_another_class_starts_without_the_parameters_of_the_first(write: Any) -> None:
    launch = load(write(HELLO), ["talker.use=nodes.hello:Listener"])
    assert launch.graph.nodes["talker"].params == {}


def test_nodes_share_a_process_by_its_name(write: Any) -> None:
    together = HELLO.replace("[nodes.listener]", 'process = "both"\n[nodes.listener]\nprocess = "both"')
    assert list(load(write(together)).processes) == ["both"]
    assert list(load(write(HELLO)).processes) == ["talker", "listener"]


def test_a_shipped_file_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find("hello").name == "hello.toml"
    with pytest.raises(LaunchFileError):
        find("hello.yaml")


@pytest.mark.parametrize("for_s", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_that_is_no_time_is_refused(capsys: pytest.CaptureFixture[str], for_s: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "hello", f"--for={for_s}"])
    assert caught.value.code == 2
    assert f"argument --for: {for_s} {sentence('runtime.no_positive_seconds')}" in capsys.readouterr().err


def test_an_unknown_command_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fly"]) == 2
    error = capsys.readouterr().err
    assert "there is no command 'fly'" in error
    assert all(command in error for command in ("run", "check", "graph"))


def test_a_node_is_added_to_a_file_and_gets_parameters_like_any_other(write: Any) -> None:
    path = write(TALKER)
    launch = load(path, ["ear.process=one"], added=["ear=nodes.hello:Listener"])
    assert set(launch.graph.nodes) == {"talker", "ear"}
    assert set(launch.processes) == {"talker", "one"}
    assert "ear" not in load(path).graph.nodes


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ("ear", "expected name=module:Class"),
        ("talker=nodes.hello:Listener", "there is a node 'talker' already"),
        ("ear=nodes.hello:Lisener", "has no 'Lisener'"),
    ],
)
def test_a_node_that_cannot_be_added_is_a_sentence(write: Any, added: str, words: str) -> None:
    path = write(TALKER)
    with pytest.raises(LaunchFileError) as refusal:
        load(path, added=[added])
    assert words in str(refusal.value)


INSTEAD = """
[instead.other]
node = "talker"
use  = "nodes.hello:Listener"
"""


def test_what_stands_ready_takes_its_nodes_place_when_it_is_set(write: Any) -> None:
    file = write(HELLO.replace("params", "hz = 3\nparams") + INSTEAD)
    assert load(file).tables["nodes"]["talker"]["use"] == "nodes.hello:Talker"
    tables = dict(load(file).tables)
    override(tables, "other.speed=2")
    assert tables["nodes"]["talker"] == {"use": "nodes.hello:Listener", "params": {"speed": 2}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"talker"', '"nobody"'), "[instead.other] node is 'nobody'; known: listener, talker"),
        (("use ", "using "), "[instead.other] has the unknown key 'using'; known: node, use"),
        (("node = ", "node = 3 #"), f"[instead.other] node is 3; {sentence('runtime.instead_expected')}"),
    ],
)
def test_a_wrong_instead_is_told_before_anybody_asks_for_it(
    write: Any, capsys: pytest.CaptureFixture[str], change: tuple[str, str], words: str
) -> None:
    write(HELLO + INSTEAD.replace(*change))
    assert told(capsys) == f"graph.toml: {words}"


def test_what_stands_ready_is_among_what_can_be_set(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(HELLO + INSTEAD)
    assert told(capsys, "--set", "third.start=3").endswith("no node 'third'; known: listener, other, talker")


def test_a_value_that_is_set_before_its_nodes_class_is_not_lost(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(HELLO.replace('"nodes.hello:Talker"\nparams', '"nodes.hello:Listener"\n#'))
    launch = load(file, ["talker.start=7", "talker.use=nodes.hello:Talker"])
    assert launch.graph.nodes["talker"].params == {"start": 7}
    refused = told(capsys, "--set", "talker.start=four", "--set", "talker.use=nodes.hello:Talker")
    assert (
        refused
        == f"graph.toml: [nodes.talker] parameter 'start' of Talker is 'four'; {sentence('runtime.whole_number')}"
    )


def test_a_second_class_still_drops_what_was_set_for_the_first(write: Any) -> None:
    changes = ["talker.use=nodes.hello:Talker", "talker.start=7", "talker.use=nodes.hello:Listener"]
    assert in_order(changes) == changes
    assert load(write(HELLO), changes).graph.nodes["talker"].params == {}


def test_set_tells_a_nodes_host_from_a_parameter_of_that_name() -> None:
    tables: dict[str, Any] = {
        "nodes": {"link": {"use": "my_robot.link:Link"}, "study": {"use": "my_robot.study:Study"}},
        "hosts": {"robot": {}, "desktop": {}},
    }
    override(tables, "link.host=10.0.0.7")
    override(tables, "study.host=desktop")
    override(tables, "study.params.host=desktop")
    assert tables["nodes"]["link"] == {"use": "my_robot.link:Link", "params": {"host": "10.0.0.7"}}
    assert tables["nodes"]["study"] == {
        "use": "my_robot.study:Study", "host": "desktop", "params": {"host": "desktop"}
    }  # fmt: skip


@pytest.mark.parametrize("name", ["graph.toml", "stretch"])
def test_check_tells_which_variables_are_missing_here_and_run_refuses(
    name: str, write: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(TALKER + 'params = { start = "${OPENAI_API_KEY}" }')
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VLM_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    unset = sentence("runtime.variable_is_not_set", variable="OPENAI_API_KEY")
    assert main(["check", name]) == 0
    assert (unset if name == "graph.toml" else "OPENAI_API_KEY is not set") in capsys.readouterr().out
    assert main(["check", name, "--json"]) == 0
    assert "OPENAI_API_KEY" in json.loads(capsys.readouterr().out)["missing_variables"][0]
    assert main(["graph", name]) == 0
    assert main(["run", name, "--for", "1"]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err
