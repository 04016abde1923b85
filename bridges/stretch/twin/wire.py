"""How bytes travel on a Stretch's wires: framed calls to the boards on USB, packets on the Dynamixel buses.

Boards: consistent-overhead byte stuffing, a Modbus CRC, frames of at most 63 bytes; frame codes are those of
stretch_body 0.7.31, `transport.py`. Servos: protocol 2.0 of Robotis' e-manual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

FRAME_DATA = 58
PUSH_FIRST_MORE, PUSH_FIRST_ONLY, PUSH_MORE, PUSH_LAST, PUSH_ACK = 201, 202, 203, 204, 205
PULL_FIRST, PULL_MORE, PULL_ACK_MORE, PULL_ACK_LAST = 206, 207, 208, 209
OLD_NEW, OLD_NEW_ACK, OLD_SEND_MORE, OLD_MORE_ACK, OLD_SEND_LAST, OLD_LAST_ACK, OLD_GET = range(100, 107)
OLD_GET_MORE, OLD_GET_LAST = 107, 108
OLD_BLOCK = 32

PING, READ, WRITE, REBOOT, STATUS, SYNC_READ, SYNC_WRITE = 0x01, 0x02, 0x03, 0x08, 0x55, 0x82, 0x83
BROADCAST = 254


def _table(polynomial: int, *, is_reflected: bool) -> tuple[int, ...]:
    table = []
    for value in range(256):
        crc = value if is_reflected else value << 8
        for _ in range(8):
            if is_reflected:
                crc = (crc >> 1) ^ (polynomial if crc & 1 else 0)
            else:
                crc = ((crc << 1) ^ (polynomial if crc & 0x8000 else 0)) & 0xFFFF
        table.append(crc)
    return tuple(table)


_MODBUS = _table(0xA001, is_reflected=True)
_DYNAMIXEL = _table(0x8005, is_reflected=False)


def modbus(data: bytes) -> int:
    """The CRC of a board's frame."""
    crc = 0xFFFF
    for byte in data:
        crc = (crc >> 8) ^ _MODBUS[(crc ^ byte) & 0xFF]
    return crc


def framed(data: bytes) -> bytes:
    """A frame as it goes over USB: CRC behind it, no zero inside, a zero at its end."""
    crc = modbus(data)
    body = data + bytes((crc >> 8, crc & 0xFF))
    stuffed = b"".join(bytes((len(run) + 1,)) + run for run in body.split(b"\0"))
    return stuffed + b"\0"


def unframed(frame: bytes) -> bytes | None:
    """The data of a frame without its closing zero, or None where it is broken."""
    body, place = bytearray(), 0
    while place < len(frame):
        code = frame[place]
        if code == 0 or place + code > len(frame):
            return None
        body += frame[place + 1 : place + code]
        place += code
        if place < len(frame):
            body.append(0)
    data, crc = bytes(body[:-2]), bytes(body[-2:])
    return data if len(body) > 2 and modbus(data) == int.from_bytes(crc, "big") else None


class BoardWire:
    """The calls to one board: bytes in, bytes out. `call` answers a request with its reply, code first."""

    def __init__(self, call: Callable[[bytes], bytes]) -> None:
        self._call = call
        self._waiting = bytearray()
        self._request, self._reply = b"", b""

    def feed(self, data: bytes) -> bytes:
        """What the board sends back to what it was sent."""
        self._waiting += data
        out = b""
        while (end := self._waiting.find(0)) >= 0:
            frame = unframed(bytes(self._waiting[:end]))
            del self._waiting[: end + 1]
            if frame:
                answer = self._answer(frame[0], frame[1:])
                out += framed(answer) if answer else b""
        return out

    def _answer(self, code: int, data: bytes) -> bytes:
        if code in (PUSH_FIRST_MORE, PUSH_MORE, PUSH_FIRST_ONLY, PUSH_LAST):
            self._request = data if code in (PUSH_FIRST_MORE, PUSH_FIRST_ONLY) else self._request + data
            is_whole = code in (PUSH_FIRST_ONLY, PUSH_LAST)
            return bytes((PUSH_ACK,)) + (self._call(self._request) if is_whole else b"")
        if code in (PULL_FIRST, PULL_MORE):
            if code == PULL_FIRST:
                self._reply = self._call(data)
            part, self._reply = self._reply[:FRAME_DATA], self._reply[FRAME_DATA:]
            return bytes((PULL_ACK_MORE if self._reply else PULL_ACK_LAST,)) + part
        if code == OLD_NEW:
            self._request = b""
            return bytes((OLD_NEW_ACK,))
        if code in (OLD_SEND_MORE, OLD_SEND_LAST):
            self._request += data
            if code == OLD_SEND_LAST:
                self._reply = self._call(self._request)
            return bytes((OLD_LAST_ACK if code == OLD_SEND_LAST else OLD_MORE_ACK,))
        if code == OLD_GET:
            part, self._reply = self._reply[:OLD_BLOCK], self._reply[OLD_BLOCK:]
            return bytes((OLD_GET_MORE if self._reply else OLD_GET_LAST,)) + part
        return b""


def packet_crc(data: bytes) -> int:
    """The CRC of a servo's packet."""
    crc = 0
    for byte in data:
        crc = ((crc << 8) & 0xFFFF) ^ _DYNAMIXEL[((crc >> 8) ^ byte) & 0xFF]
    return crc


def status_packet(servo: int, error: int, parameters: bytes = b"") -> bytes:
    """What a servo answers."""
    inside = (bytes((STATUS, error)) + parameters).replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")
    packet = b"\xff\xff\xfd\0" + bytes((servo,)) + (len(inside) + 2).to_bytes(2, "little") + inside
    return packet + packet_crc(packet).to_bytes(2, "little")


class PacketReader:
    """Takes instruction packets out of a stream of bytes."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes, int]]:
        """Servo, instruction, parameters, and how many bytes the packet had on the wire."""
        self._waiting += data
        while (start := self._waiting.find(b"\xff\xff\xfd\0")) >= 0:
            del self._waiting[:start]
            if len(self._waiting) < 7:
                return
            size = 7 + int.from_bytes(self._waiting[5:7], "little")
            if len(self._waiting) < size:
                return
            packet = bytes(self._waiting[:size])
            del self._waiting[:size]
            if packet_crc(packet[:-2]) == int.from_bytes(packet[-2:], "little"):
                inside = packet[7:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
                yield packet[4], inside[0], inside[1:], size
