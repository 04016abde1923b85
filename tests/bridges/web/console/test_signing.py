"""What the console signs, the guard believes; what it cannot sign, the guard refuses."""

from __future__ import annotations

from pathlib import Path

from bridges.web.console.signing import RequestSigner
from nodes.msgs.signature import Signatures, make_token
from runtime.run_facts import RunFacts


def test_requests_are_proven_each_with_a_stamp_of_its_own(tmp_path: Path) -> None:
    proofs = Signatures(make_token(tmp_path))
    signer = RequestSigner(RunFacts.of({"registry": str(tmp_path)}))
    for request in (signer.seat("take", "policy", "human_policy", "Ada", 7), signer.seat("give", "vlm", "h", "Bo", 7)):
        assert proofs.holds(request, 8)
    order = signer.order("rearm", "Ada", 7)
    assert order.stamp_ns == 9
    assert proofs.holds(order, 9)


def test_without_the_run_s_token_nothing_is_proven(tmp_path: Path) -> None:
    assert RequestSigner(RunFacts()).order("arm", "Ada", 1).proof == ""
    assert RequestSigner(RunFacts.of({"registry": str(tmp_path)})).order("arm", "Ada", 1).proof == ""
