"""Claims about `nodes/planner/talk/dialogue.py` and the node around it: honest hands."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from nodes.msgs import Reference, Relation, Scene, SceneDescription, SeenObject, Subtask, Utterance
from nodes.planner.orders import Surroundings
from nodes.planner.scripted import ScriptedPlanner
from nodes.planner.talk.dialogue import Dialogue
from nodes.planner.talk.questions import ANSWER_WITHIN_S
from nodes.planner.words.replies import describe
from nodes.policy.hand_over import HAND_OVER
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from runtime.clock import to_ns
from runtime.message import Message
from runtime.ports import Publisher, Sources
from tests.nodes.planner.heard import doubt, given_up, hear, report
from tests.support.sentences import sentence

ORDER = "Please clear the table: put the cups in the bin"


def thing(ident: str, colour: str, label: str = "cup", *, is_place: bool = False) -> SeenObject:
    return SeenObject(
        id=ident, label=label, colour=colour, x_m=0.0, y_m=-0.5, z_m=0.5, width_m=0.08, height_m=0.1, u_px=0, v_px=0,
        is_place=is_place,
    )  # fmt: skip


BIN, TABLE = thing("bin-1", "teal", "bin", is_place=True), thing("table", "", "table", is_place=True)
CUPS = tuple(thing(f"cup-{colour}", colour) for colour in ("red", "blue", "white"))


def seen(*in_bin: str) -> Surroundings:
    """Three cups and a brown bottle on the table; those of these colours in the bin."""
    bottle = thing("bottle-1", "brown", "bottle")
    relations = tuple(
        Relation(subject=cup.id, relation="in", object="bin-1")
        if cup.colour in in_bin
        else Relation(subject=cup.id, relation="on", object="table")
        for cup in (*CUPS, bottle)
    )
    scene = Scene(
        things=(*CUPS, bottle, BIN, TABLE), relations=relations, kinds=("cup", "bowl", "block", "ball", "bottle"),
        places=("bin", "table"),
    )  # fmt: skip
    return Surroundings(scene, tuple(SPECS.values()))


def told(*texts: str, around: Surroundings | None = None, apart_s: float = 30.0) -> tuple[Dialogue, list[str]]:
    plan, replies = Dialogue(), []
    for number, text in enumerate(texts):
        plan, reply = hear(plan, text, around or seen(), to_ns(1.0 + number * apart_s))
        replies.append(reply)
    return plan, replies


def described(plan: Dialogue, progress: str, why: str = "") -> SceneDescription:
    subtask = plan.subtask
    assert subtask is not None
    return msgspec.convert({"text": "", "subtask_id": subtask.id, "progress": progress, "why": why}, SceneDescription)


def works_on(plan: Dialogue) -> Subtask:
    assert plan.subtask is not None
    return plan.subtask


def test_an_order_becomes_a_subtask_and_an_answer() -> None:
    plan, replies = told(ORDER)
    subtask = works_on(plan)
    assert (subtask.id, subtask.state, subtask.skill, subtask.place, subtask.relation) == (
        "task-1.0", "work", "place", "bin", "in",
    )  # fmt: skip
    assert [(one.label, one.count) for one in subtask.things] == [("cup", 0)]
    assert subtask.done_when is not None
    assert subtask.done_when.place == "bin"
    assert replies == ["Sure. I will put every cup in the bin."]


def test_a_correction_excludes_from_then_on() -> None:
    plan, replies = told(ORDER, "No, not the blue one", "Mhm", "and leave the red one")
    subtask = works_on(plan)
    assert ([one.colour for one in subtask.excluding], subtask.id) == (["blue", "red"], "task-1.2")
    assert subtask.text == "Put every cup except the blue cup and the red cup in the bin"
    assert replies[1:] == [
        sentence("planner.leaves_a_thing", what="blue cup"),
        "",
        sentence("planner.leaves_a_thing", what="red cup"),
    ]


def test_a_statement_protects_and_a_liking_changes_nothing() -> None:
    plan, replies = told(ORDER, "I am still drinking from the white cup.", "I like the blue cup.")
    assert [one.colour for one in works_on(plan).excluding] == ["white"]
    assert replies[1:] == [sentence("planner.leaves_a_thing", what="white cup"), "I see."]


@pytest.mark.parametrize(
    "text", ["I'm thirsty.", "It's cold here.", "My mother is coming.", "The bin is full.", "You're a good robot."]
)
def test_what_is_told_to_the_robot_is_answered_and_nothing_is_done(text: str) -> None:
    plan, replies = told(text)
    assert replies[0]
    assert plan.subtask is None


def test_what_is_said_to_somebody_else_is_not_answered() -> None:
    plan, replies = told("Leo, put your cup in the bin.")
    assert (plan.subtask, replies) == (None, [""])


def test_what_was_protected_before_an_order_is_left_out_of_it() -> None:
    plan, _ = told("I am still drinking from the white cup.", ORDER)
    assert [one.colour for one in works_on(plan).excluding] == ["white"]


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Could you put the red cup on the countertop?", sentence("planner.cannot_reach", place="countertop")),
        (
            "Put the vase in the bin.",
            f"{sentence('planner.knows_no', what='vase')} {sentence('planner.tells_apart')}",
        ),
        ("Dance for me.", sentence("planner.no_skill", what="dance")),
        ("Give me the red cup.", sentence("planner.no_skill", what="give")),
        ("Put the red cup behind the bin.", sentence("planner.no_such_place", place="bin")),
        ("Move the red cup.", sentence("planner.shall_put_where", what="the red cup", places="the bin and the table")),
        (
            "Put the cup in the bin.",
            sentence("planner.which_do_you_mean", kind="cup", things="the blue cup, the red cup or the white cup"),
        ),
        ("Clear the table.", sentence("planner.what_and_where", places="the bin and the table")),
        ("Put the red cup in the bin, but don't touch the red cup.", sentence("planner.contradicts_itself")),
        ("Put the red cup gronk the bin.", sentence("planner.knows_no", what="cup gronk")),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_asked_or_refused_and_never_substituted(text: str, reply: str) -> None:
    plan, replies = told(text)
    assert replies[0].startswith(reply)
    assert plan.subtask is None


def test_an_answer_completes_the_order_that_was_asked_about() -> None:
    plan, _ = told("Move the red cup.", "In the bin, please.")
    assert (works_on(plan).place, [one.colour for one in works_on(plan).things]) == ("bin", ["red"])
    plan, _ = told("Put the cup in the bin.", "The white one.")
    assert (works_on(plan).place, [one.colour for one in works_on(plan).things]) == ("bin", ["white"])


def test_a_question_that_nobody_answers_is_given_up_and_that_is_said() -> None:
    plan, _ = told("Move the red cup.")
    assert given_up(plan, to_ns(ANSWER_WITHIN_S))[1] == ""
    plan, reply = given_up(plan, to_ns(2.0 + ANSWER_WITHIN_S))
    assert reply.startswith(sentence("planner.nobody_answered", seconds=30))
    assert hear(plan, "In the bin.", seen(), to_ns(60.0))[0].subtask is None


def test_what_was_ordered_unseen_is_asked_about_when_several_come_into_sight() -> None:
    nothing = Scene(things=(BIN, TABLE), kinds=("cup", "bottle"), places=("bin", "table"))
    blind = Surroundings(nothing, tuple(SPECS.values()))
    plan, replies = told("Put the cup in the bin", around=blind)
    assert replies == ["Sure. I will put the cup in the bin."]
    assert doubt(plan, blind, to_ns(2.0)) == (plan, "")
    asking, asked = doubt(plan, seen(), to_ns(3.0))
    assert asked == "Which cup do you mean: the blue cup, the red cup or the white cup?"
    assert works_on(asking).state == "done"
    answered, _ = hear(asking, "The red one", seen(), to_ns(4.0))
    assert describe(answered.orders[0]) == "Put the red cup in the bin"
    assert works_on(answered).state == "work"
    assert doubt(answered, seen(), to_ns(5.0))[1] == ""
    assert doubt(plan, seen(), to_ns(30.0))[1] == "", "it is too late to ask"
    whole, _ = told(ORDER, around=blind)
    assert doubt(whole, seen(), to_ns(2.0))[1] == ""


def test_who_is_shown_something_hears_that_this_is_it() -> None:
    plan, _ = told("Point at the bottle")
    assert report(plan, described(plan, "finished"), seen(), to_ns(9.0))[1] == "That is the bottle."


def test_an_order_that_contradicts_the_one_of_a_moment_ago_is_asked_about_unless_it_corrects_it() -> None:
    first = "Put the red cup in the bin."
    plan, replies = told(first, "Put the red cup on the table.", apart_s=2.0)
    assert replies[1] == sentence("planner.place_has_changed", first="bin", second="table")
    assert works_on(plan).place == "bin"
    assert works_on(hear(plan, "Yes.", seen(), to_ns(5.0))[0]).place == "table"
    plan, _ = told(first, "No, on the table.", apart_s=2.0)
    assert works_on(plan).place == "table"


def test_an_order_beyond_the_robot_is_declined_and_the_old_one_goes_on() -> None:
    plan, replies = told(ORDER, "Make me a coffee")
    assert works_on(plan).id == "task-1.0"
    assert replies[1].endswith("I go on: put every cup in the bin.")


def test_several_orders_are_done_one_after_the_other() -> None:
    plan, replies = told("Put the red cup in the bin and then nod.")
    assert replies == ["Sure. I will put the red cup in the bin. Then I will nod."]
    assert works_on(plan).skill == "place"
    plan, reply = report(plan, described(plan, "finished"), seen("red"))
    assert works_on(plan).skill == "nod"
    assert reply == "The red cup is in the bin. I will nod."


@pytest.mark.parametrize(
    "text",
    [
        "And put the bottle in the bin", "Also put the bottle in the bin", "Put the bottle in the bin too",
        "And the bottle too", "The bottle as well, please", "Oh, and also the bottle", "And then the bottle",
        "While you are at it, the bottle too",
    ],
)  # fmt: skip
def test_an_addition_comes_after_what_is_being_done(text: str) -> None:
    plan, replies = told(ORDER, text)
    assert [describe(order) for order in plan.orders] == ["Put every cup in the bin", "Put the bottle in the bin"]
    assert replies[-1] == sentence("planner.then", what="put the bottle in the bin")
    assert works_on(plan).id == "task-1.0"


def test_an_addition_to_nothing_is_an_order_and_said_twice_it_is_done_once() -> None:
    plan, _ = told("And put the bottle in the bin too")
    assert [describe(order) for order in plan.orders] == ["Put the bottle in the bin"]
    plan, _ = told(ORDER, "And the bottle too", "And the bottle too")
    assert len(plan.orders) == 2


@pytest.mark.parametrize(
    "text",
    [
        "The bottle instead", "Forget the cups, put the bottle in the bin", "I meant the bottle, not the cups",
        "Take the bottle, not the cups", "Put the bottle in the bin instead",
    ],
)  # fmt: skip
def test_a_revision_takes_the_place_of_what_is_being_done(text: str) -> None:
    plan, _ = told(ORDER, text)
    assert [describe(order) for order in plan.orders] == ["Put the bottle in the bin"]


def test_who_forgets_all_that_was_ordered_takes_the_order_back_and_forbids_nothing() -> None:
    plan, replies = told(ORDER, "Forget the cups", ORDER)
    assert replies[1] == sentence("planner.leaves_it")
    assert works_on(plan).state == "work"
    plan, replies = told(ORDER, "Forget the red cup")
    assert replies[1] == sentence("planner.leaves_a_thing", what="red cup")
    assert describe(plan.orders[0]) == "Put every cup except the red cup in the bin"


def test_what_is_left_alone_may_be_called_it() -> None:
    plan, _ = told(ORDER, "Oh, not the blue one, I still need it")
    assert describe(plan.orders[0]) == "Put every cup except the blue cup in the bin"


def test_stop_and_go_on_change_no_plan() -> None:
    plan, replies = told(ORDER, "Ouch! That's my toe!", "All right, go on")
    assert works_on(plan) == works_on(told(ORDER)[0])
    assert replies[1:] == ["", sentence("planner.goes_on_with", what="put every cup in the bin")]


def test_done_names_what_moved_and_what_was_left() -> None:
    plan, _ = told(ORDER, "No, not the blue one")
    over, reply = report(plan, described(plan, "finished"), seen("red", "white"))
    assert reply == "I am done. The red cup and the white cup are in the bin. I left the blue cup."
    assert works_on(over).state == "done"
    assert report(over, described(over, "finished"), seen("red", "white"))[1] == ""


def test_nothing_moved_is_not_done() -> None:
    plan, _ = told("Put the bowls in the bin.")
    over, reply = report(plan, described(plan, "finished"), seen())
    assert reply == sentence("planner.moved_nothing", what="no bowls")
    assert works_on(over).state == "done"


def test_what_was_in_the_bin_before_was_not_moved_now() -> None:
    plan, _ = told(ORDER, around=seen("white"))
    _, reply = report(plan, described(plan, "finished"), seen("white", "red"))
    assert reply == "I am done. The red cup is in the bin. The blue cup is on the table."


def test_a_failure_is_told_with_its_reason_and_what_was_moved() -> None:
    plan, _ = told(ORDER)
    _, reply = report(plan, described(plan, "failed", "I cannot get the blue cup"), seen("red"))
    where = "The blue cup is on the table and the white cup is on the table."
    assert reply == f"I have to give up: I cannot get the blue cup. The red cup is in the bin. {where}"


def test_what_fell_and_what_is_gone_is_said() -> None:
    relations = (*seen("red").scene.relations, Relation(subject="cup-blue", relation="on", object="floor"))
    fallen = tuple(one for one in relations if (one.subject, one.object) != ("cup-blue", "table"))
    around = replace(seen(), scene=msgspec.structs.replace(seen().scene, relations=fallen))  # type: ignore[type-var]  # a Struct
    plan, _ = told("Put the red cup and the blue cup in the bin.", around=seen())
    _, reply = report(plan, described(plan, "finished"), around)
    assert reply == "I am done. The red cup is in the bin. The blue cup is on the floor."
    gone = msgspec.structs.replace(described(plan, "finished"), gone=(Reference(label="cup", colour="blue"),))  # type: ignore[type-var]  # a Struct
    assert report(plan, gone, around)[1].endswith(sentence("planner.finds_no_more", what="the blue cup"))


def test_a_description_of_an_older_subtask_ends_nothing() -> None:
    old, _ = told(ORDER)
    plan, _ = told(ORDER, "No, not the blue one")
    assert report(plan, described(old, "finished"), seen()) == (plan, "")


def test_what_was_given_into_a_hand_is_told_and_nothing_takes_it_back() -> None:
    around = replace(seen(), skills=(*SPECS.values(), HAND_OVER.spec))
    plan, reply = hear(Dialogue(), "Could you give me the bottle, please?", around, 1)
    assert reply == "Sure. I will hand over the bottle."
    over, reply = report(plan, described(plan, "finished"), around)
    assert reply == "I am done. You have the bottle."
    assert hear(over, "That's wrong.", around, to_ns(60.0))[1] == sentence("planner.nothing_undoes", what="hand over")
    asked = hear(over, "What did you do?", around, to_ns(60.0))[1]
    assert asked == sentence("planner.did_last", what="handed over the brown bottle")
    gave_up = report(plan, described(plan, "failed", "there is no hand"), around)[1]
    assert gave_up == "I have to give up: there is no hand. The brown bottle is on the table."


def test_that_s_wrong_takes_the_last_deed_back() -> None:
    plan, _ = told("Put the red cup in the bin.")
    plan, _ = report(plan, described(plan, "finished"), seen("red"))
    plan, reply = hear(plan, "That's wrong, take it out again!", seen("red"), to_ns(60.0))
    assert reply == "I am sorry. I will put the red cup on the table."
    assert (works_on(plan).things, works_on(plan).place) == (
        (Reference(id="cup-red", label="cup", colour="red"),), "table",
    )  # fmt: skip
    assert told("That's wrong.")[1] == [sentence("planner.nothing_to_take_back")]


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Hello!", f"Hello. {sentence('planner.waits')}"),
        (
            "What do you see?",
            "I see the red cup, the blue cup, the white cup, the brown bottle, the bin and the table.",
        ),
        ("Where is the red cup?", "The red cup is on the table."),
        ("Where is the green cup?", sentence("planner.not_seen", what="green cup")),
        ("How many cups are there?", "I see 3 cups."),
        ("What are you doing?", sentence("planner.waits")),
        ("Thank you!", "You are welcome."),
        ("Did you wipe the table?", sentence("planner.nothing_finished")),
        ("Who wrote Hamlet?", "I do not know that."),
        ("What is the capital of France?", "I do not know that."),
        ("Is it going to rain later?", "I do not know that."),
    ],
)
def test_every_utterance_that_is_addressed_to_the_robot_is_answered(text: str, reply: str) -> None:
    plan, replies = told(text)
    assert replies == [reply]
    assert plan.subtask is None


def test_the_robot_is_asked_what_it_can_do_and_says_what_its_body_declares() -> None:
    assert told("What can you do?")[1][0].endswith(
        "I can pick, place, put back, look, look round, point, nod and shake."
    )


def test_a_declared_skill_is_an_order_by_its_own_words() -> None:
    wave = msgspec.structs.replace(SPECS["nod"], name="wave", words=("wave",))  # type: ignore[type-var]  # a Struct
    around = replace(seen(), skills=(*SPECS.values(), wave))
    assert works_on(told("Please wave.", around=around)[0]).skill == "wave"


def test_a_restarted_planner_learns_its_order_from_the_description() -> None:
    plan, _ = told(ORDER, "No, not the blue one")
    description = msgspec.structs.replace(described(plan, "working"), subtask=works_on(plan))  # type: ignore[type-var]  # a Struct
    recovered, reply = report(Dialogue(), description, seen())
    assert (works_on(recovered), reply) == (works_on(plan), "")


def test_the_words_of_an_order_say_what_it_is() -> None:
    plan, _ = told("Put all the cups except the red one in the bin.")
    assert plan.order is not None
    assert describe(plan.order) == "Put every cup except the red cup in the bin"


def test_the_node_answers_once_it_knows_what_there_is_and_repeats_its_subtask_each_tick() -> None:
    planner = ScriptedPlanner()
    sent: list[Message] = []

    def sink(port: Publisher[Subtask] | Publisher[Utterance], message: Message, stems_from: Sources = None) -> None:
        sent.append(message)

    planner.subtask.sink = planner.said.sink = sink
    planner.tick()
    assert sent == []  # nothing was ordered
    planner.listen(Utterance(speaker="Sam", text=ORDER))
    assert sent == []  # nor is it known what there is
    planner.scene.latest = lambda: seen().scene  # type: ignore[method-assign]
    planner.skills.latest = lambda: catalogue_of(SPECS.values())  # type: ignore[method-assign]
    planner.see(seen().scene)
    planner.tick()
    assert [type(message).__name__ for message in sent] == ["Utterance", "Subtask", "Subtask"]
    first, again = (one for one in sent if isinstance(one, Subtask))
    same: Subtask = msgspec.structs.replace(first, listened_ns=again.listened_ns)  # type: ignore[type-var]  # a Struct
    assert same == again
    assert first.listened_ns < again.listened_ns


def test_which_one_is_asked_among_all_that_a_first_look_round_shows() -> None:
    planner = ScriptedPlanner()
    sent: list[str] = []

    def sink(port: Publisher[Utterance], message: Message, stems_from: Sources = None) -> None:
        assert isinstance(message, Utterance)
        sent.append(message.text)

    planner.said.sink = sink
    planner.skills.latest = lambda: catalogue_of(SPECS.values())  # type: ignore[method-assign]
    whole = seen().scene
    two = msgspec.structs.replace(whole, things=(*CUPS[:2], BIN, TABLE), is_looked=False)  # type: ignore[type-var]  # a Struct
    for scene, texts in ((two, ["Put the cup in the bin."]), (whole, [])):
        planner.scene.latest = lambda scene=scene: scene  # type: ignore[method-assign, misc]
        for text in texts:
            planner.listen(Utterance(speaker="Sam", text=text))
        assert sent == []
        planner.see(scene)
    names = "the blue cup, the red cup or the white cup"
    assert sent == [sentence("planner.which_do_you_mean", kind="cup", things=names)]


def test_what_is_in_use_is_left_alone_even_where_saying_so_stopped_the_robot() -> None:
    plan, _ = told(ORDER)
    plan, reply = hear(plan, "Wait, I am still drinking from the blue one.", seen(), to_ns(60.0))
    assert reply.startswith(sentence("planner.leaves_a_thing", what="blue cup"))
    plan, _ = hear(plan, "go on", seen(), to_ns(70.0))
    subtask = plan.subtask
    assert subtask is not None
    assert subtask.state == "work"
    assert [(one.label, one.colour) for one in subtask.excluding] == [("cup", "blue")]


@pytest.mark.parametrize(
    ("said", "things"),
    [
        ("No wait, the red one", [("cup", "red")]),
        ("Wait, put the bottle in the bin instead", [("bottle", "")]),
        ("Hold on, only the red one", [("cup", "red")]),
        ("Stop!", [("cup", "")]),
        ("Ouch! That's my toe!", [("cup", "")]),
        ("No! Stop! Don't do that", [("cup", "")]),
    ],
)
def test_what_is_wanted_instead_counts_even_where_saying_so_stopped_the_robot(
    said: str, things: list[tuple[str, str]]
) -> None:
    plan, replies = told(ORDER, said, "go on")
    assert [(one.label, one.colour) for one in works_on(plan).things] == things
    assert (replies[1] != "") == (things != [("cup", "")])
    assert works_on(plan).state == "work"


@pytest.mark.parametrize(
    "said",
    [
        "Put the red cup in the bin unless somebody is using it.",
        "Put the red cup, or maybe the blue one, in the bin.",
        "Put the red cup in the bin tomorrow.",
        "Put the wobbliest cup in the bin.",
        "Put the red cup in the bin as you did last time.",
        "Pick up the cup behind the bottle.",
    ],
)
def test_a_word_that_the_reading_does_not_account_for_makes_it_ask(said: str) -> None:
    plan, (reply,) = told(said)
    assert plan.subtask is None
    assert reply.endswith(("?", sentence("planner.tell_me")))


def test_the_question_names_the_word_that_nobody_can_place() -> None:
    assert told("Put the wobbliest cup in the bin.")[1] == [sentence("planner.unknown_word", word="wobbliest")]
    assert "'unless'" in told("Put the red cup in the bin unless it is full.")[1][0]


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Bring mir bitte die Tasse", "Aufträge verstehe ich nur auf Englisch. I understand orders in English."),
        ("Mets la tasse dans le bol", "Je ne comprends les ordres qu'en anglais. I understand orders in English."),
        ("把杯子放在桌上", sentence("planner.english_only")),
    ],
)
def test_an_order_in_another_language_is_answered_and_not_carried_out(said: str, answered: str) -> None:
    plan, (reply,) = told(said)
    assert reply == answered
    assert plan.subtask is None
