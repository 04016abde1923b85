"""What the pages of plain HTML of `browse`, `rate` and `scenarios edit` share: their server, by its name, and turns."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Protocol

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.results.show import transcript
from runtime.msgs.episode import Turn
from runtime.operating_system.terminal import signals_of_end

SERVER = "bridges.web.http.forms", "FormServer"
"""Named, not imported: nodes know no bridge, and whoever opens no page needs none."""

Page = Callable[[str, Mapping[str, str], Mapping[str, str] | None], str]
"""A path, its query and the form that was sent (None: nothing was) in; the page's body out. Raises UserError."""


class PageServer(Protocol):
    """Serves a `Page` until it is stopped."""

    url: str

    def serve(self) -> None:
        """Until Ctrl-C, or `stop`."""
        ...

    def stop(self) -> None:
        """End it (any thread)."""
        ...


def open_page(
    page: Page, port: int, *, title: str, style: Path, takes_forms: bool = False, host: str = "127.0.0.1"
) -> PageServer:
    """The server, bound to `host` ("lan": whoever is in the network). Raises UserError for a taken port."""
    module, name = SERVER
    make: Callable[..., PageServer] = getattr(import_module(module), name)
    look = style.read_text(encoding="utf-8")
    return make(page, host, port, title=title, style=look, takes_forms=takes_forms)


def serve(server: PageServer, *lines: str) -> int:
    """Print the lines, then serve until Ctrl-C; 0."""
    for number in signals_of_end():  # a shell's background job begins with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    try:
        print(*lines, sep="\n", flush=True)
        server.serve()
    except KeyboardInterrupt:  # before the server was up
        pass
    return 0


def turns_html(plan: EpisodePlan, turns: Sequence[Turn]) -> str:
    """The turns to read, a paragraph each."""
    lines = []
    for line in transcript(plan, turns):
        seat, name = next(((seat, name) for seat, name in enumerate(plan.names) if f" {name}" in line), (9, ""))
        told = escape(line).replace(escape(name), f"<b>{escape(name)}</b>", 1) if name else escape(line)
        lines.append(f"<p class='t s{seat % 4 if seat < 9 else 9}'>{told}</p>")
    return "".join(lines)
