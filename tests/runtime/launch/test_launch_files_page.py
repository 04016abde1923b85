"""docs/launch-files.md: every table and key is on it, and what stands there is a launch file."""

from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from nodes.recording.dataset.export_table import ExportTable
from runtime.hosts.hosts_table import HostTable
from runtime.launch.file import TABLES, RunTable, check, find, override, resolve
from runtime.launch.graph import Restart
from runtime.launch.tables.budgets_table import ModelBudget, WrittenBudgets, WrittenPath
from runtime.launch.tables.links_table import LinkTable
from runtime.launch.tables.nodes_table import Instead, NodeTable
from runtime.launch.tables.processes_table import RealTime
from runtime.launch.tables.seats_table import Rung, WrittenSeat

PAGE = Path(__file__).resolve().parents[3] / "docs" / "launch-files.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
WRITTEN = (
    NodeTable,
    ExportTable,
    Instead,
    RunTable,
    RealTime,
    LinkTable,
    HostTable,
    WrittenBudgets,
    WrittenPath,
    ModelBudget,
)
KEYS = [key for table in (*WRITTEN, WrittenSeat, Rung) for key in table.__struct_encode_fields__]


@pytest.mark.parametrize("key", [*TABLES, *get_args(Restart), *dict.fromkeys(KEYS)])
def test_every_table_and_key_is_on_the_page(key: str) -> None:
    assert re.search(rf"(?:`|\[|^){key}\b", TEXT, re.MULTILINE), key


def merged(tables: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict) and "use" not in value:
            merged(tables[key], value)
        else:
            tables[key] = value


def laptop() -> dict[str, Any]:
    return tomllib.loads(find("laptop").read_text())


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0] for block in BLOCKS])
def test_each_block_of_the_page_goes_into_the_laptops_launch_file(block: str) -> None:
    tables = laptop()
    before = copy.deepcopy(tables)
    merged(tables, tomllib.loads(block))
    launch = resolve(tables, path=PAGE)
    check(launch)
    if block.startswith(("[nodes", "[processes", "[links")):
        assert tables != before


CHANGES = re.findall(r"--set ([a-z]\S+=[^\s`]+)", TEXT)


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_the_page_is_understood(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    tables = laptop()
    merged(tables, tomllib.loads("\n".join(BLOCKS[-4:])))  # [links], [run], [watchdog], [export]
    override(tables, change)
    check(resolve(tables, path=PAGE))


def test_there_are_changes() -> None:
    assert len(CHANGES) >= 7
