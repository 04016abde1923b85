"""Pages of forms: by TLS for a network, for the addresses that were printed alone, and no larger than a form may be."""

from __future__ import annotations

import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bridges.web.http.forms import LONGEST_FORM, FormServer
from bridges.web.http.lan import LAN
from runtime.errors import UserError

pytestmark = pytest.mark.processes

ANY = ssl.create_default_context()  # a browser asks its person once
ANY.check_hostname, ANY.verify_mode = False, ssl.CERT_NONE


def told(path: str, query: Mapping[str, str], sent: Mapping[str, str] | None) -> str:
    if path == "/nowhere":
        raise UserError("there is no <page>")
    return f"{path} {dict(query)} {sent}"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FormServer]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = FormServer(told, LAN, 0, title="Forms", style="", takes_forms=True)
    thread = threading.Thread(target=found.serve)
    thread.start()
    yield found
    found.stop()
    thread.join(60)


def ask(server: FormServer, path: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"https://127.0.0.1:{server.port}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60, context=ANY) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_raters_elsewhere_are_served_by_tls_and_nobody_else_s_page_sends_here(server: FormServer) -> None:
    assert server.url.startswith("https://")
    assert "/rate {'key': 'k'} None" in ask(server, "/rate?key=k")[1]
    assert "{'choice': 'first'}" in ask(server, "/pair", b"choice=first")[1]
    assert ask(server, "/", Host="evil.example")[0] == 403
    assert ask(server, "/", b"a=b", Origin="https://evil.example")[0] == 403
    assert ask(server, "/", b"a=b", Origin=f"https://127.0.0.1:{server.port}")[0] == 200
    assert ask(server, "/", b"a" * (LONGEST_FORM + 1))[0] == 413
    code, page = ask(server, "/nowhere")
    assert code == 404
    assert "there is no &lt;page&gt;" in page


def test_a_taken_port_and_a_machine_without_the_libraries_are_sentences(
    server: FormServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=f"port {server.port}"):
        FormServer(told, "127.0.0.1", server.port, title="Forms", style="", takes_forms=False)
    monkeypatch.setattr("bridges.web.http.forms.missing", lambda _: "it needs uvicorn")
    with pytest.raises(UserError, match="it needs uvicorn"):
        FormServer(told, "127.0.0.1", 0, title="Forms", style="", takes_forms=False)
