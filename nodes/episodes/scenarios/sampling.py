"""Who plays what: tasks drawn from a library, uniformly or under the scenarios' constraints; seeded, so repeatable."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from zlib import crc32

from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Character, ProfileError, Scenario, Task

LONGEST_STEM = 56
MOST_CASTS = 100_000
"""Casts looked at per scenario; of a library with more, the sample comes from the first ones in shuffled order."""


def sample_uniform(library: Library, count: int, *, seed: int = 0, scenarios: Sequence[str] = ()) -> list[Task]:
    """`count` tasks, each a random scenario with random characters, with replacement; constraints are not asked.

    `scenarios` are the identifiers to draw from; none means all. Raises ProfileError where there are too few
    characters for a scenario.
    """
    generator = random.Random(f"uniform {seed}")
    pool = _pool(library, scenarios)
    people = sorted(library.characters)
    tasks = []
    for number in range(_at_least_one("count", count)):
        scenario = generator.choice(pool)
        if len(people) < scenario.seats:
            raise ProfileError(
                f"{library.name}: scenario {scenario.id} has {scenario.seats} seats; "
                f"the library has {len(people)} characters"
            )
        tasks.append(_task(scenario, number, generator.sample(people, scenario.seats)))
    return tasks


def sample_constrained(
    library: Library, per_scenario: int, *, seed: int = 0, scenarios: Sequence[str] = ()
) -> list[Task]:
    """`per_scenario` different casts of each scenario that honour all of its constraints.

    Raises ProfileError for a scenario that the library has too few casts for, telling how many there are. A scenario
    gets the same casts whichever others are asked for.
    """
    tasks = []
    for scenario in _pool(library, scenarios):
        generator = random.Random(f"constrained {seed} {scenario.id}")
        casts = allowed_casts(library, scenario, generator)
        if len(casts) < _at_least_one("per_scenario", per_scenario):
            raise ProfileError(
                f"{library.name}: scenario {scenario.id}: {len(casts)} casts honour its constraints; "
                f"{per_scenario} asked for; {why_few(library, scenario)}"
            )
        for number, cast in enumerate(generator.sample(casts, per_scenario)):
            tasks.append(_task(scenario, number, cast))
    return tasks


def allowed_casts(library: Library, scenario: Scenario, generator: random.Random) -> list[tuple[str, ...]]:
    """The casts (identifiers by seat) that honour every constraint, at most MOST_CASTS of them, in shuffled order."""
    candidates = []
    for seat in range(scenario.seats):
        fitting = [each.id for each in library.characters.values() if seat_misfit(scenario, seat, each) is None]
        generator.shuffle(fitting)
        candidates.append(fitting)
    return list(islice(_extend(library, scenario, candidates, ()), MOST_CASTS))


def namesake(library: Library, cast: Sequence[str]) -> str:
    """A name that two of a cast have, by which nobody could tell them apart; "" where there is none."""
    names = [library.character(identifier).name for identifier in cast]
    folded = [name.casefold() for name in names]
    return next((name for name in names if folded.count(name.casefold()) > 1), "")


def why_few(library: Library, scenario: Scenario) -> str:
    """Which constraint it is that keeps casts from a scenario: the first seat nobody fits, or how people stand."""
    for seat in range(scenario.seats):
        problems = [seat_misfit(scenario, seat, each) for each in library.characters.values()]
        if problems and all(problems):
            return f"nobody fits seat {seat}: {problems[0]}"
    words = {
        scenario.relationship_between(first, second).word for second in range(scenario.seats) for first in range(second)
    }
    return f"too few who fit the seats stand as {' and '.join(sorted(words))}"


def seat_misfit(scenario: Scenario, seat: int, character: Character) -> str | None:
    """Why a character may not sit in a seat by age, occupation or name; None where it may."""
    if scenario.ages:
        youngest, oldest = scenario.ages[seat]
        if not youngest <= character.age <= oldest:
            return f"{character.name} is {character.age}; seat {seat} is for {youngest} to {oldest} years"
    if scenario.occupations and scenario.occupations[seat]:
        allowed = {occupation.casefold() for occupation in scenario.occupations[seat]}
        if character.occupation.casefold() not in allowed:
            return f"{character.name} is no {' or '.join(scenario.occupations[seat])}, as seat {seat} asks"
    if scenario.characters and scenario.characters[seat]:
        named = {name.casefold() for name in scenario.characters[seat]}
        if not named & {character.id, character.name.casefold()}:
            return f"seat {seat} is kept for {' or '.join(scenario.characters[seat])}, not {character.name}"
    return None


def _extend(
    library: Library, scenario: Scenario, candidates: Sequence[Sequence[str]], seated: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    if len(seated) == scenario.seats:
        yield seated
        return
    wanted = [(other, scenario.relationship_between(seat, len(seated))) for seat, other in enumerate(seated)]
    for identifier in candidates[len(seated)]:
        names = {library.character(other).name.casefold() for other in seated}
        if (
            identifier not in seated
            and library.character(identifier).name.casefold() not in names
            and all(library.relationship(other, identifier) is relationship for other, relationship in wanted)
        ):
            yield from _extend(library, scenario, candidates, (*seated, identifier))


def _pool(library: Library, identifiers: Iterable[str]) -> list[Scenario]:
    pool = [library.scenario(identifier) for identifier in identifiers] or list(library.scenarios.values())
    if not pool:
        raise ProfileError(f"{library.name}: no scenarios to draw from")
    return pool


def _task(scenario: Scenario, number: int, cast: Sequence[str]) -> Task:
    stem = scenario.id
    if len(stem) > LONGEST_STEM:
        stem = f"{stem[: LONGEST_STEM - 9]}-{crc32(stem.encode()):08x}"
    return Task(id=f"{stem}-{number:04d}", scenario=scenario.id, characters=tuple(cast))


def _at_least_one(name: str, count: int) -> int:
    if count < 1:
        raise ProfileError(f"{name} is {count}; expected 1 or more")
    return count
