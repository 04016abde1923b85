"""The MCP SDK's own client looks at graphs and recordings; nothing that it finds moves, publishes or writes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import Client, StdioServerParameters

from tests.support.synthetic_run import write_run

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]
START = "import sys; from bridges.mcp_server.command import main; sys.exit(main(sys.argv[1:]))"


def asked_of(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[set[str], list[tuple[bool, str]]]:
    """The tools that there are, and what each call gave: whether it failed, and its text."""

    async def ask() -> tuple[set[str], list[tuple[bool, str]]]:
        server = StdioServerParameters(
            command=sys.executable, args=["-c", START, "--folder", str(folder)], cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(folder)},
        )  # fmt: skip
        async with Client(server) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            given = []
            for name, arguments in calls:
                result: Any = await client.call_tool(name, arguments)
                given.append((bool(result.is_error), "".join(getattr(part, "text", "") for part in result.content)))
            return tools, given

    return asyncio.run(ask())


TOOLS = {"recordings", "graph", "running_nodes", "newest_message", "recording_info", "why"}


def test_the_sdks_client_finds_tools_that_look_and_is_refused_what_lies_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    tools, given = asked_of(folder, ("recordings", {}), ("recording_info", {"recording": "/etc/passwd"}))
    assert tools == TOOLS
    assert [failed for failed, _ in given] == [False, True]


@pytest.mark.long
def test_the_sdks_client_sees_graphs_recordings_and_why_and_can_do_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    recording = write_run(folder, seconds=2.0)
    (tmp_path / "secret.toml").write_text("")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    tools, given = asked_of(
        folder,
        ("recordings", {}),
        ("graph", {"launch_file": "hello"}),
        ("recording_info", {"recording": recording.name}),
        ("why", {"recording": recording.name, "at_s": 1.5}),
        ("graph", {"launch_file": "../secret.toml"}),
        ("recording_info", {"recording": "/etc/passwd"}),
        ("newest_message", {"topic": "--help"}),
    )
    assert tools == TOOLS
    assert [failed for failed, _ in given[:4]] == [False] * 4
    assert recording.name in given[0][1]
    assert "talker" in given[1][1]
    assert "robot/command" in given[2][1] + given[3][1]
    assert [failed for failed, _ in given[4:6]] == [True, True]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.mcap")}.items() <= before.items()
