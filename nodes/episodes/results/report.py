"""`episodes report`: tables on the terminal, JSON, and with --out an HTML page with the heat map."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import msgspec

from nodes.episodes.results.browse import described
from nodes.episodes.results.figures import OVERALL, ReportFigures, figures_of
from nodes.episodes.results.show import print_json
from nodes.episodes.results.store import Store
from nodes.statistics.paired import Mean
from runtime.command_line.arguments import check_new
from runtime.command_line.columns import columns, or_dash
from runtime.errors import UserError, choices, writing
from runtime.operating_system.whole_file import write_whole

HTML = "report.html"
HEAT_MAP = "pairs.png"


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
        print_json(figures)
    else:
        print("\n".join(tables(figures)))
    if asked.out is not None:
        write_page(figures, card, asked.out)
    return 0


@dataclass(frozen=True, slots=True)
class Section:
    """A table of a report under its title, a cell's text by row and column; drawn as text and as HTML."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def sections(figures: ReportFigures) -> Iterator[Section]:
    """All tables but those of means, which have intervals below them."""
    if figures.checks:
        columns = list(next(iter(figures.checks.values())))
        rows = [(model, *map(or_dash, row.values())) for model, row in figures.checks.items()]
        yield Section("what rules can tell", ("", *columns), rows)
    if figures.comparisons:
        yield Section(
            "comparisons on the same tasks, seeds and seats",
            ("first", "second", "dimension", "difference", "n", "p", "corrected"),
            [
                (c.first, c.second, c.dimension, f"{c.difference:+.2f}", str(c.pairs), f"{c.p:.4f}", f"{c.p_holm:.4f}")
                for c in figures.comparisons
            ],
            ["(paired permutation test over scenarios, Holm-corrected)"],
        )
    if figures.agreement:
        yield Section(
            "people: Randolph's kappa on 3, 4 and 5 classes, and the share of pairs of raters in one of 5;",
            ("dimension", "items", "kappa 3", "4", "5", "pairs", "judged", "Pearson", "models", "people"),
            [
                (
                    *(one.dimension, str(one.items), *map(or_dash, one.kappa.values()), or_dash(one.agreeing)),
                    *(str(one.matched), *map(or_dash, (one.pearson, *one.pearson_by_player.values()))),
                )
                for one in figures.agreement
            ],
            ["judge against people: Pearson, of all, of seats that models and that people played"],
        )
    if figures.naturalness:
        yield Section(
            "which of two episodes of a task people found the more natural;",
            ("this", "rather than", "share", "from", "to", "times", "other", "neither", "tasks", "p", "words", "words"),
            [
                (
                    *(one.first, one.second, or_dash(one.share), f"{one.low:.2f}", f"{one.high:.2f}", str(one.better)),
                    *(str(one.worse), str(one.neither), str(one.tasks)),
                    *map(or_dash, (one.p, one.first_words, one.second_words)),
                )
                for one in figures.naturalness
            ],
            ["p by flipping the signs of whole tasks; words: in a turn of speech"],
        )


def tables(figures: ReportFigures) -> list[str]:
    """The tables as text."""
    lines = [
        f"{figures.done} of {figures.episodes} episodes done, {figures.failed} failed and in no mean, "
        f"{figures.failed_evaluations} evaluations failed",
        "ends: " + ", ".join(f"{end} {count}" for end, count in figures.ends.items()),
        *figures.left_out,
        "n: so many scenarios",
        "",
    ]
    if figures.is_by_rules:
        lines += ["means by the offline judge over what rules can tell:", "no measure of skill, so without intervals"]
    else:
        judges = ", ".join(figures.judges)
        lines += [f"means by {judges};", "below them, from where to where 95 % of bootstraps over scenarios lie"]
    if OVERALL not in figures.dimensions:
        lines += ["no overall: it is the mean of all seven dimensions"]
    for title, table in _means(figures).items():
        lines += _mean_table(title, table, figures.dimensions)
    for section in sections(figures):
        if section.head[0]:
            lines += ["", section.title, *section.notes]
            told = (", ".join(map(" ".join, zip(section.head, row, strict=True))) for row in section.rows)
            lines += [
                line
                for text in told
                for line in textwrap.wrap(text, 78, initial_indent="  ", subsequent_indent=" " * 4)
            ]
            continue
        for name, *cells in section.rows:
            lines += ["", f"{section.title} of {name}"]
            lines += [f"  {column:24} {cell}" for column, cell in zip(section.head[1:], cells, strict=True)]
    return lines


