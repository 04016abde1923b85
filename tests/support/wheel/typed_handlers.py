"""Handlers, services and goals of every kind, for type checkers: a file as a user might write it."""

from __future__ import annotations

from runtime import (
    CallError,
    GoalClient,
    GoalHandle,
    GoalServer,
    Message,
    Node,
    Publisher,
    QoS,
    RequestRefused,
    ServiceClient,
    ServiceServer,
    Simulation,
    Stamped,
    Subscription,
    every,
    on,
    on_deadline,
    run,
    serve,
)


class Press(Message):
    count: int


class Level(Message, kind="state"):
    height_m: float


class Question(Message):
    a: int
    b: int


class Sum(Message):
    total: int


class Target(Message):
    x_m: float


class Progress(Message):
    left_m: float


class Arrived(Message):
    x_m: float


class Panel(Node):
    press = Subscription(Press, "press")
    level = Subscription(Level, "level", qos=QoS(deadline_s=1.0))
    total = Publisher(Sum, "total")
    add = ServiceClient(Question, Sum, "add", deadline_s=1.0)
    drive = GoalClient(Target, Progress, Arrived, "drive", deadline_s=3.0, silence_s=1.0)
    kept: Stamped[Level] | None = None

    @on(press)
    def pressed(self, press: Stamped[Press]) -> None:
        self.total.publish(Sum(total=press.message.count), stems_from=press)

    @on(level, blocking=True)
    def leveled(self, level: Stamped[Level]) -> None:
        self.kept = level
        age_s: float = level.age_s()
        self.log.info("%.1f m, %.1f s", level.message.height_m, age_s)

    @on_deadline(level)
    def silent(self) -> None:
        self.log.warning("no level")

    @every(hz=1)
    async def ask(self) -> None:
        try:
            answer = await self.add.call(Question(a=1, b=2))
            arrived = await self.drive.call(Target(x_m=float(answer.total)), feedback=self.show)
        except CallError as problem:
            self.log.info("%s", problem.code)
        else:
            self.log.info("at %.1f m, because of %s", arrived.x_m, self.context.cause)

    def show(self, progress: Progress) -> None:
        self.log.info("%.1f m to go", progress.left_m)


class Display(Node):
    press = Subscription(Press, "press")
    level = Subscription(Level, "level")

    @on(press, level)
    def show(self, message: Press | Level) -> None:
        if isinstance(message, Press):
            self.log.info("%d", message.count)
        else:
            self.log.info("%.1f", message.height_m)


class Archive(Node):
    press = Subscription(Press, "press")
    level = Subscription(Level, "level")

    @on(press, level)
    async def keep(self, message: Stamped[Press | Level]) -> None:
        self.log.info("%.1f s old", message.age_s())


class Base(Node):
    add = ServiceServer(Question, Sum, "add")
    drive = GoalServer(Target, Progress, Arrived, "drive")

    @serve(add)
    def answer(self, question: Question) -> Sum:
        if question.a < 0:
            raise RequestRefused("a is below 0")
        return Sum(total=question.a + question.b)

    @serve(drive)
    async def go(self, goal: GoalHandle[Target, Progress]) -> Arrived:
        goal.feedback(Progress(left_m=goal.goal.x_m))
        return Arrived(x_m=goal.goal.x_m)


def simulated() -> list[Sum]:
    simulation = Simulation(Panel(), Display(), Archive(), Base(), seed=1)
    totals: list[Sum] = simulation.record(Panel.total)
    simulation.run(1.0)
    simulation.close()
    return totals


def in_real_time() -> tuple[bool, str] | None:
    return run(Panel(), Display(), Archive(), Base(), seconds=0.5)
