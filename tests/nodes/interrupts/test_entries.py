"""Entries of the short lists that steer the reading: each is there for words like these, of the tuning half."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import beside_stop, understand

STOPS = {
    "_MOST_BEHIND_CJK: characters behind a stop": "恐れ入りますが、少々お待ちいただけますでしょうか。",
    "TOLD_REACH: how far what is told reaches": "eu dizia que a torneira au me beliscaste",
    "MOST_MISHEARD: words that may be one misheard": "泊まれ泊まれ",
    "_CALLS: distress": "아퍼 아퍼",
    "_CALLS: stop_end": "挺挺挺",
    "_CALLS of the phrases: stop_alone": "pala pala",
    "_CALLS of the phrases: cry": "au tsch",
    "_CALLS of the phrases: stop_end": "nows top",
    "_BESIDE_CALL: body": "ouw ouw me hant",
    "_BESIDE_CALL: lead": "Stoff Stoff halt doch an",
    "_BESIDE_CALL: courtesy": "ei pala pala",
    "_BESIDE_CALL: no": "아니야 멈쳐 멈쳐",
    "_BESIDE_CALL: me": "let go of mi hand",
    "_BESIDE_CALL: stop_unsure": "ouw ouw ouw",
    "_BESIDE_CALL: tail": "ar et tout",
    "_CORRECTS: correction_end": "待って隣の棚のこと",
    "_CORRECTS: colour": "待って赤",
    "_DANGERS: harm": "围巾绞进去了",
    "_LEAST_JOINED: letters of a stop in pieces": "hör ouf hör ouf",
    "a word that is harmless in a sentence, behind steps": "ein bisschen weiter genug",
    "_ENDS_GUIDING: cry": "pass me the salt ow",
    "_ENDS_GUIDING: stop": "nearer nearer wait",
    "_ENDS_GUIDING: stop_unsure": "noch ein bisschen au",
    "the same, behind words that are said twice": "nearer nearer enough",
}
HARMLESS = {
    "who stands before the verb does it: de": "mein Bruder drückt den Knopf",
    "who stands before the verb does it: fr": "mon frère tire la porte",
    "who stands before the verb does it: it": "il gatto graffia il divano",
    "who stands before the verb does it: nl": "mijn broer rijdt op een oude motor",
    "who stands before the verb does it: pt": "meu irmão puxa o carrinho",
    "a stop that is told, behind words that are said twice": "o lobo da história gritou ai ai o meu rabo",
    "_LEAST: letters of a word that may be a stop": "choo choo",
    "_LEAST_JOINED: letters of a stop in pieces": "wa ta wa ta",
    "_PIECES: a word that somebody spells": "s t o p",
    "_VERB_LAST: hi": "रुको रुको माँ ने कहा",
    "_VERB_LAST: ko": "동생이 아야 하고 소리쳤어",
    "_VERB_LAST: tr": "babaannem dizi acıyor dedi",
}


@pytest.mark.parametrize("text", STOPS.values(), ids=STOPS)
def test_what_an_entry_is_there_for_stops_the_robot(text: str) -> None:
    assert understand(text).wants == "stop"


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_an_entry_is_there_for_stops_nothing(text: str) -> None:
    assert understand(text).wants == "nothing"


def test_a_place_is_no_cry_in_portuguese() -> None:
    assert understand("me dá o sal aí").wants == "order"


@pytest.mark.parametrize(("words", "wants"), [(10, "stop"), (12, "nothing")])
def test_no_more_than_ten_words_are_read_by_their_sound(words: int, wants: str) -> None:
    assert understand("wade weight " * (words // 2)).wants == wants


@pytest.mark.parametrize(
    "text",
    ["請你停止播放客廳電視裡面那首很吵的歌曲好嗎", "音楽を止めてもらえませんか隣の人が眠っているみたいなので"],
)
def test_a_polite_verb_of_stopping_far_from_the_end_is_about_something_else(text: str) -> None:
    assert not understand(text).may_stop


@pytest.mark.parametrize(
    ("said", "beside"),
    [
        ("Stop! Excuse me.", ""),
        ("Stop! Oh my god!", ""),
        ("Stop! Right there.", ""),
        ("Stop! Noo!", ""),
        ("Stop! Thank you very much.", ""),
        ("やめて", ""),
        ("Stop don't take that cup", "don't take that cup"),
        ("Stop bring me the blue cup", "bring me the blue cup"),
        ("Stop no the blue cup", "no the blue cup"),
        ("Stop that cup", "Stop that cup"),
    ],
)
def test_what_says_nothing_beside_a_stop_is_no_order_and_what_begins_anew_is_told_without_it(
    said: str, beside: str
) -> None:
    assert understand(said).wants == "stop"
    assert beside_stop(said) == beside


@pytest.mark.parametrize("marks", ["«»", "“”", "„”", "„“", "「」", "『』", '""'])
def test_what_stands_between_any_quotation_marks_is_quoted_and_may_be_a_stop_all_the_same(marks: str) -> None:
    meaning = understand(f"The sign {marks[0]}stop{marks[1]} fell down")
    assert meaning.wants != "stop"
    assert meaning.may_stop


def test_a_cry_that_is_told_behind_other_words_may_be_one_all_the_same() -> None:
    assert understand("동생이 아야 하고 소리쳤어").may_stop


@pytest.mark.parametrize("letter", ["", *"ђєіїјљњћўџґ"])
def test_a_long_sentence_with_a_letter_that_russian_does_not_have_may_be_a_shout(letter: str) -> None:
    assert understand(f"вчера мы долго ехали на большой зелён{letter}ой машине по городу").is_short is bool(letter)
