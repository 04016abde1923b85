"""`episodes rate`: a page where people score episodes, and say which of two is the more natural one.

Plain forms, without a script: a scale per person and dimension with a reason for each, two raters an episode, first a
dialogue whose scores are known. What is sent is in the run's file before the next page is shown.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from nodes.episodes.evaluation.dimensions import SEVEN, Dimension, fine, read_dimensions
from nodes.episodes.results.browse import PageServer, open_page, serve, turns_html
from nodes.episodes.results.store import EpisodeRow, Store
from nodes.msgs.episode import Score
from runtime.errors import UserError

_STYLE = Path(__file__).with_suffix(".css")


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a careful reader gives one person of the known dialogue on one dimension."""

    name: str
    dimension: str
    low: int
    high: int
    why: str


class Qualification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Instructions with examples, and a dialogue with known scores."""

    instructions: tuple[str, ...]
    examples: tuple[str, ...]
    situation: str
    lines: tuple[str, ...]
    expected: tuple[Expected, ...]


def qualification() -> Qualification:
    """The one that comes with the package."""
    text = resources.files(__package__).joinpath("rating_instructions.toml").read_bytes()
    return msgspec.toml.decode(text, type=Qualification)


def _drawn(*what: str) -> int:
    """A number that nobody chose, the same each time."""
    return int.from_bytes(hashlib.sha256("\n".join(what).encode()).digest()[:8])


class RatingPages:
    """What raters see and send, without a server: a path and a form in, a page out."""

    def __init__(
        self,
        store: Store,
        raters: Sequence[str],
        dimensions: Sequence[Dimension] = SEVEN,
        each: int = 2,
        pairs: int = 20,
    ) -> None:
        """`each`: so many raters an episode has; `pairs`: so many comparisons one rater is asked for, at most.

        Raises UserError without a rater, an episode, or a fitting number.
        """
        if not raters or len(set(raters)) != len(raters) or not all(name.strip() for name in raters):
            raise UserError("--rater: expected one name for each person, no two alike, like --rater ada --rater ben")
        if not 1 <= each <= len(raters):
            raise UserError(f"--each is {each}; expected 1 to {len(raters)}, as there are raters")
        done = [row for row in store.episodes() if row.state == "done"]
        if not done:
            raise UserError(f"{store.path}: no episode is done; there is nothing to rate")
        self.episodes = [row.id for row in done]
        self.keys = store.rater_keys(raters)
        self._store, self._dimensions, self._each = store, tuple(dimensions), each
        self._known, self._most_pairs = qualification(), pairs
        by_task: dict[str, list[EpisodeRow]] = defaultdict(list)
        for row in done:
            by_task[row.task].append(row)
        both = (two for same in by_task.values() for two in combinations(same, 2))
        # of two that were made alike nothing is learned
        self._pairs = [(one.id, other.id) for one, other in both if one.line_up != other.line_up]

    def page(self, path: str, key: str, sent: Mapping[str, str] | None = None) -> str:
        """The page of a path for whoever has that key; `sent` is a form's content. Raises UserError."""
        rater = self.keys.get(key)
        if rater is None:
            raise UserError("this address names no rater; use the one that the terminal printed for you")
        pages = {"/": self._start, "/rate": self._rate, "/pair": self._pair}
        if path not in pages:
            raise UserError(f"there is no page {path[:80]!r}; known: {', '.join(pages)}")
        return pages[path](rater, key, sent)

    def next_episode(self, rater: str) -> str | None:
        """What this person rates next: what has most raters already and not yet enough; None when all is done."""
        done: dict[str, set[str]] = defaultdict(set)
        for episode, who, *_ in self._store.ratings():
            done[episode].add(who)
        waiting = [one for one in self.episodes if rater not in done[one] and len(done[one]) < self._each]
        return max(waiting, key=lambda one: len(done[one]), default=None)

    def next_pair(self, rater: str) -> tuple[str, str] | None:
        """Two episodes of one task, made otherwise, that this person has not compared: fewest comparisons first.

        Which of those, and which stands on which side, is drawn by rater: no mode is always A, and none comes first.
        """
        compared = [(first, second, who) for first, second, who, *_ in self._store.preferences()]
        mine = {frozenset(one[:2]) for one in compared if one[2] == rater}
        if len(mine) >= self._most_pairs:
            return None
        counts = Counter(frozenset(one[:2]) for one in compared)
        left = [pair for pair in self._pairs if frozenset(pair) not in mine]
        if not left:
            return None
        one, other = min(left, key=lambda pair: (counts[frozenset(pair)], _drawn(rater, *pair)))
        return (one, other) if _drawn("side", rater, one, other) % 2 else (other, one)

    def _start(self, rater: str, key: str, sent: Mapping[str, str] | None) -> str:
        known, problems = self._known, list[str]()
        titles = [f"{one.name}, {_SEVEN[one.dimension].title}" for one in known.expected]
        if sent is not None:
            for place, one in enumerate(known.expected):
                score = _whole(sent.get(f"known-{place}", ""))
                if score is None or not one.low <= score <= one.high:
                    problems.append(f"{titles[place]}: {'nothing' if score is None else score}. {one.why}")
            self._store.save_qualification(rater, passed=not problems)
        if self._store.is_qualified(rater):
            return self._overview(rater, key)
        scales = ""
        for place, one in enumerate(known.expected):
            scale, name = _SEVEN[one.dimension], f"known-{place}"
            choices = _scale(name, scale.low, scale.high, titles[place], (sent or {}).get(name, ""))
            scales += f"<div class='q'><b>{escape(titles[place])}</b>{choices}</div>"
        wrong = _each("li", problems)
        return (
            f"<h1>How to rate</h1>{_each('p', known.instructions)}<h2>Examples</h2>"
            f"<ul>{_each('li', known.examples)}</ul><h2>First, a dialogue whose scores are known</h2>"
            f"<p>{escape(known.situation)}</p><section>{_each(TURN, known.lines)}</section>"
            + (f"<div class='wrong'><p>Not yet. Read the dialogue again:</p><ul>{wrong}</ul></div>" if wrong else "")
            + f"<form method='post' action='/?key={key}'>{scales}<button>Check my numbers</button></form>"
        )

    def _overview(self, rater: str, key: str) -> str:
        mine = {episode for episode, who, *_ in self._store.ratings() if who == rater}
        episode, pair = self.next_episode(rater), self.next_pair(rater)
        links = f"<p><a class='button' href='/rate?key={key}'>Rate the next episode</a></p>" if episode else ""
        links += f"<p><a class='button' href='/pair?key={key}'>Say which of two is more natural</a></p>" if pair else ""
        rest = links or "<p>All is done. Thank you. You may close this page.</p>"
        count = f"{len(mine)} {'episode' if len(mine) == 1 else 'episodes'}"
        pause = "<p>You may stop at any time; the same address goes on where you were.</p>" if links else ""
        return f"<h1>Thank you, {escape(rater)}</h1><p>You have rated {count}.</p>{rest}{pause}"

    def _rate(self, rater: str, key: str, sent: Mapping[str, str] | None) -> str:
        if not self._store.is_qualified(rater):
            return self._start(rater, key, None)
        problem = ""
        if sent is not None:
            problem = self._take(rater, sent)
            if not problem:
                return self._overview(rater, key)
        episode = sent.get("episode") if sent and problem else ""
        episode = episode if episode in self.episodes else self.next_episode(rater)
        if episode is None:
            return self._overview(rater, key)
        plan = self._store.plan(episode)
        people = []
        for seat, truth in enumerate(plan.truths):
            secret = f"<br><b>Secret:</b> {escape(truth.secret)}" if truth.secret else ""
            rows = "".join(self._question(seat, truth.name, one, sent or {}) for one in self._dimensions)
            who = f"<summary>Who {escape(truth.name)} is</summary><small>{escape(truth.profile)}</small>"
            about = f"<details>{who}</details><p><b>Goal:</b> {escape(truth.goal)}{secret}</p>"
            people.append(f"<fieldset><legend>{escape(truth.name)}</legend>{about}{rows}</fieldset>")
        return (
            f"<h1>An episode</h1><p>Read it first. The questions come below.</p>{self._story(episode)}"
            + (f"<p class='wrong' role='alert'>{escape(problem)}</p>" if problem else "")
            + f"<form method='post' action='/rate?key={key}'>"
            f"<input type='hidden' name='episode' value='{escape(episode, quote=True)}'>{''.join(people)}"
            "<button>Send</button></form>"
        )

    def _question(self, seat: int, person: str, one: Dimension, sent: Mapping[str, str]) -> str:
        name = f"{seat}-{one.name}"
        why = escape(sent.get(f"why-{name}", ""))
        title = one.title or one.name
        told = _TAGS.sub("", one.instruction)
        return (
            f"<div class='q'><b>{escape(title[:1].upper() + title[1:])}</b>"
            f"<br><small>{'<br>'.join(map(escape, (told, *one.meanings)))}</small>"
            + _scale(name, one.low, one.high, f"{person}: {title}", sent.get(name, ""))
            + f"<label>Why? <textarea name='why-{name}' maxlength='2000' required>{why}</textarea></label></div>"
        )

    def _take(self, rater: str, sent: Mapping[str, str]) -> str:
        """Keep a whole form; what is wrong with it, or ""."""
        episode = sent.get("episode", "")
        if episode not in self.episodes:
            return "this episode is not in the run"
        given = []
        for seat, truth in enumerate(self._store.plan(episode).truths):
            for one in self._dimensions:
                score, why = _whole(sent.get(f"{seat}-{one.name}", "")), sent.get(f"why-{seat}-{one.name}", "").strip()
                if score is None or one.problem_of(score):
                    return f"{truth.name}: {one.name} needs a whole number from {one.low} to {one.high}"
                if not why:
                    return f"{truth.name}: {one.name} needs a reason"
                given.append(Score(name=truth.name, dimension=one.name, score=float(score), reasoning=why[:2000]))
        self._store.save_ratings(episode, rater, given)
        return ""

    def _pair(self, rater: str, key: str, sent: Mapping[str, str] | None) -> str:
        if not self._store.is_qualified(rater):
            return self._start(rater, key, None)
        if sent is not None:
            compared = (sent.get("first", ""), sent.get("second", ""))
            known = compared in self._pairs or compared[::-1] in self._pairs
            if not known or sent.get("choice") not in ("first", "second", "neither"):
                raise UserError("this form is not of two episodes of this run; go back, and choose one of the three")
            self._store.save_preference(*compared, rater, sent["choice"], sent.get("why", "").strip()[:2000])
        pair = self.next_pair(rater)
        if pair is None:
            return self._overview(rater, key)
        sides = "".join(
            f"<section><h2>{title}</h2>{self._story(one)}</section>"
            for title, one in zip(("A", "B"), pair, strict=True)
        )
        choices = "".join(
            f"<label><input type='radio' name='choice' value='{value}' required> {text}</label>"
            for value, text in (("first", "A"), ("second", "B"), ("neither", "no difference"))
        )
        hidden = "".join(
            f"<input type='hidden' name='{name}' value='{escape(one, quote=True)}'>"
            for name, one in zip(("first", "second"), pair, strict=True)
        )
        return (
            f"<h1>Which is more natural?</h1><div class='two'>{sides}</div>"
            f"<form method='post' action='/pair?key={key}'>{hidden}{choices}"
            "<label>Why? <textarea name='why' maxlength='2000'></textarea></label><button>Send</button></form>"
        )

    def _story(self, episode: str) -> str:
        """Who plays is not told, nor how it was made: raters judge what was done."""
        plan = self._store.plan(episode)
        turns: list[Any] = self._store.turns(episode)
        turns = [
            msgspec.structs.replace(turn, because=-1, note="", fault="")  # notes tell of rules, coaches and models
            for turn in turns
            if not turn.is_failed
        ]
        return f"<p>{escape(plan.context)}</p><section>{turns_html(plan, turns)}</section>"


