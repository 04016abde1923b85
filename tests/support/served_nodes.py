"""A service and a goal, their servers and clients, for tests in virtual time and with processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Literal

from runtime import (
    CallError,
    GoalClient,
    GoalHandle,
    GoalServer,
    Message,
    Node,
    Publisher,
    RequestRefused,
    ServiceClient,
    ServiceServer,
    Subscription,
    every,
    on,
    serve,
)
from runtime.coordination.fence import Fence
from runtime.services import GoalUpdate


class AddTwo(Message):
    a: int
    b: int


class Sum(Message):
    total: int


class CountTo(Message):
    number: int


class Counted(Message):
    so_far: int


class Done(Message):
    number: int


class Go(Message):
    number: int


class Told(Message):
    """What a client has to tell of its calls."""

    by: str
    what: str


class Adder(Node):
    add = ServiceServer(AddTwo, Sum, "add")

    def __init__(self, style: Literal["adds", "sleeps", "lies"] = "adds") -> None:
        self.style = style
        self.served: list[int] = []

    @serve(add)
    async def answer(self, request: AddTwo) -> Sum:
        self.served.append(request.a)
        if request.a < 0:
            raise RequestRefused("no number below 0")
        if self.style == "sleeps":
            await self.clock.sleep(request.a)
        if self.style == "lies":
            return AddTwo(a=1, b=2)  # type: ignore[return-value]  # what a test wants to see told
        return Sum(total=request.a + request.b)


class BlockingAdder(Node):
    add = ServiceServer(AddTwo, Sum, "add")

    @serve(add, blocking=True)
    def answer(self, request: AddTwo) -> Sum:
        return Sum(total=request.a + request.b)


class Asker(Node):
    """Asks at once for each of its numbers, one after another."""

    add = ServiceClient(AddTwo, Sum, "add", deadline_s=2.0)
    told = Publisher(Told, "told")

    def __init__(self, numbers: tuple[int, ...] = (1, 2, 3), hz: float = 10.0) -> None:
        self.numbers = list(numbers)

    @every(hz=10)
    async def ask(self) -> None:
        if not self.numbers:
            return
        number = self.numbers.pop(0)
        try:
            answer = await self.add.call(AddTwo(a=number, b=10))
        except CallError as problem:
            self.told.publish(Told(by=self.name, what=f"{number}: {problem.code}"))
        else:
            self.told.publish(Told(by=self.name, what=f"{number}: {answer.total}"))


class Counter(Node):
    """Counts ten numbers a second."""

    count = GoalServer(CountTo, Counted, Done, "count")

    def __init__(self) -> None:
        self.ended: list[str] = []

    @serve(count)
    async def go(self, run: GoalHandle[CountTo, Counted]) -> Done:
        if run.goal.number < 0:
            raise RequestRefused("no number below 0")
        try:
            for number in range(run.goal.number):
                await asyncio.sleep(0.1)
                run.feedback(Counted(so_far=number + 1))
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("reached")
        return Done(number=run.goal.number)


class Commander(Node):
    """Sets each goal that comes by `go`; a negative one of -1 cancels instead."""

    seat = "policy"
    go = Subscription(Go, "go")
    count = GoalClient(CountTo, Counted, Done, "count", deadline_s=5.0, silence_s=1.0)
    told = Publisher(Told, "told")

    @on(go)
    async def set_goal(self, go: Go) -> None:
        def tell(feedback: Counted) -> None:
            self.told.publish(Told(by=self.name, what=f"so far {feedback.so_far}"))

        try:
            done = await self.count.call(CountTo(number=go.number), feedback=tell)
        except CallError as problem:
            self.told.publish(Told(by=self.name, what=problem.code))
        else:
            self.told.publish(Told(by=self.name, what=f"done {done.number}"))

    stop = Subscription(Told, "stop")

    @on(stop)
    def give_up(self, _: Told) -> None:
        self.count.cancel()


class Story(Node):
    """Sets a goal a second after the start, and ends it two seconds later, as `how` says."""

    go = Publisher(Go, "go")
    stop = Publisher(Told, "stop")
    fence = Publisher(Fence, "fence")
    told = Subscription(Told, "told")

    def __init__(self, how: Literal["cancel", "interrupt", "wait"] = "wait", number: int = 30, ends: str = "") -> None:
        self.how, self.number, self.ends = how, number, ends
        self.interrupts = False

    @every(hz=50)
    def interrupt(self) -> None:
        """From a timer: a handler may answer the very event that raised a fence."""
        if self.interrupts:
            self.interrupts = False
            self.fence.publish(Fence(epochs={"policy": 1}, interrupt_id="i", depth="stop"))

    @every(hz=1)
    async def tell(self) -> None:
        if self.number:
            number, self.number = self.number, 0
            self.go.publish(Go(number=number))

    @on(told)
    def hear(self, told: Told) -> None:
        self.log.info("told by %s: %s", told.by, told.what)
        if told.what == "so far 5":
            if self.how == "cancel":
                self.stop.publish(Told(by="", what=""))
            elif self.how == "interrupt":
                self.interrupts = True
        if told.what == self.ends:
            self.finish(ok=True, reason=told.what)


class Mortal(Node):
    """Dies at its first request, and serves once it was started again."""

    add = ServiceServer(AddTwo, Sum, "add")

    def __init__(self, grave: str) -> None:
        self.grave = Path(grave)

    @serve(add)
    def answer(self, request: AddTwo) -> Sum:
        if not self.grave.exists():
            self.grave.touch()
            os._exit(1)
        return Sum(total=request.a + request.b)


class Patient(Node):
    """Asks until it is answered."""

    add = ServiceClient(AddTwo, Sum, "add", deadline_s=0.15)

    def __init__(self) -> None:
        self.codes: list[str] = []

    @every(hz=5)
    async def ask(self) -> None:
        try:
            answer = await self.add.call(AddTwo(a=1, b=10))
        except CallError as problem:
            self.codes.append(problem.code)
        else:
            self.finish(ok=True, reason=f"{self.codes[0] if self.codes else 'nothing'}, then {answer.total}")


class Watcher(Node):
    """Ends the run when a goal ends, with how it ended."""

    update = Subscription(GoalUpdate.of(Counted, Done), "count/answer")

    @on(update)
    def hear(self, update: Any) -> None:
        if update.code == "cancelled":
            self.finish(ok=True, reason=f"{update.code} {update.problem}")
