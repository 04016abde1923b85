"""`episodes report`: tables on the terminal, JSON, and with --out an HTML page with the heat map."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

from nodes.episodes.results.estimates import Mean
from nodes.episodes.results.figures import OVERALL, ReportFigures, figures_of
from nodes.episodes.results.store import Store
from runtime.command_line.arguments import check_new
from runtime.errors import UserError, choices
from runtime.operating_system.whole_file import write_whole

HTML = "report.html"
HEAT_MAP = "pairs.png"
NAME_WIDTH = 22
_PEARSON = ("Pearson with judges", "where models played", "where people played")


def report(asked: argparse.Namespace) -> int:
    """Print the tables; with --out also write the page, into a new folder."""
    if asked.out is not None:
        check_new(asked.out)
    with Store.read(asked.run) as store:
        figures = figures_of(store, asked.judge)
        card = store.card
        judges = store.judges() if not figures.models else []
    if judges and asked.judge:
        raise UserError(f"{asked.run}: no scores by judge {asked.judge!r}; there are those by {choices(judges)}")
    if not figures.models:
        raise UserError(f"{asked.run}: no episode is done and judged yet; polyrhythm episodes score judges them")
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(figures), indent=1).decode())
    else:
        print("\n".join(tables(figures)))
    if asked.out is not None:
        write_page(figures, card, asked.out)
    return 0


def tables(figures: ReportFigures) -> list[str]:
    """The tables as text."""
    lines = [
        f"{figures.done} of {figures.episodes} episodes done, {figures.failed} failed and in no mean, "
        f"{figures.failed_evaluations} evaluations failed",
        "ends: " + ", ".join(f"{end} {count}" for end, count in figures.ends.items()),
        *figures.left_out,
        "n: so many scenarios",
    ]
    if figures.is_by_rules:
        lines += [
            "",
            "means by the offline judge over what rules can tell:",
            "no measure of skill, so without intervals",
        ]
    else:
        lines += [
            "",
            f"means by {', '.join(figures.judges)};",
            "below them, from where to where 95 % of bootstraps over scenarios lie",
        ]
    if OVERALL not in figures.dimensions:
        lines += ["no overall: it is the mean of all seven dimensions"]
    lines += _mean_table("model", figures.table, figures.dimensions)
    lines += _mean_table("kind of scenario", figures.by_kind, figures.dimensions)
    if figures.hard_table:
        lines += _mean_table("hardest fifth of its tasks", figures.hard_table, figures.dimensions)
    columns = list(next(iter(figures.checks.values()), {}))
    for model, row in figures.checks.items():
        lines += ["", f"what rules can tell of {model}"]
        lines += [f"  {column:24} {_or_dash(row[column])}" for column in columns]
    if figures.comparisons:
        lines += [
            "",
            "comparisons on the same tasks, seeds and seats",
            "(paired permutation test over scenarios, Holm-corrected)",
        ]
        lines += [
            f"  {one.first} - {one.second}, {one.dimension}: {one.difference:+.2f} "
            f"(n = {one.pairs}, p = {one.p:.4f}, corrected {one.p_holm:.4f})"
            for one in figures.comparisons
        ]
    if figures.agreement:
        lines += [
            "",
            "people: Randolph's kappa on 3, 4 and 5 classes, and the share of pairs of raters in one of 5;",
            "judge against people: Pearson, of all, of seats that models and that people played",
        ]
        lines += [
            f"  {one.dimension:5} {one.items:4} items, kappa {' '.join(map(_or_dash, one.kappa.values()))}, "
            f"pairs {_or_dash(one.agreeing)}; {one.matched:4} judged, Pearson {_or_dash(one.pearson)}, "
            f"models {_or_dash(one.pearson_by_player['models'])}, people {_or_dash(one.pearson_by_player['people'])}"
            for one in figures.agreement
        ]
    if figures.naturalness:
        lines += [
            "",
            "which of two episodes of a task people found the more natural;",
            "p by flipping the signs of whole tasks; words: in a turn of speech",
        ]
    for one in figures.naturalness:
        share = "-" if one.share is None else f"{one.share:.2f} [{one.low:.2f}, {one.high:.2f}]"
        lines += [
            f"  {one.first} rather than {one.second}: {share}",
            f"    {one.better} times, the other {one.worse}, no difference {one.neither}; {one.tasks} tasks, "
            f"p {_or_dash(one.p)}; words {_or_dash(one.first_words)}, {_or_dash(one.second_words)}",
        ]
    return lines


def _mean_table(title: str, table: dict[str, dict[str, Mean | None]], dimensions: tuple[str, ...]) -> list[str]:
    wide = max(NAME_WIDTH, *(len(name) for name in (title, *table)))
    widths = [max(5, len(dimension)) for dimension in dimensions]
    lines = [
        "",
        " ".join((f"{title:{wide}}", *(f"{one:>{width}}" for one, width in zip(dimensions, widths, strict=True)))),
    ]
    for name, row in table.items():
        means = [row[dimension] for dimension in dimensions]
        for lead, figures, form in (
            (name, [None if mean is None else mean.mean for mean in means], ".2f"),
            ("  from", [None if mean is None else mean.low for mean in means], ".2f"),
            ("  to", [None if mean is None else mean.high for mean in means], ".2f"),
            ("  n", [None if mean is None else mean.count for mean in means], "d"),
        ):
            if lead == name or any(figure is not None for figure in figures):
                cells = (
                    f"{'-' if figure is None else format(figure, form):>{width}}"
                    for figure, width in zip(figures, widths, strict=True)
                )
                lines.append(" ".join((f"{lead:{wide}}", *cells)))
    return lines


def _cell(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    if mean.low is None or mean.high is None:
        return f"{mean.mean:.2f} (n = {mean.count})"
    return f"{mean.mean:.2f} [{mean.low:.2f}, {mean.high:.2f}] (n = {mean.count})"


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def write_page(figures: ReportFigures, card: dict[str, object], folder: Path) -> None:
    """report.html and the heat map in a folder. Raises UserError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draw_pairs(figures, folder / HEAT_MAP)
        write_whole(folder / HTML, page(figures, card).encode())
        write_whole(folder / "figures.json", msgspec.json.format(msgspec.json.encode(figures), indent=1))
    except OSError as problem:
        raise UserError(f"--out {folder}: cannot be written: {problem.strerror}") from problem


