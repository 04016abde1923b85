"""Turns that nobody can understand: counted, told to the partner, no done episode where they are many, and repaired."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.results.store import Store
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, Request, answers, says

pytestmark = pytest.mark.processes

UNREADABLE = "I would rather not answer in JSON, sorry."
TASKS = ["--task", "quiet-hours", "--task", "cello-with-a-crack"]


def act(text: str) -> str:
    return json.dumps({"action_type": "speak", "argument": text, "to": []})


def run(path: Path, agents: str, *more: str) -> int:
    return main(["run", *TASKS[:2], "--agents", agents, "--out", str(path), *more])


@pytest.mark.parametrize("order", ["round-robin", "simultaneous", "random", "asynchronous"])
@pytest.mark.parametrize("text", [UNREADABLE, '{"action_type": "speak", "argument": "I was thin', ""])
def test_an_episode_of_unreadable_turns_is_not_done_and_not_judged(
    order: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(text)) as server:
        model = f"m@{server.url}"
        asked = ["--order", order, "--judges", f"rules,{model}"]
        assert main(["run", *TASKS, "--agents", f"{model},rules", *asked, "--out", str(path)]) == 1
    shown = capsys.readouterr()
    with Store.read(path) as store:
        rows = store.episodes()
        failed, turns = store.failed_turns()
        assert [(row.state, store.scores(row.id)) for row in rows] == [("failed", [])] * 2
        who = rows[0].names[0]
        assert sentence("episodes.not_understood_in_a_row", who=who) in rows[0].reason
    assert failed == 8
    assert shown.out.strip().rsplit("\n", 1)[-1] == sentence("episodes.not_understood", failed=failed, turns=turns)
    assert sentence("episodes.go_on_with") in shown.err


def broken_now_and_then(every: int) -> object:
    """Each so many-th question and its repetition get no act."""
    asked: list[str] = []

    def text_of(request: Request) -> str:
        if "could not be read" not in request.user_text:
            asked.append(request.user_text)
        return UNREADABLE if len(asked) % every == 0 else act(f"Word {len(asked)} of mine.")

    return says(text_of)


def test_a_few_turns_are_borne_counted_and_told_to_the_partner_as_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(broken_now_and_then(6)) as server:  # type: ignore[arg-type]  # a behaviour
        assert run(path, f"m@{server.url}", "--turns", "12") == 0
        seen = [request.user_text for request in server.requests]
    assert capsys.readouterr().out.strip().endswith(sentence("episodes.not_understood", failed=2, turns=12))
    assert sentence("episodes.partner_unreadable") in seen[-1]
    assert "did nothing" not in seen[-1]
    with Store.read(path) as store:
        assert [turn.fault for turn in store.turns(store.episodes()[0].id) if turn.is_failed] == ["unreadable"] * 2


def test_more_than_a_fifth_of_the_turns_fails_the_episode_and_resume_repairs_it_from_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(broken_now_and_then(4)) as server:  # type: ignore[arg-type]  # a behaviour
        assert run(path, f"m@{server.url}", "--turns", "12") == 1
        assert sentence("episodes.not_understood", failed=3, turns=12) in capsys.readouterr().err
        paid = len(server.requests)
        server.requests.clear()
        server.script = [says(lambda request: act(f"Now {len(server.requests)} words."))]
        assert main(["resume", str(path)]) == 0
        assert len(server.requests) == 9, "the three turns before the first that failed are kept"
    with Store.read(path) as store:
        (row,) = store.episodes()
        assert (row.state, store.failed_turns()) == ("done", (0, 12))
        assert store.tokens()[0] == paid + 9, "what was paid for stays in the log"
        assert len(store.calls(row.id)) == 12
    assert main(["resume", str(path)]) == 0
    assert main(["show", str(path), "0", "--prompts"]) == 0


def test_a_sentence_that_was_cut_off_is_left_out_marked_and_not_trained_on(tmp_path: Path) -> None:
    path, data = tmp_path / "run.sqlite", tmp_path / "data"
    whole = '{"action_type": "speak", "argument": "I can pay 1400. Not m'
    with FakeOpenAI(answers(whole, finish="length")) as server:
        assert run(path, f"m@{server.url},rules", "--turns", "4") == 0
    with Store.read(path) as store:
        turns = store.turns(store.episodes()[0].id)
    assert {(turn.argument, turn.fault) for turn in turns[::2]} == {("I can pay 1400.", "cut")}
    assert all(sentence("episodes.cut_off") in turn.note for turn in turns[::2])
    assert main(["dataset", str(path), "--prompts", "full", "--filter", "sr", "--out", str(data)]) == 0
    assert "1400" not in "".join(json.loads(line)["output"] for line in (data / "train.jsonl").read_text().splitlines())


def test_where_a_third_listens_a_cut_answer_may_have_been_a_whisper_and_is_none(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    whole = '{"action_type": "speak", "argument": "I can pay 1400. Not m'
    with FakeOpenAI(answers(whole, finish="length")) as server:
        asked = ["run", "--task", "three-who-saw-it", "--agents", f"m@{server.url}", "--out", str(path)]
        assert main(asked) == 1
    with Store.read(path) as store:
        assert all(turn.is_failed for turn in store.turns(store.episodes()[0].id))
