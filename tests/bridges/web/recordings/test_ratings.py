"""Annotation without a browser: what is read of a recording, what is kept of ratings, and how far people agree."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from bridges.web.http.open_page import CameraStream, Session
from bridges.web.questionnaire.questionnaire import shipped
from bridges.web.recordings.command import main
from bridges.web.recordings.rating_page import RateRecording, RatingHandler, Seek
from bridges.web.recordings.ratings import Rating, Ratings, agreement, exported, ratings_file, read_ratings
from bridges.web.recordings.recording import SHORTEST_GAP_S, Recorded, RecordedCamera, read_recording, shown_of
from nodes.episodes.commands.run import HumanRating as TakenIn
from nodes.mcap.file import BagWriter
from nodes.msgs import Action, Image, Utterance
from runtime.errors import RecordingError, UserError
from runtime.message import Envelope, Message, Stamped
from tests.support.pages.page_run import ROOT
from tests.support.sentences import pattern, sentence
from tests.support.shadowed_run import a_run_with_a_planner_in_shadow
from tests.support.standing import standing
from tests.support.synthetic_run import START_NS, write_run
from tests.support.synthetic_run import picture as drawn

SEVEN = shipped("seven-dimensions")
assert SEVEN is not None
SCALES = SEVEN.item


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole text episode, with its judge's scores."""
    path = tmp_path_factory.mktemp("annotate") / "episode.mcap"
    command = [sys.executable, "-m", "runtime", "run", "sotopia", "--virtual", "--record", str(path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return path


def a_picture(camera: str, at_s: float) -> Image:
    return Image(camera=camera, captured_ns=START_NS + round(at_s * 1e9), rgb=drawn(at_s))


def a_handler(tmp_path: Path, recorded: Recorded | None = None) -> tuple[RatingHandler, Ratings]:
    recorded = recorded or Recorded("e1", 10.0, agents=["Ada", "Bo"], scores={("Ada", "BEL"): 8.0})
    ratings = Ratings(tmp_path / "e1.ratings.jsonl")
    return RatingHandler(recorded, ratings, SCALES, lambda: 5.0), ratings


def test_a_recorded_episode_is_read_with_parts_lines_and_scores(recording: Path) -> None:
    found = read_recording(recording)
    assert found.agents == ["Abena Boateng", "Lucia Petrov"]
    assert found.parts["Lucia Petrov"]["goal"].startswith("You want the cello")
    assert {dimension for _, dimension in found.scores} == {"SEC", "FIN", "GOAL"}, "what rules can judge"
    assert [event["at_s"] for event in found.events] == [2.0 * place for place in range(len(found.events))]
    assert found.events[-1]["kind"] == "end"


def test_lines_stand_in_the_order_of_their_times_and_nothing_is_rated_that_was_said_in_shadow(tmp_path: Path) -> None:
    found = read_recording(a_run_with_a_planner_in_shadow(tmp_path / "wizard.mcap"))
    assert [(event["at_s"], event["text"]) for event in found.events] == [
        (0.0, "planner holds planner"),
        (1.0, "Hello"),
        (1.5, "by the model"),
        (2.0, "human_planner holds planner"),
        (3.0, "by the person"),
        (4.0, "in the robot's voice"),
    ]


@pytest.mark.parametrize(
    ("head", "begins_s", "said_s"),
    [
        ({"clock": "virtual"}, 0.0, 512.0),
        ({"clock": "real"}, 0.0, 1.0),  # it does not say: from its first message on
        ({"clock": "real", "zero_ns": str(500 * 10**9), "begin_ns": str(510 * 10**9)}, 10.0, 12.0),
    ],
)
def test_a_moment_is_named_as_the_whole_run_names_it(
    head: dict[str, str], begins_s: float, said_s: float, tmp_path: Path
) -> None:
    bag = BagWriter(tmp_path / "piece.mcap", head, wall_offset_ns=3 * 10**9)
    for number, at_s in enumerate((511, 512, 513), start=1):
        said = Utterance(speaker="Ann", text=f"line {number}")
        bag.write(Stamped(said, Envelope("heard", "ann", number, at_s * 10**9)))
    bag.close()
    found = read_recording(bag.path)
    assert found.begins_s == begins_s
    assert found.events[1]["at_s"] == said_s
    assert found.begins_s + found.duration_s == found.events[-1]["at_s"]
    handler, ratings = a_handler(tmp_path, found)
    recording = handler.recording()
    ratings.close()
    assert (recording["begins_s"], recording["duration_s"]) == (begins_s, said_s + 1 - begins_s)


def test_what_is_no_recording_or_has_nobody_in_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "no.mcap").write_text("hello")
    with pytest.raises(RecordingError, match=pattern("bridges.no_recording")):
        read_recording(tmp_path / "no.mcap")
    command = [sys.executable, "-m", "runtime", "run", "hello", "--virtual", "--for", "2", "--record"]
    subprocess.run([*command, str(tmp_path / "h.mcap")], cwd=ROOT, check=True, capture_output=True, timeout=120)
    with pytest.raises(RecordingError, match=pattern("bridges.nobody_to_rate")):
        read_recording(tmp_path / "h.mcap")


def test_the_frame_is_the_one_that_was_on_screen() -> None:
    found = RecordedCamera("head", times_s=[0.5, 1.0, 2.0], frames=[b"a", b"b", b"c"])
    assert [found.frame_at(at_s) for at_s in (0.0, 0.5, 0.9, 1.0, 9.0)] == [0, 0, 0, 1, 2]
    assert RecordedCamera("head").frame_at(1.0) is None


def test_the_camera_that_shows_most_comes_first_and_there_are_eight_at_most() -> None:
    topics = ["wrist/image", "head/image", "bench/image", "left/room/image", "room/image"]
    assert shown_of(topics) == ["left/room/image", "room/image", "head/image", "wrist/image", "bench/image"]
    assert len(shown_of(f"c{number}/image" for number in range(9))) == 8


def test_every_camera_of_a_recording_is_read(tmp_path: Path) -> None:
    room = [(second + 0.5, "room/image", a_picture("room", second + 0.5)) for second in range(4)]
    found = read_recording(write_run(tmp_path, seconds=5.0, image_hz=10.0, more=room))
    assert [camera.name for camera in found.cameras] == ["room", "head"]
    assert found.cameras[0].times_s == [0.5, 1.5, 2.5, 3.5]
    times_s = found.cameras[1].times_s
    assert all(later - earlier >= SHORTEST_GAP_S for earlier, later in pairwise(times_s))
    assert 15 <= len(times_s) <= 25  # of 50


def test_a_page_is_sent_the_frame_of_its_own_moment(tmp_path: Path) -> None:
    cameras = [RecordedCamera("room", [0.5, 1.0], [b"a", b"b"]), RecordedCamera("head", [0.7, 1.5], [b"c", b"d"])]
    recorded = Recorded("e", 3.0, agents=["Ada"], cameras=cameras)
    handler, ratings = a_handler(tmp_path, recorded)
    session, view = Session("s1", "ada", "ada"), CameraStream()
    assert handler.recording()["cameras"] == ["room", "head"]
    assert handler.frame("s1 0", view, 0) == ({"camera": "s1 0", "at_s": 0.5}, b"a")
    assert handler.frame("s1 0", view, 0) is None
    handler.handle(session, Seek(2.0))
    assert handler.frame("s1 0", view, 0) == ({"camera": "s1 0", "at_s": 1.0}, b"b")
    assert handler.frame("s1 1", CameraStream(), 0) == ({"camera": "s1 1", "at_s": 1.5}, b"d")
    assert [handler.frame(wrong, CameraStream(), 0) for wrong in ("s1 2", "s1", "s1 -1", "s1 x")] == [None] * 4
    ratings.close()


def test_each_annotator_sees_their_own_ratings_and_nobody_the_models(tmp_path: Path) -> None:
    handler, ratings = a_handler(tmp_path)
    ada, bo, viewer = (Session(name, name, name) for name in ("ada", "bo", "viewer"))
    handler.handle(ada, RateRecording("Ada", "BEL", 7, " well done "))
    handler.handle(bo, RateRecording("Ada", "BEL", 3))
    assert handler.state(ada, 0)["ratings"] == [
        {"name": "Ada", "dimension": "BEL", "score": 7, "rationale": "well done"}
    ]
    assert "8.0" not in json.dumps(handler.welcome(ada))
    assert handler.state(viewer, 0)["agreement"][0]["raters"] == 2
    ratings.close()


def test_a_viewer_and_a_wrong_score_change_nothing(tmp_path: Path) -> None:
    handler, ratings = a_handler(tmp_path)
    viewer, ada = Session("v", "viewer", "v"), Session("a", "ada", "a")
    handler.handle(viewer, RateRecording("Ada", "BEL", 7))
    for rate in (
        RateRecording("Ada", "BEL", 11),
        RateRecording("Zed", "BEL", 1),
        RateRecording("Ada", "WIT", 1),
        RateRecording("Ada", "SEC", 1),
    ):
        handler.handle(ada, rate)
    assert not ratings.by_key
    assert viewer.notices == [sentence("bridges.viewer_rates_nothing")]
    assert ada.notices[0] == sentence("bridges.not_on_the_scale", item="BEL", value=11, low=0, high=10, step=1)
    ratings.close()


def test_the_newest_rating_counts_also_after_a_kill_that_tore_a_line(tmp_path: Path) -> None:
    path = tmp_path / "r.ratings.jsonl"
    ratings = Ratings(path)
    for score in (1, 2, None, 4):
        ratings.save(Rating("e", "ada", "Bo", "BEL", score))
    ratings.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"episode":"e","ra')
    again = Ratings(path)
    again.save(Rating("e", "bo", "Bo", "BEL", 5))
    again.close()
    assert {key[1]: one.score for key, one in read_ratings(path).items()} == {"ada": 4, "bo": 5}
    path.write_text("{}\n")
    with pytest.raises(UserError, match=r"r.ratings.jsonl:1: no rating"):
        read_ratings(path)


def test_a_robot_that_only_nods_is_rated_and_people_agree_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = BagWriter(tmp_path / "nods.mcap", {})
    there: tuple[tuple[str, Message], ...] = (
        ("robot/state", standing(START_NS)),
        ("action", Action(id="a1", skill="nod", text="nod")),
    )
    for seq, (topic, message) in enumerate(there):
        bag.write(Stamped(message, Envelope(topic, "robot", seq, START_NS + seq * 10**9)))
    bag.close()
    recorded = read_recording(bag.path)
    assert [event["text"] for event in recorded.events] == ["nod"]
    assert recorded.agents == ["robot"]
    ratings = Ratings(ratings_file(bag.path))
    handler = RatingHandler(recorded, ratings, SCALES, lambda: 5.0)
    for rater in ("ada", "bo"):
        handler.handle(Session(rater, rater, rater), RateRecording("robot", "BEL", 7))
    ratings.close()
    assert main([str(bag.path), "--agreement", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["dimension"], found["raters"], found["items"], found["kappa"]) == ("BEL", 2, 1, 1.0)


def test_two_processes_do_not_write_the_same_ratings(tmp_path: Path) -> None:
    first = Ratings(tmp_path / "r.jsonl")
    with pytest.raises(UserError, match=pattern("bridges.another_annotates")):
        Ratings(tmp_path / "r.jsonl")
    first.close()


def test_agreement_of_people_and_with_the_model() -> None:
    given = [
        Rating(f"e{at}", rater, "Ada", "BEL", score)
        for at, pair in enumerate(((0, 0), (4, 4), (9, 9), (9, 1)))
        for rater, score in zip(("ada", "bo"), pair, strict=True)
    ]
    given.append(Rating("e0", "cy", "Ada", "BEL", None))
    model = {("e0", "Ada", "BEL"): 1.0, ("e1", "Ada", "BEL"): 5.0, ("e2", "Ada", "BEL"): 10.0}
    [found] = agreement(given, SCALES, model)
    assert (found.dimension, found.raters, found.items, found.matched) == ("BEL", 2, 4, 3)
    assert found.kappa == pytest.approx((0.75 - 0.2) / 0.8)
    assert found.alpha is not None
    assert found.alpha < 1.0
    assert found.pearson == pytest.approx(0.99992, abs=1e-4)


def test_what_is_exported_is_what_the_episodes_command_takes_in() -> None:
    rows = [Rating("e", "ada", "Bo", "BEL", 7, "because", 5.0), Rating("e", "ada", "Bo", "REL", None)]
    [line] = exported(rows, "jsonl").splitlines()
    import msgspec

    assert msgspec.json.decode(line, type=TakenIn).score == 7
    assert exported(rows, "csv").splitlines() == [
        "episode,rater,name,dimension,score,rationale",
        "e,ada,Bo,BEL,7,because",
    ]


def test_the_command_reports_and_exports(recording: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    episode = read_recording(recording).episode
    ratings = Ratings(ratings_file(recording))
    for rater, scores in {"ada": (9, 8), "bo": (8, 8)}.items():
        for name, score in zip(("Abena Boateng", "Lucia Petrov"), scores, strict=True):
            ratings.save(Rating(episode, rater, name, "BEL", score))
    ratings.close()
    assert main([str(recording), "--agreement", "--json", "--export", str(tmp_path / "r.csv")]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["dimension"], found["raters"], found["items"], found["kappa"]) == ("BEL", 2, 2, 1.0)
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 5
    ratings_file(recording).unlink()
    assert main([str(recording), "--agreement"]) == 0
    assert sentence("bridges.nobody_has_rated") in capsys.readouterr().out


def test_raters_of_equal_names_are_not_mixed_over_recordings(
    recording: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two copies of one episode, rated apart: nobody has rated anything twice."""
    episode = read_recording(recording).episode
    paths = []
    for place, score in (("one", 9), ("two", 1)):
        (tmp_path / place).mkdir()
        paths.append(str(shutil.copy(recording, tmp_path / place / "episode.mcap")))
        ratings = Ratings(ratings_file(Path(paths[-1])))
        ratings.save(Rating(episode, "ada", "Lucia Petrov", "GOAL", score))
        ratings.close()
    assert main([*paths, paths[0], "--agreement", "--json", "--export", str(tmp_path / "r.jsonl")]) == 0
    said = capsys.readouterr()
    [found] = json.loads(said.out)
    assert (found["raters"], found["items"], found["kappa"], found["matched"]) == (1, 2, None, 2)
    assert f"are all called {episode}" in said.err
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2


def test_a_recording_that_nobody_has_rated_holds_up_no_agreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = tmp_path / "silent.mcap"
    BagWriter(silent, {}).close()
    assert main([str(silent), "--agreement"]) == 0
    assert sentence("bridges.nobody_has_rated") in capsys.readouterr().out
    with pytest.raises(RecordingError, match="cannot be read"):
        main([str(silent), str(tmp_path / "gone.mcap"), "--agreement"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.mcap", "b.mcap"], sentence("bridges.one_at_a_time")),
        (["a.mcap", "--annotator", "viewer"], "--annotator 'viewer': expected a name"),
        (["a.mcap", "--annotator", "<b>"], "--annotator '<b>': expected a name"),
    ],
)
def test_asked_wrongly_it_says_so(arguments: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        main(arguments)
