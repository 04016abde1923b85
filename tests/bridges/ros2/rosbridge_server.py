"""A rosbridge server for tests, as far as topics and actions go: `python rosbridge_server.py PORT`, with no ROS.

Every publisher's message goes to every subscriber; what was done to actions goes out on /action_log as a String. The
test of it is a client that others wrote (roslibpy).
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

subscribers: dict[str, set[ServerConnection]] = {}
types: dict[str, str] = {}


async def answer(socket: ServerConnection) -> None:
    goals: dict[str, str] = {}
    try:
        async for text in socket:
            said = json.loads(text)
            op, topic = said["op"], said.get("topic", "")
            if op == "advertise":
                known = types.setdefault(topic, said["type"])
                if short(known) != short(said["type"]):
                    await status(socket, "error", f"{topic} has type {known}, not {said['type']}")
            elif op == "subscribe":
                types.setdefault(topic, said.get("type", ""))
                subscribers.setdefault(topic, set()).add(socket)
            elif op == "publish":
                if topic not in types:
                    await status(socket, "error", f"{topic} is not advertised")
                else:
                    await tell(topic, said["msg"])
            elif op == "send_action_goal":
                goals[said["id"]] = said["action"]
                points = said["args"]["trajectory"]["points"]
                await tell("/action_log", {"data": f"goal {points[-1]['positions']}"})
            elif op == "call_service":
                name = said["service"]
                if name.startswith("/rosapi/"):  # that node does not run here
                    await socket.send(json.dumps({"op": "service_response", "id": said["id"], "result": False}))
                    continue
                await tell("/action_log", {"data": f"service {json.dumps([name, said['args'].get('data')])}"})
                values = {"success": "stow" not in name, "message": "not now"}
                answered = {"op": "service_response", "id": said.get("id"), "service": name, "result": True}
                await socket.send(json.dumps({**answered, "values": values}))
            elif op == "cancel_action_goal":
                await tell("/action_log", {"data": "cancel" if goals.pop(said["id"], "") else "cancel of no goal"})
                result = {"op": "action_result", "id": said["id"], "action": said["action"], "status": 5}
                await socket.send(json.dumps({**result, "values": {}, "result": True}))
    finally:
        for those in subscribers.values():
            those.discard(socket)


def short(name: str) -> str:
    return name.replace("/msg/", "/")


async def tell(topic: str, message: Any) -> None:
    for socket in list(subscribers.get(topic, ())):
        await socket.send(json.dumps({"op": "publish", "topic": topic, "msg": message}))


async def status(socket: ServerConnection, level: str, text: str) -> None:
    await socket.send(json.dumps({"op": "status", "level": level, "msg": text}))


async def main(port: int) -> None:
    async with serve(answer, "127.0.0.1", port, max_size=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
