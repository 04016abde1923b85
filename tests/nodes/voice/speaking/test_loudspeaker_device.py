"""A loudspeaker's device: sound in small pieces, silence at once, and faults that are told once and mended."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import miniaudio
import pytest

from nodes.msgs import Interrupt, LoudspeakerState, Saying, Utterance
from nodes.voice import devices
from nodes.voice.devices import DeviceError
from nodes.voice.loudspeaker import Loudspeaker
from nodes.voice.speaking import output_device
from nodes.voice.speaking.output_device import PERIOD_MS, PERIODS, STALL_S, Device, open_device
from nodes.voice.speaking.playing import BYTES_PER_FRAME, RATE_HZ, Nowhere
from runtime.clock import Clock, SystemClock, to_ns
from runtime.message import Message
from runtime.ports import Publisher, Sources
from tests.support.running import eventually
from tests.support.sentences import sentence

SECOND = b"\x01\x10" * RATE_HZ


class SetClock(SystemClock):
    """Shows what the test says."""

    def __init__(self) -> None:
        self.shown_ns = 0
        vars(self)["now_ns"] = lambda: self.shown_ns


class FakeDevice:
    """What miniaudio opens, played by the test: it asks for frames when it is told to."""

    def __init__(self) -> None:
        self.stop_callback: Callable[[], None] | None = None
        self.is_closed = False

    def start(self, feed: Iterator[bytes]) -> None:
        self.feed = feed

    def ask(self, frames: int = RATE_HZ * PERIOD_MS // 1000) -> bytes:
        return self.feed.send(frames)  # type: ignore[attr-defined,no-any-return]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def fake() -> FakeDevice:
    return FakeDevice()


def test_a_device_gets_the_sound_in_order_and_silence_around_it(fake: FakeDevice) -> None:
    device = Device(fake, SystemClock())
    assert fake.ask(4) == bytes(8)
    device.begin(b"abcdef")
    assert fake.ask(2) == b"abcd"
    assert device.played == 2
    assert fake.ask(2) == b"ef\0\0"
    assert device.played == 3
    assert fake.ask(2) == bytes(4)
    assert device.played == 3


def test_what_is_cut_gives_no_sample_more_and_keeps_how_far_it_got(fake: FakeDevice) -> None:
    device = Device(fake, SystemClock())
    device.begin(SECOND)
    fake.ask(100)
    device.silence()
    assert fake.ask(100) == bytes(200)
    assert device.played == 100
    device.begin(b"ab")
    assert device.played == 0


def test_what_is_handed_over_already_lasts_no_longer_than_50_ms() -> None:
    assert PERIOD_MS * PERIODS <= 50


def test_a_device_that_asks_for_nothing_any_more_is_gone(fake: FakeDevice) -> None:
    clock = SetClock()
    device = Device(fake, clock)
    clock.shown_ns += to_ns(STALL_S)
    assert device.fault == ""
    fake.ask()
    clock.shown_ns += to_ns(STALL_S)
    assert device.fault == ""
    clock.shown_ns += to_ns(STALL_S) + 1
    assert device.fault == f"{sentence('voice.speaker_is_gone')}{sentence('voice.takes_no_more')}"


def test_a_device_that_says_it_stopped_is_gone_at_once(fake: FakeDevice) -> None:
    device = Device(fake, SystemClock())
    assert fake.stop_callback is not None
    fake.stop_callback()
    assert device.fault == sentence("voice.speaker_is_gone")


@pytest.fixture
def null(monkeypatch: pytest.MonkeyPatch) -> None:
    """miniaudio's own device that nobody hears, at a real one's pace."""
    monkeypatch.setattr(devices, "REAL_BACKENDS", [miniaudio.Backend.NULL])


@pytest.mark.usefixtures("null")
@pytest.mark.parametrize("name", ["", "null play"])
def test_a_device_of_the_library_plays_to_the_end_and_falls_silent(name: str) -> None:
    device = open_device(name, SystemClock())
    try:
        device.begin(SECOND[: RATE_HZ // 5 * BYTES_PER_FRAME])
        eventually(lambda: device.played == RATE_HZ // 5, "0.2 s are played")
        assert device.fault == ""
        device.begin(SECOND * 60)
        eventually(lambda: device.played > 0, "it begins")
        device.silence()
        assert device.played < RATE_HZ * 60
    finally:
        device.close()


@pytest.mark.usefixtures("null")
def test_a_name_that_no_device_has_is_told_with_those_there_are() -> None:
    with pytest.raises(DeviceError) as problem:
        open_device("Kitchen", SystemClock())
    assert str(problem.value) == sentence(
        "voice.no_device", kind="loudspeaker", name="Kitchen", names="'NULL Playback Device'"
    )


def test_a_machine_without_sound_is_told_so(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(devices, "REAL_BACKENDS", [miniaudio.Backend.WASAPI])  # of another system
    with pytest.raises(DeviceError, match=r"^this machine has no loudspeaker$"):
        open_device("", SystemClock())
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("null")
def test_a_device_that_cannot_be_opened_is_told_with_those_there_are_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed: list[object] = []
    free = miniaudio.lib.ma_context_uninit

    class Library:
        MA_SUCCESS = miniaudio.lib.MA_SUCCESS

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

        def ma_device_init(self, *_: object) -> int:
            return -401

        def ma_context_uninit(self, context: object) -> object:
            freed.append(context)
            return free(context)

    real = miniaudio.lib
    monkeypatch.setattr(miniaudio, "lib", Library())
    with pytest.raises(DeviceError) as problem:
        open_device("", SystemClock())
    assert str(problem.value) == (
        "no loudspeaker can be opened (failed to init device, -401); there are: 'NULL Playback Device'"
    )
    problem.value.__cause__.__traceback__ = None  # type: ignore[union-attr]  # which keeps what was being opened
    problem.value.__context__ = problem.value.__cause__ = None
    del problem
    gc.collect()
    assert len(freed) == 3  # those of the list before and after, and that of the device


class FakePlayer(Nowhere):
    """Plays in real time until its cable is pulled."""

    fault = ""
    is_closed = False

    def pull(self) -> None:
        self.silence()
        self.fault = "the loudspeaker is gone"

    def close(self) -> None:
        self.is_closed = True


class Room:
    """A loudspeaker node by itself in real time, and the devices that it finds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.devices: list[FakePlayer | str] = []  # or why there is none
        self.told: list[Saying] = []
        self.states: list[LoudspeakerState] = []
        monkeypatch.setattr(output_device, "open_device", self.open)
        monkeypatch.setattr(Loudspeaker, "problems", lambda *_: [])
        self.node = Loudspeaker(command="")
        for port in (self.node.saying, self.node.state):
            port.sink = self.hear

    def open(self, name: str, clock: Clock) -> FakePlayer:
        device = self.devices.pop(0)
        if isinstance(device, str):
            raise DeviceError(device)
        return device

    def hear(self, port: Publisher[Message], message: Message, stems_from: Sources = None) -> None:
        port.sent += 1
        if isinstance(message, Saying):
            self.told.append(message)
        elif isinstance(message, LoudspeakerState):
            self.states.append(message)

    def speak(self, text: str) -> Awaitable[None]:
        """Say it; done when the last word of it is told."""
        self.node.queue(Utterance(speaker="robot", text=text))
        before = len(self.told)

        def is_over() -> bool:
            return any(one.text == text and one.phase != "begun" for one in self.told[before:])

        return asyncio.ensure_future(self.until(is_over))

    def play(self, scene: Callable[[Room], Awaitable[None]]) -> None:
        async def whole() -> None:
            self.node.on_start()
            self.serving: asyncio.Future[None] = asyncio.ensure_future(self.node.serve())
            try:
                async with asyncio.timeout(60):
                    await scene(self)
            finally:
                self.serving.cancel()
                await asyncio.wait([self.serving])
                self.node.on_stop()

        asyncio.run(whole())

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not fact():
                await asyncio.sleep(0.005)


