"""The count of words of the pages leaves out what commands write."""

from __future__ import annotations

from pathlib import Path

from bench.rooms import words

WRITTEN = (
    "<!-- table: begin, written by make nothing -->\n| nine | words | that | nobody | wrote |\n<!-- table: end -->"
)


def test_words_of_pages_are_counted_without_what_a_command_writes(tmp_path: Path) -> None:
    for path, text in {
        "README.md": "one two",
        "docs/a.md": f"# One\n\ntwo three\n\n{WRITTEN}\n\nfour\n\n{WRITTEN}\n",
        "docs/decisions/b.md": "one <!-- two: begin, written by hand -->",
        "docs/reference/c.md": "written whole",
        "docs/results/d.md": "written whole",
        "docs/certificate.md": "written whole",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert words(tmp_path) == {"README.md": 2, "docs/a.md": 5, "docs/decisions/b.md": 8}


def test_every_marked_part_of_our_pages_has_its_end() -> None:
    for page in (Path(__file__).parents[2] / "docs").rglob("*.md"):
        text = page.read_text()
        assert text.count(": begin, written by") == text.count(": end -->"), page
