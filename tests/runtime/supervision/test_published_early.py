"""What nodes publish before all of them listen goes out first, in its order, whoever publishes meanwhile."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from runtime import Message, Node, Publisher
from runtime.execution.executor import Executor, Transport
from runtime.launch.graph import NodeSpec
from runtime.message import Envelope


class Sample(Message):
    number: int


class Device(Node):
    """Its device has something before the run begins, and a thread of its own."""

    sample = Publisher(Sample, "sample")

    def on_start(self) -> None:
        self.sample.publish_all([Sample(number=1), Sample(number=2)])
        self.sample.publish(Sample(number=3))

    def has_more(self) -> None:
        self.sample.publish_all([Sample(number=4), Sample(number=5)])


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.unfreeze()


def test_a_device_that_publishes_as_the_run_begins_overtakes_nothing() -> None:
    sent: list[int] = []
    threads: list[threading.Thread] = []

    class Wire(Transport):
        def publish(self, envelope: Envelope, message: Message) -> None:
            if not isinstance(message, Sample):
                return
            if not threads:
                device = executor.bound_nodes[0].node
                assert isinstance(device, Device)
                threads.append(threading.Thread(target=device.has_more))
                threads[0].start()
                threads[0].join(0.2)  # all the time it needs to overtake, if it may
            sent.append(envelope.seq)
            assert envelope.seq == message.number

    executor = Executor(
        [NodeSpec("device", Device)],
        {"sample": Sample},
        transport=Wire(),
        seed=0,
        run_info={},
    )

    async def run() -> None:
        await executor.prepare()
        stop = asyncio.Event()
        stop.set()
        await executor.run(stop)

    asyncio.run(run())
    threads[0].join(10.0)
    assert sent == [1, 2, 3, 4, 5]
