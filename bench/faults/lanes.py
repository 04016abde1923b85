"""Lanes: trials of the whole matrix, several graphs side by side where that harms no figure, and how long is left.

A fault that keeps the machine busy on purpose is tried alone, after all others; so is one that times a tool from the
start of its process, which graphs that start beside it would delay.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from statistics import fmean

from bench.faults.matrix import Fault
from bench.faults.outcome import Outcome, Outcomes
from bench.faults.run import Rigs, attempt, graph_of

PORTION = 10
"""Trials that a lane takes at a time."""
USUAL_S = 3.0
"""Of a trial, as long as none was made."""


Portion = tuple[Fault, ...]
"""Trials that one lane makes one after the other, in one graph where they can share it."""


def portions(faults: Sequence[Fault], outcomes: Outcomes, trials: int, size: int = PORTION) -> list[Portion]:
    """What is left to be done, in portions of that size at most.

    Faults that can share a graph take turns in it, so that its supervisor sees no crash loop in a process that is
    killed again and again. The graph of most faults comes last: whichever lane is free goes on with its own one.
    """
    found = []
    graphs: dict[object, list[tuple[Fault, int]]] = defaultdict(list)
    for fault in faults:
        left = outcomes.missing(fault.name, min(trials, fault.most_trials))
        if fault.is_fresh:
            found += _cut([fault] * left, size)
        else:
            graphs[graph_of(fault)].append((fault, left))
    for sharing in sorted(graphs.values(), key=lambda sharing: sum(left for _, left in sharing)):
        turns = range(max(left for _, left in sharing))
        found += _cut([fault for turn in turns for fault, left in sharing if turn < left], size)
    return found


def _cut(trials: Sequence[Fault], size: int) -> list[Portion]:
    return [tuple(trials[start : start + size]) for start in range(0, len(trials), size)]


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
    is_over = threading.Event()
    try:
        for is_alone, beside in ((False, lanes), (True, 1)):
            these = [fault for fault in faults if fault.is_alone is is_alone]
            _in_lanes(deque(portions(these, outcomes, trials)), outcomes, beside, told, is_over)
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
            for fault in portion:
                if is_over.is_set():
                    return
                if not outcomes.missing(fault.name, 10**9):
                    continue  # it has failed meanwhile
                outcome = attempt(fault, rigs, outcomes.code)
                outcomes.add(outcome)
                told(outcome)
