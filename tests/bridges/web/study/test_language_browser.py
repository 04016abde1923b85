"""The participant's page in their language, in a real browser."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bridges.web.http.listener import PageHost
from bridges.web.http.page import Page
from bridges.web.study import wire
from bridges.web.study.protocol import EXAMPLE, Protocol, read_protocol
from bridges.web.study.session import Event, SessionProgress
from bridges.web.study.views import participant_view
from runtime.clock import SystemClock
from tests.bridges.web.http.test_pages import PageHandler
from tests.support.pages.axe import findings
from tests.support.pages.browsing import MARKS, a_browser, text, visit, wait
from tests.support.ports import free_ports

pytestmark = MARKS
REFUSED = {
    "de": "Diese Adresse gilt nicht mehr",
    "es": "Esta dirección ya no es válida",
    "ja": "このアドレスは無効です",
}
CONSENT = {"de": "Einwilligung", "es": "Consentimiento", "ja": "同意"}
AGREE = {"de": "Ich stimme zu", "es": "Acepto", "ja": "同意します"}


class OneStep(PageHandler):
    """A session that is at its first step."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.progress = SessionProgress.of(protocol, Event("begin", 0.0, number=1, protocol=protocol.sha))

    def welcome(self, session: Any) -> dict[str, Any]:
        return {"t": "welcome", "role": session.role, "lang": self.protocol.language}

    def state(self, session: Any, now_ns: int) -> dict[str, Any]:
        view = participant_view(self.protocol, self.progress)
        return {"t": "state", "n": session.state_number, "notices": [], "view": view, "elapsed_s": None}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


@pytest.mark.parametrize(
    "language", [pytest.param(one, marks=[] if one == "ja" else [pytest.mark.long]) for one in CONSENT]
)
def test_the_page_speaks_the_language_of_the_protocol_and_says_which(chromium: Any, language: str) -> None:
    protocol = msgspec.structs.replace(read_protocol(EXAMPLE), language=language)
    port = free_ports(1)
    pages = PageHost("127.0.0.1", port)
    page = Page("study", "Study", "study/page.html", OneStep(protocol), wire.decode, {"participant": "participant"})
    pages.start(page, SystemClock(), logging.getLogger("pages"))
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    try:
        page = context.new_page()
        visit(page, f"http://127.0.0.1:{port}/study#{pages.token('participant')}")
        wait(page, lambda: text(page, "#where") == CONSENT[language], "the step has its name")
        assert page.get_attribute("html", "lang") == language
        assert text(page, ".next .main") == AGREE[language]
        page.click(".next .main")
        assert text(page, "#withdraw") in text(page, "#notice")
        assert findings(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        address = f"http://127.0.0.1:{port}/study#{pages.token('participant')}"
        pages.renew("participant")
        pages.send_away()
        wait(page, lambda: REFUSED[language] in text(page, "#cover"), "whose part is over reads so")
        late = context.new_page()  # at the same tablet
        late.goto(address)
        wait(late, lambda: REFUSED[language] in text(late, "#cover"), "and who comes late does, too")
        assert late.get_attribute("html", "lang") == language
    finally:
        context.close()
        pages.stop()
