"""Writes the tables of the interruption experiment into docs/results/interruptions.md, from its published results.

`python -m bench.interruptions` reads docs/results/*.jsonl.gz, runs nothing, and writes the same page each time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.interruptions.comparisons import figures_of, table
from bench.interruptions.report import markdown
from nodes.evaluation.folder import read_results

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = RESULTS / "interruptions.md"
PARTS = {
    "Nine scenarios, on which all claims stand": "interruptions.jsonl.gz",
    "All eighteen scenarios, of earlier code": "interruptions-all.jsonl.gz",
}
"""By title, of which file: the one that counts first."""
SWEEPS = "interruptions-sweeps.jsonl.gz"
_HEAD = """# The interruption experiment: every table

Written by `python -m bench.interruptions` from the results beside this page. [What they say, what is weak, and what has
not been run](../interruptions.md). In brackets stands of how many runs. A *p* of 0.000 is
below 0.0005. "After Holm" is corrected over all twelve. No claim stands on a secondary measure.
"""


def page() -> str:
    """The whole page. Raises UserError where results cannot be read."""
    parts = [_HEAD]
    for title, name in PARTS.items():
        card, results = read_results(RESULTS / name)
        places = {one.name: place for place, one in enumerate(card.variants)}
        results.sort(key=lambda one: (places[one.trial.variant], one.trial.seed))
        parts += [f"\n## {title}\n", f"{len(results)} runs in virtual time, commit {card.git}: `{name}`.\n"]
        parts.append(markdown(results, "cloud"))
        parts.append("")
    _, results = read_results(RESULTS / SWEEPS)
    figures, _, _ = table(figures_of(results), []).partition("\n\n")
    parts += ["\n## Few runs of other things\n", f"Three seeds each; they decide nothing: `{SWEEPS}`.\n", figures, ""]
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(prog="python -m bench.interruptions", description=__doc__).parse_args()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
