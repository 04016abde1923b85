"""One device of LeRobot's, held by LeRobot's own Python:   python -I device.py KIND TYPE '{"port": "/dev/ttyACM0"}'

KIND is robot, teleoperator (a leader), hand (a gamepad) or camera: it connects, never calibrates, and tells what it
measures until its standard input ends. With `facts` before KIND it tells what LeRobot knows and connects to nothing;
`known` alone tells the types.

Lines of JSON go both ways. In: {"goal": {key: value}, "until": ns}, until when it counts. Out: first {"hello": ...} or
{"problem": ...}; then {"at": {key: value}, "ns": ns} for a reading and {"alive": ns, "doing": words, "since": ns};
{"frame": [height, width, channels], "ns": ns} is followed by that many bytes. Stamps are of the monotonic clock.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import pkgutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PERIOD_S = 0.01
"""A device is asked again after this, and no sooner than it has answered."""
BEAT_S = 0.05
RETRY_S = 0.1
OLDEST_NS = 1_000_000_000
"""A camera's own stamp that is further back than this is none of our clock."""
FRAME_MS = 500
BASES = {
    "robot": ("lerobot.robots", "RobotConfig", "make_robot_from_config"),
    "teleoperator": ("lerobot.teleoperators", "TeleoperatorConfig", "make_teleoperator_from_config"),
    "camera": ("lerobot.cameras", "CameraConfig", "make_cameras_from_configs"),
}


