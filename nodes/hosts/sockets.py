"""The two sockets between a pair of hosts, over TCP and, with keys, encrypted by CURVE and admitted by key."""

from __future__ import annotations

import contextlib
import errno
import logging
import secrets
import threading
from collections.abc import Sequence
from typing import Any, Literal

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import parse_monitor_message

from nodes.hosts import wire
from runtime.clock import SystemClock, to_ns
from runtime.errors import TransportError
from runtime.hosts.hosts_table import HostPair
from runtime.operating_system.wake_pipe import WakePipe
from runtime.serialization.codec import Frame

MAX_FRAME_BYTES = 8 << 20
SMALL_QUEUE, BULK_QUEUE = 1024, 4
_HEARTBEAT_MS, _HEARTBEAT_TIMEOUT_MS = 200, 1000
_CONNECT_MS, _AGAIN_MS, _AGAIN_MOST_MS = 500, 50, 200
"""A connection attempt into a broken cable is given up and repeated: the kernel itself would wait for seconds."""
WAYS = 3
"""How many connections each socket has.

A retransmission takes a round trip and a half, longer behind images. With two connections, a loss on each within that
time left a robot without a command; with three, three losses must coincide.
"""
_SPARE = b"+"
"""What each further connection of a calling host adds to its name."""
_SAY_AGAIN_NS = to_ns(5.0)

_EVENTS = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
)


class Peer:
    """Which connection a listening host speaks to: the first that came, for as long as it stands.

    A calling host gives itself a new name at each start, so that two gateways with one key are told apart.
    """

    def __init__(self, host: str) -> None:
        self._prefix = f"{host}-".encode()
        self.ident = b""

    def is_named(self, ident: bytes) -> bool:
        """Whether this name belongs to the expected host."""
        return ident.startswith(self._prefix)


class HostSocket:
    """One socket of a pair; all but `wake` belongs to one thread.

    It has `WAYS` connections, because TCP holds back all that follows a lost packet, for as long as a robot waits for a
    command. What is sent by `all_ways` goes over each, and arrives with the fastest.
    """

    def __init__(
        self,
        context: zmq.Context[Any],
        meeting: HostPair,
        own: str,
        place: int,
        secret: str,
        queue: int,
        *,
        peer: Peer,
        ident: bytes,
    ) -> None:
        """`place` is 0 for small messages, where peers are admitted, and 1 for images. `ident` names a calling host.
        Raises TransportError where the port cannot be bound.
        """
        self.is_server = meeting.server.name == own
        where = meeting.place(place)
        if not meeting.is_encrypted and not where.is_loopback:  # asked again: a name may lead elsewhere by now
            raise TransportError(f"{where.endpoint} of host {meeting.server.name} would be open to anyone")
        if not self.is_server and where.is_any:
            raise TransportError(
                f"{where.endpoint} of host {meeting.server.name} stands for any address, and cannot be called; "
                f"on this host say --set hosts.{meeting.server.name}.address=ADDRESS"
            )
        self.address = where.endpoint
        self.refusals: list[str] = []
        """Sentences about peers that were not let in, or that did not let us in; the owner empties it."""
        self._other = meeting.other(own).name
        self._peer = peer
        self._lets_in = place == 0
        self._said_ns: dict[str, int] = {}
        self._clock = SystemClock()
        self._woken = WakePipe()
        self._is_ipv6, self._queue = where.is_ipv6, queue
        self._lock_of = (meeting, own, secret)
        socket = self._socket = self._opened(context)
        spares = 0 if self.is_server else WAYS - 1
        self._sockets = [socket, *(self._opened(context) for _ in range(spares))]
        self._monitor = socket.get_monitor_socket(_EVENTS)
        try:
            if self.is_server:
                socket.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a peer that connects again takes its place at once
                socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
                socket.bind(self.address)
            else:
                for way, one in enumerate(self._sockets):
                    one.setsockopt(zmq.ROUTING_ID, ident + way * _SPARE)
                    one.setsockopt(zmq.CONNECT_TIMEOUT, _CONNECT_MS)
                    one.setsockopt(zmq.RECONNECT_IVL, _AGAIN_MS)
                    one.setsockopt(zmq.RECONNECT_IVL_MAX, _AGAIN_MOST_MS)
                    one.connect(self.address)
        except zmq.ZMQError as problem:
            self.close()
            hint = "; is that an address of this machine?" if problem.errno == errno.EADDRNOTAVAIL else ""
            raise TransportError(
                f"{self.address} of host {meeting.server.name} cannot be had: {problem.strerror}{hint}"
            ) from problem
        self._poller = zmq.Poller()
        for polled in (*self._sockets, self._monitor, self._woken.fd):
            self._poller.register(polled, zmq.POLLIN)

    def _opened(self, context: zmq.Context[Any]) -> zmq.Socket[bytes]:
        meeting, own, secret = self._lock_of
        socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER if self.is_server else zmq.DEALER)
        socket.setsockopt(zmq.IPV6, self._is_ipv6)
        socket.setsockopt(zmq.LINGER, 300)
        socket.setsockopt(zmq.SNDHWM, self._queue)
        socket.setsockopt(zmq.RCVHWM, SMALL_QUEUE)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_TIMEOUT_MS)
        socket.setsockopt(zmq.HANDSHAKE_IVL, 5000)
        socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is kept for a peer that is not there
        if meeting.is_encrypted:
            self._encrypt(socket, meeting, own, secret)
        return socket

    def _encrypt(self, socket: zmq.Socket[bytes], meeting: HostPair, own: str, secret: str) -> None:
        socket.curve_secretkey = secret.encode()
        if self.is_server:
            socket.curve_publickey = meeting.server.key.encode()
            socket.curve_server = True
            socket.zap_domain = b"gateway"
        else:
            socket.curve_publickey = meeting.client.key.encode()
            socket.curve_serverkey = meeting.server.key.encode()

    def send_by(self, way: int, frames: Sequence[Frame]) -> bool:
        """Send by connection 0 to `WAYS` - 1 without waiting; False where it is gone or its queue is full."""
        return not (self.is_server and not self._peer.ident) and self._put(frames, way) == "sent"

    def send(self, frames: Sequence[Frame], *, all_ways: bool = False) -> bool:
        """Send without waiting, by the first connection that takes it; False where none does."""
        if self.is_server and not self._peer.ident:
            return False
        done: list[Literal["sent", "full", "gone"]] = []
        for way in range(WAYS):
            done.append(self._put(frames, way))
            if done[-1] == "sent" and not all_ways:
                return True
        if self._lets_in and set(done) == {"gone"}:
            self._peer.ident = b""  # all of its connections are: the next one may come
        return "sent" in done

    def _put(self, frames: Sequence[Frame], way: int) -> Literal["sent", "full", "gone"]:
        socket = self._socket if self.is_server else self._sockets[way]
        head = [self._peer.ident + way * _SPARE] if self.is_server else []
        try:
            socket.send_multipart([*head, *frames], zmq.NOBLOCK)
        except zmq.ZMQError as problem:
            return "gone" if problem.errno == zmq.EHOSTUNREACH else "full"
        return "sent"

    def receive(self) -> list[bytes] | None:
        """The next frames; None where none came."""
        for socket in self._sockets:
            while True:
                try:
                    frames: list[bytes] = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                if not self.is_server:
                    return frames
                if self._admits(frames[0].rstrip(_SPARE)):
                    return frames[1:]
        return None

    def _admits(self, ident: bytes) -> bool:
        """Whether to listen to this connection."""
        if not self._peer.is_named(ident):
            self._say(f"a peer that calls itself {ident[:32]!r} was refused; expected {self._other!r}")
            return False
        if self._lets_in and not self._peer.ident:
            self._peer.ident = ident
        if ident == self._peer.ident:
            return True
        if self._lets_in:
            self._say(
                f"a second gateway with the key of {self._other} was refused while the first one is connected; "
                f"end one of them, or give each host a key of its own"
            )
            with contextlib.suppress(zmq.ZMQError):  # it is gone already
                self._socket.send_multipart([ident, *wire.word(wire.Busy())], zmq.NOBLOCK)
        return False

    def wait(self, timeout_s: float) -> None:
        """Return when something has come, when `wake` was called, or at the timeout."""
        for ready, _ in self._poller.poll(max(1, round(timeout_s * 1000))):
            if ready == self._woken.fd:
                self._woken.clear()
            elif ready is self._monitor:
                self._hear_monitor()

    def wake(self) -> None:
        """End the wait (any thread)."""
        self._woken.wake()

    def close(self) -> None:
        """Send what is queued, for a moment, and close."""
        self._socket.disable_monitor()
        self._monitor.close()
        for socket in self._sockets:
            socket.close()
        self._woken.close()

    def _hear_monitor(self) -> None:
        try:
            event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))["event"]
        except zmq.Again:
            return
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._said_ns.clear()
        elif self.is_server:
            self._say(f"a peer at {self.address} was refused: it has not the key of {self._other}")
        else:
            self._say(
                f"{self._other} at {self.address} refused this host, if the link did not break: is each key right?"
            )

    def _say(self, sentence: str) -> None:
        """Once in a while: peers try again many times a second."""
        now_ns = self._clock.now_ns()
        if now_ns - self._said_ns.get(sentence, -_SAY_AGAIN_NS) >= _SAY_AGAIN_NS:
            self._said_ns[sentence] = now_ns
            self.refusals.append(sentence)


