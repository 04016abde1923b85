"""`LiveView`: a running graph on Foxglove's WebSocket; with `layout` the only file that imports foxglove-sdk.

Images become CompressedImage (JPEG); what viewers know by name is made as a recorder makes it (`TypedTopics`). Every
other message goes out as a recording has it: the same JSON, the same schema. A topic is decoded only while somebody
looks at it. A viewer that does not read loses the oldest of what waits for it, and holds nobody up.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import foxglove
import msgspec
from foxglove import Channel, Context, Schema, Service, ServiceSchema, channels
from foxglove.messages import CompressedImage, Timestamp
from foxglove.websocket import Capability, ChannelView, Client, Parameter, ServerListener, ServiceRequest

from bridges.web.http.jpeg import JpegCache
from nodes.mcap.schema import Form, array_forms, encode_message, message_schema
from nodes.msgs import Image
from nodes.recording.foxglove.schemas import CALIBRATION_NAME, SCHEMAS
from nodes.recording.foxglove.typed_topics import ASSETS, MADE_OF, TOPICS, TypedTopics, described
from nodes.robot.looks import Looks, looks_of
from runtime.clock import NS_PER_S, wall_time_ns
from runtime.command_line.plain_messages import find_type
from runtime.errors import UserError
from runtime.launch.process_plan import TopicInfo
from runtime.message import Message, Stamped, array_fields
from runtime.serialization.codec import Frame, decode
from runtime.serialization.msgspec_cache import from_json

JPEG_QUALITY = 80
MOST_WAITING = 512
"""Messages that wait for one viewer; the oldest go."""
SECRET = re.compile("password|token|secret|key$")
_TOKEN_SCHEMA = b'{"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}'
_ANSWER_SCHEMA = b'{"type": "object", "properties": {"done": {"type": "string"}}}'


class LiveView:
    """Serves until it is closed. `services`: what a person may call by name, with the token.

    `facts` are what the run tells of itself: its robot, the names of its joints, the parameters of its nodes.
    """

    def __init__(
        self,
        name: str,
        topics: Mapping[str, TopicInfo],
        facts: Mapping[str, Any],
        *,
        address: str,
        port: int,
        now_ns: int,
        tell: Callable[[str], None],
        token: str = "",
        services: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        """`now_ns` is the run's clock at this moment. Raises UserError where the address cannot be taken."""
        self._offset_ns = wall_time_ns() - now_ns
        self._tell = tell
        self._context = Context()
        self._types: dict[str, type[Message] | None] = {topic: find_type(info.type) for topic, info in topics.items()}
        self._json: dict[str, Channel] = {}
        self._forms: dict[str, dict[str, Form]] = {}
        self._late: dict[str, str] = {}  # topics whose schema their first message decides, with their type
        self._images: dict[str, Any] = {}
        self._jpegs = JpegCache()
        self._typed = TypedTopics(
            str(facts.get("robot", "")), facts.get("joints", ()), facts.get("parameters", {}),
            wall_offset_ns=self._offset_ns, tell=tell,
        )  # fmt: skip
        self._made = {topic: self._channel(topic, schema, SCHEMAS[schema]) for topic, schema in TOPICS.items()}
        self._listener = _Listener(facts)
        for topic, info in topics.items():
            self._open(topic, info)
        can = [Capability.Parameters, *([Capability.Services] if services else [])]
        try:
            self._server = foxglove.start_server(
                name=name, host=address, port=port, context=self._context, supported_encodings=["json"],
                capabilities=can, server_listener=self._listener, message_backlog_size=MOST_WAITING,
                services=[_service(key, token, call) for key, call in (services or {}).items()],
                asset_handler=self._listener.asset,
            )  # fmt: skip
        except (OSError, RuntimeError) as problem:
            raise UserError(
                f"{address}:{port} cannot be taken ({problem}); choose another --port, or 0 for any free one"
            ) from problem

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.port)

    def wants(self, topic: str) -> bool:
        """Return whether anybody looks at what is made of that topic."""
        made = [self._made[name] for name in (*MADE_OF.get(topic, ()), f"{topic}/calibration") if name in self._made]
        if topic.startswith("calls/"):
            made.append(self._made["log"])
        own = self._images.get(topic) or self._json.get(topic)
        return any(one is not None and one.has_sinks() for one in (own, *made))

    def show(self, topic: str, frames: Sequence[Frame]) -> None:
        """Show one message as it came. Raises CodecError where it is not of its topic's type."""
        message = self._types.get(topic)
        if message is None or not (topic in self._late or self.wants(topic)):
            return
        stamped = decode(frames, message)
        if topic in self._late:
            self._open_json(topic, message, self._late.pop(topic), stamped.message)
        log_time = stamped.envelope.published_ns + self._offset_ns
        value = stamped.message
        if isinstance(value, Image):
            self._show_image(topic, Stamped(value, stamped.envelope), log_time)
        elif self._json[topic].has_sinks():
            self._json[topic].log(encode_message(value, stamped.envelope, self._forms[topic]), log_time=log_time)
        if self._listener.has_new_viewer():
            self._typed.begin_again()
        for made in self._typed.of(stamped):
            self._made[made.topic].log(msgspec.json.encode(made.document), log_time=log_time)

    def close(self) -> None:
        """Send no more."""
        self._server.stop()

    def _open(self, topic: str, info: TopicInfo) -> None:
        message = self._types[topic]
        if message is None:
            self._tell(
                f"{topic}: its type {info.type} cannot be imported here, so it is not shown; start in the run's folder"
            )
            return
        if issubclass(message, Image):
            self._images[topic] = channels.CompressedImageChannel(topic, context=self._context)
            calibration = f"{topic}/calibration"
            self._made[calibration] = self._channel(calibration, CALIBRATION_NAME, SCHEMAS[CALIBRATION_NAME])
            return
        if array_fields(message):
            self._late[topic] = info.type
        else:
            self._open_json(topic, message, info.type)

    def _open_json(self, topic: str, message: type[Message], name: str, example: Message | None = None) -> None:
        self._forms[topic] = {} if example is None else array_forms(example)
        self._json[topic] = self._channel(topic, message.__name__, message_schema(message, example), type=name)

    def _channel(self, topic: str, schema: str, data: bytes, **metadata: str) -> Channel:
        return Channel(
            topic, schema=Schema(name=schema, encoding="jsonschema", data=data), message_encoding="json",
            context=self._context, metadata=metadata,
        )  # fmt: skip

    def _show_image(self, topic: str, stamped: Stamped[Image], log_time: int) -> None:
        if not self._images[topic].has_sinks():
            return
        image = stamped.message
        sec, nsec = divmod(max(0, image.captured_ns + self._offset_ns), NS_PER_S)
        data = self._jpegs.encode(stamped, JPEG_QUALITY)
        self._images[topic].log(
            CompressedImage(
                timestamp=Timestamp(sec=sec, nsec=nsec), frame_id=image.camera, data=data, format="jpeg"
            ),
            log_time=log_time,
        )  # fmt: skip


