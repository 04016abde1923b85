"""`polyrhythm mqtt clear`: remove what a broker retains of a robot that is no more."""

from __future__ import annotations

import argparse
import asyncio
import json
import os

from bridges.mqtt.payloads import Topics
from runtime.command_line.arguments import command, port_number
from runtime.errors import TransportError, UserError

QUIET_S = 0.5
"""A broker sends what it retains at once; after so long without a further message that was all."""
ONLINE = b'"state":"ONLINE"'


@command("mqtt", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0 where it is clear now; 1 where the broker does not answer; 2 where it was asked wrongly."""
    topics = Topics(asked.site, asked.robot)
    if problems := topics.problems():
        raise UserError("; ".join(problems))
    cleared, is_online = asyncio.run(_cleared(asked, topics))
    if asked.json:
        print(json.dumps({"cleared": cleared, "was_online": is_online}))
        return 0
    for topic in cleared:
        print(f"cleared: {topic}")
    print(f"{len(cleared)} retained topics of {topics.root} are cleared")
    if is_online:
        print("its bridge was ONLINE: where it lives, it says all of it again")
    return 0


async def _cleared(asked: argparse.Namespace, topics: Topics) -> tuple[list[str], bool]:
    from bridges.mqtt.client import Broker, connect

    login = os.environ.get("MQTT_USERNAME", ""), os.environ.get("MQTT_PASSWORD", "")
    broker = Broker(asked.address, asked.port, *login, asked.tls, asked.ca_file)
    places = [f"{topics.root}/#", f"{asked.discovery}/+/{topics.site}_{topics.robot}/+/config"]
    found: dict[str, bytes] = {}
    async with connect(broker, identifier=f"{topics.identifier}-c") as wire:
        for place in places:
            if not await wire.subscribe(place):
                raise TransportError(f"the broker refuses the subscription to {place}; allow it in its access list")
        incoming = wire.incoming()
        try:
            while True:
                message = await asyncio.wait_for(anext(incoming), QUIET_S)
                if message.is_retained and message.payload:
                    found[message.topic] = message.payload
        except (TimeoutError, StopAsyncIteration):
            pass
        for topic in found:
            await wire.publish(topic, b"", qos=1, retain=True)
    return sorted(found), ONLINE in found.get(topics.connection, b"")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm mqtt",
        description="Remove what a broker retains of a robot: its state, its connection, its entities in Home "
        "Assistant. MQTT_USERNAME and MQTT_PASSWORD let in.",
        epilog="example: polyrhythm mqtt clear kitchen --address 192.168.1.20 --tls",
    )
    parser.add_argument("verb", choices=["clear"])
    parser.add_argument("robot", help="the robot's name, as the bridge's parameter `robot` has it")
    parser.add_argument("--site", default="polyrhythm", help="the first level of its topics; default: polyrhythm")
    parser.add_argument("--address", default="127.0.0.1", help="where the broker is; default: this machine")
    parser.add_argument("--port", type=port_number, default=1883)
    parser.add_argument("--tls", action="store_true", help="encrypt the connection")
    parser.add_argument("--ca-file", default="", help="the authority that signed the broker's certificate")
    parser.add_argument("--discovery", default="homeassistant", help="Home Assistant's prefix")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
