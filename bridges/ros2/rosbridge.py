"""`RosbridgeLink`: ROS 2 topics and actions as JSON on rosbridge's websocket, in a thread of its own.

It connects again after every break and advertises and subscribes anew. A server that does not read costs the oldest of
what waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from bridges.ros2.link import GRAPH_S, TRAJECTORY, Answered, Heard, Tell
from nodes.recording.ros2_messages import from_document, service_of, to_document
from runtime.errors import CodecError, UserError
from runtime.hosts.proxies import is_here
from runtime.serialization.msgspec_cache import from_json

CONNECT_S = 5.0
AGAIN_S = 1.0
PING_S = 2.0
"""A link that roams is lost without a word: nothing but a ping that is not answered tells."""
MOST_WAITING = 200
LARGEST_BYTES = 64 * 2**20


class RosbridgeLink:
    """`at` is a websocket's address, such as ws://robot.local:9090."""

    def __init__(self, at: str, tell: Tell) -> None:
        self._at, self._tell = at, tell
        self._setup: list[dict[str, Any]] = []
        self._heard: dict[str, tuple[str, Heard]] = {}
        self._refused: dict[str, Callable[[str], None]] = {}
        self._raw: dict[str, Callable[[dict[str, Any]], None]] = {}  # answers that are no message of ours
        self._called: dict[str, tuple[str, Answered]] = {}
        self._goals = count(1)
        self._goal: dict[str, str] = {}  # by action, the newest goal
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._lock = threading.Lock()
        self._connected, self._tried = threading.Event(), threading.Event()
        self._problem = "no answer"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._something: asyncio.Event | None = None
        self._holding: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread. Raises UserError where the first connection fails."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="rosbridge", daemon=True)
        self._thread.start()
        self._tried.wait(CONNECT_S + AGAIN_S)
        if not self._connected.is_set():
            self.close()
            raise UserError(
                f"no rosbridge at {self._at} ({self._problem}); start rosbridge_server there: "
                "ros2 launch rosbridge_server rosbridge_websocket_launch.xml"
            )

    def advertise(self, topic: str, ros_type: str, *, reliable: bool, latched: bool = False) -> None:
        """Tell the server the type; what is not reliable waits in no queue of the server's."""
        size = 10 if reliable else 1
        self._say_at_each_start(
            {"op": "advertise", "topic": topic, "type": ros_type, "queue_size": size, "latch": latched}
        )

    def publish(self, topic: str, value: Any) -> None:
        """Send, or let the oldest go."""
        self._say({"op": "publish", "topic": topic, "msg": to_document(value)})

    def subscribe(self, topic: str, ros_type: str, heard: Heard, *, latched: bool = False) -> None:
        """Hear the topic; the server keeps the newest message only, and finds out itself what is latched."""
        self._heard[topic] = (ros_type, heard)
        self._say_at_each_start({"op": "subscribe", "topic": topic, "type": ros_type, "queue_length": 1})

    def send_goal(self, action: str, goal: Any, refused: Callable[[str], None]) -> None:
        """The newest goal; the action's server ends the one before."""
        ident = f"{action}:{next(self._goals)}"
        self._goal[action], self._refused = ident, {ident: refused}  # of those before, nobody wants to know
        self._say(
            {
                "op": "send_action_goal",
                "id": ident,
                "action": action,
                "action_type": TRAJECTORY,
                "args": to_document(goal),
            }
        )

    def cancel_goals(self, action: str) -> None:
        """Cancel the newest goal. What waits to be sent is not sent any more, but for that."""
        ident = self._goal.pop(action, None)
        if ident is not None:
            self._refused.pop(ident, None)
            self._say({"op": "cancel_action_goal", "id": ident, "action": action})

    def call(self, service: str, request: Any, answered: Answered) -> None:
        """Call a service; where the connection breaks, nobody answers."""
        ident = f"{service}:{next(self._goals)}"
        kind = service_of(request)
        self._called[ident] = (kind, answered)
        self._say({"op": "call_service", "id": ident, "service": service, "type": kind, "args": to_document(request)})

    def graph_types(self) -> dict[str, set[str]]:
        """By rosapi, where that node runs."""
        answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        ident = f"types:{next(self._goals)}"
        self._raw[ident] = answers.put
        asked = {"service": "/rosapi/topics", "type": "rosapi_msgs/srv/Topics", "args": {}}
        self._say({"op": "call_service", "id": ident, **asked})
        try:
            values: Any = answers.get(timeout=GRAPH_S).get("values")
            named = zip(values["topics"], values["types"], strict=True)
            return {str(topic): {str(kind)} for topic, kind in named if kind}
        except (Empty, KeyError, TypeError, ValueError):
            return {}
        finally:
            self._raw.pop(ident, None)

    def close(self) -> None:
        """End the thread, once what waits is sent or half a second is over."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        self._thread = None
        with suppress(RuntimeError):  # it has ended by itself
            asyncio.run_coroutine_threadsafe(self._end(), loop)
        thread.join(CONNECT_S)

    def _say_at_each_start(self, operation: dict[str, Any]) -> None:
        with self._lock:
            self._setup.append(operation)
            if self._connected.is_set():
                self._say(operation)

    def _say(self, operation: dict[str, Any]) -> None:
        if len(self._waiting) == MOST_WAITING:
            self._tell("slow", f"rosbridge at {self._at} does not keep up; the oldest messages are dropped")
        self._waiting.append(msgspec.json.encode(operation))
        loop, something = self._loop, self._something
        if loop is not None and something is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(something.set)

    # in the thread

    async def _live(self) -> None:
        self._loop, self._something = asyncio.get_running_loop(), asyncio.Event()
        self._holding = asyncio.current_task()
        with suppress(asyncio.CancelledError):
            while True:
                try:
                    async with connect(
                        self._at,
                        proxy=None if is_here(self._at) else True,
                        open_timeout=CONNECT_S,
                        ping_interval=PING_S,
                        ping_timeout=CONNECT_S,
                        close_timeout=AGAIN_S,
                        max_size=LARGEST_BYTES,
                    ) as socket:
                        await self._hold(socket)
                except (OSError, WebSocketException, TimeoutError) as problem:
                    self._problem = str(problem) or type(problem).__name__
                    self._tried.set()
                    if self._connected.is_set():
                        self._tell("lost", f"rosbridge at {self._at} is lost ({self._problem}); it is tried again")
                await asyncio.sleep(AGAIN_S)

    async def _hold(self, socket: ClientConnection) -> None:
        with self._lock:
            self._waiting.clear()  # of an earlier connection: nobody wants it late
            self._waiting.extend(msgspec.json.encode(operation) for operation in self._setup)
            self._connected.set()
            self._tried.set()
        sending = asyncio.create_task(self._send(socket), name="rosbridge send")
        try:
            async for said in socket:
                self._take(said)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send(self, socket: ClientConnection) -> None:
        assert self._something is not None
        while True:
            while self._waiting:
                await socket.send(self._waiting.popleft().decode())
            self._something.clear()
            if not self._waiting:
                await self._something.wait()

    async def _end(self) -> None:
        async def sent() -> None:
            while self._waiting:
                await asyncio.sleep(0.01)

        with suppress(TimeoutError):
            await asyncio.wait_for(sent(), 0.5)
        if self._holding is not None:
            self._holding.cancel()

    def _take(self, said: str | bytes) -> None:
        try:
            document = from_json(said, dict[str, Any])
        except msgspec.MsgspecError:
            self._tell("json", f"rosbridge at {self._at} says what is no JSON object; it is left out")
            return
        operation, topic = document.get("op"), document.get("topic")
        if operation == "publish" and isinstance(topic, str) and topic in self._heard:
            ros_type, heard = self._heard[topic]
            try:
                heard(from_document(document.get("msg"), ros_type))
            except CodecError as problem:
                self._tell(f"json {topic}", f"{topic} from ROS holds {problem}; it is left out")
        elif operation == "service_response" and (take := self._raw.pop(str(document.get("id")), None)) is not None:
            take(document)
        elif operation == "service_response":
            kind, answered = self._called.pop(str(document.get("id")), ("", None))
            if answered is not None:
                self._hand_over(document, kind, answered)
        elif operation == "action_result":
            refused = self._refused.pop(str(document.get("id")), None)
            if refused is not None and not document.get("result", False):
                refused(f"{document.get('action')} ends with status {document.get('status')}: {document.get('values')}")
        elif operation == "status" and document.get("level") in ("error", "warning"):
            text = str(document.get("msg"))[:300]
            self._tell(f"status {text}", f"rosbridge: {text}")

    def _hand_over(self, document: dict[str, Any], kind: str, answered: Answered) -> None:
        values = document.get("values")
        if not document.get("result", True):
            answered(None, f"{document.get('service')} ends with {str(values)[:200]}")
            return
        try:
            answered(from_document(values, f"{kind}_Response"), "")
        except CodecError as problem:
            answered(None, f"{document.get('service')} answers with {problem}")
