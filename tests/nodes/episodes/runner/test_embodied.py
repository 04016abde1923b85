"""A recording of the robot becomes an episode of the same log, judged by the same rules."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from nodes.episodes.command import main
from nodes.episodes.commands import embody as embody_command
from nodes.episodes.dialogue.prompt import background_text
from nodes.episodes.evaluation.by_rules import judge_by_rules
from nodes.episodes.results.store import Store
from nodes.episodes.scenarios.library import library_of, starter
from nodes.msgs.episode import Turn
from nodes.sim.people.person import ScenarioPerson
from nodes.sim.world.scenario import ScenarioEvent
from runtime.errors import UserError
from runtime.launch.file import find, override
from tests.support.sentences import pattern, sentence
from tests.support.synthetic_run import DIALOGUE, write_run


def test_a_recording_becomes_an_episode_with_a_link_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = write_run(tmp_path)
    run = tmp_path / "episode.sqlite"
    assert main(["embody", str(recording), "--task", "clear-table-by-four", "--out", str(run)]) == 0
    with Store.read(run) as store:
        row = store.episodes()[0]
        turns = store.turns(row.id)
        assert (row.state, row.recording) == ("done", str(recording))
        assert len(store.scores(row.id)[0].scores) == 7 * len(row.names)
    spoken = [turn for turn in turns if turn.kind == "speak"]
    assert spoken[0].argument == sentence("episodes.clear_the_table")
    assert spoken[0].at_s == DIALOGUE[0][0], "run time, as everything else names it"
    assert [turn.speaker for turn in spoken] == [row.names[1], row.names[0]] * 4
    done = [turn.argument for turn in turns if turn.kind == "action"]
    assert len(done) == 8
    assert sum(text.endswith("(failed)") for text in done) == 1
    broken_off = [turn for turn in turns if turn.argument.endswith("(broken off)")]
    assert [turn.note for turn in broken_off] == ["interrupted by collaborator: No, not the blue one"]
    assert "Sorry. I stopped." in capsys.readouterr().out


def test_a_scenario_without_a_robot_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embody", str(tmp_path / "none.mcap"), "--task", "quiet-hours"]) == 2
    told = capsys.readouterr().err
    assert sentence("episodes.no_robot_in_task", task="quiet-hours", tasks="clear-table") in told
    assert main(["embody", str(tmp_path / "none.mcap"), "--task", "nope"]) == 2
    assert sentence("episodes.no_task_with_robot", task="nope", known="clear-table") in capsys.readouterr().err


def test_a_run_that_exists_is_refused_before_the_body_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embody_command, "play_body", lambda *_, **__: pytest.fail("it played"))
    run = tmp_path / "run.sqlite"
    run.write_text("mine")
    assert main(["embody", "--task", "clear-table-by-four", "--out", str(run)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run.read_text() == "mine"


def test_text_and_body_stand_side_by_side_under_the_same_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = write_run(tmp_path)
    monkeypatch.setattr(embody_command, "play_body", lambda plan, path, *, seed, overrides, library: recording)
    run = tmp_path / "both.sqlite"
    assert main(["embody", "--task", "clear-table-by-four", "--beside-text", "--out", str(run)]) == 0
    with Store.read(run) as store:
        body, text = store.episodes()
        assert (body.state, text.state) == ("done", "done")
        assert body.names == text.names
        shapes = [[(s.name, s.dimension) for s in store.scores(row.id)[0].scores] for row in (body, text)]
        assert shapes[0] == shapes[1]
        assert set(store.checks(body.id) or ()) == set(store.checks(text.id) or ())
    printed = capsys.readouterr().out
    assert "as text" in printed
    assert "with a body" in printed


BODIES = sorted(scenario.id for scenario in starter().scenarios.values() if scenario.is_embodied)


@pytest.mark.parametrize("scenario", BODIES)
def test_each_embodied_scenario_is_played_by_people_who_say_its_lines(scenario: str) -> None:
    plan = embody_command.embodied_plan(scenario)
    changes = dict(change.split("=", 1) for change in embody_command.changes_for(plan))
    assert changes["collaborator.use"] == "nodes.sim.people.person:ScenarioPerson"
    rows = tomllib.loads(f"events = {changes['collaborator.events']}")["events"]
    events = msgspec.convert(rows, tuple[ScenarioEvent, ...])
    right = msgspec.json.decode(changes["collaborator.right"], type=tuple[str, ...])
    assert right
    assert ScenarioPerson(events=events, right=right).problems() == []  # each thing stands there
    things = {name.replace("_", " ") for name in starter().scenarios[scenario].objects}
    waits = [event.when.partition(": ")[2] for event in events if event.when.startswith(("is", "ever"))]
    assert {" ".join(one.removeprefix("not ").split()[:2]) for one in (*right, *waits)} <= things
    people = {name.split()[0] for seat, name in enumerate(plan.names) if seat != plan.robot_seat}
    assert {event.who for event in events} - {embody_command.EARLIER} == people


def test_another_class_in_the_graph_keeps_the_scenarios_parameters() -> None:
    plan = embody_command.embodied_plan("the-brown-bottle")
    changes = embody_command.changes_for(
        plan, ["planner.stream=true", "planner.use=nodes.planner.openai_api:OpenAIPlanner"]
    )
    tables = tomllib.loads(find("laptop").read_text(encoding="utf-8"))
    for change in changes:
        override(tables, change)
    persona = tables["nodes"]["planner"]["params"].pop("persona")
    assert tables["nodes"]["planner"]["params"] == {"speaker": "Tock", "stream": True}
    assert plan.robot_seat is not None
    assert persona == background_text(plan.briefings[plan.robot_seat]), "the same mind as in a text episode"
    assert plan.briefings[plan.robot_seat].goal in persona
    assert tables["nodes"]["collaborator"]["params"]["events"][0]["say"] == "Put the bottle in the bin"


def test_a_scenario_without_cues_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = embody_command.embodied_plan("the-brown-bottle")
    scenario = msgspec.structs.replace(starter().scenarios[plan.scenario], cues=())
    monkeypatch.setitem(starter().scenarios, plan.scenario, scenario)
    with pytest.raises(UserError, match=pattern("episodes.no_simulated_person")):
        embody_command.changes_for(plan)


def test_the_robots_goal_is_judged_by_what_was_done_and_left() -> None:
    plan = embody_command.embodied_plan("clear-table-by-four")
    done = [f"putting the {colour} cup in the bin" for colour in ("yellow", "green")]
    acts = [*done, "putting the red cup in the bin (failed)"]
    turns = [
        Turn(index=index, number=index + 1, speaker=plan.names[0], kind="action", argument=text)
        for index, text in enumerate(acts)
    ]
    scores = {score.name: score for score in judge_by_rules(plan, turns).scores if score.dimension == "GOAL"}
    assert sentence("episodes.things_done", number=2, all=5) in scores[plan.names[0]].reasoning
    assert scores[plan.names[0]].score == 4
    assert scores[plan.names[1]].score == 8  # two of four in the bin, and the blue one left


def test_a_folder_of_ones_own_has_embodied_scenarios_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = dict(starter().scenarios)["the-brown-bottle"]
    data = Path(embody_command.__file__).parents[1] / "scenarios" / "data"
    for name in ("characters.jsonl", "relationships.jsonl"):
        (tmp_path / name).write_bytes((data / name).read_bytes())
    rows = [row for row in (data / "scenarios.jsonl").read_text("utf-8").splitlines() if f'"{mine.id}"' in row]
    (tmp_path / "scenarios.jsonl").write_text(rows[0].replace(mine.id, "my-bottle") + "\n", "utf-8")
    library = library_of(str(tmp_path))
    changes = embody_command.changes_for(embody_command.embodied_plan("my-bottle", library), library=library)
    assert "collaborator.use=nodes.sim.people.person:ScenarioPerson" in changes
    assert main(["embody", "--tasks", str(tmp_path), "--task", mine.id]) == 2
    assert sentence("episodes.no_task_with_robot", task=mine.id, known="my-bottle") in capsys.readouterr().err
