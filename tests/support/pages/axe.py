"""axe-core on an open page: what would keep a person from using it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

SERIOUS = ("serious", "critical")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
OPTIONS = {"runOnly": TAGS, "resultTypes": ["violations"]}
"""What passes is counted and not described: that took a third of the time."""
RUN = "async ([within, options]) => (await axe.run(within, options)).violations"


@cache
def _axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def findings(page: Any, impacts: tuple[str, ...] = SERIOUS, within: str = "html") -> list[str]:
    """The serious findings on the page as it is now, one line per element: contrast of WCAG AA among them."""
    page.evaluate(_axe())  # by the debugger's door: the page's own policy lets no other script in
    found = page.evaluate(RUN, [within, OPTIONS])
    return [
        f"{rule['impact']} {rule['id']}: {' '.join(node['target'])}: {node['failureSummary'].splitlines()[-1].strip()}"
        for rule in found
        if rule["impact"] in impacts
        for node in rule["nodes"]
    ]
