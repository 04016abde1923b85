"""The VLM in process: where it places what its model points at, what an interrupt does to it, and how it goes blind."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.models.answers import ModelError
from nodes.models.budget import Budget
from nodes.msgs import Action, Image, SceneDescription
from nodes.vlm.onnx.eyes import LocalVisionModel, Look
from nodes.vlm.onnx.request import OnnxRequest
from nodes.vlm.onnx.vlm import OnnxVLM
from runtime import Simulation
from runtime.clock import SystemClock
from runtime.coordination.fence import Fence
from runtime.errors import PolyrhythmError
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import kind_of
from runtime.message import Stamped
from tests.nodes.perception.test_objects import View, look
from tests.nodes.vlm.onnx.vlm_model import write_model
from tests.nodes.vlm.test_openai_vlm import TASK
from tests.nodes.vlm.test_openai_vlm import Eyes as Camera
from tests.support.sentences import pattern

KNOWN = {"red", "yellow", "green", "blue", "purple"}
BOUND_S = 30.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_model(tmp_path_factory.mktemp("models") / "made-by-hand"))


@pytest.fixture(scope="module")
def view() -> View:
    return look(3)


class Room:
    """A VLM in virtual time, with what it does."""

    def __init__(self, folder: str, view: View, **parameters: Any) -> None:
        self.vlm = OnnxVLM(folder, **{"threads": 1, **parameters})
        self.sim = Simulation(Camera(view), self.vlm)
        self.actions: list[Action] = self.sim.record(OnnxVLM.action)
        self.descriptions: list[SceneDescription] = self.sim.record(OnnxVLM.description)
        self.published: list[Stamped[Any]] = []
        self.sim.observe(self.published.append)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.sim.close()


class Watched:
    """The eyes of all VLMs, counted, and as a test wants them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions: list[str] = []
        self.instead: Callable[[], str] | None = None
        answer = LocalVisionModel.answer

        def watched(eyes: LocalVisionModel, text: str, rgb: NDArray[np.uint8], look: Look) -> str:
            self.questions.append(text)
            return self.instead() if self.instead is not None else answer(eyes, text, rgb, look)

        monkeypatch.setattr(LocalVisionModel, "answer", watched)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_what_the_model_points_at_is_placed_and_picked(folder: str, view: View) -> None:
    with Room(folder, view) as room:
        room.sim.publish("subtask", TASK)
        room.sim.run(seconds=6.0)
        seen = {thing.colour: thing for thing in room.descriptions[-1].objects}
        assert set(seen) == {*KNOWN, "teal"}
        assert seen["teal"].label == "bin"
        for thing in view.things:
            if thing.colour in KNOWN:
                assert math.dist((seen[thing.colour].x_m, seen[thing.colour].y_m), (thing.x_m, thing.y_m)) < 0.02
        picks = [action for action in room.actions if action.skill == "pick"]
        assert picks
        assert picks[-1].target is not None
        assert picks[-1].target.colour == "red", "the model's choice comes first"


def test_it_is_a_model_on_its_seat_and_says_which(folder: str, view: View) -> None:
    assert kind_of(NodeSpec("vlm", OnnxVLM, {"folder": folder})) == "model"
    with Room(folder, view) as room:
        room.sim.run(seconds=2.0)
        description = next(one for one in room.published if one.envelope.topic == "description")
        assert description.envelope.provenance == "model:made-by-hand"
        spending = room.vlm.spending()
        assert (spending.model, spending.calls) == ("made-by-hand", 2)
        assert spending.prompt_tokens > spending.completion_tokens > 0


def test_an_answer_takes_its_latency_in_virtual_time_and_carries_the_age_of_its_image(folder: str, view: View) -> None:
    with Room(folder, view, latency_s=1.5) as room:
        room.sim.publish("subtask", TASK)
        room.sim.run(seconds=6.0)
        envelopes = [one.envelope for one in room.published if one.envelope.topic == "description"]
        ages_s = [
            (one.published_ns - one.begun_ns("image")) * 1e-9 for one in envelopes if one.published_ns > 3_500_000_000
        ]
        assert min(ages_s) >= 1.5


def test_a_newer_image_is_looked_at_in_the_next_answer(folder: str, view: View, watched: Watched) -> None:
    with Room(folder, view, latency_s=1.0) as room:
        room.sim.run(seconds=5.2)
        assert len(watched.questions) == 5, "one at a time, and the newest image each time"


@pytest.mark.parametrize("depth", ["stop", "amend"])
def test_an_interrupt_voids_the_answer_and_asks_again_at_once(
    folder: str, view: View, watched: Watched, depth: str
) -> None:
    lie = '{"objects":[{"label":"ball","colour":"pink","u":500,"v":500}],"target":0}'
    with Room(folder, view, latency_s=1.0) as room:
        watched.instead = lambda: lie
        room.sim.run(until=lambda: len(watched.questions) == 1, seconds=3.0)
        room.sim.run(seconds=0.3)
        watched.instead = None
        room.sim.publish("fence", Fence(epochs={"planner": 1, "vlm": 1, "policy": 1}, interrupt_id="i", depth=depth))  # type: ignore[arg-type]
        room.sim.run(seconds=0.2)
        assert len(watched.questions) == 2
        room.sim.run(seconds=4.0)
        assert "pink" not in {thing.colour for thing in room.descriptions[-1].objects}
        assert room.descriptions[-1].objects