class Doors:
    """Both sockets of a pair, and the admission of one key."""

    def __init__(self, meeting: HostPair, own: str, secret: str) -> None:
        """Raises TransportError where a port cannot be bound."""
        self._context: zmq.Context[Any] = zmq.Context()
        self._doorman: ThreadAuthenticator | None = None
        if meeting.is_encrypted and meeting.server.name == own:
            log = logging.getLogger("zmq.auth")
            log.setLevel(logging.ERROR)  # our own sentence says who was refused
            self._doorman = ThreadAuthenticator(self._context, log=log)
            self._doorman.start()
            self._doorman.configure_curve_callback("gateway", _OneKey(meeting.client.key))
        try:
            self._peer = Peer(meeting.other(own).name)
            ident = f"{own}-{secrets.token_hex(8)}".encode()
            self.small = HostSocket(self._context, meeting, own, 0, secret, SMALL_QUEUE, peer=self._peer, ident=ident)
            try:
                self.bulk = HostSocket(self._context, meeting, own, 1, secret, BULK_QUEUE, peer=self._peer, ident=ident)
            except TransportError:
                self.small.close()
                raise
        except TransportError:
            self._leave()
            raise

    def forget_peer(self) -> None:
        """The peer has left: accept whoever comes next (the thread of the small socket)."""
        self._peer.ident = b""

    def close(self) -> None:
        """Close both; no thread may use them any more."""
        self.small.close()
        self.bulk.close()
        self._leave()

    def _leave(self) -> None:
        if self._doorman is not None:
            self._doorman.stop()
        closing = threading.Thread(target=self._context.term, name="gateway-close", daemon=True)
        closing.start()  # waits for what is queued, which a dead link never takes
        closing.join(1.0)


class _OneKey:
    """What the doorman asks."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether this is the peer's key, as Z85."""
        return key == self._key
