"""A recording gives back what was recorded, and survives being cut off."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from jsonschema import Draft202012Validator
from mcap.reader import make_reader
from numpy.typing import NDArray

from nodes.mcap.file import FLUSH_S, BagReader, BagWriter
from nodes.mcap.schema import LISTED, array_forms, encode_message, forms_in, message_schema
from nodes.msgs import Action, ActionChunk, RobotState, SceneDescription, SeenObject, Utterance, aimed_at
from nodes.msgs.episode import Score, Scores
from runtime.errors import RecordingError
from runtime.message import Envelope, Message, Stamped
from tests.support.message_strategies import MESSAGES, envelopes, messages
from tests.support.sentences import pattern, sentence

CUP = SeenObject(
    label="cup", colour="red", x_m=0.1, y_m=1 / 3, z_m=0.7, width_m=0.08, height_m=0.1, u_px=80.0, v_px=60.0
)


class Scan(Message, kind="state"):
    ranges_m: NDArray[np.float32]
    maybe: float | None = None


def envelope(topic: str, seq: int = 1, at_s: float = 1.0, source: str = "node") -> Envelope:
    return Envelope(
        topic=topic, source=source, seq=seq, published_ns=round(at_s * 1e9),
        origins={"image": round(at_s * 1e9) - 40_000_000},
        epochs={"planner": 1, "vlm": 2, "policy": 3}, cause="heard:collaborator:1", provenance="script:Test",
    )  # fmt: skip


def said(seq: int, at_s: float) -> Stamped[Utterance]:
    return Stamped(Utterance(speaker="robot", text=f"line {seq}"), envelope("said", seq, at_s))


def write(path: Path, *stamped: Stamped[Message]) -> Path:
    bag = BagWriter(path, {"seed": "7"}, wall_offset_ns=1_000_000_000_000)
    for one in stamped:
        bag.write(one)
    bag.close({"outcome": "success"})
    return path


def test_messages_come_back_with_their_whole_envelope(tmp_path: Path) -> None:
    action = Action(id="a1", skill="pick", arguments=aimed_at(CUP), text="pick up the red cup")
    chunk = ActionChunk(position=np.eye(2, 8), base_v_mps=np.array([0.1, 0.2]), base_w_radps=np.zeros(2), step_s=0.05)
    path = write(tmp_path / "a.mcap", Stamped(action, envelope("action")), Stamped(chunk, envelope("chunk", at_s=1.1)))
    first, second = BagReader(path)
    assert first.topic == "action"
    assert first.envelope == envelope("action")
    assert first.message(Action) == action
    assert first.log_time_ns == 1_001_000_000_000
    back = second.message(ActionChunk)
    assert np.array_equal(back.position, chunk.position)
    assert back.position.dtype == np.float64


@pytest.mark.parametrize("size", [0, 3, LISTED, LISTED + 1])
def test_arrays_of_every_size_come_back_bit_for_bit(tmp_path: Path, size: int) -> None:
    scan = Scan(ranges_m=np.linspace(0.0, 1.0, size, dtype=np.float32))
    (record,) = BagReader(write(tmp_path / "a.mcap", Stamped(scan, envelope("scan"))))
    back = record.message(Scan).ranges_m
    assert back.dtype == np.float32
    assert np.array_equal(back, scan.ranges_m)


def test_metadata_and_attachments_are_by_name(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "a.mcap", {"seed": "7"})
    bag.attach("launch.toml", "application/toml", b"[nodes]")
    bag.close({"outcome": "success"})
    reader = BagReader(tmp_path / "a.mcap")
    assert reader.metadata["run"] == {"seed": "7"}
    assert reader.metadata["end"] == {"outcome": "success"}
    assert reader.attachments == {"launch.toml": b"[nodes]"}
    assert reader.is_complete
    assert reader.damage == []


def test_mcaps_own_reader_finds_json_with_its_schema(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap", said(1, 1.0), said(2, 2.0))
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        found = list(reader.iter_messages())
        summary = reader.get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert summary.statistics.message_count == 2
    schema, channel, message = found[0]
    assert schema is not None
    assert (channel.topic, channel.message_encoding, schema.encoding, schema.name) == (
        "said", "json", "jsonschema", "Utterance",
    )  # fmt: skip
    document = json.loads(message.data)
    properties = json.loads(schema.data)["properties"]
    assert set(document) | {"captured_ns"} == set(properties)  # which is None here, and left out
    assert set(document["_envelope"]) <= set(properties["_envelope"]["properties"])
    assert document["_envelope"]["image_age_s"] == 0.04


@pytest.mark.parametrize("message", [Action, ActionChunk, RobotState, SceneDescription, Utterance, Scan])
def test_schemas_are_plain_enough_for_a_viewer(message: type[Message]) -> None:
    text = message_schema(message).decode()
    assert not any(word in text for word in ('"$ref"', '"$defs"', '"anyOf"', '"prefixItems"'))
    schema = json.loads(text)
    assert schema["type"] == "object"
    for part in schema["properties"].values():
        assert part["type"] in ("string", "number", "integer", "boolean", "array", "object")
        assert part["type"] != "array" or isinstance(part["items"], dict)


@pytest.mark.parametrize(("shape", "kinds"), [((3,), ["array"]), ((2, 3), ["object"]), ((70, 70), ["object"])])
def test_the_schema_of_an_array_has_the_dimensions_that_it_has(shape: tuple[int, ...], kinds: list[str]) -> None:
    scan = Scan(ranges_m=np.zeros(shape, np.float32))
    part = json.loads(message_schema(Scan, scan))["properties"]["ranges_m"]
    found = []
    while part.get("items"):
        found.append(part["type"])
        part = part["items"]
    assert (found or [part["type"]]) == kinds
    assert part["type"] in ("number", "object")


def unreadable(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """What Foxglove's parser of schemas refuses, by its place: it then shows nothing of the topic."""
    for name, part in schema.get("properties", {}).items():
        items = part.get("items", {})
        if part.get("type") == "array" and items.get("type") not in (
            "string",
            "number",
            "integer",
            "boolean",
            "object",
        ):
            yield f"{path}{name}: a list of {items.get('type')}"
        elif part.get("type") not in ("string", "number", "integer", "boolean", "array", "object"):
            yield f"{path}{name}: {part}"
        yield from unreadable(items if part.get("type") == "array" else part, f"{path}{name}.")


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_viewers_can_read_the_schema_of_every_message(message: type[Message]) -> None:
    assert list(unreadable(json.loads(message_schema(message)))) == []


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_every_message_is_valid_by_its_own_schema_as_a_foreign_validator_sees_it(message: type[Message]) -> None:
    @settings(max_examples=10, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(messages(message), messages(message), envelopes)
    def is_valid(first: Message, value: Message, envelope: Envelope) -> None:
        schema = json.loads(message_schema(message, first, envelope.origins))
        arrays = array_forms(first)
        for one in (first, value):
            if all(
                np.ndim(getattr(one, name)) == np.ndim(getattr(first, name)) for name in arrays
            ):  # a topic's stay so
                Draft202012Validator(schema).validate(json.loads(encode_message(one, envelope, arrays)))

    is_valid()


@pytest.mark.parametrize("length", [0, 3, LISTED + 1])
def test_an_array_that_grows_shrinks_or_was_not_there_is_valid_by_the_first_messages_schema(
    length: int, tmp_path: Path
) -> None:
    for shape in ((length,), (length, 2)):
        scans = [Scan(ranges_m=np.ones((number, *shape[1:]), np.float32)) for number in (length, 2, 0, LISTED + 2)]
        path = write(tmp_path / f"{len(shape)}.mcap", *(Stamped(scan, envelope("scan")) for scan in scans))
        for record, scan in zip(BagReader(path), scans, strict=True):
            Draft202012Validator(json.loads(record.schema_data or b"")).validate(record.document)
            assert np.array_equal(record.message(Scan).ranges_m, scan.ranges_m)
            again = encode_message(scan, record.envelope, forms_in(record.document, Scan))
            assert json.loads(again)["ranges_m"] == record.document["ranges_m"], "a replay compares them so"


def test_what_is_none_is_left_out_and_comes_back(tmp_path: Path) -> None:
    score = Scores(episode="e", judge="j", state="done", scores=(Score(name="a", dimension="goal"),))
    (record,) = BagReader(write(tmp_path / "a.mcap", Stamped(score, envelope("scores"))))
    assert "score" not in record.document["scores"][0]
    assert record.message(Scores) == score


def test_lists_with_what_is_no_number_are_valid_and_come_back(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    state = RobotState(
        read_ns=1, position=(0.5, nan, -inf), velocity=(0.0, 0.0, 0.0), effort=(), base_x_m=inf, base_y_m=0.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip
    seen = SceneDescription(
        text="", subtask_id="", progress="idle", objects=(CUP, cast(Any, msgspec.structs.replace)(CUP, x_m=nan))
    )
    scan = Scan(ranges_m=np.array([[1.0, nan], [inf, 2.0]], np.float32), maybe=inf)
    path = write(
        tmp_path / "a.mcap",
        *(Stamped(one, envelope(topic)) for one, topic in ((state, "robot/state"), (seen, "seen"), (scan, "scan"))),
    )
    records = {record.topic: record for record in BagReader(path)}
    for record in records.values():
        Draft202012Validator(json.loads(record.schema_data or b"")).validate(record.document)
        assert b"null" not in record.data
    back = records["robot/state"].message(RobotState)
    assert math.isnan(back.position[1])
    assert (back.position[0], back.position[2], back.base_x_m) == (0.5, -inf, inf)
    cups = records["seen"].message(SceneDescription).objects
    assert cups[0] == CUP
    assert math.isnan(cups[1].x_m)
    again = records["scan"].message(Scan)
    assert again.maybe == inf
    assert np.array_equal(again.ranges_m, scan.ranges_m, equal_nan=True)


def test_a_number_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    (record,) = BagReader(
        write(tmp_path / "a.mcap", Stamped(Scan(ranges_m=np.ones(1, np.float32), maybe=float("nan")), envelope("scan")))
    )
    assert "maybe" not in record.document


def test_a_killed_writer_loses_at_most_a_second(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "a.mcap", {})
    for tick in range(1, 201):
        bag.write(said(tick, at_s=tick / 20))
        if tick % 37 == 0:  # the file as another process would find it after SIGKILL: only what left this process
            copy = shutil.copy(tmp_path / "a.mcap", tmp_path / "copy.mcap")
            reader = BagReader(Path(copy))
            found = [record.envelope.seq for record in reader]
            assert found == list(range(1, len(found) + 1))
            assert (tick - len(found)) / 20 <= FLUSH_S
            assert not reader.is_complete
            assert "was not closed" in reader.damage[0]
    bag.close()


def test_a_flush_leaves_nothing_behind(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "a.mcap", {})
    bag.write(said(1, at_s=1.0))
    bag.flush()
    assert len(list(BagReader(tmp_path / "a.mcap"))) == 1
    bag.close()


def test_a_file_cut_anywhere_gives_a_prefix(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap", *(said(tick, at_s=tick / 2) for tick in range(1, 30)))
    whole = path.read_bytes()
    cut = tmp_path / "cut.mcap"
    lengths = []
    for size in range(400, len(whole), 97):
        cut.write_bytes(whole[:size])
        reader = BagReader(cut)
        found = [record.envelope.seq for record in reader]
        assert found == list(range(1, len(found) + 1))
        assert reader.damage
        lengths.append(len(found))
    assert lengths == sorted(lengths)
    assert lengths[-1] == 29


def test_a_flipped_bit_costs_one_chunk_and_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap", *(said(tick, at_s=tick / 2) for tick in range(1, 30)))
    data = bytearray(path.read_bytes())
    magic = b"\x28\xb5\x2f\xfd"  # a zstd frame begins
    data[data.index(magic, data.index(magic) + 4) + 40] ^= 0x10
    path.write_bytes(data)
    reader = BagReader(path)
    found = [record.envelope.seq for record in reader]
    assert 0 < len(found) < 29
    assert sentence("runtime.damaged_chunk") in reader.damage[0]


def test_a_forged_length_costs_neither_memory_nor_the_message(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mcap", said(1, 1.0))
    data = path.read_bytes()
    at = data.index(b"\x28\xb5\x2f\xfd")
    path.write_bytes(data[: at - 8] + (2**62).to_bytes(8, "little") + data[at:])
    assert len(list(BagReader(path))) == 1


def test_a_folder_is_refused_with_the_recordings_in_it(tmp_path: Path) -> None:
    refused = f"{tmp_path}: {sentence('recording.is_a_folder')} "
    with pytest.raises(RecordingError) as empty:
        BagReader(tmp_path)
    assert str(empty.value) == f"{refused}its run.mcap"
    (tmp_path / "monday").mkdir()
    (tmp_path / "monday" / "run.mcap").touch()
    with pytest.raises(RecordingError) as of_runs:
        BagReader(tmp_path)
    assert str(of_runs.value) == f"{refused}{tmp_path}/monday/run.mcap"
    for name in ("a", "b", "c", "d", "e"):
        (tmp_path / f"{name}.mcap").touch()
    with pytest.raises(RecordingError) as several:
        BagReader(tmp_path)
    assert str(several.value) == f"{refused}{tmp_path}/a.mcap, {tmp_path}/b.mcap, {tmp_path}/c.mcap and 2 more"


def test_what_is_no_recording_is_refused_in_a_sentence(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(RecordingError, match=rf"notes\.txt: {pattern('runtime.no_recording')}"):
        BagReader(text)
    with pytest.raises(RecordingError, match=r"gone\.mcap: cannot be read \(No such file or directory\)"):
        BagReader(tmp_path / "gone.mcap")
    with pytest.raises(RecordingError, match=r"cannot be written: .* choose another path"):
        BagWriter(text / "below.mcap", {})


def test_a_foreign_mcap_is_refused(tmp_path: Path) -> None:
    from mcap.writer import Writer

    path = tmp_path / "foreign.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        writer.finish()  # type: ignore[no-untyped-call]  # the library's hints lack it
    with pytest.raises(RecordingError, match=pattern("runtime.foreign_recording")):
        BagReader(path)


def test_a_message_of_another_type_is_told_apart(tmp_path: Path) -> None:
    (record,) = BagReader(write(tmp_path / "a.mcap", said(1, 1.0)))
    with pytest.raises(RecordingError, match="topic 'said': a Utterance is no Action"):
        record.message(Action)
