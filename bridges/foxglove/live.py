"""`LiveView`: a running graph on Foxglove's WebSocket; the only file that imports foxglove-sdk.

Images become CompressedImage (JPEG) with a CameraCalibration, the robot's state JointStates and FrameTransforms,
words Log lines, interrupts Events. Every other message goes out as a recording has it: the same JSON, the same schema.
A topic is decoded only while somebody looks at it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any

import foxglove
import msgspec
from foxglove import Channel, Context, Schema, Service, ServiceSchema, channels
from foxglove.messages import (
    CameraCalibration,
    CompressedImage,
    Event,
    FrameTransform,
    FrameTransforms,
    JointState,
    JointStates,
    KeyValuePair,
    Log,
    LogLevel,
    Quaternion,
    Timestamp,
    Vector3,
)
from foxglove.websocket import Capability, ServiceRequest

from bridges.web.http.jpeg import JpegCache
from nodes.recording.foxglove_schemas import TRANSFORM_PERIOD_NS, transforms_document
from runtime.bag.schema import encode_message, message_schema
from runtime.clock import NS_PER_S, wall_time_ns
from runtime.command_line.plain_messages import find_type
from runtime.errors import UserError
from runtime.launch.process_plan import TopicInfo
from runtime.message import Stamped
from runtime.msgs import JOINTS, Image, Interrupt, RobotState, Utterance
from runtime.serialization.codec import Frame, decode

JPEG_QUALITY = 80
LOG_TOPIC, EVENT_TOPIC, TRANSFORM_TOPIC = "log/conversation", "events", "transforms"
_STOP_SCHEMA = b'{"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}'
_ANSWER_SCHEMA = b'{"type": "object", "properties": {"done": {"type": "string"}}}'


class LiveView:
    """Serves until it is closed. `services`: what a person may call by name, with the token."""

    def __init__(
        self,
        name: str,
        topics: dict[str, TopicInfo],
        *,
        address: str,
        port: int,
        now_ns: int,
        token: str = "",
        services: dict[str, Callable[[], str]] | None = None,
    ) -> None:
        """`now_ns` is the run's clock at this moment. Raises UserError where the address cannot be taken."""
        self._offset_ns = wall_time_ns() - now_ns
        self._context = Context()
        self._types = {topic: find_type(info.type) for topic, info in topics.items()}
        self._json: dict[str, Channel] = {}
        self._images: dict[str, Any] = {}
        self._calibrations: dict[str, Any] = {}
        self._jpegs = JpegCache()
        self._transforms_ns = 0
        for topic, info in topics.items():
            self._open(topic, info)
        self._log = channels.LogChannel(LOG_TOPIC, context=self._context)
        self._events = channels.EventChannel(EVENT_TOPIC, context=self._context)
        self._joints = channels.JointStatesChannel("joints", context=self._context)
        self._transforms = channels.FrameTransformsChannel(TRANSFORM_TOPIC, context=self._context)
        try:
            self._server = foxglove.start_server(
                name=name, host=address, port=port, context=self._context, supported_encodings=["json"],
                capabilities=[Capability.Services] if services else [],
                services=[_service(key, token, call) for key, call in (services or {}).items()],
            )  # fmt: skip
        except (OSError, RuntimeError) as problem:
            raise UserError(
                f"{address}:{port} cannot be taken ({problem}); choose another --port, or 0 for any free one"
            ) from problem

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.port)

    def wants(self, topic: str) -> bool:
        """Whether anybody looks at what is made of that topic."""
        channel = self._images.get(topic) or self._json.get(topic)
        also = {
            "robot/state": (self._joints, self._transforms),
            "heard": (self._log,),
            "said": (self._log,),
            "interrupt": (self._events,),
        }.get(topic, ())
        also += (self._calibrations[topic],) if topic in self._calibrations else ()
        return any(one is not None and one.has_sinks() for one in (channel, *also))

    def show(self, topic: str, frames: Sequence[Frame]) -> None:
        """One message as it came. Raises CodecError where it is none of its topic's type."""
        message = self._types.get(topic)
        if message is None or not self.wants(topic):
            return
        stamped = decode(frames, message)
        log_time = stamped.envelope.published_ns + self._offset_ns
        value = stamped.message
        if isinstance(value, Image):
            self._show_image(topic, Stamped(value, stamped.envelope), log_time)
            return
        self._json[topic].log(encode_message(value, stamped.envelope), log_time=log_time)
        if isinstance(value, RobotState) and topic == "robot/state":
            self._show_robot(Stamped(value, stamped.envelope), log_time)
        elif isinstance(value, Utterance) and topic in ("heard", "said"):
            line = Log(timestamp=_time(log_time), level=LogLevel.Info, message=value.text, name=value.speaker)
            self._log.log(line, log_time=log_time)
        elif isinstance(value, Interrupt):
            facts = [KeyValuePair(key=key, value=str(getattr(value, key))) for key in ("id", "depth", "by", "text")]
            self._events.log(Event(start_time=_time(log_time), metadata=facts), log_time=log_time)

    def close(self) -> None:
        """Send no more."""
        self._server.stop()

    def _open(self, topic: str, info: TopicInfo) -> None:
        message = self._types[topic]
        if message is None:
            return
        if issubclass(message, Image):
            self._images[topic] = channels.CompressedImageChannel(topic, context=self._context)
            self._calibrations[topic] = channels.CameraCalibrationChannel(f"{topic}/calibration", context=self._context)
            return
        schema = Schema(name=message.__name__, encoding="jsonschema", data=message_schema(message))
        self._json[topic] = Channel(
            topic, schema=schema, message_encoding="json", context=self._context, metadata={"type": info.type}
        )

    def _show_image(self, topic: str, stamped: Stamped[Image], log_time: int) -> None:
        image = stamped.message
        stamp = _time(image.captured_ns + self._offset_ns)
        if self._images[topic].has_sinks():
            data = self._jpegs.encode(stamped, JPEG_QUALITY)
            self._images[topic].log(
                CompressedImage(timestamp=stamp, frame_id=image.camera, data=data, format="jpeg"), log_time=log_time
            )
        height, width = image.rgb.shape[:2]
        focal_px, cx, cy = image.focal_px, width / 2, height / 2
        if focal_px and self._calibrations[topic].has_sinks():
            self._calibrations[topic].log(
                CameraCalibration(
                    timestamp=stamp, frame_id=image.camera, width=width, height=height, distortion_model="plumb_bob",
                    D=[0.0] * 5, K=[focal_px, 0, cx, 0, focal_px, cy, 0, 0, 1], R=[1, 0, 0, 0, 1, 0, 0, 0, 1],
                    P=[focal_px, 0, cx, 0, 0, focal_px, cy, 0, 0, 0, 1, 0],
                ),
                log_time=log_time,
            )  # fmt: skip

    def _show_robot(self, stamped: Stamped[RobotState], log_time: int) -> None:
        state = stamped.message
        is_stretch = len(state.position) == len(JOINTS)
        names = JOINTS if is_stretch else tuple(f"joint_{number}" for number in range(1, len(state.position) + 1))
        if self._joints.has_sinks():
            rows = zip(names, state.position, state.velocity, state.effort, strict=True)
            joints = [JointState(name=name, position=p, velocity=v, effort=e) for name, p, v, e in rows]
            self._joints.log(
                JointStates(timestamp=_time(state.read_ns + self._offset_ns), joints=joints), log_time=log_time
            )
        if self._transforms.has_sinks() and log_time - self._transforms_ns >= TRANSFORM_PERIOD_NS:
            self._transforms_ns = log_time
            document = transforms_document(
                state, stamped.envelope, wall_offset_ns=self._offset_ns, is_stretch=is_stretch
            )
            made = [
                FrameTransform(
                    timestamp=Timestamp(**one["timestamp"]), parent_frame_id=one["parent_frame_id"],
                    child_frame_id=one["child_frame_id"], translation=Vector3(**one["translation"]),
                    rotation=Quaternion(**one["rotation"]),
                )
                for one in document["transforms"]
            ]  # fmt: skip
            self._transforms.log(FrameTransforms(transforms=made), log_time=log_time)


def _time(wall_ns: int) -> Timestamp:
    sec, nsec = divmod(max(0, wall_ns), NS_PER_S)
    return Timestamp(sec=sec, nsec=nsec)


class _Asked(msgspec.Struct):
    token: str = ""


def _service(name: str, token: str, call: Callable[[], str]) -> Service:
    """A service that answers what was done, or refuses a wrong token."""

    def handle(request: ServiceRequest) -> bytes:
        try:
            asked = msgspec.json.decode(request.payload, type=_Asked)
        except msgspec.MsgspecError as problem:
            raise ValueError(f'expected {{"token": "..."}}: {problem}') from problem
        if not hmac.compare_digest(asked.token.encode(), token.encode()):
            raise ValueError("the token is not the one that polyrhythm foxglove printed")
        return msgspec.json.encode({"done": call()})

    schema = ServiceSchema(
        name=name,
        request=foxglove.MessageSchema(
            encoding="json", schema=Schema(name="Token", encoding="jsonschema", data=_STOP_SCHEMA)
        ),
        response=foxglove.MessageSchema(
            encoding="json", schema=Schema(name="Done", encoding="jsonschema", data=_ANSWER_SCHEMA)
        ),
    )
    return Service(name=name, schema=schema, handler=handle)
