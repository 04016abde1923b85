"""What a phrase of each table means beside a phrase of each other one: no rule of understanding changes unseen.

pairs.txt holds the meanings, a letter each, and then for each frame a row for each first phrase, of a letter for each
second one. They are no goal in themselves. Whoever changes a rule on purpose writes them anew, and looks at what has
changed: python -m tests.nodes.interrupts.test_pairs
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.interrupts import intent
from nodes.interrupts.phrase_matcher import find, words_of
from tests.nodes.interrupts.test_meanings import written

TABLE = Path(__file__).with_name("pairs.txt")
FIRST_LETTER = 0x100  # of a meaning; those that follow can all be printed
PHRASES = {
    "stop": "wait", "stop_end": "stop stop", "stop_alone": "easy", "cry": "oww", "stop_unsure": "ahh",
    "distress": "on me", "caught": "let go", "body": "foot", "harm": "stuck", "elsewhere": "film", "others": "his",
    "ordinary": "bus stop", "courtesy": "just", "lead": "damn", "tail": "here", "no": "no", "no_or_not": "nie",
    "resume": "continue", "assent": "yep", "anywhere": "stretch", "allowed": "yes", "request": "can you",
    "resume_tail": "carefully", "withheld": "if", "refusal": "not yet",
    "false_alarm": "nevermind", "backchannel": "mhm", "greeting": "hi", "question": "who", "telling": "today",
    "liking": "i like", "correction": "wrong", "correction_end": "instead", "negator": "without", "order": "fetch",
    "order_end": "रखो", "put": "clear", "yes": "do it", "colour": "red", "kind": "cup", "all": "all",
    "everything": "stuff", "place": "bin", "back": "let it go",
    "cry_behind": "argh", "reported": "said", "leads_on": "the", "wish": "would", "stop_verb": "pausing",
    "parent": "granny", "stop_between": "hang on", "joins": "or", "not_robot": "rain", "me": "us",
    "stop_sure": "abort", "not_this": "not like", "device": "fountain", "hurting": "squishing", "victim": "somebody",
    "path": "behind you", "robot_itself": "machine", "startled": "omg", "guiding": "a bit further",
    "needless": "neednt", "while": "because", "sounds": "hole", "closing": "goodbye",
    "no word": "blimp", "another colour": "blue", "a misspelled stop": "sttop", "一": "不", "二": "停",
}  # fmt: skip
FRAMES = (
    "{} {}", "{}, {}", "{}? {}", "{}. {}?", "{} blimp wozzle {}", "{} blimp wozzle flump {}",
    "no {} {}", "ahh. {} {}", "{} foot, {}", "continue. {} {}", "just {} {}", "mhm {} {}",
    "can you {} {}", "nevermind {} {}?", "blimp. {} nevermind. {}", "his {} foot {}",
)  # fmt: skip


def said() -> Iterator[tuple[str, str, str]]:
    """Each frame with each two phrases."""
    for frame in FRAMES:
        for first in PHRASES.values():
            for second in PHRASES.values():
                yield frame, first, second


def found() -> list[str]:
    """The meaning of each."""
    return [written(intent.understand(frame.format(first, second))) for frame, first, second in said()]


def read() -> list[str]:
    """What the meanings were when they were written."""
    legend, _, rows = TABLE.read_text("utf-8").partition("\n\n")
    meanings = legend.split("\n")
    return [meanings[ord(letter) - FIRST_LETTER] for letter in rows if letter != "\n"]


def test_each_table_has_a_phrase_here() -> None:
    with (Path(intent.__file__).parent / "intent.toml").open("rb") as file:
        tables = tomllib.load(file)
    assert [table for table in tables if not find(words_of(PHRASES.get(table, ""))).has(table)] == []


@pytest.mark.long
def test_every_pair_of_phrases_means_what_it_did() -> None:
    pairs = list(said())
    wanted = read()
    assert len(wanted) == len(pairs)
    changed = [change for change in zip(pairs, wanted, found(), strict=True) if change[1] != change[2]]
    assert changed == []


if __name__ == "__main__":
    meanings = found()
    legend = sorted(set(meanings))
    letters = "".join(chr(FIRST_LETTER + legend.index(one)) for one in meanings)
    width = len(PHRASES)
    rows = [letters[at : at + width] for at in range(0, len(letters), width)]
    TABLE.write_text("\n".join([*legend, "", *rows, ""]), "utf-8")
