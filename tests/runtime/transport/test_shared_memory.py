"""Arrays in shared memory are read where they lie, are never rewritten under a reader, and outlive nobody."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from runtime.errors import TransportError
from runtime.operating_system.machine import NATIVE
from runtime.transport import fast_lane
from runtime.transport.shared_memory import FOLDER, Pool, SlotAddress, Views, is_available, sweep
from tests.support.running import eventually

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not is_available(), reason="needs /dev/shm")]

SIZE = 200_000


@pytest.fixture(params=fast_lane.variants, autouse=True)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this in Python, and in C where that is built."""
    monkeypatch.setattr(fast_lane, "chosen", fast_lane.variants[request.param])
    monkeypatch.setenv(NATIVE, request.param)  # for the processes that are started


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in shared memory of the test's own."""
    with tempfile.TemporaryDirectory(prefix="test-", dir=FOLDER) as name:
        yield Path(name)


@pytest.fixture
def pool(folder: Path) -> Iterator[Pool]:
    """A pool whose slots may be rewritten at once."""
    pool = Pool(folder, budget_bytes=2_000_000, grace_s=0.0)
    yield pool
    pool.close()


def filled(value: int, size: int = SIZE) -> bytes:
    return bytes([value % 256]) * size


def stored(pool: Pool, value: int) -> SlotAddress:
    place = pool.store([filled(value)])
    assert place is not None
    return place


