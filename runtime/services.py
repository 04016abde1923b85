"""Services and goals: a request that gets an answer, and a goal that gets feedback and a result and may be cancelled.

They are no second bus. A service `add` is the topics `add/request` and `add/answer`, with an id in each message. Its
ports stand on the class as those of a topic do. There they bring ordinary ports and handlers with them. So the graph,
the recording, the fence and virtual time treat them as any others. `serve_NAME` is the handler that answers.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NoReturn, Protocol, Self, TypeVar, overload

from runtime.clock import NS_PER_S, to_ns
from runtime.context import HandlerContext, current_call
from runtime.coordination.fence import FENCE_TOPIC, Fence
from runtime.errors import PolyrhythmError, UserError
from runtime.message import FrozenMeta, Message, Stamped
from runtime.node import N, Node, on
from runtime.ports import Port, Publisher, Subscription, check_topic
from runtime.qos import RELIABLE, QoS

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)
G = TypeVar("G", bound=Message)
F = TypeVar("F", bound=Message)
R = TypeVar("R", bound=Message)

_RUNTIME = os.path.dirname(__file__) + os.sep
CallCode = Literal["deadline", "refused", "failed", "cancelled"]
_MOST_WITHDRAWN = 64
"""Goals that were cancelled before they had their turn."""
_MOST_UPDATES = 64
"""Of one goal that its client has not looked at; of more the oldest feedback goes."""
_LINGER_S = 0.1
"""So long after its deadline a server ends a goal that its client has not cancelled: the client may be gone."""


class CallError(PolyrhythmError):
    """A call got no answer, or no result; `code` says why: "deadline", "refused", "failed" or "cancelled"."""

    def __init__(self, code: CallCode, text: str) -> None:
        super().__init__(text)
        self.code: CallCode = code


class RequestRefused(PolyrhythmError):
    """Refuses a request or a goal, for the reason that is the text; a server raises it, and it is no failure."""


class Exchange(Message):
    """A message between a client and a server: the one that stands inside it, and the id of the call."""

    suffix: ClassVar[str] = ""
    holds: ClassVar[tuple[str, ...]] = ()
    is_answer: ClassVar[bool] = False

    id: str

    @classmethod
    def of(cls, *inner: type[Message]) -> Any:
        """This class with the user's own messages inside it."""
        return _exchange_of(cls, inner)


class ServiceRequest(Exchange):
    """What goes out on `SERVICE/request`; `request` is the user's own message."""

    suffix: ClassVar[str] = "Request"
    holds: ClassVar[tuple[str, ...]] = ("request",)

    until_ns: int
    """Nobody waits for the answer after this."""


class ServiceAnswer(Exchange):
    """What comes back on `SERVICE/answer`; `answer` is the user's own message where `code` is "ok"."""

    suffix: ClassVar[str] = "Answer"
    holds: ClassVar[tuple[str, ...]] = ("answer",)
    is_answer: ClassVar[bool] = True

    code: Literal["ok", "refused", "failed", "cancelled"]
    problem: str = ""


class GoalRequest(Exchange):
    """What goes out on `GOAL/request`: a goal, or that it is cancelled."""

    suffix: ClassVar[str] = "Goal"
    holds: ClassVar[tuple[str, ...]] = ("goal",)

    do: Literal["start", "cancel"]
    until_ns: int = 0


class GoalUpdate(Exchange):
    """What comes back on `GOAL/answer`: that a goal has begun, its feedback, and how it ended."""

    suffix: ClassVar[str] = "Update"
    holds: ClassVar[tuple[str, ...]] = ("feedback", "result")
    is_answer: ClassVar[bool] = True

    code: Literal["accepted", "running", "ok", "refused", "failed", "cancelled"]
    problem: str = ""


@cache
def _exchange_of(base: Any, inner: tuple[Any, ...]) -> Any:
    """The class has a name by which `load_type` finds it in any process: "Request[my.module:AddTwo]"."""
    namespace: dict[str, Any] = {
        "__doc__": base.__doc__,
        "__module__": base.__module__,
        "__qualname__": f"{base.__name__}[{','.join(f'{one.__module__}:{one.__qualname__}' for one in inner)}]",
        "__annotations__": {
            name: one if base is ServiceRequest else one | None for name, one in zip(base.holds, inner, strict=True)
        },
    }
    if base is not ServiceRequest:
        namespace.update(dict.fromkeys(base.holds))
    return FrozenMeta(f"{inner[-1].__name__}_{base.suffix}", (base,), namespace)