class SideVoice:
    """What this process says. Where nobody takes it in, it is dropped: a device is never kept waiting for a reader."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)  # what plug-ins print goes to the log, at once: it may be the last that they say
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIOWrapper
        self._lock = threading.Lock()

    def drop_when_full(self) -> None:
        """From now on; a line that a pipe takes in as a whole is never cut."""
        os.set_blocking(self._out, False)

    def say(self, blob: bytes = b"", **words: object) -> None:
        """One line, and the bytes behind it."""
        data = json.dumps(words).encode() + b"\n" + blob
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except BlockingIOError:
                pass


class Orders:
    """The newest goal; its thread waits for the end of the input."""

    def __init__(self) -> None:
        self._newest: tuple[dict[str, float], int] | None = None
        self.until_ns = 0
        """Until when the one that was taken last counts."""
        self.ended = threading.Event()
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin.buffer:
            try:
                words = json.loads(line)
                self._newest = words["goal"], words["until"]
            except (ValueError, KeyError):
                continue  # the rest of a line that was cut
        self.ended.set()

    def take(self) -> dict[str, float] | None:
        """The newest goal that was not taken yet; none that is too old, as after this process was frozen."""
        newest, self._newest = self._newest, None
        if newest is None or time.monotonic_ns() > newest[1]:
            return None
        self.until_ns = newest[1]
        return newest[0]


class Doing:
    """What the device is asked now, and since when, for the beat."""

    def __init__(self) -> None:
        self.what, self.since_ns = "beginning", time.monotonic_ns()

    def __call__(self, what: str) -> None:
        self.what, self.since_ns = what, time.monotonic_ns()


def registered() -> dict[str, dict[str, Any]]:
    """Every type that LeRobot and its plug-ins know, by kind; what cannot be imported is left out, and told."""
    from lerobot.utils.import_utils import register_third_party_plugins

    register_third_party_plugins()
    found: dict[str, dict[str, Any]] = {}
    for kind, (package, base, _) in BASES.items():
        try:
            module = importlib.import_module(package)
        except ImportError as problem:
            print(f"{package}: {problem}", file=sys.stderr)
            continue
        for one in pkgutil.iter_modules(module.__path__, f"{package}."):
            if one.ispkg:
                for name in (one.name, f"{one.name}.{configuration_of(one.name)}"):
                    try:
                        importlib.import_module(name)
                    except Exception as problem:  # noqa: BLE001  # a device whose own library is not here
                        print(f"{name}: {type(problem).__name__}: {problem}", file=sys.stderr)
        found[kind] = dict(getattr(module, base).get_known_choices())
    return found


def configuration_of(package: str) -> str:
    """The module in which a device of LeRobot's has its settings, by LeRobot's custom."""
    return (
        f"config_{package.rpartition('.')[2]}"
        if ".robots." in package
        else "configuration_" + package.rpartition(".")[2]
    )


GIVES = {
    "teleoperator": "where each joint is to be; a leader does that, and a gamepad is for LeRobotHandTeleop",
    "hand": "where the hand goes (delta_x, delta_y, delta_z); a leader is for LeRobotTeleop",
}


class DeviceRefused(Exception):
    """What we do not take up, as a sentence."""


def made(kind: str, name: str, settings: dict[str, Any]) -> Any:
    """The device, not connected. Raises DeviceRefused for none of that kind, and where it gives something else."""
    import draccus

    types, wanted = registered(), kind
    kind = "teleoperator" if wanted == "hand" else kind
    known = types.get(kind, {})
    if name not in known:
        other = next((one for one, names in types.items() if name in names), "")
        is_other = f"; {name} is a {other}" if other else ""
        raise DeviceRefused(
            f"LeRobot knows no {kind} {name!r}; it knows {', '.join(sorted(known)) or 'none'}{is_other}"
        )
    package, base, make = BASES[kind]
    module = importlib.import_module(package)
    config = draccus.decode(getattr(module, base), {"type": name, **settings})
    device = getattr(module, make)({"one": config} if kind == "camera" else config)
    if kind == "teleoperator" and not joints_of(wanted, device):
        features = dict(device.action_features)
        raise DeviceRefused(
            f"it gives {', '.join(features.get('names') or features) or 'nothing'}, and not {GIVES[wanted]}. "
            "It was not connected"
        )
    return device["one"] if kind == "camera" else device


def joints_of(kind: str, device: Any) -> list[str]:
    """The keys that are numbers, in LeRobot's order. Gamepads tell of one array: the hand's ways, and no joints."""
    features = dict(device.observation_features if kind == "robot" else device.action_features)
    names = list(features["names"]) if {"dtype", "shape", "names"} <= features.keys() else []
    if kind == "hand" or names:
        return names if kind == "hand" and {"delta_x", "delta_y", "delta_z"} <= set(names) else []
    return [key for key, what in features.items() if what in (float, int, "float32", "float")]


def told_of(kind: str, device: Any) -> dict[str, Any]:
    """What LeRobot knows of it: keys, and where its motors are calibrated their range and how it is normalised."""
    motors = dict(getattr(getattr(device, "bus", None), "motors", None) or {})
    resolutions = dict(getattr(getattr(device, "bus", None), "model_resolution_table", None) or {})
    joints = {}
    for key in joints_of(kind, device):
        name = key.removesuffix(".pos")
        motor, one = motors.get(name), (getattr(device, "calibration", None) or {}).get(name)
        mode = getattr(getattr(motor, "norm_mode", None), "value", "")
        joints[key] = {
            "mode": str(mode),
            "turn": int(resolutions.get(getattr(motor, "model", ""), 0) or 0),
            "range": [int(one.range_min), int(one.range_max)] if one is not None else None,
        }
    actions = list(device.action_features) if kind == "robot" else []
    watched = bus_of(device) is not None
    return {"joints": joints, "actions": actions, "type": str(getattr(device, "name", "")), "watched": watched}


MOVED = 0.005
"""Of a turn of the encoder: what a reading may differ by while nothing moves is less."""


def bus_of(device: Any) -> Any:
    """The bus of its motors, whose encoders can be read before it is connected; None where it has none like that."""
    bus = getattr(device, "bus", None)
    return bus if all(hasattr(bus, name) for name in ("connect", "sync_read", "disconnect")) else None


def raw_places(device: Any, *, opens: bool) -> dict[str, int]:
    """Where its motors are by their encoders, nothing being moved; empty for a device without a bus as LeRobot's have.

    With `opens` the bus is opened for it and closed again, and torque stays as it was.
    """
    bus = bus_of(device)
    if bus is None:
        return {}
    try:
        if opens:
            bus.connect()
        try:
            return {str(name): int(value) for name, value in bus.sync_read("Present_Position", normalize=False).items()}
        finally:
            if opens:
                bus.disconnect(disable_torque=False)
    except Exception as problem:  # noqa: BLE001  # what it is, connecting will say
        print(f"before connecting: {type(problem).__name__}: {problem}", file=sys.stderr)
        return {}


def numbers_before(device: Any) -> dict[str, float]:
    """What a robot without such a bus measures before it is connected, where it does; few do."""
    if bus_of(device) is not None:
        return {}
    try:
        return numbers(device.get_observation(), joints_of("robot", device))[0]
    except Exception as problem:  # noqa: BLE001  # LeRobot's own say that they are not connected
        print(f"before connecting: {type(problem).__name__}: {problem}", file=sys.stderr)
        return {}


def moved_meanwhile(device: Any, before: dict[str, int]) -> list[str]:
    """The motors that are elsewhere than before."""
    if not before:
        return []
    now, told = raw_places(device, opens=False), told_of("robot", device)["joints"]
    turns = {name: told.get(f"{name}.pos", {}).get("turn") or 4096 for name in now}
    return [f"{name}.pos" for name, at in now.items() if abs(at - before.get(name, at)) > MOVED * turns[name]]


class LeaderMotors:
    """The motors of a leader: they hold a goal while it counts, and are limp before and after."""

    def __init__(self, device: Any, orders: Orders) -> None:
        self._device, self._orders = device, orders
        self._is_on = False

    @staticmethod
    def are_there(device: Any) -> bool:
        """Whether it takes goals, as LeRobot's own hand-over needs."""
        switches = all(hasattr(device, name) for name in ("enable_torque", "disable_torque", "send_feedback"))
        return switches and bool(device.feedback_features)

    def follow(self, goal: dict[str, float] | None) -> None:
        """Take up a goal; where there is none and the last one counts no longer, let go."""
        if goal is not None:
            if not self._is_on:
                self._device.enable_torque()
                self._is_on = True
            self._device.send_feedback(goal)
        elif self._is_on and time.monotonic_ns() > self._orders.until_ns:
            self.let_go()

    def let_go(self) -> None:
        """Limp, whatever counted."""
        if self._is_on:
            self._device.disable_torque()
            self._is_on = False


