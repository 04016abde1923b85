"""What the bridge says on MQTT, as pure functions: topics after VDA 5050's habits, discovery after Home Assistant's."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from bridges.mqtt.allowed_commands import CommandReply
from nodes.msgs import JOINTS, GuardState, RobotState, RobotStatus

Document = dict[str, Any]

PROBE = "probe"
_LEVEL = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics of one robot."""

    site: str
    robot: str

    def problems(self) -> list[str]:
        """Return in sentences what is wrong with the names."""
        return [
            f"{name} is {value!r}; expected letters, digits, - and _"
            for name, value in (("site", self.site), ("robot", self.robot))
            if not _LEVEL.fullmatch(value)
        ]

    @property
    def root(self) -> str:
        return f"{self.site}/v1/{self.robot}"

    @property
    def connection(self) -> str:
        return f"{self.root}/connection"

    @property
    def state(self) -> str:
        return f"{self.root}/state"

    @property
    def telemetry(self) -> str:
        return f"{self.root}/telemetry"

    @property
    def event(self) -> str:
        return f"{self.root}/event"

    @property
    def commands(self) -> str:
        return f"{self.root}/cmd/+"

    @property
    def probe(self) -> str:
        """Where the bridge sends itself a word, to learn whether commands reach it."""
        return f"{self.root}/cmd/{PROBE}"

    @property
    def identifier(self) -> str:
        """The client's name at the broker, at most 23 letters: one connection for each robot of a site."""
        return f"pr-{hashlib.sha256(self.root.encode()).hexdigest()[:20]}"

    @property
    def replies(self) -> str:
        return f"{self.root}/reply/"

    def verb_of(self, topic: str) -> str | None:
        """Return the verb of a command's topic."""
        start = f"{self.root}/cmd/"
        return topic[len(start) :] if topic.startswith(start) else None


def state_document(
    guard: GuardState | None, status: RobotStatus | None, subtask: str, said: str, answer: CommandReply | None = None
) -> Document:
    """Return what stays true until it changes, without what the robot does not tell."""
    document: Document = {"subtask": subtask, "said": said, "last_command": answer}
    if guard is not None:
        document |= {
            "mode": guard.mode,
            "reason": guard.reason,
            "holder": guard.holder,
            "stop_cause": guard.stop_cause,
            "estop": guard.estop,
        }
    if status is not None:
        document |= {
            "robot_mode": status.mode,
            "why": status.why,
            "is_homed": status.is_homed,
            "is_runstopped": status.is_runstopped,
            "battery_v": None if status.battery_v is None else round(status.battery_v, 2),
            "battery_a": None if status.battery_a is None else round(status.battery_a, 2),
            "is_charging": status.is_charging,
            "alerts": list(status.alerts),
        }
    return {key: value for key, value in document.items() if value is not None}


def telemetry_document(state: RobotState, joints: tuple[str, ...] = JOINTS) -> Document:
    """Return where the robot is, with the names of its joints; in m and rad."""
    return {
        "joints": dict(zip(joints, (round(value, 4) for value in state.position), strict=True)),
        "base": {
            "x_m": round(state.base_x_m, 3),
            "y_m": round(state.base_y_m, 3),
            "heading_rad": round(state.base_heading_rad, 4),
            "v_mps": round(state.base_v_mps, 3),
            "w_radps": round(state.base_w_radps, 3),
            "vy_mps": round(state.base_vy_mps, 3),
        },
        "contact": list(state.contact),
        "is_grasping": state.is_grasping,
    }


def discovery_documents(prefix: str, topics: Topics, commands: tuple[str, ...]) -> dict[str, bytes]:
    """Return Home Assistant's discovery: topic to retained payload."""
    common: Document = {
        "availability_topic": topics.connection,
        "availability_template": "{{ 'online' if value_json.state == 'ONLINE' else 'offline' }}",
        "device": {
            "identifiers": [f"{topics.site}_{topics.robot}"],
            "name": topics.robot,
            "manufacturer": "Polyrhythm",
            "model": "robot",
        },
        "origin": {"name": "polyrhythm"},
        "qos": 1,
    }
    parts: list[tuple[str, str, Document]] = [
        (
            "sensor",
            "battery",
            {
                "name": "Battery",
                "device_class": "voltage",
                "unit_of_measurement": "V",
                "state_class": "measurement",
                "state_topic": topics.state,
                "value_template": "{{ value_json.battery_v | default('None') }}",
            },
        ),
        (
            "sensor",
            "mode",
            {"name": "Mode", "state_topic": topics.state, "value_template": "{{ value_json.mode }}"},
        ),
        (
            "sensor",
            "said",
            {"name": "Last utterance", "state_topic": topics.state, "value_template": "{{ value_json.said[:255] }}"},
        ),
    ]
    if "estop" in commands:
        button = {"name": "Emergency stop", "icon": "mdi:alert-octagon", "command_topic": f"{topics.root}/cmd/estop"}
        parts.append(("button", "estop", {**button, "payload_press": "PRESS", "retain": False}))
        template = "{{ value_json.last_command.verb }}: {{ 'done' if value_json.last_command.ok else 'refused' }}"
        answer = {"name": "Last command", "state_topic": topics.state, "value_template": template}
        parts.append(("sensor", "command", answer))
    return {
        f"{prefix}/{component}/{topics.site}_{topics.robot}/{key}/config": msgspec.json.encode(
            {**common, **document, "unique_id": f"{topics.site}_{topics.robot}_{key}"}
        )
        for component, key, document in parts
    }
