"""Claims about a dialogue with a household: thing by thing, with questions and lessons, as in the kitchen."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from nodes.msgs import FeedbackCode, Relation, Scene, SceneDescription, SeenObject, SeenPerson
from nodes.planner.orders import Order, Surroundings
from nodes.planner.talk.dialogue import Dialogue
from nodes.planner.talk.household import household_of
from nodes.planner.words.languages import in_another_language
from nodes.planner.words.understanding import Intent
from nodes.policy.room_policy import KITCHEN_SPECS
from nodes.policy.skill_catalogue import SPECS, problems_of
from nodes.sim.world.world_file import load_world
from runtime.clock import to_ns
from tests.support.sentences import sentence

WORLD = load_world()


def thing(
    id_: str, label: str, colour: str = "", *state: str, width_m: float = 0.07, owner: str = "", x_m: float = 0.0,
    y_m: float = -0.5,
) -> SeenObject:  # fmt: skip
    return SeenObject(
        id=id_, label=label, colour=colour, x_m=x_m, y_m=y_m, z_m=0.55, width_m=width_m, height_m=0.1, u_px=0.0,
        v_px=0.0, state=state, owner=owner,
    )  # fmt: skip


def scene_of(*things: SeenObject, at: str = "table", people: tuple[SeenPerson, ...] = ()) -> Scene:
    places = tuple(
        SeenObject(
            id=name, label=name, colour="", x_m=place.centre_m[0], y_m=place.centre_m[1], z_m=place.z_m, width_m=0.0,
            height_m=0.2 if place.form == "box" else 0.0, u_px=0.0, v_px=0.0, is_place=True, state=place.state,
        )
        for name, place in WORLD.places.items()
    )  # fmt: skip
    return Scene(
        things=(*things, *places), relations=tuple(Relation(subject=x.id, relation="on", object=at) for x in things),
        people=people, kinds=tuple(WORLD.kinds), places=tuple(WORLD.places),
    )  # fmt: skip


def mind_with(*things: SeenObject, **more: object) -> Dialogue:
    scene = scene_of(*things, **more)  # type: ignore[arg-type]  # as it is
    around = Surroundings(scene, (*SPECS.values(), *KITCHEN_SPECS.values()))
    return Dialogue(household=household_of("kitchen"), around=around)


def hear(mind: Dialogue, text: str, at_s: float = 1.0, who: str = "Ann") -> str:
    return mind.hear(text, who, to_ns(at_s))


def planned(mind: Dialogue) -> list[tuple[str, str, str]]:
    """What is done now and later, as far as it is not held until a question is answered."""
    return [(one.skill, one.things[0].id if one.things else "", one.place) for one in mind.orders]


def see(mind: Dialogue, scene: Scene, at_s: float) -> str:
    mind.around = Surroundings(scene, mind.around.skills)
    return mind.see(to_ns(at_s))


def told_of(mind: Dialogue, progress: str = "finished", **more: object) -> SceneDescription:
    subtask = mind.subtask
    assert subtask is not None
    told = {"text": "", "subtask_id": subtask.id, "progress": progress, **more}
    return msgspec.convert(told, SceneDescription)


def finish(mind: Dialogue) -> None:
    """What it does now is done."""
    mind.report(told_of(mind), to_ns(5.0))


RED, BLUE = thing("mug-1", "mug", "red"), thing("mug-2", "mug", "blue")


def test_the_skills_of_the_kitchen_are_declared_well() -> None:
    assert [problem for spec in KITCHEN_SPECS.values() for problem in problems_of(spec)] == []
    assert all(spec.usual_s > 0 and spec.risk for spec in KITCHEN_SPECS.values())


def test_two_mugs_fit_and_it_asks_and_takes_the_answer_or_a_finger() -> None:
    mind = mind_with(RED, BLUE)
    assert "Which mug" in hear(mind, "Put the mug on the tray")
    assert planned(mind) == []
    pointing = scene_of(RED, BLUE, people=(SeenPerson(id="Ann", x_m=0.0, y_m=0.0, points_at="mug-2"),))
    see(mind, pointing, 5.0)
    assert planned(mind) == [("place", "mug-2", "tray")]


def test_a_half_full_glass_is_asked_about_and_left_after_a_no() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"))
    assert sentence("kitchen.shall_pour") in hear(mind, "Put the glass in the sink")
    assert hear(mind, "No, I am still drinking") == sentence("kitchen.leaves_it")
    assert planned(mind) == []


def test_silence_is_no_yes() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"))
    hear(mind, "Put the glass in the sink")
    said = [text for second in range(2, 60, 2) if (text := mind.tick(to_ns(second)))]
    assert said[-1] == sentence("kitchen.nobody_answered", seconds=40)
    assert planned(mind) == []


def test_a_lesson_is_undone_done_and_not_needed_again() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug away")
    assert planned(mind) == [("place", "mug-1", "sink")]
    mind.report(told_of(mind), to_ns(20.0))
    hear(mind, "That's wrong, it goes on the shelf", 22.0)
    assert planned(mind) == [("place", "mug-1", "shelf")]
    mind.report(told_of(mind), to_ns(40.0))
    hear(mind, "Now put the blue mug away", 41.0)
    assert planned(mind) == [("place", "mug-2", "shelf")]


def test_what_is_too_wide_is_asked_for_and_thanked_for() -> None:
    plate = thing("plate-1", "plate", "white", width_m=0.16)
    mind = mind_with(plate)
    assert "Could you put the white plate in the sink" in hear(mind, "Put the plate in the sink")
    assert see(mind, scene_of(plate), 3.0) == ""
    assert "Thank you" in see(mind, scene_of(plate, at="sink"), 9.0)


def test_my_mug_is_the_one_with_my_name() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", owner="Ben"), thing("mug-2", "mug", "blue", owner="Ann"))
    hear(mind, "Put my mug in the sink")
    assert planned(mind) == [("place", "mug-2", "sink")]


def test_without_cream_leaves_out_a_step_of_a_coffee() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), thing("mug-2", "mug", "blue"))
    hear(mind, "Make me a coffee")
    assert ("place", "mug-2", "cream dispenser") in planned(mind)
    hear(mind, "No, without cream", 3.0)
    assert [step for step in planned(mind) if step[0] != "wait_here"] == [
        ("place", "mug-2", "coffee machine"), ("hand_over", "mug-2", ""),
    ]  # fmt: skip


def test_a_thing_that_is_gone_is_no_crash_and_said() -> None:
    mind = mind_with(RED)
    hear(mind, "Put the red mug on the tray")
    see(mind, scene_of(), 2.0)
    told = told_of(mind, "failed", why="I do not see it any more")
    assert sentence("kitchen.sees_it_no_more") in mind.report(told, to_ns(3.0))
    assert planned(mind) == []


def test_what_no_arm_gets_to_is_asked_for_nearer_by_a_code_and_not_by_how_the_reason_is_worded() -> None:
    codes: tuple[FeedbackCode, ...] = ("out_of_reach", "")
    for code in codes:
        mind = mind_with(RED)
        hear(mind, "Put the red mug on the tray")
        told = told_of(mind, "failed", why="it is over there", code=code)
        asked = mind.report(told, to_ns(3.0))
        assert ("put it nearer to me" in asked) == (code != ""), asked


def test_a_label_of_ten_kilobytes_is_only_a_label() -> None:
    mind = mind_with(thing("x-1", "x" * 10_000))
    assert hear(mind, "Put the mug on the tray") != ""
    assert planned(mind) == []


def test_what_is_only_told_is_answered_and_nothing_is_done() -> None:
    for text in ("I'm thirsty.", "It's cold here.", "My mother is coming."):
        mind = mind_with(RED)
        assert hear(mind, text), text
        assert planned(mind) == [], text


GLASS, APPLE = thing("glass-1", "glass", "", "half full"), thing("apple-1", "apple", "green")
BOTTLE, SPONGE, PLATE = thing("bottle-1", "bottle"), thing("sponge-1", "sponge"), thing("plate-1", "plate", "white")


@pytest.mark.parametrize(
    "text",
    [
        "I don't want coffee.", "Do you like coffee?", "If there is coffee, bring me one.", "Don't clear the table.",
        "Is the red mug clean?", "Tidy up when I'm gone.", "Who cleared the table?", "Don't wash the fruit.",
        "I would like to clear the table.", "You should have cleared the table!",
    ],
)  # fmt: skip
def test_a_chore_that_is_forbidden_asked_about_or_told_of_is_not_taken_on(text: str) -> None:
    mind = mind_with(RED, APPLE, SPONGE)
    hear(mind, text)
    assert planned(mind) == []


def test_a_chore_spares_what_is_excepted_and_cleaning_a_thing_clears_no_table() -> None:
    for text in ("Clear the table except the apple.", "Tidy up, but don't touch the apple."):
        mind = mind_with(RED, APPLE)
        hear(mind, text)
        assert planned(mind) == [("place", "mug-1", "sink")], text
    mind = mind_with(RED, APPLE, PLATE)
    hear(mind, "Clean the plate.")
    assert planned(mind)[0] == ("rinse", "plate-1", "sink")


def test_an_answer_that_denies_does_not_choose_what_it_denies() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug on the tray")
    hear(mind, "Not the red one.", 2.0)
    assert planned(mind) == [("place", "mug-2", "tray")]
    for text in ("Anywhere but the table.", "Not in the bin!", "Is the shelf free?"):
        mind = mind_with(BOTTLE)
        assert "Where does" in hear(mind, "Put the bottle away")
        hear(mind, text, 2.0)
        assert planned(mind) == [], text
    mind = mind_with(GLASS)
    hear(mind, "Put the glass in the sink")
    hear(mind, "Yes, but not now.", 2.0)
    assert planned(mind) == []


def test_both_of_two_that_were_asked_about_are_taken() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug on the tray")
    hear(mind, "Both.", 2.0)
    assert planned(mind) == [("place", "mug-1", "tray"), ("place", "mug-2", "tray")]


def test_never_mind_ends_the_question_or_else_what_is_being_done() -> None:
    mind = mind_with(BOTTLE)
    hear(mind, "Put the bottle away")
    assert hear(mind, "Never mind.", 2.0) == sentence("kitchen.leaves_it")
    assert mind.questions == ()
    hear(mind, "Put the bottle on the tray", 3.0)
    assert hear(mind, "Never mind.", 4.0).startswith(sentence("kitchen.leaves_it"))
    assert planned(mind) == []


def test_beside_a_place_is_asked_about_and_what_is_kept_too() -> None:
    mind = mind_with(SPONGE, PLATE)
    assert "beside the sink" in hear(mind, "Put the sponge beside the sink.")
    assert planned(mind) == []
    mind = mind_with(PLATE)
    hear(mind, "The plate is mine.")
    assert sentence("kitchen.asks_keeper", deed="put the plate in the sink") in hear(
        mind, "Put the plate in the sink.", 2.0, "Ben"
    )
    hear(mind, "Yes", 3.0, "Ben")
    assert planned(mind) == [], "only Ann can say so"
    hear(mind, "Yes", 4.0)
    assert planned(mind) == [("place", "plate-1", "sink")]


def test_nothing_that_is_wrong_takes_nothing_back() -> None:
    for text in ("What's wrong?", "There's nothing wrong with the mug."):
        mind = mind_with(RED)
        assert "take back" not in hear(mind, text)
        assert planned(mind) == []


def test_how_a_thing_is_said_as_it_is_seen() -> None:
    mind = mind_with(RED, thing("mug-2", "mug", "blue", "dirty"))
    assert hear(mind, "Which mug is dirty?") == "As far as I see, the blue mug is dirty."
    assert sentence("kitchen.sees_not_that", what="red mug", state="clean") in hear(mind, "Is the red mug clean?")


def test_it_keeps_off_where_a_person_was_asked_to_take_something_and_goes_on_elsewhere() -> None:
    wide = thing("bowl-1", "bowl", "green", width_m=0.2)
    far = thing("apple-1", "apple", "green", x_m=0.9)
    mind = mind_with(wide, RED, far)
    assert "Could you put the green bowl" in hear(mind, "Clear the table")
    assert planned(mind)[0] == ("place", "apple-1", "countertop")
    finish(mind)
    assert mind.order is None
    assert [one.things[0].id for one in mind.orders] == ["mug-1"]
    helped = scene_of(RED, far)
    there = thing("bowl-1", "bowl", "green", width_m=0.2, x_m=0.2, y_m=-1.2)
    relations = (*helped.relations, Relation(subject="bowl-1", relation="on", object="countertop"))
    see(mind, Scene(things=(*helped.things, there), relations=relations, places=helped.places), 8.0)
    assert planned(mind) == [("place", "mug-1", "sink")]


def test_nobody_who_helps_is_waited_for_for_ever() -> None:
    mind = mind_with(thing("bowl-1", "bowl", "green", width_m=0.2), RED)
    hear(mind, "Clear the table")
    assert mind.order is None
    for second in range(2, 70):
        mind.tick(to_ns(second))
    assert planned(mind) == [("place", "mug-1", "sink")]


def test_what_is_to_go_elsewhere_is_not_cleared_away_with_the_rest() -> None:
    mind = mind_with(RED, PLATE)
    hear(mind, "Clear the table, but put the plate on the shelf.")
    assert planned(mind) == [("place", "mug-1", "sink"), ("place", "plate-1", "shelf")]


WHITE = thing("mug-3", "mug", "white")
KEPT = (
    "Not that one.", "No, not this one.", "Not this.", "But not that one.", "Leave that one.", "Leave it.",
    "Leave that one where it is.", "Leave the mug.", "Keep it.", "Keep that one, please.", "I want to keep that one.",
    "No, I want to keep that one.", "Let me keep that one.", "I still need it.", "I am still using that one.",
    "I'm not finished with that one.", "That one is mine.", "That's mine.", "This mug is mine.",
    "Don't take that one.", "Don't put it on the shelf.", "Leave the one in your hand.", "Put it back.",
    "That one stays here.", "Spare that one.", "All except that one.", "Not that mug.", "Wrong one.",
    "Leave it alone.", "Please don't touch that mug.", "Hey, that's my mug.",
)  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_that_one_is_what_is_pointed_at_or_what_is_being_done(text: str) -> None:
    for pointed, kept in (("mug-2", "mug-2"), ("", "mug-1")):
        mind = mind_with(RED, BLUE, WHITE)
        hear(mind, "Put the mugs on the shelf.")
        people = (SeenPerson(id="Ann", x_m=0.0, y_m=0.0, points_at=pointed),) if pointed else ()
        see(mind, scene_of(RED, BLUE, WHITE, people=people), 9.0)
        answer = hear(mind, text, 10.0)
        assert mind.kept == {kept}
        assert answer.startswith(sentence("kitchen.leaves", what=f"{'blue' if pointed else 'red'} mug"))
        assert [one for _, one, _ in planned(mind)] == [one.id for one in (RED, BLUE, WHITE) if one.id != kept]


@pytest.mark.parametrize("text", ["Leave that one.", "Not that one.", "Leave the mug.", "I still need it."])
def test_where_nothing_is_done_or_pointed_at_it_asks_which_is_to_be_left(text: str) -> None:
    mind = mind_with(RED, BLUE)
    assert hear(mind, text) == sentence("kitchen.which_to_leave", things="the blue mug or the red mug")
    assert hear(mind, "The blue one.", 3.0) == sentence("kitchen.leaves", what="blue mug")
    assert (mind.kept, mind.questions) == ({"mug-2"}, ())


def test_an_exception_said_afterwards_takes_only_that_one_out() -> None:
    for text in ("But not the blue one.", "All except the blue one.", "Not the blue one."):
        mind = mind_with(RED, BLUE, WHITE)
        hear(mind, "Put the mugs on the shelf.")
        hear(mind, text, 3.0)
        assert [one for _, one, _ in planned(mind)] == ["mug-1", "mug-3"], text


def test_what_is_to_be_brought_elsewhere_is_not_brought_to_the_first_place_too() -> None:
    mind = mind_with(RED, BLUE, WHITE)
    hear(mind, "Put the mugs on the shelf.")
    hear(mind, "Give me the blue mug.", 3.0)
    assert planned(mind) == [("place", "mug-1", "shelf"), ("place", "mug-3", "shelf"), ("hand_over", "mug-2", "")]


@pytest.mark.parametrize(("text", "place"), [("No, on the tray.", "tray"), ("Actually, put it in the sink.", "sink")])
def test_a_corrected_place_takes_the_place_of_the_one_under_way(text: str, place: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug on the shelf.")
    assert hear(mind, text, 3.0)
    assert planned(mind) == [("place", "mug-1", place)]


@pytest.mark.parametrize("text", ["Never mind.", "Okay, never mind.", "Hm, never mind."])
def test_never_mind_ends_all_of_an_order_about_several(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mugs on the shelf.")
    assert hear(mind, text, 3.0) == sentence("kitchen.leaves_it")
    assert planned(mind) == []


@pytest.mark.parametrize("text", ["Yes.", "Go ahead.", "Yes, go ahead."])
def test_a_yes_answers_a_question_about_the_order_and_one_about_a_thing(text: str) -> None:
    for order, asked in (("Put the red mug in the bin when it is empty.", RED), ("Put the glass in the sink.", GLASS)):
        mind = mind_with(asked)
        assert hear(mind, order).endswith("?")
        hear(mind, text, 3.0)
        assert [one for _, one, _ in planned(mind)] == [asked.id], order


def test_an_addition_while_it_is_busy_is_answered() -> None:
    mind = mind_with(RED, BLUE, APPLE)
    hear(mind, "Put the mugs on the shelf.")
    assert hear(mind, "And the apple too.", 3.0) == sentence("kitchen.then", what="put the green apple on the shelf")
    assert planned(mind)[-1] == ("place", "apple-1", "shelf")


def test_who_asks_what_it_does_hears_that_it_is_busy_and_afterwards_what_it_did() -> None:
    mind = mind_with(RED)
    hear(mind, "Put the red mug on the shelf.")
    assert hear(mind, "What are you doing?", 2.0) == "My task is to put the red mug on the shelf."
    finish(mind)
    assert hear(mind, "What did you do?", 9.0) == sentence("kitchen.did_last", what="put the red mug on the shelf")


@pytest.mark.parametrize("text", ["Whichever.", "I don't care.", "Either one."])
def test_who_does_not_mind_which_one_gets_one(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug on the tray")
    hear(mind, text, 2.0)
    assert planned(mind) == [("place", "mug-1", "tray")]


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Good morning! Please bring me the red mug.", [("hand_over", "mug-1", "")]),
        ("Oh! The red mug goes on the shelf.", [("place", "mug-1", "shelf")]),
        ("Tom, could you put the red mug in the sink?", []),
        ("Put the red mug on the tray, and don't you dare touch the blue mug.", [("place", "mug-1", "tray")]),
    ],
)
def test_sentences_are_read_one_by_one_and_to_whom_they_are_said(text: str, plan: list[tuple[str, str, str]]) -> None:
    mind = mind_with(RED, BLUE)
    assert bool(hear(mind, text)) == bool(plan)
    assert planned(mind) == plan


def test_a_no_to_a_question_or_to_nothing_leaves_what_is_being_done_alone() -> None:
    mind = mind_with(RED, BLUE, APPLE)
    hear(mind, "Put the apple on the tray.")
    hear(mind, "Put the mug on the tray.", 2.0)
    assert hear(mind, "No.", 3.0) == sentence("kitchen.leaves_it")
    assert (planned(mind), mind.questions) == ([("place", "apple-1", "tray")], ())
    finish(mind)
    assert "Which" not in hear(mind, "No.", 9.0)


def test_fewer_than_were_asked_for_is_said() -> None:
    mind = mind_with(RED, BLUE)
    assert hear(mind, "Put three mugs on the shelf.").startswith(
        sentence("kitchen.sees_only", things="the red mug and the blue mug")
    )


@pytest.mark.parametrize("text", ["I don't need the red mug anymore.", "That one is mine.", "Hurry up!", "Never mind."])
def test_what_orders_nothing_is_answered_too(text: str) -> None:
    mind = mind_with(RED, BLUE)
    assert hear(mind, text)
    assert planned(mind) == []


@pytest.mark.parametrize("said", ["Where is the red mug?", "Is the red mug clean?", "What is in the red mug?"])
def test_a_question_about_one_of_two_is_no_choice_of_it(said: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug in the sink")
    assert hear(mind, said, 2.0)
    assert planned(mind) == []
    hear(mind, "The blue one", 3.0)
    assert planned(mind) == [("place", "mug-2", "sink")]


def test_who_still_drinks_from_one_of_two_means_the_other() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug in the sink")
    hear(mind, "I am drinking from the red one", 2.0)
    assert planned(mind) == [("place", "mug-2", "sink")]
    assert mind.kept == {"mug-1"}
    assert not mind.questions


def test_an_answer_that_orders_something_else_is_done_so() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug in the sink")
    hear(mind, "Put the red one on the shelf", 2.0)
    assert planned(mind) == [("place", "mug-1", "shelf")]
    assert not mind.questions


def test_where_one_of_two_stands_tells_which_is_meant() -> None:
    mind = mind_with(RED, BLUE)
    scene = mind.around.scene
    apart = (
        Relation(subject="mug-1", relation="on", object="table"),
        Relation(subject="mug-2", relation="on", object="countertop"),
    )
    moved = Scene(things=scene.things, relations=apart, kinds=scene.kinds, places=scene.places)
    mind.around = Surroundings(moved, mind.around.skills)
    hear(mind, "Put the mug in the sink")
    hear(mind, "The one on the countertop", 2.0)
    assert planned(mind) == [("place", "mug-2", "sink")]


def test_a_later_order_about_all_of_them_closes_the_question_which() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mug in the sink")
    hear(mind, "Put both mugs on the tray", 2.0)
    assert planned(mind) == [("place", "mug-1", "tray"), ("place", "mug-2", "tray")]
    assert not mind.questions


def test_what_somebody_still_eats_is_no_answer_about_a_glass() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"), thing("apple-1", "apple", "green"))
    hear(mind, "Put the apple in the sink")
    hear(mind, "Put the glass in the sink", 1.5)
    hear(mind, "I am still eating the apple", 2.0)
    assert planned(mind) == []
    assert mind.kept == {"apple-1"}
    hear(mind, "Yes", 3.0)
    assert planned(mind) == [("place", "glass-1", "sink")]


def test_what_somebody_eats_unseen_is_no_answer_either() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"))
    hear(mind, "Put the glass in the sink")
    assert hear(mind, "I am still eating the apple", 2.0)
    assert [one.about for one in mind.questions] == ["deed"]
    hear(mind, "I am still drinking from it", 3.0)
    assert (planned(mind), mind.questions) == ([], ())


def test_a_question_behind_a_yes_pours_nothing_away() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"))
    hear(mind, "Put the glass in the sink")
    hear(mind, "Ok, but what do you see?", 2.0)
    assert planned(mind) == []
    assert len(mind.questions) == 1


@pytest.mark.parametrize(
    "text", ["Yes, you can pour it away", "Yes, pour the glass out.", "You can pour it away.", "Go ahead, tip it out."]
)
def test_who_says_that_it_may_be_poured_away_orders_nothing_more(text: str) -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"))
    hear(mind, "Put the glass in the sink")
    hear(mind, text, 2.0)
    assert (planned(mind), mind.questions) == ([("place", "glass-1", "sink")], ())


WASHED = [("rinse", "mug-1", "sink"), ("place", "mug-1", "countertop")]


@pytest.mark.parametrize(
    "text", ["Don't pour it away.", "No, not that.", "Don't wash it!", "Do not tip it out.", "Keep it."]
)
def test_a_refusal_is_of_what_was_asked_and_drops_nothing_else(text: str) -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"), thing("mug-1", "mug", "red", "dirty"))
    hear(mind, "Wash the glass and the red mug.")
    hear(mind, text, 2.0)
    assert (planned(mind), mind.questions, mind.kept) == (WASHED, (), {"glass-1"})


def test_a_state_that_is_to_stay_calls_off_what_would_change_it() -> None:
    mind = mind_with(thing("jar-1", "cookie jar", "brown"))
    hear(mind, "Open the jar.")
    hear(mind, "Close it!", 2.0, "Ben")
    hear(mind, "No, leave it open.", 3.0)
    assert planned(mind) == [("open", "jar-1", "")]
    hear(mind, "No, keep it closed.", 4.0)
    assert planned(mind) == []


@pytest.mark.parametrize(
    "text", ["No, leave it. But you can wash the blue mug.", "No, keep it, but wash the blue mug too."]
)
def test_a_refusal_with_an_order_behind_it_is_both(text: str) -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"), thing("mug-1", "mug", "red", "dirty"), BLUE)
    hear(mind, "Wash the glass and the red mug.")
    hear(mind, text, 2.0)
    assert planned(mind)[:3] == [*WASHED, ("rinse", "mug-2", "sink")]
    assert (mind.questions, mind.kept) == ((), {"glass-1"})


def test_it_behind_a_refusal_is_what_was_asked_about() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "half full"), thing("mug-1", "mug", "red", "dirty"))
    hear(mind, "Wash the glass and the red mug.")
    assert "put the glass on the shelf?" in hear(mind, "Don't pour it away. Put it on the shelf.", 2.0)
    assert planned(mind) == WASHED


def test_it_that_is_not_to_be_washed_is_the_one_that_is_at_hand() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), thing("mug-2", "mug", "blue", "dirty"))
    hear(mind, "Wash the red and the blue mug.")
    hear(mind, "Don't wash it.", 2.0)
    assert planned(mind) == [("rinse", "mug-2", "sink"), ("place", "mug-2", "countertop")]


@pytest.mark.parametrize(
    "text",
    ["The cookies are for later.", "Nobody gets a cookie.", "Don't give Ben a cookie.", "The jar is for tomorrow.",
     "The biscuits are for the guests."],
)  # fmt: skip
def test_what_is_for_later_or_for_nobody_is_opened_for_nobody_else(text: str) -> None:
    mind = mind_with(thing("jar-1", "cookie jar", "brown"), RED)
    hear(mind, text)
    assert "Ann, shall I open the cookie jar?" in hear(mind, "Open the jar.", 2.0, "Ben")
    assert planned(mind) == []


@pytest.mark.parametrize(
    "text",
    ["The coffee is for later.", "Nobody drinks the coffee.", "The coffee is mine.", "I am still drinking my coffee."],
)
def test_who_keeps_what_is_in_a_mug_keeps_the_mug_and_orders_none(text: str) -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "full", "coffee"), BLUE)
    hear(mind, text)
    assert (planned(mind), mind.questions, mind.kept) == ([], (), {"mug-1"})
    assert "Ann, shall I wash the red mug?" in hear(mind, "Pour the coffee away.", 2.0, "Ben")
    assert planned(mind) == []


@pytest.mark.parametrize(
    "text", ["I want everything clean.", "I need the red mug clean.", "I want it all nice and clean."]
)
def test_how_something_is_to_be_is_washed_for_and_hands_nothing_over(text: str) -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), BLUE, thing("apple-1", "apple", "green"))
    hear(mind, text)
    assert planned(mind) == WASHED


def test_who_says_why_a_thing_is_washed_changes_nothing() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), BLUE)
    hear(mind, "Wash the red mug.")
    hear(mind, "I need it clean.", 2.0)
    assert (planned(mind), mind.questions) == (WASHED, ())


@pytest.mark.parametrize(
    "ban", ["Keep the jar shut until I say so.", "Leave the jar shut for now.", "It stays closed."]
)
def test_what_is_to_stay_shut_is_opened_for_nobody_else(ban: str) -> None:
    mind = mind_with(thing("jar-1", "cookie jar", "brown"))
    hear(mind, ban)
    assert "Ann, shall I open the cookie jar?" in hear(mind, "Open the jar.", 2.0, "Ben")
    assert planned(mind) == []


def test_it_behind_whose_a_thing_is_means_that_thing_and_takes_nothing_from_a_coffee() -> None:
    mind = mind_with(RED, WHITE)
    hear(mind, "Make me a coffee in the white mug.")
    before = planned(mind)
    hear(mind, "The red one's my husband's, by the way. Nobody else gets to use it.", 2.0)
    assert (planned(mind), mind.kept) == (before, {"mug-1"})


@pytest.mark.parametrize("text", ["Wash the red mug. I need it clean.", "Wash the red mug. I want it nice and clean."])
def test_what_is_wanted_clean_is_that_thing_and_not_the_table(text: str) -> None:
    mind = mind_with(RED, WHITE)
    hear(mind, text)
    assert planned(mind) == [("rinse", "mug-1", "sink"), ("place", "mug-1", "countertop")]


@pytest.mark.parametrize("text", ["Careful, the banana! Stop!", "Careful, the banana!"])
def test_what_somebody_warns_of_takes_no_order_away_and_is_none(text: str) -> None:
    mind = mind_with(RED, BLUE, thing("banana-1", "banana", "yellow"))
    hear(mind, "Put the mugs on the shelf.")
    before = planned(mind)
    hear(mind, text, 2.0)
    assert (planned(mind), mind.kept) == (before, set())


def test_a_yes_answers_the_newest_of_two_questions_about_what_was_kept() -> None:
    mind = mind_with(thing("apple-1", "apple", "green"))
    hear(mind, "Don't touch the apple")
    hear(mind, "Put all the fruit in the sink", 2.0)
    hear(mind, "Put the apple in the bin", 3.0)
    hear(mind, "Yes", 4.0)
    assert planned(mind) == [("place", "apple-1", "bin")]


def test_where_mugs_go_is_done_and_remembered() -> None:
    mind = mind_with(RED)
    hear(mind, "The mugs go on the shelf")
    assert planned(mind) == [("place", "mug-1", "shelf")]
    assert mind.habits == {"mug": "shelf"}
    told_once = mind_with(RED)
    hear(told_once, "The mugs have to go in the sink")
    assert told_once.habits == {}  # an order for now


def test_an_order_that_is_given_twice_is_carried_out_once_and_asked_about_once() -> None:
    mind = mind_with(RED, thing("glass-1", "glass", "", "half full"))
    assert all(hear(mind, said) for said in ("Clear the table", "Tidy up", "Clear the table"))
    assert planned(mind) == [("place", "mug-1", "sink")]
    assert len(mind.questions) == 1


def test_what_is_put_away_later_is_answered_too() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug away")
    assert hear(mind, "Put the blue mug away", 2.0)
    assert planned(mind)[1:] == [("place", "mug-2", "sink")]


@pytest.mark.parametrize("said", ["Stell die rote Tasse auf das Tablett", "Ροβότ, βάλε την κούπα στον δίσκο"])
def test_an_order_in_another_language_is_answered_and_not_carried_out(said: str) -> None:
    mind = mind_with(RED)
    assert hear(mind, said) == in_another_language(said) != ""
    assert planned(mind) == []


def test_a_head_that_is_nodded_or_shaken_is_no_thing() -> None:
    mind = mind_with(RED)
    assert all(hear(mind, said) for said in ("Shake your head", "Could you nod your head, please?"))
    assert [skill for skill, _, _ in planned(mind)] == ["shake", "nod"]


def test_a_cup_is_a_mug_where_there_are_no_cups() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Could you put the red cup on the countertop?")
    assert planned(mind) == [("place", "mug-1", "countertop")]
    of_cups = mind_with(thing("cup-1", "cup", "red"), BLUE)
    hear(of_cups, "Put the cup on the tray")
    assert planned(of_cups) == [("place", "cup-1", "tray")]


def test_what_is_in_a_thing_is_told_with_how_full_it_is() -> None:
    mind = mind_with(thing("mug-white", "mug", "white", "half full", "coffee"))
    assert "half full of coffee" in hear(mind, "Is there still something in the white mug?")


CUPS = (RED, BLUE, thing("mug-3", "mug", "white"))


def filled(mind: Dialogue) -> dict[str, bool]:
    """The mugs that are to be filled, and whether with cream."""
    plan = planned(mind)
    mugs = dict.fromkeys(ident for skill, ident, place in plan if place == "coffee machine")
    return {ident: ("place", ident, "cream dispenser") in plan for ident in mugs}


@pytest.mark.parametrize(
    ("text", "mugs"),
    [
        ("A coffee for my brother, please, black.", {"mug-1": False}),
        ("I need a coffee. The blue mug will do, and skip the cream.", {"mug-2": False}),
        ("Could you get Otto a coffee? Of the other two mugs take the white one.", {"mug-3": True}),
        ("Two coffees, please, one with cream and one without.", {"mug-1": True, "mug-2": False}),
        ("Brew two coffees, one for me in the white one, one for Ben in the red mug, no cream for either.",
         {"mug-3": False, "mug-1": False}),
        ("Make coffee for me and Ben.", {"mug-1": True, "mug-2": True}),
        ("Coffee, blue mug, no cream.", {"mug-2": False}),
        ("Coffee for two, please.", {"mug-1": True, "mug-2": True}),
        ("A cup of coffee for Otto, please.", {"mug-1": True}),
        ("Instead of a coffee, hand me the blue mug.", {}),
        ("A coffee each for Ben and me. His without cream, mine with.", {"mug-1": False, "mug-2": True}),
        ("Two coffees. Cream in the blue one only.", {"mug-2": True, "mug-1": False}),
    ],
)  # fmt: skip
def test_every_part_of_a_coffee_that_is_said_belongs_to_it(text: str, mugs: dict[str, bool]) -> None:
    mind = mind_with(*CUPS)
    hear(mind, text)
    assert filled(mind) == mugs


@pytest.mark.parametrize(
    ("said", "mugs"),
    [
        ([("Ann", "In the white one, and hold the cream.")], {"mug-3": False}),
        ([("Ann", "Leave the cream out of it.")], {"mug-1": False}),
        ([("Ann", "Make it a black one.")], {"mug-1": False}),
        ([("Ann", "That's too much cream!")], {"mug-1": False}),
        ([("Ben", "The red mug is mine."), ("Ann", "The white one, then.")], {"mug-3": True}),
        ([("Ann", "Never mind."), ("Ann", "The white one.")], {}),
        ([("Ben", "Me too, please.")], {"mug-1": True, "mug-2": True}),
        ([("Ben", "And one for me in the white mug, black.")], {"mug-1": True, "mug-3": False}),
        ([("Ben", "Make that two.")], {"mug-1": True, "mug-2": True}),
        ([("Ben", "One for me too."), ("Ben", "No cream in mine."), ("Ann", "Is there cream in mine?")],
         {"mug-1": True, "mug-2": False}),
        ([("Ben", "No coffee for me, thanks.")], {"mug-1": True}),
        ([("Ann", "Forget the coffee.")], {}),
    ],
)  # fmt: skip
def test_what_is_said_of_a_coffee_afterwards_is_a_part_of_it(
    said: list[tuple[str, str]], mugs: dict[str, bool]
) -> None:
    mind = mind_with(*CUPS)
    hear(mind, "Make me a coffee.")
    for at_s, (who, text) in enumerate(said, 2):
        hear(mind, text, at_s, who)
    assert filled(mind) == mugs


def test_an_answer_to_an_offered_coffee_says_how_and_is_not_asked_again() -> None:
    mind = mind_with(RED, BLUE)
    assert hear(mind, "A cup of coffee would be lovely.").endswith("?")
    assert hear(mind, "Is that with cream?", 2.0) == "The coffee in the red mug is with cream."
    hear(mind, "In the blue one, and without, please.", 3.0)
    assert filled(mind) == {"mug-2": False}
    assert mind.questions == ()


@pytest.mark.parametrize(
    ("mugs", "text", "asked"),
    [
        ((thing("mug-1", "mug", "red", "dirty"), BLUE), "Coffee in the red mug, please.", "wash the red mug first"),
        ((thing("mug-1", "mug", "red", "full"), BLUE), "Coffee in the red mug, please.", "use the blue mug"),
        ((RED, BLUE), "I want a coffee in the green mug.", "I see no green mug. Shall I use the red mug?"),
        ((RED, thing("glass-1", "glass")), "A coffee in the glass, please.", "use the red mug"),
    ],
)  # fmt: skip
def test_a_mug_that_will_not_do_is_asked_about_and_not_replaced(
    mugs: tuple[SeenObject, ...], text: str, asked: str
) -> None:
    mind = mind_with(*mugs)
    assert asked in hear(mind, text)
    assert planned(mind) == []


def test_what_is_ordered_beside_a_coffee_is_done_before_or_behind_it() -> None:
    mind = mind_with(RED, BLUE, thing("apple-1", "apple", "green"))
    hear(mind, "Put the apple on the tray, then make me a coffee in the blue mug and bring me the red mug.")
    assert [one[1] for one in planned(mind)] == ["apple-1", *["mug-2"] * 5, "mug-1"]


def test_a_coffee_that_is_called_off_goes_to_the_table_and_stays_on_no_machine() -> None:
    held = Relation(subject="mug-1", relation="held by", object="robot")
    mind = mind_with(RED, BLUE)
    hear(mind, "Make me a coffee.")
    mind.origin = "cream dispenser"
    scene = mind.around.scene
    scene = Scene(things=scene.things, relations=(held,), kinds=scene.kinds, places=scene.places)
    mind.around = Surroundings(scene, mind.around.skills)
    hear(mind, "I don't want the coffee any more.", 3.0)
    assert planned(mind) == [("place", "mug-1", "table")]


DISHES = (
    thing("mug-1", "mug", "red", "dirty"), thing("mug-2", "mug", "blue"), thing("glass-1", "glass", "", "dirty"),
    thing("plate-1", "plate", "white", "dirty", width_m=0.2),
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Wash everything dirty.", "Rinse whatever is dirty, please.", "Could you clean all the dirty ones?",
        "The dirty things want washing.", "Would you mind rinsing it all?", "Give the lot on the table a quick wash.",
    ],
)  # fmt: skip
def test_what_is_to_be_washed_by_how_it_is_are_the_dirty_things(text: str) -> None:
    mind = mind_with(*DISHES)
    said = hear(mind, text)
    assert "The white plate is too wide" in said
    assert [one[1] for one in planned(mind) if one[0] == "rinse"] == ["mug-1", "glass-1"]


@pytest.mark.parametrize(
    "text",
    [
        "Empty the mugs, please.", "Pour both mugs out.", "Somebody's left coffee in these mugs. Tip it away!",
        "Tip the coffee out of the mugs.", "I've had enough of the coffee, pour it away.",
    ],
)  # fmt: skip
def test_to_empty_is_to_pour_out_what_holds_something_and_asks_no_more(text: str) -> None:
    mind = mind_with(
        thing("mug-1", "mug", "red", "half full", "coffee"), thing("mug-2", "mug", "blue", "full", "coffee"),
        thing("mug-3", "mug", "white"),
    )  # fmt: skip
    assert not hear(mind, text).endswith("?")
    assert {one[1] for one in planned(mind) if one[0] == "rinse"} == {"mug-1", "mug-2"}


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Rinse the red mug and put it on the shelf.", [("rinse", "mug-1", "sink"), ("place", "mug-1", "shelf")]),
        ("Give the red one a quick wash and stick it on the tray.",
         [("rinse", "mug-1", "sink"), ("place", "mug-1", "tray")]),
        ("Scrub the red mug.", [("rinse", "mug-1", "sink"), ("place", "mug-1", "countertop")]),
        ("Pop the glass on the side, it's in the way.", [("place", "glass-1", "countertop")]),
        ("Let's have the blue mug on the tray, shall we?", [("place", "mug-2", "tray")]),
        ("Take the blue mug off the table.", [("place", "mug-2", "sink")]),
        ("Do the dishes on the table and then open the jar.",
         [("rinse", "mug-1", "sink"), ("place", "mug-1", "countertop"), ("rinse", "glass-1", "sink"),
          ("place", "glass-1", "countertop"), ("open", "jar-1", "")]),
    ],
)  # fmt: skip
def test_an_order_in_the_kitchen_is_done_whole(text: str, plan: list[tuple[str, str, str]]) -> None:
    mind = mind_with(*DISHES, thing("jar-1", "cookie jar", "brown"))
    hear(mind, text)
    assert planned(mind) == plan


def test_a_thing_for_somebody_is_held_out_where_they_are_known_and_asked_about_where_not() -> None:
    there = mind_with(*DISHES, people=(SeenPerson(id="Otto", x_m=0.0, y_m=0.0),))
    hear(there, "Hand Otto the blue mug.")
    assert planned(there) == [("hand_over", "mug-2", "")]
    unknown = mind_with(*DISHES)
    assert hear(unknown, "Hand Otto the blue mug.").endswith("?")
    assert not planned(unknown)


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Bring me a mug. Which one? The blue one.", [("hand_over", "mug-2", "")]),
        ("Are you listening? Nod once.", [("nod", "", "")]),
    ],
)
def test_an_order_beside_a_question_is_done(text: str, plan: list[tuple[str, str, str]]) -> None:
    mind = mind_with(*DISHES)
    hear(mind, text)
    assert planned(mind) == plan


def test_it_behind_a_question_of_something_unseen_is_what_was_asked_about() -> None:
    mind = mind_with(*DISHES)
    said = hear(mind, "Is there a bowl? Bring it to me.")
    assert "Which" not in said
    assert all("mug" not in ident and "glass" not in ident for _, ident, _ in planned(mind))


def test_what_follows_a_deed_that_is_asked_about_waits_for_the_answer() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "half full"))
    assert hear(mind, "Wash the red mug and put it on the shelf.").endswith("pour it away?")
    assert planned(mind) == []
    hear(mind, "Yes.", 2.0)
    assert planned(mind) == [("rinse", "mug-1", "sink"), ("place", "mug-1", "shelf")]


def test_a_remark_on_how_a_dirty_thing_is_offers_to_wash_it() -> None:
    mind = mind_with(*DISHES)
    assert hear(mind, "That red mug is disgusting.") == "Shall I wash the red mug?"
    assert planned(mind) == []
    hear(mind, "Yes, please.", 2.0)
    assert planned(mind)[0] == ("rinse", "mug-1", "sink")


def test_an_order_without_its_thing_is_asked_for_it() -> None:
    mind = mind_with(*DISHES)
    assert mind.do(Intent("do", (Order("rinse"),)), to_ns(1.0), "Ann") == "What shall I wash?"
    assert planned(mind) == []


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Put everything on the table away.", [("place", "mug-1", "sink"), ("place", "mug-2", "sink")]),
        ("The red mug's mouldy, bin it.", [("place", "mug-1", "bin")]),
        ("Rinse the red mug. When that's done, put the blue one on the tray.",
         [("rinse", "mug-1", "sink"), ("place", "mug-1", "countertop"), ("place", "mug-2", "tray")]),
        ("Any chance of the blue mug?", [("hand_over", "mug-2", "")]),
        ("I'll wash the red one myself.", []),
    ],
)  # fmt: skip
def test_where_a_thing_is_and_who_does_it_is_told_from_what_is_to_be_done(
    text: str, plan: list[tuple[str, str, str]]
) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, text)
    assert planned(mind) == plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("There are crumbs on the table.", "Shall I wipe the table?"),
        ("The table's a bit sticky.", "Shall I wipe the table?"),
        ("The shelf looks nice.", "All right."),
        ("The mugs are on the table.", "I see."),
    ],
)
def test_a_remark_on_a_place_offers_to_wipe_it_and_praise_does_not(text: str, said: str) -> None:
    mind = mind_with(RED, BLUE, thing("sponge-1", "sponge", "yellow"))
    assert hear(mind, text) == said
    assert planned(mind) == []


def test_a_coffee_in_that_one_is_in_the_mug_that_was_spoken_of_or_in_none() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "The blue mug is mine.", 1.0, "Cara")
    assert "Cara said" in hear(mind, "Make me a coffee in that one.", 2.0, "Dan")
    assert planned(mind) == []


def test_a_mug_that_is_filled_is_filled_before_it_goes_elsewhere() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Make a coffee in the red mug, without cream.")
    hear(mind, "Put the red mug on the tray.", 2.0)
    assert planned(mind) == [
        ("place", "mug-1", "coffee machine"), ("wait_here", "mug-1", "coffee machine"), ("place", "mug-1", "tray"),
    ]  # fmt: skip


def test_a_mug_that_is_to_be_rinsed_first_is_not_asked_about() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), BLUE)
    assert not hear(mind, "A coffee, please. The red mug, rinsed first, no cream.").endswith("?")
    assert planned(mind)[0] == ("rinse", "mug-1", "sink")


def test_a_mug_that_was_offered_a_wash_before_the_coffee_gets_it() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"))
    hear(mind, "Make me a coffee.")
    hear(mind, "Yes, rinse it first.", 2.0)
    assert planned(mind)[0] == ("rinse", "mug-1", "sink")
    assert filled(mind) == {"mug-1": True}


def test_what_is_to_be_first_of_what_waits_is_so_at_once() -> None:
    mind = mind_with(*DISHES)
    hear(mind, "Wash everything dirty and put the blue mug on the tray.")
    reply = hear(mind, "Do the blue mug first, I need it.", 2.0)
    assert reply.startswith("All right. I go on: put the blue mug on the tray, then wash the red mug"), reply
    assert [one[1] for one in planned(mind)] == ["mug-2", "mug-1", "mug-1", "glass-1", "glass-1"]


OF_TWO = ("Jon", "The red mug is mine, and the blue one is Eva's.")


@pytest.mark.parametrize(
    ("who", "text", "mugs"),
    [
        ("Eva", "I'd love a coffee.", ["mug-2"]),
        ("Jon", "Brew me a coffee, would you?", ["mug-1"]),
        ("Jon", "Eva would like a coffee.", ["mug-2"]),
        ("Max", "Make me a coffee.", ["mug-3"]),
    ],
)
def test_a_coffee_goes_into_the_mug_of_who_is_to_have_it_and_never_into_anothers(
    who: str, text: str, mugs: list[str]
) -> None:
    mind = mind_with(*CUPS)
    hear(mind, OF_TWO[1], 1.0, OF_TWO[0])
    hear(mind, text, 2.0, who)
    assert list(filled(mind)) == mugs


def test_a_mug_of_ones_own_that_is_taken_already_is_said_so() -> None:
    mind = mind_with(*CUPS)
    hear(mind, OF_TWO[1], 1.0, OF_TWO[0])
    hear(mind, "Make me a coffee.", 2.0, "Eva")
    assert hear(mind, "In my own mug, of course.", 3.0, "Eva").startswith("All right, the coffee in the blue mug")
    assert list(filled(mind)) == ["mug-2"]


def test_an_own_mug_that_is_dirty_is_asked_about_and_no_other_is_taken() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty", owner="Eva"), BLUE)
    assert hear(mind, "Make me a coffee.", who="Eva") == "The red mug is dirty. Shall I wash the red mug first?"
    assert planned(mind) == []


def test_a_coffee_that_was_made_is_brought_by_its_name_and_anothers_only_with_leave() -> None:
    mind = mind_with(*CUPS)
    hear(mind, OF_TWO[1], 1.0, OF_TWO[0])
    hear(mind, "Make me a coffee.", 2.0, "Eva")
    for _ in range(5):
        finish(mind)
    assert {"Eva,", "Jon?"} <= {*hear(mind, "Could I have Eva's coffee?", 6.0, "Jon").split()}
    assert planned(mind) == []
    hear(mind, "No, he may not. Bring it to me.", 7.0, "Eva")
    assert planned(mind) == [("hand_over", "mug-2", "")]
    finish(mind)
    hear(mind, "Fetch it, would you? The coffee, I mean.", 8.0, "Eva")
    assert planned(mind) == [("hand_over", "mug-2", "")]


def test_what_is_nobodys_is_what_has_no_owner() -> None:
    mind = mind_with(*CUPS)
    hear(mind, OF_TWO[1], 1.0, OF_TWO[0])
    hear(mind, "The mug that belongs to nobody can go on the tray.", 2.0, "Eva")
    assert planned(mind) == [("place", "mug-3", "tray")]


@pytest.mark.parametrize("text", ["Clear the table onto the tray, please.", "Could you tidy the table onto the tray?"])
def test_a_table_is_cleared_to_the_place_that_is_named(text: str) -> None:
    mind = mind_with(thing("apple-1", "apple", "red"), thing("plate-1", "plate", "white", width_m=0.2))
    assert "The white plate is too wide" in hear(mind, text)
    assert planned(mind) == [("place", "apple-1", "tray")]


@pytest.mark.parametrize(
    "text", ["And what about the plate?", "Can you manage the plate?", "Are you able to carry the plate?"]
)
def test_what_is_too_wide_is_said_whatever_is_asked_of_it(text: str) -> None:
    mind = mind_with(thing("plate-1", "plate", "white", width_m=0.2), RED)
    said = hear(mind, text)
    assert "white plate is too wide" in said
    assert "Could you" in said
    assert planned(mind) == []


def test_what_is_not_there_is_refused_in_one_sentence() -> None:
    mind = mind_with(RED)
    said = hear(mind, "Get me some tea, would you?")
    assert said.count(".") == 1
    assert "'tea'" in said


@pytest.mark.parametrize("text", ["Put it on the tray afterwards.", "Then put it on the tray.", "Put it on the tray."])
def test_another_may_say_where_a_thing_goes_that_is_washed(text: str) -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), BLUE)
    hear(mind, "Rinse the red mug.", who="Jon")
    hear(mind, text, 2.0, "Eva")
    assert planned(mind) == [("rinse", "mug-1", "sink"), ("place", "mug-1", "tray")]


def holding(mind: Dialogue, ident: str) -> None:
    """The robot has it in its hand now."""
    scene, held = mind.around.scene, Relation(subject=ident, relation="held by", object="robot")
    relations = (held, *(one for one in scene.relations if one.subject != ident))
    scene = Scene(things=scene.things, relations=relations, kinds=scene.kinds, places=scene.places)
    mind.around = Surroundings(scene, mind.around.skills)


def test_a_coffee_that_nobody_takes_is_set_down_where_another_one_waits() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Make me a coffee.")
    hear(mind, "One for me too.", 2.0, "Ben")
    for _ in range(4):
        finish(mind)
    holding(mind, "mug-1")
    assert [mind.tick(to_ns(at_s)) for at_s in (10.0, 39.0)] == ["", ""]
    assert mind.tick(to_ns(40.0)).startswith("Nobody takes the red mug. I set the red mug down on the table")
    assert planned(mind)[:2] == [("place", "mug-1", "table"), ("place", "mug-2", "coffee machine")]


@pytest.mark.parametrize("text", ["Bring it here, would you? The coffee, I mean.", "Bring me my coffee, please."])
def test_a_coffee_that_is_held_out_elsewhere_is_brought_when_asked_for(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Make me a coffee.")
    for _ in range(4):
        finish(mind)
    holding(mind, "mug-1")
    hear(mind, "Where is my coffee?", 20.0)
    assert "I set the red mug down on the table" in hear(mind, text, 21.0)
    assert planned(mind) == [("place", "mug-1", "table")]


FRUIT = (thing("apple-1", "apple", "red"), thing("banana-1", "banana", "yellow"), thing("orange-1", "orange", "orange"))


@pytest.mark.parametrize(
    "text",
    [
        "Not the banana, though. It's mouldy, that one's for the bin.", "But not the banana, that belongs in the bin.",
        "The banana is for the bin.",
    ],
)  # fmt: skip
def test_what_is_not_to_go_here_and_is_for_elsewhere_goes_there(text: str) -> None:
    mind = mind_with(*FRUIT)
    hear(mind, "Put the fruit on the tray.")
    hear(mind, text, 2.0)
    assert sorted(planned(mind)) == [
        ("place", "apple-1", "tray"), ("place", "banana-1", "bin"), ("place", "orange-1", "tray"),
    ]  # fmt: skip


def test_what_stands_before_a_second_place_goes_there_with_the_rest_of_its_list() -> None:
    mind = mind_with(*FRUIT)
    hear(mind, "Put the apple on the tray and the banana and the orange on the shelf.")
    assert planned(mind) == [
        ("place", "apple-1", "tray"), ("place", "banana-1", "shelf"), ("place", "orange-1", "shelf"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("who", "text", "plan"),
    [
        ("Jon", "Take Eva her coffee, please.", [("hand_over", "mug-2", "")]),
        ("Jon", "Give Eva her coffee.", [("hand_over", "mug-2", "")]),
        ("Eva", "Don't touch my coffee.", []),
        ("Eva", "That was a lovely coffee.", []),
    ],
)
def test_a_coffee_that_was_made_is_no_wish_for_another(who: str, text: str, plan: list[tuple[str, str, str]]) -> None:
    mind = mind_with(*CUPS)
    hear(mind, OF_TWO[1], 1.0, OF_TWO[0])
    hear(mind, "Make me a coffee.", 2.0, "Eva")
    for _ in range(5):
        finish(mind)
    hear(mind, text, 6.0, who)
    assert planned(mind) == plan
    assert ("mug-2" in mind.kept) == ("touch" in text)


def test_a_coffee_ordered_beside_whose_a_mug_is_goes_into_it() -> None:
    mind = mind_with(*CUPS)
    hear(mind, "The white mug is mine. Make me a coffee, please.", who="Eva")
    assert list(filled(mind)) == ["mug-3"]


SPONGE_THERE = thing("sponge-1", "sponge", "yellow")


@pytest.mark.parametrize(
    "text",
    [
        "Skip the scrubbing, would you?", "Leave the wiping to us.", "Nora has said she will wipe it, so never mind.",
        "The table needs no wiping any more.", "We have wiped that already.", "Stop! No need to wipe the table.",
    ],
)  # fmt: skip
def test_a_deed_that_is_called_off_by_its_name_is_not_done_and_the_others_are(text: str) -> None:
    mind = mind_with(RED, SPONGE_THERE)
    hear(mind, "Rinse the red mug, then wipe the table.")
    assert hear(mind, text, 2.0).startswith("All right, I do not wipe the table.")
    assert [skill for skill, _, _ in planned(mind)] == ["rinse", "place"]


def test_how_a_thing_is_calls_nothing_off() -> None:
    mind = mind_with(RED, SPONGE_THERE)
    hear(mind, "Wipe the table.")
    hear(mind, "The table is not clean yet.", 2.0)
    assert planned(mind)[0][0] == "wipe"


@pytest.mark.parametrize("text", ["Yes, and then bring me the red mug.", "Yes please. And fetch me the red mug too."])
def test_a_yes_with_an_order_behind_it_is_both(text: str) -> None:
    mind = mind_with(RED, SPONGE_THERE)
    assert hear(mind, "There are crumbs on the table.").endswith("?")
    hear(mind, text, 2.0)
    assert [skill for skill, _, _ in planned(mind)] == ["wipe", "place", "hand_over"]


def test_which_one_with_an_order_behind_it_is_both() -> None:
    mind = mind_with(RED, BLUE, SPONGE_THERE)
    hear(mind, "Put the mug on the shelf.")
    hear(mind, "The blue one, and then wipe the table.", 2.0)
    assert [skill for skill, _, _ in planned(mind)] == ["place", "wipe", "place"]
    assert planned(mind)[0] == ("place", "mug-2", "shelf")


def test_a_question_about_something_else_stays_open_beside_a_new_order() -> None:
    mind = mind_with(RED, SPONGE_THERE)
    asked = hear(mind, "There are crumbs on the table.")
    assert hear(mind, "Put the red mug on the shelf.", 2.0).endswith(asked)
    hear(mind, "Yes.", 3.0)
    assert [skill for skill, _, _ in planned(mind)] == ["place", "wipe", "place"]


@pytest.mark.parametrize(
    "text", ["Now do the blue one.", "Could you do the blue mug next?", "Do you reckon you could do the blue one?"]
)
def test_to_do_another_one_is_what_was_done_with_the_first(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug on the shelf.")
    finish(mind)
    hear(mind, text, 6.0)
    assert planned(mind) == [("place", "mug-2", "shelf")]


JAR = thing("jar-1", "cookie jar", "brown")


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Put the red mug on the shelf and once that's done close the jar.", ["place mug-1", "close jar-1"]),
        ("Put the mugs on the shelf, will you? The blue one first.", ["place mug-2", "place mug-1"]),
        ("Put the mugs on the shelf, will you? The red one last.", ["place mug-2", "place mug-1"]),
        ("I'd like the blue mug rinsed and put on the shelf.", ["rinse mug-2", "place mug-2"]),
        ("Rinse the red mug and then do the blue one.", ["rinse mug-1", "place mug-1", "rinse mug-2", "place mug-2"]),
        ("Close the jar and wipe the table, in that order.", ["close jar-1", "wipe sponge-1", "place sponge-1"]),
        ("The blue mug is to be put on the tray.", ["place mug-2"]),
        ("That mug keeps wobbling, the blue one, it would be safer on the shelf.", ["place mug-2"]),
        ("Put whatever else is on the table on the tray.",
         ["place mug-1", "place mug-2", "place sponge-1", "place jar-1"]),
    ],
)  # fmt: skip
def test_what_is_said_in_one_breath_is_all_done_in_its_turn(text: str, plan: list[str]) -> None:
    mind = mind_with(RED, BLUE, SPONGE_THERE, JAR)
    hear(mind, text)
    assert [f"{skill} {ident}" for skill, ident, _ in planned(mind)] == plan


@pytest.mark.parametrize("text", ["No, on the tray.", "Wait, stop! Not on the shelf, the tray."])
def test_another_place_is_for_what_is_in_the_hand_and_what_waits_still_does(text: str) -> None:
    mind = mind_with(RED, JAR)
    hear(mind, "Put the red mug on the shelf and then close the jar.")
    holding(mind, "mug-1")
    hear(mind, text, 2.0)
    assert planned(mind) == [("place", "mug-1", "tray"), ("close", "jar-1", "")]


def test_it_behind_a_condition_is_what_the_condition_names() -> None:
    mind = mind_with(RED, BLUE, SPONGE_THERE)
    hear(mind, "Is the blue mug clean?")
    hear(mind, "Is the sponge wet?")
    hear(mind, "When the mug's clean, stick it on the tray, and after that wipe the table.", 2.0)
    assert [skill for skill, _, _ in planned(mind)] == ["place", "wipe", "place"]
    assert planned(mind)[0] == ("place", "mug-2", "tray")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("What'll be standing on the table then?", "The blue mug and the brown cookie jar will be on the table."),
        ("And what will be on the tray after that?", "The red mug will be on the tray."),
        ("How far have you got?", "My task is to put the red mug on the tray."),
        ("What's Rusty?", "The blue mug is called Rusty."),
        ("Would you want a biscuit?", "I am a robot"),
        ("My hearing isn't what it was. What did you say about the jar?", "Nothing of the brown cookie jar."),
        ("Really? Why not?", "Ann asked me to put the red mug on the tray."),
    ],
)
def test_a_question_is_answered_of_what_it_asks_and_nothing_beside_it_is(text: str, said: str) -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "The blue mug is called Rusty.")
    hear(mind, "Put the red mug on the tray.")
    assert hear(mind, text, 9.0).partition("; ")[0] == said


def test_mine_is_what_somebody_said_that_one_has() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Eve's drinking from the blue mug, so leave that one alone.")
    hear(mind, "Put the mugs in the sink.")
    assert hear(mind, "Why aren't you taking mine?", who="Eve").startswith("I leave the blue mug, as Ann said")
    assert "know" in hear(mind, "Which one is mine?", who="Eve")


@pytest.mark.parametrize("ban", ["Keep the jar shut until I say so.", "Nobody opens the jar before supper, all right?"])
def test_who_forbade_it_allows_it_and_is_not_asked_again(ban: str) -> None:
    mind = mind_with(RED, JAR)
    hear(mind, ban)
    assert "Ann, shall I" in hear(mind, "Robot, open the jar.", 2.0, "Ben")
    hear(mind, "You can open the jar now.", 3.0, "Ben")
    assert planned(mind) == []
    hear(mind, "Supper's over. You can open the jar for him now.", 4.0)
    assert planned(mind) == [("open", "jar-1", "")]
    finish(mind)
    hear(mind, "One's enough. Close it again, would you?", 6.0)
    assert planned(mind) == [("close", "jar-1", "")]


def test_a_name_and_an_owner_in_one_breath_are_both_kept() -> None:
    mind = mind_with(RED, BLUE)
    assert "is called Rusty" in hear(mind, "The blue mug is called Rusty. It belongs to Eve.")
    assert hear(mind, "What's Rusty, again?", 2.0) == "The blue mug is called Rusty. Eve owns it."


def test_a_coffee_moves_to_the_mug_that_an_owner_names_for_it_and_stays_as_it_was() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Could I get a coffee in the blue mug? No cream for me.")
    holding(mind, "mug-2")
    hear(mind, "Hey, that's my mug. Use the red one for her.", 3.0, "Ben")
    assert planned(mind) == [
        ("place", "mug-2", "table"), ("place", "mug-1", "coffee machine"), ("wait_here", "mug-1", "coffee machine"),
        ("hand_over", "mug-1", ""),
    ]  # fmt: skip
    assert hear(mind, "Whose is the blue mug?", 4.0) == "Ben owns the blue mug."


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Let's get cracking. Both mugs onto the tray, please.", [("mug-1", "tray"), ("mug-2", "tray")]),
        ("We have guests tonight! The blue mug on the shelf.", [("mug-2", "shelf")]),
        ("Now the blue mug, that goes on the tray too.", [("mug-2", "tray")]),
        ("The red mug can go in the sink, if it's clean.", [("mug-1", "sink")]),
        ("Put the red mug in the sink if it is dirty.", []),
        ("I'll do the jar later. You put the rest on the tray.", [("mug-1", "tray"), ("mug-2", "tray")]),
        ("You can throw out the rest, but not the jar.", []),
    ],
)
def test_what_is_said_beside_an_order_in_short_changes_nothing_of_it(text: str, plan: list[tuple[str, str]]) -> None:
    mind = mind_with(RED, BLUE, SPONGE_THERE, JAR)
    hear(mind, text)
    assert [(ident, place) for _, ident, place in planned(mind)] == plan


def test_which_of_any_is_meant_is_said_afterwards() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Give me a mug.")
    hear(mind, "The blue mug.", 2.0)
    assert planned(mind) == [("hand_over", "mug-2", "")]


def test_a_row_that_is_seen_aslant_has_its_turns_along_the_row() -> None:
    at = {"a": (-0.41, -0.50), "b": (-0.31, -0.65), "c": (-0.05, -0.50), "d": (0.03, -0.63)}
    kinds = {"a": "apple", "b": "mug", "c": "bottle", "d": "glass"}
    things = [thing(one, kinds[one], x_m=x, y_m=y) for one, (x, y) in at.items()]
    mind = mind_with(*things, people=(SeenPerson(id="Ann", x_m=1.75, y_m=-1.30),))
    assert hear(mind, "What's to the left of the mug?") == "That is the apple."
    assert hear(mind, "Is there something between the mug and the glass?") == "Between them: the bottle."
    assert hear(mind, "What is right of the glass?") == "There is nothing right of the glass."


@pytest.mark.parametrize("text", ["Wash the red mug first.", "It's still dirty. Wash the red mug first, please."])
def test_what_is_to_be_done_first_with_a_thing_comes_before_what_else_is(text: str) -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Put the jar on the tray, and then the red mug.")
    hear(mind, text, 3.0)
    assert planned(mind) == [("place", "jar-1", "tray"), ("rinse", "mug-1", "sink"), ("place", "mug-1", "tray")]


def test_what_is_full_is_asked_about_before_it_is_washed_first() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "full", "coffee"), BLUE)
    hear(mind, "Put the red mug on the tray.")
    assert "pour it away?" in hear(mind, "Wash it first, please.", 3.0)
    assert planned(mind) == [("place", "mug-1", "tray")]


def test_a_correction_takes_the_place_of_its_kind_and_of_nothing_else() -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Put the jar on the tray.")
    hear(mind, "The red mug goes there too.", 2.0)
    hear(mind, "Stop, stop, I meant the blue mug!", 3.0)
    assert planned(mind) == [("place", "jar-1", "tray"), ("place", "mug-2", "tray")]


def test_what_is_called_off_beside_a_question_or_an_order_is_off() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mugs on the tray.")
    assert hear(mind, "Never mind. Where is the red mug?", 2.0).endswith("The red mug is on the table.")
    assert planned(mind) == []
    assert hear(mind, "No matter. The red mug I'd rather have on the shelf.", 3.0)[-1] == "?"
    hear(mind, "Could you rinse the blue mug? Ah, forget it, I've done it.", 9.0)
    assert planned(mind) == []


def test_that_is_what_is_in_the_hand_of_several_that_go_there() -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Put the mugs in the sink.")
    holding(mind, "mug-1")
    hear(mind, "And rinse that, it's all sticky.", 3.0)
    assert planned(mind)[0] == ("rinse", "mug-1", "sink")
    assert [skill for skill, ident, _ in planned(mind) if ident == "mug-2"] == ["place"]


def test_an_order_for_another_thing_beside_an_open_question_is_not_lost_without_a_word() -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Put the mugs on the tray.")
    hear(mind, "Stop! The red mug.", 2.0)
    said = hear(mind, "Put the jar with them.", 3.0)
    assert planned(mind)[-1][1] == "jar-1" or "the jar" in said or "jar with them" in said


@pytest.mark.parametrize(
    "text", ["Pleeease, open it, he's not looking.", "Shh, I'm asleep. You couldn't sing, could you?"]
)
def test_what_is_drawn_out_or_hushed_is_answered_too(text: str) -> None:
    mind = mind_with(RED, JAR)
    hear(mind, "Keep the jar shut until I say so.")
    hear(mind, "Robot, open the jar.", 2.0, "Ben")
    assert hear(mind, text, 3.0, "Ben") != ""
    assert planned(mind) == []


@pytest.mark.parametrize(
    "text",
    [
        "And once all of that is done, open the jar.", "Once that is all finished, open the jar.",
        "As soon as it's all tidied up, open the jar.", "Right after the plates, open the jar.",
        "Open the jar, but not before Ben is here.",
    ],
)  # fmt: skip
def test_an_order_behind_what_nobody_ordered_is_asked_about_and_not_done_at_once(text: str) -> None:
    mind = mind_with(RED, JAR)
    assert hear(mind, text).endswith("?")
    assert planned(mind) == []


@pytest.mark.parametrize("text", ["After the news, open the jar.", "Open the jar, but not before the mug is dry."])
def test_a_condition_that_nobody_can_tell_neither_turns_nor_holds_what_is_under_way(text: str) -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Put the blue mug on the tray.")
    hear(mind, text, 3.0)
    assert planned(mind) == [("place", "mug-2", "tray")]


def test_what_is_added_to_words_that_nobody_understood_is_added_to_no_order_before_them() -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Bring me the red mug.")
    hear(mind, "Would Tom fit on the shelf, and the jar too?", 3.0)
    assert planned(mind) == [("hand_over", "mug-1", "")]


def test_who_says_what_hers_is_called_owns_it_and_its_name_is_known() -> None:
    mind = mind_with(RED, BLUE)
    assert hear(mind, "My blue mug's called Shorty, by the way.") == "All right, the blue mug is called Shorty."
    hear(mind, "Could Shorty go on the tray, and then the red one as well?", 3.0)
    assert planned(mind) == [("place", "mug-2", "tray"), ("place", "mug-1", "tray")]
    assert hear(mind, "Whose is Shorty?", 4.0, "Ben") == "Ann owns the blue mug."


@pytest.mark.parametrize(
    "text",
    ["Not the tray, put it on the shelf.", "No, not the tray, it goes on the shelf.", "Not the tray, the shelf.",
     "Not onto the tray with it, onto the shelf."],
)  # fmt: skip
def test_a_place_that_is_not_meant_gives_way_to_the_one_that_is_and_the_thing_is_not_left(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug on the tray.")
    hear(mind, text, 3.0)
    assert planned(mind) == [("place", "mug-1", "shelf")]
    assert mind.kept == set()


@pytest.mark.parametrize("text", ["Not the tray!", "But not the tray, please.", "Not the tray with that, please."])
def test_a_place_that_is_not_meant_holds_what_goes_there_until_another_is_said(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug on the tray.")
    assert hear(mind, text, 3.0).endswith("?")
    assert [one.holds for one in mind.questions] == [True]
    hear(mind, "On the shelf.", 5.0)
    assert planned(mind) == [("place", "mug-1", "shelf")]


def test_what_holds_the_work_is_told_when_a_stop_is_lifted() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mugs on the tray.")
    asked = mind.ask_which(mind.refs((RED, BLUE)), to_ns(2.0))
    guard = mind.around
    mind.around = replace(guard, is_stopped=True)
    hear(mind, "Careful!", 10.0)
    assert hear(mind, "It's all right, carry on.", 20.0) == ""
    mind.around = replace(guard, is_stopped=False)
    assert mind.see(to_ns(20.5)).endswith(f": {asked}")


def test_one_of_several_is_one_that_nobody_keeps() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "The red mug's mine, and nobody else gets it.", 1.0, "Ben")
    assert "?" not in hear(mind, "Bring me one of the mugs.", 3.0)
    assert planned(mind) == [("hand_over", "mug-2", "")]


def test_what_is_asked_of_a_thing_that_nobody_ordered_holds_no_other_and_its_taker_is_believed() -> None:
    plate = thing("plate-1", "plate", "white", "dirty", width_m=0.16)
    mind = mind_with(RED, BLUE, plate, thing("sponge-1", "sponge", "yellow"))
    hear(mind, "Put the mugs on the tray.")
    assert "too wide" in hear(mind, "And what about the plate?", 3.0)
    assert "leave the white plate" in hear(mind, "I'll take that one over myself.", 5.0)
    assert "plate" not in hear(mind, "Then give the table a wipe.", 7.0)
    assert [ident for _, ident, _ in planned(mind)][:2] == ["mug-1", "mug-2"]


def test_it_is_what_was_answered_last_and_not_what_somebody_was_asked_to_move_before() -> None:
    orange = thing("orange-1", "orange", "orange", x_m=0.6)
    plate = thing("plate-1", "plate", "white", width_m=0.16)
    mind = mind_with(plate, thing("apple-1", "apple", "red", x_m=0.9), orange)
    hear(mind, "Put the plate in the sink.", 1.0, "Ben")
    hear(mind, "Take the orange.", 3.0, "Ben")
    holding(mind, "orange-1")
    hear(mind, "Where is the apple?", 13.0, "Ben")
    hear(mind, "Can I have it, please?", 15.0)
    assert ("hand_over", "apple-1", "") in planned(mind)
    assert ("hand_over", "orange-1", "") not in planned(mind)


def test_what_stands_where_it_was_to_go_is_not_told_as_still_to_do() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug on the tray.")
    see(mind, scene_of(RED, BLUE, at="tray"), 4.0)
    assert "red mug" not in hear(mind, "What have you still got to do?", 4.5)


def test_how_long_it_takes_is_not_known_and_what_is_to_be_done_is_told() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the mugs on the tray.")
    told = hear(mind, "How much longer will it take?", 3.0)
    assert "cannot tell" in told
    assert "red mug" in told


def test_him_is_who_has_spoken_and_is_not_asked_for() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Hello, robot.", 1.0, "Ben")
    hear(mind, "Give him the red mug.", 2.0)
    assert planned(mind) == [("hand_over", "mug-1", "")]


def test_what_is_to_be_done_before_anything_else_is_done_and_what_comes_behind_it_is_kept() -> None:
    mind = mind_with(RED, BLUE, thing("sponge-1", "sponge", "yellow"))
    assert "?" not in hear(mind, "Wipe the table before you do anything else. Then the red mug goes on the shelf.")
    assert [skill for skill, *_ in planned(mind)] == ["wipe", "place", "place"]
    hear(mind, "Actually, do the mug first.", 3.0)
    assert [ident for _, ident, _ in planned(mind)] == ["mug-1", "sponge-1", "sponge-1"], "the wiping is not lost"


def test_a_chore_of_which_nothing_is_left_is_not_promised() -> None:
    mind = mind_with(RED, BLUE)
    assert not hear(mind, "Clear the table, but leave the mugs.").startswith("Sure.")
    assert planned(mind) == []


def test_all_but_what_has_something_in_it_is_cleared_away() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "half full", "tea"), BLUE, thing("apple-1", "apple", "green"))
    hear(mind, "Clear the table, will you, but leave anything with tea in it.")
    assert {ident for _, ident, _ in planned(mind)} == {"mug-2", "apple-1"}


def test_it_is_all_of_what_was_told_by_how_it_is() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "dirty"), thing("mug-1", "mug", "red", "dirty"), BLUE)
    hear(mind, "See the dirty stuff on the table? Rinse it, please.")
    assert [ident for skill, ident, _ in planned(mind) if skill == "rinse"] == ["glass-1", "mug-1"]


def test_what_is_only_named_beside_a_ban_is_asked_about_and_not_dropped() -> None:
    mind = mind_with(thing("glass-1", "glass", "", "dirty"), thing("mug-1", "mug", "red", "dirty"), JAR)
    hear(mind, "Wash the mug.")
    assert hear(mind, "The glass and the mug, yeah. Don't touch the jar.", 3.0).endswith(
        "Shall I wash the glass as well?"
    )
    assert "jar-1" in mind.kept
    hear(mind, "Yes.", 4.0)
    assert [ident for skill, ident, _ in planned(mind) if skill == "rinse"] == ["mug-1", "glass-1"]


def test_what_is_promised_while_a_question_holds_the_work_says_so() -> None:
    mind = mind_with(RED, BLUE, JAR)
    hear(mind, "Put the mugs on the tray.")
    asked = hear(mind, "Hm, the blue one ...", 3.0)
    assert hear(mind, "And the jar on the shelf.", 5.0).endswith(f": {asked}")


@pytest.mark.parametrize("text", ["No no, stop, the red one!", "Stop! I meant the red mug."])
def test_a_coffee_in_another_mug_is_filled_and_handed_over_as_the_first_was_to_be(text: str) -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Can you do me a coffee in the blue mug?")
    steps = [(skill, place) for skill, _, place in planned(mind)]
    hear(mind, text, 3.0)
    assert [(skill, place) for skill, _, place in planned(mind)] == steps
    assert {ident for _, ident, _ in planned(mind)} == {"mug-1"}


def test_what_the_robot_asks_is_answered_beside_a_stop_and_nothing_else_is_asked() -> None:
    mind = mind_with(RED, BLUE, JAR)
    assert hear(mind, "Take the one on the left over to the sink.")[-1] == "?"
    hear(mind, "Stop, sorry, I meant the other one, the blue one.", 3.0)
    assert planned(mind) == [("place", "mug-2", "sink")]


def test_going_on_with_orders_beside_it_keeps_each_of_them() -> None:
    mind = mind_with(RED, JAR)
    hear(mind, "Put the jar on the tray.")
    holding(mind, "jar-1")
    mind.around = replace(mind.around, is_stopped=True)
    hear(mind, "Stop! That goes back on the shelf.", 3.0)
    hear(mind, "Carry on, jar back on the shelf, and then bring me the red mug.", 6.0)
    assert planned(mind) == [("place", "jar-1", "shelf"), ("hand_over", "mug-1", "")]


def test_who_ordered_it_otherwise_lets_another_have_it() -> None:
    mind = mind_with(RED, BLUE)
    hear(mind, "Put the red mug in the sink.", 1.0, "Ben")
    assert hear(mind, "Can I have the red one after all?", 3.0)[-1] == "?"
    hear(mind, "She can have it.", 5.0, "Ben")
    assert planned(mind) == [("hand_over", "mug-1", "")]


def test_only_the_nod_and_the_yes_of_who_was_asked_pours_it_away() -> None:
    glass = thing("glass-1", "glass", "", "half full")
    mind = mind_with(glass)
    hear(mind, "Good morning", who="Ben")
    assert sentence("kitchen.shall_pour") in hear(mind, "Put the glass in the sink")
    hear(mind, "Go on.", 2.0, "Ben")
    for second, who in ((4.0, "Ben"), (8.0, "Ann")):
        assert planned(mind) == []
        see(mind, scene_of(glass, people=(SeenPerson(id=who, x_m=0.0, y_m=-1.3, gesture="nod"),)), second)
    assert planned(mind) != []


@pytest.mark.parametrize("first", ["Put the red mug on the tray.", "Where is the red mug?", "The red mug is mine."])
@pytest.mark.parametrize("wish", ["Make me a coffee in it.", "Make a coffee in it, please.", "A coffee in that one."])
def test_a_coffee_in_it_is_in_the_mug_that_was_named_clean_or_not(first: str, wish: str) -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), BLUE)
    hear(mind, first)
    assert hear(mind, wish, 2.0) == "The red mug is dirty. Shall I wash the red mug first?"
    hear(mind, "Yes.", 3.0)
    assert [one for one in planned(mind) if one[0] in ("rinse", "wait_here")][:2] == [
        ("rinse", "mug-1", "sink"), ("wait_here", "mug-1", "coffee machine")
    ]  # fmt: skip


def test_cream_in_it_is_in_the_coffee() -> None:
    mind = mind_with(thing("mug-1", "mug", "red", "dirty"), BLUE)
    hear(mind, "Put the red mug on the tray.")
    assert "in the blue mug" in hear(mind, "Make me a coffee with cream in it.", 2.0)
