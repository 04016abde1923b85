"""`MqttBridge`: the robot on MQTT, for dashboards, fleets and homes. Read-only unless its launch file allows verbs.

Below `<site>/v1/<robot>/`: `connection` and `state` are retained, `telemetry` comes at most five times a second,
`event` with QoS 1, and commands are taken from `cmd/<verb>`. Control loops and video never go this way. A dead broker
costs the robot nothing: the bridge comes back by itself. docs/mqtt.md has the payloads.
"""

from __future__ import annotations

import importlib.util
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from bridges.mqtt.allowed_commands import STOPS, VERBS, Command, CommandReply, Gatekeeper, fields_of
from bridges.mqtt.connection import MqttOutbox
from bridges.mqtt.payloads import Topics, discovery_documents
from bridges.robot_ports import OPTIONAL, RobotPorts
from nodes.msgs import (
    JOINTS,
    Action,
    EStop,
    Feedback,
    GuardOrder,
    GuardState,
    Interrupt,
    RobotService,
    RobotState,
    RobotStatus,
    Subtask,
    Utterance,
)
from nodes.msgs.signature import order, service, token_of
from nodes.robot.robot_from_launch import ForRobot, joint_names, load_limits
from runtime import (
    RELIABLE,
    SOON,
    URGENT,
    PolyrhythmError,
    Publisher,
    QoS,
    Subscription,
    every,
    needs_real_time,
    on,
    wall_time_ns,
)
from runtime.extras import install

if TYPE_CHECKING:
    from bridges.mqtt.client import Incoming

