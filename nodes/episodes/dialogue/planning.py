"""From a task and a library to an `EpisodePlan`: briefings are made here and nowhere else, through `visibility`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan, GroundTruth
from nodes.episodes.dialogue.rules import ORDERS, EpisodeRules, Order, WinCheck
from nodes.episodes.scenarios.library import Library, read_folder, starter
from nodes.episodes.scenarios.profiles import Task, Win
from nodes.episodes.scenarios.sampling import sample_constrained
from nodes.episodes.scenarios.visibility import EVERYONE, MODES, Cast, Mode, cast_of, full_view, text_for, view
from nodes.msgs.episode import Briefing, Facts
from runtime.errors import UserError, choices


def plan_episode(
    library: Library,
    task: Task,
    agents: Sequence[str],
    *,
    rules: EpisodeRules | None = None,
    mode: Mode = "AGENTS",
    name_only: bool = False,
    seed: int = 0,
    wins: tuple[Win, ...] = (),
    coach: str = "",
    variant: str = "dsi",
    like: PackagePrompts | None = None,
) -> EpisodePlan:
    """The plan of one episode; one agent for all seats, or one per seat. Raises UserError for what does not fit."""
    cast = cast_of(library, task)
    scenario = cast.scenario
    given = tuple(agents) + tuple(agents[-1:]) * (scenario.seats - len(agents))
    if len(given) != scenario.seats:
        raise UserError(f"task {task.id}: {len(given)} agents for {scenario.seats} seats; give one, or one per seat")
    try:
        for win in wins:
            win.check_seats(scenario.seats)
    except ValueError as problem:
        raise UserError(f"task {task.id}: {problem}") from problem
    names = tuple(person.name for person in cast.people)
    checks = tuple(_win_check(win, names) for win in (*scenario.wins, *wins))
    rules = rules or EpisodeRules()
    rules = msgspec.structs.replace(rules, wins=rules.wins + checks)
    briefings = tuple(_briefing(cast, seat, mode, name_only) for seat in range(scenario.seats))
    whole = ""
    if like is not None:
        rules = msgspec.structs.replace(rules, silent="all")
        *own, whole = like.first_texts(cast, [briefing.goal for briefing in briefings], mode, name_only=name_only)
        briefings = tuple(_briefing(cast, seat, mode, name_only, background=text) for seat, text in enumerate(own))
    plan = EpisodePlan(
        id="",
        task=task.id,
        scenario=scenario.id,
        context=text_for(scenario.context, EVERYONE),
        codename=scenario.codename,
        kind=scenario.kind,
        tags=scenario.tags,
        relationship=scenario.relationship.word,
        briefings=briefings,
        truths=tuple(_truth(cast, seat, given[seat]) for seat in range(scenario.seats)),
        rules=rules,
        agents=given,
        mode=mode,
        name_only=name_only,
        deal=scenario.deal,
        robot_seat=scenario.robot_seat,
        coach=coach,
        variant=variant,
        like="" if like is None else like.name,
        whole_background=whole,
    )
    return with_seed(plan, seed)


def with_seed(plan: EpisodePlan, seed: int) -> EpisodePlan:
    """The same episode with another seed; it shares all texts, so that a hundred thousand plans are small."""
    told = (*plan.agents, *((plan.coach, plan.variant) if plan.coach else ()), *((plan.like,) if plan.like else ()))
    name = episode_id(plan.task, told, seed, plan.mode, plan.name_only, plan.rules)
    return msgspec.structs.replace(plan, id=name, seed=seed)


def _win_check(win: Win, names: Sequence[str]) -> WinCheck:
    return WinCheck(
        pattern=win.pattern,
        who="*" if win.seat is None else names[win.seat],
        kind=win.kind,
        text=win.text,
        winner="" if win.winner is None else names[win.winner],
    )


def win_of(text: str) -> Win:
    """A win check as typed: "PATTERN" (said by anyone) or "SEAT=PATTERN". Raises UserError."""
    seat, mark, pattern = text.partition("=")
    is_seated = bool(mark) and seat.strip().isdecimal()
    try:
        return Win(pattern=pattern if is_seated else text, seat=int(seat) if is_seated else None)
    except ValueError as problem:
        raise UserError(f"win check {text[:80]!r}: {problem}") from problem


def episode_id(task: str, agents: Sequence[str], seed: int, mode: str, name_only: bool, rules: EpisodeRules) -> str:
    """The same for the same episode in every run; safe as a file name."""
    what = repr((task, tuple(agents), seed, mode, name_only, rules))
    return f"{task}-s{seed}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def _briefing(cast: Cast, seat: int, mode: Mode, name_only: bool, background: str = "") -> Briefing:
    is_script = mode == "SCRIPT"
    known = full_view(cast, name_only=name_only) if is_script else view(cast, seat, mode, name_only=name_only)
    person = cast.people[seat]
    scenario = cast.scenario
    return Briefing(
        seat=seat,
        name=person.name,
        scenario=known.context,
        participants=tuple(other.name for other in known.people),
        goal=known.goal(seat),
        background=background or known.text(),
        kind=scenario.kind,
        deal=scenario.deal,
        facts=scenario.facts_of(seat) if scenario.facts else Facts(),
        secret="" if name_only else person.secret,
        secret_words=() if name_only else person.secret_words,
        transparency=mode,
    )


def _truth(cast: Cast, seat: int, agent: str) -> GroundTruth:
    person = cast.people[seat]
    return GroundTruth(
        name=person.name,
        character=person.id,
        goal=text_for(cast.scenario.goals[seat], EVERYONE),
        profile=full_view(cast).background(seat),
        secret=person.secret,
        secret_words=person.secret_words,
        facts=cast.scenario.facts_of(seat),
        is_human=agent == "human",
    )


def tasks_of(library: Library) -> list[Task]:
    """The library's own tasks; where it has none, a cast of every scenario that honours its constraints."""
    return list(library.tasks.values()) or sample_constrained(library, 1)


def plan_of_task(
    task: str, *, order: str, mode: str, max_turns: int, wins: Sequence[str] = (), library: Library | None = None
) -> EpisodePlan:
    """The plan of one named task, for a launch file: of the starter set, or "FOLDER#TASK" of one's own.

    Raises UserError with the names there are.
    """
    folder, is_own, name = task.rpartition("#")
    if is_own:
        task, library = name, read_folder(Path(folder))
    library = library or starter()
    tasks = {each.id: each for each in tasks_of(library)}
    by_scenario = {each.scenario: each for each in reversed(tasks.values())}
    found = tasks.get(task) or by_scenario.get(task)
    if found is None:
        raise UserError(f"there is no task {task[:80]!r}; known: {choices(by_scenario)}")
    rules = EpisodeRules(order=order_of(order), max_turns=max_turns)
    return plan_episode(library, found, ["rules"], rules=rules, mode=mode_of(mode), wins=tuple(map(win_of, wins)))


def order_of(text: str) -> Order:
    """The turn order of that name. Raises UserError with the known ones."""
    return one_of("order", text, ORDERS)


def mode_of(text: str) -> Mode:
    """The mode of that name, in any case. Raises UserError with the known ones."""
    return one_of("mode", text.upper() if text.upper() in MODES else text, MODES)


Name = TypeVar("Name", bound=str)


def one_of(what: str, text: str, known: Sequence[Name]) -> Name:
    """The name that a text is. Raises UserError with the known ones."""
    if (found := next((name for name in known if name == text), None)) is None:
        raise UserError(f"{what} is {text!r}; known: {', '.join(known)}")
    return found
