"""Push to talk in a real browser with a microphone that plays a file: what was said is what the recogniser gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bridges.web.speech.push_to_talk import SAME_NS
from nodes.mcap.file import BagReader
from tests.support.models.spoken import needs_espeak, silence, spoken, write_wav
from tests.support.pages.axe import findings
from tests.support.pages.browsing import MARKS, a_browser, text, wait
from tests.support.pages.console_run import ConsoleRun
from tests.support.pages.page_run import PageRun
from tests.support.pages.paging import PHONE
from tests.support.servers.fake_speech_server import FakeSpeech, says

pytestmark = [*MARKS, needs_espeak]
PATIENCE_S = 90.0
WORDS = "Please bring me the red cup from the table."
CONSOLE = """
[nodes.console]
use    = "bridges.web.console.node:Console"
params = { port = 0 }
"""
RECOGNISER = """
[nodes.words]
use    = "nodes.voice.recogniser:Recogniser"
params = {{ base_url = "{url}", model = "whisper-test" }}
"""
RECORDER = """
[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""
STUDY = """
[nodes.study]
use    = "bridges.web.study.node:Study"
params = {{ folder = "{folder}", protocol = "{protocol}" }}
"""
PROTOCOL = """
title = "A talk"
[consent]
text = "Your words are recorded."
statements = ["I agree."]
[[task]]
id = "talk"
title = "Talking"
text = "Say hello."
[[condition]]
id = "only"
title = "The only one"
"""
STATUS = ".mic [role=status]"
BLOCK = 800  # samples of an envelope: 50 ms


@pytest.fixture(scope="module")
def said() -> bytes:
    """What the microphone plays again and again."""
    return spoken(WORDS) + silence(0.5)


@pytest.fixture(scope="module")
def chromium(said: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    wav = write_wav(tmp_path_factory.mktemp("microphone") / "said.wav", said)
    with a_browser(
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={wav}",
    ) as opened:
        yield opened


class Talker:
    """Somebody at a page, and the sound that their page has sent."""

    def __init__(self, chromium: Any, address: str, script: str = "", **more: Any) -> None:
        self.context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **more})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.problems: list[str] = []
        self.sent: list[str] = []
        self.page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        self.page.on(
            "console", lambda line: self.problems.append(line.text) if line.type in ("error", "warning") else None
        )
        self.page.on("websocket", lambda socket: socket.on("framesent", self._note))
        if script:
            self.page.add_init_script(script)
        self.page.goto(address)
        self.page.wait_for_selector("body:not([data-role=''])")

    def _note(self, frame: str | bytes) -> None:
        message = json.loads(frame)
        if message["t"] in ("talk", "sound", "talked"):
            self.sent.append(message["t"])

    def speak_until(self, pieces: int) -> None:
        """As long as it takes until so many pieces of 0.1 s are sent of what is said now."""
        self.shows("Listening")

        def is_said() -> bool:
            newest = self.sent[len(self.sent) - self.sent[::-1].index("talk") :] if "talk" in self.sent else []
            return len(newest) >= pieces

        wait(self.page, is_said, f"{pieces} pieces are sent", PATIENCE_S)

    def shows(self, words: str, selector: str = STATUS) -> None:
        wait(self.page, lambda: words in text(self.page, selector), f"{selector} says {words!r}", PATIENCE_S)


@contextmanager
def talker(chromium: Any, address: str, script: str = "", **more: Any) -> Iterator[Talker]:
    one = Talker(chromium, address, script, **more)
    try:
        yield one
    finally:
        one.context.close()
    assert one.problems == []


