"""`Lane`: handlers of which only one runs at a time, and the choice of the next. No threads, no sockets.

The plain handlers of a node share one lane; its blocking handlers share one, the worker thread; each async handler has
its own. The executors of real and of virtual time differ only in who drives the lanes.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import compress
from operator import attrgetter
from typing import Any

import msgspec

from runtime.execution.timers import Deadline, FollowingTimer, TimerState
from runtime.message import Stamped
from runtime.node import Style
from runtime.ports import Subscription

_due_of = attrgetter("due_ns")


class Work(msgspec.Struct):
    """One call of a handler that a lane gives out; made for every message."""

    handler: str
    style: Style
    stamped: Stamped[Any] | None


class Lane:
    """Handlers that never overlap. Due timers and deadlines go first, then waiting messages, one port after the other.

    A timer that is due again at once yields to the messages that wait by then. Otherwise a handler that takes longer
    than its period would be all that the node ever runs.
    """

    def __init__(self, style: Style, key: str) -> None:
        self.style = style
        self.key = key
        self.timers: list[TimerState] = []
        self.followers: list[FollowingTimer] = []  # of the timers
        self.deadlines: list[Deadline] = []
        self.listeners: list[tuple[str, Subscription[Any]]] = []
        """Handlers and the ports that they listen to; `listen` adds one."""
        self.queues: list[Collection[Stamped[Any]]] = []
        """What waits in each of these ports."""
        self.is_busy = False
        self.turn = 0
        self.known_due_ns: int | None = 0  # asked for at each message; 0: to be found out
        self.has_ticked = False  # since a message was handled
        self._owed = 0  # messages that go before a timer that is due again
        self._sole: TimerState | None = None  # where nothing else of the lane is timed

    def listen(self, handler: str, port: Subscription[Any]) -> None:
        """Give this handler the messages of this port."""
        self.listeners.append((handler, port))
        self.queues.append(port.waiting)

    def take(self, now_ns: int) -> Work | None:
        """The next call, or None where nothing is due."""
        for follower in self.followers:
            if follower.listen(now_ns):
                self.known_due_ns = 0
        due_ns, sole = self.known_due_ns, self._sole
        if sole is not None and due_ns == sole.due_ns <= now_ns and not any(self.queues):  # as `_take_due`, at once
            sole.take(now_ns)
            self.known_due_ns, self._owed = sole.due_ns, 0
            sole.has_run = self.has_ticked = True
            return Work(sole.timer.name, self.style, None)
        if due_ns is not None and now_ns >= due_ns:
            return self._take_due(now_ns) or self._take_message() or self._take_due(now_ns)
        return self._take_message() if any(self.queues) else None

    def _take_message(self) -> Work | None:
        """The next message that waits, or None; what was too old is gone then, and stands in the way of no tick."""
        listeners, queues = self.listeners, self.queues
        number = len(listeners)
        if number == 1:
            if not queues[0]:
                return None
            handler, port = listeners[0]
            stamped = port.pop()
            if self.has_ticked:
                self.note_message()
            return None if stamped is None else Work(handler, self.style, stamped)
        # A recorder asks dozens of empty ports at each message: no loop of our own over them.
        if not any(queues):
            return None
        if self.has_ticked:
            self.note_message()
        filled = list(compress(range(number), queues))
        for turn in filled if len(filled) < 2 else sorted(filled, key=self._steps_to):
            handler, port = listeners[turn]
            stamped = port.pop()
            if stamped is not None:
                self.turn = (turn + 1) % number
                return Work(handler, self.style, stamped)
        return None

    def _steps_to(self, turn: int) -> int:
        """How many ports have their turn before that one."""
        return (turn - self.turn) % len(self.listeners)

    def note_message(self) -> None:
        """Note that a message was handled: timers that yielded come closer to their turn."""
        if self._owed > 1:
            self._owed -= 1
            return
        self._owed, self.has_ticked = 0, False
        for state in self.timers:
            state.has_run = False

    def _take_due(self, now_ns: int) -> Work | None:
        """A tick or a deadline that is due. While there is another, `known_due_ns` stays in the past."""
        work = None
        timers = self.timers
        if len(timers) > 1:
            timers = sorted(timers, key=_due_of)  # the one that waits for longest: a late one holds up no other
        for state in timers:
            if state.has_run and now_ns >= state.due_ns and self.has_messages:
                self._owed = self._owed or sum(port.pending for _, port in self.listeners)
                continue
            if state.take(now_ns):
                state.has_run = self.has_ticked = True
                self._owed = 0
                work = Work(state.timer.name, self.style, None)
                break
        else:
            for deadline in self.deadlines:
                if deadline.take(now_ns):
                    work = Work(deadline.handler, self.style, None)
                    break
        self.known_due_ns = self._first_due_ns()
        return work

    def _first_due_ns(self) -> int | None:
        if len(self.timers) == 1 and not self.deadlines:
            return self.timers[0].due_ns
        dues_ns = [state.due_ns for state in self.timers] + [deadline.due_ns for deadline in self.deadlines]
        return min(dues_ns, default=None)

    def next_due_ns(self) -> int | None:
        """When the next tick or deadline is due; None without any."""
        due_ns = self.known_due_ns = self._first_due_ns()
        return due_ns

    def due_after_ns(self, now_ns: int) -> int | None:
        """As `next_due_ns`, computed from what is already known of later ticks."""
        due_ns = self.known_due_ns
        return due_ns if due_ns is None or due_ns > now_ns else self.next_due_ns()

    @property
    def handlers(self) -> list[str]:
        """The names of its handlers."""
        timed = [*(state.timer.name for state in self.timers), *(deadline.handler for deadline in self.deadlines)]
        return timed + [handler for handler, _ in self.listeners]

    @property
    def calls(self) -> int:
        """How many calls have begun so far (any thread)."""
        told = sum(port.delivered for _, port in self.listeners)
        missed = sum(deadline.port.deadlines_missed for deadline in self.deadlines)
        return told + missed + sum(state.stats.ticks for state in self.timers)

    def start(self, now_ns: int) -> None:
        """Set the phase of the timers and start the deadlines."""
        for state in self.timers:
            state.start(now_ns)
        for deadline in self.deadlines:
            deadline.start(now_ns)
        self.known_due_ns = 0
        self._sole = self.timers[0] if len(self.timers) == 1 and not self.deadlines else None

    @property
    def has_messages(self) -> bool:
        """Whether a message waits for a handler of this lane."""
        return any(self.queues)