def numbers(words: Any, keys: list[str]) -> tuple[dict[str, float], list[str]]:
    """The numbers of these keys, and the keys that have none."""
    found = {}
    for key in keys:
        try:
            value = float(words[key])
        except (KeyError, TypeError, ValueError):
            continue
        if math.isfinite(value):
            found[key] = value
    return found, [key for key in keys if key not in found]


def hold_arm(ask: str, device: Any, keys: list[str], orders: Orders, voice: SideVoice, doing: Doing) -> None:
    """Tell where it is, and hand it goals where it takes any, until the driver is gone."""
    motors = LeaderMotors(device, orders) if ask == "get_action" and LeaderMotors.are_there(device) else None

    def follow() -> None:
        goal = orders.take()
        if motors is not None:
            doing("send_feedback")
            motors.follow(goal)
        elif goal is not None and ask != "get_action":
            doing("send_action")
            device.send_action(goal)

    while not orders.ended.is_set():
        began_ns = time.monotonic_ns()
        try:
            doing(ask)
            seen, lacking = numbers(getattr(device, ask)(), keys)
            voice.say(at=seen, ns=began_ns, lacking=lacking)  # no later than any of it was measured
            follow()
        except Exception as problem:  # noqa: BLE001  # a cable that came off; it is asked again
            voice.say(fault=f"{doing.what}: {type(problem).__name__}: {str(problem)[:300]}", ns=began_ns)
            orders.ended.wait(RETRY_S)
        doing("nothing")
        orders.ended.wait(max(0.0, PERIOD_S - (time.monotonic_ns() - began_ns) * 1e-9))
    if motors is not None:
        motors.let_go()
    else:
        follow()  # where it is to rest, said as the driver left


