"""The page of recordings beside the console: what is listed, who rates what, and that agreement spans all of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridges.web.http.open_page import CameraStream, Session
from bridges.web.recordings.list_page import OpenRecording, RecordingsHandler
from bridges.web.recordings.rating_page import RateRecording, Seek
from bridges.web.recordings.ratings import ratings_file, read_ratings
from bridges.web.recordings.reader_process import ReaderProcess
from bridges.web.recordings.recording import Recorded, read_recording
from bridges.web.recordings.recordings_folder import MOST_OPEN
from nodes.mcap.file import BagWriter
from nodes.msgs import Utterance
from runtime.message import Envelope, Stamped
from tests.support.running import eventually
from tests.support.sentences import sentence
from tests.support.synthetic_run import write_run

NOW_S = 4_000_000_000.0
"""Long after any file here was written."""

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("rated"), seconds=6.0)


@pytest.fixture
def folder(recording: Path, tmp_path: Path) -> Path:
    for name in ("P01-trial-1-1.mcap", "P01-trial-2-1.mcap"):
        shutil.copy(recording, tmp_path / name)
    return tmp_path


class Page:
    """Somebody who has the page open."""

    def __init__(self, handler: RecordingsHandler, ident: str, role: str = "operator") -> None:
        self.handler = handler
        self.session = Session(ident, role, role)
        handler.joined(self.session)
        self.known: dict[str, Any] = handler.welcome(self.session)
        self.look()

    def look(self) -> dict[str, Any]:
        self.handler.beat(0)
        news = self.handler.state(self.session, 0)
        self.known |= news
        return news

    def opens(self, name: str, rater: str = "ada") -> None:
        self.handler.handle(self.session, OpenRecording(name, rater))
        eventually(lambda: "recording" in self.look(), "it is read")


def test_finished_recordings_are_listed_and_what_leads_elsewhere_is_none(folder: Path, tmp_path: Path) -> None:
    now_s = [os.stat(folder / "P01-trial-1-1.mcap").st_mtime]
    handler = RecordingsHandler(folder, lambda: now_s[0])
    page = Page(handler, "a")
    assert page.known["recordings"] == []  # they may be growing still
    now_s[0] = NOW_S
    handler = RecordingsHandler(folder, lambda: now_s[0])
    page = Page(handler, "a")
    assert {one["name"] for one in page.known["recordings"]} == {"P01-trial-1-1.mcap", "P01-trial-2-1.mcap"}
    for name in ("../x.mcap", "/etc/passwd", "P09.mcap"):
        handler.handle(page.session, OpenRecording(name, "ada"))
        assert page.look()["notices"] == [sentence("bridges.no_such_recording")]
    handler.handle(page.session, OpenRecording("P01-trial-1-1.mcap", "<b>"))
    assert page.look()["notices"] == [sentence("bridges.name_to_rate_under")]
    handler.close()


def test_a_recording_in_two_parts_is_one_in_the_list_once_both_are_finished(tmp_path: Path) -> None:
    for seq, name in ((1, "P01-trial-1-1.mcap"), (2, "P01-trial-1-1-2.mcap"), (3, "P01-trial-1-2.mcap")):
        bag = BagWriter(tmp_path / name, {"folder": "one", "seed": name[-6:-5] if name.count("-") == 3 else "1"})
        message = Utterance(speaker="ann", text=name)
        bag.write(Stamped(message, Envelope(topic="heard", source="x", seq=seq, published_ns=seq * 1_000_000_000)))
        bag.close()
    first, second = tmp_path / "P01-trial-1-1.mcap", tmp_path / "P01-trial-1-1-2.mcap"
    os.utime(first, (NOW_S - 60, NOW_S - 60))
    os.utime(second, (NOW_S - 1, NOW_S - 1))

    def folder(now_s: float) -> set[str]:
        handler = RecordingsHandler(tmp_path, lambda: now_s)
        listed = {one["name"] for one in Page(handler, "a").known["recordings"]}
        handler.close()
        return listed

    assert folder(NOW_S) == {"P01-trial-1-2.mcap"}  # the first one's rest is written still
    assert folder(NOW_S + 60) == {"P01-trial-1-1.mcap", "P01-trial-1-2.mcap"}
    assert [one["text"] for one in read_recording(first).events] == [first.name, second.name]
    second.write_bytes(second.read_bytes()[:40])  # what cannot be read is left out
    assert [one["text"] for one in read_recording(first).events] == [first.name]


def test_two_rate_a_trial_and_see_their_own_ratings_and_how_far_they_agree(folder: Path) -> None:
    handler = RecordingsHandler(folder, lambda: NOW_S)
    ada, ben = Page(handler, "a"), Page(handler, "b")
    for page, rater, score in ((ada, "ada", 8), (ben, "ben", 7)):
        page.opens("P01-trial-1-1.mcap", rater)
        assert page.known["recording"]["agents"] == ["collaborator", "robot"]
        handler.handle(page.session, RateRecording("robot", "BEL", score, "polite"))
        page.look()
    assert [one["score"] for one in ada.known["ratings"]] == [8]
    assert [one["score"] for one in ben.known["ratings"]] == [7]
    file = ratings_file(folder / "P01-trial-1-1.mcap")
    assert {one.rater for one in read_ratings(file).values()} == {"ada", "ben"}
    viewer = Page(handler, "v", "viewer")
    handler.listed_ns = -(10**12)  # it is looked again every two seconds
    viewer.look()
    assert [(one["dimension"], one["raters"]) for one in viewer.known["agreement"]] == [("BEL", 2)]
    assert [one["raters"] for one in viewer.known["recordings"] if one["name"] == "P01-trial-1-1.mcap"] == [2]
    handler.handle(viewer.session, OpenRecording("P01-trial-1-1.mcap"))
    assert "recording" in viewer.look()
    handler.handle(viewer.session, RateRecording("robot", "BEL", 1))
    assert viewer.look()["notices"] == [sentence("bridges.viewer_rates_nothing")]
    handler.close()


def test_two_runs_whose_recordings_have_one_name_are_not_taken_for_one(recording: Path, tmp_path: Path) -> None:
    for name, score in (("monday", 8), ("tuesday", 2)):
        (tmp_path / name).mkdir()
        path = Path(shutil.copy(recording, tmp_path / name / "run.mcap"))
        assert read_recording(path).episode == name
        old = {"episode": "run", "rater": "ada", "name": "robot", "dimension": "BEL", "score": score}
        ratings_file(path).write_bytes(msgspec.json.encode(old) + b"\n")
    handler = RecordingsHandler(tmp_path, lambda: NOW_S)
    ada, ben = Page(handler, "a"), Page(handler, "b")
    for page, rater in ((ada, "ada"), (ben, "ben")):
        page.opens("monday/run.mcap", rater)
    assert [one["score"] for one in ada.known["ratings"]] == [8]  # given before it was told apart
    handler.handle(ben.session, RateRecording("robot", "BEL", 8))
    ben.look()
    handler.listed_ns = -(10**12)
    agreed = ada.look()["agreement"]
    assert [(one["raters"], one["items"], one["kappa"]) for one in agreed] == [(2, 2, 1.0)]
    handler.close()
    kept = read_ratings(ratings_file(tmp_path / "monday" / "run.mcap"))
    assert {(one.episode, one.rater) for one in kept.values()} == {("monday", "ada"), ("monday", "ben")}


def test_a_recording_that_nobody_waits_for_any_more_is_not_read_on(folder: Path) -> None:
    handler = RecordingsHandler(folder, lambda: NOW_S)
    page = Page(handler, "a")
    handler.handle(page.session, OpenRecording("P01-trial-1-1.mcap", "ada"))
    page.opens("P01-trial-2-1.mcap")
    assert handler.folder.reading == {}
    assert list(handler.folder.opened) == ["P01-trial-2-1.mcap"]
    page.opens("P01-trial-1-1.mcap")  # and can be asked for again
    handler.close()


def test_each_page_is_shown_the_frames_of_its_own_recording_and_moment(folder: Path) -> None:
    handler = RecordingsHandler(folder, lambda: NOW_S)
    page, view = Page(handler, "a"), CameraStream()
    assert handler.frame("a 0", view, 0) is None
    page.opens("P01-trial-1-1.mcap")
    first = handler.frame("a 0", view, 0)
    handler.handle(page.session, Seek(5.0))
    later = handler.frame("a 0", view, 0)
    assert first is not None
    assert later is not None
    assert first[0]["at_s"] < later[0]["at_s"]
    handler.handle(page.session, OpenRecording())  # back to the list
    assert handler.frame("a 0", view, 0) is None
    handler.close()


def test_a_recording_that_cannot_be_read_is_told_to_who_asked(folder: Path) -> None:
    (folder / "torn.mcap").write_text("hello")
    handler = RecordingsHandler(folder, lambda: NOW_S)
    page = Page(handler, "a")
    handler.handle(page.session, OpenRecording("torn.mcap", "ada"))
    told: list[str] = []

    def is_told() -> bool:
        told.extend(page.look()["notices"])
        return bool(told)

    eventually(is_told, "it is told")
    assert sentence("bridges.no_recording") in told[0]
    handler.close()


def test_a_bounded_number_of_recordings_is_open_at_a_time(folder: Path) -> None:
    for place in range(MOST_OPEN):
        shutil.copy(folder / "P01-trial-1-1.mcap", folder / f"more-{place}.mcap")
    handler = RecordingsHandler(folder, lambda: NOW_S)
    pages = [Page(handler, str(place)) for place in range(MOST_OPEN + 1)]
    for place, page in enumerate(pages[:-1]):
        page.opens(f"more-{place}.mcap")
    handler.handle(pages[-1].session, OpenRecording("P01-trial-1-1.mcap", "ada"))
    assert pages[-1].look()["notices"] == [sentence("bridges.no_room")]
    handler.left(pages[0].session)
    pages[-1].opens("P01-trial-1-1.mcap")
    assert len(handler.folder.opened) == MOST_OPEN
    handler.close()


def test_the_process_that_reads_hands_over_what_it_read(recording: Path) -> None:
    reading = ReaderProcess(recording)
    results: list[Recorded | str] = []

    def is_read() -> bool:
        result = reading.result()
        if result is not None:
            results.append(result)
        return bool(results)

    eventually(is_read, "it is read")
    assert results == [read_recording(recording)]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode({("a", "b"): 1.0}), type=dict[tuple[str, str], float])


def test_two_at_a_time_do_not_rate_the_same_under_one_name(folder: Path) -> None:
    handler = RecordingsHandler(folder, lambda: NOW_S)
    one, other = Page(handler, "a"), Page(handler, "b")
    one.opens("P01-trial-1-1.mcap")
    handler.handle(other.session, OpenRecording("P01-trial-1-1.mcap", "ada"))
    [notice] = other.look()["notices"]
    assert notice.startswith(sentence("bridges.rated_elsewhere", who="ada"))
    other.opens("P01-trial-2-1.mcap")  # the same person may rate another one beside it
    handler.left(one.session)
    other.opens("P01-trial-1-1.mcap")
    handler.close()
