"""Labels on the head camera's picture can be read, on a page as small as a phone's, too."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from tests.support.pages.browsing import MARKS, a_browser
from tests.support.pages.console_run import ROOT

pytestmark = MARKS

DRAWN = """async ([source, css, things]) => {
  const { overlay } = await import("data:text/javascript," + encodeURIComponent(source));
  const labels = [], boxes = [], context = {
    canvas: { clientWidth: css, width: 960 }, font: "",
    save() {}, restore() {}, scale() {}, fillText() {}, setLineDash() {},
    measureText(text) { return { width: text.length * parseFloat(this.font.split(" ")[1]) * 0.6 }; },
    fillRect(...box) { labels.push(box); }, strokeRect(...box) { boxes.push(box); },
  };
  const camera = { x_m: 0, y_m: 0, z_m: 0, ahead_m: 0 }, robot = { x: 0, y: 0, heading: 0, position: Array(8).fill(0) };
  overlay(context, 6, { width: 160, height: 120, focal: 100 }, robot, things, null, null, camera);
  return [labels, boxes];
}"""


def thing(colour: str, y_m: float, z_m: float) -> dict[str, Any]:
    return {"label": "cup", "colour": colour, "x": 1.0, "y": y_m, "z": z_m, "w": 0.08, "h": 0.1}


def overlaps(one: list[float], other: list[float]) -> bool:
    (x, y, w, h), (x2, y2, w2, h2) = one, other
    return x < x2 + w2 and x2 < x + w and y < y2 + h2 and y2 < y + h


@pytest.mark.long
@pytest.mark.parametrize("css_px", [330, 700])
def test_no_label_covers_another_or_another_thing(css_px: int) -> None:
    source = (ROOT / "bridges/web/static/console/draw.js").read_text()
    row = [thing(colour, 0.25 - 0.14 * place, 0.0) for place, colour in enumerate(("red", "green", "yellow", "purple"))]
    with a_browser() as chromium:
        labels, boxes = chromium.new_page().evaluate(DRAWN, [source, css_px, [*row, thing("orange", 0.0, 0.16)]])
    assert len(labels) == len(boxes) == 5
    assert not [pair for pair in combinations(labels, 2) if overlaps(*pair)]
    assert not [(label, box) for label in labels for box in boxes if overlaps(label, box)]
    assert all(x >= 0 and x + w <= 160 and y >= 0 and y + h <= 120 for x, y, w, h in labels)
