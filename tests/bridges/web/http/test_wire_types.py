"""What the pages send is typed: the file is as the server's messages are; `make pages` checks the pages against it."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_the_types_of_what_pages_send_are_those_of_the_server_s_messages() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "wire_types.py"))
    assert made["OUT"].read_text() == made["written"](), "the messages have changed: python .ci/wire_types.py"
    assert 'export type Drive = { t: "drive"; ahead?: number;' in made["written"]()