_SEVEN = {one.name: one for one in SEVEN}
TURN = "p class='t'"


def _each(tag: str, texts: Sequence[str]) -> str:
    """A paragraph or an item for each text."""
    return "".join(f"<{tag}>{escape(text)}</{tag.split()[0]}>" for text in texts)


_TAGS = re.compile(r", after the tag <\w+>")
"""What only a model that judges is told: where in its answer to write."""


def _scale(name: str, low: int, high: int, label: str, value: str = "") -> str:
    """Every number of the scale to choose from; nothing is chosen beforehand, so nothing is sent by mistake."""
    choices = "".join(
        f"<label><input type='radio' name='{name}' value='{number}' required"
        f"{' checked' if value == str(number) else ''}>{number}</label>"
        for number in range(low, high + 1)
    )
    return f"<div class='scale' role='radiogroup' aria-label='{escape(label, quote=True)}'>{choices}</div>"


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def rating_server(pages: RatingPages, port: int, host: str = "127.0.0.1") -> PageServer:
    """The server, one request at a time. Raises UserError where the port is taken."""

    def page(path: str, query: Mapping[str, str], sent: Mapping[str, str] | None) -> str:
        return pages.page(path, query.get("key", ""), sent)

    return open_page(page, port, title="Rating episodes", style=_STYLE, takes_forms=True, host=host)


def rate(asked: argparse.Namespace) -> int:
    """Serve until Ctrl-C; each rater has an address of their own, which a later call gives again."""
    is_fine = asked.dimensions == Path("fine")
    dimensions = fine() if is_fine else read_dimensions(asked.dimensions) if asked.dimensions else SEVEN
    with Store.open(asked.run) as store:
        pages = RatingPages(store, asked.rater, dimensions, asked.each, asked.pairs)
        server = rating_server(pages, asked.port, "lan" if asked.lan else "127.0.0.1")
        addresses = [f"{name}: {server.url}?key={quote(key)}" for key, name in pages.keys.items()]
        last = f"{len(pages.episodes)} episodes, {asked.each} raters each; Ctrl-C ends, and the same command goes on"
        return serve(server, *addresses, last)
