"""`HAND_OVER`: a skill that sets what is held onto a person's open hand, after that person's own yes.

A graph whose eyes find hands names it: `params = { skills = ["nodes.policy.hand_over:HAND_OVER"] }`.
"""

from __future__ import annotations

from dataclasses import replace

from nodes.msgs import Action, RobotState, SkillArgument, SkillSpec
from nodes.policy.skill_catalogue import Plan, PolicySkill
from nodes.policy.skill_phases import PUT_BACK, SET_BACK, Spot, plan

PERSON = SkillArgument(name="person", type="person", sentence="The hand of the person.")
_CARRY = replace(PUT_BACK[0], says="bringing it to the {it}", fails="the gripper does not get to the {it}")
_SET_DOWN = replace(SET_BACK[1], says="giving it to the {it}", fails="something is in the {it}")
_PHASES = (_CARRY, _SET_DOWN, *SET_BACK[2:])


def onto_palm(x_m: float, y_m: float, top_m: float, held: Spot) -> Plan:
    """The phases that set a thing onto a palm whose upper side is there."""
    return plan(_PHASES, replace(held, name="hand", x_m=x_m, y_m=y_m, z_m=top_m + held.height_m / 2))


def _phases(action: Action, state: RobotState, held: Spot | None) -> Plan | str:
    target = action.target
    if held is None or not state.is_grasping:
        return "there is nothing in the gripper to hand over"
    return "nobody's hand is named" if target is None else onto_palm(target.x_m, target.y_m, target.z_m, held)


HAND_OVER = PolicySkill(
    SkillSpec(
        name="hand_over", sentence="Set what is held onto a person's open hand.", arguments=(PERSON,),
        before=("holding",), after=("hand empty",), usual_s=9.0, risk="person",
    ),
    _phases,
)  # fmt: skip
