"""`polyrhythm policy try`: warms up a policy's server, times its answers and says whether they would be played."""

from __future__ import annotations

import argparse
import os
import statistics
from typing import Any

import msgspec
import numpy as np

from nodes.policy.remote.gr00t import Gr00tPolicy
from nodes.policy.remote.openpi import OpenPiPolicy
from nodes.policy.remote.policy_server import WARM_S, ServerPolicy
from runtime.clock import SystemClock
from runtime.errors import UserError, choices
from runtime.launch.file import override
from runtime.launch.graph import NodeSpec

KINDS: dict[str, type[ServerPolicy]] = {scheme: kind for kind in (OpenPiPolicy, Gr00tPolicy) for scheme in kind.schemes}


class ServerTrial(msgspec.Struct, frozen=True):
    """What a server answered."""

    server: str
    first_s: float  # how long the first answer took: it may load or compile the model
    later_s: tuple[float, ...]
    steps: int
    step_s: float
    within_s: float
    is_finite: bool

    @property
    def problems(self) -> list[str]:
        """Why the robot would not move by it, in sentences."""
        late = sum(took_s > self.within_s for took_s in self.later_s)
        problems = []
        if late:
            problems.append(
                f"{late} of {len(self.later_s)} answers took longer than within_s ({self.within_s:g} s) "
                "and would be dropped"
            )
        if not self.is_finite:
            problems.append("an answer holds numbers that are not finite, and would be dropped")
        if self.steps * self.step_s < max(self.later_s):
            problems.append(
                f"a chunk lasts {self.steps * self.step_s:g} s, less than an answer takes: the robot would wait"
            )
        return problems


def try_server(asked: argparse.Namespace) -> int:
    """0; 1 where its answers would not be played. Raises UserError where it is asked wrongly, PolyrhythmError where
    the server does not answer."""
    policy = _policy(asked.server, asked.changes)
    trial = _tried(policy, asked.answers)
    problems, notes = trial.problems, policy.parameter_notes()
    if asked.json:
        told = {**msgspec.to_builtins(trial), "problems": problems, "notes": notes}
        print(msgspec.json.encode(told).decode())
        return 1 if problems else 0
    usual_s, slowest_s = statistics.median(trial.later_s), max(trial.later_s)
    print(f"{trial.server}: the first answer took {trial.first_s:.2f} s; a run asks for it before it begins")
    print(f"the next {len(trial.later_s)} took {usual_s:.3f} s (median) to {slowest_s:.3f} s")
    print(f"a chunk has {trial.steps} steps, {trial.step_s:g} s apart: {trial.steps * trial.step_s:g} s of motion")
    for note in notes:
        print(f"note: {note}")
    for problem in problems:
        print(f"! {problem}")
    if not problems:
        print(f"all of them came within within_s ({trial.within_s:g} s) and would be played")
    return 1 if problems else 0


def _policy(server: str, changes: list[str]) -> ServerPolicy:
    scheme = server.partition("://")[0]
    if scheme not in KINDS:
        raise UserError(f"{server!r} is no address of a server; expected one that begins with {choices(KINDS)}")
    tables: dict[str, Any] = {"nodes": {"policy": {}}}
    for change in changes:
        override(tables, f"policy.{change}")
    params = {"server": server, **tables["nodes"]["policy"].get("params", {})}
    policy = NodeSpec("policy", KINDS[scheme], params).build()
    assert isinstance(policy, ServerPolicy)
    if problems := policy.problems():
        raise UserError("; ".join(problems))
    return policy


def _tried(policy: ServerPolicy, answers: int) -> ServerTrial:
    within_s, policy.within_s = policy.within_s, WARM_S
    clock = SystemClock()
    session = policy.connect(os.environ.get(policy.key_variable, "") if policy.key_variable else "")
    took_s, found = [], []
    try:
        for _ in range(answers + 1):
            begun_ns = clock.now_ns()
            found.append(session.run(*policy.trial_question()).chunk)
            took_s.append(clock.since_s(begun_ns))
    finally:
        session.close()
    return ServerTrial(
        server=policy.model, first_s=took_s[0], later_s=tuple(took_s[1:]), steps=min(map(len, found)),
        step_s=policy.step_s, within_s=within_s, is_finite=all(bool(np.isfinite(chunk).all()) for chunk in found),
    )  # fmt: skip
