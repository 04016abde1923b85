"""What is wrong in a file that people write by hand, as they read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.web.study.protocol import EXAMPLE, read_protocol
from runtime.errors import UserError
from tests.bridges.web.study.test_study import MINIMAL
from tests.support.pages.page_run import ROOT
from tests.support.sentences import sentence

ITEM = '[[questionnaire]]\nid="q"\ntitle="q"\nitem=[{{id="a", text="b", {}}}]\n[[task]]'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "T"\n', "", ': the file has no title; expected a text in quotes: title = "..."'),
        ('"T"', "3", ': title is 3; expected a text in quotes: title = "..."'),
        ('"T"', "T", ", line 2, column 9: is no TOML: Invalid value: title = T"),
        ('["s"]', '"s"', ": [consent] statements is 's'; expected a list in brackets: statements = [\"...\"]"),
        ("[[task]]", "[task]", f": [task] {sentence('runtime.tables_expected', name='task')}"),
        (
            "[[task]]",
            '[design]\nagents = ["a"]\n[[task]]',
            f": [design] {sentence('runtime.belongs_to_the_top', key='agents')}",
        ),
        ('text = "t"', 'text = "t"\nlimit_s = "4 min"', ": [[task]] t: limit_s is '4 min'; expected a number"),
        ('[[task]]\nid = "t"', "[[task]]", ': [[task]] 1 has no id; expected a text in quotes: id = "..."'),
        (
            'title = "c"',
            'title = "c"\nseats = { plan = "x" }',
            ": [[condition]] c: seats has the unknown key 'plan'; did you mean 'planner'? known: planner, policy, vlm",
        ),
        (
            'title = "c"',
            'title = "c"\nseats = { vlm = 3 }',
            ': [[condition]] c: seats.vlm is 3; expected a text in quotes: seats.vlm = "..."',
        ),
        (
            'title = "c"',
            'title = "c"\nparticipant = { speek = false }',
            ": [[condition]] c, [participant] has the unknown key 'speek'; did you mean 'speak'? "
            "known: camera, dialogue, speak, stop",
        ),
        (
            "[[task]]",
            ITEM.format('low="x"'),
            f": [[questionnaire]] q, [[item]] a: low is 'x'; {sentence('runtime.whole_number')}",
        ),
        (
            "[[task]]",
            ITEM.format('kind="likert"'),
            ': [[questionnaire]] q, [[item]] a: kind is \'likert\'; expected "scale" or "choice" or "number" or "text"',
        ),
        (
            "[[task]]",
            ITEM.format("required=1"),
            ": [[questionnaire]] q, [[item]] a: required is 1; expected true or false",
        ),
    ],
)
def test_a_mistake_names_the_table_the_key_and_what_is_expected(old: str, new: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    assert old in MINIMAL
    file.write_text(MINIMAL.replace(old, new, 1))
    with pytest.raises(UserError) as told:
        read_protocol(file)
    assert str(told.value) == f"{file}{words}"


def test_what_is_no_protocol_at_all_is_told(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "gone.toml", sentence("runtime.no_such_file")),
        (tmp_path, "cannot be read: Is a directory"),
        (ROOT / "docs" / "timeline.png", sentence("runtime.no_utf8", byte=0)),
        (ROOT / "launch" / "study.toml", sentence("runtime.launch_file_is_no_protocol", example=EXAMPLE)),
    ):
        with pytest.raises(UserError) as told:
            read_protocol(path)
        assert str(told.value) == f"{path}: {words}"
