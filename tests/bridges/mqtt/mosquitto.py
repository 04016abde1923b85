"""A real broker for tests, and Eclipse's own command-line clients as foreigners."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.running import eventually

BROKER = shutil.which("mosquitto") or ("/usr/sbin/mosquitto" if Path("/usr/sbin/mosquitto").exists() else None)
needs_clients = pytest.mark.skipif(
    shutil.which("mosquitto_sub") is None, reason="mosquitto_sub is not installed (apt install mosquitto-clients)"
)
needs_mosquitto = pytest.mark.skipif(
    BROKER is None or shutil.which("mosquitto_sub") is None,
    reason="mosquitto is not installed (apt install mosquitto mosquitto-clients)",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(folder: Path) -> Path:
    """A certificate of 127.0.0.1 that is its own authority."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "cert.pem"


class Foreigners:
    """Eclipse's command-line clients, for a broker of this machine."""

    def __init__(self, port: int, login: tuple[str, str] | None = None, ca_file: Path | None = None) -> None:
        self.port, self.login, self.ca_file = port, login, ca_file
        self._listeners: list[Listener] = []

    def publish(self, topic: str, payload: str | dict[str, Any], *options: str) -> None:
        """By mosquitto_pub, QoS 1."""
        text = payload if isinstance(payload, str) else json.dumps(payload)
        command = ["mosquitto_pub", *self._arguments(), "-q", "1", "-t", topic, "-m", text, *options]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def listen(self) -> Listener:
        """mosquitto_sub on everything."""
        self._listeners.append(Listener(["mosquitto_sub", *self._arguments(), "-t", "#", "-F", "%j"]))
        return self._listeners[-1]

    def answers(self) -> bool:
        """Whether somebody listens at the port."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _arguments(self) -> list[str]:
        login = ["-u", self.login[0], "-P", self.login[1]] if self.login else []
        tls = ["--cafile", str(self.ca_file)] if self.ca_file else []
        return ["-h", "127.0.0.1", "-p", str(self.port), *login, *tls]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            listener.close()


class Mosquitto(Foreigners):
    """A broker on a port of its own; with a password file it lets in nobody without."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        users: dict[str, str] | None = None,
        *,
        is_tls: bool = False,
        access: str = "",
    ) -> None:
        """`access` is an access list, as mosquitto's acl_file has it."""
        certificate = make_certificate(folder) if is_tls else None
        super().__init__(port or free_port(), next(iter((users or {}).items()), None), certificate)
        lines = [f"listener {self.port} 127.0.0.1", f"allow_anonymous {'false' if users else 'true'}", "user root"]
        if users:
            passwords = folder / "passwords"
            passwords.touch(mode=0o600)
            for name, word in users.items():
                subprocess.run(["mosquitto_passwd", "-b", str(passwords), name, word], check=True, capture_output=True)
            lines.append(f"password_file {passwords}")
        if access:
            (folder / "access").write_text(access)
            lines.append(f"acl_file {folder / 'access'}")
        if is_tls:
            lines += [f"certfile {folder}/cert.pem", f"keyfile {folder}/key.pem", f"cafile {folder}/cert.pem"]
        self._config = folder / f"mosquitto-{self.port}.conf"
        self._config.write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert BROKER is not None
        self._process = subprocess.Popen(
            [BROKER, "-c", str(self._config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        eventually(self.answers, "mosquitto answers")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def freeze(self) -> None:
        """No thread of it runs until it thaws; what is sent to it meanwhile waits."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.stop()


class Listener:
    """What mosquitto_sub prints, message by message."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.messages: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            payload = message.get("payload", "")
            try:
                message["payload"] = json.loads(payload) if isinstance(payload, str) else payload
            except ValueError:
                pass
            self.messages.append(message)

    def on(self, end: str) -> list[dict[str, Any]]:
        """All messages so far whose topic ends like that."""
        return [message for message in tuple(self.messages) if message["topic"].endswith(end)]

    def wait_for(self, end: str, fits: Callable[[Any], bool] = lambda payload: True) -> dict[str, Any]:
        """The first message of the topic whose payload fits."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found.extend(message for message in self.on(end) if fits(message["payload"]))
            return bool(found)

        eventually(is_there, f"a fitting message on ...{end}; got {self.messages[-5:]}")
        return found[0]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._thread.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
