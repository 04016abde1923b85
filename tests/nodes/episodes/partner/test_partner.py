"""A partner in mind: predictions against the truth, meetings remembered, listeners learned in few rounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.partner.predictions import BELIEVES, NEXT, WANTS, AskedTurn, all_moments, baseline, read_prediction
from nodes.episodes.partner.reference_game import PICTURES, Description, ListenerBelief, PartnerListener, play
from nodes.episodes.results.store import Store
from nodes.msgs.episode import ActKind, Turn
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

TASKS = ("cello-with-a-crack", "van-with-a-cough", "quiet-hours")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    assert main(["run", *(part for task in TASKS for part in ("--task", task)), "--out", str(path)]) == 0
    return path


def test_a_moment_holds_what_the_seat_knew_and_the_truth_that_the_run_knows(run: Path) -> None:
    with Store.read(run) as store:
        for one in all_moments(store):
            plan, turns = store.plan(one.episode), store.turns(one.episode)
            me, other = plan.names[one.seat], plan.names[1 - one.seat]
            assert turns[one.turn + 1].speaker == other
            assert one.truths["predicts next act"] == turns[one.turn + 1].kind
            assert one.goals["abcd".index(one.truths[WANTS])] == plan.truths[1 - one.seat].goal
            assert plan.truths[one.seat].goal not in one.goals
            assert all(turn.is_for(me) and turn.index <= one.turn for turn in one.heard)


def test_accuracy_is_counted_against_the_truth_and_prose_is_wrong(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.read(run) as store:
        moments = all_moments(store)
    share = sum(one.truths[WANTS] == "a" for one in moments) / len(moments)
    good = json.dumps({"wants": "a", "believes": "yes", "next": "speak"})
    with FakeOpenAI(answers(good)) as server:
        capsys.readouterr()
        assert main(["predict", str(run), "--by", f"m@{server.url}", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["accuracy"][f"m@{server.url}"][WANTS]["all"] == pytest.approx(share)
        assert found["unreadable"] == {}
        parts = [part for part in found["accuracy"][f"m@{server.url}"][WANTS] if part.startswith("turns")]
        assert parts[:3] == ["turns 1-5", "turns 6-10", "turns 11-15"]
        asked = len(server.requests)
        assert asked == len(moments)
        assert main(["predict", str(run), "--by", f"m@{server.url}"]) == 0
        assert len(server.requests) == asked  # answers that stand in the log are not asked for again
        assert not any("Ready to be told" in request.user_text for request in server.requests)
    with FakeOpenAI(answers("Hard to say.")) as server:
        capsys.readouterr()
        assert main(["predict", str(run), "--by", f"n@{server.url}", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["unreadable"][WANTS] == len(moments)
        assert len(server.requests) == 2 * len(moments), "asked once more"
        assert found["accuracy"][f"n@{server.url}"][WANTS]["all"] == 0.0


GOALS = ("Buy the cello for 900.", "Sell it.", "Find out who it is.", "Keep quiet.")


@pytest.mark.parametrize(
    "wants", ["b", "(b)", "B.", "b: Sell it.", "The answer is (b)", "Sell it.", "sell it", ["b"], "b) Sell it"]
)
@pytest.mark.parametrize(
    ("believes", "after", "kind"),
    [("Yes.", "Speak", "speak"), ("yes, he does", "to speak", "speak"), (True, "nonverbal", "non-verbal communication"),
     ("YES", "Leave the room", "leave"), ("Yes - surely", "nothing", "none")],
)  # fmt: skip
def test_what_models_predict_is_read_as_they_write_it(wants: object, believes: object, after: str, kind: str) -> None:
    said = json.dumps({"Wants": wants, "believes": believes, "next": after})
    assert read_prediction(f"Here: {said}", GOALS) == {WANTS: "b", BELIEVES: "yes", NEXT: kind}


@pytest.mark.parametrize("text", ["?", "{}", '{"wants": "e", "believes": "perhaps", "next": "sing"}', '{"wants": ""}'])
def test_what_predicts_nothing_is_no_prediction(text: str) -> None:
    assert read_prediction(text, GOALS) == {}


def test_the_baselines_say_what_is_usual_elsewhere_and_that_things_stay_as_they_are() -> None:
    # By hand: episode e1 asks with truths a, b; e2 with b; e3 with b. Elsewhere than e1: b twice; than e2: b twice, a.
    # Next acts: speak, leave; speak; none. Elsewhere than e1: none 1, speak 1; the first by name of equals is none.
    def moment(episode: str, turn: int, wants: str, next_act: str, heard: tuple[ActKind, ...]) -> AskedTurn:
        turns = tuple(
            Turn(index=index, number=index + 1, speaker="me" if (len(heard) - index) % 2 else "you", kind=kind)
            for index, kind in enumerate(heard)
        )
        return AskedTurn(episode, 0, turn, turns, (), {WANTS: wants, NEXT: next_act})

    moments = [
        moment("e1", 0, "a", "speak", ("speak",)), moment("e1", 2, "b", "leave", ("speak", "action", "speak")),
        moment("e2", 0, "b", "speak", ("none",)), moment("e3", 0, "b", "none", ("speak", "none", "speak")),
    ]  # fmt: skip
    most, last = (baseline(name, moments) for name in ("majority", "last act"))
    assert [most["e1", 0, 0, WANTS], most["e2", 0, 0, WANTS], most["e3", 0, 0, WANTS]] == ["b", "b", "b"]
    assert [most["e1", 0, 0, NEXT], most["e2", 0, 0, NEXT], most["e3", 0, 0, NEXT]] == ["none", "leave", "speak"]
    # The other's last act, not one's own; where the other has not acted yet, what is usual elsewhere.
    assert [last["e1", 0, 0, NEXT], last["e1", 0, 2, NEXT], last["e3", 0, 0, NEXT]] == ["none", "action", "none"]
    assert last["e1", 0, 0, WANTS] == "b"


def test_each_remembers_its_own_meetings_and_no_more_than_it_perceived(tmp_path: Path) -> None:
    hello = json.dumps({"action_type": "speak", "argument": "The moon is mine", "to": []})
    path = tmp_path / "sessions.sqlite"
    with FakeOpenAI(answers(hello)) as server:
        asked = ["sessions", "--agents", f"m@{server.url},rules", "--turns", "4", "--out", str(path)]
        asked += [part for name in TASKS[:2] for part in ("--scenario", name)]
        assert main(asked) == 0
        prompts = [request.user_text for request in server.requests]
        assert main(asked) == 0
        assert len(server.requests) == len(prompts)  # all is done
    second = [text for text in prompts if "car park" in text]
    remembered = [text for text in second if "Your meeting 1 with the same person" in text]
    assert len(remembered) == len(second) * 2 // 3  # of none, summary and full
    assert sum("It took 4 turns" in text for text in remembered) == len(second) // 3
    with Store.read(path) as store:
        for row in store.episodes():
            plan = store.plan(row.id)
            for briefing, other in zip(plan.briefings, reversed(plan.truths), strict=True):
                assert other.goal not in briefing.background
    assert main([*asked, "--seeds", "2"]) == 2


def test_predictions_are_told_by_meeting_and_memory_with_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "sessions.sqlite"
    names = [part for task in TASKS[:2] for part in ("--scenario", task)]
    memories = ("--memory", "none", "--memory", "full")
    assert main(["sessions", *names, *memories, "--turns", "8", "--out", str(run)]) == 0
    capsys.readouterr()
    assert main(["predict", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["accuracy"]["majority"][NEXT]
    for part in ("meeting 1, memory none", "meeting 2, memory full"):
        low, high = found["intervals"][part]
        assert 0.0 <= low <= found[part] <= high <= 1.0
    assert main(["predict", str(run)]) == 0
    assert "meeting 2, memory full" in capsys.readouterr().out


def test_a_belief_follows_bayes_rule_and_a_listener_is_learned_in_few_rounds() -> None:
    shown = PICTURES[:4]  # all red circles and squares, big and small
    mind = ListenerBelief()
    before = sum(share for kind, share in mind.belief.items() if "german" in kind)
    said = Description("german", ("circle", "big"))
    mind.saw(said, shown, shown[0])  # the big circle: understood
    after = sum(share for kind, share in mind.belief.items() if "german" in kind)
    assert before == pytest.approx(0.4)  # of 10 kinds 4 speak it
    hit = mind.probability(said, shown, shown[0], frozenset({"german"}))
    # both known: 1; one known: 1 of 2; none: 1 of 4
    assert hit == pytest.approx(0.95**2 + 2 * 0.95 * 0.05 / 2 + 0.05**2 / 4)
    miss = mind.probability(said, shown, shown[0], frozenset({"polish"}))
    assert after == pytest.approx(0.4 * hit / (0.4 * hit + 0.6 * miss))
    late = {who: sum(sum(play(who, seed, 6)[3:]) for seed in range(12)) for who in ("no mind", "partner in mind")}
    assert late["partner in mind"] > late["no mind"]
    assert PartnerListener(3).spoken == PartnerListener(3).spoken


def test_what_was_learned_of_each_listener_is_a_file_with_which_the_next_session_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    minds = tmp_path / "minds.jsonl"
    asked = ["game", "--listeners", "20", "--rounds", "6", "--json", "--minds", str(minds)]
    sessions = []
    for _ in range(2):
        assert main(asked) == 0
        sessions.append(json.loads(capsys.readouterr().out))
    first, second = (sum(one["partner in mind"][:2]) for one in sessions)
    assert second > first + 0.3  # of 2.0: it knows them already
    lines = [json.loads(line) for line in minds.read_text().splitlines()]
    assert [(one["listener"], one["rounds"]) for one in lines] == [(seed, 12) for seed in range(20)]
    likely = [frozenset(max(one["belief"], key=one["belief"].get).split("+")) for one in lines]
    assert sum(bool(kind & PartnerListener(seed).spoken) for seed, kind in enumerate(likely)) >= 18
    for wrong, why in (
        ("{", sentence("episodes.no_listener", number=21)),
        ('{"listener": 3, "rounds": 1, "belief": {"latin": 1.0}}', sentence("episodes.no_distribution", number=21)),
    ):
        minds.write_text("\n".join([*map(json.dumps, lines), wrong]))
        assert main(asked) == 2
        assert why in capsys.readouterr().err
