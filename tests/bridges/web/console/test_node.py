"""The console as a node: what its launch file may say, canned sentences, and that virtual time does not open a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.web.console.canned_phrases import read_canned
from bridges.web.console.node import Console
from runtime import Simulation
from runtime.cli import main
from runtime.errors import ParameterError
from tests.support.sentences import sentence

ROOT = Path(__file__).resolve().parents[4]


def test_the_shipped_sentences_are_readable_and_their_keys_are_different() -> None:
    canned = read_canned(ROOT / "bridges" / "web" / "console" / "canned_phrases.toml")
    keys = [told["key"] for told in canned if told["key"]]
    assert len(keys) == len(set(keys)) == 10
    assert {told["as"] for told in canned} == {"robot", "collaborator"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[utterance]]\n", "[[utterance]] 1 has no text; expected a text in quotes"),
        (
            '[[utterance]]\ntext = "a"\nvoice = "x"\n',
            "1 has the unknown key 'voice'; known: as, gesture, group, key, text",
        ),
        (
            '[[utterance]]\ntext = "a"\nas = "dog"\n',
            '1: as is \'dog\'; expected "robot" or "collaborator"',
        ),
        ('[[utterance]]\ntext = "a"\nkey = "w"\n', "[[utterance]] 1: key is 'w'; expected a digit"),
        ('[[utterance]]\ntext = "a"\nkey = 1\n' * 2, sentence("bridges.key_is_double", key=1)),
        ("[[utterance]\n", "is no TOML"),
    ],
)
def test_a_file_of_sentences_that_is_not_understood_is_refused_in_words(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "sentences.toml"
    file.write_text(text)
    with pytest.raises(ParameterError) as problem:
        read_canned(file)
    assert words in str(problem.value)


def test_a_sentence_may_come_with_a_gesture(tmp_path: Path) -> None:
    file = tmp_path / "sentences.toml"
    file.write_text('[[utterance]]\ntext = "Yes."\ngesture = "nod"\n')
    assert read_canned(file) == [{"text": "Yes.", "as": "robot", "key": "", "group": "", "gesture": "nod"}]
    file.write_text('[[utterance]]\ntext = "Yes."\ngesture = "dance"\n')
    with pytest.raises(ParameterError, match="dance"):
        read_canned(file)


EARS = ["--add", "ears=nodes.voice.microphone:Microphone"]
WORDS = ["--add", "words=nodes.voice.recogniser:Recogniser", "--set", "words.by=command", "--set", "words.command=cat"]


@pytest.mark.parametrize("launch", ["wizard", "study"])
@pytest.mark.parametrize("more", [[], WORDS, [*EARS, *WORDS]], ids=["alone", "with words", "with ears and words"])
def test_the_shipped_launch_files_fit(launch: str, more: list[str]) -> None:
    assert main(["check", launch, *more]) == 0


def test_in_virtual_time_no_page_is_opened() -> None:
    console = Console(port=0)
    sim = Simulation(console, seed=0)
    sim.run(seconds=0.5)
    assert not console.pages.is_open
