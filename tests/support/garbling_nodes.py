"""A node that publishes what nobody can read, beside one that listens."""

from __future__ import annotations

from typing import Any

from runtime import RELIABLE, Message, Node, Publisher, Stamped, Subscription, every, on
from runtime.coordination.health import Health


class Reading(Message):
    value: int


class Alarm(Message):
    level: int


class Sensor(Node):
    """Every other reading is wrong."""

    reading = Publisher(Reading, "reading")
    alarm = Publisher(Alarm, "alarm", qos=RELIABLE)

    @every(hz=50)
    def read(self) -> None:
        self.reading.publish(Reading(value=3))
        self.reading.publish(Reading(value="three"))  # type: ignore[arg-type]  # the mistake
        self.alarm.publish(Alarm(level=None))  # type: ignore[arg-type]  # the mistake


class Display(Node):
    """Hears what can be read."""

    reading = Subscription(Reading, "reading")
    alarm = Subscription(Alarm, "alarm", qos=RELIABLE)

    @on(reading, alarm)
    def show(self, message: Reading | Alarm) -> None:
        assert isinstance(message, Reading)
        assert message.value == 3


class Judge(Node):
    """Ends the run once the sensor's own account names what was refused at the display."""

    subscribes_all = True

    def on_any(self, stamped: Stamped[Any]) -> None:
        health = stamped.message
        if not isinstance(health, Health) or health.node != "sensor":
            return
        if all(health.refused.get(topic, {}).get("display", 0) > 10 for topic in ("reading", "alarm")):
            self.finish(ok=True, reason="the sensor knows")
