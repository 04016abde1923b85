"""A policy's model for several robots: deadlines, the newest question of each, keys, and a seat on another machine."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import zmq

from nodes.hosts import keys
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.session import PolicySession
from nodes.policy.remote.policy import RemotePolicy
from nodes.policy.remote.serve import main as serve_main
from nodes.policy.remote.served import ServedModels
from nodes.policy.remote.session import RemoteSession
from runtime.clock import to_ns
from runtime.commands.doctor import examine_launch
from runtime.errors import PolyrhythmError, TransportError, UserError
from runtime.hosts.service import Answerer, Client, ClientQuestion, Costs, Questions, QuestionServer
from runtime.supervision.diagnostics import Finding
from tests.support.models.model_files import linear_model
from tests.support.models.policy_model import policy_model
from tests.support.ports import free_ports, needs_ipv6
from tests.support.running import eventually
from tests.support.sentences import pattern, sentence

pytestmark = pytest.mark.processes

LONG_S = 60.0


class OneByOne:
    """An `Answerer` by a function that takes one question."""

    most = 1

    def __init__(self, handler: Callable[[Sequence[bytes]], Sequence[bytes]]) -> None:
        self.costs = Costs()
        self._handler = handler

    def kind_of(self, frames: Sequence[bytes]) -> str:
        return ""

    def answer(self, kind: str, questions: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes] | Exception]:
        return [self._handler(frames) for frames in questions]


def question(client: str, number: int, due_s: float) -> ClientQuestion:
    return ClientQuestion(client, number, to_ns(due_s), ())


def test_the_question_that_is_due_first_is_answered_first() -> None:
    questions = Questions()
    for client, due_s in (("a", 3.0), ("b", 1.0), ("c", 2.0)):
        questions.ask(question(client, 1, due_s))
    order = [questions.next(0)[0] for _ in range(3)]
    assert [one.client for chosen in order for one in chosen] == ["b", "c", "a"]


def test_a_newer_question_of_the_same_robot_replaces_the_one_that_waits() -> None:
    questions = Questions()
    assert questions.ask(question("a", 1, 1.0)) is None
    replaced = questions.ask(question("a", 2, 1.1))
    assert replaced is not None
    assert replaced.number == 1
    [chosen], _ = questions.next(0)
    assert chosen.number == 2
    assert questions.counts == {"replaced": 1, "taken": 1, "late": 0}


def test_a_question_whose_answer_would_come_too_late_is_not_answered() -> None:
    questions = Questions()
    questions.ask(question("a", 1, 1.0))
    questions.ask(question("b", 1, 9.0))
    [chosen], late = questions.next(to_ns(0.8), Costs({("", 1): to_ns(0.5)}))
    assert chosen.client == "b"
    assert [one.client for one in late] == ["a"]


def test_a_robot_that_asks_without_pause_leaves_every_other_its_turn() -> None:
    questions, answered = Questions(), []
    questions.ask(question("slow", 1, 0.5))
    for step in range(10):
        questions.ask(question("hasty", step, 0.1 * step + 0.4))
        chosen, _ = questions.next(to_ns(0.1 * step))
        answered.append(chosen[0].client if chosen else "")
    assert answered.index("slow") <= 2


def asked(client: str, kind: str, within_s: float, at_s: float = 0.0) -> ClientQuestion:
    return ClientQuestion(client, 1, to_ns(at_s + within_s), (), b"", kind, to_ns(within_s))


BATCHES = Costs({("arm", 1): to_ns(0.01), ("slow", 1): to_ns(0.02), ("slow", 8): to_ns(0.1), ("arm", 8): to_ns(0.02)})


def test_questions_that_wait_for_one_model_are_answered_together() -> None:
    questions = Questions()
    for number in range(10):
        questions.ask(asked(f"robot{number}", "arm", 0.4 + 0.01 * number))
    together, _ = questions.next(0, BATCHES, most=8)
    assert [one.client for one in together] == [f"robot{number}" for number in range(8)]
    rest, _ = questions.next(0, BATCHES, most=8)
    assert len(rest) == 2


def test_so_many_are_answered_together_as_leave_the_first_of_them_in_time() -> None:
    costs = Costs({("arm", size): to_ns(0.01 * size) for size in (1, 2, 3, 4)})
    questions = Questions()
    for number in range(4):
        questions.ask(ClientQuestion(f"robot{number}", 1, to_ns(0.035), (), kind="arm"))
    together, late = questions.next(to_ns(0.01), costs, most=8)
    assert len(together) == 2, "three of them take 30 ms, and the first is due in 25"
    assert late == []


def test_a_part_of_its_time_is_left_for_the_answer_s_way() -> None:
    costs = Costs({("arm", size): to_ns(0.01 * size) for size in (1, 2, 3, 4, 5, 6, 7, 8)})
    questions = Questions()
    for number in range(8):
        questions.ask(asked(f"robot{number}", "arm", 0.16))
    together, _ = questions.next(to_ns(0.11), costs, most=8)
    assert len(together) == 3, "of the 160 ms 20 are for the way, and 110 are over"


def test_a_model_with_much_to_do_leaves_the_control_loop_that_waits_its_turn() -> None:
    questions = Questions()
    for number in range(8):
        questions.ask(asked(f"episode{number}", "slow", 0.15))
    questions.ask(asked("robot", "arm", 0.2))
    together, _ = questions.next(to_ns(0.1), BATCHES, most=8)
    assert {one.kind for one in together} == {"slow"}
    assert len(together) == 1, "eight take 100 ms, and the robot's answer is due in 100"
    [second], _ = questions.next(to_ns(0.12), BATCHES, most=8)
    assert second.kind == "slow", "due before the robot"


def test_a_control_loop_that_is_about_to_ask_again_is_reckoned_with() -> None:
    questions = Questions()
    questions.ask(asked("robot", "arm", 0.05))
    questions.next(0, BATCHES, most=8)
    for number in range(8):
        questions.ask(asked(f"episode{number}", "slow", 10.0, at_s=0.02))
    together, _ = questions.next(to_ns(0.02), BATCHES, most=8)
    assert len(together) == 1, "eight take 100 ms, and the robot's next question must be answered within 50"
    together, _ = questions.next(to_ns(2.0), BATCHES, most=8)
    assert len(together) == 7, "the robot has gone"


def test_who_asks_for_more_than_can_be_done_makes_nobody_else_s_batches_small() -> None:
    questions = Questions()
    questions.ask(asked("hopeless", "slow", 0.03))
    questions.next(0, BATCHES, most=8)
    for number in range(8):
        questions.ask(asked(f"episode{number}", "slow", 10.0, at_s=0.02))
    together, _ = questions.next(to_ns(0.02), BATCHES, most=8)
    assert len(together) == 8, "30 ms are never enough beside an answer of 20 ms"


def test_what_an_answer_takes_is_learned_and_between_what_is_known_it_is_not_guessed_too_low() -> None:
    costs = Costs({("arm", 1): 100, ("arm", 4): 200})
    assert [costs.took_ns("arm", count) for count in (1, 2, 4, 8)] == [100, 200, 200, 400]
    assert costs.took_ns("other", 3) == 0
    costs.learn("arm", 4, 1000)
    assert costs.took_ns("arm", 4) == 300


Handler = Callable[[Sequence[bytes]], Sequence[bytes]]


@contextmanager
def server(*handlers: Handler | Answerer, **security: object) -> Iterator[QuestionServer]:
    answerers = [OneByOne(one) if callable(one) else one for one in handlers]
    opened = QuestionServer(f"tcp://127.0.0.1:{free_ports(1)}", answerers, **security)  # type: ignore[arg-type]
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def client(address: str, **security: str) -> Iterator[Client]:
    opened = Client(address, **security)
    try:
        yield opened
    finally:
        opened.close()


def ask_until_connected(asking: Client, *content: bytes) -> list[bytes]:
    answers: list[list[bytes]] = []

    def answered() -> bool:
        try:
            answers.append(asking.ask(content, LONG_S))
        except TransportError:
            return False
        return True

    eventually(answered, "the server answers")
    return answers[0]


def wait_for_connection(asking: Client) -> None:
    """Ask nonsense until the server objects to it."""

    def objects() -> bool:
        try:
            asking.ask([b"?"], LONG_S)
        except TransportError as problem:
            return "expected" in str(problem)
        return False

    eventually(objects, "the server objects")


def echo(frames: Sequence[bytes]) -> Sequence[bytes]:
    return [b"you said", *frames]


def test_a_question_is_answered() -> None:
    with server(echo) as serving, client(serving.address) as asking:
        assert ask_until_connected(asking, b"hello") == [b"you said", b"hello"]


@needs_ipv6
def test_a_question_is_answered_over_ipv6() -> None:
    opened = QuestionServer(f"tcp://[::1]:{free_ports(1, '::1')}", [OneByOne(echo)])
    try:
        assert opened.address.startswith("tcp://[::1]:")
        with client(opened.address) as asking:
            assert ask_until_connected(asking, b"hello") == [b"you said", b"hello"]
    finally:
        opened.close()


def test_no_answer_in_time_is_a_sentence_and_the_next_question_is_answered() -> None:
    gate = threading.Event()

    def slow(frames: Sequence[bytes]) -> Sequence[bytes]:
        if frames[0] == b"wait":
            gate.wait(LONG_S)
        return frames

    with server(slow) as serving, client(serving.address) as asking:
        ask_until_connected(asking, b"ready")
        with pytest.raises(TransportError, match="no answer within 50 ms"):
            asking.ask([b"wait"], 0.05)
        gate.set()
        assert ask_until_connected(asking, b"again") == [b"again"]


def test_a_robot_that_is_slow_to_answer_does_not_hold_up_another_one() -> None:
    gate = threading.Event()

    def work(frames: Sequence[bytes]) -> Sequence[bytes]:
        if frames[0] == b"wait":
            gate.wait(LONG_S)
        return frames

    with server(work, work) as serving, client(serving.address) as slow, client(serving.address) as quick:
        ask_until_connected(slow, b"ready")
        waiting = threading.Thread(target=lambda: slow.ask([b"wait"], LONG_S))
        waiting.start()
        eventually(lambda: serving.questions.counts["taken"] == 2, "the slow one is being answered")
        assert ask_until_connected(quick, b"me too") == [b"me too"]
        gate.set()
        waiting.join()


def test_what_a_model_raises_is_told_to_the_robot_and_the_server_goes_on() -> None:
    def fails(frames: Sequence[bytes]) -> Sequence[bytes]:
        if frames[0] == b"bad":
            raise ValueError("the lift has no such joint")
        return frames

    with server(fails) as serving, client(serving.address) as asking:
        ask_until_connected(asking, b"good")
        with pytest.raises(TransportError, match="the lift has no such joint"):
            asking.ask([b"bad"], LONG_S)
        assert asking.ask([b"good"], LONG_S) == [b"good"]


def test_only_robots_whose_key_is_listed_are_answered() -> None:
    (public, secret), (robot_public, robot_secret), (other_public, other_secret) = (
        tuple(key.decode() for key in zmq.curve_keypair()) for _ in range(3)
    )
    with server(echo, secret=secret, public=public, clients={robot_public: "robot"}) as serving:
        with client(serving.address, server_key=public, secret=robot_secret, public=robot_public) as robot:
            assert ask_until_connected(robot, b"hello") == [b"you said", b"hello"]
        with (
            client(serving.address, server_key=public, secret=other_secret, public=other_public) as other,
            pytest.raises(TransportError),
        ):
            other.ask([b"hello"], 0.5)
        assert serving.questions.counts["taken"] == 1


@pytest.mark.parametrize("frames", [[b""], [b"1", b"2"], [b"x" * 8, b"y" * 7, b"z"], [b"\0" * 8, b"\xff" * 8]])
def test_what_is_no_question_is_ignored(frames: list[bytes]) -> None:
    with server(echo) as serving, client(serving.address) as asking:
        ask_until_connected(asking, b"hello")
        asking.socket.send_multipart(frames)
        assert ask_until_connected(asking, b"still there") == [b"you said", b"still there"]


MODEL = policy_model(32, 24)


def session() -> PolicySession:
    return PolicySession(MODEL, name="model", width_px=32, height_px=24, providers=("CPUExecutionProvider",))


def test_a_remote_session_gives_the_chunk_of_the_model_itself() -> None:
    image = np.full((24, 32, 3), (200, 30, 90), np.uint8)
    felt = Felt(tuple(0.1 * number for number in range(8)))
    with server(ServedModels({"policy": session()})) as serving, client(serving.address) as asking:
        wait_for_connection(asking)
        exact = RemoteSession(asking, within_s=LONG_S, jpeg_quality=0).run({"image": image}, felt).chunk
        close = RemoteSession(asking, within_s=LONG_S, jpeg_quality=90).run({"image": image}, felt).chunk
        expected = session().run({"image": image}, felt).chunk
        assert np.array_equal(exact, expected)
        assert np.abs(close - expected).max() < 0.01
        with pytest.raises(PolyrhythmError, match="no answer within 0 ms"):
            RemoteSession(asking, within_s=1e-6, jpeg_quality=90).run({"image": image}, felt)


def test_a_remote_model_is_told_the_action_and_tells_whether_it_is_done() -> None:
    shapes: dict[str, tuple[int, ...]] = {
        "joints": (1, 8),
        "wrist": (1, 3, 24, 32),
        "history": (1, 2, 8),
        "skill": (1, 7),
        "text": (1, 16),
    }
    shapes["memory"] = (1, 3)
    weights = {name: np.ones((np.prod(shape), 10), np.float32) for name, shape in shapes.items()}
    data = linear_model(shapes, weights, done=np.full(8, 0.1, np.float32))
    own = PolicySession(data, name="model", width_px=160, height_px=120, providers=("CPUExecutionProvider",))
    joints = tuple(0.1 * number for number in range(8))
    memory = np.array([1, 2, 3], np.float32)
    felt = Felt(joints, history=((1.0,) * 8, (2.0,) * 8), skill="place", text="to the bin", memory=memory.tobytes())
    images = {"image": np.zeros((24, 32, 3), np.uint8), "wrist": np.full((24, 32, 3), 90, np.uint8)}
    with server(ServedModels({"policy": own})) as serving, client(serving.address) as asking:
        wait_for_connection(asking)
        remote = RemoteSession(asking, within_s=LONG_S, jpeg_quality=0)
        assert remote.wants() == own.wants()
        assert remote.wants().trigger == "wrist"
        answer, expected = remote.run(images, felt), own.run(images, felt)
        assert np.array_equal(answer.chunk, expected.chunk)
        assert answer.done == expected.done == pytest.approx(0.28)
        assert answer.memory == expected.memory == (memory + 1).tobytes()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"server": "desktop:7500"}, sentence("runtime.address_expected")),
        ({"server": "tcp://192.168.1.30:7500"}, sentence("runtime.public_key_needed")),
        ({"server": "tcp://127.0.0.1:99999"}, sentence("runtime.address_expected")),
        ({"server": "tcp://192.168.1.30:7500", "key": "short"}, "key is 'short'; expected the 40 characters"),
        ({"server": "tcp://[fd00::7]:7500"}, sentence("runtime.public_key_needed")),
        ({"server": "tcp://[::1]"}, sentence("runtime.address_expected")),
        ({"server": "tcp://[::1]:7500", "within_s": 0.0}, "within_s is 0.0"),
        ({"server": "tcp://127.0.0.1:7500", "within_s": 0.0}, "within_s is 0.0"),
        ({"server": "tcp://127.0.0.1:7500", "jpeg_quality": 101}, "jpeg_quality is 101"),
    ],
)
def test_wrong_parameters_are_sentences(parameters: dict[str, object], words: str) -> None:
    assert words in " ".join(RemotePolicy(**parameters).problems())  # type: ignore[arg-type]


def test_the_doctor_asks_the_server_whether_it_lets_the_robot_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(keys.FOLDER_VARIABLE, str(tmp_path / "keys"))
    monkeypatch.setattr("nodes.policy.remote.policy.REACH_S", 60.0)  # on a busy machine a handshake may take its time
    file = tmp_path / "robot.toml"

    def policy(address: str, key: str) -> list[Finding]:
        params = f"server = '{address}', key = '{key}', host = 'kitchen'"
        use = "nodes.policy.remote.policy:RemotePolicy"
        file.write_text(f'[nodes.policy]\nuse = "{use}"\nparams = {{ {params} }}\n')
        return [finding for finding in examine_launch(file) if "server" in finding.text or "key" in finding.text]

    public, other = keys.make("desktop"), keys.make("lab")
    with server(echo, secret=keys.secret_of("desktop"), public=public, clients={other: "lab"}) as serving:
        [missing] = policy(serving.address, public)
        assert missing.level == "problem"
        assert "polyrhythm keys new kitchen" in missing.text
        own = keys.make("kitchen")
        [refused] = policy(serving.address, public)
        assert (refused.level, f"is the line kitchen = '{own}' in its --clients file" in refused.text) == (
            "problem",
            True,
        )
    with server(echo, secret=keys.secret_of("desktop"), public=public, clients={own: "kitchen"}) as serving:
        [let_in] = policy(serving.address, public)
        assert (let_in.level, let_in.text) == ("ok", f"server {serving.address} lets kitchen in")
    [nobody] = [one for one in examine_launch(file) if "nobody serves" in one.text]
    assert nobody.level == "note"


def test_serve_refuses_to_be_open_to_anyone_and_serves_on_this_machine(tmp_path: Path) -> None:
    model = tmp_path / "policy.onnx"
    model.write_bytes(MODEL)
    for place in ("0.0.0.0:7500", "[::]:7500", "[::ffff:0.0.0.0]:7500", "0:7500"):
        with pytest.raises(UserError, match=pattern("runtime.anyone_reaches")):
            serve_main([str(model), "--bind", place])
    with pytest.raises(UserError, match=r"--bind no-such\.invalid:7500: 'no-such\.invalid' is not known"):
        serve_main([str(model), "--bind", "no-such.invalid:7500"])
    command = [
        sys.executable,
        "-c",
        "import sys; from nodes.policy.remote.serve import main; sys.exit(main(sys.argv[1:]))",
    ]
    port = free_ports(1)
    with subprocess.Popen(
        [*command, str(model), "--size", "32x24", "--bind", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        assert sentence("runtime.anyone_here") in serving.stdout.readline()
        with client(f"tcp://127.0.0.1:{port}") as asking:
            remote = RemoteSession(asking, within_s=LONG_S, jpeg_quality=90)

            def answers() -> bool:
                try:
                    return remote.run({"image": np.zeros((24, 32, 3), np.uint8)}, Felt((0.0,) * 8)).chunk.shape == (
                        16,
                        10,
                    )
                except PolyrhythmError:
                    return False

            eventually(answers, "the model answers")
        serving.terminate()
        assert serving.wait(30) == 0
