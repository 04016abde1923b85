"""Links in the field, with others at the far end, over IPv6, with TLS, and while they roam: rmw_zenoh, mosquitto.

usage: python -m tests.interop.field PYTHON_WITH_ZENOH_ROS2_SDK
"""

from __future__ import annotations

import asyncio
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import zenoh

from bridges.mqtt.client import Broker
from bridges.mqtt.connection import Connection, MqttOutbox
from bridges.mqtt.payloads import Topics
from bridges.ros2.link import TWISTS, open_link
from nodes.recording.ros2_messages import ros, type_hash
from runtime.clock import SystemClock
from tests.bridges.mqtt.mosquitto import BROKER, Foreigners, Mosquitto, free_port
from tests.bridges.mqtt.test_connection import SilentRelay
from tests.bridges.ros2.ros_side import RosbridgeSide
from tests.support.running import becomes, eventually

DOMAIN = 5
WORDS = 50


class Relay:
    """A `SilentRelay` in a thread of its own."""

    def __init__(self, port: int) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.relay = SilentRelay(port)
        self.port = asyncio.run_coroutine_threadsafe(self.relay.start(), self.loop).result(20)

    def lose(self) -> float:
        """Lose every link without a word; return, with the time of that, once a new one is open."""
        taken = self.relay.taken
        self.loop.call_soon_threadsafe(self.relay.lose)
        began = time.monotonic()
        eventually(lambda: self.relay.taken > taken, "a link in place of the lost one")
        return began


def take(heard: list[float], value: Any) -> None:
    heard.append((time.time_ns() - int(value.data)) * 1e-6)


def rosbridge_that_roams() -> None:
    side = RosbridgeSide()
    relay = Relay(int(side.at.rpartition(":")[2]))
    link = open_link(f"ws://127.0.0.1:{relay.port}", "rosbridge", 0, lambda _, words: print("told:", words))
    heard: list[Any] = []
    link.subscribe("/joint_states", "sensor_msgs/msg/JointState", heard.append)
    try:
        eventually(lambda: len(heard) > 10, "joint states")
        began, before = relay.lose(), len(heard)
        eventually(lambda: len(heard) > before, "it comes back")
        print(f"-- rosbridge, a link that was lost without a word: back after {time.monotonic() - began:.1f} s")
    finally:
        link.close()
        side.close()


def zenoh_with_a_foreign_peer(python: str) -> None:
    port = free_port()
    config = zenoh.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", f'["tcp/127.0.0.1:{port}", "tcp/[::1]:{port}"]')
    config.insert_json5("scouting/multicast/enabled", "false")
    router: Any = zenoh.open(config)
    command = [python, "tests/interop/field_peer.py", str(port), str(DOMAIN), type_hash(TWISTS[1])]
    peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    relay = Relay(port)
    try:
        for at in (f"tcp/127.0.0.1:{port}", f"tcp/[::1]:{port}", f"tcp/127.0.0.1:{relay.port}"):
            heard: list[float] = []
            link = open_link(at, "rmw_zenoh", DOMAIN, lambda _, words: print("told:", words))
            eventually(lambda link=link: TWISTS[1] in link.graph_types().get("/cmd_vel", ()), "its token")  # type: ignore[misc]  # bound now
            link.subscribe("/chatter", "std_msgs/msg/String", partial(take, heard))
            link.advertise("/said", "std_msgs/msg/String", reliable=True)
            eventually(lambda heard=heard: len(heard) > WORDS, "words of the peer")  # type: ignore[misc]  # bound now
            for _ in range(WORDS):
                link.publish("/said", ros.std_msgs__msg__String(str(time.time_ns())))
                time.sleep(0.01)
            print(f"-- zenoh {at}: {len(heard)} words came, median {statistics.median(heard):.1f} ms")
            if at.endswith(f":{relay.port}"):
                began, before = relay.lose(), len(heard)
                eventually(lambda heard=heard, before=before: len(heard) > before, "it comes back")  # type: ignore[misc]  # bound now
                print(f"-- zenoh, a link that was lost without a word: back after {time.monotonic() - began:.1f} s")
            link.close()
    finally:
        peer.terminate()
        said = peer.communicate(timeout=20)[0].split("\n")
        router.close()
    ms = [float(line) for line in said if line.replace(".", "", 1).replace("-", "", 1).isdigit()]
    assert len(ms) >= 2 * WORDS, f"the peer heard {len(ms)} words"
    print(f"-- zenoh: the peer heard {len(ms)} of {3 * WORDS} words, median {statistics.median(ms):.1f} ms")


async def mqtt_story(broker: Foreigners, port: int, relay: SilentRelay | None, address: str, ca: str) -> None:
    listener = broker.listen()
    where, topics = Broker(address, port, is_tls=bool(ca), ca_file=ca), Topics("polyrhythm", f"arm-{port}")
    link = Connection(
        where, topics, MqttOutbox(), None, discovery={},
        reborn="", clock=SystemClock(), log=logging.getLogger("link"),
    )  # fmt: skip
    began = time.monotonic()
    held = asyncio.create_task(link.hold(random.Random(0)))

    async def online(times: int) -> float:
        await becomes(lambda: sum(one["payload"]["state"] == "ONLINE" for one in listener.on("/connection")) >= times)
        return time.monotonic() - began

    try:
        took_s = await asyncio.wait_for(online(1), 60)
        print(f"-- mqtt {address}{' with TLS' if ca else ''}: ONLINE after {took_s:.2f} s")
        if relay is not None:
            relay.lose()
            began = time.monotonic()
            took_s = await asyncio.wait_for(online(2), 180)
            print(f"-- mqtt, a link that was lost without a word: ONLINE again after {took_s:.1f} s, and it stays")
    finally:
        held.cancel()
        await asyncio.wait([held], timeout=20)


async def mqtt_roams(broker: Mosquitto) -> None:
    relay = SilentRelay(broker.port)
    await mqtt_story(broker, await relay.start(), relay, "127.0.0.1", "")
    await relay.stop()


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    rosbridge_that_roams()
    zenoh_with_a_foreign_peer(sys.argv[1])
    if BROKER is None:
        print("field: mosquitto is not installed (apt install mosquitto mosquitto-clients)")
        return
    with tempfile.TemporaryDirectory() as folder:
        access = "topic readwrite polyrhythm/#\n"
        with Mosquitto(Path(folder), access=access) as broker:
            asyncio.run(mqtt_roams(broker))
        with Mosquitto(Path(folder), is_tls=True) as broker:
            asyncio.run(mqtt_story(broker, broker.port, None, "127.0.0.1", str(Path(folder) / "cert.pem")))
        port = free_port()
        listeners = f"listener {port} ::1\nallow_anonymous true\nuser root\nlistener {port} 127.0.0.1\n"
        (Path(folder) / "six").write_text(listeners)
        six = subprocess.Popen([BROKER, "-c", f"{folder}/six"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with Foreigners(port) as foreign:
                eventually(foreign.answers, "mosquitto on both")
                asyncio.run(mqtt_story(foreign, port, None, "::1", ""))
        finally:
            six.terminate()
            six.wait(20)


if __name__ == "__main__":
    main()
