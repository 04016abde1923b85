"""The object in what models write: around it, inside of it, and where it was cut off."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.models.answers import ModelError, read_answer
from nodes.models.json_reading import UnreadableError, read_json, read_number, read_object

GOOD = '{"do": "wait", "say": "I wait."}'
OTHER = '{"do": "go", "say": "No."}'


class Answer(msgspec.Struct):
    do: str
    say: str = ""


@pytest.mark.parametrize(
    "text",
    [
        f"Sure:\n{GOOD}\nDone.",
        f"{GOOD}\nI used {{do}}.",
        f"{OTHER}\n{GOOD}",
        f"<think>{OTHER}</think>{GOOD}",
        f"{GOOD}<thinking>{OTHER}</thinking>",
        f"maybe {OTHER}\n</think>{GOOD}",
        f"{GOOD}\n<think>or {OTHER}",
        f"[THINK]{OTHER}[/THINK]{GOOD}",
        f"<|channel|>analysis<|message|>{OTHER}<|end|><|start|>assistant<|channel|>final<|message|>{GOOD}<|return|>",
        GOOD.replace('"', "'"),
        GOOD.replace('"', "”"),
        "{“do”: “wait”, “say”: “I wait.”}",
        "{do: 'wait', say: 'I wait.'}",
        f"{GOOD[:-1]}, 'x': True, 'y': None, 'z': NaN}}",
        GOOD.replace('."', '.",'),
        f"{{ // first\n{GOOD[1:-1]} /* last */ # really\n}}",
        f"{GOOD[:-1]}, }},}}",
        f"[{GOOD}]",
        f"[{OTHER}, {GOOD}]",
        f"\ufeff{GOOD}",
        GOOD.replace(" ", "\u00a0").replace("I\u00a0wait", "I wait"),
        f"```json\n{GOOD}\n```",
    ],
)
def test_one_reader_finds_it_for_all_who_ask_models(text: str) -> None:
    assert {key: read_object(text)[key] for key in ("do", "say")} == {"do": "wait", "say": "I wait."}
    assert read_answer(text, Answer) == Answer("wait", "I wait.")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("I\nwait", "I\nwait"),
        ("I\twait", "I\twait"),
        ("I\\'ll wait", "I'll wait"),
        ('I "wait" here', 'I "wait" here'),
        ('He said "no", and left', 'He said "no", and left'),
        ("one,} two, ]", "one,} two, ]"),
        ("see // that # there", "see // that # there"),
        ("caf\\u00e9 \\x", "café x"),
    ],
)
def test_what_stands_in_a_text_stays_in_it(said: str, meant: str) -> None:
    assert read_object(f'{{"say": "{said}", "do": "x",}}') == {"say": meant, "do": "x"}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('{"do": "wait", "say": "I wait. And th', {"do": "wait", "say": "I wait."}),
        ('{"do": "wait", "say": "I was thin', {"do": "wait"}),
        ('{"do": "wait", "n": 1', {"do": "wait"}),
        ('{"do": "wait", "of": [{"a": 1}, {"b"', {"do": "wait", "of": [{"a": 1}, {}]}),
        ('{"do": "wait"', {"do": "wait"}),
    ],
)
def test_what_was_cut_off_is_told_and_what_was_whole_is_there(text: str, fields: dict[str, object]) -> None:
    found = read_json(text)
    assert (found.fields, found.is_cut) == (fields, True)
    with pytest.raises(ModelError):
        read_answer(text, Answer)


@pytest.mark.parametrize("text", ["", "no", "{}{", "{a}", "[1, 2]", "7", "<think>" + GOOD, "{" * 60_000, "x" * 70_000])
def test_what_is_no_object_is_unreadable(text: str) -> None:
    if text == "{}{":
        assert read_object(text) == {}
        return
    with pytest.raises(UnreadableError):
        read_object(text)


@given(st.text(max_size=60) | st.text(alphabet="{}[]\"',: \\ab1/#<>think", max_size=60))
def test_any_text_is_an_object_or_unreadable(text: str) -> None:
    try:
        assert isinstance(read_object(text), dict)
    except UnreadableError:
        pass


@pytest.mark.parametrize(
    ("written", "number"),
    [(7, 7), ("7", 7), ("+3", 3), ("−2", -2), ("-2", -2), ("7/10", 7), ("8 out of 10", 8), ("eight", 8),
     ("Minus two", -2),
     ("**4**", 4), ("7.5", 7.5), ("7.0", 7), ("about 7", None), ("", None), (True, None), (None, None), ([7], None)],
)  # fmt: skip
def test_numbers_are_read_as_models_write_them_and_none_is_made_up(written: object, number: float | None) -> None:
    assert read_number(written) == number