def hold_camera(device: Any, orders: Orders, voice: SideVoice, doing: Doing) -> None:
    """Hand on each new picture, as it comes."""
    import numpy as np

    while not orders.ended.is_set():
        try:
            doing("async_read")
            picture = np.ascontiguousarray(device.async_read(timeout_ms=FRAME_MS))
        except Exception as problem:  # noqa: BLE001
            voice.say(fault=f"{doing.what}: {type(problem).__name__}: {str(problem)[:300]}", ns=time.monotonic_ns())
            orders.ended.wait(RETRY_S)
            continue
        now_ns = time.monotonic_ns()
        stamp_ns = int((getattr(device, "latest_timestamp", None) or 0.0) * 1e9)  # of perf_counter: Linux's monotonic
        taken_ns = stamp_ns if 0 <= now_ns - stamp_ns < OLDEST_NS else now_ns
        voice.say(picture.tobytes(), frame=list(picture.shape), kind=picture.dtype.str, ns=taken_ns)


def beat(orders: Orders, voice: SideVoice, doing: Doing) -> None:
    """Say that this process lives, and what the device is asked: so that a bus that hangs is told from a dead one."""
    while not orders.ended.wait(BEAT_S):
        voice.say(alive=time.monotonic_ns(), doing=doing.what, since=doing.since_ns)


def main() -> int:
    """See above; 1 where the device cannot be had."""
    voice = SideVoice()
    words = sys.argv[1:]
    if words == ["known"]:
        voice.say(known={kind: sorted(types) for kind, types in registered().items()})
        return 0
    is_asked = words[0] == "facts"
    kind, name, settings = words[1:] if is_asked else words
    orders, doing = Orders(), Doing()
    if not is_asked:
        threading.Thread(target=beat, args=(orders, voice, doing), name="beat", daemon=True).start()
    try:
        doing("its settings")
        device = made(kind, name, json.loads(settings))
        if is_asked:
            voice.say(hello=told_of(kind, device))
            return 0
        before = raw_places(device, opens=True) if kind == "robot" else {}
        measured = numbers_before(device) if kind == "robot" else {}
        doing("connect")
        device.connect() if kind in ("camera", "hand") else device.connect(calibrate=False)
        doing("its description")
        hello = told_of(kind, device) | {"calibrated": bool(device.is_calibrated)} if kind != "camera" else {}
        if kind != "camera":
            hello["moved"] = moved_meanwhile(device, before)
            hello["before"] = measured
            hello["motors"] = kind == "teleoperator" and LeaderMotors.are_there(device)
    except BaseException as problem:  # noqa: BLE001  # whatever it is, it is told in a line
        kind_of = "" if isinstance(problem, DeviceRefused) else f"{type(problem).__name__}: "
        voice.say(problem=kind_of + str(problem).strip()[:500])
        return 1
    doing("nothing")
    voice.say(hello=hello)
    work: Callable[[], None]
    if kind == "camera":
        work = lambda: hold_camera(device, orders, voice, doing)  # noqa: E731
    elif not hello["calibrated"]:
        work = lambda: None  # noqa: E731  # the driver says so; of an arm without zeros nothing is read or asked
    else:
        voice.drop_when_full()
        ask = "get_observation" if kind == "robot" else "get_action"
        work = lambda: hold_arm(ask, device, list(hello["joints"]), orders, voice, doing)  # noqa: E731
    try:
        work()
    finally:
        device.disconnect()
    return 0


if __name__ == "__main__":
    sys.exit(main())
