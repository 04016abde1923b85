"""No damage to a recording makes a command crash, hang or fill the memory; what it cannot do it says in a sentence."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.mcap.record import BagMessage
from nodes.msgs import JointCommand, Utterance
from nodes.recording.bag.command import main as bag
from nodes.recording.replay.command import main as replay
from runtime.message import Envelope, Stamped
from tests.support.sentences import sentence
from tests.support.synthetic_run import write_run

VARIANTS = 8
MOST_BYTES = 300 * 1024 * 1024


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"), seconds=4.0)


def flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def forge_length(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) - 8)
    data[at : at + 8] = struct.pack("<Q", rng.choice((0, 2**31, 2**40, 2**62)))


def lose_middle(data: bytearray, rng: random.Random) -> None:
    first, last = sorted(rng.sample(range(len(data)), 2))
    del data[first:last]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(flip, marks=pytest.mark.long),
        cut,
        pytest.param(forge_length, marks=pytest.mark.long),
        pytest.param(lose_middle, marks=pytest.mark.long),
    ],
)
def test_every_command_survives_damage_and_says_what_it_cannot_do(
    damage: Callable[[bytearray, random.Random], None],
    sound: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = tmp_path / "damaged.mcap", str(tmp_path / "out")
    commands = [
        (bag, ["info", str(path)]),
        (bag, ["recover", str(path), "--out", f"{out}.mcap"]),
        (bag, ["diff", str(path), str(sound)]),
        (bag, ["why", str(path), "--at", "2.0"]),
        (bag, ["latency", str(path), "--out", f"{out}.json"]),
        (bag, ["export", str(path), "--to", "jsonl", "--out", f"{out}.jsonl"]),
        (replay, [str(path), "--node", "all"]),
    ]
    tracemalloc.start()
    try:
        for seed in range(VARIANTS):
            data = bytearray(sound.read_bytes())
            damage(data, random.Random(seed))
            path.write_bytes(data)
            for run, arguments in commands:
                code = run(arguments)
                told = capsys.readouterr()
                assert code in (0, 1, 2), (seed, arguments, told.err)
                assert "Traceback" not in told.err
                assert code == 0 or (told.out + told.err).strip(), (seed, arguments)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_an_unknown_schema_version_is_refused_by_every_command(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "newer.mcap"
    data = sound.read_bytes()
    version = b"schema_version" + struct.pack("<I", 1)
    assert data.count(version + b"1") == 1
    path.write_bytes(data.replace(version + b"1", version + b"9"))
    for command in ("info", "recover", "why", "plot"):
        assert bag([command, str(path), *(["--at", "1"] if command == "why" else [])]) == 1
        assert sentence("runtime.another_version", version=9, own=1) in capsys.readouterr().err


ENVELOPE = b'{"topic":"robot/command","source":"guard","seq":1,"published_ns":1000000000}'
ODD = {
    "nested too deep": b'"position":' + b"[" * 50_000 + b"]" * 50_000,
    "of other types": b'"position":"x","base_v_mps":"fast"',
    "no numbers": b'"position":[NaN,Infinity]',
}


def odd_recording(path: Path, data: bytes, launch: bytes = b"") -> Path:
    """A sound file with one message that is not what it says."""
    writer = BagWriter(path, {"clock": "real"})
    if launch:
        writer.attach("launch.toml", "application/toml", launch)
    writer.copy(BagMessage("robot/command", "JointCommand", 1_000_000_000, data, "nodes.msgs:JointCommand", b"{}"))
    writer.close()
    return path


@pytest.mark.parametrize("what", ODD)
def test_what_no_message_can_be_is_told_by_every_command(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = odd_recording(tmp_path / "odd.mcap", b'{"_envelope":' + ENVELOPE + b"," + ODD[what] + b"}")
    commands: list[tuple[Callable[[list[str]], int], list[str]]] = [
        (bag, ["info"]), (bag, ["info", "--json"]), (bag, ["recover"]), (bag, ["cut", "--to", "1"]),
        (bag, ["why", "--at", "1"]), *((bag, ["export", "--to", form]) for form in ("csv", "jsonl", "lerobot")),
        (replay, []),
    ]  # fmt: skip
    for run, arguments in commands:
        named = [*arguments[:1], str(path), *arguments[1:]]
        assert run(named) in (0, 1), named
        capsys.readouterr()


@pytest.mark.parametrize("launch", ["nodes = 3", "[nodes]\nguard = 3", "[nodes.guard]\nuse = 5"])
def test_a_recorded_launch_file_that_is_none_is_refused(
    launch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = odd_recording(tmp_path / "odd.mcap", b'{"_envelope":' + ENVELOPE + b"}", launch.encode())
    for options in (["--node", "all"], ["--in-place-of", "guard", "--virtual"]):
        assert replay([str(path), *options]) == 2
        assert "odd.mcap: " in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "real"})
    words = Utterance(speaker="\x1b]0;owned\x07", text="\x1b[2Jgone")
    writer.write(Stamped(words, Envelope("heard", "person", 1, 1_000_000_000)))
    command = Envelope("robot/command", "guard", 1, 1_500_000_000, origins={"utterance": 1_000_000_000})
    writer.write(Stamped(JointCommand(position=(0.0,) * 8), command))
    writer.close()
    for run in (replay, bag):
        arguments = ["why", str(tmp_path / "run.mcap"), "--at", "1"] if run is bag else [str(tmp_path / "run.mcap")]
        assert run(arguments) == 0
        told = capsys.readouterr().out
        assert "\\x1b[2Jgone" in told
        assert not set(told) & {"\x1b", "\x07"}


def test_the_sound_one_reads_whole(sound: Path) -> None:
    reader = BagReader(sound)
    assert len(list(reader)) > 50
    assert reader.damage == []
