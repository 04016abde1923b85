"""`episodes browse`: a read-only page to read, filter and compare episodes; and what all pages of plain HTML share."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlencode

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.evaluation.dimensions import NOT_JUDGED, mean_scores, overall
from nodes.episodes.results.show import transcript, turn_ranges
from nodes.episodes.results.store import Store
from nodes.msgs.episode import Turn
from runtime.errors import UserError
from runtime.operating_system.terminal import signals_of_end

SERVER = "bridges.web.http.forms", "FormServer"
"""Named, not imported: nodes know no bridge, and whoever opens no page needs none."""

Page = Callable[[str, Mapping[str, str], Mapping[str, str] | None], str]
"""A path, its query and the form that was sent (None: nothing was) in; the page's body out. Raises UserError."""


class PageServer(Protocol):
    """Serves a `Page` until it is stopped."""

    url: str

    def serve(self) -> None:
        """Until Ctrl-C, or `stop`."""

    def stop(self) -> None:
        """End it (any thread)."""


def open_page(
    page: Page, port: int, *, title: str, style: Path, takes_forms: bool = False, host: str = "127.0.0.1"
) -> PageServer:
    """The server, bound to `host` ("lan": whoever is in the network). Raises UserError for a taken port."""
    module, name = SERVER
    make: Callable[..., PageServer] = getattr(import_module(module), name)
    look = style.read_text(encoding="utf-8")
    return make(page, host, port, title=title, style=look, takes_forms=takes_forms)


def serve(server: PageServer, *lines: str) -> int:
    """Print the lines, then serve until Ctrl-C; 0."""
    for number in signals_of_end():  # a shell's background job begins with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    try:
        print(*lines, sep="\n", flush=True)
        server.serve()
    except KeyboardInterrupt:  # before the server was up
        pass
    return 0


def turns_html(plan: EpisodePlan, turns: Sequence[Turn]) -> str:
    """The turns to read, a paragraph each."""
    lines = []
    for line in transcript(plan, turns):
        seat, name = next(((seat, name) for seat, name in enumerate(plan.names) if f" {name}" in line), (9, ""))
        told = escape(line).replace(escape(name), f"<b>{escape(name)}</b>", 1) if name else escape(line)
        lines.append(f"<p class='t s{seat % 4 if seat < 9 else 9}'>{told}</p>")
    return "".join(lines)


_STYLE = Path(__file__).with_suffix(".css")
FILTERS = {
    "task": "scenario",
    "agent": "played by",
    "state": "state (done, failed)",
    "end": "how it ended",
    "text": "words that were said",
}
"""What the list can be narrowed by, and what a field is called."""


