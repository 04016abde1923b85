"""Agreement of raters against published tables, and against what a hand can compute."""

from __future__ import annotations

import pytest

from nodes.statistics.agreement import icc, krippendorff_alpha, weighted_kappa
from tests.support.sentences import pattern

SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Their table 2: six targets, four judges."""

_: None = None
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
"""His example of four observers and twelve units, with missing data."""


def test_an_intraclass_correlation_is_that_of_shrout_and_fleiss() -> None:
    assert icc(SHROUT_FLEISS) == pytest.approx(0.29, abs=0.005)


def test_alpha_is_krippendorff_s_on_his_example_with_gaps() -> None:
    assert krippendorff_alpha(list(zip(*KRIPPENDORFF, strict=True))) == pytest.approx(0.815, abs=0.0005)


def test_weighted_kappa_is_what_a_hand_computes() -> None:
    first, second = [0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 1, 2, 2, 2]
    assert weighted_kappa(first, second, 3) == pytest.approx(66 / 82)  # 1 - (16/256) / (82/256)
    assert weighted_kappa(first, first, 3) == pytest.approx(1.0)


def test_nothing_is_claimed_where_nothing_can_be_known() -> None:
    assert weighted_kappa([], [], 3) is None
    assert weighted_kappa([1, 1], [1, 1], 3) is None  # both say the same of everything: chance does, too
    assert krippendorff_alpha([[1.0, None], [2.0, None]]) is None
    assert krippendorff_alpha([[3.0, 3.0], [3.0, 3.0]]) is None
    assert icc([[1.0, 2.0]]) is None
    with pytest.raises(ValueError, match=pattern("statistics.one_of_each_rater")):
        weighted_kappa([1], [1, 2], 3)
    with pytest.raises(ValueError, match=pattern("statistics.rating_is_missing")):
        icc([[1.0, 2.0], [1.0]])
