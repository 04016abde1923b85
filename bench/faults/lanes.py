"""Lanes: trials of the whole matrix, several graphs side by side where that harms no figure, and how long is left.

A fault that keeps the machine busy on purpose is tried alone, after all others; so is one that times a tool from the
start of its process, which graphs that start beside it would delay.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.faults.matrix import Fault
from bench.faults.outcome import Outcome, Outcomes
from bench.faults.run import Rigs, attempt, graph_of

PORTION = 10
"""Trials that a lane takes at a time, of a fault that needs a graph for each of them."""
USUAL_S = 3.0
"""Of a trial, as long as none was made."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Some trials of one fault."""

    fault: Fault
    number: int


def portions(faults: Sequence[Fault], outcomes: Outcomes, trials: int, size: int = PORTION) -> list[Portion]:
    """What is left to be done.

    Faults that can share a graph take turns in it, so that its supervisor sees no crash loop in a process that is
    killed again and again. Of those that need a graph for each trial, some trials at a time.
    """
    found = []
    graphs: dict[object, list[tuple[Fault, int]]] = defaultdict(list)
    for fault in faults:
        left = outcomes.missing(fault.name, min(trials, fault.most_trials))
        if not fault.is_fresh:
            graphs[graph_of(fault)].append((fault, left))
            continue
        while left > 0:
            found.append(Portion(fault, min(size, left)))
            left -= size
    for sharing in graphs.values():
        for turn in range(max(left for _, left in sharing)):
            found += [Portion(fault, 1) for fault, left in sharing if turn < left]
    return found


def left_s(faults: Sequence[Fault], outcomes: Outcomes, trials: int, lanes: int) -> float:
    """How long the rest takes, by what trials took so far."""
    known = outcomes.all()
    usual_s = fmean(one.took_s for one in known) if known else USUAL_S
    together_s = alone_s = 0.0
    for fault in faults:
        of = outcomes.of(fault.name)
        each_s = fmean(one.took_s for one in of) if of else usual_s
        rest_s = each_s * outcomes.missing(fault.name, min(trials, fault.most_trials))
        if fault.is_alone:
            alone_s += rest_s
        else:
            together_s += rest_s
    return together_s / lanes + alone_s


def run_all(
    faults: Sequence[Fault], outcomes: Outcomes, trials: int, lanes: int, told: Callable[[Outcome], None]
) -> None:
    """Make all trials that are missing. After Ctrl-C the trials under way come to their end, and their graphs too."""
    work = portions(faults, outcomes, trials)
    is_over = threading.Event()
    try:
        _in_lanes(deque(one for one in work if not one.fault.is_alone), outcomes, lanes, told, is_over)
        _in_lanes(deque(one for one in work if one.fault.is_alone), outcomes, 1, told, is_over)
    finally:
        is_over.set()


def _in_lanes(
    work: deque[Portion], outcomes: Outcomes, lanes: int, told: Callable[[Outcome], None], is_over: threading.Event
) -> None:
    threads = [
        threading.Thread(target=_lane, args=(work, outcomes, told, is_over), name=f"lane {number}")
        for number in range(min(lanes, len(work)))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        is_over.set()
        for thread in threads:
            thread.join()
        raise


def _lane(work: deque[Portion], outcomes: Outcomes, told: Callable[[Outcome], None], is_over: threading.Event) -> None:
    with Rigs() as rigs:
        while not is_over.is_set():
            try:
                portion = work.popleft()
            except IndexError:
                return
            for _ in range(portion.number):
                if is_over.is_set() or not outcomes.missing(portion.fault.name, 10**9):
                    break
                outcome = attempt(portion.fault, rigs, outcomes.code)
                outcomes.add(outcome)
                told(outcome)
