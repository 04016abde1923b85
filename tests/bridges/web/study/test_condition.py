"""What a condition does to the graph while its trial runs: what its file may say, and that all of it is undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridges.web.console.canned_phrases import Canned
from bridges.web.console.signing import RequestSigner
from bridges.web.study.condition import seat_problems
from bridges.web.study.effect import ConditionEffect
from bridges.web.study.protocol import Protocol, read_protocol
from bridges.web.study.session import Event, SessionProgress
from bridges.web.study.views import participant_view
from nodes.msgs import SeatRequest
from runtime.cli import main
from runtime.clock import to_ns
from runtime.coordination.lease import Lease
from runtime.errors import UserError
from runtime.run_facts import RunFacts
from tests.support.sentences import sentence

PROTOCOL = """
title = "Two ways"
[consent]
text = "A short study."
statements = ["I agree."]
[participant]
speak = true
[design]
conditions = "fixed"
[[task]]
id = "talk"
title = "Talking"
text = "Say hello."
[[condition]]
id = "wizard"
title = "A wizard"
{setting}
[[condition]]
id = "nothing"
title = "As it is"
"""
WIZARD = """
seats = { planner = "human_planner" }
utterances = "formal.toml"
participant = { speak = false }
"""


def protocol_of(folder: Path, setting: str = WIZARD) -> Protocol:
    (folder / "formal.toml").write_text('[[utterance]]\ntext = "At your service."\nkey = "1"\n')
    path = folder / "study.toml"
    path.write_text(PROTOCOL.format(setting=setting))
    return read_protocol(path)


class Run:
    """A session at its first trial, and a guard that does as it is told, or not."""

    def __init__(self, protocol: Protocol) -> None:
        self.progress = SessionProgress.of(protocol, Event("begin", 0.0, number=1))
        self.progress.apply(self.progress.consent(0.0, 1))
        self.events: list[Event] = []
        self.asked: list[SeatRequest] = []
        self.effect = self.a_new_effect()
        self.number = 0
        self.holds("planner")

    def a_new_effect(self) -> ConditionEffect:
        """As in a process that was started again."""
        return ConditionEffect(RequestSigner(RunFacts()), self.asked.append, self.note)

    def note(self, event: Event) -> None:
        self.events.append(event)
        self.progress.apply(event)

    def holds(self, holder: str) -> None:
        self.number += 1
        self.effect.learn(Lease(seat="planner", holder=holder, number=self.number))

    def start(self) -> None:
        self.progress.apply(self.progress.start(1.0, "x"))
        self.effect.begin(self.progress, 1.0, to_ns(1.0))

    def beat(self, at_s: float) -> bool:
        return self.effect.beat(self.progress, at_s, to_ns(at_s))

    @property
    def told(self) -> list[tuple[str, str, Any, str]]:
        return [(event.how, event.item, event.value, event.text) for event in self.events]


def test_a_seat_is_handed_over_for_the_trial_and_back_at_its_end(tmp_path: Path) -> None:
    run = Run(protocol_of(tmp_path))
    run.start()
    assert [(one.do, one.seat, one.holder, one.by) for one in run.asked] == [
        ("take", "planner", "human_planner", "study P01")
    ]
    run.holds("human_planner")
    assert not run.beat(5.0)
    run.progress.apply(run.progress.finish(6.0, "x", "completed"))
    run.beat(6.0)
    assert [one.holder for one in run.asked] == ["human_planner", "planner"]
    assert run.effect.why_not(run.progress) == sentence("bridges.seats_come_back")
    run.beat(6.5)
    assert len(run.asked) == 2  # the guard may take a moment
    run.holds("planner")
    run.beat(6.6)
    assert run.told == [("set", "planner", "human_planner", "planner"), ("undone", "planner", "planner", "planner")]
    assert [line["text"] for line in run.progress.lines] == [
        "planner to human_planner, instead of planner",
        "planner is planner's again",
    ]
    assert run.effect.why_not(run.progress) == ""


def test_a_trial_whose_condition_does_not_come_into_force_is_broken_off(tmp_path: Path) -> None:
    run = Run(protocol_of(tmp_path))
    run.start()
    assert not run.beat(3.9)
    assert run.beat(4.1)
    assert run.told[-1] == ("lost", "planner", "planner", "human_planner")
    assert not run.beat(4.2)  # once


def test_a_seat_that_is_taken_away_later_is_told_and_whoever_took_it_keeps_it(tmp_path: Path) -> None:
    run = Run(protocol_of(tmp_path))
    run.start()
    run.holds("human_planner")
    assert not run.beat(4.1)
    run.holds("me-123")
    assert not run.beat(5.0)
    assert run.told[-1] == ("lost", "planner", "me-123", "human_planner")
    assert run.effect.documents(run.progress) == [{"seat": "planner", "wanted": "human_planner", "now": "me-123"}]
    run.progress.apply(run.progress.finish(6.0, "x", "completed"))
    run.beat(6.0)
    assert len(run.asked) == 1
    assert run.progress.changed == {}


def test_after_a_kill_in_mid_trial_the_seat_goes_back_by_what_the_file_says(tmp_path: Path) -> None:
    run = Run(protocol_of(tmp_path))
    run.start()
    run.effect = run.a_new_effect()
    run.progress.apply(run.progress.finish(9.0, "x", "interrupted"))
    run.beat(9.0)
    assert len(run.asked) == 1  # nothing is known of the seat yet
    run.holds("human_planner")
    run.beat(9.1)
    assert run.asked[-1].holder == "planner"


def test_without_a_guard_the_trial_does_not_start(tmp_path: Path) -> None:
    run = Run(protocol_of(tmp_path))
    run.effect = run.a_new_effect()
    assert sentence("bridges.nobody_hands_out") in run.effect.why_not(run.progress)


def test_a_condition_may_change_what_the_participants_page_has_and_the_next_one_does_not(tmp_path: Path) -> None:
    protocol = protocol_of(tmp_path)
    run = Run(protocol)
    speaks = []
    for _ in protocol.condition:
        run.progress.apply(run.progress.start(1.0, "x"))
        speaks.append(participant_view(protocol, run.progress)["step"]["speak"])
        run.progress.apply(run.progress.finish(2.0, "x", "completed"))
    assert speaks == [False, True]


def test_the_consoles_sentences_are_the_conditions_while_it_lasts(tmp_path: Path) -> None:
    protocol = protocol_of(tmp_path)
    canned = Canned([{"text": "Hello", "as": "robot", "key": "1"}])
    canned.set(list(protocol.condition[0].canned(protocol.folder)))
    assert ([one["text"] for one in canned.now], canned.version) == (["At your service."], 2)
    canned.set([])
    assert ([one["text"] for one in canned.now], canned.version) == (["Hello"], 3)
    canned.set([])
    assert canned.version == 3


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('seats = { cook = "x" }', "seats has the unknown key 'cook'"),
        (
            'seats = { planner = "a b" }',
            sentence("bridges.seat_names_a_node", condition="wizard", seat="planner", holder="a b"),
        ),
        ('utterances = "no.toml"', f"no.toml: {sentence('bridges.no_such_file')}"),
        ("participant = { shout = true }", "[participant] has the unknown key 'shout'"),
        ("set = 3", "has the unknown key 'set'; did you mean 'seats'?"),
    ],
)
def test_what_is_not_understood_in_a_condition_is_told_when_the_file_is_read(
    setting: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as problem:
        protocol_of(tmp_path, setting)
    assert str(problem.value).startswith(f"{tmp_path / 'study.toml'}: ")
    assert words in str(problem.value)


def test_a_holder_that_the_graph_does_not_have_is_told_before_anything_moves(tmp_path: Path) -> None:
    conditions = protocol_of(tmp_path).condition
    where = "study.toml: [[condition]] wizard: seats.planner is 'human_planner'"
    assert seat_problems(conditions, {"planner": ("planner", "human_planner")}, "study.toml") == []
    assert seat_problems(conditions, {"planner": ("planner", "other")}, "study.toml") == [
        f"{where}; {sentence('bridges.no_candidate')} other, planner"
    ]
    assert seat_problems(conditions, {}, "study.toml") == [f"{where}, {sentence('bridges.no_seat', seat='planner')}"]


def test_the_check_of_a_launch_file_reads_the_protocol_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    protocol_of(tmp_path)
    file = tmp_path / "study.toml"
    asked = ["check", "study", "--set", f"study.protocol={file}"]
    assert main(asked) == 0
    file.write_text(file.read_text().replace("human_planner", "nobody"))
    assert main(asked) == 2
    assert f"{file}: [[condition]] wizard: seats.planner is 'nobody'; {sentence('bridges.no_candidate')} " in (
        capsys.readouterr().err
    )
    file.write_text("title = none")
    assert main(asked) == 2
    assert f"[nodes.study] {file}, line 1, column 9: is no TOML: Invalid value: title = none" in capsys.readouterr().err