def envelope(samples: NDArray[np.int16]) -> NDArray[np.float64]:
    """How loud it was, in blocks of 50 ms."""
    whole = samples[: len(samples) // BLOCK * BLOCK].astype(float).reshape(-1, BLOCK)
    found: NDArray[np.float64] = np.sqrt((whole**2).mean(axis=1))
    return found


def likeness(got: bytes, played: bytes) -> float:
    """How well the best place in what is played again and again explains how loud it was; 0.4 of other words."""
    heard, loop = np.frombuffer(got, np.int16), np.frombuffer(played, np.int16)
    shape = envelope(heard)
    again = np.tile(loop, 2 + len(heard) // len(loop))
    return max(
        float(np.corrcoef(shape, envelope(again[start : start + len(shape) * BLOCK]))[0, 1])
        for start in range(0, len(loop), BLOCK // 4)
    )


@pytest.fixture(scope="module")
def server() -> Iterator[FakeSpeech]:
    with FakeSpeech(says(WORDS)) as started:
        yield started


@pytest.mark.alone
@pytest.mark.long
def test_what_a_person_says_while_they_hold_the_button_is_heard_and_they_read_what_was_understood(
    chromium: Any, server: FakeSpeech, said: bytes, tmp_path: Path
) -> None:
    launch = tmp_path / "talk.toml"
    launch.write_text(CONSOLE + RECOGNISER.format(url=server.url) + RECORDER)
    before = len(server.asked)
    with ConsoleRun(launch, tmp_path / "out") as run:
        with talker(chromium, run.page("participant")) as person:
            page = person.page
            page.wait_for_selector(".mic .talk")
            assert findings(page) == []
            page.keyboard.down("v")
            person.speak_until(25)
            wait(
                page, lambda: len(server.asked) > before, "it is looked at while they still hold the button", PATIENCE_S
            )
            assert page.get_attribute(".mic .talk", "aria-pressed") == "true"
            assert findings(page) == []
            page.keyboard.up("v")
            person.shows(f"Understood: “{WORDS}”")
            person.shows(WORDS, "#story")
            assert page.get_attribute(".mic .talk", "aria-pressed") == "false"
            *looks, asked = server.asked[before:]
            assert looks
            assert all(asked.samples.startswith(one.samples) for one in looks)
            pieces = person.sent.count("sound")
            assert person.sent == ["talk", *["sound"] * pieces, "talked"]
            assert 0.1 * (pieces - 1) < asked.seconds <= 0.1 * pieces + 1e-6
            assert np.abs(np.frombuffer(asked.samples, np.int16)).max() > 1000, "it is no silence"
            assert likeness(asked.samples, said) > 0.7
            page.keyboard.down("v")  # and once more, thrown away
            person.speak_until(5)
            page.keyboard.press("Escape")
            person.shows("Thrown away")
            page.keyboard.up("v")
        with talker(chromium, run.page("operator")) as wizard:
            page = wizard.page
            page.check("input[name=voice][value=collaborator]", force=True)
            page.wait_for_selector(".mic .talk")
            page.click(".mic .talk")  # a tap begins, the next one ends
            wizard.speak_until(10)
            assert text(page, ".mic .talk").startswith("Send")
            page.click(".mic .talk")
            wizard.shows(f"Understood: “{WORDS}”")
            page.focus(".mic .talk")
            page.keyboard.press("Enter")
            wizard.speak_until(10)
            page.keyboard.press("Enter")
            wait(page, lambda: text(page, "#story").count(WORDS) >= 3, "the third is recognised", PATIENCE_S)
            wizard.shows(f"Understood: “{WORDS}”")
            page.check("input[name=voice][value=robot]", force=True)
            assert not page.is_visible(".mic .talk")  # nobody speaks into a microphone as the robot
            assert findings(page) == []
        with talker(chromium, run.page("viewer")) as looker:
            looker.shows(WORDS, "#story")
            assert not looker.page.is_visible(".mic .talk")
    [recording] = (tmp_path / "out").glob("run.mcap")
    messages = list(BagReader(recording))
    sounds = [one for one in messages if one.topic == "microphone/speech"]
    spoke = [one.document["is_speaking"] for one in messages if one.topic == "speech"]
    heard = [one.document for one in messages if one.topic == "heard"]
    assert [one.document["number"] for one in sounds] == [1, 3, 4]
    assert [one.document["speaker"] for one in sounds] == ["participant", "operator", "operator"]
    assert [one["captured_ns"] for one in heard] == [one.document["captured_ns"] for one in sounds]
    for one in sounds:
        age_s = (one.envelope.published_ns - one.document["captured_ns"]) * 1e-9
        assert one.document["voiced_s"] <= age_s + SAME_NS * 1e-9 < 120.0  # dated when it was first looked at
    changes = [now for now, past in zip(spoke, [False, *spoke], strict=False) if now is not past]
    assert changes[0] is True
    assert changes[-1] is False
    assert len(changes) >= 8  # on a busy machine a page may seem to pause


@pytest.fixture(scope="module")
def run(server: FakeSpeech, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    """A console and a recogniser that nobody answers."""
    folder = tmp_path_factory.mktemp("deaf")
    (folder / "deaf.toml").write_text(CONSOLE + RECOGNISER.format(url="http://127.0.0.1:9/v1"))
    with ConsoleRun(folder / "deaf.toml", folder / "out") as started:
        yield started


NO_MICROPHONE = "navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', '{}'));"
INSECURE = "Object.defineProperty(globalThis, 'isSecureContext', { get: () => false });"
SILENT = """
navigator.mediaDevices.getUserMedia = async () => new AudioContext().createMediaStreamDestination().stream;
"""
NEVER_STARTS = "AudioContext.prototype.resume = () => new Promise(() => {});"


@pytest.mark.parametrize(
    ("script", "words"),
    [(INSECURE, "needs https"), ("delete globalThis.AudioWorkletNode;", "cannot record sound")],
)
@pytest.mark.long
def test_where_a_page_cannot_have_a_microphone_it_says_why_and_has_no_button(
    run: ConsoleRun, chromium: Any, script: str, words: str
) -> None:
    with talker(chromium, run.page("participant"), script) as person:
        person.shows(words)
        assert not person.page.is_visible(".mic .talk")
        assert findings(person.page) == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (NO_MICROPHONE.format("NotAllowedError"), "does not let this page use the microphone"),
        (SILENT, "nothing but silence"),
        pytest.param(NO_MICROPHONE.format("NotFoundError"), "There is no microphone", marks=pytest.mark.long),
        pytest.param(NO_MICROPHONE.format("SomethingElse"), "cannot be used (no)", marks=pytest.mark.long),
        pytest.param(NEVER_STARTS, "starts no sound", marks=pytest.mark.long),
    ],
)
def test_a_microphone_that_gives_nothing_is_told_and_nothing_is_passed_on(
    run: ConsoleRun, chromium: Any, script: str, words: str
) -> None:
    with talker(chromium, run.page("participant"), script) as person:
        person.page.wait_for_selector(".mic .talk")
        person.page.focus(".mic .talk")
        person.page.keyboard.press("Enter")
        if script == SILENT:
            person.speak_until(3)
            person.page.keyboard.press("Enter")
        person.shows(words)
        assert person.page.get_attribute(".mic .talk", "aria-pressed") == "false"
        assert findings(person.page) == []


def test_a_recogniser_that_is_deaf_is_told_to_the_operator_with_the_reason(run: ConsoleRun, chromium: Any) -> None:
    with talker(chromium, run.page("operator")) as wizard, talker(chromium, run.page("participant")) as person:
        person.page.wait_for_selector(".mic .talk")
        person.page.focus(".mic .talk")
        person.page.keyboard.press("Enter")
        person.speak_until(10)
        person.page.keyboard.press("Enter")
        person.shows("does not understand speech at the moment", ".mic .fault")
        wizard.shows("The recogniser is deaf: ", ".mic .fault")
        assert "127.0.0.1:9" in text(wizard.page, ".mic .fault")
        assert "127.0.0.1:9" not in text(person.page, ".mic .fault")
        assert findings(person.page) == findings(wizard.page) == []


@pytest.mark.long
def test_a_finger_holds_the_button_too(run: ConsoleRun, chromium: Any) -> None:
    with talker(chromium, run.page("participant"), viewport=PHONE, has_touch=True, is_mobile=True) as person:
        person.page.wait_for_selector(".mic .talk")
        box = person.page.locator(".mic .talk").bounding_box()
        at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        touch = person.context.new_cdp_session(person.page)
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
        person.speak_until(8)
        assert text(person.page, ".mic .talk").startswith("Let go to send")
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        wait(person.page, lambda: person.sent[-1] == "talked", "it is sent", PATIENCE_S)
        person.shows("Sent.")
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
        person.speak_until(5)
        off = {"x": at["x"], "y": at["y"] - box["height"] / 2 - 90}
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [off]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        person.shows("Thrown away")


@pytest.mark.long
def test_where_no_recogniser_runs_operators_read_how_to_get_one_and_participants_only_type(
    chromium: Any, tmp_path: Path
) -> None:
    (tmp_path / "plain.toml").write_text(CONSOLE + RECORDER)
    with ConsoleRun(tmp_path / "plain.toml", tmp_path / "out") as run:
        with talker(chromium, run.page("operator")) as wizard:
            wizard.page.check(
                "input[name=voice][value=collaborator]", force=True
            )  # the robot's voice has no microphone
            wizard.shows("this run has no recogniser")
            assert wizard.page.is_visible(STATUS)
            assert not wizard.page.is_visible(".mic .talk")
            assert findings(wizard.page) == []
        with talker(chromium, run.page("participant")) as person:
            person.page.fill("#words", "Hello.")
            person.page.keyboard.press("Enter")
            person.shows("Hello.", "#story")
            assert not person.page.is_visible(".mic")
            person.page.keyboard.press("Escape")
            person.page.keyboard.press("v")
            assert person.sent == []


@pytest.mark.long
def test_a_participant_of_a_study_talks_while_a_trial_runs(
    chromium: Any, server: FakeSpeech, said: bytes, tmp_path: Path
) -> None:
    folder, protocol, launch = tmp_path / "study", tmp_path / "protocol.toml", tmp_path / "study.toml"
    protocol.write_text(PROTOCOL)
    launch.write_text(STUDY.format(folder=folder, protocol=protocol) + RECOGNISER.format(url=server.url))
    before = len(server.asked)
    with (
        PageRun("run", launch, "--out", tmp_path / "out", pages=2) as run,
        talker(chromium, run.addresses["study", "experimenter"]) as guide,
        talker(chromium, run.addresses["study", "participant"]) as person,
    ):
        guide.page.fill("#number", "1")
        guide.page.keyboard.press("Enter")
        person.page.wait_for_selector(".tick input")
        assert not person.page.is_visible(".mic")
        person.page.check(".tick input")
        person.page.click("text=I agree >> nth=-1")
        guide.shows("Trial 1", "#current")
        guide.page.click("#controls .main")
        person.page.wait_for_selector(".mic .talk")
        person.page.hover(".mic .talk")
        person.page.mouse.down()
        person.speak_until(15)
        person.page.mouse.up()
        person.shows(f"Understood: “{WORDS}”")
        person.shows(WORDS, "#talk .story")
        person.shows("You", "#talk .story")
        guide.shows(WORDS, "#lines")
        assert findings(person.page) == []
        person.page.set_viewport_size(PHONE)
        assert findings(person.page) == []
        whole = max(server.asked[before:], key=lambda asked: asked.seconds)
        assert likeness(whole.samples, said) > 0.7
        person.page.focus(".mic .talk")
        person.page.keyboard.press("Enter")
        person.speak_until(5)
        guide.page.click("#controls .main")  # the trial ends in the middle of a sentence
        wait(person.page, lambda: not person.page.is_visible(".mic"), "nobody listens any more", PATIENCE_S)
        wait(person.page, lambda: person.sent[-1] == "talked", "and the page knows it", PATIENCE_S)
        assert text(guide.page, "#lines").count(WORDS) == 1
