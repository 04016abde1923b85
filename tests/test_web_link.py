"""The page's link, without a browser: a stop that was pressed while there was no link is sent when it is back."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

LINK = Path(__file__).resolve().parent.parent / "bridges" / "web" / "static" / "link.js"
STORY = """
globalThis.WebSocket = class {
  static OPEN = 1;
  constructor() { this.readyState = 0; this.sent = []; WebSocket.last = this; }
  send(text) { this.sent.push(JSON.parse(text).t); }
};
globalThis.location = { hash: "#token", protocol: "http:", host: "here", pathname: "/" };
globalThis.sessionStorage = { getItem: () => null };
globalThis.document = { querySelector: () => null };
const again = [];
globalThis.setTimeout = (act) => again.push(act);
const { Link } = await import("./link.mjs");
const link = new Link({ cover() {}, welcome() {}, state() {} });
const open = () => {
  const socket = WebSocket.last; socket.readyState = 1; socket.onopen();
  socket.onmessage({ data: JSON.stringify({ t: "welcome", rooms: [] }) });
  return socket.sent;
};
const told = [open()];
for (const pressed of [["drive", "resume"], ["stop", "drive", "resume"], ["estop", "stop"], []]) {
  WebSocket.last.readyState = 3; WebSocket.last.onclose({ code: 1006, reason: "" });
  for (const t of pressed) link.send({ t });
  again.pop()();
  told.push(open());
}
console.log(JSON.stringify(told));
"""


def javascript() -> str:
    """Something that runs JavaScript: the system's own, or Playwright's; skips where there is neither."""
    found = shutil.which("node")
    if found is None:
        driver = pytest.importorskip("playwright._impl._driver", reason="needs node")
        found = str(driver.compute_driver_executable()[0])
    return found


def test_what_a_lost_link_swallowed_of_a_questionnaire_is_said_before_it_is_handed_in(tmp_path: Path) -> None:
    (tmp_path / "unsaid.mjs").write_bytes(LINK.with_name("unsaid.js").read_bytes())
    (tmp_path / "story.mjs").write_text("""
const { unsaid } = await import("./unsaid.mjs");
const page = { age: 30, robots: "some", words: "", effort: 3 };
const items = Object.keys(page).map((id) => ({ id }));
const given = (item) => page[item.id];
const told = [{ age: 30, words: "taken back" }, undefined].map((known) => unsaid(items, given, known));
console.log(JSON.stringify(told));
""")
    done = subprocess.run(
        [javascript(), "story.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout) == [
        [["robots", "some"], ["words", ""], ["effort", 3]],
        [["age", 30], ["robots", "some"], ["effort", 3]],
    ]


def test_a_stop_pressed_without_a_link_is_sent_when_it_is_back_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "link.mjs").write_bytes(LINK.read_bytes())
    (tmp_path / "story.mjs").write_text(STORY)
    done = subprocess.run(
        [javascript(), "story.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout) == [["hello"], ["hello"], ["hello", "stop"], ["hello", "estop"], ["hello"]]
