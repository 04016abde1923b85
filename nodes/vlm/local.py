"""`LocalVLM`: a small VLM's job without a large model: looks at the head image, talks, and chooses the next action.

It really looks: all it knows of the table is what `perception` finds in its camera's image.
"""

from __future__ import annotations

from nodes.perception.shapes import shape_names
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.hold import PLAN_WAIT_S, LooksRound
from nodes.vlm.choice.next_action import decide
from nodes.vlm.eyes.geometry_eyes import GeometryEyes
from nodes.vlm.grammar_talk import GrammarTalk
from nodes.vlm.node import VLM


class LocalVLM(VLM):
    """5 Hz, and at once when something is heard, felt or decided.

    After a new order it waits `plan_wait_s` for the planner, in s, and then goes on with the old subtask. `shapes` is a
    file that says what shapes are called, as `nodes/perception/shapes.toml` does ("": that one). The head looks round
    once before anything is known, never before the robot is armed: `looks_round` "asked", when a person has spoken to
    it since; "armed", at once; "never".
    """

    provenance = "model:local-geometry-1"
    robot_parameter = "limits"

    def __init__(
        self,
        speaker: str = "robot",
        limits: str = "",
        plan_wait_s: float = PLAN_WAIT_S,
        shapes: str = "",
        looks_round: LooksRound = "asked",
    ) -> None:
        belief = TableBelief(shape_names(shapes))
        super().__init__(
            GeometryEyes(belief),
            belief,
            GrammarTalk(),
            decide,
            speaker=speaker,
            limits=limits,
            plan_wait_s=plan_wait_s,
            looks_round=looks_round,
        )
