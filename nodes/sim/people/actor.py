"""`Actor`: simulated people who say a scenario's own lines, each when what it waits for has come about.

It is the person of a scenario that parameters write: no file, nobody with a body, several speakers.
"""

from __future__ import annotations

import re

from nodes.sim.people.person import ScenarioPerson
from nodes.sim.world.scenario import ScenarioEvent, SuccessCriteria, WorldScenario
from nodes.sim.world.world_file import load_world
from runtime import UserError

EARLIER = "earlier"
"""Who says the order that the robot had before anybody of the scenario was there."""
WHENS = {"start": "start", "then": "then", "said": "said: {}", "lifted": "ever: {} moved", "binned": "is: {} in bin"}
"""What a cue's kind is in a scenario file."""
QUIET_S = 12.0


def event_of(line: str) -> ScenarioEvent:
    """Of "KIND[:WHAT] | SECONDS | WHO | TEXT". Raises UserError."""
    parts = [part.strip() for part in line.split(" | ", 3)]
    kind, _, what = parts[0].partition(":")
    try:
        if len(parts) != 4 or kind not in WHENS or not parts[3]:
            raise ValueError
        re.compile(what)
        when = WHENS[kind].format(what.strip() if kind == "said" else _words(what.strip()))
        return ScenarioEvent(when=when, after_s=float(parts[1]), who=parts[2], say=parts[3])
    except (ValueError, re.error) as problem:
        raise UserError(
            f"actor: cue {line[:80]!r}; expected KIND[:WHAT] | SECONDS | WHO | TEXT with KIND of {', '.join(WHENS)}"
        ) from problem


class Actor(ScenarioPerson):
    """Says `order` at the start, as somebody said it earlier, and each of the `cues` once.

    The run is good when all that is wanted (`binned`, names of things) is in the bin and none of the things `left` is.
    It ends when it has been quiet for a while, or after `patience_s`.
    """

    provenance = "script:actor-1"
    called = "actor"

    def __init__(
        self,
        cues: tuple[str, ...] = (),
        order: str = "",
        binned: tuple[str, ...] = (),
        left: tuple[str, ...] = (),
        patience_s: float = 240.0,
    ) -> None:
        said_earlier = (ScenarioEvent(when="start", after_s=0.0, who=EARLIER, say=order),) if order else ()
        scenario = WorldScenario(
            sentence="", things=(), events=(*said_earlier, *map(event_of, cues)), forgives=False,
            patience_s=patience_s, quiet_s=QUIET_S,
        )  # fmt: skip
        right = [f"{_words(name)} in bin" for name in binned]
        right += [f"not {_words(name)} {where}" for name in left for where in ("in bin", "on floor")]
        self.play(scenario, SuccessCriteria(right=tuple(right)), load_world("table"), {}, name="")


def _words(name: str) -> str:
    return name.replace("_", " ")
