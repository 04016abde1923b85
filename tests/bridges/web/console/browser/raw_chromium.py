"""Chromium spoken to by its own protocol, for tests: Playwright keeps every tab visible, so none is ever hidden."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.support.pages.browsing import CHROMIUM, OPTIONS
from tests.support.running import eventually

ANSWER_S = 60.0
MORE_OPTIONS = ["--disable-dev-shm-usage", "--disable-breakpad", "--disable-extensions", "--password-store=basic"]
"""What Playwright asks for as well, less what keeps a hidden tab busy."""
LISTENS = re.compile(r"DevTools listening on (ws://\S+)")


class NotYet(Exception):
    """The tab has no page to ask at this moment: it is on its way to one."""


class RawTab:
    """One tab of a real browser window, and another that may cover it."""

    def __init__(self, socket: Connection, address: str) -> None:
        self._socket = socket
        self._count = 0
        self._other, self._session = self._tab("about:blank")
        try:
            self.wait(lambda: self.value("1 + 1") == 2, "a tab that can count")
        except AssertionError as problem:
            pytest.skip(f"this Chromium shows no page in a tab that is asked for by its own protocol: {problem}")
        self._target, self._session = self._tab(address)

    def _tab(self, address: str) -> tuple[str, str]:
        """A new one in front, and the session to speak with it."""
        target = str(self._call("Target.createTarget", url=address)["targetId"])
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        return target, str(attached["sessionId"])

    def _call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        self._count += 1
        order: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        self._socket.send(json.dumps(order | ({"sessionId": session} if session else {})))
        while True:
            answer: dict[str, Any] = json.loads(self._socket.recv(timeout=ANSWER_S))
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise NotYet(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def value(self, expression: str) -> Any:
        """What the page's scripts would see; raises NotYet while the tab has none."""
        found = self._call("Runtime.evaluate", self._session, expression=expression, returnByValue=True)
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """What stands there; "" while there is nothing."""
        try:
            return str(self.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))
        except NotYet:
            return ""

    def click(self, selector: str) -> None:
        """By script: where it is does not matter here."""
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def wait(self, fact: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
        """Bounded; a tab that cannot be asked yet is asked again."""
        last: list[NotYet] = []

        def holds() -> bool:
            try:
                return fact()
            except NotYet as reason:
                last[:] = [reason]
                return False

        try:
            eventually(holds, what, within_s)
        except AssertionError as late:
            raise AssertionError(f"{late}; the browser said last: {last}") from None

    def key(self, key: str, *, is_down: bool) -> None:
        """A letter goes down, or up."""
        kind = "keyDown" if is_down else "keyUp"
        code = f"Key{key.upper()}"
        self._call("Input.dispatchKeyEvent", self._session, type=kind, key=key, code=code)

    def cover(self) -> None:
        """Another tab of the same window comes to the front: this one is hidden."""
        self._call("Target.activateTarget", targetId=self._other)

    def uncover(self) -> None:
        """This tab comes to the front again."""
        self._call("Target.activateTarget", targetId=self._target)

    def freeze(self) -> None:
        """As a browser does with hidden tabs after a while: nothing runs in it."""
        self._call("Page.setWebLifecycleState", self._session, state="frozen")

    def thaw(self) -> None:
        """And goes on."""
        self._call("Page.setWebLifecycleState", self._session, state="active")


@contextmanager
def a_raw_tab(address: str) -> Iterator[RawTab]:
    """A browser of its own with that page in front, gone at the end."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="raw-chromium-", ignore_cleanup_errors=True) as folder:
        options = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", *OPTIONS, *MORE_OPTIONS]
        with Path(folder, "told").open("w") as told:
            browser = subprocess.Popen([CHROMIUM, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=told)
            try:
                found: list[str] = []

                def is_listening() -> bool:
                    found[:] = LISTENS.findall(Path(folder, "told").read_text())
                    return bool(found)

                eventually(is_listening, "the browser listens", 60.0)
                with connect(found[0], compression=None, max_size=None, proxy=None) as socket:
                    yield RawTab(socket, address)
            finally:
                browser.terminate()
                try:
                    browser.wait(20.0)
                except subprocess.TimeoutExpired:
                    browser.kill()
                    browser.wait(20.0)
