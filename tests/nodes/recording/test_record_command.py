"""`polyrhythm record` beside a run that nobody prepared for it: what comes from now on is in a file like any other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.hello import Beat
from nodes.mcap.file import BagReader
from nodes.recording.record_command import main
from runtime.supervision.registry import FoundRun
from tests.support.running import Runs
from tests.support.sentences import sentence

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoundRun]:
    """The shipped graph, whose talker talks ten times as often."""
    shipped = (ROOT / "launch" / "hello.toml").read_text()
    use = 'use    = "nodes.hello:Talker"\n'
    assert use in shipped
    launch = tmp_path_factory.mktemp("quick") / "hello.toml"
    launch.write_text(shipped.replace(use, use + "hz = 20\n"))
    with pytest.MonkeyPatch.context() as patch, Runs(patch) as runs:
        yield runs.start(launch)


def test_what_is_published_from_now_on_is_recorded_in_order_and_none_is_missed(
    run: FoundRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "talk.mcap"
    assert main(["--for", "1.5", "--out", str(out)]) == 0
    assert "missed" not in capsys.readouterr().out
    reader = BagReader(out)
    messages = list(reader)
    beats = [message.message(Beat).count for message in messages if message.topic == "beat"]
    assert len(beats) >= 15
    assert beats == list(range(beats[0], beats[0] + len(beats)))
    assert {"health/talker", "health/listener"} <= {message.topic for message in messages}
    assert reader.is_complete
    about = reader.metadata["run"]
    assert (about["clock"], about["attached"], about["seed"]) == ("real", "true", "0")
    assert "launch.toml" in reader.attachments


def test_only_the_topics_that_are_wanted_are_recorded(run: FoundRun, tmp_path: Path) -> None:
    for number, more in enumerate(
        (["--topic", "beat"], ["--exclude", "health/talker", "--exclude", "health/listener"])
    ):
        out = tmp_path / f"{number}.mcap"
        assert main(["--for", "1.5", "--out", str(out), *more]) == 0
        assert {message.topic for message in BagReader(out)} == {"beat"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--topic", "beats"], sentence("recording.no_topic", topic="beats")),
        (["--exclude", "beats"], sentence("recording.no_topic", topic="beats")),
        (["--topic", "beat", "--exclude", "beat"], sentence("recording.no_topic_left")),
        (["--run", "nobody"], "no such run"),
    ],
)
def test_what_is_asked_wrongly_is_said_and_nothing_is_written(
    run: FoundRun, more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "talk.mcap"
    assert main(["--out", str(out), *more]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_a_recording_that_is_there_stays(run: FoundRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "talk.mcap"
    out.write_bytes(b"precious")
    assert main(["--out", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert out.read_bytes() == b"precious"


def test_a_folder_that_cannot_be_made_is_said(
    run: FoundRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "file" / "talk.mcap")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_without_a_graph_there_is_nothing_to_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Runs(monkeypatch):
        assert main(["--out", str(tmp_path / "talk.mcap")]) == 1
    assert "no graph runs" in capsys.readouterr().err


def test_however_often_it_is_interrupted_the_file_is_closed(run: FoundRun, tmp_path: Path) -> None:
    out = tmp_path / "talk.mcap"
    code = """
import os, signal, sys
from nodes.recording.record_command import main
from nodes.recording.recorder import Recorder
stop = Recorder.on_stop
def interrupted(self):
    os.kill(os.getpid(), signal.SIGINT)
    stop(self)
Recorder.on_stop = interrupted
sys.exit(main(["--for", "1", "--out", sys.argv[1]]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert BagReader(out).is_complete


def test_a_disk_that_is_full_ends_the_recording_with_a_sentence(run: FoundRun, tmp_path: Path) -> None:
    out = tmp_path / "talk.mcap"
    code = """
import resource, signal, sys
from nodes.recording.record_command import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))
sys.exit(main(["--for", "60", "--out", sys.argv[1]]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert str(out) in done.stderr
