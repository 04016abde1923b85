"""S-IF against the paper's check values, the encoders, side effects by hand, and all of it in a report."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from nodes.episodes.command import main
from nodes.episodes.commands.follow import (
    alternatives,
    diversity,
    read_relevance,
    relevance,
    side_effects,
)
from nodes.episodes.evaluation.encoders import MINILM, encoder_of, hashed
from nodes.episodes.results.store import Store
from nodes.models.json_reading import UnreadableError
from nodes.msgs.episode import ActKind, Turn
from runtime.errors import UserError
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers


def pair(similarity: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[1.0, 0.0], [similarity, np.sqrt(1 - similarity**2)]])


@pytest.mark.parametrize(("similarity", "value"), [(0.5, 0.9903), (0.7, 0.751), (0.8, 0.321), (0.9, 0.0137)])
def test_s_div_has_the_papers_values(similarity: float, value: float) -> None:
    for power_on_mean in (False, True):  # of one pair they are the same
        found = diversity(pair(similarity), power_on_mean=power_on_mean)
        assert found == pytest.approx(value, abs=0.0005)


def test_s_div_is_a_mean_over_ordered_pairs_and_the_switch_takes_the_power_of_the_mean() -> None:
    three = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])  # similarities 0.8, 0, 0
    assert diversity(three) == pytest.approx((1 - 0.8**10 / 3) ** 10)
    assert diversity(three, power_on_mean=True) == pytest.approx((1 - (0.8 / 3) ** 10) ** 10)
    assert diversity(three[:1]) is None


def test_s_rel_is_the_sigmoid_of_the_mean() -> None:
    assert relevance([1.0, 1.0]) == pytest.approx(0.7311, abs=1e-4)
    assert relevance([-1.0]) == pytest.approx(0.2689, abs=1e-4)
    assert relevance([1.0, 0.0]) == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert read_relevance('{"score_justification": "", "score": "-0.5"}') == -0.5
    with pytest.raises(UnreadableError, match=r"score is 0\.7; expected one of"):
        read_relevance('{"score": 0.7}')


def turn(index: int, kind: ActKind, text: str = "") -> Turn:
    return Turn(index=index, number=index + 1, speaker="Ana" if index % 2 == 0 else "Ben", kind=kind, argument=text)


def test_side_effects_are_counted_as_the_paper_says() -> None:
    turns = [turn(0, "speak", "I will hurt him."), turn(1, "speak", "Please don't, give it up."), turn(2, "none"),
             turn(3, "none"), turn(4, "speak", "Damn. Damn it!")]  # fmt: skip
    ana = side_effects(turns, "Ana", words=["damn"], injury="hurt (him|her)", prevention="give it up")
    assert ana == {"engaged": 1.0, "injury": 1.0, "prevention": 0.0, "listed_words": 2.0}  # 1 of 3 silent
    assert side_effects(turns, "Ben")["engaged"] == 0.0  # half of Ben's were nothing
    assert side_effects(turns[:4], "Ana")["engaged"] == 0.0  # no more than 4 turns


def test_solutions_are_counted_once_however_often_they_are_proposed() -> None:
    # By hand: similarities of A to B 0.6, of A to C 0.8, of B to C 0.96; all else 0. What is said in order, and counts:
    # A yes; A again (1.0) no; C no (0.8 to A); B yes (0.6 to A; C does not count); "D" yes. The last proposes nothing.
    table = {"How about A?": (1.0, 0.0, 0.0), "How about C?": (0.8, 0.6, 0.0), "How about B?": (0.6, 0.8, 0.0),
             "And what if D?": (0.0, 0.0, 1.0)}  # fmt: skip

    def encode(texts: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array([table[text] for text in texts]).reshape(-1, 3)

    acts = ["Well. How about A?", "How about A? How about C?", "How about B? And what if D?", "No."]
    assert [alternatives(acts[:n], "how about|what if", encode) for n in range(5)] == [0, 1, 1, 3, 3]


def test_hashing_knows_words_and_says_that_it_is_hashing() -> None:
    name, encode = encoder_of("hashing")
    vectors = encode(["a cello for sale", "a cello for sale", "rain tomorrow"])
    assert name == "hashing"
    assert vectors[0] @ vectors[1] == pytest.approx(1.0)
    assert abs(vectors[0] @ vectors[2]) < 0.3
    assert encode([]).shape[0] == 0


def test_a_folder_that_is_no_model_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is no folder of all-MiniLM-L6-v2"):
        encoder_of(str(tmp_path))


def test_an_embeddings_endpoint_that_gives_none_is_a_sentence() -> None:
    with FakeOpenAI(answers("hello")) as server, pytest.raises(UserError, match="gives no embeddings"):
        encoder_of(f"m@{server.url}")[1](["x"])
    assert len(encoder_of("m@http://127.0.0.1:1/v1")[1]([])) == 0  # nothing is not asked about


def test_an_embeddings_endpoint_is_asked_for_all_texts_at_once_and_its_vectors_are_made_units() -> None:
    asked = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            data = json.dumps({"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [0, 2]}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    name, encode = encoder_of(f"m@http://127.0.0.1:{server.server_address[1]}/v1")
    assert encode(["one", "two"]).tolist() == [[0.6, 0.8], [0.0, 1.0]]
    thread.join(60)
    server.server_close()
    assert (name, asked) == ("m", [("/v1/embeddings", {"model": "m", "input": ["one", "two"]})])


HAS_MINILM = encoder_of("auto")[0] == MINILM


@pytest.mark.skipif(not HAS_MINILM, reason="needs nodes[embeddings]")
def test_minilm_finds_what_the_models_own_page_says() -> None:
    vectors = encoder_of("auto")[1]([
        "That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day",
    ])  # fmt: skip
    assert (vectors[0] @ vectors[1:].T).tolist() == pytest.approx([0.695, 0.943, 0.257], abs=0.001)


def test_all_of_it_stands_in_the_report_beside_the_seven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, words = tmp_path / "run.sqlite", tmp_path / "words.txt"
    words.write_text("cello\n")
    assert main(["run", "--task", "cello-with-a-crack", "--out", str(run)]) == 0
    with FakeOpenAI(answers('{"score": 1}')) as server:
        asked = [
            "follow",
            str(run),
            "--encoder",
            "hashing",
            "--judge",
            f"j@{server.url}",
            "--words",
            str(words),
            "--solution",
            "how about|would you|could",
            "--json",
        ]
        assert main(asked) == 0
        count = len(server.requests)
        capsys.readouterr()
        assert main(asked) == 0
        assert len(server.requests) == count  # a turn that is rated is not asked about again
    means = json.loads(capsys.readouterr().out)["means"]
    assert means["S_rel"] == pytest.approx(0.7311, abs=1e-4)
    assert means["S_sif"] == pytest.approx((means["S_div"] + means["S_rel"]) / 2)
    assert main(["report", str(run), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {"GOAL", "S_div", "S_rel", "S_sif", "engaged", "listed_words", "secret_kept", "solutions"} <= set(
        figures["dimensions"]
    )
    assert figures["table"]["rules"]["S_rel"]["mean"] == pytest.approx(means["S_rel"])
    assert figures["is_by_rules"]  # and the offline judge's means still have no intervals


@pytest.mark.parametrize("bad", ["It fits.", '{"score": 3}'])
def test_a_turn_that_no_answer_rates_is_counted_and_asked_about_the_next_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    run = tmp_path / "run.sqlite"
    assert main(["run", "--task", "cello-with-a-crack", "--turns", "4", "--out", str(run)]) == 0
    good = answers('{"score": 0.5}')
    with FakeOpenAI(good, answers(bad), answers(bad), good) as server:
        asked = ["follow", str(run), "--encoder", "hashing", "--judge", f"j@{server.url}", "--jobs", "1"]
        assert main(asked) == 1
        assert sentence("episodes.turns_not_rated", number=1) in capsys.readouterr().err
        assert rated(run) == [0, 2, 3]
        count = len(server.requests)
        assert main(asked) == 0
        assert len(server.requests) == count + 1 == 6  # four turns, one asked again in vain, and that one once more
    assert rated(run) == [0, 1, 2, 3]


def rated(run: Path) -> list[int]:
    with Store.read(run) as store:
        [row] = store.episodes()
        return sorted(one.turn for one in store.turn_scores(row.id))


def test_a_pattern_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["follow", str(tmp_path / "run.sqlite"), "--solution", "how (about"])
    assert (
        f"--solution: 'how (about' {sentence('episodes.no_regular_expression')}: missing )" in capsys.readouterr().err
    )


def test_hashed_texts_are_the_same_in_every_process() -> None:
    assert hashed(["cello"]).argmax() == hashed(["cello"]).argmax()
    assert hashed([""]).sum() == 0.0
