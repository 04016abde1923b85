"""`episodes embody`: a scenario with a robot, played by the robot graph, beside the same as text, under any judges.

What a recording of the robot graph holds becomes turns, judged like any other. Utterances on `heard` are the person's,
those on `said` the robot's; what the robot's policy finished or failed at is an act of the robot; an interrupt that cut
it short is noted on the act. The log links the recording.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import msgspec
from msgspec import to_builtins

from nodes.episodes.commands.asked import judges_of, playing_of, servers_of, settings_of, summary_of, tells_missing
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.dialogue.prompt import background_text
from nodes.episodes.evaluation.dimensions import mean_scores
from nodes.episodes.results.card import card_of
from nodes.episodes.results.run_file import check_is_new, to_json
from nodes.episodes.results.show import episode_text, find_episode, print_json
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import judge_unjudged, play_and_keep
from nodes.episodes.scenarios.library import Library, library_of, starter
from nodes.mcap.file import BagReader
from nodes.mcap.parts import zero_ns_of
from nodes.msgs import Action, Feedback, Interrupt, Utterance
from nodes.msgs.episode import ActKind, Outcome, Turn
from runtime.clock import to_s, wall_time_text
from runtime.command_line.arguments import unique_path
from runtime.command_line.columns import columns, or_dash
from runtime.errors import PolyrhythmError, UserError, choices

EARLIER = "earlier"
"""Who says the order that the robot had before anybody of the scenario was there."""
_TOPICS = ("heard", "said", "action", "feedback", "interrupt")


def play_body(
    plan: EpisodePlan, recording: Path, *, seed: int, overrides: Sequence[str], library: Library | None = None
) -> Path:
    """Let the robot graph play the scenario in virtual time with the simulated robot and people; the recording.

    Raises UserError where the scenario has no lines for people, PolyrhythmError where the robot's run cannot start.
    """
    values = changes_for(plan, overrides, library)
    recording.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "runtime", "run", "laptop", "--virtual", "--json", "--seed", str(seed)]
    command += ["--record", str(recording), "--out", str(recording.with_suffix(""))]
    command += [part for value in values for part in ("--set", value)]
    print("the robot graph plays it in virtual time; this takes about half a minute of CPU ...", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if not recording.is_file():
        raise PolyrhythmError(f"the robot's run wrote no recording: {done.stderr.strip()[-400:]}")
    return recording


def changes_for(plan: EpisodePlan, overrides: Sequence[str] = (), library: Library | None = None) -> list[str]:
    """What `--set` makes of launch/laptop.toml: the scenario's people, lines, goals and things. Raises UserError."""
    scenario = (library or starter()).scenarios[plan.scenario]
    if not scenario.cues:
        raise UserError(
            f"task {plan.task}: its scenario has no cues, so no simulated person can play it; record a run with "
            "a person (polyrhythm run laptop --record FILE.mcap) and name it: polyrhythm episodes embody FILE.mcap "
            f"--task {plan.task}"
        )
    assert plan.robot_seat is not None
    people = [truth.facts for seat, truth in enumerate(plan.truths) if seat != plan.robot_seat]
    events = [{"when": "start", "after_s": 0.0, "who": EARLIER, "say": scenario.order}] if scenario.order else []
    events += [
        {"when": _when(cue.when), "after_s": cue.after_s, "who": plan.names[cue.seat].split()[0], "say": cue.say}
        for cue in scenario.cues
    ]
    right = [f"{name} in bin" for name in _things(what for facts in people for what in facts.does)]
    right += [
        f"not {name} {where}"
        for name in _things(what for facts in people for what in facts.spares)
        for where in ("in bin", "on floor")
    ]
    rows = [", ".join(f"{key} = {to_json(value)}" for key, value in event.items()) for event in events]
    parameters = {"events": f"[{', '.join(f'{{{row}}}' for row in rows)}]", "right": to_json(right)}
    robot = plan.names[plan.robot_seat].split()[0]
    classes = [one for one in overrides if one.partition("=")[0].endswith(".use")]  # another class, other parameters
    values = [
        "collaborator.use=nodes.sim.people.person:ScenarioPerson",
        *classes,
        f"planner.speaker={robot}",
        f"vlm.speaker={robot}",
    ]
    if any(_takes_persona(one.removeprefix("planner.use=")) for one in classes if one.startswith("planner.use=")):
        persona = background_text(plan.briefings[plan.robot_seat])  # the same words as in a text episode
        values.append(f"planner.persona={to_json(persona)}")
    values += [f"collaborator.{name}={value}" for name, value in parameters.items()]
    return values + [one for one in overrides if one not in classes]


