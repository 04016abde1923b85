"""No damage to a recording makes a command crash, hang or fill the memory; what it cannot do it says in a sentence."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.bag_commands.command import main as bag
from nodes.replay.command import main as replay
from runtime.bag import BagReader
from tests.synthetic_run import write_run

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


@pytest.mark.parametrize("damage", [flip, cut, forge_length, lose_middle])
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
        assert "recording version '9'; this Polyrhythm reads '1'" in capsys.readouterr().err


def test_the_sound_one_reads_whole(sound: Path) -> None:
    reader = BagReader(sound)
    assert len(list(reader)) > 50
    assert reader.damage == []
