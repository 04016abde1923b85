"""SOTOPIA-pi's filters against tables worked out by hand from the paper's text, and the data that they let through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.evaluation.dimensions import SEVEN
from nodes.episodes.learning.dataset import SeatGoal, behavior_cloning, decide, self_reinforcement
from nodes.episodes.results.store import Store, TurnScore
from nodes.msgs.episode import Score, Scores
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

# One task of ten conversations: by hand, the ranking of seat 0 is D4 D5 D1 D2 D3 D6 ..., of seat 1 D5 D6 D1 D2 ....
# Means of seat 0: (9+9+8+7+6+5+4+3+2+1)/10 = 5.4; of seat 1: (9+9+8+6+6+5+4+3+2+1)/10 = 5.3.
SEAT_0: dict[int, float] = {4: 9, 5: 9, 1: 8, 2: 7, 3: 6, 6: 5, 7: 4, 8: 3, 9: 2, 10: 1}
SEAT_1: dict[int, float] = {5: 9, 6: 9, 1: 8, 2: 6, 3: 6, 4: 5, 7: 4, 8: 3, 9: 2, 10: 1}


def goals(task: str, *seats: dict[int, float]) -> list[SeatGoal]:
    return [
        SeatGoal(f"{task}-D{n}", task, seat, goal) for seat, scores in enumerate(seats) for n, goal in scores.items()
    ]


def kept(decisions: object) -> set[tuple[str, int]]:
    return {(one.episode, one.seat) for one in decisions if one.is_kept}  # type: ignore[attr-defined]


def test_bc_keeps_the_papers_example_and_the_ranks_where_both_pass() -> None:
    found = kept(behavior_cloning(goals("t", SEAT_0, SEAT_1)))
    top = {("t-D4", 0), ("t-D5", 0), ("t-D5", 1), ("t-D6", 1)}  # the paper's example: 4 agent-data of D4, D5, D6
    # Rank 3: 8 and 8; rank 4: 7 and 6; rank 5: 6 and 6: above 5.4 and 5.3. Rank 6: 5 and 5: below both. None after.
    ranks = {("t-D1", 0), ("t-D1", 1), ("t-D2", 0), ("t-D2", 1), ("t-D3", 0), ("t-D3", 1)}
    assert found == top | ranks


def test_bc_takes_none_of_a_rank_where_one_seat_fails_and_the_smaller_mean_counts() -> None:
    # Seat 0 of task a: 9 9 8 2 (mean 7); of task b: 3 3 3 3 (mean 3); all: 5. Thresholds a: 5, b: 3.
    # Seat 1 of task a: 9 9 1 1 (mean 5); of task b: 7 7 7 6 (mean 6.75); all: 5.875. Thresholds a: 5, b: 5.875.
    a = goals("a", {1: 9, 2: 9, 3: 8, 4: 2}, {1: 9, 2: 9, 3: 1, 4: 1})
    b = goals("b", {1: 3, 2: 3, 3: 3, 4: 3}, {1: 7, 2: 7, 3: 7, 4: 6})
    decisions = behavior_cloning(a + b)
    # a, rank 3: 8 > 5 but 1 is not above 5: none. b, rank 3: 7 > 5.875 but 3 is not above 3: none.
    assert kept(decisions) == {(f"{t}-D{n}", s) for t in "ab" for n in (1, 2) for s in (0, 1)}
    why = {(one.episode, one.seat): one.why for one in decisions}
    assert why["a-D3", 0] == "at this rank 1 of seat 1 is not above 5.00"
    assert why["b-D3", 1] == "at this rank 3 of seat 0 is not above 3.00"


def test_bc_looks_at_no_rank_after_the_tenth() -> None:
    many = dict.fromkeys(range(1, 12), 10.0) | {12: 0.0}
    found = kept(behavior_cloning(goals("t", many, many)))
    assert found == {(f"t-D{n}", seat) for n in range(1, 11) for seat in (0, 1)}


@pytest.mark.parametrize(("count", "most"), [(10, 2), (5, 1), (3, 1), (11, 3), (1, 1)])
def test_sr_keeps_a_fifth_of_each_task_and_seat_rounded_up(count: int, most: int) -> None:
    scores = {n: float(n) for n in range(count)}
    found = kept(self_reinforcement(goals("t", scores, scores)))
    assert found == {(f"t-D{n}", seat) for n in range(count - most, count) for seat in (0, 1)}


def test_the_data_holds_the_prompts_that_were_shown_and_the_acts_that_were_played(tmp_path: Path) -> None:
    hello = json.dumps({"action_type": "speak", "argument": "Hello there", "to": []})
    run = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(hello)) as server:
        tasks = ("--task", "cello-with-a-crack", "--turns", "4")
        assert main(["run", *tasks, "--agents", f"m@{server.url},rules", "--out", str(run)]) == 0
        shown = [request.user_text for request in server.requests]
    asked = ("--format", "messages", "--agent", f"m@{server.url}")
    assert main(["dataset", str(run), *asked, "--out", str(tmp_path / "d")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "d" / "train.jsonl").read_text().splitlines()]
    assert [row["messages"][0]["content"] for row in rows] == shown
    assert {row["messages"][1]["content"] for row in rows} == {hello.replace(": ", ":").replace(", ", ",")}
    assert main(["dataset", str(run), "--format", "alpaca", "--out", str(tmp_path / "both")]) == 0
    statistics = json.loads((tmp_path / "both" / "statistics.json").read_text())
    assert statistics["kept_by_seat"] == {"0": 1, "1": 1}
    assert statistics["train_pairs"] == 4
    assert statistics["prompts_as_shown"] == 2
    first = json.loads((tmp_path / "both" / "train.jsonl").read_text().splitlines()[0])
    assert set(first) == {"instruction", "input", "output"}
    decisions = [json.loads(line) for line in (tmp_path / "both" / "decisions.jsonl").read_text().splitlines()]
    assert all(one["why"] for one in decisions)
    assert "split: train" in (tmp_path / "both" / "README.md").read_text()


def test_lengths_are_those_of_the_models_tokenizer_or_estimates_that_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    by_word = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    by_word.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    by_word.save(str(tmp_path / "tokenizer.json"))
    run = tmp_path / "run.sqlite"
    assert main(["run", "--task", "cello-with-a-crack", "--turns", "4", "--out", str(run)]) == 0
    asked = ["dataset", str(run), "--prompts", "small", "--tokenizer"]
    assert main([*asked, str(tmp_path), "--out", str(tmp_path / "d")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "d" / "train.jsonl").read_text().splitlines()]
    words = [len(f"{row['instruction']} {row['output']}".split()) for row in rows]
    statistics = json.loads((tmp_path / "d" / "statistics.json").read_text())
    assert (statistics["tokens"]["longest"], statistics["tokens"]["sum"]) == (max(words), sum(words))
    assert "estimated" not in (tmp_path / "d" / "README.md").read_text()
    assert main([*asked[:-1], "--out", str(tmp_path / "e")]) == 0
    assert sentence("episodes.estimated") in (tmp_path / "e" / "README.md").read_text()
    assert main([*asked, str(run), "--out", str(tmp_path / "f")]) == 2
    assert "run.sqlite: is no tokenizer.json" in capsys.readouterr().err


def test_a_prompt_made_for_a_player_by_rules_is_the_one_that_a_model_is_shown(tmp_path: Path) -> None:
    hello = json.dumps({"action_type": "speak", "argument": "Hello there", "to": []})
    run = tmp_path / "run.sqlite"
    tasks = ("--task", "cello-with-a-crack", "--turns", "6")
    with FakeOpenAI(answers(hello)) as server:
        assert main(["run", *tasks, "--agents", f"m@{server.url}", "--out", str(run)]) == 0
    for prompts in ("shown", "full"):
        assert main(["dataset", str(run), "--prompts", prompts, "--out", str(tmp_path / prompts)]) == 0
    assert (tmp_path / "shown" / "train.jsonl").read_text() == (tmp_path / "full" / "train.jsonl").read_text()


def test_tasks_are_held_out_whole(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    tasks = ("cello-with-a-crack", "van-with-a-cough", "quiet-hours", "give-me-the-keys")
    assert main(["run", *(part for task in tasks for part in ("--task", task)), "--out", str(run)]) == 0
    assert main(["dataset", str(run), "--held-out", "0.5", "--out", str(tmp_path / "d")]) == 0
    statistics = json.loads((tmp_path / "d" / "statistics.json").read_text())
    assert 0 < len(statistics["held_out_tasks"]) < statistics["tasks"]
    with Store.read(run) as store:
        contexts = {row.scenario: store.plan(row.id).context for row in store.episodes()}
    train = (tmp_path / "d" / "train.jsonl").read_text()
    assert all(json.dumps(contexts[task])[1:-1] not in train for task in statistics["held_out_tasks"])


def test_a_run_of_which_nothing_is_left_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run.sqlite"
    assert main(["run", "--task", "cello-with-a-crack", "--out", str(run)]) == 0
    assert main(["dataset", str(run), "--agent", "gpt", "--out", str(tmp_path / "d")]) == 2
    assert sentence("episodes.played_nowhere", agent="gpt", agents="rules") in capsys.readouterr().err
    assert main(["dataset", str(run), "--judge", "nobody", "--out", str(tmp_path / "d")]) == 2
    assert sentence("episodes.goal_not_judged") in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("share", ["2", "-0.1", "half"])
def test_a_share_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], share: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["dataset", "run.sqlite", f"--held-out={share}", "--out", str(tmp_path / "d")])
    assert f"--held-out: {share} {sentence('episodes.no_share')}" in capsys.readouterr().err


def test_scores_of_turns_are_kept_and_an_older_file_has_none(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    assert main(["run", "--task", "cello-with-a-crack", "--out", str(run)]) == 0
    score = TurnScore(turn=5, judge="m", dimension="goal_c", score=7.5)
    with Store.open(run) as store:
        episode = store.episodes()[0].id
        store.save_turn_scores(episode, [score, TurnScore(5, "m", "goal_p", 8.0)])
        store.save_turn_scores(episode, [score])
        assert store.turn_scores(episode) == [score, TurnScore(5, "m", "goal_p", 8.0)]
        store.db.execute("DROP TABLE turn_scores")
    with Store.read(run) as store:
        assert store.turn_scores(episode) == []
    with Store.open(run) as store:  # and is given the table when somebody writes
        store.save_turn_scores(episode, [score])
        assert store.turn_scores(episode) == [score]


def test_a_filter_goes_by_all_seven_and_key_turns_are_those_with_such_a_score(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    assert main(["run", "--task", "cello-with-a-crack", "--out", str(run)]) == 0
    with Store.open(run) as store:
        (row,) = store.episodes()
        every = [
            Score(name=name, dimension=one.name, score=float(one.high), reasoning="")
            for name in row.names
            for one in SEVEN
        ]
        assert {one.goal for one in decide(store, "bc", by="overall")} == {None}, "rules do not judge all seven"
        store.save_scores(Scores(episode=row.id, judge="m", state="done", scores=tuple(every)))
        overall = sum(one.high for one in SEVEN) / 7
        assert [one.goal for one in decide(store, "bc", by="overall")] == pytest.approx([overall, overall])
        turns = store.turns(row.id)
        mine = [turn.index for turn in turns if turn.speaker == row.names[0]]
        store.save_turn_scores(
            row.id, [TurnScore(index, "m", "relevance", 1.0 if index < 3 else 0.0) for index in mine]
        )
    asked = ["--prompts", "full", "--key-turns", "relevance>=0.5", "--by", "overall"]
    assert main(["dataset", str(run), *asked, "--out", str(tmp_path / "d")]) == 0
    rows = (tmp_path / "d" / "train.jsonl").read_text().splitlines()
    assert len(rows) == sum(index < 3 for index in mine) > 0
    statistics = json.loads((tmp_path / "d" / "statistics.json").read_text())
    assert (statistics["by"], statistics["key_turns"]) == ("overall", "relevance of 0.5 or more")
    with pytest.raises(SystemExit):
        main(["dataset", str(run), "--key-turns", "relevance", "--out", str(tmp_path / "e")])