MOST_WAITING = 100
"""Commands that are accepted and not yet handed on; one that stops is taken beyond that, too."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class MqttBridge(ForRobot, RobotPorts):
    """Connects to a broker with MQTT_USERNAME and MQTT_PASSWORD of the environment.

    `commands` lists the verbs that are taken: say, stop, estop, resume, runstop, release, home, stow. `discovery` is
    Home Assistant's prefix ("homeassistant"), or empty: no discovery. `limits` names the robot's, from `[run] robot`:
    telemetry calls the joints as they do.
    """

    robot_parameter = "limits"

    robot_state = Subscription(RobotState, "robot/state", qos=QoS(required=False, lifespan_s=1.0))
    robot_status = Subscription(RobotStatus, "robot/status", qos=OPTIONAL)

    utterance = Publisher(Utterance, "heard", qos=RELIABLE)
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    order = Publisher(GuardOrder, "guard/order", qos=SOON)
    estop = Publisher(EStop, "estop", qos=RELIABLE)
    service = Publisher(RobotService, "robot/service", qos=SOON)
    button = Publisher(RobotService, "robot/runstop", qos=SOON)

    def __init__(
        self,
        address: str = "127.0.0.1",
        port: int = 1883,
        site: str = "polyrhythm",
        robot: str = "robot",
        commands: tuple[str, ...] = (),
        discovery: str = "",
        tls: bool = False,
        ca_file: str = "",
        limits: str = "",
    ) -> None:
        self.topics = Topics(site, robot)
        self.commands = tuple(commands)
        self.discovery = discovery
        self.place = (address, port, tls, ca_file)
        self.gate = Gatekeeper(robot, self.commands, self.topics.replies)
        self.accepted: deque[tuple[str, Command]] = deque()
        self.stamped_ns = 0
        self.is_open = False  # the broker admits anybody, whoever shows a login and whoever does not
        self.news = MqttOutbox(joint_names(load_limits(limits)) if limits else JOINTS)

    def problems(self) -> list[str]:
        """Return in sentences what is missing, unknown, or would be open to everybody on the network."""
        address, port, tls, ca_file = self.place
        problems = self.topics.problems()
        if importlib.util.find_spec("aiomqtt") is None:
            problems.append(f"aiomqtt is not installed; the bridge needs it: {install('bridges[mqtt]')}")
        unknown = [verb for verb in self.commands if verb not in VERBS]
        if unknown:
            problems.append(f"commands names {', '.join(map(repr, unknown))}; known: {', '.join(sorted(VERBS))}")
        if not 0 < port < 65536:
            problems.append(f"port is {port}; expected 1 to 65535")
        if set(self.discovery) & set("+#"):
            problems.append(f"discovery is {self.discovery!r}; expected a prefix without wildcards, like homeassistant")
        if ca_file and not Path(ca_file).is_file():
            problems.append(f"ca_file is {ca_file!r}: there is no such file")
        if address in LOOPBACK and self.needs_login and not _has_login():
            moving = ", ".join(sorted({*self.commands} & {*VERBS} - {*STOPS}))
            problems.append(
                f"commands lists {moving}, and other accounts of this machine reach {address}, too: give MQTT_USERNAME "
                "and MQTT_PASSWORD; where the machine has one user, say one_user = true in [run]"
            )
        if address not in LOOPBACK and not tls:
            if os.environ.get("MQTT_USERNAME") or os.environ.get("MQTT_PASSWORD"):
                problems.append(f"a password would go to {address} in the clear: set tls = true")
            elif self.commands:
                problems.append(f"commands by way of {address} need tls = true and MQTT_USERNAME, MQTT_PASSWORD")
        return problems

    @property
    def needs_login(self) -> bool:
        """Whether its commands do more than stop, on a machine or in a network where others may send them, too."""
        return not self.run_info.one_user and bool({*self.commands} & {*VERBS} - {*STOPS})

    def on_start(self) -> None:
        """Raises ParameterError in virtual time."""
        needs_real_time(self, "a broker", "without this node")

    # from the graph

    @on(robot_state)
    def keep_state(self, state: RobotState) -> None:
        self.news.state = state

    @on(robot_status)
    def keep_status(self, status: RobotStatus) -> None:
        self.news.status = status

    @on(RobotPorts.guard)
    def keep_guard(self, guard: GuardState) -> None:
        self.news.guard = guard

    @on(RobotPorts.said)
    def tell_said(self, utterance: Utterance) -> None:
        self.news.said = utterance.text
        self.news.happened("said", utterance)

    @on(RobotPorts.heard)
    def tell_heard(self, utterance: Utterance) -> None:
        self.news.happened("heard", utterance)

    @on(RobotPorts.subtask)
    def tell_subtask(self, subtask: Subtask) -> None:
        self.news.subtask = subtask.text
        self.news.happened("subtask", subtask)

    @on(RobotPorts.action)
    def tell_action(self, action: Action) -> None:
        self.news.happened("action", action)

    @on(RobotPorts.feedback)
    def tell_feedback(self, feedback: Feedback) -> None:
        self.news.happened("feedback", feedback)

    @on(RobotPorts.interrupts)
    def tell_interrupt(self, interrupt: Interrupt) -> None:
        self.news.happened("interrupt", interrupt)

    # to the graph: in a handler of its own, whose outputs stem from nothing that the long connection read

    @every(hz=50)
    def apply(self) -> None:
        """Publish the order that was accepted."""
        while self.accepted:
            verb, command = self.accepted.popleft()
            ident = f"mqtt-{command.id}-{command.nonce}"  # whoever sends may count from 1 again
            if verb == "say":
                self.utterance.publish(Utterance(speaker="mqtt", text=command.text))
            elif verb == "stop":
                self.interrupt.publish(Interrupt(id=ident, depth="stop", text="stop by MQTT", by="mqtt"))
            elif verb == "resume":
                self.order.publish(order(self._token(), "resume", "mqtt", self._stamp()))
            elif verb == "estop":
                why = f"by MQTT ({command.id})"
                self.estop.publish(EStop(source="mqtt", is_pressed=True, why=why))
                self.estop.publish(EStop(source="mqtt", is_pressed=False, why=why))  # the guard latches it
            else:
                port = self.button if verb in ("runstop", "release") else self.service
                known = cast(Literal["home", "stow", "runstop", "release"], verb)
                port.publish(service(self._token(), known, "mqtt", self._stamp(), ident=ident))
            self.log.info("%s by MQTT (%s)", verb, command.id)

    def _stamp(self) -> int:
        self.stamped_ns = max(self.clock.now_ns(), self.stamped_ns + 1)  # each signature is good once
        return self.stamped_ns

    def _token(self) -> str:
        """What signs: a verb in `commands` is the launch file's word that its sender may. "" without a guard."""
        registry = self.run_info.registry
        try:
            return token_of(Path(registry)) if registry else ""
        except PolyrhythmError:
            return ""

    # with the broker

    @every(hz=1)
    async def serve(self) -> None:
        """Hold a connection for as long as the node lives."""
        from bridges.mqtt.client import Broker
        from bridges.mqtt.connection import Connection

        address, port, tls, ca_file = self.place
        name, word = os.environ.get("MQTT_USERNAME", ""), os.environ.get("MQTT_PASSWORD", "")
        link = Connection(
            Broker(address, port, name, word, tls, ca_file),
            self.topics,
            self.news,
            self.take if self.commands else None,
            asks_login=self.note_login if self.needs_login else None,
            discovery=discovery_documents(self.discovery, self.topics, self.commands) if self.discovery else {},
            reborn=f"{self.discovery}/status" if self.discovery else "",
            clock=self.clock,
            log=self.log,
        )
        await link.hold(self.random)

    def note_login(self, is_asked: bool) -> None:
        """Whether the broker asks everybody for a login; where it does not, only what stops is taken."""
        self.is_open = not is_asked
        if self.is_open:
            self.log.warning("the broker lets anybody in, so that only %s are taken", ", ".join(sorted(STOPS)))

    def take(self, incoming: Incoming) -> tuple[CommandReply, str]:
        """Judge a command, and return the answer and where to send it ("": nowhere)."""
        verb = self.topics.verb_of(incoming.topic) or ""
        command, reply = self.gate.judge(
            verb, incoming.payload, is_retained=incoming.is_retained, now_ms=wall_time_ns() // 1_000_000
        )
        if command is not None and self.is_open and verb not in STOPS:
            reply = CommandReply(command.id, verb, False, "the broker lets anybody in: only what stops is taken")
        elif command is not None and len(self.accepted) >= MOST_WAITING and verb not in STOPS:
            reply = CommandReply(command.id, verb, False, f"more than {MOST_WAITING} commands at once")
        self.news.answer = reply
        if reply.ok and command is not None:
            self.accepted.append((verb, command))
            return reply, command.reply_to
        self.log.warning("cmd/%s refused: %s (%d so far)", verb[:40], reply.why, self.gate.refused)
        return reply, self._reply_topic(incoming.payload)

    def _reply_topic(self, payload: bytes) -> str:
        """Where a refused command wants its answer, if that can be read and is allowed."""
        wanted = fields_of(payload).get("reply_to", "")
        return wanted if isinstance(wanted, str) and self.gate.may_reply_to(wanted) else ""


def _has_login() -> bool:
    return bool(os.environ.get("MQTT_USERNAME") and os.environ.get("MQTT_PASSWORD"))
