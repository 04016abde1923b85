"""Thousands of answers of a model that are none: to the planner over HTTP, and to both models' readers directly."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from random import Random

from bench.faults.measures import Figures
from bench.faults.rig import Rig
from bench.faults.trials import fallen
from nodes.models.answers import ModelError
from nodes.msgs import Scene, SeenObject, Utterance
from nodes.planner.model_prompt import parse as parse_plan
from nodes.planner.openai_api import OpenAIPlanner
from nodes.planner.orders import Surroundings
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from nodes.vlm.eyes.model_prompt import parse as parse_scene
from runtime import Simulation
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, raw

NUMBER = 10_000
OVER_HTTP = 200
SAID_AGAIN_S = 30.0
"""Longer than a planner pauses after a failure."""
TAKEN = "malformed answers taken"
READ = "malformed answers read"
ASKED = "malformed answers over HTTP"

BIN = SeenObject(
    id="thing-1", label="bin", colour="", x_m=0.4, y_m=0.2, z_m=0.1, width_m=0.3, height_m=0.3, u_px=20.0, v_px=30.0,
    is_place=True,
)  # fmt: skip
AROUND = Surroundings(Scene(things=(BIN,), kinds=("cup",)), tuple(SPECS.values()))
"""A robot that has told its skills and places: another word than these is no answer."""
CUP = {"label": "cup", "colour": "", "count": 0, "id": ""}
PLAN: dict[str, object] = {
    "do": "work", "skill": "place", "things": [CUP], "excluding": [],
    "place": "bin", "relation": "in", "text": "Put the cups in the bin", "say": "",
}  # fmt: skip
SEEN = {"label": "cup", "colour": "red", "u": 10.0, "v": 10.0, "is_place": False}
SCENE: dict[str, object] = {
    "objects": [SEEN], "target": 0, "place": -1, "skill": "pick", "done": False, "say": "",
}  # fmt: skip
WRONG: tuple[object, ...] = (None, 1e999, -1, True, "", "../..", "run_shell", [[]], {}, "x" * 5000, "\x00", 2**70)
NO_TEXT: tuple[object, ...] = (1e999, True, [[]], "x" * 5000)
NO_WORD: tuple[object, ...] = (*NO_TEXT, -1, "../..", "run_shell", "\x00")
NO_NUMBER: tuple[object, ...] = (1e999, float("nan"), True, "", [], {}, 0.5, 2**70)
NO_THINGS: tuple[object, ...] = (1e999, -1, True, [[]], "x" * 5000, 2**70)
"""Not in here, because it is read: null or {} for what may be empty, "1" for 1, 3 for "3", one thing for a list,
keys that nobody asked for."""
WRONG_PLAN: dict[str, tuple[object, ...]] = {
    "do": (*NO_WORD, None, {}, ""),
    "skill": NO_WORD,
    "place": (*NO_WORD, None, {}, ""),  # the skill needs one
    "relation": NO_WORD,
    "text": (*NO_TEXT, None, {}, ""),
    "say": NO_TEXT,
    **dict.fromkeys(
        ("things", "excluding"),
        (
            *NO_THINGS,
            [CUP] * 21,
            [{**CUP, "id": "thing-9"}],
            *([{**CUP, "count": wrong}] for wrong in (*NO_NUMBER, -1, 101)),
        ),
    ),
}
"""What each key of a planner's answer must not hold: by its type, its bounds, or by what there is."""
WRONG_SCENE: dict[str, tuple[object, ...]] = {
    "objects": (
        *NO_THINGS,
        [SEEN] * 41,
        *([{**SEEN, "u": wrong}] for wrong in (None, 1e999, float("nan"), True, "", -1, 100_001, 2**70)),
    ),
    "target": (*NO_NUMBER, None, -1, -2, 1),  # the skill needs one
    "place": (*NO_NUMBER, -2, 1),
    "skill": NO_WORD,
    "done": (1e999, -1, "", "../..", [[]], {}),
    "say": NO_TEXT,
}
"""The same of an answer of the eyes' model."""


def malformed(random: Random, whole: Mapping[str, object], wrong: Mapping[str, Sequence[object]]) -> str:
    """An answer that must not be taken: cut, of wrong types, beyond bounds or lists, without a key, or no JSON."""
    kind = random.randrange(5)
    text = json.dumps(whole)
    if kind == 0:
        return text[: random.randrange(len(text) - 1)]
    if kind == 1:
        key = random.choice(list(wrong))
        return json.dumps({**whole, key: random.choice(wrong[key])})
    if kind == 2:
        return json.dumps(random.choice(WRONG))
    if kind == 3:
        first = next(iter(whole))
        return json.dumps({key: value for key, value in whole.items() if key != first}) * random.randint(1, 2)
    return random.randbytes(random.randrange(300)).decode("latin-1")


def thousands(rig: Rig) -> Figures:
    """So many malformed answers; none is taken, nothing else than a refusal is raised, and the robot stops as ever."""
    random, taken = Random(7), 0
    for _ in range(NUMBER):
        taken += _is_taken(lambda: parse_plan(malformed(random, PLAN, WRONG_PLAN), AROUND))
        taken += _is_taken(lambda: parse_scene(malformed(random, SCENE, WRONG_SCENE), "pixel", 64, 48, AROUND.skills))
    asked, acted = _over_http(random)
    return {**fallen(rig), READ: NUMBER, ASKED: asked, TAKEN: taken + acted}


def _is_taken(read: Callable[[], object]) -> bool:
    try:
        read()
    except ModelError:
        return False
    return True


def _over_http(random: Random) -> tuple[int, int]:
    """How many requests the planner made in virtual time, and how many subtasks came of them, but to hold still.

    An answer that cannot be used is asked for twice more, then only when something was said: a person says it again.
    """
    replies = [
        raw(random.randbytes(200)) if number % 10 == 0 else answers(malformed(random, PLAN, WRONG_PLAN))
        for number in range(OVER_HTTP)
    ]
    with FakeOpenAI(*replies) as server:
        os.environ["OPENAI_API_KEY"] = "sk-test"
        planner = OpenAIPlanner(
            model="fake", base_url=server.url, give_up_after=10 * OVER_HTTP, max_calls=OVER_HTTP, deadline_s=2.0
        )
        sim = Simulation(planner, seed=0)
        subtasks = sim.record(OpenAIPlanner.subtask)
        sim.publish("skills", catalogue_of(AROUND.skills))
        sim.publish("scene", AROUND.scene)
        logging.disable(logging.ERROR)
        try:
            for _ in range(OVER_HTTP):
                sim.publish("heard", Utterance(speaker="Ana", text="Clear the table"))
                sim.run(seconds=SAID_AGAIN_S)  # the planner ends it when it may ask no more
                if sim.outcome is not None:
                    break
        finally:
            logging.disable(logging.NOTSET)
        return len(server.requests), sum(one.state != "wait" for one in subtasks)
