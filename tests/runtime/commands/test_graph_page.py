"""`polyrhythm graph --html`: one page, offline, with all of the graph on it; an existing file stays."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from runtime.cli import main
from runtime.launch.file import find, load
from tests.support.sentences import sentence


def drawn(name: str, out: Path, *options: str) -> str:
    assert main(["graph", name, "--html", str(out), *options]) == 0
    return out.read_text(encoding="utf-8")


def test_the_page_shows_nodes_by_process_topics_seats_and_budgets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = drawn("laptop", tmp_path / "graph.html")
    assert capsys.readouterr().out == f"written: {tmp_path / 'graph.html'}\n"
    text, launch = html.unescape(page), load(find("laptop"))
    for process, specs in launch.processes.items():
        assert f"process {process}<" in text
        assert all(f'data-key="node {spec.name}"' in text for spec in specs)
    for topic in launch.graph.topics.values():
        assert f'data-key="topic {topic.name}"' in text
        for end in topic.publishers:
            assert f'class="out" data-node="node {end.node}" data-topic="topic {topic.name}"' in text
        for end in topic.subscribers:
            assert f'class="in" data-node="node {end.node}" data-topic="topic {topic.name}"' in text
    assert "<td>head/image</td><td>Image</td><td>state</td><td>25 Hz</td>" in page
    assert "path eye_to_hand: head/image -> command -> robot/command" in text
    assert all(f"<td>{seat}</td><td>{table.holder}</td>" in page for seat, table in launch.seats.items())


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = drawn("laptop", tmp_path / "graph.html")
    assert not re.search(r"https?:|src=|href=|@import|url\(|fetch\(", page)


def test_a_name_is_text_and_no_markup(tmp_path: Path) -> None:
    file = tmp_path / "a <b> & c.toml"
    file.write_text('[nodes.talker]\nuse = "nodes.hello:Talker"\n', encoding="utf-8")
    page = drawn(str(file), tmp_path / "graph.html")
    assert "<b>" not in page
    assert "a &lt;b&gt; &amp; c.toml" in page


def test_an_existing_file_stays_and_a_folder_that_is_missing_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("mine", encoding="utf-8")
    assert main(["graph", "hello", "--html", str(mine)]) == 2
    assert mine.read_text(encoding="utf-8") == "mine"
    assert sentence("runtime.page_is_there", file=mine) in capsys.readouterr().err
    assert main(["graph", "hello", "--html", str(tmp_path / "none" / "graph.html")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
