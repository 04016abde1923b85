"""The choice of a VLM whose model may choose a skill: what a model advises, within what may be done at all.

It may choose a declared skill and what that is about, say that the subtask is done, and ask. Where it chooses nothing,
the rules of `next_action` do. What a person wants left alone is left alone, whatever a model chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodes.msgs import Argument, SeenObject, Subtask
from nodes.vlm.choice.giving_up import given_up
from nodes.vlm.choice.next_action import await_hand, decide, held_up, measured, spare
from nodes.vlm.choice.situation import Decision, Situation
from nodes.vlm.choice.things import is_excluded


@dataclass(frozen=True, slots=True)
class Counsel:
    """What the newest answer of a model says, and whether the model can be asked at all."""

    skill: str = ""
    target: SeenObject | None = None
    place: SeenObject | None = None
    done: bool = False
    colour: str = ""  # of what it would take next
    task_id: str = ""  # the subtask that it was asked about
    asked_ns: int = 0  # it knows nothing of what came after
    is_blind: bool = False  # it does not answer
    is_asking: bool = False  # its own question waits for an answer
    rules: bool = True  # where it chooses nothing, rules do


def decide_as_advised(now: Situation, counsel: Counsel) -> Decision:
    """What to do now."""
    is_running = now.doing is not None and now.outcome == "running"
    if not now.preferred and not (is_running and now.doing is not None and now.doing.skill == "pick"):
        now = replace(now, preferred=counsel.colour)  # where nobody said what they prefer
    if counsel.is_blind and not is_running:
        return Decision("keep", "failed", "unable to see: the vision model does not answer")
    task = now.subtask
    if (held := held_up(now)) is not None or task is None:
        return held or decide(now)
    if counsel.is_asking:
        return Decision("keep", "held", "waiting for an answer")
    is_advised = counsel.task_id == task.id  # and not about the subtask before
    if is_advised and counsel.done and not is_running:
        return _measured(now, task)
    if is_advised and counsel.skill:
        return _as_advised(now, counsel, is_running=is_running)
    if counsel.rules and task.skill:
        return decide(now)
    text = now.doing.text if now.doing is not None and is_running else "choosing what to do"
    return spare(now) or Decision("keep", "working", text)


def _measured(now: Situation, task: Subtask) -> Decision:
    """What became of a subtask that the model calls done: by what the robot did and sees, never by its word."""
    if task.place and task.skill in ("", "place"):
        return measured(now)
    if not now.did and now.failures:
        return Decision("keep", "failed", now.why or "nothing that was tried succeeded")
    did = f"the robot did: {', '.join(now.did)}" if now.did else "the robot itself did nothing for it"
    return Decision("keep", "finished", f"done, as the vision model sees it; {did}")


def _as_advised(now: Situation, counsel: Counsel, *, is_running: bool) -> Decision:
    """The skill that the model chose, once for each answer; nothing that is to be left alone."""
    skill, target, place, doing = counsel.skill, counsel.target, counsel.place, now.doing
    if (spared := spare(now)) is not None:
        return spared
    if is_running and doing is not None:
        return Decision("keep", "working", doing.text)
    if now.ended_ns >= counsel.asked_ns:
        return Decision("keep", "working", "choosing what to do next")
    if target is not None and target.name in given_up(now):
        return measured(now)
    if target is not None and is_excluded(now, target):
        return Decision("keep", "working", f"leaving the {target.name} alone")
    spec = now.skills.get(skill)
    arguments: list[Argument] = []
    for argument in spec.arguments if spec is not None else ():
        thing = {"place": place, "thing": target or place, "person": now.hand}.get(argument.type)
        if argument.type == "person" and thing is None and now.holding is not None:
            return await_hand(now.holding)
        if thing is not None:
            arguments.append(Argument(name=argument.name, thing=thing))
        elif argument.is_needed and argument.type in ("thing", "place"):
            return Decision("keep", "working", "looking again: nobody knows where that is")
    thing = target or now.holding
    what = f" the {thing.name}" if thing is not None else ""
    text = f"{skill.replace('_', ' ')}{what}{f' at the {place.name}' if place is not None else ''}"
    return Decision(skill, "working", text, target or place, arguments=tuple(arguments))
