"""Pages for the machines of the local network: certificate, names, and who is still turned away."""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import stat
from pathlib import Path

import pytest
from websockets.sync.client import connect
from websockets.typing import Origin

from bridges.web.http.lan import LAN, certificate_for, own_names
from bridges.web.http.listener import PageHost
from bridges.web.http.page import Page
from bridges.web.http.wire import decode
from runtime.cli import main
from runtime.clock import SystemClock
from tests.bridges.web.http.test_pages import PageHandler
from tests.bridges.web.study.test_study_browser import LIGHT, PROTOCOL
from tests.support.pages.page_run import PageRun
from tests.support.ports import free_ports


def test_a_page_for_the_network_answers_to_this_machine_s_names_over_tls_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    port = free_ports(1, "0.0.0.0")
    pages = PageHost(LAN, port)
    with caplog.at_level(logging.INFO, "pages"):
        page = Page("console", "Console", "console/page.html", PageHandler("console"), decode, {"viewer": "viewer"})
        pages.start(page, SystemClock(), logging.getLogger("pages"))
    try:
        assert f"https://{own_names()[0]}:{port}/#" in caplog.text
        trust = ssl.create_default_context(cafile=str(tmp_path / "polyrhythm" / "pages" / "certificate.pem"))
        for name, status in (*((name, 200) for name in own_names()), ("elsewhere.example", 421)):
            asked = http.client.HTTPSConnection("127.0.0.1", port, timeout=60.0, context=trust)
            asked.request("GET", "/", headers={"Host": f"{name}:{port}"})
            answer = asked.getresponse()
            assert (name, answer.status) == (name, status)
            assert answer.headers["strict-transport-security"]
            asked.close()
    finally:
        pages.stop()


def test_the_certificate_is_kept_for_the_same_names_and_is_of_this_user_alone(tmp_path: Path) -> None:
    certificate, key = certificate_for(["10.0.0.7", "robot.local"], tmp_path / "own")
    assert stat.S_IMODE(Path(key).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(key).parent.stat().st_mode) == 0o700
    first = Path(certificate).read_bytes()
    certificate_for(["robot.local"], tmp_path / "own")
    assert Path(certificate).read_bytes() == first
    certificate_for(["robot.local", "10.0.0.8"], tmp_path / "own")
    assert Path(certificate).read_bytes() != first
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)


def test_a_run_without_a_page_cannot_be_opened_to_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hello", "--lan", "--for", "1"]) == 2
    assert "--lan: no node of hello.toml has a page" in capsys.readouterr().err


@pytest.mark.processes
def test_a_study_is_opened_to_the_network_with_addresses_that_work_for_both_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    launch, protocol = tmp_path / "light.toml", tmp_path / "protocol.toml"
    protocol.write_text(PROTOCOL)
    launch.write_text(LIGHT.format(folder=tmp_path / "study", protocol=protocol))
    with PageRun("run", launch, "--lan", "--out", tmp_path / "out", pages=2) as run:
        trust = ssl.create_default_context(cafile=str(tmp_path / "polyrhythm" / "pages" / "certificate.pem"))
        for role in ("experimenter", "participant"):
            url, token = run.addresses["study", role].split("#")
            assert url.startswith(f"https://{own_names()[0]}:")
            origin = Origin("/".join(url.split("/")[:3]))
            place = f"{url.replace('https', 'wss').rstrip('/')}/socket"
            with connect(place, origin=origin, ssl=trust, proxy=None) as socket:
                socket.send(json.dumps({"t": "hello", "token": token}))
                assert json.loads(socket.recv(timeout=60))["role"] == role
        assert any("\u2588" in line for line in run.lines), "a QR code of the address is printed"
