"""Claims about the edges of understanding: how long is short, which script is known, which word turns which round."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import KNOWN_UTTERANCES, beside_stop, forget, is_stop, known, says_yes, understand
from nodes.interrupts.phrase_matcher import END_CHARS, clauses_in, clipped, find, is_clipped, normalised, words_of


@pytest.mark.parametrize(
    ("text", "is_unclear"),
    [
        ("blimp wozzle flump drib", True),
        ("blimp wozzle flump drib drab", False),
        ("咕噜咕噜咕噜咕噜", True),  # two characters count as a word
        ("咕噜咕噜咕噜咕噜咕", False),
        ("Будь ласка їдь повільніше ти їдеш просто", True),  # Russian has no such letters
        ("Παρακαλουν ab cd ef gh", True),  # most of its letters
        ("Παρακαλουν ab cd ef gh ij", False),  # half of them
        ("γα ab cd ef gh", False),
        ("же ab", True),
        ("abcdefghij klmnopqrst", True),  # as many letters as a shout has
        ("abcdefghij klmnopqrstu", False),
        ("뷁쀍뷁쀍뷁쀍뷁쀍", True),  # two syllables count as a word
        ("뷁쀍뷁쀍뷁쀍뷁쀍뷁", False),
        ("", False),
        ("...", False),
        ("the cup", False),
        ("False alarm.", False),
        ("hello", False),
    ],
)
def test_what_may_be_a_shout_is_short_or_in_another_script_and_nothing_else_is_known_of_it(
    text: str, *, is_unclear: bool
) -> None:
    assert understand(text).is_unclear is is_unclear


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("no no no", "stop"),
        ("no, no, no", "stop"),
        ("no no no no, please", "stop"),
        ("no no", "amend"),
        ("no no no the blue one", "amend"),
        ("but stop", "stop"),
        ("no stop", "stop"),
        ("never stop", "nothing"),
        ("don't ever stop", "nothing"),
        ("I can't stop", "nothing"),
        ("don't go on", "stop"),
        ("don't you go on", "stop"),
        ("don't go on now please you", "amend"),
        ("do not ever you go on", "amend"),
        ("stop go on", "stop"),
        ("go on?", "nothing"),
        ("would you go on?", "resume"),
        ("okay go on", "resume"),
        ("go on, no", "amend"),
        ("he said go on", "nothing"),
        ("hey", "stop"),
        ("hey, what is that?", "nothing"),
        ("nonstop", "nothing"),
        ("yes, but", "nothing"),
        ("", "nothing"),
    ],
)
def test_what_stands_beside_a_word_decides(text: str, wants: str) -> None:
    assert understand(text).wants == wants


@pytest.mark.parametrize(
    ("text", "talk"),
    [
        ("never stop", "denial"),
        ("mhm okay", "backchannel"),
        ("thanks", "backchannel"),
        ("Thank you for your attention", "statement"),
        ("yes, but", "statement"),
        ("he said go on", "statement"),
        ("go on?", "question"),
        ("what time is it", "question"),
        ("hello", "greeting"),
        ("Never mind false alarm", "statement"),  # the first takes back, and is negated for the second
        ("put the cup in the bin", ""),
        ("blimp", ""),
    ],
)
def test_what_an_utterance_is_that_wants_nothing(text: str, talk: str) -> None:
    meaning = understand(text)
    assert meaning.talk == talk
    assert meaning.is_listening == (talk == "backchannel")


def test_a_correction_without_a_name_is_about_what_is_done_now() -> None:
    assert understand("No, not that one").is_about_current
    assert not understand("No, not the blue one").is_about_current
    assert not understand("No, not the cup").is_about_current
    assert not understand("Make me a coffee").is_about_current


@pytest.mark.parametrize(
    ("text", "wants", "takes_back"),
    [
        ("False alarm.", "nothing", True),
        ("Never mind, go on", "resume", True),
        ("False alarm. Stop!", "stop", False),
        ("not a false alarm", "amend", False),
        ("the cup", "nothing", False),
    ],
)
def test_what_is_taken_back_is_no_stop_besides(text: str, wants: str, *, takes_back: bool) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.takes_back) == (wants, takes_back)


def test_depths_follow_from_what_is_wanted() -> None:
    found = {text: understand(text) for text in ("Stop!", "Make me a coffee", "No, the blue one", "go on", "hello")}
    assert [one.depth for one in found.values()] == ["stop", "replan", "amend", None, None]
    assert [one.lifts_stop for one in found.values()] == [False, False, False, True, False]
    assert [one.is_sure for one in (understand("Stop!"), understand("Ah!"))] == [True, False]


def test_yes_and_stop_are_asked_for_by_themselves() -> None:
    assert says_yes("Yes!")
    assert not says_yes("Yes, but not now")
    assert not says_yes("")
    assert is_stop("Stop!")
    assert not is_stop("Go on")


def test_what_was_understood_is_remembered_and_can_be_forgotten() -> None:
    forget()
    assert known() == 0
    first = understand("Stop!")
    assert understand("Stop!") is first
    assert known() == 1
    for number in range(KNOWN_UTTERANCES + 5):
        understand(f"the weather of day {number}")
    assert known() == KNOWN_UTTERANCES


# --- where phrases stand


def test_an_utterance_is_cut_to_its_ends_and_not_before_it_is_longer_than_both() -> None:
    whole = "a" * END_CHARS + "b" * END_CHARS
    assert clipped(whole) == whole
    assert clipped(whole + "c") == "a" * END_CHARS + "\n" + "b" * (END_CHARS - 1) + "c"


def test_one_sign_that_stands_for_many_does_not_make_an_utterance_long() -> None:
    long = "ﷺ" * 600  # eighteen letters each
    assert sum(len(word) for clause in clauses_in(long + " stop") for word in clause.words) <= 4 * END_CHARS + 4
    assert any(clause.words[-1] == "stop" for clause in clauses_in(long + " stop"))


def test_an_utterance_that_is_long_once_it_is_spelled_out_was_not_looked_at_whole() -> None:
    letters = len(normalised("ﷺ"))
    most = 4 * END_CHARS // letters
    assert not is_clipped("ﷺ" * most)
    assert is_clipped("ﷺ" * (most + 1))
    assert not is_clipped("a" * 2 * END_CHARS)
    assert is_clipped("a" * 2 * END_CHARS + "b")


def test_clauses_know_their_words_and_whether_they_are_asked() -> None:
    first, second, third = clauses_in("Stop, would you? 停")
    assert (first.words, first.is_asked) == (("stop",), False)
    assert (second.words, second.is_asked) == (("would", "you"), True)
    assert (third.words, third.is_asked) == (("停",), False)
    assert clauses_in("؟ ,, !") == ()
    assert clauses_in("stop؟")[0].is_asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Stooop!", ("stop",)),
        ("owwww", ("ow",)),
        ("It's MY Straße", ("its", "my", "strasse")),
        ("こっち", ("こ", "っ", "ち")),
        ("コッチ", ("こ", "っ", "ち")),
        ("a_b 12", ("a", "b", "12")),
    ],
)
def test_words_are_what_is_left_of_spelling(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


def test_a_phrase_opens_ends_or_is_all_of_a_clause() -> None:
    clause = find(("please", "stop", "now"))
    assert clause.has("stop")
    assert not clause.has("order")
    assert clause.opens("stop", "courtesy")
    assert not clause.opens("stop")
    assert not clause.opens("order", "courtesy")
    assert clause.is_all(("stop",), "courtesy", "tail")
    assert not find(("please", "stop", "blimp")).is_all(("stop",), "courtesy", "tail")
    assert not clause.is_all(("order",), "courtesy", "tail", "stop")
    assert clause.ends("stop", "tail")
    assert not clause.ends("stop")
    assert not clause.ends("order", "tail")
    assert (1, 2, "en") in [(match.start, match.end, match.name) for match in clause.of("stop")]


def test_a_word_that_is_misspelled_is_read_as_the_stop_that_it_looks_like() -> None:
    for text in ("stopp", "sttop"):
        clause = find((text,))
        assert clause.has("stop"), text
        assert clause.words == (text,)
    assert find(("stopp",)).is_corrected or not find(("stop",)).is_corrected
    assert not find(("stop",)).is_corrected
    assert not find(("sto",)).has("stop"), "a short word needs all of its letters"
    assert not find(("uu",)).is_corrected, "two letters are too few to tell"


def test_a_stop_inside_an_ordinary_phrase_is_none() -> None:
    clause = find(words_of("the bus stop is over there"))
    assert clause.has("ordinary")
    assert not clause.has("stop")
    assert find(words_of("stop at the bus stop")).has("stop")


def test_no_again_and_again_is_a_stop_with_courtesy_in_between_too() -> None:
    for text in ("No no please no!", "No please no no", "Nein nein bitte nein"):
        assert understand(text).wants == "stop", text


def test_leave_to_go_on_alone_is_a_statement() -> None:
    for text in ("You may.", "It's fine."):
        assert (understand(text).wants, understand(text).talk) == ("nothing", "statement"), text


def test_a_sound_beside_a_part_of_somebody_elses_body_is_no_cry_of_pain() -> None:
    assert understand("Ah! My foot!").is_pain
    meaning = understand("Ah! His foot!")
    assert (meaning.wants, meaning.is_pain) == ("stop", False)


def test_who_says_yes_before_asking_whether_it_can_go_on_lets_it_go_on() -> None:
    for text in ("Yes can you go on?", "Yes could you continue?"):
        assert understand(text).wants == "resume", text
    assert understand("Yes, did you go on?").wants != "resume"


@pytest.mark.parametrize("text", ["Halt nein nach links", "Stop nope the other way"])
def test_a_no_behind_a_stop_begins_what_is_said_besides(text: str) -> None:
    assert beside_stop(text) == text.partition(" ")[2]


def test_ten_words_may_be_a_stop_that_was_written_otherwise_and_eleven_are_none() -> None:
    assert understand("s top " * 5).wants == "stop"
    assert understand("please " + "s top " * 5).wants != "stop"


def test_a_word_of_refusal_around_a_stop_denies_it() -> None:
    assert understand("don't stop don't").wants != "stop", "only two that stand together refuse, and deny nothing"


@pytest.mark.parametrize(
    ("harmless", "stops"),
    [
        ("the kid biting", "biting the kid"),
        ("our dog squeezing", "squeezing our dog"),
        ("the man still pushing", "the dog running at you"),  # who comes may stand before that
        ("give me the cup in front of you", "tell me what is pinching"),  # who is given something may be hurt
    ],
)
def test_who_does_the_hurting_or_is_given_something_is_not_hurt_by_it(harmless: str, stops: str) -> None:
    assert understand(harmless).wants != "stop"
    assert understand(stops).wants == "stop"


def test_who_breaks_off_with_a_cry_and_begins_a_sentence_with_a_stop_means_it() -> None:
    assert understand("My god please wait the lid").wants == "stop"


@pytest.mark.parametrize("text", ["Ruhig, tut nicht weh", "Tranquilo, no me duele"])
def test_a_calming_word_before_what_does_not_hurt_is_no_stop(text: str) -> None:
    assert understand(text).wants != "stop"


def test_a_verb_of_four_letters_is_known_without_its_ending() -> None:
    assert find(("nim",)).is_corrected


@pytest.mark.parametrize("text", ["Let go of it", "Let go of it, please", "Let go of it, let go of it"])
def test_letting_go_of_a_thing_is_no_stop_that_was_written_otherwise(text: str) -> None:
    assert understand(text).wants != "stop"
    assert understand("Let go of me").wants == "stop"


@pytest.mark.parametrize("text", ["No párate", "No haz alto"])
def test_a_spanish_no_before_a_stop_may_have_lost_its_comma(text: str) -> None:
    assert understand(text).wants == "stop"
    assert understand("Nunca pares").wants != "stop"


@pytest.mark.parametrize("urged", ["nearly", "almost there", "not quite there"])
def test_who_says_the_same_one_to_three_words_twice_and_then_stops_has_guided_the_robot(urged: str) -> None:
    assert understand(f"{urged} {urged} enough").wants == "stop"
    assert understand(f"{urged} enough").wants != "stop"


@pytest.mark.parametrize("text", ["Left stop moving", "Links bitte anhalten"])
def test_one_word_before_a_stop_is_said_besides(text: str) -> None:
    assert beside_stop(text) == text.partition(" ")[0]
