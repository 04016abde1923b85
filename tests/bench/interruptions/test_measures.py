"""The measures of the experiment, of a recording whose figures are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.interruptions.measures import Measures, measure, report_measures
from nodes.msgs import Interrupt, Reference, RobotState, Subtask, Utterance
from nodes.report.run import read_run
from nodes.report.summary import summarise
from nodes.robot.rest import REST_MPS, REST_RADPS, is_at_rest
from nodes.sim.messages import Interruption, ObjectTruth, Truth
from runtime.message import Message
from tests.support.standing import standing
from tests.support.synthetic_run import HELD_MS, REST_S, STOP_S, write_run

pytestmark = pytest.mark.long  # of a measurement, which no user's run depends on

More = tuple[float, str, Message]


def interruption(kind: str, *, wants: str = "cups but it") -> Interruption:
    return Interruption(
        scenario=f"{kind}-approach", kind=kind, moment="approach", text="Not the blue one", is_new_wording=False,
        thing="blue_cup", wants=wants, offset_s=1.0, phase="approach",
    )  # fmt: skip


def truth(
    *, blue_z_m: float = 0.55, is_binned: bool = False, red_z_m: float = 0.55, hand_n_s: float | None = None
) -> Truth:
    def cup(colour: str, z_m: float, is_in_bin: bool) -> ObjectTruth:
        return ObjectTruth(
            name=f"{colour}_cup", label="cup", colour=colour, x_m=0.0, y_m=-0.6, z_m=z_m, is_in_bin=is_in_bin
        )

    return Truth(
        objects=(cup("blue", blue_z_m, is_binned), cup("red", red_z_m, False)), touched=(), is_moving=True,
        robot_x_m=0.0, robot_y_m=0.0, robot_heading_rad=0.0,
        impulse_n_s=None if hand_n_s is None else {"hand": hand_n_s, "foot": 0.5},
    )  # fmt: skip


def measured(folder: Path, *more: More) -> Measures:
    return measure(read_run(write_run(folder, more=more)))


def retraction(folder: Path, *more: More) -> Measures:
    """The blue cup is being picked since 12.4 s, and retracted at 14 s; another action comes at 14.5 s."""
    return measured(folder, (14.0, "interruption", interruption("retraction")), *more)


def test_after_a_stop_the_time_to_held_and_to_rest(tmp_path: Path) -> None:
    found = measured(tmp_path, (STOP_S, "interruption", interruption("stop", wants="cups")))
    assert found["held_s"] == pytest.approx(HELD_MS * 1e-3)
    assert found["rest_s"] == pytest.approx(REST_S - STOP_S)
    assert found["waited_s"] == found["held_s"], "a person sees that it brakes"
    assert found["is_understood"] is True
    assert found["after_stop_m"] == 0.0, "the gripper of this recording stands still"


def test_rest_is_the_same_in_the_summary_and_in_the_experiment(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, more=[(STOP_S, "interruption", interruption("stop"))]))
    (stop,) = [one for one in summarise(run).interrupts if one.depth == "stop"]
    rest_s = measure(run)["rest_s"]
    assert isinstance(rest_s, float)
    assert stop.at_rest_ms == pytest.approx(rest_s * 1e3)


def test_after_a_retraction_the_first_action_and_plan_that_fit(tmp_path: Path) -> None:
    plan = Subtask(id="s9", text="", state="work", excluding=(Reference(label="cup", colour="blue"),))
    found = retraction(tmp_path, (14.2, "subtask", plan))
    assert found["act_s"] == pytest.approx(0.5)
    assert found["plan_s"] == pytest.approx(0.2)
    assert found["wasted_m"] == 0.0


def test_a_run_in_which_no_word_came_is_not_measured_and_tells_how_it_ended(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path))
    assert measure(run) == {"is_measured": False, "why_not": run.outcome[1]}
    run.end.clear()
    assert measure(run) == {"is_measured": False, "why_not": "nobody interrupted"}


def test_what_never_happened_is_none(tmp_path: Path) -> None:
    found = measured(tmp_path, (59.5, "interruption", interruption("retraction")))
    assert (found["act_s"], found["plan_s"], found["held_s"], found["rest_s"]) == (None, None, None, None)
    assert found["is_understood"] is False


@pytest.mark.parametrize(
    ("later", "harm"),
    [
        (truth(), set()),
        (truth(blue_z_m=0.60), {"is_wrong_lifted"}),
        (truth(blue_z_m=0.30, is_binned=True), {"is_wrong_binned"}),
        (truth(red_z_m=0.05), {"is_knocked_over"}),
    ],
)
def test_harm_is_what_happened_after_the_words_to_what_they_spared(
    tmp_path: Path, later: Truth, harm: set[str]
) -> None:
    found = retraction(tmp_path, (0.1, "sim/truth", truth()), (13.9, "sim/truth", truth()), (59.9, "sim/truth", later))
    kinds = {"is_wrong_lifted", "is_wrong_binned", "is_knocked_over"}
    assert {name for name in kinds if found[name]} == harm
    assert found["is_harm"] is bool(harm)


@pytest.mark.parametrize(
    ("told_n_s", "impulse_n_s"),
    [
        ([1.0, 1.0, 1.0], 0.0),
        ([1.0, 1.5, 4.0], 3.0),
        ([1.0, 3.0, 0.25], 2.0 + 0.25 + 0.5),  # a simulator that was started again begins at nothing, for the foot too
    ],
)
def test_the_impulse_on_hand_and_foot_is_what_came_from_a_second_before_the_words_on(
    told_n_s: list[float], impulse_n_s: float, tmp_path: Path
) -> None:
    times_s = (12.9, 13.5, 50.0)
    more = [(at_s, "sim/truth", truth(hand_n_s=n_s)) for at_s, n_s in zip(times_s, told_n_s, strict=True)]
    run = read_run(write_run(tmp_path, more=[(14.0, "interruption", interruption("hand", wants="cups")), *more]))
    run.truths.messages[:] = [one for one in run.truths.messages if one.message.impulse_n_s is not None]
    assert measure(run)["impulse_n_s"] == pytest.approx(impulse_n_s)


def test_a_recording_that_does_not_tell_of_impulses_has_none_and_all_other_measures(tmp_path: Path) -> None:
    found = measured(tmp_path, (14.0, "interruption", interruption("hand", wants="cups")))
    assert "impulse_n_s" not in found
    assert found["touched_s"] == 0.0


def test_what_was_lifted_before_the_words_is_no_harm(tmp_path: Path) -> None:
    lifted = truth(blue_z_m=0.60)
    found = retraction(tmp_path, (0.1, "sim/truth", truth()), (13.9, "sim/truth", lifted), (59.9, "sim/truth", lifted))
    assert found["is_harm"] is False


def test_an_interrupt_at_small_talk_is_a_false_reaction(tmp_path: Path) -> None:
    quiet = measured(tmp_path / "quiet", (20.0, "interruption", interruption("backchannel", wants="cups")))
    assert quiet["is_false_reaction"] is False
    raised = Interrupt(id="arm-1", depth="replan", text="Mhm", by="Sam")
    moved = measured(
        tmp_path / "moved",
        (20.0, "interruption", interruption("backchannel", wants="cups")),
        (20.0, "interrupt", raised),
    )
    assert moved["is_false_reaction"] is True


def test_words_and_questions_of_the_robot_are_counted(tmp_path: Path) -> None:
    found = retraction(tmp_path, (20.0, "said", Utterance(speaker="robot", text="Which one?")))
    assert found["questions"] == 1.0
    assert found["said"] == 4.0, "the question and what the recording holds after 14 s"


def test_a_person_waits_until_the_first_sign_of_having_been_heard(tmp_path: Path) -> None:
    assert retraction(tmp_path / "late")["waited_s"] == pytest.approx(0.4), "it speaks before it acts"
    spoke = retraction(tmp_path / "spoke", (14.3, "said", Utterance(speaker="robot", text="Not that one, then.")))
    assert spoke["waited_s"] == pytest.approx(0.3)


def test_image_ages_are_those_of_the_commands(tmp_path: Path) -> None:
    assert retraction(tmp_path)["image_age_p99_ms"] == pytest.approx(140.0)


def test_a_run_in_which_nobody_interrupted_says_why(tmp_path: Path) -> None:
    found = measured(tmp_path)
    assert found["is_measured"] is False
    assert found["why_not"]


def test_the_report_prints_summary_and_measures_as_one_object(tmp_path: Path, capsys: Any) -> None:
    recording = write_run(tmp_path, more=[(STOP_S, "interruption", interruption("stop"))])
    assert report_measures(recording, tmp_path) is True
    text = capsys.readouterr().out
    assert '"is_measured": true' in text
    assert '"is_success": true' in text


def moving(**changes: Any) -> RobotState:
    import msgspec

    state: RobotState = msgspec.structs.replace(standing(0), **changes)  # type: ignore[type-var]  # a Struct
    return state


def speeds(index: int, speed: float) -> tuple[float, ...]:
    return tuple(speed if number == index else 0.0 for number in range(8))


@pytest.mark.parametrize(
    ("index", "bound"), [(0, REST_MPS), (1, REST_MPS), (2, REST_RADPS), (5, REST_MPS), (7, REST_RADPS)]
)
def test_a_robot_rests_where_every_joint_is_slower_than_its_bound(index: int, bound: float) -> None:
    assert is_at_rest(moving(velocity=speeds(index, -bound)))
    assert not is_at_rest(moving(velocity=speeds(index, -bound - 1e-6)))


def test_a_joint_that_is_not_known_to_slide_turns() -> None:
    state = moving(velocity=(REST_RADPS, 0.0))
    assert is_at_rest(state, ("shoulder", "elbow"))
    assert not is_at_rest(state, ("lift", "elbow"))