def test_a_blind_robot_holds_and_says_so_and_sees_again_later(folder: str, view: View, watched: Watched) -> None:
    def broken() -> str:
        raise PolyrhythmError("the model failed")

    with Room(folder, view) as room:
        watched.instead = broken
        room.sim.publish("subtask", TASK)
        room.sim.run(seconds=20.0)
        assert "does not answer" in room.descriptions[-1].text
        assert not any(action.skill in ("pick", "place") for action in room.actions)
        assert 3 <= len(watched.questions) < 8, "it is asked more and more rarely"
        watched.instead = None
        room.sim.run(seconds=60.0, until=lambda: "answer" not in room.descriptions[-1].text)
        assert room.descriptions[-1].progress == "working"


def test_what_the_model_says_is_checked_like_any_other_s(folder: str, view: View, watched: Watched) -> None:
    watched.instead = lambda: '{"objects":[{"label":"cup","colour":"red","u":"rm","v":1}],"target":0}'
    with Room(folder, view) as room:
        room.sim.publish("subtask", TASK)
        room.sim.run(seconds=20.0)
        assert "does not answer" in room.descriptions[-1].text


def test_the_budget_of_calls_is_a_hard_stop(folder: str, view: View, watched: Watched) -> None:
    with Room(folder, view, max_calls=3) as room:
        room.sim.run(seconds=20.0)
        assert len(watched.questions) == 3
        assert room.vlm.spending().spent == "the budget of 3 calls is spent"
        assert room.descriptions[-1].progress == "failed"


@pytest.mark.long
def test_two_runs_in_virtual_time_are_the_same(folder: str, view: View) -> None:
    def story() -> list[tuple[str, int, str]]:
        with Room(folder, view, latency_s=0.7) as room:
            room.sim.publish("subtask", TASK)
            room.sim.run(seconds=5.0)
            described = [one for one in room.published if one.envelope.topic in ("description", "action")]
            return [(one.envelope.topic, one.envelope.published_ns, repr(one.message)) for one in described]

    assert story() == story()


class SlowEyes:
    """Answer when they are stopped, or told to."""

    name = "slow"

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()
        self.may_answer = threading.Event()
        self.was_stopped = False

    def answer(self, text: str, rgb: NDArray[np.uint8], look: Look) -> str:
        self.began.set()
        look.prompt_tokens, look.answer_tokens = 100, 7
        while not look.stop.is_set and not self.may_answer.wait(0.005):
            pass
        self.was_stopped = look.stop.is_set
        self.ended.set()
        return "{}"


def asked(eyes: SlowEyes, deadline_s: float) -> OnnxRequest:
    request = OnnxRequest(latency_s=0.0, deadline_s=deadline_s, max_calls=0, max_tokens=100, max_objects=3)
    request.start(SystemClock(), eyes, Budget())  # type: ignore[arg-type]  # as far as a request knows them
    return request


def image() -> Image:
    return Image(camera="head", captured_ns=0, rgb=np.zeros((4, 4, 3), np.uint8))


def test_in_real_time_an_interrupt_stops_the_model_and_nothing_waits_for_it() -> None:
    eyes = SlowEyes()

    async def story() -> tuple[str | None, Budget]:
        request = asked(eyes, BOUND_S)
        answer = asyncio.ensure_future(request.ask(system="", text="?", schema={}, image=image()))
        assert await asyncio.to_thread(eyes.began.wait, BOUND_S)
        request.void()
        said = await answer
        assert await asyncio.to_thread(eyes.ended.wait, BOUND_S)
        request.close()
        return said, request.budget

    said, budget = asyncio.run(story())
    assert said is None
    assert eyes.was_stopped
    assert (budget.prompt_tokens, budget.completion_tokens) == (100, 7), "what was begun is counted"


def test_an_answer_after_its_deadline_is_a_failure_and_the_model_is_stopped() -> None:
    eyes = SlowEyes()

    async def story() -> None:
        request = asked(eyes, 0.05)
        with pytest.raises(ModelError, match=pattern("vlm.did_not_answer", name="slow", seconds=r"0\.05")):
            await request.ask(system="", text="?", schema={}, image=image())
        assert await asyncio.to_thread(eyes.ended.wait, BOUND_S)
        request.close()

    asyncio.run(story())
    assert eyes.was_stopped


def test_how_fast_it_answered_is_told_at_the_end() -> None:
    eyes = SlowEyes()
    eyes.may_answer.set()

    async def story() -> str:
        request = asked(eyes, BOUND_S)
        assert await request.ask(system="", text="?", schema={}, image=image()) == "{}"
        return request.close()

    told = asyncio.run(story())
    assert told.startswith("1 calls, 100 + 7 tokens; ")
    assert told.endswith(" tokens/s")
    assert " s an answer, " in told
