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
from typing import Any

import zmq
from zmq.auth.thread import ThreadAuthenticator

from runtime.clock import SystemClock, to_ns
from runtime.errors import CodecError, TransportError
from runtime.hosts.wire import number_frame, read_number

MAX_FRAME_BYTES = 32 << 20
LONGEST_WAIT_S = 60.0
OK, LATE, REPLACED, FAILED = b"ok", b"late", b"replaced", b"failed"
_WORKER_WAIT_S = 0.1

Handler = Callable[[Sequence[bytes]], Sequence[bytes]]
"""Turns the content of a question into that of its answer; an exception goes back as a sentence."""


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """The question of one client."""

    client: str
    number: int
    due_ns: int  # no answer after that is of use
    frames: tuple[bytes, ...]
    route: bytes = b""  # where the answer goes


class Questions:
    """The waiting questions. Pure: the caller passes the time."""

    def __init__(self) -> None:
        self._waiting: dict[str, ClientQuestion] = {}
        self.counts: Counter[str] = Counter()
        """By what became of them: "replaced" by a newer one of the same client, "late" before their turn, "taken"."""

    def ask(self, question: ClientQuestion) -> ClientQuestion | None:
        """Take in a question; returns the older one of the same client that it replaces."""
        replaced = self._waiting.pop(question.client, None)
        if replaced is not None:
            self.counts["replaced"] += 1
        self._waiting[question.client] = question
        return replaced

    def next(self, now_ns: int, took_ns: int = 0) -> tuple[ClientQuestion | None, list[ClientQuestion]]:
        """The question to answer now, and those that are too late; an answer takes about `took_ns`."""
        late = [question for question in self._waiting.values() if question.due_ns < now_ns + took_ns]
        for question in late:
            del self._waiting[question.client]
        self.counts["late"] += len(late)
        if not self._waiting:
            return None, late
        # Of those due at the same time, the one that has waited longest: nobody waits for two turns of another.
        chosen = min(self._waiting.values(), key=lambda question: question.due_ns)
        del self._waiting[chosen.client]
        self.counts["taken"] += 1
        return chosen, late


class QuestionServer:
    """Answers questions until it is closed; `clients` maps public keys to names, and none admits anyone on this
    machine.
    """

    def __init__(
        self,
        address: str,
        handlers: Sequence[Handler],
        *,
        secret: str = "",
        public: str = "",
        clients: Mapping[str, str] | None = None,
    ) -> None:
        """Start one worker thread for each handler. Raises TransportError where the address cannot be bound."""
        self.questions = Questions()
        self._handlers = handlers
        self._clients = dict(clients or {})
        self._clock = SystemClock()
        self._log = logging.getLogger("service")
        self._condition = threading.Condition()
        self._took_ns = 0
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
        self._threads += [threading.Thread(target=self._work, args=(one,), name="service-worker") for one in handlers]
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
        due_ns = self._clock.now_ns() + min(wait_us * 1000, to_ns(LONGEST_WAIT_S))
        question = ClientQuestion(client, number, due_ns, tuple(frame.bytes for frame in frames[3:]), route)
        with self._condition:
            replaced = self.questions.ask(question)
            self._condition.notify()
        if replaced is not None:
            self._send([replaced.route, number_frame(replaced.number), REPLACED])

    def _work(self, handler: Handler) -> None:
        answers = self._context.socket(zmq.PUSH)
        answers.setsockopt(zmq.LINGER, 0)
        answers.connect("inproc://answers")
        while not self._is_closed:
            with self._condition:
                question, late = self.questions.next(self._clock.now_ns(), self._took_ns)
                if question is None and not late:
                    self._condition.wait(_WORKER_WAIT_S)
            for one in late:
                answers.send_multipart([one.route, number_frame(one.number), LATE])
            if question is None:
                continue
            started_ns = self._clock.now_ns()
            try:
                status, content = OK, list(handler(question.frames))
            except Exception as problem:  # noqa: BLE001  # whatever a model raises, the next question is answered
                status, content = FAILED, [str(problem)[:500].encode()]
            took_ns = self._clock.now_ns() - started_ns
            self._took_ns = took_ns if not self._took_ns else (7 * self._took_ns + took_ns) // 8
            answers.send_multipart([question.route, number_frame(question.number), status, *content])
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
