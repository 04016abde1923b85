"""The graph of a launch file as an HTML page: nodes by process, topics with type, kind and rate, seats, budgets.

It is one file with its drawing and script inside; nothing is loaded. Whoever points at a node or a topic sees its edges
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from runtime.command_line.arguments import check_new
from runtime.errors import UserError, writing
from runtime.launch.checks.response_times import WorstCases
from runtime.launch.file import Launch, path_accounts
from runtime.launch.graph import Topic
from runtime.launch.tables.seats_table import holders_of
from runtime.message import Message
from runtime.node import Timer, handlers_of

NODE_PX, TOPIC_PX, BETWEEN_PX, ROW_PX, TOP_PX = 330, 430, 300, 30, 40
"""Widths of a node, a topic and of what lies between; the height of a row, and of what stands above the first."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --box: #f2f5f8; --line: #cfd6de; --paper: #fff;
  --out: #1f6fb2; --in: #b2631f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa6b5; --box: #1d2530; --line: #3a4656;
  --paper: #12171e; --out: #6db3f2; --in: #f0a868; } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; color: var(--ink); background: var(--paper); }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 26px 0 6px; }
p { color: var(--soft); margin: 0; }
svg text { font: 13px system-ui, sans-serif; fill: var(--ink); } svg .soft { fill: var(--soft); font-size: 12px; }
svg rect { fill: var(--box); stroke: var(--line); } svg .process { fill: none; stroke-dasharray: 4 3; }
svg path { fill: none; stroke: var(--out); stroke-width: 1.5; opacity: .55; }
svg path.in { stroke: var(--in); stroke-dasharray: 6 3; }
svg.chosen path, svg.chosen [data-key] { opacity: .08; } svg.chosen path.on, svg.chosen [data-key].on { opacity: 1; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: 2px 14px 2px 0; }
th { color: var(--soft); font-weight: 600; } pre { font: 12px/1.5 ui-monospace, monospace; overflow-x: auto; }
"""

SCRIPT = """
const drawing = document.querySelector("svg"), paths = [...drawing.querySelectorAll("path")];
const things = [...drawing.querySelectorAll("[data-key]")];
function choose(key) {
  const on = new Set(key ? [key] : []);
  for (const path of paths) {
    const touches = key === path.dataset.node || key === path.dataset.topic;
    path.classList.toggle("on", touches);
    if (touches) { on.add(path.dataset.node); on.add(path.dataset.topic); }
  }
  for (const thing of things) thing.classList.toggle("on", on.has(thing.dataset.key));
  drawing.classList.toggle("chosen", Boolean(key));
}
for (const thing of things) {
  for (const event of ["mouseenter", "focus"]) thing.addEventListener(event, () => choose(thing.dataset.key));
  for (const event of ["mouseleave", "blur"]) thing.addEventListener(event, () => choose(""));
}
"""


def write_page(launch: Launch, out: Path) -> None:
    """Write the page to a new file. Raises UserError where one is there already, or it cannot be written."""
    text = page(launch)
    check_new(out, "--html")
    with writing(f"--html {out}"), out.open("x", encoding="utf-8") as file:
        file.write(text)


def page(launch: Launch) -> str:
    """The page as HTML."""
    name = escape(launch.path.name)
    rates = _rates(launch)
    topics = _in_order(launch)
    counts = f"{len(launch.graph.nodes)} nodes in {len(launch.processes)} processes, {len(topics)} topics"
    parts = [
        f"<h1>{name}</h1><p>{counts}. Solid: published; dashed: read. Point at a node or a topic to see its edges.</p>",
        _drawing(launch, topics, rates),
        "<h2>Topics</h2>",
        _table(
            ("topic", "type", "kind", "rate", "from", "to"),
            [
                (
                    topic.name,
                    _message(topic).__name__,
                    _message(topic).message_kind,
                    rates[topic.name],
                    ", ".join(dict.fromkeys(end.node for end in topic.publishers)),
                    ", ".join(dict.fromkeys(end.node for end in topic.subscribers)),
                )
                for topic in sorted(topics, key=lambda topic: topic.name)
            ],
        ),
    ]
    if launch.seats:
        rows = [(seat, table.holder, ", ".join(table.shadows)) for seat, table in launch.seats.items()]
        parts += ["<h2>Seats</h2>", _table(("seat", "holder", "shadows"), rows)]
    if launch.graph.alignments:
        aligned = [(name, one.words()) for name, one in launch.graph.alignments.items()]
        parts += ["<h2>Inputs of one moment</h2>", _table(("handler", "reads"), aligned)]
    lines = [line for account in path_accounts(launch) for line in account.lines()]
    limits = [
        f"model {node}: " + ", ".join(f"{key} {value:g}" for key, value in _limits(budget))
        for node, budget in launch.budgets.models.items()
    ]
    if lines or limits:
        parts += ["<h2>Budgets</h2>", f"<pre>{escape(chr(10).join([*lines, *limits]))}</pre>"]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body>{''.join(parts)}<script>{SCRIPT}</script></body></html>\n"
    )


def _limits(budget: object) -> list[tuple[str, float]]:
    """What a model may spend, where that is limited."""
    found = [(key, getattr(budget, key)) for key in ("calls", "tokens", "money")]
    return [(key, value) for key, value in found if value]


def _message(topic: Topic) -> type[Message]:
    return (topic.publishers + topic.subscribers)[0].port.message


def _rates(launch: Launch) -> dict[str, str]:
    """How often something comes on each topic, as far as the code shows: by a timer, or with another topic."""
    try:
        times = WorstCases(launch.graph, frozenset(holders_of(launch.seats).values()), launch.links)
    except UserError:  # a node that cannot be built here
        return dict.fromkeys(launch.graph.topics, "")
    rates = {}
    for name in launch.graph.topics:
        words: list[str] = []
        for node in times.publishers(name):
            if not times.is_seen_to_publish(node, name):
                continue
            for job in times.publishing(node, name):
                if isinstance(job.handler, Timer) and job.period_ns:
                    words.append(f"{1e9 / job.period_ns:.4g} Hz")
                elif job.topic:
                    words.append(f"with {job.topic}")
        rates[name] = ", ".join(dict.fromkeys(words))
    return rates


def _in_order(launch: Launch) -> list[Topic]:
    """The topics, each as close as may be to the nodes that it connects, so that few edges cross."""
    place = {
        spec.name: number for number, spec in enumerate(spec for group in launch.processes.values() for spec in group)
    }

    def middle(topic: Topic) -> tuple[float, str]:
        places = [place.get(end.node, 0) for end in topic.publishers + topic.subscribers]
        return sum(places) / len(places), topic.name

    return sorted(launch.graph.topics.values(), key=middle)


def _drawing(launch: Launch, topics: Sequence[Topic], rates: dict[str, str]) -> str:
    """Nodes on the left in the boxes of their processes, topics on the right."""
    drawn: list[str] = []
    node_y: dict[str, float] = {}
    y = float(TOP_PX)
    tall = sum(ROW_PX * 0.8 + len(specs) * (ROW_PX + 6) for specs in launch.processes.values())
    gap = max(12.0, (len(topics) * (ROW_PX + 6) - tall) / max(1, len(launch.processes)))  # as tall as the topics
    for process, specs in launch.processes.items():
        top = y
        y += ROW_PX * 0.8
        drawn.append(f'<text class="soft" x="8" y="{top + 16:g}">process {escape(process)}</text>')
        for spec in specs:
            node_y[spec.name] = y + ROW_PX / 2
            timers = [one for one in handlers_of(spec.cls) if isinstance(one, Timer)]
            facts = [spec.cls.__name__, *(f"{one.name} {spec.hz.get(one.name, one.hz):g} Hz" for one in timers)]
            facts += [f"seat {spec.cls.seat}"] if spec.cls.seat else []
            drawn.append(_box(12, y, NODE_PX - 24, f"node {spec.name}", spec.name, "; ".join(facts)))
            y += ROW_PX + 6
        drawn.append(f'<rect class="process" x="4" y="{top:g}" width="{NODE_PX - 8}" height="{y - top:g}" rx="6"/>')
        y += gap
    left = NODE_PX + BETWEEN_PX
    step = max(ROW_PX + 6.0, (y - TOP_PX) / max(1, len(topics)))
    edges: list[str] = []
    for number, topic in enumerate(topics):
        topic_y = TOP_PX + step * number
        message = _message(topic)
        facts = [message.__name__, message.message_kind, rates[topic.name]]
        drawn.append(_box(left, topic_y, TOPIC_PX, f"topic {topic.name}", topic.name, ", ".join(filter(None, facts))))
        for way, ends in (("out", topic.publishers), ("in", topic.subscribers)):
            for node in dict.fromkeys(end.node for end in ends):
                if node in node_y:  # those of another host are not drawn
                    edges.append(_edge(way, node, topic.name, node_y[node], topic_y + ROW_PX / 2))
    height = max(y, TOP_PX + step * len(topics)) + 10
    width = left + TOPIC_PX + 8
    return (
        f'<svg viewBox="0 0 {width} {height:g}" width="{width}" role="img" aria-label="nodes and topics">'
        f"{''.join(edges)}{''.join(drawn)}</svg>"
    )


def _box(x: float, y: float, width: float, key: str, name: str, facts: str) -> str:
    """A node or a topic; what does not fit its width is in its title."""
    most = max(0, int(width / 6.6) - len(name) - 3)
    shown = facts if len(facts) <= most else f"{facts[: max(0, most - 1)]}\N{HORIZONTAL ELLIPSIS}"
    return (
        f'<g data-key="{escape(key)}" tabindex="0"><title>{escape(f"{name}: {facts}")}</title>'
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{ROW_PX}" rx="4"/><text x="{x + 8:g}" y="{y + 20:g}">'
        f'{escape(name)} <tspan class="soft">{escape(shown)}</tspan></text></g>'
    )


def _edge(way: str, node: str, topic: str, node_y: float, topic_y: float) -> str:
    start, end = NODE_PX - 12, NODE_PX + BETWEEN_PX
    middle = (start + end) / 2
    return (
        f'<path class="{way}" data-node="{escape(f"node {node}")}" data-topic="{escape(f"topic {topic}")}" '
        f'd="M{start} {node_y:g} C{middle:g} {node_y:g} {middle:g} {topic_y:g} {end} {topic_y:g}"/>'
    )


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
