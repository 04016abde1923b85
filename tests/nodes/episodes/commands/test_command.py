"""`polyrhythm episodes` from the outside: the same output twice, reports recomputed, export, browse, bad input."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from statistics import fmean

import pytest

from nodes.episodes.command import main
from nodes.episodes.results.browse import make_server
from nodes.episodes.results.report import shortened
from nodes.episodes.results.run_file import network_file_system
from nodes.episodes.results.store import Store
from tests.support.running import PATIENCE_S
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, status


def run(out: Path, *arguments: str) -> int:
    return main(["run", "--out", str(out), *arguments])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run.sqlite"
    tasks = ("cello-with-a-crack", "quiet-hours", "three-who-saw-it", "give-me-the-keys")
    names = [part for task in tasks for part in ("--task", task)]
    assert run(path, *names, "--agents", "rules", "--agents", "scripted,rules", "--seeds", "2") == 0
    return path


def test_the_same_run_is_the_same_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for name in ("a", "b"):
        assert run(tmp_path / f"{name}.sqlite", "--tasks", "starter", "--agents", "scripted", "--json") == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    episodes = json.loads(outputs[0])["episodes"]
    assert len(episodes) == 55
    assert all(episode["state"] == "done" and episode["scores"] for episode in episodes)


def test_a_report_is_what_the_log_says_recomputed(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(played), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    with Store.read(played) as store:
        for row in store.episodes():
            for one in store.scores(row.id):
                for score in one.scores:
                    model = row.agents[row.names.index(score.name)]
                    if score.score is not None:
                        values.setdefault((model, score.dimension), {}).setdefault(row.scenario, []).append(score.score)
    assert {dimension for _, dimension in values} == set(figures["dimensions"]) == {"KNO", "SEC", "FIN", "GOAL"}
    for (model, dimension), by_scenario in values.items():
        found = figures["table"][model][dimension]
        assert found["mean"] == pytest.approx(fmean([value for group in by_scenario.values() for value in group]))
        assert found["count"] == len(by_scenario)
        assert found["low"] is found["high"] is None, "what rules can tell is no measure of skill"
    assert figures["comparisons"] == []


def test_a_page_with_the_heat_map_is_written(played: Path, tmp_path: Path) -> None:
    assert main(["report", str(played), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "pairs.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text()
    assert "Simulation card" in page
    assert "<script" not in page
    (tmp_path / "report.html").write_text("mine")
    assert main(["report", str(played), "--out", str(tmp_path)]) == 2
    assert (tmp_path / "report.html").read_text() == "mine", "nothing is written over"


def test_an_export_has_one_reward_pair_per_agent_that_reached_the_log(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(played)]) == 0
    logs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(logs) == 16
    for log in logs:
        assert len(log["rewards"]) == len(log["agents"])
        for whole, dimensions in log["rewards"]:
            assert dimensions["overall_score"] == whole
            assert set(dimensions) >= {"secret", "overall_score"}
            assert "believability" not in dimensions, "rules cannot tell"
        assert sentence("episodes.not_all_judged") in log["reasoning"]
        assert all(len(message) == 3 for group in log["messages"] for message in group)


def test_logs_come_in_again_and_are_shown_and_judged_as_they_went_out(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, again = tmp_path / "logs.jsonl", tmp_path / "again.sqlite"
    assert main(["export", str(played), "--out", str(out)]) == 0
    out.write_text(out.read_text() + '{"environment": "x"}\n')
    assert main(["import", str(out), "--out", str(again)]) == 0
    shown = capsys.readouterr()
    assert "16 episodes, 1 left out" in shown.out
    assert f"left out: {out}:17: " in shown.err
    with Store.read(played) as before, Store.read(again) as after:
        assert [row.agents for row in after.episodes()] == [row.agents for row in before.episodes()]
        for one, other in zip(before.episodes(), after.episodes(), strict=True):
            assert [(t.speaker, t.kind, t.to) for t in before.turns(one.id)] == [
                (t.speaker, t.kind, t.to) for t in after.turns(other.id)
            ]
            given, kept = (
                {(score.name, score.dimension): (score.score, score.reasoning) for score in run.scores(ident)[0].scores}
                for run, ident in ((before, one.id), (after, other.id))
            )
            assert kept == given
            assert any(score is None for score, _ in kept.values()), "what was not judged"
    assert main(["report", str(again)]) == 0
    assert main(["score", str(again), "--judges", "rules", "--again"]) == 0


def test_an_episode_is_shown_with_who_saw_what(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(played), "0", "--prompts"]) == 0
    text = capsys.readouterr().out
    assert "Turn 1: " in text
    assert "Who was shown what" in text
    assert "ask 2 at turn 3: 1-2" in text
    assert main(["show", str(played), "three-who-saw-it-0000-s1"]) == 2
    assert f"2 {sentence('episodes.several_begin', begin='three-who-saw-it-0000-s1')} " in capsys.readouterr().err
    assert main(["show", str(played), "999"]) == 2
    assert main(["show", str(played), "../../etc"]) == 2


def test_only_what_the_log_holds_is_replayed(played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, why in (("#999", "there is no episode '999'"), ("#three", "episodes begin with 'three'")):
        assert run(tmp_path / "no.sqlite", "--task", "quiet-hours", "--agents", f"replay:{played}{name}") == 2
        assert why in capsys.readouterr().err
    assert run(tmp_path / "no.sqlite", "--task", "last-table", "--agents", f"replay:{played}#0") == 2
    assert " is not in episode cello-with-a-crack" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_on_a_terminal_no_line_is_wider_than_it(
    played: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nodes.episodes.results.show.terminal_width", lambda: 80)
    for arguments in (["show", str(played)], ["show", str(played), "0"], ["report", str(played)]):
        assert main(arguments) == 0
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) > 16
        assert max(len(line) for line in printed) <= 80, arguments


def test_a_report_by_a_judge_who_judged_nothing_names_those_who_did(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(played), "--judge", "nobody"]) == 2
    assert sentence("episodes.no_scores_by", judge="nobody", judges="rules") in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["run", "resume", "show", "score", "report", "export", "sample", "embody", "browse", "import", "merge"]
)
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert f"polyrhythm episodes {command}" in printed.partition("example")[2]
    assert max(len(line) for line in printed.splitlines()) <= 80


def test_the_help_of_run_says_what_it_does_and_what_holds_where_nothing_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for words in (
        "Play episodes.",
        "seeds per task, from 0 (default: 1)",
        "turn limit (default: 20)",
        "default: rules",
    ):
        assert words in printed


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert sentence("episodes.index_of_tables") in capsys.readouterr().out


def test_two_runs_of_one_second_are_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nodes.episodes.commands.run.wall_time_text", lambda: "20260131-235959")
    for _ in range(3):
        assert main(["run", "--task", "quiet-hours"]) == 0
    names = sorted(path.name for path in (tmp_path / "runs").glob("*.sqlite"))
    assert names == [f"episodes-20260131-235959{more}.sqlite" for more in ("-2", "-3", "")]


@pytest.mark.processes
def test_browse_ends_at_an_interrupt_also_where_its_shell_had_that_ignored(played: Path) -> None:
    browse = "import sys; from nodes.episodes.command import main; sys.exit(main(sys.argv[1:]))"
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {browse}"
    command = [sys.executable, "-c", ignoring, "browse", str(played)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as page:
        assert page.stdout is not None
        assert "Ctrl-C ends" in page.stdout.readline()
        page.send_signal(signal.SIGINT)
        assert page.wait(PATIENCE_S) == 0


def test_browse_reads_filters_and_compares_on_loopback_only(played: Path) -> None:
    server = make_server(played, 0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    base = server.url.rstrip("/")
    try:
        everything = urllib.request.urlopen(f"{base}/").read().decode()
        assert "16 episodes" in everything
        assert everything.count("name='a'") == everything.count("name='b'") == 16  # to be picked for a comparison
        assert "4 episodes" in urllib.request.urlopen(f"{base}/?task=quiet-hours").read().decode()
        with Store.read(played) as store:
            first, second = [row.id for row in store.episodes()][:2]
            names = [store.plan(one).truths[0].name for one in (first, second)]
        both = urllib.request.urlopen(f"{base}/compare?a={first}&b={second}").read().decode()
        assert all(name in both for name in names)
        assert both.count("<h1>") == 2
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{base}/episode?id=%3Cscript%3E")
        forged = urllib.request.Request(f"{base}/", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(forged)
    finally:
        server.stop()
        thread.join()


def test_scoring_again_and_human_ratings(played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.read(played) as store:
        rows = store.episodes()[:4]
    lines = [
        {"episode": row.id, "rater": rater, "name": name, "dimension": "GOAL", "score": 3 + number + 2 * seat}
        for number, row in enumerate(rows)
        for seat, name in enumerate(row.names[:2])
        for rater in ("r1", "r2")
    ]
    path = tmp_path / "ratings.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert main(["score", str(played), "--ratings", str(path)]) == 0
    assert main(["report", str(played), "--json"]) == 0
    agreement = json.loads(capsys.readouterr().out)["agreement"][0]
    assert (agreement["dimension"], agreement["items"]) == ("GOAL", 8)
    assert agreement["kappa"] == {"3": 1.0, "4": 1.0, "5": 1.0}
    path.write_text(json.dumps({**lines[0], "score": 12}))
    assert main(["score", str(played), "--ratings", str(path)]) == 2
    assert sentence("episodes.score_expected", dimension="GOAL", score=12, high=10) in capsys.readouterr().err
    assert main(["score", str(played), "--judges", "rules"]) == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "--task", "nowhere"], sentence("episodes.no_such_task", known="cello-with-a-crack")),
        (["run", "--tasks", "no/such/folder"], "is no folder"),
        (["run", "--agents", "rules,rules,rules"], "3 agents; task"),
        (["run", "--agents", "gpt-4o"], sentence("episodes.key_is_missing")),
        (["run", "--turns", "0"], "max_turns is 0"),
        (["run", "--seeds", "0"], f"--seeds is 0; {sentence('episodes.at_least_one')}"),
        (["run", "--prices", "x"], sentence("episodes.two_numbers")),
        (["run", "--prices=-1,0"], "none below 0"),
        (["run", "--max-money", "1"], sentence("episodes.money_without_prices")),
        (["run", "--max-calls", "-1"], sentence("episodes.no_limit_or_more", name="max-calls", value="-1")),
        (["run", "--deadline", "nan"], sentence("episodes.seconds_expected", name="deadline", value="nan")),
        (["run", "--temperature", "9"], sentence("episodes.temperature_expected", value=9)),
        (["run", "--agents", "m@ftp://x"], sentence("episodes.base_url_expected", value="'ftp://x'")),
        (["run", "--agents", "script:/dev/null"], sentence("episodes.no_acts", file="/dev/null")),
        (["run", "--agents", f"script:{__file__}"], sentence("episodes.one_a_line")),
        (["show", "/dev/null"], sentence("episodes.no_such_run")),
        (["resume", "none.sqlite"], sentence("episodes.no_such_run")),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_played(
    arguments: list[str],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.sqlite"))


def test_an_outage_fails_the_episode_and_resume_finishes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = answers(json.dumps({"action_type": "speak", "argument": "Hello", "to": []}))
    path = tmp_path / "run.sqlite"
    common = ("--task", "quiet-hours", "--turns", "6", "--json")
    with FakeOpenAI(good, good, status(401), good) as server:
        assert run(path, *common, "--agents", f"m@{server.url}") == 1
        out = json.loads(capsys.readouterr().out)["episodes"][0]
        assert out["state"] == "failed"
        assert "wants a key" in out["reason"]
        assert len(out["turns"]) == 2
        assert main(["resume", str(path), "--json"]) == 0
        out = json.loads(capsys.readouterr().out)
        assert out["episodes"][0]["reason"] == "turn limit: 6 turns"
        assert len(out["episodes"][0]["turns"]) == 6
        assert out["calls"] == 6
        assert len(server.requests) == 7


def test_a_budget_stops_a_run_that_resume_can_finish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = answers(json.dumps({"action_type": "speak", "argument": "Hello", "to": []}))
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(good) as server:
        asked = ("--task", "quiet-hours", "--seeds", "3", "--turns", "4", "--jobs", "1", "--json")
        assert run(path, *asked, "--agents", f"m@{server.url}", "--max-calls", "6") == 1
        states = [episode["state"] for episode in json.loads(capsys.readouterr().out)["episodes"]]
        assert states == ["done", "failed", "waiting"]
        assert main(["resume", str(path), "--max-calls", "0", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["calls"] == 12
        assert len(server.requests) == 12


@pytest.mark.long
def test_shards_merged_are_the_run_in_one_piece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--task", "quiet-hours", "--task", "give-me-the-keys", "--seeds", "3")
    assert run(tmp_path / "whole.sqlite", *asked) == 0
    shards = [tmp_path / f"{number}.sqlite" for number in (1, 2, 3)]
    for number, path in enumerate(shards, start=1):
        assert run(path, *asked, "--shard", f"{number}/3") == 0
    merged = tmp_path / "merged.sqlite"
    assert main(["merge", *map(str, shards), "--out", str(merged)]) == 0
    shown = []
    for path in (tmp_path / "whole.sqlite", merged):
        capsys.readouterr()
        assert main(["report", str(path), "--json"]) == 0
        with Store.read(path) as store:
            rows = [(row.number, row.id, store.turns(row.id), store.scores(row.id)) for row in store.episodes()]
        shown.append((capsys.readouterr().out, rows))
    assert shown[0] == shown[1]
    assert main(["merge", str(shards[0]), str(shards[0]), "--out", str(tmp_path / "twice.sqlite")]) == 2
    assert sentence("episodes.merge_once") in capsys.readouterr().err
    assert not (tmp_path / "twice.sqlite").exists()
    assert run(tmp_path / "x.sqlite", "--shard", "4/3") == 2
    assert main(["merge", *map(str, shards[:2]), "--out", str(tmp_path / "two.sqlite"), "--json"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["missing"] == 2
    assert "2 of the run's 6 episodes are in none of these files" in told.err


def test_shards_of_runs_with_other_agents_or_seeds_are_not_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('"How warm it is."\n')
    asked = ("--task", "quiet-hours", "--turns", "2", "--seeds")
    assert run(tmp_path / "1.sqlite", *asked, "2", "--shard", "1/2") == 0
    others = (("2", "--agents", f"script:{lines}"), ("4",), ("2", "--judges", "rules", "--temperature", "0.1"))
    for number, other in enumerate(others):
        path = tmp_path / f"other{number}.sqlite"
        assert run(path, *asked, *other, "--shard", "2/2") == 0
        capsys.readouterr()
        assert main(["merge", str(tmp_path / "1.sqlite"), str(path), "--out", str(tmp_path / "out.sqlite")]) == 2
        differs = "other settings" if "--temperature" in other else "other agents, tasks, seeds or rules"
        assert f"{sentence('episodes.of_another_run')} {differs}" in capsys.readouterr().err
        assert not (tmp_path / "out.sqlite").exists()


def test_a_file_on_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nlab:/home {tmp_path}/lab nfs4 rw 0 0\n")
    assert network_file_system(tmp_path / "lab" / "run.sqlite", mounts) == "nfs4"
    assert network_file_system(tmp_path / "run.sqlite", mounts) == ""


def test_a_game_is_won_as_the_command_line_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('"How warm it is."\n"Fine, I give up!"\n')
    agents = f"script:{lines},script:{lines}"
    task = ("--task", "quiet-hours", "--agents", agents, "--json")
    assert run(tmp_path / "a.sqlite", *task, "--win", r"1=\bI give up\b") == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert episode["reason"] == rf"won: {episode['names'][1]} (\bI give up\b)"
    assert len(episode["turns"]) == 4
    assert run(tmp_path / "b.sqlite", *task, "--win", "7=x") == 2
    assert sentence("episodes.seat_expected", field="wins: seat", value=7, last=1) in capsys.readouterr().err
    assert run(tmp_path / "c.sqlite", *task, "--win", "(") == 2
    assert f"win check '(': pattern '(' {sentence('episodes.no_regular_expression')}" in capsys.readouterr().err


def test_a_script_is_written_at_once_and_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.read(_plan_of(tmp_path)) as store:
        first, second = store.episodes()[0].names
    capsys.readouterr()
    script = [
        {"speaker": first, "action_type": "speak", "argument": "One"},
        {"speaker": second, "action_type": "speak", "argument": "Two"},
        {"speaker": second, "action_type": "leave", "argument": ""},
    ]
    with FakeOpenAI(answers(json.dumps({"script": script}))) as server:
        asked = ("--task", "quiet-hours", "--mode", "SCRIPT", "--json", "--agents", f"m@{server.url}")
        assert run(tmp_path / "script.sqlite", *asked) == 0
        assert len(server.requests) == 1
    episode = json.loads(capsys.readouterr().out)["episodes"][0]
    assert [turn["argument"] for turn in episode["turns"]] == ["One", "Two", ""]
    assert episode["reason"].startswith(f"left: {second}")
    assert episode["transparency"] == "SCRIPT"


def _plan_of(folder: Path) -> Path:
    path = folder / "names.sqlite"
    assert run(path, "--task", "quiet-hours") == 0
    return path


def test_every_pair_of_models_and_several_modes_stand_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shapes of the papers' tables, from one command each."""
    said = json.dumps({"action_type": "leave", "argument": "", "to": []})
    seven = {name: {"reasoning": "so", "score": 0} for name in ("BEL", "REL", "KNO", "SEC", "SOC", "FIN", "GOAL")}

    with (
        FakeOpenAI(answers(said)) as server,
        FakeOpenAI(answers(json.dumps({"evaluations": {"agent_1": seven, "agent_2": seven}}))) as judge,
    ):
        one, two, partner = (f"{name}@{server.url}" for name in ("one", "two", "partner"))
        common = ["--task", "quiet-hours", "--judges", f"j@{judge.url}"]
        assert run(tmp_path / "pairs.sqlite", *common, "--models", f"{one},{two}", "--partner", partner) == 0
        assert run(tmp_path / "all.sqlite", *common, "--models", f"{one},{two}") == 0
        assert run(tmp_path / "modes.sqlite", *common, "--agents", one, "--mode", "agents,MINDREADERS") == 0
    capsys.readouterr()
    found = {}
    for name in ("pairs", "all", "modes"):
        assert main(["report", str(tmp_path / f"{name}.sqlite"), "--json"]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    assert found["pairs"]["episodes"] == found["all"]["episodes"] == 4
    assert found["pairs"]["pairs"][one][partner] == found["pairs"]["pairs"][partner][one] == 0.0
    assert found["pairs"]["pairs"][one][two if two in found["pairs"]["pairs"][one] else one] is None
    assert set(found["all"]["pairs"][one]) == {one, two}
    assert set(found["modes"]["models"]) == {f"AGENTS: {one}", f"MINDREADERS: {one}"}
    assert {(c["first"], c["second"]) for c in found["modes"]["comparisons"]} <= {
        (f"AGENTS: {one}", f"MINDREADERS: {one}")
    }


def test_names_in_the_heat_map_are_told_apart() -> None:
    long = "org/some-quite-long-name-of-a-model"
    names = shortened([f"{long}@http://one:1/v1", f"{long}@http://one:1/v1#t=0", "short", f"{long}@http://two:1/v1"])
    assert len(set(names)) == 4
    assert max(map(len, names)) <= 30
    assert names[2] == "short"


def test_a_slow_mind_is_slower_in_asynchronous_talk_and_a_replay_as_slow(tmp_path: Path) -> None:
    bid = json.dumps({"action_type": "speak", "argument": "Good.", "to": [], "urgency": 0.9})
    begun: dict[str, float] = {}
    with FakeOpenAI(answers(bid)) as server:
        for latency in ("none", "fixed:4", "wall"):
            path = tmp_path / f"{latency}.sqlite"
            arguments = ["--task", "quiet-hours", "--order", "asynchronous", "--turns", "4", "--latency", latency]
            assert run(path, *arguments, "--agents", f"m@{server.url},rules") == 0
            with Store.read(path) as store:
                (row,) = store.episodes()
                turns = store.turns(row.id)
                begun[latency] = next(turn.at_s for turn in turns if turn.speaker == row.names[0])
                (kept,) = store.db.execute("SELECT count(*) FROM latencies").fetchone()
                assert kept == len(store.calls(row.id)) > 0, "however quick an answer was, its time is kept"
    assert begun["fixed:4"] >= begun["none"] + 3.0
    assert begun["wall"] >= begun["none"]
    assert main(["run", "--latency", "soon"]) == 2


def test_a_file_that_is_damaged_or_in_no_place_to_write_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    assert run(path, "--task", "quiet-hours", "--turns", "2") == 0
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE episodes DROP COLUMN recording")
    capsys.readouterr()
    for command in ("show", "report", "resume"):
        assert main([command, str(path)]) == 1
        assert f"{path}: cannot be used: no such column: recording" in capsys.readouterr().err
    (tmp_path / "other.sqlite.lock").mkdir()
    assert run(tmp_path / "other.sqlite") == 2
    assert (
        f"{sentence('episodes.cannot_be_written')} Is a directory; {sentence('episodes.folder_expected')}"
        in capsys.readouterr().err
    )


@pytest.mark.processes
@pytest.mark.long
def test_a_run_whose_disk_fills_up_says_so_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    path = tmp_path / "run.sqlite"
    play = f"from nodes.episodes.command import main; raise SystemExit(main(['run', '--out', {str(path)!r}]))"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, 900_000)); {play}"
    ended = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert f"{path}: {sentence('episodes.cannot_be_written')} " in ended.stderr
    assert f"polyrhythm episodes resume {path}" in ended.stderr
    assert main(["resume", str(path)]) == 0
    with Store.read(path) as store:
        assert {row.state for row in store.episodes()} == {"done"}
