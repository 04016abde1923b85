"""A planner on a model in virtual time, beside a server of the test's own, and answers for that server."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from nodes.guard.arbitration import Arbitration
from nodes.msgs import Image, Interrupt, SceneDescription, SeenObject, Subtask, Utterance
from nodes.planner.openai_api import OpenAIPlanner
from runtime import Simulation
from tests.support.servers.fake_openai_server import FakeOpenAI

KEY = "sk-very-secret"
REQUEST = "Please clear the table: put the cups in the bin"


def set_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and no server or model but the test's own."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_MODEL", raising=False)


def put(*excluding: str, say: str = "", **more: object) -> str:
    """An answer that puts every cup but those of these colours in the bin."""
    return json.dumps(
        {
            "do": "work",
            "skill": "place",
            "things": [{"label": "cup", "colour": "", "count": 0, "id": ""}],
            "excluding": [{"label": "cup", "colour": colour, "count": 0, "id": ""} for colour in excluding],
            "place": "bin",
            "relation": "in",
            "text": "Put the cups in the bin",
            "say": say,
            **more,
        }
    )


def do(what: str, say: str = "") -> str:
    """An answer without a new subtask."""
    return json.dumps({"do": what, "say": say})


def picture() -> Image:
    rgb = np.zeros((48, 64, 3), np.uint8)
    rgb[:, 32:, 0] = 255  # the right half is red
    return Image(camera="head", captured_ns=1, rgb=rgb)


def scene(progress: str = "working", subtask_id: str = "openaiplanner-1", *colours: str) -> SceneDescription:
    objects = tuple(
        SeenObject(
            label="cup",
            colour=colour,
            x_m=0.0,
            y_m=0.0,
            z_m=0.0,
            width_m=0.1,
            height_m=0.1,
            u_px=1.0,
            v_px=1.0,
        )
        for colour in colours
    )
    return SceneDescription(text="a table", subtask_id=subtask_id, progress=progress, objects=objects)  # type: ignore[arg-type]  # from a test's table


class Table:
    """A planner in virtual time, with what it says and plans."""

    def __init__(self, server: FakeOpenAI, **parameters: Any) -> None:
        parameters = {"model": "fake", "latency_s": 0.5, "deadline_s": 30.0, **parameters}
        self.planner = OpenAIPlanner(base_url=server.url, **parameters)
        self.authority = Arbitration()
        self.sim = Simulation(self.planner)
        self.subtasks: list[Subtask] = self.sim.record(OpenAIPlanner.subtask)
        self.said: list[Utterance] = self.sim.record(OpenAIPlanner.said)

    def hear(self, text: str) -> None:
        self.sim.publish("heard", Utterance(speaker="Ana", text=text))

    def interrupt(self, depth: str, text: str = "") -> None:
        """An interrupt, and the fence that a guard raises for it."""
        interrupt = Interrupt(id="i", depth=depth, text=text, by="Ana")  # type: ignore[arg-type]
        self.sim.publish("interrupt", interrupt)
        self.sim.publish("fence", self.authority.fence(interrupt))

    def reason(self) -> str:
        """Why the run ended as failed; "" where it did not."""
        outcome = self.sim.outcome
        return "" if outcome is None or outcome[0] else outcome[1]

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.sim.close()