class _Listener(ServerListener):
    """What viewers ask for: parameters, which they cannot set, and meshes. Called in threads of the server."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._is_new = False
        self._looks: Looks | None = None
        self._parameters: dict[str, Any] = {}
        for node, params in facts.get("parameters", {}).items():
            self._parameters |= {f"{node}.{name}": value for name, value in params.items() if not SECRET.search(name)}
        try:
            self._looks = looks_of(str(facts.get("robot", "")))
        except UserError:
            pass  # told where its links would be shown
        if self._looks is not None:
            self._parameters["/robot_description"] = described(self._looks)

    def has_new_viewer(self) -> bool:
        """Return whether somebody has begun to look since this was asked last."""
        is_new, self._is_new = self._is_new, False
        return is_new

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        self._is_new = True

    def on_get_parameters(
        self, client: Client, param_names: list[str], request_id: str | None = None
    ) -> list[Parameter]:
        names = param_names or sorted(self._parameters)
        return [Parameter(name, value=_shown(self._parameters[name])) for name in names if name in self._parameters]

    def on_set_parameters(
        self, client: Client, parameters: list[Parameter], request_id: str | None = None
    ) -> list[Parameter]:
        return self.on_get_parameters(client, [one.name for one in parameters])

    def asset(self, uri: str) -> bytes | None:
        """A mesh of the robot's URDF, by the name that it has there; nothing else is given away."""
        looks = self._looks
        if looks is None or looks.read_mesh is None:
            return None
        wanted = unquote(uri).removeprefix(ASSETS)
        meshes = {shape.mesh for shapes in looks.urdf.shapes.values() for shape in shapes if shape.mesh}
        name = next((mesh for mesh in meshes if mesh.rsplit("/", 1)[-1] == wanted), None)
        try:
            return looks.read_mesh(name) if name is not None else None
        except UserError:
            return None


def _shown(value: Any) -> Any:
    """A parameter as viewers have them: what is none of their types is text."""
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@]*@", "", value)  # an address may hold a password
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, int | float) for one in value):
        return [float(one) for one in value]
    return msgspec.json.encode(value, enc_hook=str).decode()


class _Asked(msgspec.Struct):
    token: str = ""


def _service(name: str, token: str, call: Callable[[], str]) -> Service:
    """A service that answers what was done, or refuses a wrong token."""

    def handle(request: ServiceRequest) -> bytes:
        try:
            asked = from_json(request.payload, _Asked)
        except msgspec.MsgspecError as problem:
            raise ValueError(f'expected {{"token": "..."}}: {problem}') from problem
        if not hmac.compare_digest(asked.token.encode(), token.encode()):
            raise ValueError("the token is not the one that polyrhythm foxglove printed")
        return msgspec.json.encode({"done": call()})

    schema = ServiceSchema(
        name=name,
        request=foxglove.MessageSchema(
            encoding="json", schema=Schema(name="Token", encoding="jsonschema", data=_TOKEN_SCHEMA)
        ),
        response=foxglove.MessageSchema(
            encoding="json", schema=Schema(name="Done", encoding="jsonschema", data=_ANSWER_SCHEMA)
        ),
    )
    return Service(name=name, schema=schema, handler=handle)
