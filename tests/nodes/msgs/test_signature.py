"""Proofs: made with the run's token by whoever may read it, good for one message, once, and for two seconds."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from nodes.msgs import SeatRequest
from nodes.msgs.signature import GOOD_FOR_NS, MOST_PROOFS, Signatures, make_token, order, request, token_of
from runtime.clock import NS_PER_S
from runtime.errors import PolyrhythmError
from tests.support.sentences import pattern

NOW_NS = 10 * NS_PER_S


def changed(asked: SeatRequest, **fields: object) -> SeatRequest:
    request: SeatRequest = msgspec.structs.replace(cast(Any, asked), **fields)
    return request


def test_a_proof_is_good_once_and_for_a_while(tmp_path: Path) -> None:
    token = make_token(tmp_path)
    assert make_token(tmp_path) == token_of(tmp_path) == token
    assert (tmp_path / "guard.token").stat().st_mode & 0o077 == 0
    proofs, asked = Signatures(token), order(token, "arm", "Ann", NOW_NS)
    assert not proofs.holds(asked, NOW_NS + 3 * NS_PER_S)
    assert not proofs.holds(asked, NOW_NS - 3 * NS_PER_S)
    assert proofs.holds(asked, NOW_NS)
    assert not proofs.holds(asked, NOW_NS)
    assert not proofs.holds(asked, NOW_NS + NS_PER_S)


def test_a_proof_is_of_one_message_and_of_nothing_else_in_it() -> None:
    asked = request("t", "take", "policy", "replay", "Ann", NOW_NS, kind="replay")
    for change in ({"do": "give"}, {"seat": "vlm"}, {"holder": "x"}, {"kind": "person"}, {"by": "Bo"}, {"stamp_ns": 1}):
        assert not Signatures("t").holds(changed(asked, **change), NOW_NS)
    shifted = request("t", "take", "policy", "a\nb", "c", NOW_NS)
    assert not Signatures("t").holds(changed(shifted, holder="a", by="b\nc"), NOW_NS)
    assert Signatures("t").holds(asked, NOW_NS)


def test_two_people_may_sign_at_the_same_time_and_arrive_in_either_order() -> None:
    proofs = Signatures("t")
    ann, bo = (request("t", "renew", "policy", name, name, NOW_NS + late) for late, name in enumerate(("ann", "bo")))
    assert proofs.holds(bo, NOW_NS)
    assert proofs.holds(ann, NOW_NS)
    assert not proofs.holds(bo, NOW_NS)


def test_without_a_token_nothing_is_signed_and_nothing_is_proven(tmp_path: Path) -> None:
    assert order("", "arm", "Ann", NOW_NS).proof == ""
    assert not Signatures("").holds(order("", "arm", "Ann", NOW_NS), NOW_NS)
    assert not Signatures("t").holds(order("", "arm", "Ann", NOW_NS), NOW_NS)
    with pytest.raises(PolyrhythmError, match=pattern("guard.no_guard")):
        token_of(tmp_path)


def test_what_was_signed_for_an_earlier_guard_is_not_good_for_its_successor() -> None:
    asked = order("t", "arm", "Ann", NOW_NS)
    assert Signatures("t").holds(asked, NOW_NS + 1)
    assert not Signatures("t", since_ns=NOW_NS + 1).holds(asked, NOW_NS + 1)


def test_where_no_guard_was_before_whatever_was_signed_since_the_clock_began_is_good() -> None:
    assert Signatures("t").holds(order("t", "arm", "Ann", 1), 1)


def test_proofs_do_not_fill_the_memory_and_are_forgotten_when_they_are_old() -> None:
    proofs = Signatures("t")
    for number in range(MOST_PROOFS):
        assert proofs.holds(order("t", "arm", "Ann", NOW_NS + number), NOW_NS)
    assert not proofs.holds(order("t", "arm", "Ann", NOW_NS + MOST_PROOFS), NOW_NS)
    later_ns = NOW_NS + 3 * NS_PER_S
    assert proofs.holds(order("t", "arm", "Ann", later_ns), later_ns)


def test_a_proof_is_good_for_exactly_its_time_in_both_directions() -> None:
    asked = order("t", "arm", "Ann", NOW_NS)
    for shift_ns in (GOOD_FOR_NS, -GOOD_FOR_NS):
        assert Signatures("t").holds(asked, NOW_NS + shift_ns)
        assert not Signatures("t").holds(asked, NOW_NS + shift_ns + (1 if shift_ns > 0 else -1))
    assert Signatures("t", since_ns=NOW_NS - 1).holds(asked, NOW_NS)
    assert not Signatures("t", since_ns=NOW_NS).holds(asked, NOW_NS), "the guard before it may have taken it already"


def test_a_proof_is_remembered_for_as_long_as_it_is_good() -> None:
    asked, proofs = order("t", "arm", "Ann", NOW_NS), Signatures("t")
    assert proofs.holds(asked, NOW_NS)
    assert not proofs.holds(asked, NOW_NS + GOOD_FOR_NS), "in its last moment it is good, and was seen"


def test_a_proof_that_is_no_text_of_ours_is_refused_and_not_an_error() -> None:
    asked = order("t", "arm", "Ann", NOW_NS)
    for proof in ("", "\udcff", "x" * 64, asked.proof.upper()):
        assert not Signatures("t").holds(cast(Any, msgspec.structs.replace)(asked, proof=proof), NOW_NS)


def test_what_is_signed_says_all_that_was_asked() -> None:
    asked = request("t", "take", "vlm", "eyes", "Ann", NOW_NS, kind="replay")
    wanted = SeatRequest(
        seat="vlm", do="take", holder="eyes", kind="replay", by="Ann", stamp_ns=NOW_NS, id=f"Ann-{NOW_NS}"
    )
    assert changed(asked, proof="") == wanted
    assert request("t", "give", "vlm", "", "Ann", NOW_NS).kind == "person"
    ordered = order("t", "rearm", "Bo", NOW_NS)
    assert (ordered.do, ordered.by, ordered.stamp_ns) == ("rearm", "Bo", NOW_NS)
    assert len(ordered.proof) == 64
    assert len(asked.proof) == 64


def test_a_proof_is_the_hmac_of_the_messages_kind_and_of_its_fields_in_json() -> None:
    """So that a tool of another version, or in another language, can sign."""
    asked = order("t", "resume", "Ann", NOW_NS)
    text = '{"":"GuardOrder","do":"resume","by":"Ann","stamp_ns":10000000000,"proof":"","id":"Ann-10000000000"}'
    assert asked.proof == hmac.new(b"t", text.encode(), hashlib.sha256).hexdigest()
