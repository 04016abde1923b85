"""What `[run]` of a launch file names beside the nodes: its view, its report, and the command that looks on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.commands import GROUP
from runtime.errors import LaunchFileError, PolyrhythmError, UserError
from runtime.extras import absent
from runtime.launch.checks.class_check import place_of, place_of_problem
from runtime.launch.file import Launch
from runtime.launch.tables.nodes_table import lacks, load_name
from runtime.serialization.toml_errors import guess
from runtime.supervision.view import PlainView, View

Report = Callable[..., bool | None]
"""Called as report(recording, folder, outcome=..., as_json=..., not_kept=...); returns whether the run succeeded,
None where nobody said so.

Where --film is asked for, also with film=True.
"""


def check_companions(launch: Launch) -> None:
    """Load them, and start none. Raises LaunchFileError where a name leads to nothing, or to what cannot be called."""
    for key, name, find in (
        ("view", launch.view, _view_named),
        ("report", launch.report, load_report),
        ("beside", launch.beside, _find_command),
    ):
        try:
            if name:
                find(name)
        except UserError as problem:
            raise LaunchFileError(f"{launch.path}: [run] {key}: {problem}", code="P015") from problem


def make_view(name: str, title: str, *, live: bool) -> View:
    """The view of that name, or a plain one for "". Raises UserError where it cannot be made."""
    if not name:
        return PlainView(title, live=live)
    make = _view_named(name)
    try:
        view = make(title, live=live)
    except Exception as problem:  # whatever a user's class may raise
        raise UserError(f"view {name!r} cannot be made: {_told(problem)}") from problem
    if missing := lacks(view, View):
        raise UserError(f"view {name!r} makes a {type(view).__name__}, which lacks {missing}")
    return view


def load_report(name: str) -> Report:
    """The function of that name. Raises UserError where it cannot be called as a report."""
    found: Report = _callable(name, Path(), Path(), outcome=None, as_json=False, not_kept=())
    return found


def reported(name: str, recording: Path, folder: Path, **told: Any) -> bool | None:
    """What a report says of a run. Raises PolyrhythmError where the report itself fails; the recording is kept."""
    try:
        return load_report(name)(recording, folder, **told)
    except (PolyrhythmError, OSError, ModuleNotFoundError):
        raise
    except Exception as problem:  # whatever a user's function may raise
        raise PolyrhythmError(f"report {name!r} failed: {_told(problem)}; the recording is {recording}") from problem


def _view_named(name: str) -> Callable[..., View]:
    made: Callable[..., View] = _callable(name, "", live=False)
    if isinstance(made, type) and (missing := lacks(made, View)):
        raise UserError(f"{name!r} is no view: it lacks {missing}")
    return made


def _find_command(name: str) -> None:
    from importlib.metadata import entry_points  # not at the top: a graph that names no command starts sooner

    known = {entry.name for entry in entry_points(group=GROUP)}
    if name not in known and not absent():  # else it may be theirs: the run goes without, and says what brings it
        raise UserError(f"there is no command {name!r} that could look on; {guess(name, known)}")


def _callable(name: str, *given: object, **named: object) -> Any:
    """What that names, where it takes such arguments."""
    found = load_name(name)
    if not callable(found):
        raise UserError(f"{name!r} is a {type(found).__name__}; expected a class or a function")
    try:
        inspect.signature(found).bind(*given, **named)
    except TypeError as problem:
        place = f" ({place_of(found)})" if inspect.isfunction(found) else ""
        asked = ", ".join([*(type(one).__name__ for one in given), *(f"{one}=" for one in named)])
        raise UserError(f"{name!r}{place} is called with ({asked}): {problem}") from problem
    except ValueError:
        pass  # written in another language, it tells nothing of itself
    return found


def _told(problem: Exception) -> str:
    place = place_of_problem(problem)
    return f"{type(problem).__name__}: {problem}{f' ({place})' if place else ''}"
