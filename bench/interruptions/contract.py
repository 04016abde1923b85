"""What the experiment reads out of the robot's messages: what an action is about, and what fits an interruption."""

from __future__ import annotations

from nodes.msgs import Action, SeenObject, Subtask


def thing_of(action: Action) -> SeenObject | None:
    """The thing or place that the hand goes to."""
    return action.target


def name_of(action: Action) -> str:
    """The name of what an action is about, as the simulator calls it: "blue_cup", "bin"."""
    thing = thing_of(action)
    if thing is None:
        return ""
    return f"{thing.colour}_{thing.label}" if thing.colour and thing.label != "bin" else thing.label


def fits_action(wants: str, action: Action, it: str) -> bool:
    """Whether an action is what is wanted, one of `scenarios.WANTS`. `it`: the name of what was picked first."""
    name = name_of(action)
    if wants == "cups but it":
        return (action.skill == "pick" and name != it) or (action.skill in ("place", "put_back") and name == it)
    if wants in ("ball", "cups and ball"):
        return action.skill == "pick" and name.endswith("_ball")
    return False


def fits_plan(wants: str, subtask: Subtask, it: str) -> bool:
    """Whether a subtask is what is wanted."""
    colour = it.partition("_")[0]
    if wants == "cups but it":
        return any(one.colour == colour for one in subtask.excluding)
    if wants in ("ball", "cups and ball"):
        return any(one.label in ("ball", "*", "") for one in subtask.things)
    return False
