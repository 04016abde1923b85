"""Nodes that tests run in processes of their own; named in launch files as "tests.support.graph_nodes:Class"."""

from __future__ import annotations

import os
import threading

import numpy as np

from nodes.hello import Beat
from nodes.msgs import Image, JointCommand, RobotState, Utterance
from runtime import Message, Node, Publisher, Subscription, every, on
from runtime.qos import RELIABLE, SOON


class Count(Message):
    pid: int
    value: int


class Level(Message, kind="state"):
    value: int


class Counter(Node):
    """Counts from 1 to `last`, at 200 Hz."""

    count = Publisher(Count, "count")

    def __init__(self, last: int = 1_000_000) -> None:
        self.last = last
        self.value = 0

    @every(hz=200)
    def tick(self) -> None:
        if self.value < self.last:
            self.value += 1
            self.count.publish(Count(pid=os.getpid(), value=self.value))


class Checker(Node):
    """Finishes the run at the value `last` of the `starts`-th process that counts, telling what it heard of each."""

    count = Subscription(Count, "count")

    def __init__(self, last: int, starts: int = 1) -> None:
        self.last = last
        self.starts = starts
        self.heard: dict[int, list[int]] = {}

    @on(count)
    def take(self, count: Count) -> None:
        values = self.heard.setdefault(count.pid, [])
        values.append(count.value)
        if len(values) == 50:
            self.log.info("50 heard of %d", count.pid)
        if len(self.heard) == self.starts and count.value >= self.last:
            whole = all(values == list(range(1, len(values) + 1)) for values in self.heard.values())
            self.finish(
                ok=whole and not self.count.dropped, reason=f"{len(values)} heard, dropped {dict(self.count.dropped)}"
            )


class Crasher(Node):
    @every(hz=10)
    def tick(self) -> None:
        os._exit(5)


class NeverStarts(Node):
    def on_start(self) -> None:
        raise ValueError("the model is missing")


class Hanging(Node):
    """Its blocking handler never returns."""

    @every(hz=10, blocking=True)
    def look(self) -> None:
        self.log.info("hangs")
        threading.Event().wait()


class HangingLoop(Node):
    """Its plain handler never returns, so that nothing else on the loop runs either."""

    @every(hz=10)
    def look(self) -> None:
        self.log.info("hangs")
        threading.Event().wait()


class Greeter(Node):
    """Publishes before its first handler, and as its last word."""

    count = Publisher(Count, "count")

    def on_start(self) -> None:
        self.count.publish(Count(pid=os.getpid(), value=1))


class Painter(Node):
    """Publishes large images whose pixels are known."""

    image = Publisher(Image, "image")

    def __init__(self) -> None:
        self.value = 0

    @every(hz=20)
    def tick(self) -> None:
        self.value += 1
        self.image.publish(painting(self.value))


def painting(value: int) -> Image:
    """The image of that number."""
    rgb = (np.arange(720 * 1280 * 3, dtype=np.uint32) * 31 + value).astype(np.uint8).reshape(720, 1280, 3)
    depth_m = np.full((720, 1280), value / 10, np.float32)
    return Image(camera="test", captured_ns=value, rgb=rgb, depth_m=depth_m)


class Watcher(Node):
    """Keeps the newest few images and says when it has seen ten."""

    image = Subscription(Image, "image")

    def __init__(self, keep: int = 1) -> None:
        self.keep = keep
        self.seen = 0
        self.kept: list[Image] = []

    @on(image)
    def take(self, image: Image) -> None:
        self.kept = [*self.kept, image][-self.keep :]
        self.seen += 1
        if self.seen == 10:
            self.log.info("10 images")


class Critic(Node):
    """Finishes the run after five images, saying whether each was whole and read-only."""

    image = Subscription(Image, "image")

    def __init__(self) -> None:
        self.seen = 0

    @on(image)
    def take(self, image: Image) -> None:
        wanted = painting(image.captured_ns)
        assert image.depth_m is not None
        assert wanted.depth_m is not None
        is_whole = np.array_equal(image.rgb, wanted.rgb) and np.array_equal(image.depth_m, wanted.depth_m)
        is_open = image.rgb.flags.writeable or image.depth_m.flags.writeable
        self.seen += 1
        if not is_whole or is_open or self.seen == 5:
            self.finish(ok=is_whole and not is_open, reason=f"{self.seen} seen, whole {is_whole}, writeable {is_open}")


class Sleeper(Node):
    """Blocks the loop that it runs on for most of the time."""

    @every(hz=2)
    def block(self) -> None:
        threading.Event().wait(0.4)


class Metronome(Node):
    realtime = True
    steady = Publisher(Count, "steady")

    def __init__(self) -> None:
        self.value = 0

    @every(hz=50)
    def tick(self) -> None:
        self.value += 1
        self.steady.publish(Count(pid=os.getpid(), value=self.value))


class LoopMetronome(Node):
    shaky = Publisher(Count, "shaky")

    def __init__(self) -> None:
        self.value = 0

    @every(hz=50)
    def tick(self) -> None:
        self.value += 1
        self.shaky.publish(Count(pid=os.getpid(), value=self.value))


class Judge(Node):
    """Finishes the run at 100 steady ticks, telling how many shaky ones there were meanwhile."""

    steady = Subscription(Count, "steady")
    shaky = Subscription(Count, "shaky")

    def __init__(self) -> None:
        self.number = 0

    @on(shaky)
    def take_shaky(self, count: Count) -> None:
        self.number += 1

    @on(steady)
    def take_steady(self, count: Count) -> None:
        if count.value == 100:
            self.finish(ok=True, reason=f"100 steady, {self.number} shaky")


class Still(Node):
    """A policy that wants the robot to stay as it is."""

    state = Subscription(RobotState, "robot/state")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        state = self.state.latest()
        if state is not None:
            self.command.publish(JointCommand(position=state.position))


class Orders(Node):
    """Says a number ten times a second, each of which is good for a second."""

    order = Publisher(Utterance, "order", qos=SOON)

    def __init__(self) -> None:
        self.count = 0

    @every(hz=10)
    def count_on(self) -> None:
        self.count += 1
        self.order.publish(Utterance(speaker="counter", text=str(self.count)))


class AgeListener(Node):
    """Tells how old each order is when it comes."""

    order = Subscription(Utterance, "order")

    @on(order)
    def heard(self, order: Utterance) -> None:
        stamped = self.order.stamped()
        assert stamped is not None
        self.log.info("order %s is %.2f s old", order.text, stamped.age_s(self.clock.now_ns()))


class LastWord(Message):
    number: int


class Farewell(Node):
    """Ends the run, and has something to say when it is stopped."""

    word = Publisher(LastWord, "farewell", qos=RELIABLE)

    @every(hz=5)
    def end(self) -> None:
        self.finish(ok=True, reason="all is said")

    def on_stop(self) -> None:
        for number in range(1, 4):
            self.word.publish(LastWord(number=number))


class Mourner(Node):
    """Hears what others say when they are stopped."""

    stops_late = True
    word = Subscription(LastWord, "farewell")

    @on(word)
    def hear(self, word: LastWord) -> None:
        self.log.info("heard word %d", word.number)


class BusyTalker(Node):
    """Each of its calls takes 5 s, in which its loop does nothing else."""

    beat = Publisher(Beat, "beat")

    @every(hz=1)
    def tick(self) -> None:
        self.beat.publish(Beat(count=1))
        threading.Event().wait(5.0)
