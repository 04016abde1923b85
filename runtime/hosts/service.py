"""A service for several robots: questions with a deadline over ZeroMQ, admitted by key, answered by worker threads.

A question has the frames number, microseconds until it is useless, and content. An answer has number, status and
content.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import zmq
from zmq.auth.thread import ThreadAuthenticator

from runtime.clock import LONGEST_NS, SystemClock, to_ns
from runtime.errors import CodecError, TransportError

MAX_FRAME_BYTES = 32 << 20
LONGEST_WAIT_S = 60.0
OK, LATE, REPLACED, FAILED = b"ok", b"late", b"replaced", b"failed"
_WORKER_WAIT_S = 0.1

WAY_SHARE = 8
"""Of its time an answer is left the eighth part for its way."""
REMEMBERED_NS = 1_000_000_000
"""How long after its last question of a kind the next one is still reckoned with."""


class Costs:
    """How long answers take, by kind and by how many are made at once; told before, then learned from each run."""

    def __init__(self, told_ns: Mapping[tuple[str, int], int] | None = None) -> None:
        self._ns = dict(told_ns or {})

    def took_ns(self, kind: str, count: int) -> int:
        """About how long so many answers take together; 0 where none of that kind was made yet."""
        known = [(size, ns) for (other, size), ns in self._ns.items() if other == kind]
        larger = min((one for one in known if one[0] >= count), default=None)
        if larger is not None:
            return larger[1]
        size, ns = max(known, default=(1, 0))
        return ns * count // size

    def learn(self, kind: str, count: int, ns: int) -> None:
        """So many took that long."""
        before = self._ns.get((kind, count))
        self._ns[kind, count] = ns if before is None else (7 * before + ns) // 8


class Answerer(Protocol):
    """Answers questions in one worker thread, several at once where it can."""

    most: int
    """Questions that it takes at once."""
    costs: Costs

    def kind_of(self, frames: Sequence[bytes]) -> str:
        """Which of its models is asked; only questions of one kind are answered together. Called by any thread."""
        ...

    def answer(self, kind: str, questions: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes] | Exception]:
        """An answer for each question, or what is wrong with it."""
        ...


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """The question of one client."""

    client: str
    number: int
    due_ns: int  # no answer after that is of use
    frames: tuple[bytes, ...]
    route: bytes = b""  # where the answer goes
    kind: str = ""
    within_ns: int = 0  # how long before it was due it was asked

    @property
    def wanted_ns(self) -> int:
        """When its answer should be made, so that it arrives in time."""
        return self.due_ns - self.within_ns // WAY_SHARE


class Questions:
    """The waiting questions. Pure: the caller passes the time."""

    def __init__(self) -> None:
        self._waiting: dict[str, ClientQuestion] = {}
        self._patience: dict[str, tuple[str, int, int]] = {}  # by client: the kind it asks, within what, until when
        self.counts: Counter[str] = Counter()
        """By what became of them: "replaced" by a newer one of the same client, "late" before their turn, "taken"."""

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, question: ClientQuestion) -> ClientQuestion | None:
        """Take in a question; returns the older one of the same client that it replaces."""
        replaced = self._waiting.pop(question.client, None)
        if replaced is not None:
            self.counts["replaced"] += 1
        self._waiting[question.client] = question
        until_ns = question.due_ns + REMEMBERED_NS
        self._patience[question.client] = (question.kind, question.within_ns, until_ns)
        return replaced

    def next(
        self, now_ns: int, costs: Costs | None = None, most: int = 1
    ) -> tuple[list[ClientQuestion], list[ClientQuestion]]:
        """The questions of one kind to answer together now, and those that are too late.

        The one that is due first goes first. As many go with it as leave every one of them in time, every one of
        another kind that waits, and whoever asks again while they are answered: a model with much to do at once holds
        up no control loop for longer than one answer of it takes.
        """
        took_ns = (costs or Costs()).took_ns
        late = [one for one in self._waiting.values() if one.due_ns < now_ns + took_ns(one.kind, 1)]
        for question in late:
            del self._waiting[question.client]
        self.counts["late"] += len(late)
        # Of those due at the same time, the one that has waited longest: nobody waits for two turns of another.
        waiting = sorted(self._waiting.values(), key=lambda question: question.due_ns)
        if not waiting:
            return [], late
        kind = waiting[0].kind
        chosen = [question for question in waiting if question.kind == kind][:most]
        one_ns = took_ns(kind, 1)
        others_ns = [one.wanted_ns - now_ns - took_ns(one.kind, 1) for one in waiting if one.kind != kind]
        left_ns = min(
            chosen[0].wanted_ns - now_ns,
            *(left for left in others_ns if left >= one_ns),  # who cannot wait for one answer is late whatever is done
            *self._left_ns(now_ns, took_ns, one_ns),
        )
        while len(chosen) > 1 and took_ns(kind, len(chosen)) > left_ns:
            chosen.pop()
        for question in chosen:
            del self._waiting[question.client]
        self.counts["taken"] += len(chosen)
        return chosen, late

    def _left_ns(self, now_ns: int, took_ns: Callable[[str, int], int], one_ns: int) -> list[int]:
        """How long answers may take for each client that is about to ask again, less its own answer.

        A third of its time is for what is under way when it asks, one for its own run, one for the way. Whoever has no
        time for one other answer, of `one_ns`, does not count.
        """
        self._patience = {client: one for client, one in self._patience.items() if one[2] > now_ns}
        return [LONGEST_NS] + [
            within_ns // 3 - took_ns(kind, 1)
            for kind, within_ns, _ in self._patience.values()
            if within_ns - took_ns(kind, 1) >= one_ns
        ]


class QuestionServer:
    """Answers questions until it is closed; `clients` maps public keys to names, none admits anyone on this machine."""

    def __init__(
        self,
        address: str,
        answerers: Sequence[Answerer],
        *,
        secret: str = "",
        public: str = "",
        clients: Mapping[str, str] | None = None,
    ) -> None:
        """Start one worker thread for each answerer. Raises TransportError where the address cannot be bound."""
        self.questions = Questions()
        self._kind_of = answerers[0].kind_of
        self._clients = dict(clients or {})
        self._clock = SystemClock()
        self._log = logging.getLogger("service")
        self._condition = threading.Condition()
        self._is_closed = False
        self._context: zmq.Context[Any] = zmq.Context()
        self._doorman: ThreadAuthenticator | None = None
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IPV6, "[" in address)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        self._socket.setsockopt(zmq.RCVHWM, 64)
        self._socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
        self._socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3000)
        if secret:
            log = logging.getLogger("zmq.auth")
            log.setLevel(logging.ERROR)
            self._doorman = ThreadAuthenticator(self._context, log=log)
            self._doorman.start()
            self._doorman.configure_curve_callback("service", self)
            self._socket.curve_secretkey = secret.encode()
            self._socket.curve_publickey = public.encode()
            self._socket.curve_server = True
            self._socket.zap_domain = b"service"
        self._answers = self._context.socket(zmq.PULL)
        self._answers.bind("inproc://answers")
        try:
            self._socket.bind(address)
        except zmq.ZMQError as problem:
            self._end()
            raise TransportError(f"{address} cannot be had: {problem}") from problem
        self.address = str(self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
        self._threads = [threading.Thread(target=self._serve, name="service")]
        self._threads += [threading.Thread(target=self._work, args=(one,), name="service-worker") for one in answerers]
        for thread in self._threads:
            thread.start()

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether this key, as Z85, is admitted; called by ZeroMQ."""
        is_known = key.decode() in self._clients
        if not is_known:
            self._log.warning("a client with the key %s was refused", key.decode())
        return is_known

    def close(self) -> None:
        """Stop answering."""
        self._is_closed = True
        with self._condition:
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()
        self._end()

    def _end(self) -> None:
        self._answers.close()
        self._socket.close()
        if self._doorman is not None:
            self._doorman.stop()
        self._context.term()

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._answers, zmq.POLLIN)
        while not self._is_closed:
            for ready, _ in poller.poll(50):
                if ready is self._answers:
                    self._send(self._answers.recv_multipart())
                else:
                    self._take(self._socket.recv_multipart(copy=False))

    def _send(self, frames: Sequence[bytes]) -> None:
        try:
            self._socket.send_multipart(list(frames), zmq.NOBLOCK)
        except zmq.ZMQError:
            pass  # it does not take its answers: they are of no use later

    def _take(self, frames: list[Any]) -> None:
        route = frames[0].bytes
        try:
            key = str(frames[-1].get("User-Id")) if self._clients else ""
        except zmq.ZMQError:
            key = ""
        client = self._clients.get(key, route.hex())
        try:
            if len(frames) < 4:
                raise CodecError(f"{len(frames)} frames")
            number, wait_us = read_number(frames[1].bytes), read_number(frames[2].bytes)
        except CodecError as problem:
            self._log.warning("%s asked something that is no question: %s", client, problem)
            return
        within_ns = min(wait_us * 1000, to_ns(LONGEST_WAIT_S))
        content = tuple(frame.bytes for frame in frames[3:])
        question = ClientQuestion(
            client, number, self._clock.now_ns() + within_ns, content, route, self._kind_of(content), within_ns
        )
        with self._condition:
            replaced = self.questions.ask(question)
            self._condition.notify()
        if replaced is not None:
            self._send([replaced.route, number_frame(replaced.number), REPLACED])

    def _work(self, answerer: Answerer) -> None:
        answers = self._context.socket(zmq.PUSH)
        answers.setsockopt(zmq.LINGER, 0)
        answers.connect("inproc://answers")
        while not self._is_closed:
            with self._condition:
                chosen, late = self.questions.next(self._clock.now_ns(), answerer.costs, answerer.most)
                if not chosen and not late:
                    self._condition.wait(_WORKER_WAIT_S)
            for one in late:
                answers.send_multipart([one.route, number_frame(one.number), LATE])
            if not chosen:
                continue
            costs, kind, started_ns = answerer.costs, chosen[0].kind, self._clock.now_ns()
            found: Sequence[Sequence[bytes] | Exception]
            try:
                found = answerer.answer(kind, [one.frames for one in chosen])
            except Exception as problem:  # noqa: BLE001  # whatever a model raises, the next question is answered
                found = [problem] * len(chosen)
            costs.learn(kind, len(chosen), self._clock.now_ns() - started_ns)
            for one, answer in zip(chosen, found, strict=True):
                content = [FAILED, str(answer)[:500].encode()] if isinstance(answer, Exception) else [OK, *answer]
                answers.send_multipart([one.route, number_frame(one.number), *content])
        answers.close()


