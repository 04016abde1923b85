"""Recordings of others, written by others' libraries: what is in them, as tables, as a picture, and mended."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mcap.writer import CompressionType, IndexType, Writer
from rosbags.rosbag2 import Reader, StoragePlugin
from rosbags.rosbag2 import Writer as RosWriter
from rosbags.typesys import Stores, get_typestore

from nodes.mcap.file import BagReader, BagWriter
from nodes.msgs import Utterance
from nodes.recording.bag.command import main
from runtime.message import Envelope, Stamped
from tests.support.sentences import sentence

BEGAN_NS = 1_760_000_000_000_000_000
NUMBER = 20
STORE = get_typestore(Stores.ROS2_JAZZY)


def stamp(number: int) -> int:
    return BEGAN_NS + number * 100_000_000


def of_json(path: Path, *, stamps: Callable[[int], int] = stamp, finish: bool = True, **options: Any) -> Path:
    with path.open("wb") as file:
        writer: Any = Writer(file, **options)
        writer.start("", "somebody")
        schema = writer.register_schema("Chat", "jsonschema", b'{"type":"object"}')
        channel = writer.register_channel("/chat", "json", schema)
        for number in range(NUMBER):
            stamp_ns = stamps(number)
            writer.add_message(channel, stamp_ns, json.dumps({"text": f"hi {number}"}).encode(), stamp_ns, number)
        if finish:
            writer.finish()
    return path


def info(path: Path, capsys: pytest.CaptureFixture[str], *, code: int = 0) -> dict[str, Any]:
    assert main(["info", str(path), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rows(path: Path, out: Path, topic: str) -> list[dict[str, str]]:
    assert main(["export", str(path), "--to", "csv", "--out", str(out)]) == 0
    with (out / f"{topic}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": CompressionType.LZ4},
        {"use_chunking": False},
        {"index_types": IndexType.NONE, "use_statistics": False, "repeat_channels": False, "repeat_schemas": False},
        {"stamps": lambda number: BEGAN_NS - number * 10**9},
    ],
    ids=["zstd", "lz4", "unchunked", "no summary", "backwards"],
)
def test_however_it_is_laid_out_it_is_read(
    options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_json(tmp_path / "a.mcap", **options)
    found = info(path, capsys)
    (topic,) = found["topics"]
    assert (found["is_ours"], found["messages"], topic["schemas"], topic["encodings"]) == (
        False, NUMBER, ["Chat"], ["json"],
    )  # fmt: skip
    is_backwards = "stamps" in options
    assert topic["disordered"] == (NUMBER - 1 if is_backwards else 0)
    assert found["duration_s"] == pytest.approx(NUMBER - 1 if is_backwards else 1.9)
    table = rows(path, tmp_path / "csv", "_chat")
    assert [row["text"] for row in table] == [f"hi {number}" for number in range(NUMBER)]
    assert min(float(row["at_s"]) for row in table) == 0.0
    assert main(["plot", str(path), "--out", str(tmp_path / "a.png")]) == 0


def of_ros1(path: Path) -> dict[str, str]:
    from mcap_ros1._vendor.genpy import dynamic
    from mcap_ros1.writer import Writer as Ros1Writer

    text = "int32 number\nstring[] names\nfloat64 value"
    generate: Any = dynamic.generate_dynamic
    kind = generate("a/Told", text)["a/Told"]
    with path.open("wb") as file:
        writer: Any = Ros1Writer(file)
        writer.write_message("/told", kind(number=3, names=["x", "y"], value=0.5), BEGAN_NS)
        writer.finish()
    return {"number": "3", "names.1": "y", "value": "0.5"}


def of_ros2(path: Path) -> dict[str, str]:
    from mcap_ros2.writer import Writer as Ros2Writer

    with path.open("wb") as file:
        writer: Any = Ros2Writer(file)
        schema = writer.register_msgdef("a/msg/Told", "string data\nfloat64[] position\nuint8[] bytes")
        told = {"data": "hello", "position": [0.25, 1.0], "bytes": [1, 2]}
        writer.write_message("/told", schema, told, BEGAN_NS, BEGAN_NS, 1)
        writer.finish()
    return {"data": "hello", "position.0": "0.25", "bytes": "AQI="}


def of_protobuf(path: Path) -> dict[str, str]:
    from google.protobuf.struct_pb2 import ListValue, Value
    from mcap_protobuf.writer import Writer as ProtobufWriter

    with path.open("wb") as file, ProtobufWriter(file) as writer:
        writer.write_message("/told", ListValue(values=[Value(number_value=2.5)]), BEGAN_NS, BEGAN_NS)
        writer.write_message("/at", Timestamp(seconds=5), BEGAN_NS, BEGAN_NS)
    return {"value.0": "2.5"}


@pytest.mark.parametrize("write", [of_ros1, of_ros2, of_protobuf])
def test_what_others_encode_becomes_columns(write: Callable[[Path], dict[str, str]], tmp_path: Path) -> None:
    expected = write(tmp_path / "a.mcap")
    (row,) = rows(tmp_path / "a.mcap", tmp_path / "csv", "_told")
    assert {name: row[name] for name in expected} == expected


def test_an_encoding_that_nobody_here_reads_is_counted_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer: Any = Writer(file)
        writer.start("", "somebody")
        writer.add_message(writer.register_channel("/../x\x1b[31m", "cbor", 0), BEGAN_NS, b"\xa0", BEGAN_NS)
        writer.finish()
    assert info(path, capsys)["topics"][0]["messages"] == 1
    assert main(["info", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["export", str(path), "--to", "csv", "--out", str(tmp_path / "csv")]) == 0
    assert "'cbor'" in capsys.readouterr().err
    assert [one.name for one in (tmp_path / "csv").iterdir()] == ["_.._x__31m.csv"]


def test_our_recording_whose_metadata_another_tool_dropped_is_still_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, path = tmp_path / "ours.mcap", tmp_path / "rewritten.mcap"
    mine = BagWriter(ours, {"clock": "real"}, wall_offset_ns=BEGAN_NS)
    for number in range(1, 4):
        mine.write(Stamped(Utterance(speaker="Sam", text="hi"), Envelope("heard", "person", number, number * 10**9)))
    mine.close()
    messages = list(BagReader(ours))
    with path.open("wb") as file:
        writer: Any = Writer(file, use_chunking=False)
        writer.start("", "a tool")
        schema = writer.register_schema("Utterance", "jsonschema", messages[0].schema_data)
        channel = writer.register_channel("/robot1/heard", "json", schema, {"type": "nodes.msgs:Utterance"})
        for one in messages:
            writer.add_message(channel, one.log_time_ns, one.data, one.log_time_ns, one.sequence)
        writer.finish()
    reader = BagReader(path)
    assert reader.is_ours
    assert reader.wall_offset_ns == BEGAN_NS
    assert [one.message(Utterance).text for one in reader] == ["hi"] * 3
    assert info(path, capsys)["topics"][0]["hz"] == pytest.approx(1.0)


@pytest.mark.parametrize("written", [0, 3_000_000], ids=["of a hole alone", "of zeros that were written, too"])
def test_a_tail_of_zeros_is_damage_at_once(tmp_path: Path, written: int) -> None:
    path = of_json(tmp_path / "a.mcap", use_chunking=False, finish=False)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size)
        file.write(bytes(written))
        file.truncate(size + 5_000_000_000)  # half an hour and more, byte by byte
    out = tmp_path / "b.mcap"
    assert main(["recover", str(path), "--out", str(out)]) == 1
    assert len(list(BagReader(out, takes_any=True))) == NUMBER


def test_what_a_robot_wrote_before_it_was_switched_off_is_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    sound = tmp_path / "sound"
    kinds = STORE.types
    head = kinds["std_msgs/msg/Header"](kinds["builtin_interfaces/msg/Time"](1, 2), "cam")
    with RosWriter(sound, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        name = "sensor_msgs/msg/CompressedImage"
        connection = writer.add_connection("/cam/image/compressed", name, typestore=STORE)
        for number in range(NUMBER):
            picture = kinds[name](head, "jpeg", rng.integers(0, 255, 5000).astype(np.uint8))
            writer.write(connection, stamp(number), STORE.serialize_cdr(picture, name))
    (file,) = sound.glob("*.mcap")
    whole = file.read_bytes()
    for tail in (b"", bytes(100_000)):  # cut off; and a file system's promise that was not kept
        bag, out = tmp_path / f"bag{len(tail)}", tmp_path / f"out{len(tail)}"
        bag.mkdir()
        (bag / file.name).write_bytes(whole[: len(whole) * 6 // 10] + tail)  # inside its one chunk
        assert main(["recover", str(bag), "--out", str(out)]) == 1
        assert sentence("recording.lossy") in capsys.readouterr().out
        with Reader(out) as reader:
            (one,) = reader.connections
            read = [bytes(data) for _, _, data in reader.messages()]
        with Reader(sound) as reader:
            (known,) = reader.connections
            expected = [bytes(data) for _, _, data in reader.messages()]
        assert (one.topic, one.msgtype, one.digest) == (known.topic, known.msgtype, known.digest)
        assert len(read) >= NUMBER // 2
        assert read == expected[: len(read)]


def test_a_database_that_was_not_closed_is_mended_with_its_log(tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    with RosWriter(bag, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection("/said", "std_msgs/msg/String", typestore=STORE)
        for number in range(NUMBER):
            text = STORE.types["std_msgs/msg/String"](f"hi {number}")
            writer.write(connection, stamp(number), STORE.serialize_cdr(text, text.__msgtype__))
    (file,) = bag.glob("*.db3")
    (bag / "metadata.yaml").unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        columns = "topic_id, timestamp, data"
        database.execute(f"INSERT INTO messages ({columns}) SELECT {columns} FROM messages")
        database.commit()
        off = tmp_path / "off"
        shutil.copytree(bag, off)  # while it is open: half of it stands in the log beside it
    assert main(["recover", str(off), "--out", str(tmp_path / "out")]) == 0
    with Reader(tmp_path / "out") as reader:
        assert reader.message_count == 2 * NUMBER


def test_nothing_is_written_where_nothing_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = of_json(tmp_path / "a.mcap")
    path.write_bytes(path.read_bytes()[:60])
    assert main(["recover", str(path), "--out", str(tmp_path / "b.mcap")]) == 1
    assert sentence("recording.nothing_to_recover") in capsys.readouterr().err
    assert not (tmp_path / "b.mcap").exists()


def test_what_needs_our_recording_refuses_another_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = of_json(tmp_path / "a.mcap")
    for arguments in (["why", str(path), "--at", "1"], ["export", str(path), "--to", "ros2"]):
        assert main(arguments) == 1
        assert sentence("recording.not_ours") in capsys.readouterr().err
