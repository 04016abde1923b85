"""What keys mean at the pages, and what is held down: state machines of the pages' own files, without a browser."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.bridges.web.http.test_link import LINK, javascript

STORIES = Path(__file__).with_name("stories")


def run_story(name: str, folder: Path) -> None:
    """`node --test` on a story beside the pages' own files."""
    for file in LINK.parent.rglob("*.js"):
        (folder / file.name).write_text(re.sub(r'(["`])/static/(\w+/)?', r"\1./", file.read_text()))
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / name).write_text((STORIES / name).read_text())
    done = subprocess.run(
        [javascript(), "--test", name], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout or "fail 0" in done.stdout


def test_keys_follow_the_layout_stop_twice_and_take_a_seat_only_when_held(tmp_path: Path) -> None:
    run_story("shortcuts.test.js", tmp_path)


def test_the_dead_man_s_switch_says_what_is_held_and_forgets_it_when_the_page_stood_still(tmp_path: Path) -> None:
    run_story("deadman.test.js", tmp_path)


def test_postures_looks_and_motions_are_played_as_they_were_kept(tmp_path: Path) -> None:
    run_story("moves.test.js", tmp_path)


def test_three_letters_find_a_sentence_among_many_and_the_last_ones_stand_first(tmp_path: Path) -> None:
    run_story("deck.test.js", tmp_path)


def test_the_participant_s_page_says_everything_in_each_language(tmp_path: Path) -> None:
    run_story("strings.test.js", tmp_path)
