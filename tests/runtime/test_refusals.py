"""What is refused has a short code beside its sentence: shown by `check`, and each on the page of codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nodes.hello import Beat, Listener, Talker
from runtime import Graph, GraphError, LaunchFileError, Message, Node, NodeSpec, Publisher, QoS, Subscription, every, on
from runtime.cli import main
from runtime.launch.file import check, load
from runtime.refusals import CODES, code_of

ROOT = Path(__file__).resolve().parents[2]

TALKER = '[nodes.talker]\nuse = "nodes.hello:Talker"\n'
LISTENER = '[nodes.listener]\nuse = "nodes.hello:Listener"\n'
HELLO = TALKER + LISTENER
PATH = '[budgets.paths.beat]\ntopics = ["beat"]\norigin = "beat"\n'

REFUSED = {
    "P002": "[nodes.talker\n",
    "P003": HELLO + "[nodse.x]\n",
    "P004": HELLO + '[run]\nseed = "seven"\n',
    "P010": '[nodes.talker]\nuse = "nodes.hello:Tolker"\n',
    "P011": TALKER + "[nodes.talker.params]\nstrat = 4\n",
    "P012": TALKER + '[nodes.talker.params]\nstart = "four"\n',
    "P013": f'[nodes.one]\nuse = "{__name__}:Moody"\n',
    "P015": HELLO + '[run]\nreport = "nodes.hello:Nope"\n',
    "P020": f'[nodes.one]\nuse = "{__name__}:Deaf"\n',
    "P021": f'[nodes.one]\nuse = "{__name__}:TwoOwners"\n',
    "P023": HELLO + "[nodes.talker.hz]\ntock = 4\n",
    "P030": TALKER + f'[nodes.other]\nuse = "{__name__}:OtherBeat"\n',
    "P032": LISTENER,
    "P031": f'[nodes.one]\nuse = "{__name__}:Standing"\n[nodes.two]\nuse = "{__name__}:Hurried"\n',
    "P033": f'[nodes.one]\nuse = "{__name__}:Standing"\n[nodes.two]\nuse = "{__name__}:Standing"\n',
    "P034": "".join(f'[nodes.{name}]\nuse = "nodes.interrupts.coordinator:Coordinator"\n' for name in ("one", "two")),
    "P040": HELLO + '[seats.policy]\nholder = "talker"\n',
    "P041": HELLO + '[hosts.robot]\naddress = "127.0.0.1"\n',
    "P042": HELLO + '[links.air]\nfrom = ["tolker"]\ndelay = 0.1\n',
    "P043": HELLO + "[budgets.models.tolker]\ncalls = 4\n",
    "P045": '[nodes.talker]\nuse = "nodes.hello:Talker"\nprocess = "one"\nrestart = "never"\n'
    '[nodes.listener]\nuse = "nodes.hello:Listener"\nprocess = "one"\n',
}


class Word(Message):
    """Another message than a beat."""

    text: str = ""


class OtherBeat(Node):
    """Publishes another type on the topic of beats."""

    beat = Publisher(Word, "beat")


class Place(Message, kind="state"):
    """A state."""

    x_m: float = 0.0


class Standing(Node):
    """Publishes a state, without a promise of how often."""

    place = Publisher(Place, "place")


class Hurried(Node):
    """Wants the newest one also where it starts later."""

    place = Subscription(Place, "place", qos=QoS(late_join=True))


class Moody(Node):
    """Refuses to start."""

    def problems(self) -> list[str]:
        return ["it is Monday; wait for Tuesday"]


class Deaf(Node):
    """Its handler takes no message."""

    beat = Subscription(Beat, "beat")

    @on(beat)  # type: ignore[arg-type]  # the mistake
    def heard(self) -> None:
        """Hear nothing."""


class TwoOwners(Node):
    """Two sides assign one attribute."""

    def __init__(self) -> None:
        self.count = 0

    @every(hz=2, blocking=True)
    def work(self) -> None:
        self.count = self.count + 1

    @every(hz=2)
    def rest(self) -> None:
        self.count = 0


@pytest.mark.parametrize("code", REFUSED)
def test_check_ends_a_sentence_with_the_code_of_its_kind(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "graph.toml"
    file.write_text(REFUSED[code], encoding="utf-8")
    assert main(["check", str(file)]) == 2
    assert capsys.readouterr().err.endswith(f" [{code}]\n")
    assert main(["check", str(file), "--json"]) == 2
    told = capsys.readouterr()
    refused = json.loads(told.out)
    assert refused["code"] == code
    assert told.err == f"polyrhythm: {refused['refused']} [{code}]\n"  # the sentence itself is without it


@pytest.mark.parametrize(
    ("arguments", "code"), [(["no-such-file"], "P001"), (["hello", "--set", "tolker.start=4"], "P005")]
)
def test_a_file_and_an_option_that_are_not_there_have_codes(
    arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments]) == 2
    assert capsys.readouterr().err.endswith(f" [{code}]\n")


def test_a_run_refuses_with_the_same_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.toml"
    file.write_text(LISTENER, encoding="utf-8")
    assert main(["run", str(file), "--virtual", "--for", "1"]) == 2
    assert capsys.readouterr().err.endswith(" [P032]\n")


def test_a_variable_that_is_not_set_has_a_code_when_it_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("START_COUNT", raising=False)
    file = tmp_path / "graph.toml"
    file.write_text(TALKER + '[nodes.talker.params]\nstart = "${START_COUNT}"\n', encoding="utf-8")
    assert main(["run", str(file), "--virtual", "--for", "1"]) == 2
    assert capsys.readouterr().err.endswith(" [P014]\n")


def test_in_python_the_code_is_a_field_of_the_problem(tmp_path: Path) -> None:
    graph = Graph([NodeSpec("listener", Listener), NodeSpec("other", Talker, {"strat": 4})])
    assert {code_of(problem) for _, problem in graph.problems()} == {"P011"}
    with pytest.raises(GraphError) as raised:
        Graph([NodeSpec("listener", Listener)]).check()
    assert raised.value.code == "P032"
    file = tmp_path / "graph.toml"
    file.write_text(TALKER + "[nodes.talker.params]\nstrat = 4\n", encoding="utf-8")
    with pytest.raises(LaunchFileError) as refused:
        check(load(file))
    assert refused.value.code == "P011"


def test_a_budget_that_cannot_be_kept_has_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "laptop", "--set", "budgets.paths.eye_to_hand.p99_s=0.001"]) == 2
    assert capsys.readouterr().err.endswith(" [P044]\n")


def test_the_page_lists_each_code_with_its_kind_and_what_to_do() -> None:
    page = (ROOT / "docs" / "reference" / "codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (P\d{3}) \| ([^|]+) \| ([^|]+) \|$", page, flags=re.MULTILINE)
    assert {code: what for code, what, _ in rows} == CODES
    assert len(rows) == len(CODES)
    assert all(do.strip() for _, _, do in rows)


@pytest.mark.parametrize("code", CODES)
def test_each_code_is_given_somewhere(code: str) -> None:
    sources = list((ROOT / "runtime").rglob("*.py"))
    assert sum(path.read_text(encoding="utf-8").count(f'"{code}"') for path in sources) >= 2  # besides the table
