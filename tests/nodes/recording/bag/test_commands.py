"""`polyrhythm bag` looks into recordings, repairs, cuts, joins and compares them, and refuses in sentences."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader

from nodes.mcap.file import BagReader, BagWriter, next_chunk
from nodes.mcap.parts import part_of, parts_of
from nodes.msgs import Action, Image, Utterance
from nodes.recording.bag.command import COMMANDS, main
from nodes.recording.bag.diff import first_difference
from nodes.recording.images import SCHEMA, SCHEMA_NAME, depth_document, image_document
from runtime.message import Envelope, Message, Stamped
from tests.support.sentences import sentence
from tests.support.synthetic_run import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"), seconds=20.0)


def said(seq: int, at_s: float, text: str = "") -> Stamped[Utterance]:
    envelope = Envelope("said", "robot", seq, round(at_s * 1e9))
    return Stamped(Utterance(speaker="robot", text=text or f"line {seq}"), envelope)


def write(path: Path, *stamped: Stamped[Message], about: dict[str, str] | None = None, close: bool = True) -> Path:
    writer = BagWriter(path, {"clock": "virtual", "seed": "7", **(about or {})})
    for one in stamped:
        writer.write(one)
    if close:
        writer.close({"outcome": '{"ok":true,"reason":""}'})
    else:
        writer.flush()
        writer.abandon()
    return path


def texts(path: Path) -> list[str]:
    return [message.message(Utterance).text for message in BagReader(path)]


def test_info_tells_rates_gaps_ages_and_drops(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(run), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    topics = {topic["topic"]: topic for topic in info["topics"]}
    assert topics["robot/state"]["hz"] == pytest.approx(20.0, rel=0.01)
    assert topics["command"]["oldest_image_s"] == pytest.approx(0.14)
    assert topics["robot/state"]["longest_gap_s"] == pytest.approx(39.05)
    assert topics["description"]["longest_gap_s"] == pytest.approx(39.2), "silence up to the end is a gap"
    assert info["dropped"]["overwritten"] > 0
    assert info["is_complete"]
    assert main(["info", str(run)]) == 0
    assert "robot/state" in capsys.readouterr().out


def test_info_counts_sequence_numbers_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", str(write(tmp_path / "a.mcap", said(1, 1), said(2, 2), said(5, 3))), "--json"])
    assert json.loads(capsys.readouterr().out)["topics"][0]["missing"] == 2
    main(["info", str(tmp_path / "a.mcap")])  # its recorder was started again, and so knows nothing of them
    told = capsys.readouterr().out
    assert sentence("recording.missed_nothing", number=2) in told
    assert sentence("recording.delivery_is_unknown") in told


def test_a_topic_that_changes_its_type_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Stamped(Action(id="a", skill="look"), Envelope("said", "robot", 2, 2))
    assert main(["info", str(write(tmp_path / "a.mcap", said(1, 1), other))]) == 0
    assert sentence("recording.topic_changes_type", topic="said", types="Action, Utterance") in capsys.readouterr().out


def test_equal_recordings_do_not_differ(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(run), str(run)]) == 0
    assert capsys.readouterr().out.startswith("identical: ")


def test_diff_names_the_first_difference_with_both_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path / "a.mcap", said(1, 1), said(2, 2, "tea"), said(3, 3, "x"))
    two = write(tmp_path / "b.mcap", said(1, 1), said(2, 2, "coffee"), said(3, 3, "y"))
    assert main(["diff", str(one), str(two)]) == 1
    told = capsys.readouterr().out
    assert (
        sentence("recording.alike", number=1, difference="message 2 (said:robot:2 at 2.000000 s) differs in text")
        in told
    )
    assert "first:  tea" in told
    assert "second: coffee" in told


def test_diff_sees_that_one_recording_is_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path / "a.mcap", said(1, 1), said(2, 2))
    two = write(tmp_path / "b.mcap", said(1, 1))
    assert main(["diff", str(one), str(two)]) == 1
    assert sentence("recording.has_ended", which="second") in capsys.readouterr().out


def test_a_difference_is_found_by_value_type_and_length() -> None:
    assert first_difference({"a": [1, 2.0]}, {"a": [1, 2.0]}) is None
    assert first_difference({"a": [1, 2]}, {"a": [1, 3]}) == ("a[1]", 2, 3)
    assert first_difference({"a": 1}, {"a": True}) == ("a", 1, True)
    assert first_difference({"a": [1]}, {"a": [1, 2]}) == ("a (length)", 1, 2)
    assert first_difference({"a": 1}, {}) == ("a", 1, "(absent)")


def test_recover_writes_a_sound_recording_and_says_what_is_lost(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(run.read_bytes()[:60_000])
    out = tmp_path / "sound.mcap"
    assert main(["recover", str(cut), "--out", str(out)]) == 1
    assert "something is lost" in capsys.readouterr().out
    sound = BagReader(out)
    recovered = [message.data for message in sound]
    assert sound.is_complete
    assert recovered
    assert recovered == [message.data for message in BagReader(run)][: len(recovered)]
    assert main(["recover", str(out), "--out", str(tmp_path / "again.mcap")]) == 0


def test_recover_goes_on_behind_the_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap", *(said(tick, at_s=tick / 2) for tick in range(1, 30)))
    data = bytearray(path.read_bytes())
    chunk = data.index(b"\x04\x00\x00\x00zstd", len(data) // 3) - 37
    data[chunk + 1 : chunk + 9] = (2**40).to_bytes(8, "little")  # a length that lies
    path.write_bytes(data)
    assert main(["recover", str(path), "--out", str(tmp_path / "b.mcap")]) == 1
    found = texts(tmp_path / "b.mcap")
    assert len(found) >= 25
    assert found[-1] == "line 29"


def test_a_damaged_head_is_read_by_the_index_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.mcap"
    writer = BagWriter(path, {"clock": "virtual", "seed": "7"})
    writer.attach("launch.toml", "application/toml", b"[nodes.x]")
    writer.write(said(1, 1))
    writer.close()
    data = bytearray(path.read_bytes())
    data[12] ^= 1 << 7  # the length of the very first record
    path.write_bytes(data)
    assert main(["recover", str(path), "--out", str(tmp_path / "b.mcap")]) == 1
    assert "bytes 8 to " in capsys.readouterr().out
    assert texts(tmp_path / "b.mcap") == ["line 1"]
    back = BagReader(tmp_path / "b.mcap")
    assert (back.metadata["run"]["seed"], back.attachments["launch.toml"]) == ("7", b"[nodes.x]")
    path.write_bytes(data[: len(data) // 3])
    assert main(["recover", str(path), "--out", str(tmp_path / "c.mcap")]) == 1
    assert texts(tmp_path / "c.mcap") == ["line 1"]  # its messages say whose it is


def test_messages_keep_their_topic_where_the_first_chunk_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap", *(said(tick, at_s=tick / 2) for tick in range(1, 9)), close=False)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x28\xb5\x2f\xfd") + 30] ^= 0xFF
    path.write_bytes(data)
    messages = list(BagReader(path))
    assert messages
    assert {message.topic for message in messages} == {"said"}


def test_cut_keeps_a_span_and_some_topics(tmp_path: Path, run: Path) -> None:
    out = tmp_path / "cut.mcap"
    assert main(["cut", str(run), "--from", "3", "--to", "6", "--topics", "robot/*", "--out", str(out)]) == 0
    messages = list(BagReader(out))
    assert {message.topic for message in messages} == {"robot/state", "robot/command"}
    span_s = (messages[-1].envelope.published_ns - messages[0].envelope.published_ns) * 1e-9
    assert span_s == pytest.approx(3.0, abs=0.1)
    for start, end in (("6", "3"), ("nan", "3"), ("1e300", "1e301"), ("inf", "inf")):
        assert main(["cut", str(run), "--from", start, "--to", end, "--out", str(out)]) == 2
    assert main(["cut", str(run), "--from", "3", "--to", "1e300", "--out", str(tmp_path / "rest.mcap")]) == 0


def test_merge_joins_parts_and_refuses_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "run.mcap", said(1, 1), said(2, 2), close=False)
    write(part_of(first, 2), said(2, 2), said(3, 3))
    out = tmp_path / "whole.mcap"
    assert main(["merge", str(first), "--out", str(out)]) == 0
    assert texts(out) == ["line 1", "line 2", "line 3"]
    other = write(tmp_path / "other.mcap", said(1, 1), about={"seed": "8"})
    assert main(["merge", str(first), str(other), "--out", str(out)]) == 1
    assert "is of another run" in capsys.readouterr().err


def test_two_runs_into_one_folder_are_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path / "a.mcap", said(1, 1), about={"supervisor_pid": "7", "started_ns": "1"})
    two = write(tmp_path / "b.mcap", said(1, 1), about={"supervisor_pid": "7", "started_ns": "2"})
    assert main(["merge", str(one), str(two), "--out", str(tmp_path / "c.mcap")]) == 1
    assert sentence("recording.of_another_run") in (told := capsys.readouterr().err)
    assert "started_ns is '2', not '1'" in told


def test_a_recording_that_is_named_as_a_part_of_another_stands_for_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write(tmp_path / "take.mcap", said(1, 1), about={"folder": "one"})
    second = write(part_of(first, 2), said(1, 2), about={"folder": "two"})
    third = write(part_of(first, 3), said(3, 3), about={"folder": "one"})
    assert parts_of(first) == [first, third]
    assert main(["info", str(first)]) == 0
    assert "2 messages" in capsys.readouterr().out
    assert main(["diff", str(first), str(second)]) == 1
    assert "published_ns" in capsys.readouterr().out


def test_a_part_that_is_no_recording_is_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "run.mcap", said(1, 1))
    part_of(first, 2).write_bytes(b"")  # as a power cut leaves it
    write(part_of(first, 3), said(2, 2))
    for command, code in (("recover", 1), ("merge", 0)):
        out = tmp_path / f"{command}.mcap"
        assert main([command, str(first), "--out", str(out)]) == code
        assert f"run-2.mcap: {sentence('recording.no_recording')}; left out" in capsys.readouterr().out
        assert texts(out) == ["line 1", "line 2"]


@pytest.mark.parametrize(
    "command",
    [["recover"], ["cut", "--from", "0"], ["merge"], ["latency"], ["export", "--to", "jsonl"]],
    ids=lambda words: words[0],
)
def test_a_recording_is_never_written_over_itself(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.mcap", said(1, 1), about={"clock": "real"})
    before = path.read_bytes()
    assert main([*command, str(path), "--out", str(path)]) == 2
    assert sentence("recording.is_itself") in capsys.readouterr().err
    assert path.read_bytes() == before


def test_cut_and_diff_say_what_could_not_be_read(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(run.read_bytes()[:60_000])
    assert main(["cut", str(broken), "--to", "99", "--out", str(tmp_path / "cut.mcap")]) == 1
    assert (
        f"broken.mcap: {sentence('recording.breaks_off')}{sentence('recording.chunk_left_out')}"
        in capsys.readouterr().out
    )
    assert main(["diff", str(run), str(broken)]) == 1
    assert (
        f"broken.mcap: {sentence('recording.breaks_off')}{sentence('recording.chunk_left_out')}"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("command", ["info", "cut", "export"])
def test_what_was_not_closed_is_read_whole_and_a_chunk_that_breaks_off_is_told_by_the_exit_code(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    more = {"cut": ["--to", "99"], "export": ["--to", "jsonl"]}.get(command, [])
    summary = make_reader(io.BytesIO(run.read_bytes())).get_summary()
    assert summary is not None
    chunk = summary.chunk_indexes[-1]
    for kept, code in ((chunk.chunk_length, 0), (chunk.chunk_length // 2, 1)):
        killed = tmp_path / f"killed-{code}.mcap"
        killed.write_bytes(run.read_bytes()[: chunk.chunk_start_offset + kept])
        out = [] if command == "info" else ["--out", str(tmp_path / f"out-{code}")]
        assert main([command, str(killed), *more, *out]) == code
        assert (sentence("recording.breaks_off") in "".join(capsys.readouterr())) == bool(code)


def test_a_cut_without_a_span_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cut", str(run)]) == 2
    assert sentence("recording.keeps_nothing") in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["info"], ["cut", "--from", "0"], ["export", "--to", "jsonl"], ["plot"], ["why", "--at", "19"]],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_where_a_chunk_was_left_out_the_exit_code_says_so(
    tmp_path: Path, run: Path, command: list[str], is_damaged: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(run.read_bytes())
    if is_damaged:
        with run.open("rb") as file:
            summary = make_reader(file).get_summary()
        assert summary is not None
        chunk = summary.chunk_indexes[len(summary.chunk_indexes) // 2]
        middle = chunk.chunk_start_offset + chunk.chunk_length // 2
        data[middle : middle + 9] = b"rubbish!!"
    path = tmp_path / "run.mcap"
    path.write_bytes(data)
    assert main([command[0], str(path), *command[1:]]) == int(is_damaged)
    told = capsys.readouterr()
    assert ("left out" in told.out + told.err) == is_damaged


def test_pictures_that_are_packed_otherwise_are_alike_by_their_pixels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    colours = np.random.default_rng(3).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    depth = np.random.default_rng(3).uniform(0.2, 60, (12, 16)).astype(np.float32)
    image = Image(camera="head", captured_ns=5, rgb=colours, depth_m=depth, focal_px=100.0)
    envelope = Envelope("head/image", "camera", 1, 5)
    packed = cv2.imencode(".png", colours[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])[1].tobytes()
    changed = colours.copy()
    changed[0, 0, 0] ^= 1
    other = cv2.imencode(".png", changed[..., ::-1])[1].tobytes()
    paths = []
    for name, data in (("own", b""), ("packed", packed), ("changed", other)):
        path = tmp_path / f"{name}.mcap"
        writer = BagWriter(path, {"clock": "virtual", "seed": "7"})
        document = image_document(image, envelope, wall_offset_ns=0, jpeg_quality=0)
        if data:
            document["data"] = base64.b64encode(data).decode()
        writer.write_document("head/image", SCHEMA_NAME, SCHEMA, document, envelope)
        depths = depth_document(image, envelope, wall_offset_ns=0)
        writer.write_document("head/depth", SCHEMA_NAME, SCHEMA, depths, envelope)
        writer.close({})
        paths.append(str(path))
    own, again, different = paths
    assert main(["diff", own, again]) == 0
    assert main(["diff", own, different]) == 1
    assert "differs in data" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["plot", "--out"], ["why", "--at", "1", "--png"]], ids=lambda words: words[0])
def test_a_picture_of_an_unknown_kind_is_refused(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.mcap", said(1, 1))
    assert main([command[0], str(path), *command[1:], str(tmp_path / "picture.mcap")]) == 2
    assert "expected a name that ends in .png, .svg, .pdf" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert sentence("recording.bag_example") in capsys.readouterr().out


@pytest.mark.parametrize("command", ["info", "recover", "why", "latency", "plot"])
def test_what_is_no_recording_is_refused_in_a_sentence(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.mcap"
    path.write_text("hello")
    extra = ["--at", "1"] if command == "why" else []
    assert main([command, str(path), *extra]) == 1
    assert sentence("recording.no_recording") in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def close(*_: object, **__: object) -> None:
        raise BrokenPipeError

    path = write(tmp_path / "a.mcap", said(1, 1))
    monkeypatch.setattr("builtins.print", close)
    with pytest.raises(BrokenPipeError):  # which `polyrhythm` passes over for every command
        main(["info", str(path)])


def test_unknown_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dance"]) == 2
    assert "known: info, diff, recover" in capsys.readouterr().err
    assert main([]) == 2


def test_a_chunk_whose_type_was_damaged_is_missed_and_not_passed_over_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.mcap", *(said(tick, at_s=tick / 2) for tick in range(1, 9)))
    whole = bytearray(path.read_bytes())
    with path.open("rb") as file:
        chunk = next_chunk(file, 8, len(whole))
    assert chunk is not None
    whole[chunk] ^= 1 << 5
    path.write_bytes(whole)
    assert main(["recover", str(path), "--out", str(tmp_path / "b.mcap")]) == 1
    assert sentence("recording.can_be_read", number=8) in capsys.readouterr().out
    assert main(["info", str(path)]) == 1
    assert "of the 8 its index counts" in capsys.readouterr().out


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_makes_it_crash_and_what_is_read_was_recorded(tmp_path: Path, data: st.DataObject) -> None:
    path = write(tmp_path / "a.mcap", *(said(tick, at_s=tick / 2) for tick in range(1, 9)))
    whole = bytearray(path.read_bytes())
    kind = data.draw(st.sampled_from(["flip", "cut", "overwrite", "insert", "length"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    if kind == "flip":
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del whole[at:]
    elif kind == "overwrite":
        noise = data.draw(st.binary(min_size=1, max_size=64))
        whole[at : at + len(noise)] = noise
    elif kind == "insert":
        whole[at:at] = data.draw(st.binary(min_size=1, max_size=64))
    else:
        whole[at : at + 8] = data.draw(st.integers(0, 2**64 - 1)).to_bytes(8, "little")
    damaged, out = tmp_path / "b.mcap", tmp_path / "c.mcap"
    damaged.write_bytes(whole)
    out.unlink(missing_ok=True)  # of the example before
    code = main(["recover", str(damaged), "--out", str(out)])
    assert code in (0, 1)
    main(["info", str(damaged)])
    if code == 0:
        assert texts(out) == texts(path)
