"""A moment of a run has one name: whole, cut, split, recovered or saved from a ring, recordings tell the same time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.hello import Beat
from nodes.mcap.file import BagReader, BagWriter
from nodes.mcap.parts import parts_of
from nodes.msgs import JointCommand, Utterance
from nodes.recording.bag.causes import trace
from nodes.recording.bag.command import main
from nodes.recording.bag.plot import Curves, rate
from nodes.recording.bag.recording import Recording
from nodes.recording.recorder import Recorder, SaveRecording
from nodes.report.run import read_run
from runtime.clock import to_ns
from runtime.journal.calls import CallRecord, Calls
from runtime.message import Envelope, Stamped
from tests.nodes.recording.test_recorder import said
from tests.nodes.recording.test_ring_buffer import Now, on_clock
from tests.support.sentences import sentence
from tests.support.synthetic_run import START_NS, write_run


class RealNow(Now):
    is_virtual = False


def on_real_clock(folder: Path, **parameters: object) -> tuple[Recorder, Now]:
    return on_clock(folder, RealNow(), **parameters)


Row = tuple[str, int, float]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"), seconds=20.0)


@pytest.fixture(scope="module")
def piece(run: Path) -> Path:
    """Its seconds 10 to 15."""
    path = run.with_name("piece.mcap")
    assert main(["cut", str(run), "--from", "10", "--to", "15", "--out", str(path)]) == 0
    return path


def times(path: Path, capsys: pytest.CaptureFixture[str]) -> list[Row]:
    """The messages by topic and number with their run times, as the export tells them."""
    out = path.with_suffix(".jsonl")
    out.unlink(missing_ok=True)  # of another test
    assert main(["export", str(path), "--to", "jsonl", "--out", str(out)]) == 0
    capsys.readouterr()
    rows: list[dict[str, Any]] = [json.loads(line) for line in out.read_text().splitlines()]
    return [(row["topic"], row["envelope"]["seq"], row["at_s"]) for row in rows]


def test_a_cut_keeps_the_times_of_its_run(run: Path, piece: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = times(piece, capsys)
    assert kept == [row for row in times(run, capsys) if 10.0 <= row[2] <= 15.0]
    assert len(kept) > 100
    there, here = (trace(Recording(path), at_s=12.31) for path in (run, piece))
    assert (here.command, here.at_s) == (there.command, there.at_s)
    assert here.at_s == pytest.approx(12.31)
    assert main(["why", str(piece), "--at", "12.31"]) == 0
    assert sentence("recording.begins_late", at_s="10.000") in capsys.readouterr().out


def test_a_cut_keeps_what_its_last_calls_read_though_that_was_recorded_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    for seq in range(1, 41):
        at_ns = to_ns(seq / 10)
        writer.write(Stamped(Utterance(speaker="Ann", text=f"{seq}"), Envelope("heard", "ann", seq, at_ns)))
        writer.write(Stamped(JointCommand(position=(0.0,) * 8), Envelope("robot/command", "guard", seq, at_ns)))
        if seq % 10 == 0:
            calls = tuple(
                CallRecord(handler="tick", started_ns=to_ns(one / 10), took_ns=1, epochs={},
                           trigger=f"heard:ann:{one}", sent=(f"robot/command:guard:{one}",))
                for one in range(seq - 9, seq + 1)
            )  # fmt: skip
            batch = Calls(node="guard", calls=calls)
            writer.write(Stamped(batch, Envelope("calls/guard", "guard", seq // 10, at_ns)))
    writer.close()
    piece = tmp_path / "piece.mcap"
    assert main(["cut", str(tmp_path / "run.mcap"), "--from", "1.05", "--to", "2.75", "--out", str(piece)]) == 0
    found = trace(Recording(piece), at_s=2.7)
    assert (found.has_journal, [step.ident for step in found.steps]) == (
        True,
        ["heard:ann:27", "robot/command:guard:27"],
    )
    capsys.readouterr()
    assert main(["info", str(piece), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["to_s"] == pytest.approx(2.7)  # nothing happened when that was recorded


def test_a_cut_of_nothing_says_what_there_is(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cut", str(run), "--from", "300", "--out", str(tmp_path / "x.mcap")]) == 1
    assert f"{sentence('recording.nothing_left', from_s='0.000')} " in capsys.readouterr().out


def test_a_cut_of_a_cut_is_asked_for_in_the_same_times(
    run: Path, piece: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smaller = piece.with_name("smaller.mcap")
    assert main(["cut", str(piece), "--from", "12", "--to", "13", "--out", str(smaller)]) == 0
    assert times(smaller, capsys) == [row for row in times(run, capsys) if 12.0 <= row[2] <= 13.0]
    assert (
        main(["cut", str(piece), "--from", "2", "--to", "3", "--out", str(piece.with_name("none.mcap"))]) == 1
    )  # the cut begins at 10 s


def test_info_and_plot_show_where_in_its_run_a_cut_is(piece: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(piece), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert (info["from_s"], info["to_s"], info["duration_s"]) == pytest.approx((10.0, 15.0, 5.0))
    assert main(["info", str(piece)]) == 0
    assert "piece.mcap: 5.0 s (10.0 to 15.0 s of its run), " in capsys.readouterr().out
    curves = Curves(Recording(piece))
    assert (curves.begin_s, curves.end_s) == pytest.approx((10.0, 15.0))
    assert rate(curves.counts["robot/state"], curves.begin_s, curves.end_s) == ([10, 11, 12, 13, 14], [20.0] * 5)


def test_a_plot_has_a_part_for_what_there_is_and_no_empty_one(run: Path, tmp_path: Path) -> None:
    def parts(path: Path) -> list[str]:
        return [panel.__name__ for panel in Curves(Recording(path)).panels]

    assert parts(run) == ["_rates", "_ages", "_joints", "_events"]
    writer = BagWriter(tmp_path / "words.mcap", {"clock": "virtual"})
    for seq in range(1, 41):
        at_ns = to_ns(seq / 10)
        writer.write(Stamped(Beat(count=seq), Envelope("beat", "talker", seq, at_ns)))
        if seq % 20 == 0:
            writer.write(Stamped(Beat(count=seq), Envelope("slow", "talker", seq, at_ns)))
    writer.close()
    assert parts(tmp_path / "words.mcap") == ["_rates", "_events"]
    curves = Curves(Recording(tmp_path / "words.mcap"))
    assert (curves.streams, curves.events) == (["beat"], {"slow": [2.0, 4.0]})
    instant = BagWriter(tmp_path / "instant.mcap", {"clock": "virtual"})
    instant.write(Stamped(Beat(count=1), Envelope("beat", "talker", 1, 0)))
    instant.close()
    assert parts(tmp_path / "instant.mcap") == ["_events"], "in no time there is no rate"
    picture = tmp_path / "plot.png"
    assert main(["plot", str(tmp_path / "instant.mcap"), "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_report_on_a_cut_tells_of_its_seconds(piece: Path) -> None:
    found = read_run(piece)
    assert (found.begin_s, found.end_s, found.duration_s) == pytest.approx((10.0, 15.0, 5.0))
    assert [round(found.at_s(one.envelope.published_ns), 3) for one in found.heard.messages] == [14.0]


def test_a_recovered_recording_whose_first_seconds_are_lost_keeps_its_times(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(run.read_bytes())
    first = data.index(b"\x04\x00\x00\x00zstd") + 100
    data[first] ^= 255  # in the first chunk of messages
    damaged = tmp_path / "damaged.mcap"
    damaged.write_bytes(data)
    sound = tmp_path / "sound.mcap"
    assert main(["recover", str(damaged), "--out", str(sound)]) == 1
    found, whole = times(sound, capsys), times(run, capsys)
    assert 0 < len(found) < len(whole)
    assert set(found) <= set(whole)
    assert Recording(sound).start_ns == START_NS


def test_a_later_part_alone_and_the_parts_joined_tell_the_same_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder, clock = on_real_clock(tmp_path, split_s=10.0)
    for second in range(1, 35):
        clock.at_s = second
        recorder.on_any(said(second))
        recorder.flush()
    recorder.on_stop()
    whole = times(tmp_path / "run.mcap", capsys)
    assert whole[0] == ("words", 1, 0.0)
    parts = parts_of(tmp_path / "run.mcap")
    assert [row for part in parts[1:] for row in times(part, capsys)] == whole[10:]
    assert Recording(parts[1]).begin_ns == 10_000_000_000
    joined = tmp_path / "joined.mcap"
    assert main(["merge", *map(str, reversed(parts)), "--out", str(joined)]) == 0
    assert times(joined, capsys) == whole
    assert Recording(joined).end["messages"] == "4"  # of the last part, which knows the run's end
    assert Recording(joined).damage == []
    assert Recording(joined).begin_ns == Recording(joined).start_ns


def test_a_part_that_is_gone_is_told_and_so_is_one_that_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder, clock = on_real_clock(tmp_path, split_s=10.0)
    for at_s in range(1, 35):
        clock.at_s = at_s
        recorder.on_any(said(at_s))
        recorder.flush()
    recorder.on_stop()
    whole, first, second, third, last = tmp_path / "run.mcap", *parts_of(tmp_path / "run.mcap")
    assert main(["info", str(whole)]) == 0
    assert "!" not in capsys.readouterr().out
    main(["info", str(third)])
    assert f"! {third}: {sentence('recording.goes_on_elsewhere', file='run-4.mcap')}" in capsys.readouterr().out
    second.unlink()
    main(["info", str(first)])
    assert f"! {first}: goes on in run-2.mcap, which is not there" in capsys.readouterr().out
    assert main(["recover", str(first), "--out", str(tmp_path / "sound.mcap")]) == 1
    assert last.is_file()


def test_what_a_ring_saves_is_told_in_the_time_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder, clock = on_real_clock(tmp_path, ring_s=5.0)
    for second in range(100, 161):
        clock.at_s = second
        recorder.on_any(said(second))
    recorder.save_ring(SaveRecording(reason="it fell"))
    recorder.on_stop()
    assert times(tmp_path / "run.mcap", capsys) == [("words", 100 + second, float(second)) for second in range(55, 61)]
    assert BagReader(tmp_path / "run.mcap").metadata["run"]["begin_ns"] == str(155_000_000_000)


@pytest.mark.parametrize("forged", ["", "-1", "x", "9" * 5000, str(1 << 70)])
def test_a_forged_time_zero_is_passed_over(forged: str, tmp_path: Path) -> None:
    recorder, _ = on_real_clock(tmp_path)
    recorder.run_info = recorder.run_info.noting(zero_ns=forged, begin_ns=forged)
    recorder.on_stop()
    recorder.bag = recorder.open_next()
    recorder.on_any(said(7))
    recorder.on_stop()
    found = Recording(tmp_path / "run.mcap")
    assert found.start_ns == found.begin_ns == 7_000_000_000