Table = Mapping[str, Mapping[str, Mean | None]]


def _means(figures: ReportFigures) -> dict[str, Table]:
    """The tables of means by what their rows are."""
    found: dict[str, Table] = {"model": figures.table, "kind of scenario": figures.by_kind}
    return found | ({"hardest fifth of its tasks": figures.hard_table} if figures.hard_table else {})


def _mean_table(title: str, table: Table, dimensions: Sequence[str]) -> list[str]:
    rows = [(title, *dimensions)]
    for name, row in table.items():
        means = [row[dimension] for dimension in dimensions]
        for lead, key in {name: "mean", "  from": "low", "  to": "high", "  n": "count"}.items():
            figures = [getattr(mean, key, None) for mean in means]
            form = "d" if key == "count" else ".2f"
            if lead == name or any(figure is not None for figure in figures):
                rows.append((lead, *(or_dash(figure, form) for figure in figures)))
    return ["", *columns(rows, (title,))]


def _cell(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    bounds = "" if mean.low is None else f" [{mean.low:.2f}, {mean.high:.2f}]"
    return f"{mean.mean:.2f}{bounds} (n = {mean.count})"


def write_page(figures: ReportFigures, card: dict[str, object], folder: Path) -> None:
    """report.html and the heat map in a folder. Raises UserError where it cannot be written."""
    with writing(f"--out {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        draw_pairs(figures, folder / HEAT_MAP)
        write_whole(folder / HTML, page(figures, card).encode())
        write_whole(folder / "figures.json", msgspec.json.format(msgspec.json.encode(figures), indent=1))


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
    axes.set(xlabel="partner", ylabel="model", title=f"{figures.pairs_of}, mean")
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
    told = f"Means by {escape(', '.join(figures.judges))}, with 95 % bootstrap intervals over scenarios."
    if figures.is_by_rules:
        told = "Means by the offline judge over what rules can tell: no measure of skill, so without intervals."
    means = [
        Section(title, ("", *figures.dimensions), [(name, *map(_cell, row.values())) for name, row in table.items()])
        for title, table in _means(figures).items()
    ]
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Episodes</title><style>"
        "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}"
        "table{border-collapse:collapse;margin:1rem 0}td,th{border-bottom:1px solid #ccc;padding:.3rem .7rem;"
        "text-align:right}td:first-child,th:first-child{text-align:left}small{color:#666}img{max-width:100%}</style>",
        f"<h1>Episodes</h1><p>{figures.done} of {figures.episodes} episodes done, {figures.failed} failed, "
        f"{figures.failed_evaluations} evaluations failed. {told}</p><h2>Model and partner</h2>",
        f"<img src='{HEAT_MAP}' alt='{figures.pairs_of} by model and partner'>",
        *map(_html, (*means, *sections(figures))),
        f"<h2>Simulation card</h2>{described(card)}</html>",
    ]
    return "\n".join(parts)


def _html(section: Section) -> str:
    title = f"{section.title[:1].upper()}{section.title[1:]}"
    cells = "".join(f"<th>{escape(text)}</th>" for text in section.head)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in section.rows)
    notes = f"<p>{escape(' '.join(section.notes))}</p>" if section.notes else ""
    return f"<h2>{escape(title)}</h2>{notes}<table><tr>{cells}</tr>{body}</table>"