class ServiceEnd:
    """One end of a service or a goal. Reading it from an instance gives that instance's own, as of a port."""

    def __init__(self, name: str, request: Any, answer: Any) -> None:
        check_topic(f"{name}/request")
        self.service = name
        self.request, self.answer = request, answer
        self.attribute = ""
        self._node: Node | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.service!r})"

    def __get__(self, instance: Node | None, owner: type | None = None) -> Self:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.attribute, self._bind(instance))  # type: ignore[no-any-return]

    def _bind(self, node: Node) -> Self:
        bound = type(self).__new__(type(self))
        vars(bound).update(vars(self))
        bound._node = node
        bound._begin()
        return bound

    def _begin(self) -> None:
        """Make what an instance keeps."""

    def _declare(self, owner: type, name: str, port: Port[Any]) -> None:
        setattr(owner, name, port)
        port.__set_name__(owner, name)

    @property
    def node(self) -> Node:
        """The node that it belongs to. Raises UserError for a declaration on a class."""
        if self._node is None:
            raise UserError(
                f"{type(self).__name__} {self.service!r} is a declaration; make it on the class of a node, and use it "
                "as self.NAME"
            )
        return self._node


class _Client(ServiceEnd):
    """Asks on `NAME/request` and hears `NAME/answer`."""

    def __init__(self, name: str, request: Any, answer: Any, deadline_s: float) -> None:
        super().__init__(name, request, answer)
        self.deadline_s = self._seconds("deadline_s", deadline_s)

    def _seconds(self, name: str, value: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise UserError(f"{self!r}: {name} is {value!r}; expected a positive number of seconds")
        return value

    def __set_name__(self, owner: type[Node], attribute: str) -> None:
        self.attribute = attribute
        answers: Subscription[Any] = Subscription(self.answer, f"{self.service}/answer")
        self._declare(owner, f"_{attribute}_request", Publisher(self.request, f"{self.service}/request", qos=RELIABLE))
        self._declare(owner, f"_{attribute}_answer", answers)

        def hear(node: Node, message: Any) -> None:
            getattr(node, attribute)._take(message)

        setattr(owner, f"_{attribute}_answered", on(answers)(hear))

    def _begin(self) -> None:
        self._number = 0
        self._pending: dict[str, asyncio.Queue[Stamped[Any]]] = {}
        self.late = 0
        """Answers that came when nobody waited for them any more."""

    def _take(self, message: Any) -> None:
        """An answer has come; those to other clients stand on the same topic."""
        queue = self._pending.get(message.id)
        if queue is None:
            if message.id.startswith(f"{self.node.name}/{self.attribute}/"):
                self.late += 1
            return
        if queue.full():
            queue.get_nowait()  # the oldest feedback: how it ended is told last
        call = current_call.get()
        assert call is not None
        assert call.trigger is not None
        queue.put_nowait(call.trigger)

    def _ask(self, asked: Any, wanted: Any, deadline_s: float | None) -> tuple[str, asyncio.Queue[Stamped[Any]], float]:
        """A call that begins: its id, where its answers come in, and how long it may take."""
        node = self.node
        if type(asked) is not wanted:
            raise TypeError(f"{self!r} of {node.name} takes {wanted.__name__}, not {type(asked).__name__}")
        most_s = self.deadline_s if deadline_s is None else self._seconds("deadline_s", deadline_s)
        self._number += 1
        # The time tells a node that was started again from the one before it.
        ident = f"{node.name}/{self.attribute}/{node.clock.now_ns()}/{self._number}"
        queue = self._pending[ident] = asyncio.Queue(_MOST_UPDATES)
        return ident, queue, most_s

    def _refuse_plain(self, does: str) -> None:
        """Raise UserError where the runtime runs a handler, or an `on_start`, that cannot wait for an answer."""
        caller: types.FrameType | None = sys._getframe(2)
        frame = handler = caller
        while frame is not None and not frame.f_code.co_filename.startswith(_RUNTIME):
            if frame.f_code.co_flags & inspect.CO_COROUTINE or frame.f_globals.get("__package__") == "asyncio":
                return  # it waits, or hands the call to who does
            handler, frame = frame, frame.f_back
        if frame is None or handler is None or caller is None or frame.f_code.co_flags & inspect.CO_COROUTINE:
            return  # a test, say
        place = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
        raise UserError(
            f"{type(self.node).__name__}.{handler.f_code.co_name} ({place}) {does} {self.service!r}, and cannot wait "
            f"for it without `async def`; write `await self.{self.attribute}.call(...)` in an `async def` handler"
        )

    def _send(self, message: Any) -> None:
        getattr(self.node, f"_{self.attribute}_request").publish(message)

    def _read(self, stamped: Stamped[Any]) -> Any:
        """The answer; what the handler publishes from now on is as old as that."""
        call = current_call.get()
        if call is not None:
            call.read(stamped)
            if call.notes is not None:
                call.notes.read(f"_{self.attribute}_answer", stamped)
        return stamped.message

    def _fail(self, code: CallCode, what: str, problem: str) -> NoReturn:
        said = f": {problem}" if problem else ""
        raise CallError(code, f"{what} {self.service!r} of {self.node.name} {_SAID[code]}{said}")


_SAID: dict[CallCode, str] = {
    "deadline": "got no answer",
    "refused": "was refused",
    "failed": "failed",
    "cancelled": "was cancelled",
}


class ServiceClient(_Client, Generic[Q, A]):
    """Asks a service, from an `async def` handler: `answer = await self.add.call(AddTwo(a=1, b=2))`.

    `deadline_s` is how long a call waits, in seconds above 0. Raises UserError for another, or for what is no message.
    """

    def __init__(self, request: type[Q], answer: type[A], service: str, *, deadline_s: float = 5.0) -> None:
        _check_messages("ServiceClient", request, answer)
        super().__init__(service, ServiceRequest.of(request), ServiceAnswer.of(answer), deadline_s)
        self._asks = request

    def call(self, request: Q, *, deadline_s: float | None = None) -> Coroutine[Any, Any, A]:
        """Ask, and return the answer, for which an `async def` handler has to `await`.

        `deadline_s` is a positive number of seconds; without it, the client's own. Raises CallError where the request
        is refused, fails, or has no answer by then, UserError for no such number and in any other handler, TypeError
        for another message.
        """
        self._refuse_plain("calls the service")
        return self._call(request, deadline_s)

    async def _call(self, request: Q, deadline_s: float | None) -> A:
        ident, queue, most_s = self._ask(request, self._asks, deadline_s)
        try:
            self._send(self.request(id=ident, until_ns=self.node.clock.now_ns() + to_ns(most_s), request=request))
            async with asyncio.timeout(most_s):
                message = self._read(await queue.get())
        except TimeoutError:
            self._fail("deadline", "service", f"nothing within {most_s:g} s")
        finally:
            del self._pending[ident]
        if message.code != "ok":
            self._fail(message.code, "service", message.problem)
        answer: A = message.answer
        return answer


class GoalClient(_Client, Generic[G, F, R]):
    """Sets a goal and waits for its result, from an `async def` handler: `await self.drive.call(DriveTo(x_m=1))`.

    A handler that is cancelled cancels its goal, also where an interrupt has fenced its seat.
    """

    def __init__(
        self, goal: type[G], feedback: type[F], result: type[R], name: str, *, deadline_s: float = 60.0,
        silence_s: float | None = None,
    ) -> None:  # fmt: skip
        """`deadline_s`: until the result; `silence_s`: the longest wait for a word of the server; in s, above 0."""
        _check_messages("GoalClient", goal, feedback, result)
        super().__init__(name, GoalRequest.of(goal), GoalUpdate.of(feedback, result), deadline_s)
        self.silence_s = None if silence_s is None else self._seconds("silence_s", silence_s)
        self._asks = goal

    def call(
        self, goal: G, *, feedback: Callable[[F], None] | None = None, deadline_s: float | None = None
    ) -> Coroutine[Any, Any, R]:
        """Set the goal, and return its result, for which an `async def` handler has to `await`.

        `feedback` is called with each message of feedback. `deadline_s` is a positive number of seconds; without it,
        the client's own. Raises CallError where the goal is refused, fails, is cancelled, or is not reached in time;
        then the server is told to give it up. Raises UserError for no such number, for an async `feedback` and in any
        other handler, TypeError for another message.
        """
        self._refuse_plain("sets the goal")
        if asyncio.iscoroutinefunction(feedback):
            name = feedback.__name__
            raise UserError(f"{self!r} calls {name} with its feedback and does not await it; write `def {name}`")
        return self._call(goal, feedback, deadline_s)

    async def _call(self, goal: G, feedback: Callable[[F], None] | None, deadline_s: float | None) -> R:
        ident, queue, most_s = self._ask(goal, self._asks, deadline_s)
        now_ns = self.node.clock.now_ns
        end_ns = now_ns() + to_ns(most_s)
        is_over = False
        try:
            self._send(self.request(id=ident, do="start", until_ns=end_ns, goal=goal))
            while True:
                left_s = (end_ns - now_ns()) / NS_PER_S
                wait_s = left_s if self.silence_s is None else min(left_s, self.silence_s)
                async with asyncio.timeout(max(wait_s, 0.0)):
                    message = self._read(await queue.get())
                if message.code == "running" and feedback is not None:
                    feedback(message.feedback)
                is_over = message.code not in ("accepted", "running")
                if message.code == "ok":
                    result: R = message.result
                    return result
                if is_over:
                    self._fail(message.code, "goal", message.problem)
        except TimeoutError:
            waited = f"no result within {most_s:g} s" if now_ns() >= end_ns else f"no word for {self.silence_s:g} s"
            self._fail("deadline", "goal", waited)
        finally:
            del self._pending[ident]
            if not is_over:
                self._give_up(ident)

    def cancel(self) -> None:
        """Ask the server to give up all goals of this client; their calls then raise CallError "cancelled"."""
        for ident in tuple(self._pending):
            self._give_up(ident)

    def _give_up(self, ident: str) -> None:
        port = getattr(self.node, f"_{self.attribute}_answer")
        _publish_anew(self.node, port, lambda: self._send(self.request(id=ident, do="cancel")))


class _Server(ServiceEnd):
    """Hears `NAME/request` and answers on `NAME/answer`."""

    method = ""
    """The name of the method that serves it; "": none yet."""
    takes: Any
    """What that method is called with: a message, or a handle on a goal."""
    style: Literal["plain", "async", "blocking"] = "plain"
    _why = ""  # why what runs is given up

    def _reply(self, ident: str, **fields: Any) -> None:
        getattr(self.node, f"_{self.attribute}_answer").publish(self.answer(id=ident, **fields))

    def _reply_anew(self, ident: str, **fields: Any) -> None:
        port = getattr(self.node, f"_{self.attribute}_request")
        _publish_anew(self.node, port, lambda: self._reply(ident, **fields))

    def _is_late(self, message: Any) -> bool:
        """Whether nobody waits for this one any more."""
        if self.node.clock.now_ns() <= message.until_ns:
            return False
        self.node.log.warning("%s: a request came to its turn after its deadline; not served", self.service)
        return True

    @contextmanager
    def _telling_why_not(self, ident: str) -> Iterator[None]:
        """Tell the client of what is raised in place of an answer; only what it asked for itself ends here."""
        try:
            yield
        except RequestRefused as refusal:
            self._reply(ident, code="refused", problem=str(refusal))
        except asyncio.CancelledError:
            self._reply_anew(ident, code="cancelled", problem=self._why or "the server was interrupted")
            if not self._why:
                raise
        except Exception as problem:
            self._reply(ident, code="failed", problem=_sentence(problem))
            raise

    def _declare_ports(self, owner: type[Node], attribute: str) -> Subscription[Any]:
        self.attribute = attribute
        requests: Subscription[Any] = Subscription(self.request, f"{self.service}/request", qos=QoS(required=False))
        self._declare(owner, f"_{attribute}_request", requests)
        self._declare(owner, f"_{attribute}_answer", Publisher(self.answer, f"{self.service}/answer", qos=RELIABLE))
        return requests

    def _checked(self, given: Any, wanted: Any) -> Any:
        if type(given) is not wanted:
            raise TypeError(
                f"{type(self.node).__name__}.{self.method} serves {self.service!r} with {wanted.__name__}, not "
                f"{type(given).__name__}" + (f"; end it with `return {wanted.__name__}(...)`" if given is None else "")
            )
        return given


class ServiceServer(_Server, Generic[Q, A]):
    """Answers a service by the method that is marked with `@serve(...)`, one request after another.

    At most 64 requests wait; of more the oldest is dropped. One whose deadline has passed is not served.
    """

    def __init__(self, request: type[Q], answer: type[A], service: str) -> None:
        _check_messages("ServiceServer", request, answer)
        super().__init__(service, ServiceRequest.of(request), ServiceAnswer.of(answer))
        self._answer_type = answer
        self.takes = request

    def __set_name__(self, owner: type[Node], attribute: str) -> None:
        requests = self._declare_ports(owner, attribute)

        def now(node: Node, message: Any) -> None:
            getattr(node, attribute)._serve(node, message)

        async def later(node: Node, message: Any) -> None:
            await getattr(node, attribute)._serve_async(node, message)

        if self.style == "async":
            setattr(owner, f"serve_{attribute}", on(requests)(later))
        elif self.method:
            setattr(owner, f"serve_{attribute}", on(requests, blocking=self.style == "blocking")(now))

    def _serve(self, node: Node, message: Any) -> None:
        """`node` is the one to call: a worker's sees it as it was at the start."""
        if self._is_late(message):
            return
        with self._telling_why_not(message.id):
            answer = getattr(node, self.method)(message.request)
            self._reply(message.id, code="ok", answer=self._checked(answer, self._answer_type))

    async def _serve_async(self, node: Node, message: Any) -> None:
        if self._is_late(message):
            return
        with self._telling_why_not(message.id):
            answer = await getattr(node, self.method)(message.request)
            self._reply(message.id, code="ok", answer=self._checked(answer, self._answer_type))


class GoalHandle(Generic[G, F]):
    """A goal that is being served: `goal` is what is wanted, `feedback(...)` tells the client how far it is."""

    def __init__(self, goal: G, feedback: Callable[[F], None]) -> None:
        self.goal = goal
        self.feedback = feedback
        """Called with each message of feedback. Raises TypeError for one of another type."""


class GoalServer(_Server, Generic[G, F, R]):
    """Serves goals by the `async def` method that is marked with `@serve(...)`, one after another.

    The method is cancelled at its `await` when the client cancels, when an interrupt fences the seat of the client or
    of the server, a moment after the client's deadline, and at the end of the run.
    """

    def __init__(self, goal: type[G], feedback: type[F], result: type[R], name: str) -> None:
        _check_messages("GoalServer", goal, feedback, result)
        super().__init__(name, GoalRequest.of(goal), GoalUpdate.of(feedback, result))
        self._result_type = result
        self._feedback_type = feedback
        self.takes = GoalHandle[goal, feedback]  # type: ignore[valid-type]  # for a look at annotations

    def __set_name__(self, owner: type[Node], attribute: str) -> None:
        requests = self._declare_ports(owner, attribute)
        # Cancels must not wait behind the goal that they cancel: a second port hears the same topic.
        cancels: Subscription[Any] = Subscription(self.request, requests.topic, qos=QoS(required=False))
        fences: Subscription[Fence] = Subscription(Fence, FENCE_TOPIC, qos=QoS(required=False))
        self._declare(owner, f"_{attribute}_cancel", cancels)
        self._declare(owner, f"_{attribute}_fence", fences)

        async def serve_goal(node: Node, message: Any) -> None:
            await getattr(node, attribute)._serve(node, message)

        def hear_cancel(node: Node, message: Any) -> None:
            if message.do == "cancel":
                getattr(node, attribute)._cancel(message.id)

        def hear_fence(node: Node, fence: Fence) -> None:
            getattr(node, attribute)._fenced()

        if self.method:
            setattr(owner, f"serve_{attribute}", on(requests)(serve_goal))
            setattr(owner, f"_{attribute}_cancelled", on(cancels)(hear_cancel))
            setattr(owner, f"_{attribute}_fenced", on(fences)(hear_fence))

    def _begin(self) -> None:
        self._withdrawn: deque[str] = deque(maxlen=_MOST_WITHDRAWN)
        self._running: tuple[str, asyncio.Task[Any], Stamped[Any]] | None = None

    async def _serve(self, node: Node, message: Any) -> None:
        if message.do == "cancel":
            return  # the other port hears these
        if message.id in self._withdrawn:
            self._reply(message.id, code="cancelled", problem="before it began")
            return
        if self._is_late(message):
            return
        call, task = current_call.get(), asyncio.current_task()
        assert call is not None
        assert call.trigger is not None
        assert task is not None
        self._running, self._why = (message.id, task, call.trigger), ""
        self._reply(message.id, code="accepted")
        left_s = (message.until_ns - node.clock.now_ns()) / NS_PER_S
        end = asyncio.get_running_loop().call_later(left_s + _LINGER_S, self._give_up, "at its deadline")

        def tell(feedback: F) -> None:
            self._reply(message.id, code="running", feedback=self._checked(feedback, self._feedback_type))

        try:
            with self._telling_why_not(message.id):
                result = await getattr(node, self.method)(GoalHandle(message.goal, tell))
                self._reply(message.id, code="ok", result=self._checked(result, self._result_type))
        finally:
            end.cancel()
            self._running = None
            if self._why:
                task.uncancel()  # the handler goes on to the next goal

    def _cancel(self, ident: str) -> None:
        if self._running is not None and self._running[0] == ident:
            self._give_up("by its client")
        else:
            self._withdrawn.append(ident)

    def _fenced(self) -> None:
        """An interrupt: a goal of a seat that it fences is over, whether or not its client can still say so."""
        fence = getattr(self.node, f"_{self.attribute}_request").fence
        if self._running is None or fence is None:
            return
        envelope = self._running[2].envelope
        if fence.is_behind(envelope):
            self._give_up("by an interrupt")

    def _give_up(self, why: str) -> None:
        assert self._running is not None
        if not self._why:
            self._why = why
            self._running[1].cancel()


class _Served(Protocol[Q, A]):
    """A method takes the request and returns the answer, itself or as a coroutine."""

    @overload
    def __call__(self, method: Callable[[N, Q], Awaitable[A]]) -> Callable[[N, Q], Awaitable[A]]: ...
    @overload
    def __call__(self, method: Callable[[N, Q], A]) -> Callable[[N, Q], A]: ...


class _Reached(Protocol[G, F, R]):
    """A method takes a handle on the goal and returns the result as a coroutine."""

    def __call__(
        self, method: Callable[[N, GoalHandle[G, F]], Awaitable[R]]
    ) -> Callable[[N, GoalHandle[G, F]], Awaitable[R]]: ...


@overload
def serve(server: ServiceServer[Q, A], *, blocking: bool = False) -> _Served[Q, A]: ...
@overload
def serve(server: GoalServer[G, F, R]) -> _Reached[G, F, R]: ...
def serve(server: Any, *, blocking: bool = False) -> Any:
    """Answer a service, or reach a goal, by this method; with `blocking`, answer a service in a worker thread.

    A method that raises RequestRefused refuses. Any other exception is a failure of both ends: the client hears of it,
    and the server's log has the traceback. Raises UserError for a method that cannot serve.
    """

    if not isinstance(server, _Server):
        raise UserError(
            f"@serve takes a server, not {server!r}; write @serve(add) for add = ServiceServer(AddTwo, Sum, 'add')"
        )

    def mark(method: Any) -> Any:
        name = method.__qualname__
        if server.method:
            raise UserError(
                f"{name}: {server.service!r} is served by {server.method!r} already; call one from the other"
            )
        is_async = asyncio.iscoroutinefunction(method)
        if is_async and blocking:
            raise UserError(f"{name}: an async method cannot be blocking; choose one of the two")
        if isinstance(server, GoalServer) and not is_async:
            raise UserError(f"{name}: a goal is served by an `async def` method, which a cancel can end; make it one")
        server.method = method.__name__
        server.style = "async" if is_async else "blocking" if blocking else "plain"
        return method

    return mark


def servers_of(cls: type[Node]) -> dict[str, ServiceServer[Any, Any] | GoalServer[Any, Any, Any]]:
    """The servers that a node class declares, by attribute."""
    return {
        name: value
        for base in reversed(cls.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, ServiceServer | GoalServer)
    }


def _publish_anew(node: Node, port: Subscription[Any], publish: Callable[[], None]) -> None:
    """Publish what has to be told although, or because, the handler that says so was interrupted."""
    now_ns = node.clock.now_ns()
    token = current_call.set(
        HandlerContext(now_ns) if port.fence is None else HandlerContext(now_ns, port.fence.epochs)
    )
    try:
        publish()
    finally:
        current_call.reset(token)


def _check_messages(port: str, *messages: object) -> None:
    for message in messages:
        if not (isinstance(message, type) and issubclass(message, Message)):
            said = getattr(message, "__name__", repr(message))
            raise UserError(f"{port}({said}, ...): {said} is no message; expected a subclass of Message")


def _sentence(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