def _takes_persona(use: str) -> bool:
    """Whether that class plays a part; what cannot be imported is named by whoever starts it."""
    module, _, name = use.partition(":")
    try:
        return "persona" in inspect.signature(getattr(import_module(module), name)).parameters
    except (ImportError, AttributeError, ValueError, TypeError):
        return False


def _when(cue: str) -> str:
    """What a cue waits for, as a scenario file has it."""
    kind, _, what = cue.partition(":")
    words = what.strip().replace("_", " ")
    return {"said": f"said: {what.strip()}", "lifted": f"ever: {words} moved", "binned": f"is: {words} in bin"}.get(
        kind, kind
    )


def _things(wanted: Iterable[str]) -> list[str]:
    """The names of the things in "red cup in the bin": "red cup"."""
    return list(dict.fromkeys(" ".join(what.split()[:2]) for what in wanted))


def embodied_plan(task: str, library: Library | None = None) -> EpisodePlan:
    """The plan of a scenario with a robot in it; `library`: the starter set. Raises UserError for one without."""
    library = library or starter()
    with_robot = [name for name, scenario in library.scenarios.items() if scenario.is_embodied]
    try:
        plan = plan_of_task(task, order="asynchronous", mode="AGENTS", max_turns=1000, library=library)
    except UserError as problem:
        raise UserError(f"there is no task {task[:70]!r} with a robot; known: {choices(with_robot)}") from problem
    if plan.robot_seat is None:
        raise UserError(f"task {task!r} has no robot in it; those with one: {choices(with_robot)}")
    agents = tuple("robot" if seat == plan.robot_seat else "person" for seat in range(len(plan.names)))
    return msgspec.structs.replace(plan, agents=agents, id=f"{plan.task}-embodied")


def turns_of(recording: Path, plan: EpisodePlan) -> tuple[list[Turn], float]:
    """The acts in a recording by run time, and how long it lasts. Raises RecordingError where it cannot be read."""
    assert plan.robot_seat is not None
    robot = plan.names[plan.robot_seat]
    people = [name for name in plan.names if name != robot]
    found: list[tuple[int, str, ActKind, str, str]] = []
    doing: dict[str, str] = {}
    cut = ""
    cuts: set[str] = set()
    first_ns = last_ns = 0
    reader = BagReader(recording)
    for message in reader:
        ns = message.log_time_ns
        first_ns, last_ns = first_ns or ns, max(last_ns, ns)
        if message.topic not in _TOPICS:
            continue
        ns = message.envelope.published_ns
        if message.topic in ("heard", "said"):
            said = message.message(Utterance)
            if message.topic == "heard" and said.speaker == EARLIER:
                continue  # before the scenario, and by nobody in it
            speaker = robot if message.topic == "said" else _person(said.speaker, people)
            found.append((ns, speaker, "speak", said.text, ""))
        elif message.topic == "action":
            action = message.message(Action)
            for text in doing.values():  # a new action replaces the one under way
                found.append((ns, robot, "action", text + " (broken off)", cut))
            doing.clear()
            cut = ""
            thing = f" the {action.target.colour} {action.target.label}" if action.target is not None else ""
            doing[action.id] = action.text or f"{action.skill}{thing}"
        elif message.topic == "interrupt":
            interrupt = message.message(Interrupt)
            if interrupt.depth != "resume":
                cut = f"interrupted by {interrupt.by}: {interrupt.text}"
                cuts.add(cut)
        else:
            feedback = message.message(Feedback)
            if feedback.status != "running" and feedback.action_id in doing:
                text = doing.pop(feedback.action_id)
                if feedback.status == "failure":
                    ending = {"replaced": " (broken off)", "asked": " (asked first)"}.get(feedback.ending, " (failed)")
                    found.append((ns, robot, "action", text + ending, cut or feedback.why))
                else:
                    found.append((ns, robot, "action", text, ""))
                cut = ""
    noted_ns = zero_ns_of(reader.metadata)
    start_ns = first_ns - reader.wall_offset_ns if noted_ns is None else noted_ns
    turns = [
        Turn(
            index=index,
            number=index + 1,
            speaker=speaker,
            kind=kind,
            argument=text,
            at_s=max(0.0, round(to_s(ns - start_ns), 3)),
            note=note,
            timing="interrupted" if note and note in cuts else "",
        )
        for index, (ns, speaker, kind, text, note) in enumerate(sorted(found, key=lambda one: one[0]))
    ]
    return turns, to_s(last_ns - first_ns)


