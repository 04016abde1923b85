"""A repeated action is told from another speaker's, or a speaker's that was started again, of the same number."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.msgs import Action, Feedback
from nodes.policy.expert import ExpertPolicy
from nodes.policy.onnx.policy import OnnxPolicy
from runtime.context import HandlerContext, current_call
from runtime.message import Envelope, Message, Stamped
from tests.support.models.model_files import write_model
from tests.support.models.policy_model import policy_model
from tests.support.standing import standing

HOLD = Action(id="console-1", skill="hold")


def handle(policy: OnnxPolicy | ExpertPolicy, source: str, seq: int) -> None:
    """The action as the runtime hands it over."""
    call = HandlerContext(1)
    call.trigger = Stamped(HOLD, Envelope(topic="action", source=source, seq=seq, published_ns=1))
    token = current_call.set(call)
    try:
        policy.begin(HOLD)
    finally:
        current_call.reset(token)


@pytest.mark.parametrize("kind", ["onnx", "expert"])
def test_only_what_the_same_speaker_says_again_is_the_same_action(kind: str, tmp_path: Path) -> None:
    policy = OnnxPolicy(write_model(tmp_path, policy_model())) if kind == "onnx" else ExpertPolicy()
    now_ns = policy.clock.now_ns()
    envelope = Envelope(topic="robot/state", source="driver", seq=1, published_ns=now_ns)
    policy.state.push(Stamped(standing(now_ns), envelope))
    done: list[Message] = []
    policy.feedback.sink = lambda port, message, _: done.append(message)
    for source, seq, answers in (
        ("human_vlm", 7, 1),
        ("human_vlm", 8, 1),  # said again
        ("human_vlm", 1, 2),  # the console was started again
        ("vlm", 9, 3),  # the model has a number 1 of its own
        ("vlm", 10, 3),
    ):
        handle(policy, source, seq)
        assert len(done) == answers, (source, seq)
    assert done == [Feedback(action_id="console-1", status="success", why="holding still")] * 3
