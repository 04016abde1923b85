"""Thousands of answers of a model that are none: to the planner over HTTP, and to both models' readers directly."""

from __future__ import annotations

import json
import logging
import os
from random import Random

from bench.faults.measures import Figures
from bench.faults.rig import Rig
from bench.faults.trials import fallen
from nodes.models.answers import ModelError
from nodes.planner.model_prompt import parse as parse_plan
from nodes.planner.openai_api import OpenAIPlanner
from nodes.planner.rules import Surroundings
from nodes.vlm.model_prompt import parse as parse_scene
from runtime import Simulation
from runtime.msgs import Utterance
from tests.support.fake_openai_server import FakeOpenAI, answers, raw

NUMBER = 10_000
OVER_HTTP = 200
TAKEN = "malformed answers taken"
READ = "malformed answers read"
ASKED = "malformed answers over HTTP"

PLAN = {
    "do": "work", "skill": "place", "things": [{"label": "cup", "colour": "", "count": 0, "id": ""}], "excluding": [],
    "place": "bin", "relation": "in", "text": "Put the cups in the bin", "say": "",
}  # fmt: skip
WRONG: tuple[object, ...] = (None, 1e999, -1, True, "", "../..", "run_shell", [[]], {}, "x" * 5000, "\x00", 2**70)


def malformed(random: Random) -> str:
    """An answer that a planner must not take: cut, of wrong types, with words beyond the lists, or no JSON at all."""
    whole = json.dumps(PLAN)
    kind = random.randrange(5)
    if kind == 0:
        return whole[: random.randrange(len(whole) - 1)]
    if kind == 1:
        return json.dumps(
            {**PLAN, random.choice(("do", "skill", "things", "excluding", "relation")): random.choice(WRONG[:8])}
        )
    if kind == 2:
        return json.dumps(random.choice(WRONG))
    if kind == 3:
        return json.dumps({key: value for key, value in PLAN.items() if key != "do"}) * 2
    return random.randbytes(random.randrange(300)).decode("latin-1")


def thousands(rig: Rig) -> Figures:
    """So many malformed answers; none is taken, nothing else than a refusal is raised, and the robot stops as ever."""
    random, taken = Random(7), 0
    for _ in range(NUMBER):
        text = malformed(random)
        try:
            parse_plan(text, Surroundings())
            taken += 1
        except ModelError:
            pass
        try:
            parse_scene(text, "pixel", 64, 48)
            taken += 1
        except ModelError:
            pass
    asked, acted = _over_http(random)
    return {**fallen(rig), READ: NUMBER, ASKED: asked, TAKEN: taken + acted}


def _over_http(random: Random) -> tuple[int, int]:
    """How many requests the planner made in virtual time, and how many subtasks came of them, but to hold still."""
    replies = [
        raw(random.randbytes(200)) if number % 10 == 0 else answers(malformed(random)) for number in range(OVER_HTTP)
    ]
    with FakeOpenAI(*replies) as server:
        os.environ["OPENAI_API_KEY"] = "sk-test"
        planner = OpenAIPlanner(
            model="fake", base_url=server.url, give_up_after=10 * OVER_HTTP, max_calls=OVER_HTTP, deadline_s=2.0
        )
        sim = Simulation(planner, seed=0)
        subtasks = sim.record(OpenAIPlanner.subtask)
        sim.publish("heard", Utterance(speaker="Ana", text="Clear the table"))
        logging.disable(logging.WARNING)
        try:
            sim.run(seconds=100_000.0)  # the planner ends it when it may ask no more
        finally:
            logging.disable(logging.NOTSET)
        return len(server.requests), sum(one.state != "wait" for one in subtasks)