def process(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.runtime.transport.shared_memory_process", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def tell(other: subprocess.Popen[bytes], place: SlotAddress) -> None:
    assert other.stdin is not None
    other.stdin.write(msgspec.json.encode(place) + b"\n")
    other.stdin.flush()


def answer(other: subprocess.Popen[bytes]) -> bytes:
    assert other.stdout is not None
    return other.stdout.readline().strip()


def test_several_arrays_come_back_as_they_were_and_cannot_be_written(folder: Path, pool: Pool) -> None:
    arrays = [filled(1), filled(2, 1000), b"", filled(3, 77)]
    place = pool.store(arrays)
    assert place is not None
    views = Views(folder)
    frames = views.take(place)
    assert frames is not None
    assert [bytes(frame) for frame in frames] == arrays
    array = np.frombuffer(frames[0], np.uint8)
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_a_slot_is_not_rewritten_while_any_view_of_a_view_is_kept(folder: Path, pool: Pool) -> None:
    views = Views(folder)
    frames = views.take(stored(pool, 7))
    assert frames is not None
    kept = np.frombuffer(frames[0], np.uint8).reshape(-1, 2)[10:20, 0]
    del frames
    for value in range(8, 60):
        stored(pool, value)
    assert set(kept) == {7}


def test_a_slot_is_used_again_once_the_last_view_is_gone(folder: Path, pool: Pool) -> None:
    views = Views(folder)
    slots = set()
    for value in range(200):
        place = stored(pool, value)
        frames = views.take(place)
        assert frames is not None
        assert frames[0][0] == value
        slots.add(place.slot)
        del frames
    assert len(slots) == 1


def test_what_has_been_rewritten_is_not_handed_out(folder: Path, pool: Pool) -> None:
    early = stored(pool, 1)
    late = stored(pool, 2)
    assert early.slot == late.slot
    views = Views(folder)
    assert views.take(early) is None
    frames = views.take(late)
    assert frames is not None
    assert frames[0][0] == 2
    assert views.take(early) is None  # though its slot is held now


def test_an_announced_slot_waits_for_its_readers_while_there_is_another(folder: Path) -> None:
    pool = Pool(folder, budget_bytes=10 * SIZE, grace_s=1000.0)
    places = [stored(pool, value) for value in range(40)]
    pool.close()
    most = len({place.slot for place in places})
    assert 3 <= most < 40
    assert [place.slot for place in places[:most]] == list(range(most))


def test_where_every_slot_is_held_arrays_travel_inside_the_message(folder: Path, pool: Pool) -> None:
    views = Views(folder)
    held = []
    while (place := pool.store([filled(1)])) is not None:
        held.append(views.take(place))
        assert len(held) < 100
    assert held
    held.clear()
    assert pool.store([filled(1)]) is not None


def test_sizes_share_the_budget_and_an_old_size_makes_room(folder: Path) -> None:
    pool = Pool(folder, budget_bytes=1_000_000, grace_s=0.0)
    for size in (100_000, 200_000, 300_000, 50_000, 100_000, 400_000):
        assert pool.store([bytes(size)]) is not None
        assert sum(file.stat().st_size for file in folder.iterdir()) < 1_100_000
    assert pool.store([bytes(2_000_000)]) is None
    assert "more than 0 MiB" in pool.problem
    pool.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_folder_is_told_and_leaves_nothing(
    folder: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(fd: int, offset: int, length: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        assert pool.store([filled(1)]) is None
        assert os.strerror(number) in pool.problem
        assert not list(folder.iterdir())
    assert pool.store([filled(1)]) is not None


def test_without_such_a_folder_nothing_is_stored(folder: Path) -> None:
    pool = Pool(folder / "none")
    assert pool.store([filled(1)]) is None
    pool.close()


@pytest.mark.parametrize(
    "change",
    [
        {"segment": "../../etc/passwd"},
        {"segment": ""},
        {"slot": -1},
        {"slot": 1 << 40},
        {"sizes": ()},
        {"sizes": (-1, SIZE)},
        {"sizes": (1 << 62,)},
        {"sizes": (SIZE, SIZE)},
    ],
)
def test_a_forged_place_is_none(folder: Path, pool: Pool, change: dict[str, object]) -> None:
    forged = msgspec.structs.replace(stored(pool, 1), **change)
    with pytest.raises(ValueError):  # noqa: PT011  # in several words
        Views(folder).take(forged)


def test_a_forged_segment_is_none(folder: Path) -> None:
    name = f"polyrhythm-{os.getuid()}-1-00000000"
    for content in (b"", bytes(10_000), b"polyrhythm-slots" + b"\xff" * 10_000):
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match="segment"):
            Views(folder).take(SlotAddress(name, 0, 0, (1,)))


def test_a_segment_that_is_not_there_is_an_error_in_words(folder: Path) -> None:
    with pytest.raises(TransportError, match="cannot be read: No such file"):
        Views(folder).take(SlotAddress("polyrhythm-1-1-00000000", 0, 0, (1,)))


def test_closing_leaves_nothing_and_takes_nothing_from_readers(folder: Path, pool: Pool) -> None:
    views = Views(folder)
    frames = views.take(stored(pool, 9))
    assert frames is not None
    pool.close()
    views.close()
    assert not list(folder.iterdir())
    assert set(bytes(frames[0])) == {9}
    assert pool.store([filled(1)]) is None


def test_a_sweep_takes_what_the_dead_left_and_nothing_of_the_living(folder: Path, pool: Pool) -> None:
    own = stored(pool, 1).segment
    writer = process("write", str(folder))
    dead = msgspec.json.decode(answer(writer), type=SlotAddress).segment
    (folder / "polyrhythm-something-else").write_bytes(b"")
    assert sweep(folder) == []
    frames = Views(folder).take(SlotAddress(dead, 0, 1, (SIZE,)))
    writer.kill()
    writer.communicate()
    assert (folder / dead).exists()
    assert sweep(folder) == [dead]
    assert sorted(file.name for file in folder.iterdir()) == [own, "polyrhythm-something-else"]
    assert frames is not None
    assert set(bytes(frames[0])) == {0}  # what is in use stays good


def test_a_killed_reader_holds_nothing(folder: Path, pool: Pool) -> None:
    reader = process("hold", str(folder))
    held = []
    while (place := pool.store([filled(1)])) is not None:
        held.append(place)
        tell(reader, place)
        assert answer(reader) == b"held"
    reader.kill()
    reader.communicate()
    eventually(lambda: pool.store([filled(1)]) is not None, "the slots are free again")


def test_slow_readers_never_see_a_torn_array_of_a_fast_writer(folder: Path) -> None:
    pool = Pool(folder, budget_bytes=64 * SIZE, grace_s=0.002)
    readers = [process("look", str(folder), str(seed)) for seed in range(3)]
    for reader in readers:
        assert reader.stdin is not None
        fcntl.fcntl(reader.stdin, fcntl.F_SETPIPE_SZ, 4096)  # so that they are not too far behind
    refused = 0
    for value in range(3000):
        place = pool.store([filled(value)])
        if place is None:
            refused += 1
            continue
        for reader in readers:
            tell(reader, place)
    taken = gone = 0
    for reader in readers:
        output, _ = reader.communicate(timeout=120)
        one_taken, one_gone, torn = map(int, output.split())
        assert torn == 0
        assert one_taken + one_gone == 3000 - refused
        taken, gone = taken + one_taken, gone + one_gone
    pool.close()
    assert taken > 100
    assert gone > 100  # it was a race
