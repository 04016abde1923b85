"""Claims about `nodes/interrupts/phrase_matcher.py`, on small tables of their own, and on any clause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.interrupts import phrase_matcher
from nodes.interrupts.phrase_matcher import (
    END_CHARS,
    Match,
    MatchedClause,
    clauses_in,
    find,
    is_cjk,
    load,
    normalised,
    words_of,
)

SMALL = """
[stop]
en = ["halting", "now (wait|hold on)", "(very )?calm( you)?", "stop", "sto"]
[cry]
en = ["ouch", "ai", "dropping"]
hi = ["रुकोरुको"]
[distress]
en = ["my {body}", "(a|b) (c|d)?"]
de = ["mein {body}"]
[harm]
en = ["hurt*", "h*", "* breaks", "tell * now"]
[body]
en = ["toe", "long (arm|leg)"]
[ordinary]
en = ["bus stop", "hurting * halting"]
[kind]
cup = ["cup", "stop", "cup"]
mug = ["cup"]
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables of which every phrase is known."""
    (tmp_path / "small.toml").write_text(SMALL, "utf-8")
    monkeypatch.setattr(phrase_matcher, "TABLE", tmp_path / "small.toml")
    load.cache_clear()
    yield
    load.cache_clear()


def in_short(clause: MatchedClause) -> list[str]:
    """Each match as "table name start-end", in the order of the clause."""
    return [f"{table} {one.name} {one.start}-{one.end}" for table, matches in clause.found.items() for one in matches]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("halting", ["harm en 0-1", "stop en 0-1"]),
        ("now wait", ["stop en 0-2"]),
        ("now hold on", ["harm en 1-2", "stop en 0-3"]),
        ("now hold", ["harm en 1-2"]),
        ("calm", ["stop en 0-1"]),
        ("very calm you", ["stop en 0-2", "stop en 0-3", "stop en 1-2", "stop en 1-3"]),
        ("my toe", ["distress en 0-2", "body en 1-2"]),
        ("my long leg", ["distress en 0-3", "body en 1-3"]),
        ("my long arm", ["distress en 0-3", "body en 1-3"]),
        ("mein toe", ["body en 1-2"]),
        ("my {body}", []),
        ("a", ["distress en 0-1"]),
        ("b c", ["distress en 0-1", "distress en 0-2"]),
        ("a d", ["distress en 0-1", "distress en 0-2"]),
        ("hurt", ["harm en 0-1", "harm en 0-1"]),
        ("hurting", ["harm en 0-1", "harm en 0-1"]),
        ("hu", ["harm en 0-1"]),
        ("h", ["harm en 0-1"]),
        ("it breaks", ["harm en 0-2"]),
        ("breaks", []),
        ("tell me now", ["harm en 0-3"]),
        ("tell now", []),
        ("cup", ["kind cup 0-1", "kind mug 0-1"]),
        ("stop", ["stop en 0-1", "kind cup 0-1"]),
        ("bus stop", ["kind cup 1-2", "ordinary en 0-2"]),
        ("stop bus stop", ["stop en 0-1", "kind cup 0-1", "kind cup 2-3", "ordinary en 1-3"]),
        ("bus stop stop", ["stop en 2-3", "kind cup 1-2", "kind cup 2-3", "ordinary en 0-2"]),
        ("hurting my halting", ["ordinary en 0-3"]),
    ],
)
def test_each_phrase_is_found_where_it_stands(text: str, wanted: list[str]) -> None:
    clause = find(words_of(text))
    assert sorted(in_short(clause)) == sorted(wanted)
    assert clause.words == words_of(text)
    assert not clause.is_corrected
    assert all([one.start for one in found] == sorted(one.start for one in found) for found in clause.found.values())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("halting", ""),
        ("haltting", "halting"),  # doubled
        ("hhalting", "halting"),
        ("haling", "halting"),  # one is missing
        ("haltin", "halting"),
        ("hating", "halting"),
        ("alting", ""),  # but not the first one
        ("hlating", "halting"),  # two have changed places
        ("haltign", "halting"),
        ("ahlting", ""),
        ("haltngi", ""),
        ("sttop", "stop"),
        ("sotp", ""),  # a short word needs all of its letters
        ("stp", ""),
        ("sto", ""),  # a word of its own
        ("stoo", "sto"),
        ("oucch", "ouch"),
        ("oouch", "ouch"),
        ("cupp", "cup"),  # of any table, where only a letter is doubled
        ("cuup", "cup"),
        ("aai", "ai"),
        ("brreaks", "breaks"),
        ("breks", ""),
        ("रुकोरको", ""),
        ("xx", ""),
        ("droping", "dropping"),  # of a doubled letter there may be one, or three
        ("droppping", "dropping"),
        ("drroping", "dropping"),
    ],
)
def test_a_word_that_is_none_is_read_as_the_one_that_it_looks_like(word: str, read: str) -> None:
    clause = find((word,))
    assert clause.is_corrected is bool(read)
    assert clause.words == (word,)
    if read:
        wanted = [one for one in in_short(find((read,))) if not one.startswith("harm")]
        assert [one for one in in_short(clause) if not one.startswith("harm")] == wanted
    assert not find((read,)).is_corrected


@pytest.mark.usefixtures("small")
def test_of_long_words_that_stop_each_letter_but_the_first_may_be_missing_or_change_places_with_the_next() -> None:
    wanted = "hlting hating haling haltng haltig haltin hlating hatling halitng haltnig haltign"
    assert {way for way, word in load().spelled.items() if word == "halting"} == set(wanted.split())
    wanted = "dopping drpping droping droppng droppig droppin dorpping drpoping dropipng droppnig droppign"
    assert {way for way, word in load().spelled.items() if word == "dropping"} == set(wanted.split())
    assert set(load().spelled.values()) == {"halting", "dropping"}


@pytest.mark.parametrize("words", ['"abcdef", "abdcgef"', '"abdcgef", "abcdef"'])
def test_what_looks_like_two_words_is_read_as_the_shorter_one(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.toml").write_text(f"[stop]\nen = [{words}]\n[body]\n", "utf-8")
    monkeypatch.setattr(phrase_matcher, "TABLE", tmp_path / "small.toml")
    load.cache_clear()
    assert load().spelled["abdcef"] == "abcdef"
    load.cache_clear()


def test_tables_are_kept_compiled_and_built_anew_once_they_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phrase_matcher, "TABLE", tmp_path / "small.toml")
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    for stop in ("halt", "wait"):
        (tmp_path / "small.toml").write_text(f"[stop]\nen = ['{stop}']\n[body]\n", "utf-8")
        load.cache_clear()
        built = load()
        assert built.known == {stop}
        [kept] = (tmp_path / "__pycache__").iterdir()
        load.cache_clear()
        assert load() == built
        kept.write_bytes(kept.read_bytes()[:40])  # as no write of ours leaves it
        load.cache_clear()
        assert load() == built
    load.cache_clear()


# --- any clause

PLACES = 4
places = st.lists(st.integers(0, PLACES), min_size=2, max_size=2, unique=True)
match = places.map(lambda two: Match(min(two), max(two), ""))
clauses = st.dictionaries(st.sampled_from("abc"), st.lists(match, min_size=1, max_size=4))


def ways(clause: MatchedClause, place: int, tables: str) -> Iterator[tuple[int, str]]:
    """Every place that phrases of these tables lead to, one behind the other, with the tables they are of."""
    yield place, ""
    for table in tables:
        for one in clause.found.get(table, ()):
            if one.start == place:
                for end, rest in ways(clause, one.end, tables):
                    yield end, table + rest


@given(clauses)
def test_where_phrases_stand_is_what_trying_every_way_finds(found: dict[str, list[Match]]) -> None:
    clause = MatchedClause(tuple("wxyz"), found)
    reached = {end for end, _ in ways(clause, 0, "bc")}
    assert clause.opening("b", "c") == reached
    behind = {place for place in range(PLACES + 1) if PLACES in {end for end, _ in ways(clause, place, "bc")}}
    assert clause.ending("b", "c") == behind
    assert clause.opens("a", "b", "c") == any(one.start in reached for one in found.get("a", ()))
    assert clause.ends("a", "b", "c") == any(one.end in behind for one in found.get("a", ()))
    assert clause.is_all(("a",), "b", "c") == any(end == PLACES and "a" in way for end, way in ways(clause, 0, "abc"))
    assert list(clause.of("a", "b")) == [*found.get("a", ()), *found.get("b", ())]
    assert clause.has("a") == ("a" in found)


# --- words


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ÀÉÎ", "aei"),
        ("It’s ’so´", "its so"),
        ("łødıæœ", "lodiaeoe"),
        ("ﬁn", "fin"),
        ("カー", "か"),
        ("ヴヶ", "ゔゖ"),
        ("nooo", "no"),
        ("noo", "noo"),
        ("1000", "1000"),
        ("好好好", "好好好"),
        ("रुकोओओ", "रुको"),
        ("مدرسة", "مدرسه"),
    ],
)
def test_spellings_of_one_word_are_one(text: str, wanted: str) -> None:
    assert normalised(text) == wanted


@pytest.mark.parametrize(("word", "wanted"), [("停", True), ("ま", True), ("カ", True), ("stop", False), ("", False)])
def test_which_characters_are_words(word: str, *, wanted: bool) -> None:
    assert is_cjk(word) is wanted


def test_signs_that_stand_for_more_than_four_times_the_ends_lose_their_middle() -> None:
    def lengths(text: str) -> list[int]:
        return [len(word) for clause in clauses_in(text) for word in clause.words]

    assert len(normalised("㏒")) == 3
    most = 4 * END_CHARS // 3
    assert lengths("㏒" * most) == [4 * END_CHARS]
    assert lengths("x" + "㏒" * most + "y") == [2 * END_CHARS, 2 * END_CHARS]
    first, last = clauses_in("x" + "㏒" * most + "y")
    assert (first.words[0][:4], last.words[0][-4:]) == ("xlog", "logy")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a. b", [("a", False), ("b", False)]),
        ("a? b", [("a", True), ("b", False)]),
        ("?! a !? b", [("a", True), ("b", False)]),
        ("a؟ b?", [("a", True), ("b", True)]),
        ("a\nb", [("a", False), ("b", False)]),
        ("a-b", [("a b", False)]),
        (".", []),
    ],
)
def test_clauses_end_at_punctuation_marks(text: str, wanted: list[tuple[str, bool]]) -> None:
    assert [(" ".join(clause.words), clause.is_asked) for clause in clauses_in(text)] == wanted
