"""`episodes browse`: a read-only page on loopback to read, filter and compare the episodes of a run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from html import escape
from http.server import HTTPServer
from pathlib import Path
from urllib.parse import quote, urlencode

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.evaluation.dimensions import mean_scores, overall
from nodes.episodes.results import local_page
from nodes.episodes.results.local_page import serve
from nodes.episodes.results.show import transcript, turn_ranges
from nodes.episodes.results.store import Store
from runtime.errors import UserError

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:1.5rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3rem .6rem;text-align:left;"
    "vertical-align:top}table.pair>tbody>tr>*{width:50%;white-space:normal;font-weight:normal}"
    "pre{white-space:pre-wrap}p.t{margin:.3rem 0}"
    ".wide{overflow-x:auto}td:first-child{white-space:nowrap}"
    "form{margin:1rem 0}input{margin-right:.6rem;padding:.2rem}small{color:#666}"
)
FILTERS = ("task", "agent", "state", "end", "text")


def browse(path: Path, port: int) -> int:
    """Serve until Ctrl-C."""
    Store.read(path).close()
    server = make_server(path, port)
    return serve(server, f"reading {path} at http://127.0.0.1:{server.server_address[1]}/   (Ctrl-C ends)")


def make_server(path: Path, port: int) -> HTTPServer:
    """The server of a run's file, bound to loopback. Raises UserError where the port is taken."""

    def page(where: str, query: Mapping[str, str], sent: Mapping[str, str] | None) -> str:
        with Store.read(path) as store:
            return answer(store, where, query)

    return local_page.make_server(page, port, title="Episodes", style=_STYLE)


def serve_in_thread(server: HTTPServer) -> threading.Thread:
    """Serve beside the caller, until `server.shutdown()`."""
    thread = threading.Thread(target=server.serve_forever, name="browse")
    thread.start()
    return thread


def answer(store: Store, path: str, query: Mapping[str, str]) -> str:
    """The page of a path: the list, the card, one episode, or two side by side. Raises UserError for an unknown one."""
    if path == "/":
        return _list(store, query)
    if path == "/episode":
        return "<p><a href='/'>all episodes</a></p>" + _episode(store, query.get("id", ""))
    if path == "/compare":
        return "<p><a href='/'>all episodes</a></p>" + _compared(store, query.get("a", ""), query.get("b", ""))
    if path == "/card":
        return f"<p><a href='/'>all episodes</a></p><h1>Simulation card</h1>{_described(store.card)}"
    raise UserError(f"there is no page {path[:80]!r}; known: /, /card, /episode?id=..., /compare?a=...&b=...")


PAGE = 100
"""So many episodes stand on one page of the list."""

COLUMNS = {
    "episode": "episode",
    "participants": "participants",
    "agents": "agents",
    "information": "information",
    "turns": "turns",
    "overall": "score",
    "end": "end",
}
"""What the list shows, and what a click on it sorts by; again for the other direction."""


def _list(store: Store, query: Mapping[str, str]) -> str:
    wanted = {key: query[key].strip() for key in FILTERS if query.get(key, "").strip()}
    first = min(int(query["from"]), 10**9) if query.get("from", "").isdecimal() else 0
    sort = query.get("sort", "")
    kept = wanted | ({"sort": sort} if sort else {})
    rows, count = store.matching(wanted, first, PAGE, sort)
    inputs = "".join(
        f"<input name='{key}' placeholder='{key}' value='{escape(query.get(key, ''), quote=True)}'>" for key in FILTERS
    )
    lines = []
    for row in rows:
        scores = mean_scores(store.scores(row.id))
        alls = ", ".join(
            ("-" if (whole := overall(scores[name])) is None else f"{whole:.2f}")
            for name in row.names
            if name in scores
        )
        link = f"<a href='/episode?id={quote(row.id)}'>{escape(row.label)}</a>"
        agents = dict.fromkeys(row.agents)
        count_of_turns = str(len(store.turns(row.id)))
        told = (
            ", ".join(row.names),
            ", ".join(agents),
            row.transparency,
            count_of_turns,
            alls,
            row.reason or row.state,
        )
        picks = "".join(
            f"<input type='radio' name='{side}' value='{escape(row.id, quote=True)}' form='compare' required"
            f" aria-label='{side}: {escape(row.id, quote=True)}'>"
            for side in ("a", "b")
        )
        lines.append(
            f"<tr><td>{picks}</td><td>{link}</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in told) + "</tr>"
        )
    heads = "".join(
        f"<th><a href='/?{urlencode(wanted | {'sort': f'-{by}' if sort == by else by})}'>{text}</a>"
        for text, by in COLUMNS.items()
    )
    columns = f"<tr><th>a b{heads}</tr>"
    hidden = f"<input type='hidden' name='sort' value='{escape(sort, quote=True)}'>" if sort else ""
    form = f"<form>{inputs}{hidden}<button>filter</button></form>"
    compare = "<form id='compare' action='/compare'><button>compare a and b side by side</button></form>"
    table = f"<div class='wide'><table>{columns}{''.join(lines)}</table></div>"
    pages = "".join(
        f"<a href='/?{urlencode(kept | {'from': str(at)})}'>{text}</a> "
        for text, at, is_there in (
            ("before", max(0, first - PAGE), first > 0),
            ("next", first + PAGE, first + PAGE < count),
        )
        if is_there
    )
    shown = f", {first + 1} to {first + len(rows)} shown" if count > len(rows) else ""
    head = f"<h1>Episodes</h1><p><a href='/card'>simulation card</a></p>{form}"
    return f"{head}<p>{count} episodes{shown} {pages}</p>{compare}{table}"


