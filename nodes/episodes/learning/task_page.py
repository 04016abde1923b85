"""`episodes scenarios edit`: a page on loopback where people edit, accept or refuse generated tasks.

Plain forms without a script. A decision is a line of `reviews.jsonl` before the next page is shown; the newest of a
task counts. From the first one on, only accepted tasks are what `--tasks FOLDER` takes.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.learning.new_tasks import (
    REVIEWS,
    Generated,
    Review,
    accepted_in,
    generate,
    generated_in,
    keep_line,
    read_prompts,
    refusal,
    write_rows,
)
from nodes.episodes.results.browse import open_page, serve
from nodes.episodes.scenarios.library import Library, library_of, make, read_folder
from nodes.episodes.scenarios.lint import lint
from nodes.episodes.scenarios.profiles import ProfileError, Relationship, Scenario
from runtime.errors import UserError

_STYLE = Path(__file__).with_suffix(".css")
STATES = {"accepted": "accepted", "refused": "refused", "": "not read yet"}


class TaskPages:
    """What people see and send, without a server: a path and a form in, a page out."""

    def __init__(self, folder: Path, evaluation: Iterable[Scenario] = ()) -> None:
        """Raises UserError for a folder without generated tasks."""
        self.folder = folder
        self.made = {one.scenario.id: one for one in generated_in(folder) if one.scenario is not None}
        if not self.made:
            raise UserError(f"{folder}: holds no generated task; make some with: polyrhythm episodes scenarios new")
        self.library: Library = read_folder(folder)
        self._evaluation = {one.id: ("the evaluation task", one) for one in evaluation}

    def page(self, path: str, query: Mapping[str, str], sent: Mapping[str, str] | None = None) -> str:
        """The list, or one task; a form decides on it, and the next that nobody has read comes. Raises UserError."""
        if path == "/":
            return self._list()
        if path != "/task":
            raise UserError(f"there is no page {path[:80]!r}; known: /, /task?id=...")
        name = query.get("id", "")
        if name not in self.made:
            raise UserError(f"there is no task {name[:80]!r}")
        if sent is None:
            return self._task(name, self.current(name))
        problem, scenario = self._decided(name, sent)
        if problem:
            return self._task(name, scenario, problem, sent)
        left = [one for one in self.made if one not in self.reviews()]
        return self._task(left[0], self.current(left[0])) if left else self._list()

    def reviews(self) -> dict[str, Review]:
        """The newest decision on each task."""
        return accepted_in(self.folder)[1]

    def current(self, name: str) -> Scenario:
        """A task as it was edited last."""
        review, made = self.reviews().get(name), self.made[name].scenario
        assert made is not None
        return made if review is None or review.scenario is None else review.scenario

    def _decided(self, name: str, sent: Mapping[str, str]) -> tuple[str, Scenario]:
        """What is wrong with the form, else ""; and the task as it was sent. A decision is on disk then."""
        before = self.current(name)
        state = sent.get("state", "")
        if state == "refused":
            self._keep(Review(id=name, state="refused", why=sent.get("why", "").strip()[:500]))
            return "", before
        if state != "accepted":
            return "Choose accept or refuse.", before
        goals = tuple(sent.get(f"goal{seat}", "").strip() for seat in range(before.seats))
        fields: dict[str, Any] = msgspec.to_builtins(before)
        fields |= {"context": sent.get("context", "").strip(), "goals": goals}
        fields |= {"relationship": sent.get("relationship", before.relationship.word)}
        try:
            edited = make("this task", fields, Scenario)
        except ProfileError as problem:
            return str(problem), before
        lost = set(re.findall(r"\d+", " ".join(before.goals))) - set(re.findall(r"\d+", " ".join(goals)))
        if before.facts and lost:
            return f"The judge counts with {', '.join(sorted(lost))}: keep the numbers in the goals.", before
        known = {one: ("the task", self.current(one)) for one in self.made if one != name}
        if why := refusal(edited, self.library, {**self._evaluation, **known}):
            return f"This task cannot be taken: {why}.", before
        self._keep(Review(id=name, state="accepted", scenario=edited))
        return "", edited

    def _keep(self, review: Review) -> None:
        keep_line(self.folder / REVIEWS, review)
        write_rows(self.folder, "scenarios", accepted_in(self.folder)[0])

    def _list(self) -> str:
        reviews = self.reviews()
        rows = "".join(
            f"<li><a href='/task?id={escape(name, quote=True)}'>{escape(self.current(name).context[:90])}</a> "
            f"<small>{STATES[reviews[name].state if name in reviews else '']}</small></li>"
            for name in self.made
        )
        takes = sum(one.state == "accepted" for one in reviews.values()) if reviews else len(self.made)
        return (
            f"<h1>Generated tasks</h1><p>{len(self.made)} tasks, {len(reviews)} read. "
            f"<code>episodes run --tasks {escape(str(self.folder))}</code> takes {takes} of them.</p><ol>{rows}</ol>"
        )

    def _task(self, name: str, task: Scenario, problem: str = "", sent: Mapping[str, str] | None = None) -> str:
        made: Generated = self.made[name]
        texts = {
            "context": task.context,
            **{f"goal{seat}": goal for seat, goal in enumerate(task.goals)},
            **(sent or {}),
        }
        place = list(self.made).index(name)
        following = list(self.made)[(place + 1) % len(self.made)]
        whole = Library(self.library.characters.values(), [task], self.library.bonds)
        findings = "".join(f"<li>{escape(one.text)}</li>" for one in lint(whole, 1) if one.is_wrong)
        labels = [("context", "What both see (context)")]
        labels += [(f"goal{seat}", f"Private goal of person {seat + 1}") for seat in range(task.seats)]
        areas = "".join(
            f"<label>{label}<textarea name='{field}' required>{escape(texts[field])}</textarea></label>"
            for field, label in labels
        )
        relations = "".join(
            f"<option{' selected' if one.word == texts.get('relationship', task.relationship.word) else ''}>{one.word}"
            for one in Relationship
        )
        review = self.reviews().get(name)
        return (
            "<p><a href='/'>all tasks</a> "
            f"<a href='/task?id={escape(following, quote=True)}' accesskey='n'>next</a></p>"
            f"<h1>Task {place + 1} of {len(self.made)}</h1><p>{STATES[review.state if review else '']}. "
            f"<small>Made from: {escape(made.prompt)}</small></p>"
            + (f"<p class='wrong' role='alert'>{escape(problem)}</p>" if problem else "")
            + (f"<p>To look at:</p><ul>{findings}</ul>" if findings else "")
            + f"<form method='post' action='/task?id={escape(name, quote=True)}'>"
            f"<label>How the two stand to each other<select name='relationship'>{relations}</select></label>{areas}"
            "<p><button name='state' value='accepted' accesskey='a' autofocus>accept</button>"
            "<button name='state' value='refused' accesskey='r'>refuse</button></p>"
            "<label>Why it is refused, if it is<input name='why' maxlength='500'></label></form>"
            "<p><small>Tab goes from field to field, Enter on a button presses it. With the browser's key for access "
            "(often Alt+Shift) a accepts, r refuses, n goes on without a decision.</small></p>"
        )


def edit(folder: Path, port: int, evaluation: Iterable[Scenario]) -> int:
    """Serve until Ctrl-C."""
    pages = TaskPages(folder, evaluation)
    server = open_page(pages.page, port, title="Tasks", style=_STYLE, takes_forms=True)
    return serve(server, f"{len(pages.made)} tasks of {folder} at {server.url}   (Ctrl-C ends)")


def _lint(library: Library, casts: int, *, as_json: bool) -> int:
    """0; 1 where something should be mended."""
    found = lint(library, casts)
    if as_json:
        print(msgspec.json.encode([{**msgspec.to_builtins(one), "is_wrong": one.is_wrong} for one in found]).decode())
    else:
        for one in found:
            print(f"{one.name}: {one.code}: {one.text}")
        wrong = sum(one.is_wrong for one in found)
        print(f"{len(library.scenarios)} scenarios, {wrong} findings to mend, {len(found) - wrong} good to know")
    return int(any(one.is_wrong for one in found))


def scenarios(asked: argparse.Namespace) -> int:
    """New tasks, the page where people edit them, or a look at a set's scenarios."""
    if asked.what == "lint":
        return _lint(library_of(asked.tasks), asked.casts, as_json=asked.json)
    if asked.what == "edit":
        if asked.out is None:
            raise UserError("scenarios edit: expected --out FOLDER, where `scenarios new` has put its tasks")
        return edit(asked.out, asked.port, library_of(asked.evaluation).scenarios.values())
    if asked.prompts is None or asked.out is None:
        raise UserError("scenarios new: expected --from CSV with prompts, and --out FOLDER for the tasks")
    prompts, library, known = read_prompts(asked.prompts), library_of(asked.tasks), library_of(asked.evaluation)
    how = {"model": asked.model, "earlier": asked.not_in, "seed": asked.seed}
    made = asyncio.run(generate(prompts, asked.out, asked.n, library, evaluation=known.scenarios.values(), **how))
    counts = Counter(one.state for one in made)
    if asked.json:
        print(msgspec.json.encode({**counts, "folder": str(asked.out)}).decode())
    else:
        for one in made:
            if one.state != "accepted":
                print(f"{one.state}: {one.prompt[:60]}: {one.why}")
        print(f"{counts['accepted']} of {asked.n} tasks in {asked.out}")
    return 0 if counts["accepted"] >= asked.n else 1
