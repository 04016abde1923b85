"""What this machine has and lacks for running graphs, as sentences; nothing here changes it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from packaging.requirements import Requirement

from runtime.clock import SystemClock
from runtime.errors import PolyrhythmError
from runtime.extras import PACKAGES, install, missing, weights_here
from runtime.launch.tables.nodes_table import load_name
from runtime.operating_system.machine import NATIVE, PORTABLE, WITHOUT, can, is_portable
from runtime.supervision.registry import check_root, find_runs, left_behind
from runtime.transport import fast_lane

Level = Literal["ok", "note", "problem"]

OLDEST_PYTHON = (3, 11)
FOLDERS = {".": "polyrhythm", **PACKAGES}
"""Of what is installed, by its folder in a checkout."""

_GL_PROBE = "nodes.sim.rendering.gl_probe:enable_gl"
_PROGRAMS = {
    "mosquitto": "only the MQTT bridge wants a broker; polyrhythm run mqtt-broker is one",
    "chromium": "only pictures of the console are made with it",
}
_CLOCKS = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_SHARED_MEMORY = Path("/dev/shm")
_CALLS = 20_000


class Finding(msgspec.Struct, frozen=True):
    """One thing that was examined. A note costs comfort or speed; with a problem, something will not work."""

    subject: str
    level: Level
    text: str


def examine() -> list[Finding]:
    """All that can be said of this machine without a launch file."""
    checks: tuple[Callable[[], list[Finding]], ...] = (
        _python,
        _packages,
        _opengl,
        _machine,
        _lane,
        _realtime,
        _cores,
        _shared_memory,
        _disk,
        _programs,
        _clock_source,
        _runs,
    )
    return [finding for check in checks for finding in check()]


def _python() -> list[Finding]:
    text = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return [Finding("python", "problem", f"{text}; at least {'.'.join(map(str, OLDEST_PYTHON))} is needed")]
    return [Finding("python", "ok", text)]


def _packages() -> list[Finding]:
    needed, extras = _requirements()
    if not needed:
        return [Finding("packages", "problem", "it is not known what is needed: neither installed nor a source tree")]
    problems, versions = compare(dict.fromkeys(needed), _installed)
    findings = [Finding("packages", "problem", problem) for problem in problems]
    if not problems:
        findings.append(Finding("packages", "ok", ", ".join(versions)))
    findings += [Finding(name, "note", f"not there: {install(name)}") for name in PACKAGES if missing([name])]
    for extra, requirements in extras.items():
        lacking, _ = compare(requirements, _installed)
        if lacking:
            text = f"{'; '.join(lacking)} (wanted for that only: {install(extra)})"
            findings.append(Finding(f"extra {extra}", "note", text))
        else:
            findings.append(Finding(f"extra {extra}", "ok", "complete"))
    return findings + [Finding("weights", "note", str(one)) for one in weights_here()]


def compare(requirements: Iterable[str], installed: Callable[[str], str | None]) -> tuple[list[str], list[str]]:
    """What is missing or has the wrong version, as sentences, and what is there, as "name version"."""
    problems, there = [], []
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = installed(requirement.name)
        if version is None:
            problems.append(f"{requirement.name} is not installed; {requirement} is needed")
        elif not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"{requirement.name} is {version}; {requirement} is needed")
        else:
            there.append(f"{requirement.name} {version}")
    return problems, there


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """What is needed, and what each extra such as "nodes[sim]" needs besides: from the source tree, or as installed."""
    needed, extras = list[str](), dict[str, list[str]]()
    for folder, name in FOLDERS.items():
        own, more = _of_source(folder) or _as_installed(name)
        needed += own
        extras |= {f"{folder}[{extra}]": lines for extra, lines in more.items()}
    return needed, {extra: spelled_out(extra, extras) for extra in extras}


def _of_source(folder: str) -> tuple[list[str], dict[str, list[str]]] | None:
    """What a package of ours asks for in the source tree that this is of; None where it is of none."""
    project = Path(__file__).resolve().parents[2] / folder / "pyproject.toml"
    table = tomllib.loads(project.read_text()).get("project", {}) if project.is_file() else {}
    if table.get("name") != FOLDERS[folder]:
        return None
    needed = table.get("dependencies") or _as_installed(FOLDERS[folder])[0]  # where it is made by the build
    return needed, table.get("optional-dependencies", {})


def _as_installed(name: str) -> tuple[list[str], dict[str, list[str]]]:
    """What the metadata of that distribution asks for; nothing where it is not there."""
    needed, extras = list[str](), dict[str, list[str]]()
    with suppress(importlib.metadata.PackageNotFoundError):
        for line in importlib.metadata.requires(name) or ():
            if match := re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", line):
                extras.setdefault(match[1], []).append(line.partition(";")[0].strip())
            else:
                needed.append(line)
    return needed, extras


def spelled_out(extra: str, extras: Mapping[str, list[str]]) -> list[str]:
    """What an extra needs, including the extras that it contains."""
    folder_of = {name: folder for folder, name in FOLDERS.items()}
    found: list[str] = []
    for text in extras[extra]:
        requirement = Requirement(text)
        included = sorted(requirement.extras) if requirement.name in folder_of else []
        inner = [f"{folder_of[requirement.name]}[{other}]" for other in included]
        found += [line for other in inner for line in spelled_out(other, extras)] if inner else [text]
    return found


def _opengl() -> list[Finding]:
    try:
        found: str | None = load_name(_GL_PROBE)()
    except PolyrhythmError as problem:
        return [Finding("opengl", "note", str(problem))]
    if found is None:
        text = "neither EGL nor OSMesa works: simulated cameras cast rays on the CPU, with small images"
        return [Finding("opengl", "note", f"{text}; on Debian: apt install libegl1 or libosmesa6")]
    return [Finding("opengl", "ok", f"{found} renders")]


def _machine() -> list[Finding]:
    lacking = [ability for ability in WITHOUT if not can(ability)]
    if not lacking:
        return [Finding("machine", "ok", f"has all that a run can use: {', '.join(WITHOUT)}")]
    why = f"{PORTABLE} is set" if is_portable() else f"{platform.system()} lacks {', '.join(lacking)}"
    ways = "; ".join(WITHOUT[ability] for ability in lacking)
    return [Finding("machine", "note", f"goes the general way, because {why}: {ways}")]


def _lane() -> list[Finding]:
    if fast_lane.chosen is fast_lane.NATIVE:
        return [Finding("lane", "ok", "messages between processes take the way in C")]
    why = (
        f"{NATIVE} or {PORTABLE} says so" if fast_lane.NATIVE is not None else "no C compiler was there at installation"
    )
    return [Finding("lane", "note", f"messages between processes take the way in Python, for {why}")]


def _realtime() -> list[Finding]:
    if not can("fifo"):
        return [Finding("realtime", "note", f"no SCHED_FIFO here: {WITHOUT['fifo']}")]
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as problem:
        text = f"SCHED_FIFO is refused ({problem.strerror}): ticks are late when other programs are busy"
        return [Finding("realtime", "note", f"{text}; allow it with 'rtprio' in /etc/security/limits.conf")]
    os.sched_setscheduler(0, policy, parameters)
    return [Finding("realtime", "ok", "SCHED_FIFO is allowed")]


def _cores() -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{cores} for this process"
    try:
        quota, period = _CPU_QUOTA.read_text().split()
        if quota != "max":
            text += f", limited to {int(quota) / int(period):g} by its control group"
    except (OSError, ValueError):
        pass  # no control groups here
    if cores < 2:
        return [Finding("cores", "note", f"{text}: the processes of a graph take turns; 2 are enough for the demo")]
    return [Finding("cores", "ok", text)]


def _shared_memory() -> list[Finding]:
    if not can("shared memory"):
        return [Finding("shared memory", "note", f"none here: {WITHOUT['shared memory']}")]
    try:
        free_mb = shutil.disk_usage(_SHARED_MEMORY).free / 1e6
    except OSError:
        return [Finding("shared memory", "note", f"there is no {_SHARED_MEMORY}")]
    text = f"{free_mb:.0f} MB free in {_SHARED_MEMORY}"
    return [Finding("shared memory", "ok" if free_mb >= 64 else "note", text)]


def _disk() -> list[Finding]:
    free_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    text = f"{free_gb:.1f} GB free in {Path.cwd()}"
    if not os.access(Path.cwd(), os.W_OK):
        return [Finding("disk", "note", f"{text}, but it cannot be written to; use --out for recordings")]
    if free_gb < 0.1:
        return [Finding("disk", "problem", f"{text}: no room for a recording")]
    return [Finding("disk", "ok" if free_gb >= 2 else "note", text)]


def _programs() -> list[Finding]:
    findings = []
    for program, use in _PROGRAMS.items():
        place = shutil.which(program) or (shutil.which("chromium-browser") if program == "chromium" else None)
        findings.append(Finding(program, "ok", place) if place else Finding(program, "note", f"not there; {use}"))
    return findings


def _clock_source() -> list[Finding]:
    clock = SystemClock()
    start_ns = clock.now_ns()
    for _ in range(_CALLS):
        clock.now_ns()
    cost_ns = (clock.now_ns() - start_ns) / _CALLS
    try:
        source = _CLOCKS.read_text().strip()
    except OSError:
        source = "unknown"
    text = f"{source}; reading the time takes {cost_ns:.0f} ns"
    return [Finding("clock", "ok" if cost_ns < 1000 else "note", text)]


def _runs() -> list[Finding]:
    try:
        check_root()
    except PolyrhythmError as problem:
        return [Finding("runs", "problem", str(problem))]
    left = left_behind()
    findings = []
    if left:
        names = ", ".join(folder.name for folder in left)
        findings.append(Finding("runs", "note", f"left behind by killed runs, removed now: {names}"))
    alive = find_runs()
    names = ", ".join(run.title for run in alive)
    findings.append(Finding("runs", "ok", f"running now: {names}" if alive else "none is running"))
    return findings


def as_lines(findings: Iterable[Finding]) -> str:
    """The findings as lines of text."""
    marks: Mapping[Level, str] = {"ok": "ok      ", "note": "note    ", "problem": "PROBLEM "}
    return "\n".join(f"{marks[finding.level]} {finding.subject:14s} {finding.text}" for finding in findings)
