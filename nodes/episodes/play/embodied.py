"""An embodied episode in the same log: what a recording of the robot graph holds becomes turns, judged like any other.

Utterances on `heard` are the person's, those on `said` the robot's; what the robot's policy finished or failed at is an
act of the robot; an interrupt that cut it short is noted on the act. The log links the recording.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from nodes.episodes.play.runner import Judges, Settings, judge_and_keep
from nodes.episodes.results.card import card_of
from nodes.episodes.results.store import Store
from nodes.episodes.talk.plan import EpisodePlan
from nodes.episodes.talk.planning import plan_of_task
from runtime.bag import BagReader
from runtime.episode_msgs import ActKind, Outcome, Turn
from runtime.errors import UserError
from runtime.msgs import Action, Feedback, Interrupt, Utterance

_TOPICS = ("heard", "said", "action", "feedback", "interrupt")


def embody(asked: argparse.Namespace) -> int:
    """Write the run's file for one recording, and judge it."""
    import asyncio

    from nodes.episodes.minds.caller import Servers
    from nodes.episodes.results.show import episode_text, find_episode

    plan = embodied_plan(asked.task)
    turns, seconds = turns_of(asked.recording, plan)
    if not turns:
        raise UserError(f"{asked.recording}: nobody says or does anything in it")
    outcome = Outcome(
        episode=plan.id, state="done", reason=f"recorded: {seconds:.1f} s", turns=len(turns), seconds=round(seconds, 3)
    )
    path = asked.out or asked.recording.with_suffix(".sqlite")
    judges = Judges(("rules",))
    with Store.create(
        path, {"judges": list(judges.specs), "dimensions": msgspec.to_builtins(judges.dimensions)}
    ) as store:
        store.add([plan])
        store.set_card({**card_of([plan], judges.specs), "modalities": ["speech", "physical action"]})
        store.save_played(plan.id, turns, [], outcome)
        store.link_recording(plan.id, str(asked.recording))
        asyncio.run(judge_and_keep(plan, turns, store, Settings(Servers(), judges)))
        print(episode_text(store, find_episode(store, plan.id)))
    print(f"\nrun: {path}", file=sys.stderr)
    return 0


def embodied_plan(task: str) -> EpisodePlan:
    """The plan of a scenario with a robot in it. Raises UserError for one without."""
    plan = plan_of_task(task, order="asynchronous", mode="AGENTS", max_turns=1000)
    if plan.robot_seat is None:
        raise UserError(f"task {task!r} has no robot in it; expected one of the embodied scenarios")
    agents = tuple("robot" if seat == plan.robot_seat else "person" for seat in range(len(plan.names)))
    return msgspec.structs.replace(plan, agents=agents, id=f"{plan.task}-embodied")


def turns_of(recording: Path, plan: EpisodePlan) -> tuple[list[Turn], float]:
    """The acts in a recording by time, and how long it lasts. Raises RecordingError where it cannot be read."""
    assert plan.robot_seat is not None
    robot = plan.names[plan.robot_seat]
    people = [name for name in plan.names if name != robot]
    found: list[tuple[int, str, ActKind, str, str]] = []
    doing: dict[str, str] = {}
    cut = ""
    first_ns = last_ns = 0
    for message in BagReader(recording):
        ns = message.log_time_ns
        first_ns, last_ns = first_ns or ns, max(last_ns, ns)
        if message.topic not in _TOPICS:
            continue
        ns = message.envelope.published_ns
        if message.topic in ("heard", "said"):
            said = message.message(Utterance)
            speaker = robot if message.topic == "said" else _person(said.speaker, people)
            found.append((ns, speaker, "speak", said.text, ""))
        elif message.topic == "action":
            action = message.message(Action)
            for text in doing.values():  # a new action replaces the one under way
                found.append((ns, robot, "action", text + " (broken off)", cut))
            doing.clear()
            cut = ""
            doing[action.id] = action.text or f"{action.skill} {_thing(action)}".strip()
        elif message.topic == "interrupt":
            interrupt = message.message(Interrupt)
            cut = f"interrupted by {interrupt.by}: {interrupt.text}" if interrupt.depth != "resume" else cut
        else:
            feedback = message.message(Feedback)
            if feedback.status != "running" and feedback.action_id in doing:
                text = doing.pop(feedback.action_id)
                failed = feedback.status == "failure"
                note = cut or (feedback.why if failed else "")
                found.append((ns, robot, "action", text + (" (failed)" if failed else ""), note if failed else ""))
                cut = ""
    start_ns = min((ns for ns, *_ in found), default=0)
    turns = [
        Turn(
            index=index,
            number=index + 1,
            speaker=speaker,
            kind=kind,
            argument=text,
            at_s=round((ns - start_ns) * 1e-9, 3),
            note=note,
        )
        for index, (ns, speaker, kind, text, note) in enumerate(sorted(found, key=lambda one: one[0]))
    ]
    return turns, (last_ns - first_ns) * 1e-9


def _person(speaker: str, people: list[str]) -> str:
    """The participant that a speaker is: by name where it fits, else the first one."""
    for name in people:
        if speaker.casefold() in (name.casefold(), name.split()[0].casefold()):
            return name
    return people[0]


def _thing(action: Action) -> str:
    return f"the {action.target.colour} {action.target.label}" if action.target is not None else ""
