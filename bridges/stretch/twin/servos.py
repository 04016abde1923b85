"""The Dynamixel servos of wrist and head: their control tables, what they do with them, and their bus.

Addresses and units: Robotis' e-manual for XL430-W250 and XM430-W350, as stretch_body's `dynamixel_XL430.py` uses them.
"""

from __future__ import annotations

from bridges.stretch.twin.motion import Motor
from bridges.stretch.twin.wire import BROADCAST, PING, READ, REBOOT, SYNC_READ, WRITE, PacketReader, status_packet

TORQUE, ERROR, WATCHDOG, GOAL_PWM, GOAL_SPEED, PROFILE_A, PROFILE_V, GOAL = 64, 70, 98, 100, 104, 108, 112, 116
MODE, OFFSET, CALIBRATED = 11, 20, 661
MOVING, MOVING_STATUS, LOAD, SPEED, POSITION, VOLTAGE, TEMPERATURE = 122, 123, 126, 128, 132, 144, 146
VELOCITY_MODE, PWM_MODE = 1, 16
TICKS_PER_SPEED = 0.229 * 4096 / 60
TICKS_PER_ACCELERATION = 214.577 * 4096 / 3600
FASTEST = 4000.0
BITS_PER_BYTE = 10


class ServoTwin:
    """One servo. Its motor counts in ticks."""

    def __init__(self, number: int, motor: Motor, model: int = 1060, touching: float | None = None) -> None:
        self.number, self.motor, self.model, self._touching = number, motor, model, touching
        self._table = bytearray(1024)
        self._table[MODE] = 3
        self._table[CALIBRATED] = 1
        self.temperature_c = 32
        self.error = 0
        self.between: float | None = None
        """Where the fingers meet a thing, for a gripper."""
        self._silent_s = 0.0
        self.is_barking = False
        motor.has_torque = False

    def unhome(self) -> None:
        """What a power cycle leaves of it."""
        self._table[CALIBRATED] = 0

    def heard(self) -> None:
        """A packet went over the bus."""
        self._silent_s = 0.0

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the control table as they are now."""
        self._refresh()
        return bytes(self._table[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        """What a write does; the servo ignores goals without torque, or after its watchdog."""
        if address == GOAL and (not self.motor.has_torque or self.is_barking):
            return
        self._table[address : address + len(data)] = data
        motor = self.motor
        if address == TORQUE:
            motor.has_torque = bool(data[0]) and not self.error
            motor.stand()
            motor.speed = 0.0
        elif address == WATCHDOG:
            self.is_barking = False
        elif address == OFFSET:
            motor.offset = float(self._number(OFFSET, 4))
        elif address in (GOAL, PROFILE_V, PROFILE_A) and (address == GOAL or motor.goal is not None):
            motor.velocity = None
            motor.goal = (float(self._number(GOAL, 4)), self._fastest(), self._hardest())
        elif address == GOAL_PWM and self._table[MODE] == PWM_MODE and motor.has_torque:
            motor.goal, motor.velocity = None, (self._number(GOAL_PWM, 2) * 2.0, 20_000.0)
        elif address == GOAL_SPEED and self._table[MODE] == VELOCITY_MODE and motor.has_torque:
            motor.goal = None
            motor.velocity = (self._number(GOAL_SPEED, 4) * TICKS_PER_SPEED, self._hardest())

    def heat(self, celsius: int) -> None:
        """Make it that hot; at 72 it takes its torque off, and says why."""
        self.temperature_c = celsius
        if celsius >= 72:
            self.error |= 4
            self.motor.has_torque = False
            self.motor.stand()

    def step(self, seconds: float) -> None:
        """Let time pass."""
        self._silent_s += seconds
        watchdog = self._table[WATCHDOG]
        if 0 < watchdog < 128 and self._silent_s > watchdog * 0.02:
            self.is_barking = True
            self.motor.stand()
        self.motor.step(seconds)
        if self._touching is not None and self.motor.has_torque:
            pressed_from = max(self._touching, self.between if self.between is not None else self._touching)
            depth = (pressed_from - self.motor.position) / self._touching
            if depth > 0:  # the fingers bend: the motor goes on, and feels it
                self.motor.effort_percent = -min(60.0, 60.0 * depth)

    def _refresh(self) -> None:
        motor = self.motor
        self._put(ERROR, 1, self.error)
        self._put(MOVING, 1, int(abs(motor.speed) > 1))
        self._put(MOVING_STATUS, 1, 2 if motor.goal is not None and abs(motor.goal[0] - motor.position) > 8 else 0)
        self._put(LOAD, 2, round(motor.effort_percent * 10.24))
        self._put(SPEED, 4, round(motor.speed / TICKS_PER_SPEED))
        self._put(POSITION, 4, round(motor.position))
        self._put(VOLTAGE, 2, 124)
        self._put(TEMPERATURE, 1, self.temperature_c)
        if self.is_barking:
            self._table[WATCHDOG] = 255

    def _fastest(self) -> float:
        profile = self._number(PROFILE_V, 4)
        return profile * TICKS_PER_SPEED if profile else FASTEST

    def _hardest(self) -> float:
        profile = self._number(PROFILE_A, 4)
        return profile * TICKS_PER_ACCELERATION if profile else 1e5

    def _number(self, address: int, size: int) -> int:
        return int.from_bytes(self._table[address : address + size], "little", signed=True)

    def _put(self, address: int, size: int, value: int) -> None:
        self._table[address : address + size] = value.to_bytes(size, "little", signed=value < 0)


class ServoBus:
    """The servos of one chain. Every byte takes its time at `baud`, the answer's included."""

    def __init__(self, servos: list[ServoTwin], baud: int = 115_200) -> None:
        self.servos = {servo.number: servo for servo in servos}
        self._reader = PacketReader()
        self._byte_s = BITS_PER_BYTE / baud
        self.is_unplugged = False
        self.busy_s = 0.0
        """Time the wire was in use."""

    def feed(self, data: bytes) -> tuple[bytes, float]:
        """The answer, and after how many seconds its last byte is there."""
        out, waited_s = b"", 0.0
        for number, instruction, parameters, size in self._reader.feed(data):
            answer = b"" if self.is_unplugged else self._answer(number, instruction, parameters)
            waited_s += (size + len(answer)) * self._byte_s
            out += answer
        self.busy_s += waited_s
        return out, waited_s

    def _answer(self, number: int, instruction: int, parameters: bytes) -> bytes:
        for servo in self.servos.values():
            servo.heard()
        if instruction == SYNC_READ:
            address, size = int.from_bytes(parameters[:2], "little"), int.from_bytes(parameters[2:4], "little")
            found = [self.servos[asked] for asked in parameters[4:] if asked in self.servos]
            return b"".join(status_packet(servo.number, _alert(servo), servo.read(address, size)) for servo in found)
        servos = list(self.servos.values()) if number == BROADCAST else [self.servos[number]] * (number in self.servos)
        return b"".join(_one(servo, instruction, parameters) for servo in servos)


def _one(servo: ServoTwin, instruction: int, parameters: bytes) -> bytes:
    if instruction == PING:
        return status_packet(servo.number, _alert(servo), servo.model.to_bytes(2, "little") + b"\x2d")
    if instruction == READ:
        address, size = int.from_bytes(parameters[:2], "little"), int.from_bytes(parameters[2:4], "little")
        return status_packet(servo.number, _alert(servo), servo.read(address, size))
    if instruction == WRITE:
        servo.write(int.from_bytes(parameters[:2], "little"), parameters[2:])
    if instruction == REBOOT:
        servo.error = 0
    return status_packet(servo.number, _alert(servo))


def _alert(servo: ServoTwin) -> int:
    return 0x80 if servo.error else 0