@contextmanager
def player_of(room: Room) -> Iterator[FakePlayer]:
    player = FakePlayer(room.node.clock)
    room.devices.append(player)
    yield player


def test_what_is_said_before_the_device_is_open_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)

    async def scene(room: Room) -> None:
        speaking = room.speak("Hi.")
        await asyncio.sleep(0)
        assert room.told == []
        await room.node.mend()
        await speaking

    with player_of(room) as player:
        room.play(scene)
    assert [one.phase for one in room.told] == ["begun", "done"]
    assert [state.is_live for state in room.states] == [True]
    assert player.is_closed


def test_a_device_that_cannot_be_opened_is_told_once_and_words_are_cut_until_it_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    room = Room(monkeypatch)
    room.devices += ["no loudspeaker can be opened (x)", "no loudspeaker can be opened (y)"]

    async def scene(room: Room) -> None:
        await room.node.mend()
        await room.speak("One.")
        await room.node.mend()
        await room.node.mend()
        await room.speak("Two.")

    with player_of(room):
        room.play(scene)
    assert [(one.phase, one.why) for one in room.told] == [
        ("cut", "no loudspeaker can be opened (x)"),
        ("begun", ""),
        ("done", ""),
    ]
    assert [(state.is_live, state.why) for state in room.states] == [
        (False, "no loudspeaker can be opened (x)"),
        (True, ""),
    ]
    assert caplog.text.count("can be opened") == 1
    assert caplog.text.count("works again") == 1


