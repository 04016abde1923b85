"""The console over TLS, with a certificate made for the test: nothing in the clear, and nobody else is trusted."""

from __future__ import annotations

import http.client
import json
import socket as socket_library
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from runtime.cli import main
from tests.support.pages.console_run import ConsoleRun
from tests.support.sentences import sentence

LAUNCH = """
[nodes.console]
use    = "bridges.web.console.node:Console"
params = {{ port = 0, address = "0.0.0.0", certificate = "{certificate}", key = "{key}", reached_as = ["{origin}"] }}
"""

pytestmark = pytest.mark.processes


class Secured:
    """A run on all addresses of this machine, reached as https://127.0.0.1:PORT."""

    def __init__(self, run: ConsoleRun, trust: ssl.SSLContext) -> None:
        self.run, self.trust = run, trust


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(str(folder / "key.pem"))
    own.cert_chain_pems[0].write_to_path(str(folder / "certificate.pem"))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    file = folder / "console.toml"
    file.write_text(
        LAUNCH.format(certificate=folder / "certificate.pem", key=folder / "key.pem", origin="https://name")
    )
    with ConsoleRun(file, folder / "out") as run:
        yield Secured(run, trust)


def open_socket(secured: Secured, origin: str) -> ClientConnection:
    """A WebSocket to the name under which the console is reached."""
    sock = socket_library.create_connection(("127.0.0.1", secured.run.port), timeout=60.0)
    return connect(
        "wss://name/socket",
        sock=sock,
        ssl=secured.trust,
        server_hostname="127.0.0.1",
        origin=Origin(origin),
        compression=None,
        proxy=None,
    )


def test_the_page_and_its_socket_come_over_tls(secured: Secured) -> None:
    run = secured.run
    assert run.url.startswith("https://")
    page = http.client.HTTPSConnection("127.0.0.1", run.port, timeout=60, context=secured.trust)
    page.request("GET", "/", headers={"Host": "name"})
    assert page.getresponse().status == 200
    page.close()
    with open_socket(secured, "https://name") as socket:
        socket.send(json.dumps({"t": "hello", "token": run.tokens["operator"]}))
        assert json.loads(socket.recv(timeout=60.0))["role"] == "operator"


def test_a_page_in_the_clear_is_another_origin(secured: Secured) -> None:
    with pytest.raises(InvalidStatus) as refused:
        open_socket(secured, "http://name")
    assert refused.value.response.status_code == 403


def test_nothing_is_served_in_the_clear(secured: Secured) -> None:
    page = http.client.HTTPConnection("127.0.0.1", secured.run.port, timeout=60)
    page.request("GET", "/")
    with pytest.raises((http.client.HTTPException, OSError)):
        page.getresponse()
    page.close()


def test_who_trusts_another_authority_does_not_come_in(secured: Secured) -> None:
    page = http.client.HTTPSConnection("127.0.0.1", secured.run.port, timeout=60)
    with pytest.raises(ssl.SSLCertVerificationError):
        page.request("GET", "/")
    page.close()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("console.address=0.0.0.0", "there is no TLS"),
        ("console.certificate=a.pem", sentence("bridges.come_together")),
        ('console.reached_as=["http://x/y"]', sentence("bridges.origin_expected")),
    ],
)
def test_what_would_let_others_listen_in_ends_a_run_with_exit_2(
    setting: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "wizard", "--set", setting]) == 2
    assert words in capsys.readouterr().err


def test_a_certificate_that_is_not_there_is_said_at_the_start(tmp_path: Path) -> None:
    from bridges.web.console.node import Console
    from runtime.errors import UserError

    with pytest.raises(UserError, match="certificate"):
        Console(port=0, certificate=str(tmp_path / "no.pem"), key=str(tmp_path / "no.key")).on_start()