class Client:
    """Asks one server, one question at a time; for one thread."""

    def __init__(self, address: str, *, server_key: str = "", secret: str = "", public: str = "") -> None:
        self.address = address
        self._context: zmq.Context[Any] = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.IPV6, "[" in address)
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        self.socket.setsockopt(zmq.IMMEDIATE, 1)
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, 500)
        self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 1500)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self.socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        if server_key:
            self.socket.curve_serverkey = server_key.encode()
            self.socket.curve_secretkey = secret.encode()
            self.socket.curve_publickey = public.encode()
        self.socket.connect(address)
        self._number = 0

    def is_connected(self, within_s: float) -> bool:
        """Wait until the server is reached, for so long at most."""
        return bool(self.socket.poll(round(within_s * 1e3), zmq.POLLOUT))

    def ask(self, content: Sequence[Any], within_s: float) -> list[bytes]:
        """The content of the answer. Raises TransportError where none comes in time."""
        self._number += 1
        clock = SystemClock()
        end_ns = clock.now_ns() + to_ns(within_s)
        try:
            self.socket.send_multipart(
                [number_frame(self._number), number_frame(round(within_s * 1e6)), *content], zmq.NOBLOCK
            )
        except zmq.ZMQError as problem:
            raise TransportError(f"{self.address} is not connected") from problem
        while (left_ms := (end_ns - clock.now_ns()) / 1e6) > 0:
            if not self.socket.poll(max(1, round(left_ms))):
                break
            frames = self.socket.recv_multipart()
            if len(frames) < 2 or read_number(frames[0]) != self._number:
                continue  # the answer to an earlier question, which nobody waits for
            if frames[1] == OK:
                return frames[2:]
            why = frames[2].decode(errors="replace") if len(frames) > 2 else frames[1].decode(errors="replace")
            raise TransportError(f"{self.address}: {why}")
        raise TransportError(f"{self.address}: no answer within {within_s * 1e3:.0f} ms")

    def close(self) -> None:
        """Disconnect."""
        self.socket.close()
        self._context.term()


def number_frame(number: int) -> bytes:
    """A number as a frame."""
    return number.to_bytes(8, "big")


def read_number(frame: Any) -> int:
    """The number of a frame. Raises CodecError."""
    if len(frame) != 8:
        raise CodecError("no number of an image")
    return int.from_bytes(frame, "big")
