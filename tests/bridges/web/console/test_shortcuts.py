"""What keys mean at the pages, and what is held down: state machines of the pages' own files, without a browser."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.bridges.web.http.test_link import LINK, javascript

STORIES = Path(__file__).with_name("stories")


def test_the_parts_of_the_pages_keep_what_their_stories_tell(tmp_path: Path) -> None:
    """`node --test` on all stories at once, beside the pages' own files."""
    for file in LINK.parent.rglob("*.js"):
        (tmp_path / file.name).write_text(re.sub(r'(["`])/static/(\w+/)?', r"\1./", file.read_text()))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    stories = sorted(STORIES.glob("*.test.js"))
    for story in stories:
        (tmp_path / story.name).write_text(story.read_text())
    names = [story.name for story in stories]
    done = subprocess.run(
        [javascript(), "--test", *names], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
