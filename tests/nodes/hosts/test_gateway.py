"""Two gateways over real sockets: what crosses, what is refused, and what becomes of a link that breaks."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from bench.relay import Relay, relayed
from nodes.hosts import wire
from nodes.hosts.admission import Traffic
from nodes.hosts.clock_offset import TRUST_NS
from nodes.hosts.sockets import WAYS, Doors
from nodes.msgs import EStop, Image, Interrupt, RobotState, Utterance
from runtime.clock import SystemClock
from runtime.errors import TransportError
from runtime.hosts.hosts_table import Host, HostPair
from runtime.message import Envelope, Stamped
from runtime.serialization.codec import encode
from runtime.transport.reliable.tag import Terms
from tests.support.gateway_ends import (
    CLOCK,
    DESKTOP_SECRET,
    DOWN,
    OTHER_PUBLIC,
    OTHER_SECRET,
    ROBOT_PUBLIC,
    ROBOT_SECRET,
    UP,
    End,
    end,
    link,
    logged,
    meeting,
    until_it_crosses,
)
from tests.support.ports import free_ports, needs_ipv6
from tests.support.running import eventually
from tests.support.sentences import pattern
from tests.support.standing import standing

pytestmark = pytest.mark.processes

UTTERANCE = Utterance(speaker="Sam", text="Stop")
EVENT_BYTES = sum(len(frame) for frame in encode(Envelope("heard", "vlm", 1, 0), UTTERANCE))
PATIENT = Terms((), 60.0, 60.0)  # on a busy machine a link may take its time
PRESSED = EStop(source="button", is_pressed=True)


def test_messages_cross_encrypted_with_their_stamps_moved() -> None:
    with link(free_ports(2)) as (robot, desktop):
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        before_ns = CLOCK.now_ns()
        until_it_crosses(robot, desktop, "estop", PRESSED, "button")
        assert robot.of("heard")[0].message == UTTERANCE
        arrived = desktop.of("estop")[-1].envelope
        assert arrived.source == "button"
        assert arrived.published_ns <= CLOCK.now_ns()
        assert arrived.published_ns > before_ns - 1_000_000_000  # one machine: the offset is nearly nothing
        eventually(lambda: desktop.health is not None and desktop.health.is_up, "the link tells how it fares")


@needs_ipv6
def test_messages_cross_over_ipv6_too() -> None:
    with link(free_ports(2, "::1"), address="::1") as (robot, desktop):
        assert robot.doors.small.address.startswith("tcp://[::1]:")
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        until_it_crosses(robot, desktop, "estop", PRESSED, "button")
        assert robot.of("heard")[0].message == UTTERANCE


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "::ffff:0.0.0.0", "::ffff:192.0.2.7", "192.0.2.7", "fd00::7"])
def test_no_door_opens_to_others_without_keys_whoever_has_forgotten_to_look(address: str) -> None:
    with pytest.raises(TransportError, match=pattern("runtime.open_to_anyone")):
        Doors(meeting(free_ports(2), is_encrypted=False, address=address), "robot", "")


def test_an_address_of_another_machine_is_asked_about() -> None:
    with pytest.raises(TransportError, match=f"cannot be had: .*; {pattern('runtime.is_it_an_address')}"):
        Doors(meeting(free_ports(2), address="192.0.2.7"), "robot", ROBOT_SECRET)


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_nobody_calls_at_any_address(address: str) -> None:
    with pytest.raises(TransportError, match=rf"{pattern('runtime.any_address')}; .* --set hosts\.robot"):
        Doors(meeting(free_ports(2), address=address), "desktop", DESKTOP_SECRET)


def test_an_image_crosses_as_jpeg_with_its_depth_and_its_stamp() -> None:
    ramp = np.tile(np.linspace(0, 255, 64, dtype=np.uint8), (48, 1))
    image = Image(
        camera="head",
        captured_ns=CLOCK.now_ns(),
        rgb=np.dstack([ramp, ramp, 255 - ramp]),
        depth_m=np.full((48, 64), 1.234, np.float32),
        focal_px=50.0,
    )
    with link(free_ports(2)) as (robot, desktop):
        until_it_crosses(robot, desktop, "head/image", image, "camera")
        arrived = desktop.of("head/image")[0].message
        assert np.abs(arrived.rgb.astype(int) - image.rgb.astype(int)).mean() < 4.0
        assert np.abs(arrived.depth_m - 1.234).max() < 0.001
        assert (arrived.camera, arrived.focal_px) == ("head", 50.0)
        assert arrived.captured_ns <= image.captured_ns + TRUST_NS  # the two ways may differ, by little on one machine


def test_what_the_other_host_has_no_right_to_publish_is_refused_and_named(caplog: pytest.LogCaptureFixture) -> None:
    with link(free_ports(2)) as (robot, desktop):
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        known = len(robot.of("heard"))
        desktop.send("heard", UTTERANCE, seq=90_000, source="robot_node")  # a node of the robot itself
        desktop.send("estop", PRESSED, seq=90_001, source="button")  # a topic that only the robot publishes
        eventually(logged(caplog, "'robot_node' may not publish 'heard' from desktop"), "the false source is named")
        eventually(logged(caplog, "desktop may not publish 'estop'"), "the topic is named")
        assert [stamped for stamped in robot.of("heard")[known:] if stamped.envelope.source != "vlm"] == []
        assert robot.of("estop") == []
        eventually(
            lambda: robot.health is not None and robot.health.dropped.get("not allowed") == 2, "both are counted"
        )


def test_a_peer_with_another_key_is_refused_and_both_ends_say_so(caplog: pytest.LogCaptureFixture) -> None:
    port = free_ports(2)
    stranger = HostPair(meeting(port).server, Host("desktop", key=OTHER_PUBLIC), port)
    with end("robot", meeting(port), ROBOT_SECRET, DOWN) as robot, end("desktop", stranger, OTHER_SECRET, UP) as thief:
        eventually(logged(caplog, "was refused: it has not the key of desktop"), "the robot says so")
        eventually(logged(caplog, "refused this host"), "the other end is told")
        thief.send("heard", UTTERANCE)
        assert robot.of("heard") == []


def test_who_speaks_without_encryption_is_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    port = free_ports(2)
    with (
        end("robot", meeting(port), ROBOT_SECRET, DOWN) as robot,
        end("desktop", meeting(port, is_encrypted=False), "", UP),
    ):
        eventually(logged(caplog, "at tcp://127.0.0.1"), "the robot notices that somebody is there")
        assert not robot.gateway.is_up()


def test_another_launch_file_at_the_other_end_is_said_and_nothing_crosses(caplog: pytest.LogCaptureFixture) -> None:
    with link(free_ports(2), graph="other") as (robot, desktop):
        eventually(logged(caplog, "desktop runs another launch file or release"), "it is said")
        desktop.send("heard", UTTERANCE)
        assert robot.of("heard") == []


def test_a_peer_that_is_started_again_is_taken_in_again(caplog: pytest.LogCaptureFixture) -> None:
    port = free_ports(2)
    with end("robot", meeting(port), ROBOT_SECRET, DOWN) as robot:
        for seq in (1, 2):
            with end("desktop", meeting(port), DESKTOP_SECRET, UP) as desktop:
                before = len(robot.of("heard"))
                eventually(
                    lambda desktop=desktop, before=before, seq=seq: (
                        desktop.send("heard", UTTERANCE, seq=seq) or len(robot.of("heard")) > before  # type: ignore[misc]
                    ),
                    "a message crosses",
                    20.0,
                )
            eventually(logged(caplog, "desktop has left"), "it is said that the peer is gone")


def test_the_end_of_a_run_is_told_to_the_other_host_with_its_outcome() -> None:
    port = free_ports(2)
    with end("desktop", meeting(port), DESKTOP_SECRET, UP) as desktop:
        with end("robot", meeting(port), ROBOT_SECRET, DOWN) as robot:
            until_it_crosses(robot, desktop, "estop", PRESSED, "button")
        eventually(lambda: desktop.endings == [(True, "robot: all done")], "the outcome comes over")


GARBLED: list[list[bytes]] = [
    [b""],
    [wire.WORD],
    [wire.WORD, b"\xc1\xff"],
    [wire.WORD, b"\x81" * 500],
    [wire.MESSAGE],
    [wire.MESSAGE, b"heard", b"\x93"],
    [wire.MESSAGE, b"heard", b"\xff" * 40, b"x"],
    [wire.MESSAGE, b"\xff\xfe", b""],
    [wire.EVENT],
    [wire.EVENT, b"", b"\xff"],
    [wire.EVENT, b"no tag", b"heard", b"\x93"],
    [wire.RECEIPT],
    [wire.RECEIPT, b"\x81" * 500],
    [b"?", b"?"],
]


def test_garbled_frames_are_counted_one_by_one_and_harm_nothing() -> None:
    with link(free_ports(2)) as (robot, desktop):
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        numbers = iter(range(50_000, 60_000))
        for frames in GARBLED:
            desktop.gateway.small.append(("", list(frames), 0))
            known = len(robot.of("heard"))

            def still_crosses(known: int = known) -> bool:
                desktop.send("heard", UTTERANCE, seq=next(numbers))
                return len(robot.of("heard")) > known

            eventually(still_crosses, f"what is right still crosses after {frames!r}")
        came = sum(WAYS if frames[0] == wire.WORD else 1 for frames in GARBLED)  # a word goes by every connection
        eventually(lambda: robot.health is not None and sum(robot.health.dropped.values()) >= came, "all are counted")
        assert robot.health is not None
        assert sum(robot.health.dropped.values()) == came


def test_a_message_from_the_future_is_dropped() -> None:
    with link(free_ports(2)) as (robot, desktop):
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        envelope = Envelope("heard", "vlm", 70_000, CLOCK.now_ns() + 60_000_000_000)
        desktop.gateway.small.append(("", [wire.MESSAGE, *encode(envelope, UTTERANCE)], 0))
        eventually(
            lambda: robot.health is not None and robot.health.dropped.get("from the future") == 1, "it is counted"
        )
        assert all(stamped.envelope.seq != 70_000 for stamped in robot.of("heard"))


def test_what_was_said_while_the_link_was_cut_comes_once_and_in_order() -> None:
    port = free_ports(4)
    far = HostPair(Host("robot", "127.0.0.1", port + 2, ROBOT_PUBLIC), meeting(port).client, port + 2)
    with ExitStack() as stack:
        relays = [
            stack.enter_context(relayed(Relay(("127.0.0.1", port + 2 + n), ("127.0.0.1", port + n)))) for n in (0, 1)
        ]
        robot = stack.enter_context(end("robot", meeting(port), ROBOT_SECRET, DOWN))
        desktop = stack.enter_context(end("desktop", far, DESKTOP_SECRET, UP, reliable={"heard": PATIENT}))
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        first = 20_000

        def send(begin: int, end: int) -> int:
            before = desktop.gateway.bytes_sent
            for number in range(begin, end):
                desktop.send("heard", UTTERANCE, seq=number)
            return before

        send(first, first + 10)
        for relay in relays:
            relay.is_frozen = True
        before = send(first + 10, first + 20)
        eventually(lambda: desktop.gateway.bytes_sent - before > 10 * EVENT_BYTES, "ten are in the cable")
        for relay in relays:
            relay.cut()  # and never come out
            relay.is_frozen = False
        send(first + 20, first + 40)

        def came() -> list[int]:
            return [seq for stamped in robot.of("heard") if (seq := stamped.envelope.seq) >= first]

        eventually(lambda: len(came()) >= 40, "all of them cross")
        assert came() == list(range(first, first + 40))


def test_an_image_that_waits_in_its_connection_holds_up_no_newer_one_and_never_comes_after_it() -> None:
    port = free_ports(4)
    far = HostPair(Host("robot", "127.0.0.1", port + 2, ROBOT_PUBLIC), meeting(port).client, port + 2)
    noise = np.random.default_rng(1).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    shows = Traffic({"head/image": Image}, {"heard": Utterance}, {"heard": ("vlm",)})
    sees = Traffic({"heard": Utterance}, {"head/image": Image}, {"head/image": ("camera",)})
    numbers = iter(range(1, 1_000_000))
    with ExitStack() as stack:
        _, bulk = (
            stack.enter_context(relayed(Relay(("127.0.0.1", port + 2 + n), ("127.0.0.1", port + n)))) for n in (0, 1)
        )
        robot = stack.enter_context(end("robot", meeting(port), ROBOT_SECRET, sees))
        desktop = stack.enter_context(end("desktop", far, DESKTOP_SECRET, shows))

        def show() -> int:
            number = next(numbers)
            image = Image(camera="head", captured_ns=CLOCK.now_ns(), rgb=noise)
            desktop.send("head/image", image, seq=number, source="camera")
            return number

        def newest() -> int:
            return max((stamped.envelope.seq for stamped in robot.of("head/image")), default=0)

        def one_is_overtaken() -> bool:
            bulk.held = frozenset({bulk.last})
            waits = show()
            eventually(lambda: show() > waits < newest(), "a newer one comes by another connection")
            bulk.held = frozenset()
            return robot.health is not None and robot.health.dropped.get("overtaken", 0) > 0

        eventually(lambda: show() > 0 and newest() > 0, "images cross")
        eventually(one_is_overtaken, "the one that waited comes late, and is counted")
        came = [stamped.envelope.seq for stamped in robot.of("head/image")]
        assert came == sorted(set(came))


def test_of_two_gateways_with_one_key_the_first_stays_and_both_hear_why(caplog: pytest.LogCaptureFixture) -> None:
    port = free_ports(2)
    with ExitStack() as stack:
        robot = stack.enter_context(end("robot", meeting(port), ROBOT_SECRET, DOWN))
        with end("desktop", meeting(port), DESKTOP_SECRET, UP) as first:
            until_it_crosses(first, robot, "heard", UTTERANCE, "vlm")
            second = stack.enter_context(end("desktop", meeting(port), DESKTOP_SECRET, UP))
            eventually(logged(caplog, "a second gateway with the key of desktop was refused"), "the robot says so")
            eventually(logged(caplog, "robot is connected to another gateway that has the key of"), "it is told so")
            known = len(robot.of("heard"))
            for number in range(90_000, 90_050):
                second.send("heard", UTTERANCE, seq=number)
            eventually(lambda: says(first, robot, "still here"), "the first one is heard still")
            assert robot.gateway.peer_session == first.gateway.session
            assert all(stamped.envelope.seq < 90_000 for stamped in robot.of("heard")[known:])
        eventually(lambda: says(second, robot, "at last"), "the second one is heard once the first has left")


def says(sender: End, receiver: End, text: str) -> bool:
    """Say it once more, and look whether it has come."""
    sender.send("heard", Utterance(speaker="Sam", text=text), seq=CLOCK.now_ns() % 80_000)
    return text in [stamped.message.text for stamped in receiver.of("heard")]


@pytest.mark.parametrize(("depth", "comes"), [("stop", True), ("resume", False), ("amend", False)])
def test_late_is_better_than_never_for_a_stop_alone(depth: str, comes: bool) -> None:
    traffic = {"interrupt": Interrupt}
    port, terms = free_ports(2), {"interrupt": Terms((), 10.0, 0.0)}
    says = Traffic(traffic, {"heard": Utterance}, {"heard": ("vlm",)})
    hears = Traffic({"heard": Utterance}, traffic, {"interrupt": ("console",)})
    with (
        end("robot", meeting(port), ROBOT_SECRET, hears) as robot,
        end("desktop", meeting(port), DESKTOP_SECRET, says, reliable=terms) as desktop,
    ):

        def say(seq: int, depth: str, age_s: float) -> None:
            message = Interrupt(id=str(seq), depth=depth, text="", by="console")  # type: ignore[arg-type]
            born_ns = CLOCK.now_ns() - int(age_s * 1e9)
            desktop.gateway.from_here(Stamped(message, Envelope("interrupt", "console", seq, born_ns)))

        numbers = iter(range(1, 10_000))
        eventually(lambda: say(next(numbers), "amend", 0.0) or bool(robot.of("interrupt")), "the link is up")  # type: ignore[func-returns-value]
        say(50_000, depth, 30.0)
        if comes:
            eventually(lambda: robot.of("interrupt")[-1].envelope.seq == 50_000, "it comes")
        else:
            eventually(lambda: robot.health is not None and robot.health.dropped.get("expired", 0) > 0, "it is counted")
            assert all(stamped.envelope.seq != 50_000 for stamped in robot.of("interrupt"))


def test_a_port_that_is_taken_is_a_sentence() -> None:
    port = free_ports(2)
    with (
        end("robot", meeting(port), ROBOT_SECRET, DOWN),
        pytest.raises(TransportError, match="host robot cannot be had"),
    ):
        Doors(meeting(port), "robot", ROBOT_SECRET)


class ClockAnHourOff(SystemClock):
    """Another host's: an hour ahead."""

    def now_ns(self) -> int:
        return super().now_ns() + 3_600_000_000_000


