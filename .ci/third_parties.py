"""What others made and our packages carry: a line at the head of the file, or of the page beside it, names it.

The line is `Third party: PURL (LICENCE)`: a package URL with a version, and an SPDX expression. A comment may hold it.
The same file holds the licence's text, where that asks to be handed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEAD_BYTES = 1000
TOLD = re.compile(rb"^(?:# )?Third party: (pkg:[a-z]+/([^\s@]+)@(\S+)) \((.+)\)$", re.MULTILINE)


class ThirdParty(NamedTuple):
    """`file` says so; its path begins at the folder that was looked through."""

    purl: str
    name: str
    version: str
    licence: str
    file: str


def third_parties(folder: Path) -> Iterator[ThirdParty]:
    """Those of a folder, sorted by file."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        with path.open("rb") as file:
            for found in TOLD.findall(file.read(HEAD_BYTES)):
                yield ThirdParty(*(part.decode() for part in found), path.relative_to(folder).as_posix())
