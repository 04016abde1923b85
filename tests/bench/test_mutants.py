"""The count of mutants: by module, of those tried, and said to be a sample where it is one."""

from __future__ import annotations

from bench.mutants import Tally, as_markdown, share_of, tally

RESULTS = {
    "nodes.guard.node.xǁGuardǁ_stop__mutmut_1": "killed",
    "nodes.guard.node.xǁGuardǁ_stop__mutmut_2": "survived",
    "nodes.guard.node.x_stop__mutmut_1": "timeout",
    "runtime.coordination.lease.x_take__mutmut_1": "no tests",
    "runtime.coordination.lease.x_take__mutmut_2": "",
}


def test_mutants_are_counted_by_module_and_only_those_tried_share_in_the_figure() -> None:
    tallies = tally(RESULTS)
    assert tallies == [Tally("nodes.guard.node", 3, 2, 3, 1), Tally("runtime.coordination.lease", 1, 0, 2)]
    assert share_of(tallies) == 0.5
    assert share_of([]) == 0.0


def test_a_sample_says_so_and_a_whole_run_too() -> None:
    sample = as_markdown(tally(RESULTS), took_s=120.0, seed=3)
    assert "2 of 4 mutants killed, **50.0%**" in sample
    assert "a random sample (seed 3) of 4 of 5, in 2 minutes" in sample
    assert "| `nodes.guard.node` | 3 | 3 | 2 | 66.7% |" in sample
    whole = as_markdown([Tally("m", 4, 4, 4)], took_s=60.0, seed=0)
    assert "Tried were all of 4" in whole