def test_a_device_that_goes_away_cuts_the_utterance_where_it_was_and_is_closed_and_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room(monkeypatch)

    async def scene(room: Room) -> None:
        await room.node.mend()
        speaking = room.speak("A word, and " + "another " * 30 + "word.")
        await room.until(lambda: player.played > RATE_HZ // 2)
        player.pull()
        await speaking
        await room.node.mend()
        assert player.is_closed
        await room.speak("Hi.")

    with player_of(room) as player, player_of(room):
        room.play(scene)
    assert [one.phase for one in room.told] == ["begun", "cut", "begun", "done"]
    assert room.told[1].why == sentence("voice.speaker_is_gone")
    assert room.told[1].spoken.startswith("A")
    assert len(room.told[1].spoken) < len(room.told[1].text)
    assert [state.is_live for state in room.states] == [True, False, True]


def test_a_device_that_goes_away_while_nothing_is_said_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)

    async def scene(room: Room) -> None:
        await room.node.mend()
        player.pull()
        await room.node.mend()
        await room.speak("Hi.")

    with player_of(room) as player:
        room.play(scene)
    assert [(one.phase, one.why) for one in room.told] == [("cut", sentence("voice.speaker_is_gone"))]


def test_a_stop_silences_the_device_before_anything_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)

    async def scene(room: Room) -> None:
        await room.node.mend()
        speaking = room.speak("word " * 50)
        await room.until(lambda: player.played > 0)
        room.node.obey(Interrupt(id="i", depth="stop", text="Stop!", by="ann"))
        assert player.is_silent
        await speaking

    with player_of(room) as player:
        room.play(scene)
    assert [(one.phase, one.why) for one in room.told] == [("begun", ""), ("cut", "stop")]


def test_a_failure_that_nobody_thought_of_costs_one_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)

    async def scene(room: Room) -> None:
        await room.node.mend()
        monkeypatch.setattr(player, "begin", lambda _: 1 / 0)
        room.node.queue(Utterance(speaker="robot", text="One."))
        await room.until(lambda: room.node.turn is not None)
        await asyncio.wait([room.serving])
        assert isinstance(room.serving.exception(), ZeroDivisionError)
        monkeypatch.undo()
        room.serving = asyncio.ensure_future(room.node.serve())  # as the runtime does at the next tick
        await room.speak("Two.")

    with player_of(room) as player:
        room.play(scene)
    assert [(one.text, one.phase, one.why) for one in room.told] == [
        ("One.", "cut", sentence("voice.speaker_failed")),
        ("Two.", "begun", ""),
        ("Two.", "done", ""),
    ]