def browse(asked: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    Store.read(asked.run).close()
    server = make_server(asked.run, asked.port)
    return serve(server, f"reading {asked.run} at {server.url}   (Ctrl-C ends)")


def make_server(path: Path, port: int) -> PageServer:
    """The server of a run's file, bound to loopback. Raises UserError where the port is taken."""

    def page(where: str, query: Mapping[str, str], sent: Mapping[str, str] | None) -> str:
        with Store.read(path) as store:
            return answer(store, where, query)

    return open_page(page, port, title="Episodes", style=_STYLE)


def answer(store: Store, path: str, query: Mapping[str, str]) -> str:
    """The page of a path: the list, the card, one episode, or two side by side. Raises UserError for an unknown one."""
    if path == "/":
        return _list(store, query)
    if path == "/episode":
        return "<p><a href='/'>all episodes</a></p>" + _episode(store, query.get("id", ""))
    if path == "/compare":
        return "<p><a href='/'>all episodes</a></p>" + _compared(store, query.get("a", ""), query.get("b", ""))
    if path == "/card":
        return f"<p><a href='/'>all episodes</a></p><h1>Simulation card</h1>{described(store.card)}"
    raise UserError(f"there is no page {path[:80]!r}; known: /, /card, /episode?id=..., /compare?a=...&b=...")


PAGE = 100
"""So many episodes stand on one page of the list."""

COLUMNS = {
    "episode": "episode",
    "who": "participants",
    "played by": "agents",
    "knowledge": "information",
    "turns": "turns",
    "goal": "",
    "overall": "score",
    "how it ended": "end",
}
"""What the list shows, and what a click on it sorts by; again for the other direction."""


def _list(store: Store, query: Mapping[str, str]) -> str:
    wanted = {key: query[key].strip() for key in FILTERS if query.get(key, "").strip()}
    first = min(int(query["from"]), 10**9) if query.get("from", "").isdecimal() else 0
    sort = query.get("sort", "")
    kept = wanted | ({"sort": sort} if sort else {})
    rows, count = store.matching(wanted, first, PAGE, sort)
    inputs = "".join(
        f"<label>{text}<input name='{key}' value='{escape(query.get(key, ''), quote=True)}'></label>"
        for key, text in FILTERS.items()
    )
    lines = []
    for row in rows:
        scores = mean_scores(store.scores(row.id))
        goals = [None if (found := scores.get(name, {}).get("GOAL")) is None else f"{found:.3g}" for name in row.names]
        alls = [None if (whole := overall(scores.get(name, {}))) is None else f"{whole:.2f}" for name in row.names]
        link = f"<a href='/episode?id={quote(row.id)}'>{escape(row.label)}</a>"
        agents = dict.fromkeys(row.agents)
        count_of_turns = str(len(store.turns(row.id)))
        told = (
            ", ".join(row.names),
            ", ".join(agents),
            row.transparency,
            count_of_turns,
            *(", ".join(one or "\u2013" for one in each) if any(each) else "not judged" for each in (goals, alls)),
            row.reason or row.state,
        )
        picks = "".join(
            f"<label><input type='radio' name='{side}' value='{escape(row.id, quote=True)}' form='compare' required"
            f" aria-label='{side}: {escape(row.id, quote=True)}'>{side}</label> "
            for side in ("a", "b")
        )
        cells = zip(list(COLUMNS)[1:], told, strict=True)
        lines.append(
            f"<tr><td data-is='compare'>{picks}</td><td>{link}</td>"
            + "".join(f"<td data-is='{is_what}'>{escape(cell)}</td>" for is_what, cell in cells)
            + "</tr>"
        )
    heads = "".join(
        f"<th><a href='/?{urlencode(wanted | {'sort': f'-{by}' if sort == by else by})}'>{text}</a>"
        if by
        else f"<th>{text}"
        for text, by in COLUMNS.items()
    )
    columns = f"<thead><tr><th>compare{heads}</tr></thead>"
    hidden = f"<input type='hidden' name='sort' value='{escape(sort, quote=True)}'>" if sort else ""
    form = f"<form class='find'>{inputs}{hidden}<button>find</button></form>"
    compare = "<form id='compare' action='/compare'><button>show a and b side by side</button></form>"
    table = f"<table class='list'>{columns}<tbody>{''.join(lines)}</tbody></table>"
    pages = "".join(
        f"<a href='/?{urlencode(kept | {'from': str(at)})}'>{text}</a> "
        for text, at, is_there in (
            ("before", max(0, first - PAGE), first > 0),
            ("next", first + PAGE, first + PAGE < count),
        )
        if is_there
    )
    shown = f", {first + 1} to {first + len(rows)} shown" if count > len(rows) else ""
    about = "<a href='/card'>what was simulated, with what, and what the figures can say (simulation card)</a>"
    head = f"<h1>Episodes</h1><p>{about}</p>{form}"
    return f"{head}<p>{count} episodes{shown} {pages}</p>{compare}{table}"


def _episode(store: Store, name: str) -> str:
    plan, turns = store.plan(name), store.turns(name)
    return f"{_head(store, plan)}<section>{turns_html(plan, turns)}</section>{_saw(store, plan)}{_scored(store, name)}"


def _compared(store: Store, first: str, second: str) -> str:
    """Two episodes turn by turn: what was done in one turn of each stands in one row."""
    plans = [store.plan(name) for name in (first, second)]
    by_number = []
    for plan in plans:
        rows: dict[int, str] = {}
        for turn in store.turns(plan.id):
            rows[turn.number] = rows.get(turn.number, "") + turns_html(plan, [turn])
        by_number.append(rows)
    numbers = sorted(set(by_number[0]) | set(by_number[1]))
    lines = "".join(
        "<tr>" + "".join(f"<td>{rows.get(number, '')}</td>" for rows in by_number) + "</tr>" for number in numbers
    )
    heads = "".join(f"<th>{_head(store, plan)}</th>" for plan in plans)
    ends = "".join(f"<td>{_saw(store, plan)}{_scored(store, plan.id)}</td>" for plan in plans)
    return f"<table class='pair'><tr>{heads}</tr>{lines}<tr>{ends}</tr></table>"


def _head(store: Store, plan: EpisodePlan) -> str:
    people = "".join(
        f"<p class='t s{seat % 4}'><b>{escape(truth.name)}</b> <small>played by {escape(agent)}</small>"
        f"<br>Goal: {escape(truth.goal)}" + (f"<br>Secret: {escape(truth.secret)}" if truth.secret else "") + "</p>"
        for seat, (truth, agent) in enumerate(zip(plan.truths, plan.agents, strict=True))
    )
    return f"<h1>{escape(plan.codename or plan.scenario)}, seed {plan.seed}</h1><p>{escape(plan.context)}</p>{people}"


def _saw(store: Store, plan: EpisodePlan) -> str:
    """Who was shown what: the turns in each prompt."""
    lines = "".join(
        f"<li>{escape(plan.names[one.seat])}, asked at turn {one.turn}: {turn_ranges(one.held)}</li>"
        for one in store.prompts(plan.id)
    )
    return (
        f"<details><summary>Who saw what (turns that each was shown)</summary><ul>{lines}</ul></details>"
        if lines
        else ""
    )


def _scored(store: Store, name: str) -> str:
    """How it ended, and what each judge gave: a row for each dimension, a column for each person."""
    row = store.episode(name)
    titles = {one["name"]: one["title"] or one["name"] for one in store.spec.get("dimensions", ())}
    tables = []
    for one in store.scores(name):
        found = {(score.dimension, score.name): score for score in one.scores}
        lines = []
        for dimension in dict.fromkeys([*titles, *(score.dimension for score in one.scores)]):
            cells = []
            for person in row.names:
                if (score := found.get((dimension, person))) is not None:
                    number = "not judged" if score.score is None else f"{score.score:g}"
                    why = score.reasoning.removeprefix(NOT_JUDGED)
                    cells.append(
                        f"<td data-is='{escape(person, quote=True)}'><b>{number}</b> <small>{escape(why)}</small>"
                    )
            if cells:
                lines.append(f"<tr><th scope='row'>{escape(titles.get(dimension, dimension))}{''.join(cells)}</tr>")
        heads = "".join(f"<th>{escape(person)}" for person in row.names)
        why = f"<p class='wrong'>This evaluation failed: {escape(one.why)}</p>" if one.state == "failed" else ""
        table = f"<table class='scores'><thead><tr><th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        tables.append(f"<h2>Scores by {escape(one.judge)}</h2>{why}{table if lines else ''}")
    return f"<p>How it ended: {escape(row.reason or row.state)}</p>{''.join(tables)}"


def described(card: Mapping[str, object]) -> str:
    """A card as a list; a text of several lines keeps them."""
    parts = []
    for key, value in card.items():
        if isinstance(value, dict):
            told = described(value)
        elif isinstance(value, list):
            told = "<ul>" + "".join(f"<li>{escape(str(one))}</li>" for one in value) + "</ul>"
        else:
            told = f"<pre>{escape(str(value))}</pre>" if "\n" in str(value) else escape(str(value))
        parts.append(f"<dt><b>{escape(key)}</b></dt><dd>{told}</dd>")
    return f"<dl>{''.join(parts)}</dl>"
