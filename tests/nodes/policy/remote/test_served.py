"""Models behind `polyrhythm serve`: several robots and many simulated episodes, answered together and in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.session import PolicySession
from nodes.policy.remote.policy import RemotePolicy
from nodes.policy.remote.serve import main as serve_main
from nodes.policy.remote.served import ServedModels
from nodes.policy.remote.session import RemoteSession
from runtime.errors import PolyrhythmError, UserError
from runtime.hosts.service import Client, QuestionServer
from tests.support.models.model_files import linear_model
from tests.support.ports import free_ports
from tests.support.running import eventually
from tests.support.sentences import pattern, sentence

pytestmark = pytest.mark.processes

LONG_S = 60.0
ROBOTS = 6


def model(lift_m: float, rows: int | str = "rows") -> bytes:
    """Its chunk is the joints, and the lift that much higher."""
    by = np.zeros((8, 10), np.float32)
    by[:, :8] = np.eye(8)
    return linear_model({"joints": (1, 8)}, {"joints": by}, bias=lift_m, rows=rows)


def session(lift_m: float) -> PolicySession:
    return PolicySession(model(lift_m), name="it", width_px=16, height_px=12, providers=("CPUExecutionProvider",))


class Gated(ServedModels):
    """Waits with its first answer until it may go on, and notes how many it answers together."""

    def __init__(self, models: dict[str, PolicySession], most: int) -> None:
        super().__init__(models, most)
        self.gate = threading.Event()
        self.sizes: list[int] = []

    def answer(self, kind: str, questions: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes] | Exception]:
        self.sizes.append(len(questions))
        self.gate.wait(LONG_S)
        return super().answer(kind, questions)


@contextmanager
def serving(answerer: ServedModels) -> Iterator[QuestionServer]:
    opened = QuestionServer(f"tcp://127.0.0.1:{free_ports(1)}", [answerer])
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def asking(address: str, of: str = "") -> Iterator[RemoteSession]:
    client = Client(address)
    remote = RemoteSession(client, within_s=LONG_S, jpeg_quality=0, of=of)
    try:
        yield remote
    finally:
        client.close()


def lift(remote: RemoteSession, joint: float = 0.0) -> float:
    """What the model answers, as soon as the server is reached."""
    found: list[float] = []

    def answers() -> bool:
        try:
            found.append(float(remote.run({}, Felt((joint,) * 8)).chunk[0, 0]))
        except PolyrhythmError as problem:
            if "is not connected" not in str(problem):
                raise
        return bool(found)

    eventually(answers, "the server answers")
    return found[0]


def test_questions_that_come_while_it_works_are_answered_together_each_by_its_own_answer() -> None:
    models = Gated({"arm": session(0.25)}, most=8)
    answers: dict[int, float] = {}
    with serving(models) as server:

        def robot(number: int) -> None:
            with asking(server.address) as remote:
                answers[number] = lift(remote, joint=float(number))

        threads = [threading.Thread(target=robot, args=(number,)) for number in range(ROBOTS)]
        try:
            threads[0].start()
            eventually(lambda: server.questions.counts["taken"] == 1, "one is being answered")
            for thread in threads[1:]:
                thread.start()
            eventually(lambda: len(server.questions) == ROBOTS - 1, "and the others wait")
        finally:
            models.gate.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
    assert answers == {number: pytest.approx(number + 0.25) for number in range(ROBOTS)}
    assert models.sizes[:2] == [1, ROBOTS - 1], "what waited at the gate went together"


def test_who_names_no_model_asks_the_first_and_a_name_that_is_not_there_is_a_sentence() -> None:
    models = ServedModels({"arm": session(0.25), "slow": session(0.5)}, most=4)
    assert [line.split(" on ")[0] for line in models.told] == ["arm", "slow"]
    assert "; 4 together in " in models.told[0]
    with serving(models) as server:
        for of, lift_m in (("", 0.25), ("arm", 0.25), ("slow", 0.5)):
            with asking(server.address, of) as remote:
                assert lift(remote) == pytest.approx(lift_m)
        with asking(server.address, "nobody") as remote, pytest.raises(PolyrhythmError, match="known: arm, slow"):
            lift(remote)


def test_other_models_take_the_place_of_those_that_answer_and_the_robot_keeps_its_session() -> None:
    models = ServedModels({"arm": session(0.25)}, most=4)
    with serving(models) as server, asking(server.address) as remote:
        assert lift(remote) == pytest.approx(0.25)
        models.swap(ServedModels({"arm": session(0.5)}, most=4))
        assert remote.run({}, Felt((0.0,) * 8)).chunk[0, 0] == pytest.approx(0.5)


def test_a_question_that_is_none_is_answered_with_a_sentence_beside_one_that_is() -> None:
    models = ServedModels({"arm": session(0.25)}, most=4)
    kinds = [models.kind_of(frames) for frames in ([], [b"?"], [b"what do you want?", b"slow"])]
    assert kinds == ["arm", "arm", ""]
    found = models.answer("arm", [[b"?"], [b"what do you want?"]])
    assert sentence("policy.no_question") in str(found[0])
    assert not isinstance(found[1], Exception)


def test_a_simulated_episode_in_virtual_time_asks_a_server() -> None:
    policy = RemotePolicy("tcp://127.0.0.1:7500", of="arm")
    assert policy.problems() == []
    with serving(ServedModels({"arm": session(0.05)}, most=4)) as server:
        from runtime import Simulation
        from tests.nodes.policy.onnx.test_policy import Robot, pick
        from tests.support.standing import standing

        with asking(server.address) as remote:
            lift(remote)  # it is reached
        policy = RemotePolicy(server.address)
        sim = Simulation(Robot(), policy)
        commands = sim.record(RemotePolicy.command)
        sim.publish("robot/state", standing(0))
        sim.publish("action", pick())
        sim.run(seconds=2.0)
        sim.close()
    assert len(commands) >= 20
    assert commands[-1].base_v_mps == pytest.approx(0.05)


def test_two_models_of_one_name_are_a_sentence(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "arm.onnx").write_bytes(model(0.25))
    with pytest.raises(UserError, match=pattern("policy.two_models", name="arm")):
        serve_main([str(tmp_path / "a" / "arm.onnx"), str(tmp_path / "b" / "arm.onnx")])


def test_serve_loads_its_files_again_and_keeps_what_it_has_where_they_are_broken(tmp_path: Path) -> None:
    file = tmp_path / "arm.onnx"
    file.write_bytes(model(0.25))
    address = f"127.0.0.1:{free_ports(1)}"
    program = "import sys; from nodes.policy.remote.serve import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, str(file), "--bind", address, "--batch", "4"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server,
        asking(f"tcp://{address}") as remote,
    ):
        assert server.stdout is not None
        assert server.stderr is not None
        assert "; 4 together in " in server.stderr.readline()
        assert "serving" in server.stdout.readline()
        try:
            assert lift(remote) == pytest.approx(0.25)
            for data, told, lift_m in (
                (model(0.5), sentence("policy.models_loaded_again"), 0.5),
                (model(0.75)[:300], sentence("policy.models_stay", why="model"), 0.5),
            ):
                file.write_bytes(data)
                os.kill(server.pid, signal.SIGUSR1)
                while told not in (line := server.stderr.readline()):
                    assert line, "the server has ended"
                assert lift(remote) == pytest.approx(lift_m)
        finally:
            server.terminate()
        assert server.wait(30) == 0
