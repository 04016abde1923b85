"""Claims about `nodes/vlm/choice/next_action.py` and `nodes/vlm/memory.py`."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from nodes.msgs import Action, Reference, Relation, SeenObject, Subtask, aimed_at
from nodes.policy.hand_over import HAND_OVER
from nodes.sim.world.world_file import load_world, seen_place
from nodes.vlm.choice.giving_up import LOOKS_TO_BE_SURE, MOST_TRIES
from nodes.vlm.choice.next_action import MappedRoom, decide
from nodes.vlm.choice.situation import Situation
from nodes.vlm.choice.things import GAZES, destination, wanted
from nodes.vlm.memory import Known, believed, update, without
from tests.support.sentences import sentence

CUPS = Subtask(
    id="task-1.0",
    text="Put every cup in the bin",
    state="work",
    skill="place",
    things=(Reference(label="cup", count=0),),
    relation="in",
    place="bin",
)


def thing(colour: str, label: str = "cup", x: float = 0.0, y: float = -0.5, confidence: float = 0.9) -> SeenObject:
    return SeenObject(
        label=label, colour=colour, x_m=x, y_m=y, z_m=0.55, width_m=0.26 if label == "bin" else 0.07, height_m=0.1,
        u_px=0, v_px=0, confidence=confidence, is_place=label == "bin",
    )  # fmt: skip


BIN = thing("teal", "bin", x=0.66, y=-0.58)
BLUE, RED, GREEN = thing("blue", x=0.0), thing("red", x=0.2), thing("green", x=-0.3)
TABLE = (BIN, BLUE, RED, GREEN)


def picking(target: SeenObject) -> Action:
    return Action(id="vlm-1", skill="pick", arguments=aimed_at(target))


BUSY = Situation(subtask=CUPS, objects=TABLE, looks=1)


def test_nothing_is_done_without_a_subtask() -> None:
    assert decide(Situation(objects=TABLE)).skill == "keep"
    assert decide(Situation(objects=TABLE)).progress == "idle"


def test_the_nearest_cup_is_announced_and_picked() -> None:
    chosen = decide(BUSY)
    assert (chosen.skill, chosen.target, chosen.say) == ("pick", BLUE, "I will pick up the blue cup.")


def test_other_kinds_and_things_in_the_bin_are_not_wanted() -> None:
    inside = thing("yellow", x=0.70, y=-0.55)
    now = replace(BUSY, objects=(*TABLE, thing("brown", "bottle", x=0.05), inside))
    assert wanted(now) == (BLUE, RED, GREEN)


def test_everything_is_wanted_when_no_kind_is_named() -> None:
    bottle = thing("brown", "bottle", x=0.05)
    task = Subtask(
        id="t",
        text="",
        state="work",
        skill="place",
        things=(Reference(label="*", count=0),),
        relation="in",
        place="bin",
    )
    assert set(wanted(Situation(subtask=task, objects=(BIN, RED, bottle)))) == {RED, bottle}


def test_a_pick_under_way_goes_on() -> None:
    assert decide(replace(BUSY, doing=picking(GREEN))).skill == "keep"


def test_a_veto_changes_the_pick_under_way() -> None:
    chosen = decide(replace(BUSY, doing=picking(BLUE), vetoed=(Reference(label="cup", colour="blue"),)))
    assert (chosen.skill, chosen.target) == ("pick", RED)


def test_what_the_planner_excludes_is_not_touched_either() -> None:
    task = Subtask(
        id="t",
        text="",
        state="work",
        skill="place",
        things=(Reference(label="cup", count=0),),
        relation="in",
        place="bin",
        excluding=(Reference(label="cup", colour="blue"),),
    )
    assert decide(replace(BUSY, subtask=task)).target == RED


def test_a_colour_asked_for_comes_first_and_changes_the_pick_under_way() -> None:
    chosen = decide(replace(BUSY, doing=picking(BLUE), preferred="green"))
    assert (chosen.skill, chosen.target) == ("pick", GREEN)


def test_what_is_held_goes_in_the_bin_once() -> None:
    now = replace(BUSY, holding=RED, doing=picking(RED), outcome="success")
    chosen = decide(now)
    assert (chosen.skill, chosen.target) == ("place", BIN)
    placing = Action(id="vlm-2", skill="place", arguments=aimed_at(BIN, "place"))
    assert decide(replace(now, doing=placing, outcome="running")).skill == "keep"
    assert decide(replace(now, doing=placing, outcome="failure")).skill == "place"


def test_a_vetoed_thing_in_the_gripper_goes_back() -> None:
    held = replace(BUSY, holding=BLUE, vetoed=(Reference(label="cup", colour="blue"),), objects=(BIN, RED))
    chosen = decide(held)  # the policy puts back what it holds before it picks another thing
    assert (chosen.skill, chosen.target, "back" in chosen.say) == ("pick", RED, True)
    assert decide(replace(held, doing=picking(RED))).skill == "keep"
    alone = decide(replace(held, objects=(BIN,)))
    assert (alone.skill, alone.target) == ("place", BLUE)
    returning = Action(id="vlm-2", skill="place", arguments=aimed_at(BLUE, "place"))
    assert decide(replace(held, objects=(BIN,), doing=returning)).skill == "keep"
    assert decide(replace(held, objects=(BIN,), doing=returning, outcome="failure")).skill == "place"


def test_a_stop_and_a_wait_for_a_plan_start_nothing() -> None:
    for now in (replace(BUSY, is_stopped=True), replace(BUSY, is_waiting=True)):
        assert (decide(now).skill, decide(now).progress) == ("keep", "held")


def test_a_failed_pick_is_tried_again_after_the_others_and_then_left() -> None:
    now = replace(BUSY, doing=picking(BLUE), outcome="failure", failures={"blue cup": 1})
    assert decide(now).target == RED
    only = replace(now, objects=(BIN, BLUE))
    assert decide(only).say == "I try the blue cup again."
    given_up = replace(only, failures={"blue cup": MOST_TRIES}, doing=None, looks=LOOKS_TO_BE_SURE)
    assert decide(given_up).progress == "failed"
    assert "blue cup" in decide(given_up).text


def test_it_looks_around_before_it_calls_the_subtask_finished() -> None:
    now = Situation(subtask=CUPS, objects=(BIN,))
    assert decide(now).skill == "look"
    looking = Action(id="vlm-1", skill="look", arguments=aimed_at(None))
    assert decide(replace(now, doing=looking)).skill == "keep"
    assert decide(replace(now, doing=looking, outcome="success", looks=1, is_looking_over=False)).skill == "keep"
    assert decide(replace(now, doing=looking, outcome="success", looks=1)).skill == "look"
    assert decide(replace(now, doing=looking, outcome="success", looks=LOOKS_TO_BE_SURE)).progress == "finished"


def test_a_bin_that_is_nowhere_fails_the_subtask() -> None:
    now = Situation(subtask=CUPS, objects=(RED,), looks=len(GAZES))
    assert (decide(now).progress, decide(now).say) == ("failed", "I cannot find the bin.")
    assert destination(now) is None


def test_a_finished_plan_holds_what_is_under_way() -> None:
    done = Subtask(id="t", text="", state="done")
    assert decide(Situation(subtask=done, objects=TABLE, doing=picking(RED))).skill == "hold"
    assert decide(Situation(subtask=done, objects=TABLE)).skill == "keep"


# --- memory


def never(_: SeenObject) -> bool:
    return False


def always(_: SeenObject) -> bool:
    return True


def see(*images: tuple[SeenObject, ...]) -> tuple[Known, ...]:
    known: tuple[Known, ...] = ()
    for image in images:
        known = update(known, image, never)
    return known


def test_one_sighting_is_not_believed() -> None:
    assert believed(see((RED,))) == ()
    assert [one.colour for one in believed(see((RED,), (RED,)))] == ["red"]


def test_what_is_hidden_is_remembered_and_what_is_gone_forgotten() -> None:
    known = see((RED, BIN), (RED, BIN))
    for _ in range(10):
        known = update(known, (), never)
    assert len(believed(known)) == 2
    for _ in range(3):
        known = update(known, (BIN,), lambda one: one.label == "cup")
    assert [one.label for one in believed(known)] == ["bin"]


def test_a_thing_seen_again_is_not_missed() -> None:
    known = see((RED,), (RED,))
    for _ in range(5):
        known = update(known, (), always)[:1]
        known = update(known, (RED,), always)
    assert len(known) == 1


def test_places_even_out_and_names_are_voted_on() -> None:
    known = see((RED,), (RED,), (thing("red", "bottle", x=0.22),))
    (seen,) = believed(known)
    assert seen.label == "cup"
    assert seen.x_m == pytest.approx(0.21)


def test_a_half_hidden_sighting_changes_nothing_but_the_time() -> None:
    known = see((RED,), (RED,), (thing("orange", "block", x=0.23, confidence=0.3),))
    (seen,) = believed(known)
    assert (seen.colour, seen.label, seen.x_m) == ("red", "cup", 0.2)


def test_a_thing_taken_away_is_forgotten() -> None:
    known = see((RED, BIN), (RED, BIN))
    assert [one.label for one in believed(without(known, RED))] == ["bin"]


RED_CUP = Subtask(
    id="task-2.0", text="Hand over the red cup", state="work", skill="hand_over",
    things=(Reference(label="cup", colour="red"),),
)  # fmt: skip
PALM = SeenObject(
    id="hand", label="hand", colour="", x_m=0.4, y_m=-0.6, z_m=0.68, width_m=0.0, height_m=0.0, u_px=0, v_px=0,
    is_place=True,
)  # fmt: skip
GIVING = Situation(subtask=RED_CUP, objects=TABLE, skills={"hand_over": HAND_OVER.spec})
GIVEN = replace(
    GIVING, moved=(RED,), doing=Action(id="vlm-3", skill="hand_over", arguments=aimed_at(PALM, "person")),
    outcome="success", objects=(BIN, BLUE, GREEN),
)  # fmt: skip


def test_what_is_to_be_given_is_picked_held_until_a_hand_is_seen_and_then_given() -> None:
    chosen = decide(GIVING)
    assert (chosen.skill, chosen.target) == ("pick", RED)
    assert decide(replace(GIVING, doing=picking(RED))).skill == "keep"
    held = replace(GIVING, holding=RED, doing=picking(RED), outcome="success", objects=(BIN, BLUE, GREEN))
    waiting = decide(held)
    assert (waiting.skill, waiting.say) == ("keep", sentence("vlm.offers", what="red cup"))
    giving = decide(replace(held, hand=PALM))
    assert (giving.skill, [(one.name, one.thing) for one in giving.arguments]) == ("hand_over", [("person", PALM)])


def test_nothing_is_given_while_a_person_is_asked_and_what_is_not_meant_goes_back_first() -> None:
    held = replace(GIVING, holding=BLUE, hand=PALM)
    assert decide(replace(held, holding=RED, is_unconfirmed=True)).skill == "keep"
    assert decide(held).say == "I put the blue cup back. I will pick up the red cup."
    vetoed = replace(held, holding=RED, vetoed=(Reference(label="cup", colour="red"),), objects=(BIN, BLUE))
    assert decide(vetoed).say == "I put the red cup back."


def test_a_hand_that_is_drawn_away_stops_the_arm_as_long_as_it_holds_the_thing() -> None:
    giving = Action(id="vlm-3", skill="hand_over", arguments=aimed_at(PALM, "person"))
    now = replace(GIVING, holding=RED, doing=giving, objects=(BIN, BLUE, GREEN), hand=PALM)
    for palm_m in (None, (PALM.x_m, PALM.y_m + 0.05, PALM.z_m)):  # hidden, or in part
        assert decide(replace(now, palm_m=palm_m)).skill == "keep"
    gone = replace(now, palm_m=(PALM.x_m, PALM.y_m - 0.2, PALM.z_m))
    assert decide(gone).skill == "hold"
    assert decide(replace(gone, is_grasping=False)).skill == "keep"


def test_given_is_what_is_not_seen_to_have_fallen() -> None:
    assert decide(replace(GIVEN, is_looking_over=False)).progress == "working"
    assert decide(GIVEN).progress == "finished"
    fallen = decide(replace(GIVEN, objects=(BIN, BLUE, GREEN, thing("red", x=0.38, y=-0.62))))
    assert (fallen.progress, fallen.text) == ("failed", sentence("vlm.fell_from_hand", what="red cup"))


def test_one_thing_is_given_at_a_time_and_the_others_are_told() -> None:
    every = msgspec.structs.replace(RED_CUP, things=(Reference(label="cup", count=0),))  # type: ignore[type-var]  # a Struct
    told = decide(replace(GIVEN, subtask=every))
    assert (told.progress, told.text) == ("failed", sentence("vlm.gives_one_thing", what="red cup"))


def test_without_a_hand_the_thing_is_kept_and_that_is_told() -> None:
    told = decide(replace(GIVING, holding=RED, failures={"hand": MOST_TRIES}))
    assert (told.progress, told.text) == ("failed", sentence("vlm.no_hand", what="red cup"))


LOOKED = replace(BUSY, objects=(BIN,), looks=len(GAZES) + 1, is_looking_over=True)


@pytest.mark.parametrize(
    ("now", "progress", "text"),
    [
        (replace(LOOKED, moved=(RED, BLUE)), "finished", "moved 2 of 2: the red cup, the blue cup"),
        (LOOKED, "finished", sentence("vlm.moved_nothing")),
        (
            replace(LOOKED, moved=(RED,), gone=(BLUE,)),
            "failed",
            "I do not find the blue cup any more; moved 1 of 2: the red cup",
        ),
        (
            replace(LOOKED, failures={"red cup": MOST_TRIES}, reasons={"red cup": "it slips"}),
            "failed",
            "I cannot get the red cup, because it slips; moved nothing",
        ),
    ],
)
def test_the_end_is_told_by_what_was_measured(now: Situation, progress: str, text: str) -> None:
    ended = decide(now)
    assert (ended.progress, ended.text) == (progress, text)


def test_what_left_its_place_is_looked_for_all_round_and_on_the_floor_before_it_is_given_up() -> None:
    now = replace(LOOKED, gone=(BLUE,), looks=LOOKS_TO_BE_SURE)
    assert decide(now).skill == "look"
    down = decide(replace(now, looks=len(GAZES)))
    assert (down.skill, down.target and down.target.z_m) == ("look", 0.0)
    assert decide(replace(now, looks=len(GAZES) + 1)).progress == "failed"


def test_what_is_not_meant_or_is_to_be_left_alone_may_go() -> None:
    now = replace(LOOKED, moved=(RED,), gone=(thing("brown", "bottle"), GREEN), vetoed=(Reference(colour="green"),))
    assert decide(now).progress == "finished"


KITCHEN = load_world("kitchen")
ROOM = MappedRoom(KITCHEN, lambda words, now: ((), False))
MUG = msgspec.structs.replace(thing("red", "mug"), id="mug-1")  # type: ignore[type-var]  # a Struct
SINK = seen_place("sink", KITCHEN.places["sink"], is_dirty=False)
MUG_TO_SINK = Subtask(
    id="task-3.0", text="Put the red mug in the sink", state="work", skill="place",
    things=(Reference(id="mug-1", label="mug", colour="red"),), relation="in", place="sink",
)  # fmt: skip


def test_a_robot_that_drives_goes_there_first_and_one_that_stands_does_the_same_without_that_step() -> None:
    held = Relation(subject="mug-1", relation="held by", object="robot")
    now = Situation(subtask=MUG_TO_SINK, objects=(MUG, SINK), base=KITCHEN.stand_for(MUG.x_m, MUG.y_m))
    assert decide(now, ROOM).skill == decide(now).skill == "pick"
    carrying = replace(now, relations=(held,), holding=MUG)
    there = replace(carrying, base=KITCHEN.stand_for(SINK.x_m, SINK.y_m))
    assert (decide(carrying, ROOM).skill, decide(carrying).skill) == ("drive", "place")
    assert decide(carrying, ROOM).say == "I drive to the sink."
    assert decide(there, ROOM).skill == "place"
    assert decide(there, ROOM).text == decide(carrying).text == "putting the red mug in the sink"


def test_what_is_under_way_is_gone_on_with_while_its_thing_wavers_and_not_once_that_was_moved() -> None:
    now = Situation(subtask=MUG_TO_SINK, objects=(MUG, SINK), base=KITCHEN.stand_for(MUG.x_m, MUG.y_m))
    for away_m, skill in ((0.05, "keep"), (0.2, "pick")):
        before = msgspec.structs.replace(MUG, x_m=MUG.x_m + away_m)  # type: ignore[type-var]  # a Struct
        assert decide(replace(now, doing=picking(before)), ROOM).skill == skill


def test_what_falls_into_its_place_is_not_picked_up_again_and_what_was_dropped_on_the_way_is() -> None:
    placing = Action(id="vlm-2", skill="place", arguments=aimed_at(SINK))
    for at, skill in ((SINK, "keep"), (MUG, "drive")):
        falling = msgspec.structs.replace(MUG, x_m=at.x_m, y_m=at.y_m, z_m=SINK.z_m + 0.2)  # type: ignore[type-var]  # a Struct
        base = KITCHEN.stand_for(SINK.x_m, SINK.y_m)
        now = Situation(subtask=MUG_TO_SINK, objects=(falling, SINK), base=base, doing=placing, outcome="running")
        assert decide(now, ROOM).skill == skill
