"""`polyrhythm mcp`: tools for an assistant, over MCP on stdin and stdout.

Each tool runs one command of ours that only looks, in a process of its own, and returns what it says. There is no tool
that publishes, arms, or writes a file. Recordings are read below one folder only.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from runtime.command_line.arguments import answered
from runtime.errors import UserError

PATIENCE_S = 60.0
MOST_CHARACTERS = 40_000


def main(argv: list[str]) -> int:
    """0 once the assistant has closed its end; 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm mcp",
        description="Let an assistant look at running graphs, launch files and recordings, over the Model Context "
        "Protocol on stdin and stdout. Nothing that it can ask moves a robot or changes a file.",
        epilog="example: polyrhythm mcp --folder runs",
    )
    parser.add_argument("--folder", type=Path, default=Path(), help="where recordings and launch files may be read")
    asked = parser.parse_args(argv)
    return answered("polyrhythm mcp", lambda: _serve(asked.folder))


def _serve(folder: Path) -> int:
    if not folder.is_dir():
        raise UserError(f"--folder {folder}: there is no such folder")
    from mcp.server.mcpserver import MCPServer

    server = MCPServer(
        "polyrhythm", instructions="Look at graphs and recordings of robots. No tool moves anything or changes a file."
    )
    tools = _Tools(folder.resolve())
    for tool in (
        *(tools.recordings, tools.graph, tools.running_nodes),
        *(tools.newest_message, tools.recording_info, tools.why),
    ):
        server.tool()(tool)
    server.run("stdio")
    return 0


class _Tools:
    """What an assistant may call; the docstring of each is what it reads of it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def recordings(self) -> str:
        """The recordings and launch files that can be looked at, by path."""
        found = sorted(path for kind in ("*.mcap", "*.toml") for path in self._root.rglob(kind))
        return "\n".join(str(path.relative_to(self._root)) for path in found[:1000]) or "none"

    async def graph(self, launch_file: str) -> str:
        """Nodes and topics of a launch file: its path, or the name of a shipped one such as laptop."""
        is_name = launch_file.isidentifier() or launch_file.replace("-", "_").isidentifier()
        return await _said("graph", launch_file if is_name else self._inside(launch_file))

    async def running_nodes(self, run: str = "") -> str:
        """What runs now, where, and how it fares, as JSON; `run` is a name or pid where several graphs run."""
        return await _said("nodes", "--json", *_chosen(run))

    async def newest_message(self, topic: str, run: str = "") -> str:
        """The next message on a topic of a running graph, as JSON; waits 10 s for it."""
        return await _said("echo", "--count=1", "--for=10", "--json", *_chosen(run), "--", topic)

    async def recording_info(self, recording: str) -> str:
        """What a recording holds: topics, numbers, outcome."""
        return await _said("bag", "info", self._inside(recording))

    async def why(self, recording: str, at_s: float) -> str:
        """Why the robot did what it did at that second of a recording: the chain of causes behind its command."""
        return await _said("bag", "why", self._inside(recording), f"--at={at_s:g}")

    def _inside(self, path: str) -> str:
        found = (self._root / path).resolve()
        if not found.is_relative_to(self._root) or not found.is_file():
            raise _complaint(f"{path!r} is no file below {self._root}")
        return str(found)


def _chosen(run: str) -> tuple[str, ...]:
    return (f"--run={run}",) if run else ()


async def _said(*words: str) -> str:
    """Run a command of ours and return what it prints. Raises ToolError with its complaint."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runtime", *words,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise _complaint(f"polyrhythm {words[0]} took longer than {PATIENCE_S:g} s") from None
    text = output.decode(errors="replace")[:MOST_CHARACTERS]
    if process.returncode not in (0, 1):
        raise _complaint(text.strip() or f"polyrhythm {words[0]} ended with {process.returncode}")
    return text


def _complaint(text: str) -> Exception:
    """What an assistant is told instead of an answer: the library's own exception."""
    from mcp.server.mcpserver.exceptions import ToolError

    return ToolError(text)
