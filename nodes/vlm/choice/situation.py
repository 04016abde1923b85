"""From the parts of a VLM to the `Situation` that choice decides by; from a decision to what the planner is told."""

from __future__ import annotations

from nodes.msgs import Reference, SceneDescription, SeenObject, Subtask
from nodes.vlm.choice.deeds import Deeds
from nodes.vlm.choice.hold import Hold
from nodes.vlm.choice.next_action import Decision, Situation, how_many, lost, tried
from nodes.vlm.parts import IMAGES_PER_GAZE, Belief, Moment


def situation_of(
    task: Subtask | None,
    vetoed: tuple[Reference, ...],
    now: Moment,
    belief: Belief,
    deeds: Deeds,
    hold: Hold,
    *,
    is_to_look: bool,
) -> Situation:
    """All that is known at that moment."""
    state = now.states[-1] if now.states else None
    return Situation(
        subtask=task,
        vetoed=vetoed,
        objects=belief.things(),
        relations=belief.relations,
        skills=now.skills or {},
        holding=belief.holding,
        moved=belief.moved,
        doing=deeds.doing,
        outcome=deeds.outcome,
        why=deeds.why,
        code=deeds.code,
        ended_ns=deeds.ended_ns,
        succeeded_ns=deeds.succeeded_ns,
        now_ns=now.now_ns,
        is_counted=deeds.is_counted,
        is_for_task=task is not None and deeds.done_for == task.id,
        did=deeds.did,
        failures=dict(deeds.failures),
        reasons=dict(deeds.reasons),
        steps=dict(deeds.steps),
        gone=belief.gone(),
        looks=deeds.looks,
        is_looking_over=belief.images >= IMAGES_PER_GAZE,
        is_stopped=hold.is_stopped,
        is_waiting=hold.is_waiting,
        is_unconfirmed=hold.yes_state != "not asked",
        hand=belief.hand,
        palm_m=belief.palm_m,
        is_grasping=now.is_grasping,
        is_to_look=is_to_look,
        base=(state.base_x_m, state.base_y_m, state.base_heading_rad) if state is not None else (0.0, 0.0, 0.0),
    )


def described(decision: Decision, now: Situation, belief: Belief, target: SeenObject | None) -> SceneDescription:
    """What the planner is told: what is done, seen and brought, and what went wrong; `target` is held or gone for."""
    task, objects = now.subtask, belief.objects
    names = ", ".join([thing.name for thing in objects] + list(belief.unplaced)) or "nothing"
    held = f" It holds the {now.holding.name}." if now.holding is not None else ""
    work = f" Subtask: {task.text}." if task is not None and task.text else ""
    return SceneDescription(
        text=f"The robot {_does(decision)}.{held}{work} It sees: {names}.",
        subtask_id=task.id if task is not None else "",
        progress=decision.progress,
        objects=objects,
        subtask=task,
        why=(decision.why or decision.text) if decision.progress in ("failed", "finished") else "",
        code=decision.code,
        target=target,
        left=now.vetoed,
        did=now.did,
        moved=tuple(_named(one) for one in now.moved),
        wanted=how_many(now),
        tried=tried(now),
        gone=tuple(_named(one) for one in lost(now)),
    )


def _does(decision: Decision) -> str:
    """What it does, or how that ended, as the rest of a sentence: only what was measured is said to be finished."""
    ended = {
        "finished": "has finished: ",
        "failed": "failed, because ",
        "idle": "has " if "nothing" in decision.text else "is ",
    }
    return ended.get(decision.progress, "is ") + decision.text


def _named(thing: SeenObject) -> Reference:
    return Reference(id=thing.id, label=thing.label, colour=thing.colour)