def _episode(store: Store, name: str) -> str:
    plan, turns = store.plan(name), store.turns(name)
    text = "".join(f"<p class='t'>{escape(line)}</p>" for line in transcript(plan, turns))
    return f"{_head(store, plan)}<hr>{text}{_saw(store, plan)}{_scored(store, name)}"


def _compared(store: Store, first: str, second: str) -> str:
    """Two episodes turn by turn: what was done in one turn of each stands in one row."""
    plans = [store.plan(name) for name in (first, second)]
    by_number = []
    for plan in plans:
        rows: dict[int, list[str]] = {}
        turns = store.turns(plan.id)
        for turn in turns:
            rows.setdefault(turn.number, []).extend(line for line in transcript(plan, [turn]))
        by_number.append(rows)
    numbers = sorted(set(by_number[0]) | set(by_number[1]))
    lines = "".join(
        "<tr>" + "".join(f"<td>{'<br>'.join(map(escape, rows.get(number, [])))}</td>" for rows in by_number) + "</tr>"
        for number in numbers
    )
    heads = "".join(f"<th>{_head(store, plan)}</th>" for plan in plans)
    ends = "".join(f"<td>{_saw(store, plan)}{_scored(store, plan.id)}</td>" for plan in plans)
    return f"<table class='pair'><tr>{heads}</tr>{lines}<tr>{ends}</tr></table>"


def _head(store: Store, plan: EpisodePlan) -> str:
    people = "".join(
        f"<p><b>{escape(truth.name)}</b> <small>{escape(agent)}</small><br>goal: {escape(truth.goal)}"
        + (f"<br>secret: {escape(truth.secret)}" if truth.secret else "")
        + "</p>"
        for truth, agent in zip(plan.truths, plan.agents, strict=True)
    )
    return f"<h2>{escape(plan.id)}</h2><p>{escape(plan.context)}</p>{people}"


def _saw(store: Store, plan: EpisodePlan) -> str:
    """Who was shown what: the turns in each prompt."""
    lines = "".join(
        f"<li>{escape(plan.names[one.seat])}, asked at turn {one.turn}: {turn_ranges(one.held)}</li>"
        for one in store.prompts(plan.id)
    )
    return f"<details><summary>who saw what</summary><ul>{lines}</ul></details>" if lines else ""


def _scored(store: Store, name: str) -> str:
    scores = "".join(
        f"<tr><td>{escape(one.judge)}<td>{escape(score.name)}<td>{escape(score.dimension)}<td>{score.score}"
        f"<td><small>{escape(score.reasoning)}</small></tr>"
        for one in store.scores(name)
        for score in one.scores
    )
    row = store.episode(name)
    return f"<p>End: {escape(row.reason or row.state)}</p><table>{scores}</table>"


def _described(card: Mapping[str, object]) -> str:
    """A card as a list; a text of several lines keeps them."""
    parts = []
    for key, value in card.items():
        if isinstance(value, dict):
            told = _described(value)
        elif isinstance(value, list):
            told = "<ul>" + "".join(f"<li>{escape(str(one))}</li>" for one in value) + "</ul>"
        else:
            told = f"<pre>{escape(str(value))}</pre>" if "\n" in str(value) else escape(str(value))
        parts.append(f"<dt><b>{escape(key)}</b></dt><dd>{told}</dd>")
    return f"<dl>{''.join(parts)}</dl>"
