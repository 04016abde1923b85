"""Claims about `nodes/interrupts/intent.py`."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import beside_stop, says_yes, understand


@pytest.mark.parametrize("text", ["No!", "That's wrong.", "Not that one.", "No, no."])
def test_an_objection_without_a_name_is_about_what_is_being_done(text: str) -> None:
    assert understand(text).is_about_current


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("I like the blue cup", "nothing"),
        ("I really like the red one", "nothing"),
        ("Ich mag die blaue Tasse", "nothing"),
        ("She loves the green bowl", "nothing"),
        ("No, I like the red one", "amend"),
        ("I like the red one, not the blue one", "amend"),
        ("I'd like the blue cup", "order"),
    ],
)
def test_a_liking_changes_nothing(text: str, wants: str) -> None:
    assert understand(text).wants == wants


def test_put_it_back_is_a_correction() -> None:
    assert understand("No, put it back!").wants == "amend"


def test_going_on_is_asked_and_refused_in_one_breath() -> None:
    for text in ("Go on? No!", "Weiter? Nein.", "Should it go on? No, no.", "继续？不要！", "Continue? Not yet."):
        assert understand(text).wants != "resume", text
    assert understand("No, go on.").wants == "resume"
    assert understand("Go on. No, not the blue one.").wants == "amend"


@pytest.mark.parametrize(
    "text", ["Should I go on?", "May I continue?", "Soll ich weitermachen?", "Dois-je continuer ou continue ?"]
)
def test_who_asks_whether_they_should_go_on_does_not_tell_the_robot_to(text: str) -> None:
    assert understand(text).wants != "resume"


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("Okay, she's out of the way now. You may go on.", True), ("My fingers are clear, carry on.", True),
        ("He is gone.", False), ("Go on when he is out of the way.", False), ("Is your way free? Go on", False),
        ("He is not gone, go on", False),
    ],
)  # fmt: skip
def test_who_was_in_the_way_is_gone_beside_going_on(text: str, is_asked: bool) -> None:
    assert understand(text).lifts_stop is is_asked


@pytest.mark.parametrize("text", ["Can you go on?", "Would you continue, please?", "Yes, go on.", "Go on, but slowly."])
def test_a_request_in_the_form_of_a_question_is_one(text: str) -> None:
    assert understand(text).wants == "resume"


@pytest.mark.parametrize(
    "text",
    ["Get away from me!", "Let go of me!", "Let me go!", "Leave me alone!", "Don't touch me!", "You're crushing me!",
     "That hurt!", "Help!", "Help me!", "Enough!", "Danger!", "Abort!", "Pause.", "My hand!", "Owwwww!", "Ouuuch!",
     "AAAAH!", "Stooop!", "Stand still.",
     "Hilfe!", "Hilf mir!", "Lass mich los!", "Geh weg!", "Geh weiter weg von mir!",
     "Meine Hand!", "Au secours !", "Lâche-moi !", "¡Ayuda!", "¡Suéltame!", "Aiuto!", "Lasciami!", "Socorro!",
     "Me solta!", "Laat me los!", "Ga verder weg!", "救命！", "放开我！", "助けて！", "離して！"],
)  # fmt: skip
def test_who_is_in_distress_stops_the_robot_and_lifts_nothing(text: str) -> None:
    assert understand(text).wants == "stop"


@pytest.mark.parametrize("text", ["Help!", "Help me!", "My hand!", "Owwww!", "Enough!", "Hilfe!", "救命！"])
def test_what_is_said_in_distress_is_no_bare_sound_that_an_okay_takes_back(text: str) -> None:
    assert understand(text).is_sure


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("Help me clear the table", "order"),
        ("Can you help me put the cups in the bin?", "order"),
        ("Let me go first today", "nothing"),
        ("It is in my hand.", "nothing"),
        ("Hold the cup.", "nothing"),
        ("There is enough room.", "nothing"),
        ("Mmm.", "nothing"),
    ],
)
def test_the_same_words_inside_an_ordinary_sentence_are_harmless(text: str, wants: str) -> None:
    assert understand(text).wants == wants


@pytest.mark.parametrize(
    "text",
    ["I don't want you to go on.", "I do not think you should go on.", "You must not under any circumstances continue.",
     "Not until I say go on.", "You shouldn't go on.", "You won't continue.", "Why did you go on?",
     "Nobody told you to go on.", "Did I say go on?", "Ich will nicht, dass du weitermachst.",
     "Weitermachen sollst du nicht.", "Ich sage dir, wenn du weitermachen kannst.", "Je ne veux pas que tu continue.",
     "No quiero que sigas.", "Nessuno ha detto continua.", "不能继续。", "再開しないで。", "まだ続行しないでください。",
     "進めてはいけない。"],
)  # fmt: skip
def test_who_forbids_going_on_or_speaks_of_it_does_not_ask_for_it(text: str) -> None:
    assert understand(text).wants != "resume"


@pytest.mark.parametrize(
    "text",
    ["No, go on.", "It doesn't hurt, go on.", "Okay, you can continue now.", "Go on, but not so fast.",
     "Oh, I see. Go on.", "Got it, carry on.",
     "Now mach weiter, bitte.", "Also, weiter.", "Sí, continúa.", "Oui, continue.", "好的，继续。", "続けてください。"],
)  # fmt: skip
def test_going_on_is_asked_for_in_many_ways(text: str) -> None:
    assert understand(text).wants == "resume"


@pytest.mark.parametrize(
    "text",
    ["If I say go on, then you move", "He said: go on.", "She asked: continue?", "Continue?", "Go on when I tell you.",
     "Go on, bring me ice.", "go on and on about it", "I would go on holiday", "Don't go on yet", "Never go on.",
     "Wenn ich weiter sage, fährst du.", "Er sagte: weiter!", "Weiter weg!", "Il a dit : continue.",
     "Si dice sigue, no",
     "No sigas", "Dice: continua.", "Ele disse: continue", "Hij zei: ga door", "Powiedział: dalej!", "Dalej ode mnie!",
     "他说：继续", "先别继续", "まだ続けないで", "अगर मैं कहूँ, जारी रखो", "إذا قلت: استمر"],
)  # fmt: skip
def test_going_on_that_is_told_asked_conditional_denied_or_part_of_an_order_lifts_nothing(text: str) -> None:
    assert not understand(text).lifts_stop


@pytest.mark.parametrize(
    ("text", "depth", "talk"),
    [
        ("Stop!", "stop", ""), ("Make me a coffee", "replan", ""), ("The other one", "amend", ""), ("Go on", None, ""),
        ("mhm", None, "backchannel"), ("Good morning!", None, "greeting"), ("Where are my keys?", None, "question"),
        ("It is raining again", None, "statement"), ("Don't stop.", None, "denial"),
    ],
)  # fmt: skip
def test_what_an_utterance_is_has_a_type(text: str, depth: str | None, talk: str) -> None:
    meaning = understand(text)
    assert (meaning.depth, meaning.talk) == (depth, talk)


@pytest.mark.parametrize(
    "text",
    ['"Go on" is the phrase', "mom goes: go on", "the word was continue", "He: go on.", "She's like, keep going",
     "go on, you say",
     "continue no", "Go on. It is only a film.", "und so weiter", "i tak dalej", "mon bouton s'appelle continuer",
     "la parola è continua", "Door!", "Mom goes never mind.", "If it was a false alarm, tell me.", "False alarm?"],
)  # fmt: skip
def test_going_on_lifts_nothing_where_anything_is_said_beside_it_that_is_not_on_the_list(text: str) -> None:
    meaning = understand(text)
    assert not meaning.lifts_stop
    assert not meaning.takes_back


@pytest.mark.parametrize(
    "text",
    ["No, siga.", "No. Continúe, por favor.", "Não, continues!", "Não, continue.", "Nie, ruszaj!", "Nie. Dalej.",
     "لا، تستمر", "别，继续", "不要。继续。", "मत, जारी रखो", "だめ、続けて", "Not. Go on."],
)  # fmt: skip
def test_a_no_that_may_forbid_going_on_is_not_passed_over_for_its_comma(text: str) -> None:
    meaning = understand(text)
    assert not meaning.lifts_stop
    assert meaning.asks_in_vain, "they are told how to say it"


@pytest.mark.parametrize(
    "text",
    ["No, go on.", "Nope. Carry on.", "Nein, weiter!", "Non, continue.", "Nee, ga door.", "No, vai avanti.",
     "いや、続けて", "No pasa nada, sigue.", "没关系，继续", "لا باس، استمر", "Yeah could you go on?"],
)  # fmt: skip
def test_a_no_to_what_was_before_is_passed_over(text: str) -> None:
    assert understand(text).lifts_stop


@pytest.mark.parametrize(
    "text",
    ["動いてますか", "続けてますか", "進んでますか", "再開です", "你继续走了", "继续了", "恢复了", "恢复的",
     "Y sigue, y sigue, y sigue", "Ya sigue", "Ya continúa", "Y continúa...", "e continua, e continua", "E si continua",
     "e segue", "En verder", "Maar verder...", "And go on", "and continue", "et ça continue", "i dalej", "a dalej"],
)  # fmt: skip
def test_what_tells_or_asks_of_going_on_in_the_same_words_lifts_nothing(text: str) -> None:
    assert not understand(text).lifts_stop


@pytest.mark.parametrize(
    "text", ["続けてくれますか", "続けていいです", "可以继续了", "现在可以动了", "verder", "Bueno, sigue"]
)
def test_a_request_in_nearly_the_same_words_does(text: str) -> None:
    assert understand(text).lifts_stop


@pytest.mark.parametrize("go_on", ["go on ", "never mind ", "yes "])
def test_nothing_is_lifted_taken_back_or_agreed_to_by_words_of_which_the_middle_was_not_looked_at(go_on: str) -> None:
    text = go_on * 60 + "is what nobody may say to you before the doctor has come. " + go_on * 60
    assert not understand(text).lifts_stop
    assert not understand(text).takes_back
    assert not says_yes(text)
    whole = go_on * 10
    assert understand(whole).lifts_stop or understand(whole).takes_back or says_yes(whole)


def test_nothing_is_lifted_where_characters_that_stand_for_many_hide_the_middle() -> None:
    text = "go on " * 20 + "\ufdfa" * 40 + " never " + "\ufdfa" * 40 + " go on" * 20
    assert not understand(text).lifts_stop


def test_words_of_two_languages_are_no_plain_request_to_go_on() -> None:
    assert not understand("he, mach weiter").lifts_stop, "he is a greeting in Dutch, and German has no such word"
    assert understand("okay, mach weiter, robot, please").lifts_stop, "what is said in every language is no language"


def test_a_false_alarm_in_another_language_than_going_on_takes_nothing_back() -> None:
    assert understand("Fehlalarm, weiter").takes_back
    assert not understand("False alarm, weiter").takes_back


def test_going_on_that_is_forbidden_in_five_words_stops_and_in_six_is_talk_of_it() -> None:
    assert understand("Don't go on with that.").wants == "stop"
    assert understand("Don't go on with that story.").wants != "stop"


def test_a_clause_that_asks_to_go_on_beside_others_is_told_from_talk_of_other_things() -> None:
    vain = ("I moved my hand away. Go on.", "Go on. No, not the blue one.", "He said: go on.", "Go on!")
    assert [understand(text).asks_in_vain for text in vain] == [True, True, True, False]
    assert not understand("The door is open.").asks_in_vain
    assert not understand("Go on? I wonder.").asks_in_vain


def test_a_word_of_refusal_said_twice_does_not_deny_the_stop_behind_it() -> None:
    assert understand("nie nie stop").wants == "stop"
    assert understand("nie stop").wants != "stop"
    assert understand("nie, nie").wants != "stop"


@pytest.mark.parametrize(
    ("language", "shouts", "harmless"),
    [
        ("ru", "стой|Стооой!|остановись|не двигайся|хватит уже|мне больно|отпусти меня|эй, подожди",
         "дождь перестал|стол стоит у окна"),
        ("ko", "멈춰|그만해|움직이지 마|정지|잠깐만|아파요|놔줘",
         "버스를 기다리고 있어요|그만큼 좋아요|서울에 가요|잠깐 나갔다 왔어요"),
        ("tr", "dur|Duuur!|lütfen dur|kıpırdama|hareket etme|canım acıyor|bırak beni|imdat",
         "yağmur durdu|durak orada|c'est dur à dire"),
    ],
)  # fmt: skip
def test_plain_shouts_latch_in_languages_beyond_the_twelve(language: str, shouts: str, harmless: str) -> None:
    assert [text for text in shouts.split("|") if understand(text).wants != "stop"] == []
    assert [text for text in harmless.split("|") if understand(text).wants == "stop"] == []


@pytest.mark.parametrize(
    ("stops", "harmless"),
    [
        (
            "mommy it's squishing me|the arm is pressing on the baby|der arm drückt auf das baby",
            "yesterday it was squishing him",
        ),
        ("maman il m'écrase le pied|mamma il robot tira i capelli a sara", "hier il m'écrasait le pied"),
        ("there is a child right behind you|die katze ist unter den rädern", "the shop is right behind you"),
        ("so I told her oh my god stop|y entonces me dice que dios mío para", "so I told her to stop"),
        ("a bit more a bit more stop|nog een klein stukje au|pásame la sal ay", "a bit more sugar"),
        ("that goes in the drawer no no not there|range ça là-haut non non pas là", "no no not there"),
        ("stob stob|stup stup|멈처 멈처", "beep beep|la la la la"),
        ("no need ouch", "no need to stop|je hoeft niet te stoppen|기다릴 필요 없어|非要停吗 没必要停下来"),
    ],
)
def test_who_is_hurt_may_be_anybody_and_what_is_meant_now_is_told_from_what_is_not(stops: str, harmless: str) -> None:
    assert [text for text in stops.split("|") if understand(text).wants != "stop"] == []
    assert [text for text in harmless.split("|") if understand(text).wants == "stop"] == []


def test_a_child_that_calls_somebody_and_names_the_robot_makes_it_hold() -> None:
    assert understand("grandma the robot is doing something strange with lily").may_stop
    assert not understand("grandma the soup is doing something strange in the pot").may_stop
    assert not understand("grandma the robot did something strange with lily yesterday").may_stop


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ('Mama rief "stopp" und lachte', '"Stopp!"'),
        ('on the label it says "robot stop" in red', '"robot stop"'),
        ("На двери написано: не трогать", "Не трогать"),
        ("the sign says: do not move", "I say: do not move"),
    ],
)
def test_what_stands_in_quotation_marks_or_behind_a_colon_is_told_and_holds_at_most(told: str, meant: str) -> None:
    assert understand(told).wants != "stop"
    assert understand(meant).wants == "stop"


@pytest.mark.parametrize("text", ["left left left halt", "kom maar kom maar stop", "dobra jedź jedź jedź stój"])
def test_who_urges_the_robot_on_and_then_stops_it_means_it(text: str) -> None:
    assert understand(text).wants == "stop"


@pytest.mark.parametrize(
    "text",
    [
        "Give me the one right in front of you.",
        "Hand us the cup that's beside you.",
        "Would you tell me what you've got there in front of you?",
        "Donne-moi la tasse devant toi.",
        "Vertel me wat er voor je staat.",
        "Take the glass out of my hand.",
        "I've got my hands full, open the jar.",
        "I can't get the lid off. Open the jar for me.",
        "Put it down on the shelf.",
        "The kids are coming at seven.",
        "Why did you stop just then?",
        "What made you stop?",
        "Pourquoi tu t'es arrêté ?",
        "Warum bist du stehen geblieben?",
        "Por que você parou?",
        "What is standing on either side of the glass?",
        "And shut it again, before they go soft.",
    ],
)
def test_who_asks_or_orders_with_the_words_of_a_danger_stops_nothing(text: str) -> None:
    meaning = understand(text)
    assert (meaning.wants == "stop", meaning.may_stop) == (False, False)


@pytest.mark.parametrize(
    "text",
    [
        "Give me that, the kid is right in front of you!",
        "Get me out of here it's right behind you",
        "help me it's right in front of you",
        "Get it out, ow, my hand!",
        "bana bak of kolum",
        "Of!",
        "I've got my hands stuck.",
        "I can't get my hand out.",
        "Put it down!",
        "The kids are coming at you!",
        "Why did you stop stop!",
        "Why don't you stop?",
    ],
)
def test_the_same_words_stop_where_they_mean_it(text: str) -> None:
    assert understand(text).wants == "stop"


@pytest.mark.parametrize(
    "text", ["Spot on, thank you.", "You're a star. Bye!", "Gruzzi, danke!", "Blimp. Merci beaucoup."]
)
def test_who_thanks_or_takes_leave_shouts_nothing_before(text: str) -> None:
    assert not understand(text).is_unclear


@pytest.mark.parametrize("text", ["Spot on, okay.", "Blimp, please!", "Blimp, thanks, blimp!"])
def test_other_small_words_leave_unknown_ones_a_possible_shout(text: str) -> None:
    assert understand(text).is_unclear


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("Stop", ""),
        ("please stop stop", ""),
        ("Robot, please stop now! Take the cup.", "Robot, Take the cup."),
        ("Stop, ahh, take the cup", "take the cup"),
        ("Please ahh. Take the cup", "Take the cup"),
        ("Stop! You're hurting me! Take the cup.", "Take the cup."),
        ("Stop! That's my toe! Take it.", "Take it."),
        ("Stop! His foot is there.", "His foot is there."),
        ("Stop, his hand", "his hand"),
        ("Wait! The red hand", "The red hand"),
        ("Stop! Put it back.", "Put it back."),
        ("Stop. Okay. Take the cup.", "Okay. Take the cup."),
        ("Ouch don't take it", "don't take it"),
        ("Hey stop no the cup", "no the cup"),
        ("Stop please take the cup", "please take the cup"),
        ("Don't you dare stop no the cup", "Don't you dare stop no the cup"),
        ("Stop half-full no the cup", "Stop half-full no the cup"),
        ("Take the half-full cup stop stop now", "Take the half-full cup"),
    ],
)
def test_what_is_said_beside_a_stop_is_what_neither_stops_nor_cries(text: str, beside: str) -> None:
    assert beside_stop(text) == beside


def test_a_stop_between_two_things_that_are_said_takes_back_the_first_and_one_before_or_behind_them_does_not() -> None:
    assert beside_stop("Take the cup. Wait. Take the bowl.") == "Take the cup. Wait. Take the bowl."
    assert beside_stop("Take the cup. Put it down stop stop. Bye.") == "Take the cup. Put it down stop stop. Bye."
    assert beside_stop("Stop. Take the cup. Take the bowl. Stop.") == "Take the cup. Take the bowl."
    assert (
        beside_stop("Stop now the cup. Take the bowl. Take it stop stop") == "Stop now the cup. Take the bowl. Take it"
    )
    assert beside_stop("Stop don't take the cup. Take the bowl.") == "don't take the cup. Take the bowl."


@pytest.mark.parametrize(
    ("text", "is_pain", "is_caught"),
    [
        ("Ow!", True, False),
        ("Stop! Ouch", True, False),
        ("Stop! Not ouch", False, False),
        ("Stop, that hurt", True, False),
        ("Stop, nobody is hurt", False, False),
        ("My foot!", True, False),
        ("Stop, foot", False, False),
        ("Stop, right foot", True, False),
        ("Stop, right foot there", False, False),
        ("Stop, the foot is there", False, False),
        ("Stop, ah, the foot is there", True, False),
        ("Stop! That is your foot", False, False),
        ("Stop! Let go of me", True, True),
        ("Stop! Let go of his hand", True, False),
        ("Stop! Yesterday let go of me", False, False),
        ("Stop! Don't let go of me", False, False),
    ],
)
def test_a_stop_of_somebody_who_is_hurt_or_caught_is_told_from_one_that_only_names_a_part_of_the_body(
    text: str, *, is_pain: bool, is_caught: bool
) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.is_pain, meaning.is_caught) == ("stop", is_pain, is_caught)


@pytest.mark.parametrize(
    ("text", "wants", "may_stop"),
    [
        ("would you please stop", "stop", False),
        ("would you mind, waiting", "stop", False),
        ("would you mind holding", "nothing", False),
        ("could you not stop", "nothing", False),
        ("would you stop moving for a moment please", "stop", False),
        ("would you stop turning the big wheel of the car", "nothing", True),
        ("would you wait because it is hot", "stop", False),
        ("could you stop because I am in here with you", "stop", False),
        ("she said could you stop", "nothing", True),
        ("the rain would stop", "nothing", True),
        ("would you stop the rain", "nothing", True),
    ],
)
def test_a_polite_stop_is_one_where_nothing_but_the_robot_is_to_stop(text: str, wants: str, *, may_stop: bool) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.may_stop) == (wants, may_stop)


@pytest.mark.parametrize(
    ("text", "wants", "may_stop"),
    [
        ("the arm is squishing Leo", "stop", False),
        ("you're squashing Leo", "nothing", True),
        ("you're squashing Leo yesterday", "nothing", False),
        ("granny it is biting Leo", "stop", False),
        ("granny it is stuck", "stop", False),
        ("who is hurting?", "nothing", False),
        ("who is hurting me?", "stop", False),
    ],
)
def test_who_is_hurt_now_is_told_from_talk_of_hurting(text: str, wants: str, *, may_stop: bool) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.may_stop) == (wants, may_stop)


@pytest.mark.parametrize(
    ("text", "wants", "talk"),
    [
        ("please ahh", "stop", ""),
        ("ahh. Wozzle", "stop", ""),
        ("ahh. Take the cup", "order", ""),
        ("ahh. Please take the cup", "order", ""),
        ("ahh. The cup instead", "amend", ""),
        ("ahh, if", "nothing", "statement"),
        ("Please not that one, take the bowl", "amend", ""),
        ("Wozzle, please not that one", "amend", ""),
        ("Please I like the blue cup", "nothing", "statement"),
        ("okay I like the blue cup", "nothing", "statement"),
        ("Please can you go on?", "resume", ""),
        ("please mhm", "nothing", "backchannel"),
        ("please hello", "nothing", "greeting"),
        ("okay please hello wozzle", "nothing", "greeting"),
        ("please okay blimp wozzle", "nothing", "statement"),
        ("wozzle, bye please", "nothing", "statement"),
        ("please you may", "nothing", "statement"),
    ],
)
def test_what_is_wanted_is_found_behind_courtesy_and_assent_and_beside_a_bare_sound(
    text: str, wants: str, talk: str
) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.talk) == (wants, talk)


def test_one_word_that_nobody_knows_may_be_a_shout_however_long_in_a_script_that_nobody_knows() -> None:
    assert understand("blimp").is_unclear
    assert understand("παρακαλουν" * 3).is_unclear
    assert not understand("wozzleblimp" * 2).is_unclear


def test_a_child_that_calls_somebody_may_shout_eight_words_and_no_more() -> None:
    assert understand("mommy blimp wozzle flump drib drab zonk quib").is_unclear
    assert not understand("mommy blimp wozzle flump drib drab zonk quib frap").is_unclear


@pytest.mark.parametrize(
    ("text", "wants", "talk"),
    [
        ("wozzle instead", "amend", ""),
        ("कप रखो", "order", ""),
        ("you don't have to stop", "nothing", "denial"),
        ("if it rains", "nothing", "statement"),
        ("bus stop over there", "nothing", "statement"),
        ("No. Blimp. Go on.", "amend", ""),
        ("wozzle, bye now", "nothing", "statement"),
    ],
)
def test_a_few_words_tell_a_correction_an_order_and_talk_apart(text: str, wants: str, talk: str) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.talk) == (wants, talk)
