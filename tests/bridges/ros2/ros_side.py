"""The other side of the wire for tests: what a robot's ROS would say and hear, over Zenoh and behind rosbridge."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import zenoh

from bridges.ros2.zenoh_link import topic_key
from nodes.recording.ros2_messages import (
    CANCEL,
    SEND_GOAL,
    SET_BOOL,
    STORE,
    TRIGGER,
    from_cdr,
    joint_state,
    ros,
    to_cdr,
    to_document,
)
from runtime.clock import wall_time_ns
from tests.support.ports import free_ports
from tests.support.running import eventually

HERE = Path(__file__).parent
PERIOD_S = 0.03
DOMAIN = 5
HOME, STOW, RUNSTOP = "/home_the_robot", "/stow_the_robot", "/runstop"
ACTION = "/arm_controller/follow_joint_trajectory"
NAMES = ("joint_lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper", "head_pan", "head_tilt")


class RosSide(Protocol):
    """`seen` is what came, as (what, value); `is_silent` ends its joint states."""

    at: str
    seen: list[tuple[str, Any]]
    is_silent: bool

    def close(self) -> None: ...


def state(names: tuple[str, ...] = NAMES) -> Any:
    values = tuple(n / 10 for n in range(len(names)))
    return joint_state(wall_time_ns(), names, values, (0.0,) * len(names), (0.0,) * len(names))


class Repeating(threading.Thread):
    """Says the joint states of a robot until it is told to end."""

    def __init__(self, side: RosSide, say: Any) -> None:
        super().__init__(name="ros side", daemon=True)
        self.side, self.say, self.ended = side, say, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.wait(PERIOD_S):
            if not self.side.is_silent:
                self.say(state())


class ZenohSide:
    """A router, as zenoh-bridge-ros2dds is one; or as rmw_zenoh's, with the nodes of a robot."""

    def __init__(self, speaks: str = "ros2dds") -> None:
        self.speaks = speaks
        self.at = f"tcp/127.0.0.1:{free_ports(1)}"
        self.seen: list[tuple[str, Any]] = []
        self.is_silent = False
        config = zenoh.Config()
        config.insert_json5("mode", '"router"')
        config.insert_json5("listen/endpoints", f'["{self.at}"]')
        config.insert_json5("scouting/multicast/enabled", "false")
        self.session = zenoh.open(config)
        services = [
            (f"{ACTION}/_action/send_goal", SEND_GOAL, self._goal),
            (f"{ACTION}/_action/cancel_goal", CANCEL, self._cancel),
            *((service, TRIGGER, self._trigger) for service in (HOME, STOW)),
            (RUNSTOP, SET_BOOL, self._switch),
        ]
        is_complete = speaks != "ros2dds"  # rmw_zenoh asks those only
        self.kept = [
            self.session.declare_subscriber(self.key("/cmd_vel", "geometry_msgs/msg/Twist"), self._velocity),
            *(
                self.session.declare_queryable(self.key(name, kind), answer, complete=is_complete)
                for name, kind, answer in services
            ),
        ]
        joints = self.key("/joint_states", "sensor_msgs/msg/JointState")
        self.repeating = Repeating(self, lambda value: self.session.put(joints, to_cdr(value)))

    def key(self, name: str, ros_type: str) -> str:
        domain = None if self.speaks == "ros2dds" else DOMAIN
        return topic_key(name, ros_type, domain, has_hash=self.speaks == "rmw_zenoh")

    def asked(self, query: Any, kind: str) -> Any:
        """The request; rmw_zenoh does not answer one without the 33 bytes that say who asks."""
        if self.speaks != "ros2dds":
            number, stamp_ns, length = struct.unpack_from("<qqB", query.attachment.to_bytes())
            assert number > 0
            assert stamp_ns > 0
            assert length == 16
        return from_cdr(query.payload.to_bytes(), f"{kind}_Request")

    def _trigger(self, query: Any) -> None:
        self.asked(query, TRIGGER)
        name = HOME if HOME.strip("/") in str(query.key_expr) else STOW
        self.seen.append(("service", (name, None)))
        answer = STORE.types[f"{TRIGGER}_Response"](success=name == HOME, message="not now")
        query.reply(query.key_expr, to_cdr(answer))

    def _switch(self, query: Any) -> None:
        self.seen.append(("service", (RUNSTOP, bool(self.asked(query, SET_BOOL).data))))
        query.reply(query.key_expr, to_cdr(STORE.types[f"{SET_BOOL}_Response"](success=True, message="")))

    def close(self) -> None:
        self.repeating.ended.set()
        self.repeating.join()
        session: Any = self.session
        session.close()

    def _velocity(self, sample: Any) -> None:
        value = from_cdr(sample.payload.to_bytes(), "geometry_msgs/msg/Twist")
        self.seen.append(("velocity", (value.linear.x, value.angular.z)))

    def _goal(self, query: Any) -> None:
        asked = self.asked(query, SEND_GOAL)
        self.seen.append(("goal", tuple(asked.goal.trajectory.points[-1].positions)))
        answer = STORE.types[f"{SEND_GOAL}_Response"](
            accepted=bool(asked.goal.trajectory.joint_names[0] == NAMES[0]),
            stamp=ros.builtin_interfaces__msg__Time(0, 0),
        )
        query.reply(query.key_expr, to_cdr(answer))

    def _cancel(self, query: Any) -> None:
        asked = self.asked(query, CANCEL)
        self.seen.append(("cancel", int(np.sum(asked.goal_info.goal_id.uuid))))
        answer = STORE.types[f"{CANCEL}_Response"](return_code=0, goals_canceling=[])
        query.reply(query.key_expr, to_cdr(answer))


