"""`EvaluationLog`: an evaluation as one JSON file for other tools, and as one HTML file for people with all in it.

Fields are added and never change their meaning within a version.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Literal

import msgspec

from nodes.evaluation.figures import VariantComparison, VariantFigures
from nodes.evaluation.grades import Grade
from nodes.evaluation.running import PICTURES
from nodes.evaluation.table import sentences, table
from nodes.evaluation.trials import Card, Result
from runtime.operating_system.whole_file import write_whole

SCHEMA, VERSION = "polyrhythm.evaluation", 1
LOG, PAGE = "evaluation.json", "evaluation.html"
MOST_PICTURES = 400
"""On a page, from the first trial on; a picture has 20 to 40 kB."""

Outcome = Literal["success", "failure", "unjudged", "broken"]
STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; }
h1 { font-size: 20px; margin: 0 0 4px; } pre { font: 12px/1.5 ui-monospace, monospace; overflow-x: auto; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 16px; }
article { border: 1px solid #8886; border-left: 6px solid #888; border-radius: 6px; padding: 10px 12px; min-width: 0; }
article.success { border-left-color: #2a7f4f; } article.failure { border-left-color: #b3261e; }
article.broken { border-left-color: #8a5a00; }
article h2 { font-size: 15px; margin: 0 0 6px; overflow-wrap: anywhere; } article img { width: 100%; height: auto; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 12px; margin: 6px 0; } dd { margin: 0; }
dd, p { overflow-wrap: anywhere; } body > img { max-width: 100%; background: #fff; }
"""


class LoggedVariant(msgspec.Struct, frozen=True):
    """What was tried: changes of the launch file, and the model files that its nodes name, with their SHA-256."""

    name: str
    changes: tuple[str, ...]
    added: tuple[str, ...]
    without: tuple[str, ...]
    models: Mapping[str, Mapping[str, str]]


class LoggedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """How one run went by the graph's own score, and apart from it what graders say."""

    name: str
    variant: str
    task: str
    seed: int
    outcome: Outcome
    reason: str
    duration_s: float
    took_s: float
    measures: Mapping[str, float | str | bool | None]
    words: tuple[tuple[float, str, str], ...]  # s of the run, speaker, text
    picture: str  # a path beside this file; "" where there is none
    recording: str
    grades: tuple[Grade, ...]


class EvaluationLog(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    schema: str = SCHEMA
    version: int = VERSION
    status: Literal["complete", "stopped"]
    written: str  # ISO 8601
    launch_file: str
    launch_sha256: str
    launch: str  # its text
    commit: str
    versions: Mapping[str, str]
    is_virtual: bool
    variants: tuple[LoggedVariant, ...]
    trials: tuple[LoggedTrial, ...]
    figures: Sequence[VariantFigures]
    comparisons: Sequence[VariantComparison]


def outcome_of(result: Result) -> Outcome:
    """In one word."""
    if result.has_broken:
        return "broken"
    return {True: "success", False: "failure", None: "unjudged"}[result.is_success]  # type: ignore[return-value]  # the table's words


def logged_trials(results: Iterable[Result], grades: Iterable[Grade], out: Path) -> tuple[LoggedTrial, ...]:
    """The results with the grades of each, and the pictures that there are in `out`."""
    by_trial: dict[str, list[Grade]] = {}
    for grade in grades:
        by_trial.setdefault(grade.trial, []).append(grade)
    found = []
    for result in results:
        trial, picture = result.trial, f"{PICTURES}/{result.trial.name}.jpg"
        found.append(
            LoggedTrial(
                name=trial.name, variant=trial.variant, task=trial.task, seed=trial.seed, outcome=outcome_of(result),
                reason=result.reason, duration_s=result.duration_s, took_s=result.took_s, measures=result.measures,
                words=result.words, picture=picture if (out / picture).is_file() else "", recording=result.recording,
                grades=tuple(by_trial.get(trial.name, ())),
            )
        )  # fmt: skip
    return tuple(found)


def write_log(out: Path, log: EvaluationLog, own: Sequence[str], chart: Path) -> list[Path]:
    """Write both files into `out`; `own` are the user's measures, `chart` shows the figures. Raises OSError."""
    write_whole(out / LOG, msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n")
    write_whole(out / PAGE, page(log, own, out, chart).encode())
    return [out / LOG, out / PAGE]


def page(log: EvaluationLog, own: Sequence[str], out: Path, chart: Path) -> str:
    """The page: nothing is loaded, and nothing in it runs."""
    title = f"{Path(log.launch_file).stem}: {len(log.trials)} trials"
    facts = {
        "launch file": f"{log.launch_file} (sha256 {log.launch_sha256[:12]}…)",
        "commit": log.commit or "unknown",
        "written": log.written + ("" if log.status == "complete" else ", before all trials were through"),
        **{
            f"{one.name}: {name}": f"{told['path']} (sha256 {told['sha256'][:12]}…)"
            for one in log.variants
            for name, told in one.models.items()
        },
    }
    cards = "".join(_card(trial, out, has_picture=number < MOST_PICTURES) for number, trial in enumerate(log.trials))
    compared = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences(log.comparisons))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>{_listed(facts)}"
        f"<pre>{escape(table(log.figures, own))}</pre>{compared}{_image(chart, 'success and times')}"
        f"<main>{cards}</main></body></html>\n"
    )


def _card(trial: LoggedTrial, out: Path, *, has_picture: bool) -> str:
    facts = {"outcome": trial.outcome, "reason": trial.reason, "time": f"{trial.duration_s:.1f} s"}
    facts |= {
        name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in trial.measures.items()
    }
    facts |= {f"grade by {one.by}": f"{one.grade}. {one.note}".rstrip(". ") for one in trial.grades}
    facts |= {"recording": trial.recording} if trial.recording else {}
    spoken = "".join(f"<dt>{at_s:.1f} s {escape(who)}</dt><dd>{escape(text)}</dd>" for at_s, who, text in trial.words)
    words = f"<details><summary>words ({len(trial.words)})</summary><dl>{spoken}</dl></details>"
    image = _image(out / trial.picture, f"the end of {trial.name}") if trial.picture and has_picture else ""
    return (
        f'<article class="{trial.outcome}"><h2>{escape(trial.name)}</h2>{image}{_listed(facts)}'
        f"{words if trial.words else ''}</article>"
    )


def _listed(facts: Mapping[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items()) + "</dl>"


def _image(file: Path, what: str) -> str:
    if not file.is_file():
        return ""
    kind = "jpeg" if file.suffix == ".jpg" else "png"
    data = base64.b64encode(file.read_bytes()).decode()
    return f'<img alt="{escape(what)}" src="data:image/{kind};base64,{data}">'


def variants_of(card: Card, models: Sequence[Mapping[str, Mapping[str, str]]]) -> tuple[LoggedVariant, ...]:
    """The card's variants, each with its models."""
    return tuple(
        LoggedVariant(one.name, one.changes, one.added, one.without, found)
        for one, found in zip(card.variants, models, strict=True)
    )