def draw_pairs(figures: ReportFigures, path: Path) -> None:
    """Model against partner, coloured by the overall score."""
    from nodes.plotting.figure import Figure

    partners = list(next(iter(figures.pairs.values()), {}))
    numbers = [[float("nan") if value is None else value for value in row.values()] for row in figures.pairs.values()]
    picture = Figure(figsize=(2.5 + 1.2 * len(partners), 1.8 + 0.7 * len(figures.models)), layout="constrained")
    axes = picture.add_subplot()
    image = axes.imshow(numbers, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(partners)), shortened(partners), rotation=30, ha="right")
    axes.set_yticks(range(len(figures.models)), shortened(figures.models))
    axes.set_xlabel("partner")
    axes.set_ylabel("model")
    axes.set_title(f"{figures.pairs_of}, mean")
    for y, row in enumerate(numbers):
        for x, value in enumerate(row):
            if value == value:
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", color="white", fontsize=9)
    picture.colorbar(image, ax=axes)
    picture.savefig(path, dpi=120)


def shortened(names: Sequence[str], most: int = 28) -> list[str]:
    """Each name in at most so many characters, its middle left out; two that look alike then are numbered."""
    half = most // 2 - 2
    short = [name if len(name) <= most else f"{name[:half]}…{name[-half:]}" for name in names]
    return [text if short.count(text) == 1 else f"{text} {number}" for number, text in enumerate(short, start=1)]


def page(figures: ReportFigures, card: dict[str, object]) -> str:
    """The report as one HTML page; every text is escaped."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Episodes</title><style>"
        "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}"
        "table{border-collapse:collapse;margin:1rem 0}td,th{border-bottom:1px solid #ccc;padding:.3rem .7rem;"
        "text-align:right}td:first-child,th:first-child{text-align:left}small{color:#666}img{max-width:100%}</style>",
        "<h1>Episodes</h1>",
        f"<p>{figures.done} of {figures.episodes} episodes done, {figures.failed} failed, "
        f"{figures.failed_evaluations} evaluations failed. {_intervals(figures)}</p>",
        _html_means("Models", figures.table, figures.dimensions),
        "<h2>Model and partner</h2>",
        f"<img src='{HEAT_MAP}' alt='{figures.pairs_of} by model and partner'>",
        _html_means("Kinds of scenario", figures.by_kind, figures.dimensions),
        _html_means("The hardest fifth of each model's tasks", figures.hard_table, figures.dimensions)
        if figures.hard_table
        else "",
        "<h2>Comparisons</h2>" if figures.comparisons else "",
        _html_rows(
            ("first", "second", "dimension", "difference", "pairs", "p", "corrected"),
            [
                (c.first, c.second, c.dimension, f"{c.difference:+.2f}", str(c.pairs), f"{c.p:.4f}", f"{c.p_holm:.4f}")
                for c in figures.comparisons
            ],
        ),
        "<h2>What rules can tell</h2>" if figures.checks else "",
        _html_rows(
            ("", *next(iter(figures.checks.values()), {})),
            [(model, *map(_or_dash, row.values())) for model, row in figures.checks.items()],
        ),
        "<h2>People</h2>" if figures.agreement or figures.naturalness else "",
        _html_rows(
            ("dimension", "items", "kappa, 3 classes", "4", "5", "pairs that agree", "judged", *_PEARSON),
            [
                (
                    *(one.dimension, str(one.items), *map(_or_dash, one.kappa.values()), _or_dash(one.agreeing)),
                    *(str(one.matched), *map(_or_dash, (one.pearson, *one.pearson_by_player.values()))),
                )
                for one in figures.agreement
            ],
        ),
        _html_rows(
            ("found more natural", "than", "times", "the other", "no difference", "tasks", "p", "words", "words"),
            [
                (
                    *(one.first, one.second, str(one.better), str(one.worse), str(one.neither), str(one.tasks)),
                    *map(_or_dash, (one.p, one.first_words, one.second_words)),
                )
                for one in figures.naturalness
            ],
        ),
        "<h2>Simulation card</h2><dl>",
        *(f"<dt>{escape(key)}</dt><dd>{escape(_plain(value))}</dd>" for key, value in card.items()),
        "</dl></html>",
    ]
    return "\n".join(part for part in parts if part)


def _intervals(figures: ReportFigures) -> str:
    if figures.is_by_rules:
        return "Means by the offline judge over what rules can tell: no measure of skill, so without intervals."
    return f"Means by {escape(', '.join(figures.judges))}, with 95 % bootstrap intervals over scenarios."


def _html_means(title: str, table: dict[str, dict[str, Mean | None]], dimensions: tuple[str, ...]) -> str:
    rows = [(name, *(_cell(row[dimension]) for dimension in dimensions)) for name, row in table.items()]
    return f"<h2>{escape(title)}</h2>" + _html_rows(("", *dimensions), rows)


def _html_rows(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{body}</table>"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_plain(part)}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(_plain(part) for part in value)
    return str(value)
