"""Runs rows of the matrix: fresh graphs where one is spent, and the trials in them."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.faults.matrix import Fault, Skip, mount_small
from bench.faults.outcome import Outcome
from bench.faults.rig import FaultError, Rig
from bench.faults.table import Row, rows_of
from runtime.errors import PolyrhythmError
from tests.support.servers.fake_openai_server import (
    Behaviour,
    FakeOpenAI,
    answers,
    half_a_stream,
    polite_half_a_stream,
    raw,
    silence,
    status,
    trickle,
)

MALFORMED = ('{"verb": "pu', "[]", '{"verb": "run_shell"}', '{"verb": "put", "what": 1e999}', "NaN", "", "x" * 100_000)
BEHAVIOURS: Mapping[str, tuple[Behaviour, ...]] = {
    "429": (status(429, retry_after="1"),),
    "500": (status(500),),
    "silence": (silence,),
    "trickle": (trickle,),
    "half": tuple(itertools.chain(*[(half_a_stream, polite_half_a_stream)] * 100)),
    "malformed": tuple(itertools.chain(*[(*map(answers, MALFORMED), raw(b"<html>"), raw(b"\xff\x00"))] * 20)),
}


def graph_of(fault: Fault) -> object:
    """What graph it needs: equal for faults that can share one."""
    return (tuple(sorted(fault.changes.items())), fault.serving, "disk" in fault.name, fault.prefix)


class Rigs:
    """The graph that trials use: kept from fault to fault while the next one needs the same and it can move."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()
        self._key: object = None
        self._rig: Rig | None = None

    def for_(self, fault: Fault) -> Rig:
        """One that suits this fault: the one at hand, or a new one."""
        key = graph_of(fault)
        if self._rig is None or key != self._key or fault.is_fresh or self._rig.is_spent:
            self.close()
            self._key, self._rig = key, self._held.enter_context(_rig(fault))
        return self._rig

    def close(self) -> None:
        """End the graph at hand."""
        self._rig = None
        self._held.close()

    def __enter__(self) -> Rigs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _rig(fault: Fault) -> Iterator[Rig]:
    with contextlib.ExitStack() as stack:
        environment = {}
        if fault.serving:
            server = stack.enter_context(FakeOpenAI(*BEHAVIOURS[fault.serving]))
            environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        with _small_disk("disk" in fault.name) as out:
            rig = Rig(fault.changes, environment=environment, out=out, prepare=fault.prepare, prefix=fault.prefix)
            try:
                yield rig
            finally:
                rig.close()


@contextlib.contextmanager
def _small_disk(is_wanted: bool) -> Iterator[str]:
    if not is_wanted:
        yield ""
        return
    with tempfile.TemporaryDirectory() as place:
        mount_small(Path(place))
        try:
            yield place
        finally:
            subprocess.run(["umount", "-l", place], check=False, capture_output=True)


def attempt(fault: Fault, rigs: Rigs, code: str = "") -> Outcome:
    """One trial."""
    start, rig_s, moving_s = time.monotonic(), 0.0, 0.0
    figures: Mapping[str, float] = {}
    problem = skipped = ""
    late_ms = 0.0
    try:
        rig = rigs.for_(fault)
        if not fault.is_fresh:
            rig.wait_whole()
        rig_s, moved_s = time.monotonic() - start, rig.moving_s
        start_ns = time.monotonic_ns()
        with fault.around(rig):
            found = fault.trial(rig)
            late_ms = rig.lateness_ms(start_ns)
        moving_s = rig.moving_s - moved_s
        figures = {bound.figure: float(found[bound.figure]) for bound in fault.bounds}
    except Skip as why:
        skipped = f"skipped: {why}"
    except (FaultError, PolyrhythmError) as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001  # whatever a trial fails of, the other faults are measured too
        problem = f"{type(error).__name__}: {error}"
    if problem or fault.is_fresh:
        rigs.close()
    return Outcome(
        code=code,
        fault=fault.name,
        figures=dict(figures),
        late_ms=late_ms,
        problem=problem,
        skipped=skipped,
        took_s=time.monotonic() - start,
        rig_s=rig_s,
        moving_s=moving_s,
        load=os.getloadavg()[0],
    )


def measure(fault: Fault, number: int, rigs: Rigs | None = None) -> list[Row]:
    """So many trials of one fault, up to the first that fails; one row per bound."""
    if rigs is None:
        with Rigs() as own:
            return measure(fault, number, own)
    outcomes: list[Outcome] = []
    while len(outcomes) < number and not (outcomes and (outcomes[-1].problem or outcomes[-1].skipped)):
        outcomes.append(attempt(fault, rigs))
    return rows_of(fault, outcomes)
