"""Texts with parts meant for one reader: `<p viewer="agent_0">...</p>`, and hints in goals.

The rules are those of the published renderer: a part without `viewer` is everybody's, a part inside an invisible part
stays invisible, hint tags are dropped and their text kept. Text that is not well formed is read as far as it goes, and
a part left open stays private to the end: in doubt nothing is shown.
"""

from __future__ import annotations

import re
from html import unescape

from nodes.episodes.scenarios.profiles import ProfileError

EVERYONE = "environment"
"""The viewer that sees every part: the judge, the log, the writer of a script."""


TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)((?:\s[^<>]*|/)?)>")
BROKEN = re.compile(r"<[A-Za-z_][^<>]*\sviewer\s*=")
"""What is left of a private part's tag that never ended."""
VIEWER = re.compile(r"""viewer\s*=\s*["']?([\w-]+)""")


def text_for(marked: str, viewer: str) -> str:
    """What one viewer ("agent_0", "agent_1", ..., or EVERYONE) reads of a text; tags are gone."""
    if "<" not in marked and "&" not in marked:
        return marked.strip()
    shown: list[str] = []
    tags: list[tuple[str, bool]] = []  # open ones: name, whether this viewer may read inside
    hidden = 0  # how many of the open ones it may not
    at = 0
    for tag in TAG.finditer(marked):
        if not hidden:
            shown.append(marked[at : tag.start()])
        at = tag.end()
        is_end, name, attributes = bool(tag[1]), tag[2].lower(), tag[3]
        if is_end:
            # A stray or crossing end tag closes nothing, so it cannot open a private part to others.
            if tags and tags[-1][0] == name:
                hidden -= not tags.pop()[1]
        elif not attributes.rstrip().endswith("/"):
            tags.append((name, _may_read(attributes, viewer)))
            hidden += not tags[-1][1]
    if not hidden:
        shown.append(marked[at:])
    text = "".join(shown)
    broken = BROKEN.search(text)
    if broken and viewer != EVERYONE:
        text = text[: broken.start()]
    return unescape(text).strip()


def viewer_of(seat: int) -> str:
    """The name of a seat as a viewer; raises ProfileError below 0."""
    if seat < 0:
        raise ProfileError(f"seat {seat} cannot view anything; expected 0 or more")
    return f"agent_{seat}"


def _may_read(attributes: str, viewer: str) -> bool:
    if "viewer" not in attributes or viewer == EVERYONE:
        return True
    return set(VIEWER.findall(attributes)) == {viewer}