def _person(speaker: str, people: list[str]) -> str:
    """The participant that a speaker is: by name where it fits, else the first one."""
    said = speaker.casefold()
    return next((name for name in people if said in (name.casefold(), name.split()[0].casefold())), people[0])


def embody(asked: argparse.Namespace) -> int:
    """Write the run's file for one embodied episode, recorded or played now, and judge it; beside it one as text."""
    library = library_of(asked.tasks)
    plan = embodied_plan(asked.task, library)
    playing = playing_of(asked)
    servers = servers_of(playing)
    judges = judges_of(asked, servers)
    settings = settings_of(playing, servers, judges, asked.jobs)
    path: Path | None = asked.out or (asked.recording.with_suffix(".sqlite") if asked.recording else None)
    if path is None:
        path = unique_path(Path("runs") / f"embodied-{wall_time_text()}.sqlite")
    check_is_new(path)  # before the body plays: that takes a while
    recording = asked.recording or play_body(
        plan, path.with_suffix(".mcap"), seed=asked.seed, overrides=asked.set, library=library
    )
    turns, seconds = turns_of(recording, plan)
    if not turns:
        raise UserError(f"{recording}: nobody says or does anything in it")
    outcome = Outcome(
        episode=plan.id, state="done", reason=f"recorded: {seconds:.1f} s", turns=len(turns), seconds=round(seconds, 3)
    )
    plans = [plan]
    if asked.beside_text:
        plans.append(plan_of_task(asked.task, order="asynchronous", mode="AGENTS", max_turns=20, library=library))
    spec = {"judges": list(judges.specs), "dimensions": to_builtins(judges.dimensions), "playing": to_builtins(playing)}

    async def play_text_and_judge() -> None:
        async with servers:
            for text_plan in plans[1:]:
                await play_and_keep(text_plan, store, settings)
            await judge_unjudged(store, settings)

    with Store.create(path, spec) as store:
        store.add(plans)
        store.set_card(
            {**card_of(plans, judges.specs, judges.dimensions), "modalities": ["text", "speech", "physical action"]}
        )
        store.save_played(plan.id, turns, [], outcome)
        store.link_recording(plan.id, str(recording))
        asyncio.run(play_text_and_judge())
        if asked.json:
            print_json(summary_of(store))
        for each in reversed([] if asked.json else plans):
            print(episode_text(store, find_episode(store, each.id)), end="\n\n")
        if asked.beside_text and not asked.json:
            print(_side_by_side(store, plans[1].id, plan.id, judges.names))
        is_missing = tells_missing(store, judges)
    print(f"\nrun: {path}", file=sys.stderr)
    return int(is_missing)


def _side_by_side(store: Store, text: str, body: str, dimensions: tuple[str, ...]) -> str:
    """The two episodes' scores and figures in one table."""
    rows: list[Sequence[str]] = [("", "", "as text", "with a body")]
    means = [mean_scores(store.scores(episode)) for episode in (text, body)]
    for name in dict.fromkeys((*means[0], *means[1])):
        for dimension in dimensions:
            values = [mean.get(name, {}).get(dimension) for mean in means]
            rows.append((name, dimension, *(or_dash(value, "g") for value in values)))
    turns = [store.turns(episode) for episode in (text, body)]
    for what, kind in (("things said", "speak"), ("things done", "action")):
        rows.append((what, "", *(str(sum(turn.kind == kind for turn in one)) for one in turns)))
    seconds = (max((turn.at_s + turn.lasts_s for turn in one), default=0.0) for one in turns)
    rows.append(("seconds", "", *(f"{one:.0f}" for one in seconds)))
    return "\n".join(columns(rows, ("",)))