def test_a_host_whose_clock_is_an_hour_off_is_understood() -> None:
    port, clock = free_ports(2), ClockAnHourOff()
    with (
        end("robot", meeting(port), ROBOT_SECRET, DOWN) as robot,
        end("desktop", meeting(port), DESKTOP_SECRET, UP, clock=clock) as desktop,
    ):
        numbers = iter(range(1, 10_000))

        def crossed() -> bool:
            envelope = Envelope("heard", "vlm", next(numbers), clock.now_ns(), origins={"utterance": clock.now_ns()})
            desktop.gateway.from_here(Stamped(UTTERANCE, envelope))
            return bool(robot.of("heard"))

        eventually(crossed, "it crosses")
        arrived = robot.of("heard")[0].envelope
        assert 0 <= CLOCK.now_ns() - arrived.published_ns < 5_000_000_000
        assert 0 <= CLOCK.now_ns() - arrived.begun_ns("utterance") < 5_000_000_000


def test_a_state_goes_over_two_connections_and_comes_once_in_order() -> None:
    """TCP holds back what follows a lost packet; a command must not wait for that."""
    with ExitStack() as stack:
        pair = meeting(free_ports(2))
        down = Traffic({"robot/state": RobotState}, {"heard": Utterance}, {"heard": ("vlm",)})
        up = Traffic({"heard": Utterance}, {"robot/state": RobotState}, {"robot/state": ("driver",)})
        robot = stack.enter_context(end("robot", pair, ROBOT_SECRET, down))
        desktop = stack.enter_context(end("desktop", pair, DESKTOP_SECRET, up))
        until_it_crosses(desktop, robot, "heard", UTTERANCE, "vlm")
        until_it_crosses(robot, desktop, "robot/state", standing(1), "driver")
        last = 20_000
        for number in range(last - 100, last + 1):
            robot.send("robot/state", standing(number), seq=number, source="driver")
        eventually(lambda: desktop.of("robot/state")[-1].envelope.seq == last, "the newest comes")
        numbers = [stamped.envelope.seq for stamped in desktop.of("robot/state")]
        assert numbers == sorted(set(numbers))
