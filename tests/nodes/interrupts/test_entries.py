"""Entries of the short lists that steer the reading: each is there for words like these, of the tuning half."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import understand

STOPS = {
    "_MOST_BEHIND_CJK: characters behind a stop": "恐れ入りますが、少々お待ちいただけますでしょうか。",
    "TOLD_REACH: how far what is told reaches": "eu dizia que a torneira au me beliscaste",
    "MOST_MISHEARD: words that may be one misheard": "泊まれ泊まれ",
    "_CALLS: distress": "아퍼 아퍼",
    "_CALLS: stop_end": "挺挺挺",
    "_CALLS of the phrases: stop_alone": "pala pala",
    "_BESIDE_CALL: body": "ouw ouw me hant",
    "_BESIDE_CALL: lead": "Stoff Stoff halt doch an",
    "_BESIDE_CALL: me": "let go of mi hand",
    "_BESIDE_CALL: stop_unsure": "ouw ouw ouw",
    "_BESIDE_CALL: tail": "ar et tout",
    "_CORRECTS: correction_end": "待って隣の棚のこと",
}
HARMLESS = {
    "_DOES: nl": "mijn broer rijdt op een oude motor",
    "_VERB_LAST: ko": "동생이 아야 하고 소리쳤어",
    "_VERB_LAST: tr": "babaannem dizi acıyor dedi",
}


@pytest.mark.parametrize("text", STOPS.values(), ids=STOPS)
def test_what_an_entry_is_there_for_stops_the_robot(text: str) -> None:
    assert understand(text).wants == "stop"


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_an_entry_is_there_for_stops_nothing(text: str) -> None:
    assert understand(text).wants == "nothing"


def test_a_cry_that_is_told_behind_other_words_may_be_one_all_the_same() -> None:
    assert understand("동생이 아야 하고 소리쳤어").may_stop
