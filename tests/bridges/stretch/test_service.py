"""The service on a Stretch: systemd knows its lines, hears that it lives, and presses the runstop where it died."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import PATIENCE_S
from tests.support.sentences import sentence

FOLDER = Path(__file__).resolve().parents[3] / "bridges" / "stretch"
UNIT, TMPFILES, RUNSTOP = (
    FOLDER / "polyrhythm-stretch.service",
    FOLDER / "polyrhythm-stretch.conf",
    FOLDER / "onboard" / "runstop.py",
)
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed (apt install systemd)"
)


def test_the_unit_stops_the_run_as_a_run_wants_to_be_stopped() -> None:
    lines = set(UNIT.read_text().splitlines())
    assert {"KillSignal=SIGINT", "KillMode=mixed", "Restart=on-failure"} <= lines
    assert "PrivateTmp=yes" not in lines, "the lock that keeps a second program off the robot lies in /tmp"


@needs_systemd
@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", ""),
        ("KillMod=mixed", "Unknown key"),
        ("RestartSec=soon", "Failed to parse"),
        ("RestartPreventExitStatus=two", "Failed to parse"),
        ("SystemCallFilter=@nothing", "Unknown system call"),
    ],
)
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path, line: str, complaint: str) -> None:
    """The lines that are wrong show that it would have said so."""
    text = re.sub(r"(/home/hello-robot/.venv/bin/polyrhythm|/usr/bin/python3.10)", sys.executable, UNIT.read_text())
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("[Install]", f"{line}\n[Install]"))
    told = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    about_it = [said for said in told.stderr.splitlines() if UNIT.stem in said]
    assert bool(about_it) is bool(complaint), told.stderr
    assert complaint in "".join(about_it)


@needs_systemd
def test_the_service_may_do_little_besides_its_work() -> None:
    """0 is sandboxed, 10 is everything; systemd calls what is below 4 OK."""
    told = subprocess.run(
        ["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=40", str(UNIT)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if "unrecognized option" in told.stderr:
        pytest.skip("this systemd does not look at files (before 250)")
    assert told.returncode == 0, told.stdout[-300:] + told.stderr


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="systemd is not installed (apt install systemd)")
def test_old_logs_and_recordings_are_removed_and_new_ones_stay(tmp_path: Path) -> None:
    configuration = tmp_path / TMPFILES.name
    configuration.write_text(TMPFILES.read_text().replace("/home/hello-robot", str(tmp_path)))
    kept: list[Path] = []
    removed: list[Path] = []
    for folder in ("stretch_user/log/stretch_body_logger", "runs"):
        (tmp_path / folder).mkdir(parents=True)
        for name, files in (("new", kept), ("old", removed)):
            file = tmp_path / folder / name
            file.write_text("")
            files.append(file)
            if name == "old":
                os.utime(file, (1_600_000_000, 1_600_000_000))
    cleaned = subprocess.run(["systemd-tmpfiles", "--clean", str(configuration)], capture_output=True, text=True)
    assert cleaned.returncode == 0, cleaned.stderr
    assert all(file.exists() for file in kept)
    assert not any(file.exists() for file in removed)


@pytest.mark.processes
def test_a_run_tells_systemd_that_it_is_ready_lives_and_ends(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(PATIENCE_S)
        command = [sys.executable, "-m", "runtime", "run", "hello", "--for", "1"]
        with subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": address}, stdout=subprocess.DEVNULL) as run:
            heard = [systemd.recv(64)]
            while heard[-1] != b"STOPPING=1":
                heard.append(systemd.recv(64))
            assert run.wait(PATIENCE_S) == 0
    assert heard.count(b"READY=1") == 1
    assert b"WATCHDOG=1" in heard[heard.index(b"READY=1") :]


@pytest.mark.parametrize("result", ["success", "exit-code"])
def test_a_run_that_ended_by_itself_leaves_the_runstop_alone(result: str) -> None:
    told = subprocess.run(
        [sys.executable, "-E", str(RUNSTOP)], env={"SERVICE_RESULT": result}, capture_output=True, text=True
    )
    assert (told.returncode, told.stderr) == (0, "")


def test_where_the_library_is_missing_it_says_that_nothing_was_pressed() -> None:
    told = subprocess.run(
        [sys.executable, "-E", "-S", str(RUNSTOP)], env={"SERVICE_RESULT": "watchdog"}, capture_output=True, text=True
    )
    assert told.returncode == 1
    assert told.stderr.startswith(sentence("bridges.runstop_without_library"))


def test_what_systemd_did_not_start_ends_no_other_process() -> None:
    """A shell that inherited the variable is not the service; the service itself is tried by tests/interop/service."""
    with subprocess.Popen(["sleep", "60"]) as sibling:
        subprocess.run(
            [sys.executable, "-E", "-S", str(RUNSTOP)],
            env={"SERVICE_RESULT": "watchdog", "SYSTEMD_EXEC_PID": str(os.getpid())},
            capture_output=True,
        )
        assert sibling.poll() is None
        sibling.kill()
