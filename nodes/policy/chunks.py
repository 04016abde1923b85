"""A model's answer as a message, and what of a chunk is to be done now."""

from __future__ import annotations

import numpy as np

from nodes.policy.model_inputs import PolicyAnswer
from runtime.message import Stamped
from runtime.msgs import ActionChunk, JointCommand


def as_message(answer: PolicyAnswer, step_s: float, felt_ns: int, action_id: str) -> ActionChunk:
    """The answer to what was felt then, made for that action."""
    return ActionChunk(
        position=np.ascontiguousarray(answer.chunk[:, :8]),
        base_v_mps=np.ascontiguousarray(answer.chunk[:, 8]),
        base_w_radps=np.ascontiguousarray(answer.chunk[:, 9]),
        step_s=step_s,
        action_id=action_id,
        done=answer.done,
        felt_ns=felt_ns,
    )


def seen_ns(stamped: Stamped[ActionChunk]) -> int:
    """When what the chunk was made from was seen, or felt where nothing was seen."""
    image_ns = stamped.envelope.born_ns("image")
    return stamped.message.felt_ns if image_ns is None else image_ns


def command_of(stamped: Stamped[ActionChunk], now_ns: int, max_age_s: float) -> JointCommand | None:
    """The step for now; None past the chunk's end, and where it is too old to trust."""
    chunk, age_s = stamped.message, stamped.age_s(now_ns)
    step = int(age_s / chunk.step_s)
    if age_s > max_age_s or not 0 <= step < len(chunk.position):
        return None
    return JointCommand(
        position=tuple(float(value) for value in chunk.position[step]),
        base_v_mps=float(chunk.base_v_mps[step]),
        base_w_radps=float(chunk.base_w_radps[step]),
    )
