"""The page's link, without a browser: a stop that was pressed while there was no link is sent when it is back."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

LINK = Path(__file__).resolve().parents[4] / "bridges" / "web" / "static" / "link.js"
STORY = """
const tokens = [];
globalThis.WebSocket = class {
  static OPEN = 1;
  constructor() { this.readyState = 0; this.sent = []; WebSocket.last = this; }
  send(text) { const { t, token } = JSON.parse(text); this.sent.push(t); if (token) tokens.push(token); }
};
globalThis.location = { hash: "#token", protocol: "http:", host: "here", pathname: "/" };
const kept = {};
globalThis.sessionStorage = {
  getItem: (name) => kept[name] ?? null, setItem: (name, value) => { kept[name] = value; },
};
globalThis.history = { replaceState: (_, __, path) => { location.hash = ""; location.path = path; } };
globalThis.addEventListener = () => {};
globalThis.document = { querySelector: () => null };
const again = [];
globalThis.setTimeout = (act) => again.push(act);
globalThis.fetch = async () => {};
const { Link } = await import("./link.mjs");
const link = new Link({ cover() {}, welcome() {}, state() {} });
const open = () => {
  const socket = WebSocket.last; socket.readyState = 1; socket.onopen();
  socket.onmessage({ data: JSON.stringify({ t: "welcome", pages: [], heard: 9e15 }) });
  return socket.sent;
};
const told = [open()];
for (const pressed of [["drive", "resume"], ["stop", "drive", "resume"], ["estop", "stop"], []]) {
  WebSocket.last.readyState = 3; WebSocket.last.onclose({ code: 1006, reason: "" });
  for (const t of pressed) link.send({ t });
  await again.pop()();
  told.push(open());
}
link.send({ t: "say \\ud83d\\ude00 \\ud83d" });
told.push(WebSocket.last.sent.at(-1));
console.log(JSON.stringify([told, tokens, location.hash, location.path]));
"""


def javascript() -> str:
    """Something that runs JavaScript: the system's own, or Playwright's; skips the test where none starts."""
    found = shutil.which("node")
    if found is None:
        driver = pytest.importorskip("playwright._impl._driver", reason="needs node")
        found = str(driver.compute_driver_executable()[0])
    started = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    if started.returncode:
        pytest.skip(f"node does not start here: {(started.stderr or started.stdout).strip()}")
    return found


def test_what_a_lost_link_swallowed_of_a_questionnaire_is_said_before_it_is_handed_in(tmp_path: Path) -> None:
    (tmp_path / "unsaid.mjs").write_bytes((LINK.parent / "study" / "unsaid.js").read_bytes())
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
    told, tokens, fragment, path = json.loads(done.stdout)
    half = "say \N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"  # a text that was cut in the middle of an emoji
    assert told == [["hello"], ["hello"], ["hello", "stop"], ["hello", "estop"], ["hello", half], half]
    assert (tokens, fragment, path) == (["token"] * 5, "", "/")  # it left the address bar, and opens the page again


BACK = """
let there = false, sockets = 0;
globalThis.WebSocket = class { constructor() { sockets += 1; WebSocket.last = this; } };
globalThis.location = { hash: "#token", protocol: "http:", host: "here", pathname: "/" };
const again = [];
globalThis.setTimeout = (act, pause) => again.push([act, pause]);
globalThis.fetch = async () => { if (!there) throw new TypeError("nobody is there"); };
globalThis.addEventListener = () => {};
const { Link } = await import("./link.mjs");
new Link({ cover() {}, welcome() {}, state() {} });
WebSocket.last.onclose({ code: 1006, reason: "" });
const told = [];
for (let tried = 0; tried < 9; tried += 1) {
  there = tried === 8;
  const [act, pause] = again.pop(); await act();
  told.push([pause, sockets]);
}
console.log(JSON.stringify([told, again.length]));
"""


def test_while_nobody_answers_no_socket_is_tried_so_that_a_browser_does_not_hold_the_next_one_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "link.mjs").write_bytes(LINK.read_bytes())
    (tmp_path / "story.mjs").write_text(BACK)
    done = subprocess.run(
        [javascript(), "story.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    tries, waiting = json.loads(done.stdout)
    assert [sockets for _, sockets in tries] == [1] * 8 + [2]
    assert [pause for pause, _ in tries][:2] == [500, 800]
    assert max(pause for pause, _ in tries) == 5000
    assert waiting == 0