class RosbridgeSide:
    """roslibpy, which others wrote, at a rosbridge server of this folder."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, str(HERE / "rosbridge_server.py"), "0"], stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdout is not None
        port = self.server.stdout.readline().strip()
        self.at = f"ws://127.0.0.1:{port}"
        self.client = subprocess.Popen(
            [sys.executable, str(HERE / "foreign_client.py"), port],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.seen: list[tuple[str, Any]] = []
        self.is_silent = False
        self.lock = threading.Lock()
        self.listening = threading.Thread(target=self._listen, daemon=True)
        self.listening.start()
        self.ask(topic="/cmd_vel", type="geometry_msgs/Twist")
        self.ask(topic="/action_log", type="std_msgs/String")
        # A robot waits 5 s for joint states, and on a busy machine a Python takes as long to start.
        eventually(lambda: ("subscribed", "/action_log") in self.seen, "the foreign client has subscribed")
        self.repeating = Repeating(
            self,
            lambda value: self.ask(topic="/joint_states", type="sensor_msgs/JointState", message=to_document(value)),
        )

    def ask(self, **asked: Any) -> None:
        assert self.client.stdin is not None
        with self.lock:
            self.client.stdin.write(json.dumps(asked) + "\n")
            self.client.stdin.flush()

    def close(self) -> None:
        self.repeating.ended.set()
        self.repeating.join()
        self.client.terminate()
        self.listening.join()  # it reads what the client writes, to the end
        self.server.terminate()
        for one in (self.client, self.server):
            one.communicate()

    def _listen(self) -> None:
        assert self.client.stdout is not None
        for line in self.client.stdout:
            said = json.loads(line)
            message = said.get("message")
            if message is None:
                self.seen.append(("subscribed", said["subscribed"]))
            elif said["topic"] == "/cmd_vel":
                self.seen.append(("velocity", (message["linear"]["x"], message["angular"]["z"])))
            elif message["data"].startswith("service"):
                self.seen.append(("service", tuple(json.loads(message["data"].removeprefix("service ")))))
            elif message["data"].startswith("goal"):
                self.seen.append(("goal", tuple(json.loads(message["data"].removeprefix("goal ")))))
            else:
                self.seen.append(("cancel", 0 if message["data"] == "cancel" else -1))
