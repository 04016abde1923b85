"""One launch file on two hosts, for tests: two supervisors on this machine, or each in a network of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import zmq

from tests.support.running import PATIENCE_S, eventually

ROOT = Path(__file__).resolve().parents[3]


class Hosts:
    """A folder with a launch file and the keys of both of its hosts, and the supervisors started from it."""

    def __init__(self, folder: Path, text: str, *, port: int, address: str = "127.0.0.1") -> None:
        """`text`: a launch file without `[hosts]`, whose nodes name `robot` or `desktop`."""
        self.folder = folder
        self.sockets = Path(tempfile.mkdtemp(prefix="pr-", dir="/tmp"))  # short: sockets have short paths
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "keys").mkdir(mode=0o700)
        tables = ""
        for name, place in (("robot", f'address = "{address}"\nport = {port}\n'), ("desktop", "")):
            public, secret = zmq.curve_keypair()
            key_file = folder / "keys" / f"{name}.secret"
            key_file.touch(mode=0o600)
            key_file.write_bytes(secret)
            tables += f'\n[hosts.{name}]\n{place}key = "{public.decode()}"\n'
        self.launch = folder / "split.toml"
        self.launch.write_text(text + tables)

    def start(self, host: str, *arguments: str, within: Sequence[str] = ()) -> None:
        """Start one host's part; what it prints goes to `<host>.log`."""
        sockets = self.sockets / host[0]
        sockets.mkdir(exist_ok=True, mode=0o700)
        environment = {
            **os.environ,
            "POLYRHYTHM_KEYS": str(self.folder / "keys"),
            "XDG_RUNTIME_DIR": str(sockets),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "runtime", "run", str(self.launch), "--host", host, *arguments]
        with (self.folder / f"{host}.log").open("ab") as log:
            self._running[host] = subprocess.Popen(
                [*within, *command], stdout=log, stderr=log, env=environment, cwd=self.folder
            )

    def said(self, host: str) -> str:
        """What that host has printed so far."""
        return (self.folder / f"{host}.log").read_text(errors="replace")

    def says(self, host: str, pattern: str, within_s: float = 60.0) -> None:
        """Wait until that host has printed something that matches."""
        eventually(
            lambda: re.search(pattern, self.said(host), re.DOTALL) is not None, f"{host} says {pattern!r}", within_s
        )

    def code(self, host: str, within_s: float = 120.0) -> int:
        """Wait for its end; its exit code."""
        return self._running[host].wait(within_s)

    def interrupt(self, host: str) -> None:
        """Ctrl-C."""
        self._running[host].send_signal(signal.SIGINT)

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *problem: object) -> None:
        for one in self._running.values():
            if one.poll() is None:
                one.send_signal(signal.SIGINT)
        for one in self._running.values():
            try:
                one.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        shutil.rmtree(self.sockets, ignore_errors=True)


def split_laptop(away: Sequence[str] = ("planner", "vlm", "policy")) -> str:
    """The laptop graph with these nodes on the desktop."""
    text = (ROOT / "launch" / "laptop.toml").read_text()
    for name in away:
        text = re.sub(rf"(\[nodes\.{name}\][^\n]*\n)", r'\1host = "desktop"\n', text)
    return text


def can_make_networks() -> bool:
    """Whether this user may make network namespaces."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return False
    name = f"pr{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], check=False)
    return made


class Networks:
    """Two network namespaces joined by a cable."""

    ROBOT, DESKTOP = "10.77.31.1", "10.77.31.2"

    def __init__(self) -> None:
        self._names = {host: f"pr{os.getpid()}{host[0]}" for host in ("robot", "desktop")}
        robot, desktop = self._names.values()
        for name in self._names.values():
            _ip("netns", "add", name)
        _ip("link", "add", "cable0", "netns", robot, "type", "veth", "peer", "name", "cable0", "netns", desktop)
        for name, address in ((robot, self.ROBOT), (desktop, self.DESKTOP)):
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable0")
            _ip("-n", name, "link", "set", "cable0", "up")

    def within(self, host: str) -> list[str]:
        """What runs a command in that host's network."""
        return ["ip", "netns", "exec", self._names[host]]

    def shape(self, mbit: float) -> None:
        """Make the cable that narrow, both ways."""
        for name in self._names.values():
            limit = ("tbf", "rate", f"{mbit}mbit", "burst", "32kbit", "latency", "100ms")
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "cable0", "root", *limit], check=True)

    def pull(self) -> None:
        """Pull the cable."""
        _ip("-n", self._names["desktop"], "link", "set", "cable0", "down")

    def plug(self) -> None:
        """Put it in again."""
        _ip("-n", self._names["desktop"], "link", "set", "cable0", "up")

    def close(self) -> None:
        """Remove both."""
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
