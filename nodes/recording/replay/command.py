"""`polyrhythm replay RUN.mcap`: run nodes again on exactly what they read, or watch the run again.

To chosen nodes, compared with what they did then; or to the terminal, as it went.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections import deque
from collections.abc import Collection
from pathlib import Path

from nodes.recording.bag.progress import told_at_terminal
from nodes.recording.bag.recording import Recording, add_recording, check_out, envelope_or_none
from nodes.recording.replay.gaps import ReplayPace, TimeLine
from nodes.recording.replay.player import NodePlayer, NodeResult
from nodes.recording.replay.recorded_launch import launch_source, recorded_launch, recorded_tables, what_changed
from runtime.clock import to_s
from runtime.command_line.arguments import new_path
from runtime.errors import PolyrhythmError, UserError, choices, os_sentence
from runtime.journal.calls import Calls
from runtime.launch.file import Launch, resolve
from runtime.launch.graph import NodeSpec
from runtime.message import Envelope

LONGEST_GAP_S = 60.0
"""Of silence that is waited for; no robot is silent for so long, and a damaged stamp may be years away."""
_HELD_S = 30.0
"""A batch of calls waits at most so long for inputs that the recorder heard after it."""


def replay_nodes(
    recording: Recording,
    specs: list[NodeSpec],
    *,
    speed: float | None = None,
    longest_gap_s: float = LONGEST_GAP_S,
) -> list[NodeResult]:
    """Run the nodes again from a recording; each is fed what it read then, not what the others say now."""
    seed = recording.noted("seed")
    start_ns = recording.start_ns
    run_info = {key: recording.noted(key) for key in recording.about}
    if "roles" not in run_info:  # of a run before version 0.2
        run_info["roles"] = {"ears": run_info.get("ears", ()), "lifter": run_info.get("lifters", ())}
    players = {
        spec.name: NodePlayer(
            spec,
            seed=seed if isinstance(seed, int) else 0,
            is_virtual=recording.is_virtual,
            start_ns=start_ns,
            run_info=run_info,
        )
        for spec in specs
    }
    pace = ReplayPace(speed, _line(recording, longest_gap_s))
    held: dict[str, deque[tuple[Envelope, Calls]]] = {name: deque() for name in players}
    for message in recording:
        envelope = envelope_or_none(message)
        if envelope is None:
            continue
        if message.schema == "Calls":
            batch = message.message(Calls)
            if batch.node in players:
                held[batch.node].append((envelope, batch))
        else:
            for player in players.values():
                player.inputs.add(message)
        for name, batches in held.items():
            while batches and (
                to_s(envelope.published_ns - batches[0][0].published_ns) > _HELD_S
                or players[name].has_inputs_of(batches[0][1])
            ):
                about, batch = batches.popleft()
                pace.wait(about.published_ns)
                players[name].play(batch, about.seq)
    for name, batches in held.items():
        for about, batch in batches:
            players[name].play(batch, about.seq)
    return [player.finish() for player in players.values()]


def _line(recording: Recording, longest_gap_s: float) -> TimeLine:
    return TimeLine(recording.begin_ns, longest_gap_s, _tell, zero_ns=recording.start_ns)


def _tell(sentence: str) -> None:
    print(f"polyrhythm replay: {sentence}", file=sys.stderr)


def main(argv: list[str]) -> int:
    """`polyrhythm replay`: 0 where every chosen node did the same again, bit for bit; 1 where not, or not exactly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm replay",
        description="Run nodes again on exactly the inputs that they read in a recorded run, and compare what they "
        "publish bit for bit (--node); or run the recorded graph again with some nodes played from the recording and "
        "the others alive (--in-place-of, --live); or else show the run in the terminal.",
        epilog="examples: polyrhythm replay run.mcap --node policy --node guard; "
        "polyrhythm replay run.mcap --in-place-of head_camera --virtual; polyrhythm replay run.mcap --live policy; "
        "polyrhythm replay run.mcap --in-place-of collaborator --virtual --say '31.2 | Sam | Stop'",
    )
    add_recording(parser)
    parser.add_argument(
        "--node", action="append", default=[], metavar="NAME", help="run this node again; several, or all"
    )
    parser.add_argument(
        "--in-place-of", action="append", default=[], metavar="NAME",
        help="run the graph, and let the recording speak in place of this node; several, or all",
    )  # fmt: skip
    parser.add_argument(
        "--live", action="append", default=[], metavar="NAME",
        help="run the graph, and let the recording speak in place of all nodes but these (A,B or several)",
    )  # fmt: skip
    parser.add_argument(
        "--say", action="append", default=[], metavar="'S | WHO | TEXT'",
        help="with --live or --in-place-of: somebody says this at S seconds, who did not say it then; several",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="for the graph's new recording; default: RUN-replay")
    parser.add_argument(
        "--virtual", action="store_true", help="in virtual time, as fast as it goes (the default with --node)"
    )
    parser.add_argument(
        "--speed", type=float, metavar="N", help="so many times as fast as it went; default: 1 to watch"
    )
    parser.add_argument(
        "--longest-gap", type=float, default=LONGEST_GAP_S, metavar="S",
        help="pass over a time in which no node said anything for longer than this many seconds; default: %(default)g",
    )  # fmt: skip
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NODE.PARAM=VALUE",
        help="replay with another value, or another `use`",
    )
    parser.add_argument(
        "--summary", action="store_true", help="sum the run up and draw its pictures again, and no more"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    try:
        asked = parser.parse_args(argv)
        asked.live = [name.strip() for names in asked.live for name in names.split(",")]
        if asked.speed is not None and not 0 < asked.speed < float("inf"):
            raise UserError(f"--speed {asked.speed}: expected a positive number")
        if not 0 < asked.longest_gap < float("inf"):
            raise UserError(f"--longest-gap {asked.longest_gap}: expected a positive number of seconds")
        _check_asked(asked)
        if asked.summary:
            from runtime.cli import main as polyrhythm

            return polyrhythm(["report", str(asked.recording), *(["--json"] if asked.json else [])])
        recording = Recording(asked.recording)
        if asked.in_place_of or asked.live:
            return _replay_into(recording, asked)
        if not asked.node:
            from nodes.recording.replay.show import show

            show(recording, asked.speed or 1.0, _line(recording, asked.longest_gap))
            return 0
        results = replay_nodes(
            recording, _chosen(recorded_launch(recording, asked.set), asked.node, recording.played),
            speed=None if asked.virtual else asked.speed, longest_gap_s=asked.longest_gap,
        )  # fmt: skip
    except SystemExit as end:
        return int(end.code or 0)
    except PolyrhythmError as problem:
        print(f"polyrhythm replay: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, UserError) else 1
    except BrokenPipeError:
        raise  # whoever read what is printed has seen enough
    except OSError as problem:
        print(f"polyrhythm replay: {os_sentence(problem)}", file=sys.stderr)
        return 1
    since = what_changed(recording) if any(result.difference is not None for result in results) else []
    _print(results, recording.damage, since, as_json=asked.json)
    return 0 if all(result.is_exact for result in results) else 1


def _check_asked(asked: argparse.Namespace) -> None:
    """Raise UserError for an option that would do nothing."""
    if asked.summary and (asked.node or asked.in_place_of or asked.live):
        raise UserError(
            "--summary sums the recorded run up and runs nothing; leave out --node, --in-place-of and --live"
        )
    if asked.say and not (asked.in_place_of or asked.live):
        raise UserError("--say: is heard by nodes that live; name them with --live, or the others with --in-place-of")
    if asked.summary or asked.node or asked.in_place_of or asked.live:
        return
    for option, is_given in (("--virtual", asked.virtual), ("--set", asked.set), ("--out", asked.out)):
        if is_given:
            raise UserError(f"{option}: is for nodes that run again; name them with --node, --in-place-of or --live")
    if asked.json:
        raise UserError("--json: there is no result where a run is only shown; bag export --to jsonl has its messages")


def _replay_into(recording: Recording, asked: argparse.Namespace) -> int:
    """Run the graph with some nodes played; 0, or 1 where a node said that the run had failed."""
    from nodes.recording.replay.into import mix, run_real, run_virtual
    from runtime.commands.companions import make_view
    from runtime.node import ports_of
    from runtime.ports import Publisher
    from runtime.supervision.view import SilentView

    if asked.node:
        raise UserError("--node compares nodes one by one; --in-place-of and --live run the graph; give one of them")
    if asked.live and asked.in_place_of:
        raise UserError("--live names who lives and --in-place-of who is played; give one of them")
    source = launch_source(recording, asked.set)
    tables = recorded_tables(recording, source)
    nodes = resolve(tables, path=recording.path).graph.nodes
    known = [name for name, spec in nodes.items() if not spec.cls.subscribes_all]
    for option, asked_for in (("--live", asked.live), ("--in-place-of", asked.in_place_of)):
        for name in asked_for:
            if name not in known and (option, name) != ("--in-place-of", "all"):
                raise UserError(f"{option} {name}: the recorded run has no such node; known: {choices(known)}")
    names = known if "all" in asked.in_place_of else list(asked.in_place_of)
    names = [name for name in known if name not in asked.live] if asked.live else names
    speed = asked.speed or 1.0
    if asked.out is not None:
        check_out(asked.out / "run.mcap", recording)
    out = new_path(asked.out, asked.recording.with_name(f"{asked.recording.stem}-replay"))
    out.mkdir(parents=True, exist_ok=True)
    with told_at_terminal(is_wanted=not asked.json):
        mixture = mix(
            recording, tables, played=names, speed=speed, out=out.resolve(),
            longest_gap_s=asked.longest_gap, tell=_tell, source=source, says=asked.say,
        )  # fmt: skip
    how = "virtual time" if asked.virtual else f"real time, {speed:g}x"
    is_live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not asked.virtual
    view = (
        SilentView()
        if asked.json
        else make_view(mixture.launch.view, f"{asked.recording.name} into its graph, in {how}", live=is_live)
    )
    outcome = None
    try:
        if asked.virtual:
            run_virtual(mixture, recording, view)
        else:
            outcome = run_real(mixture, view, speed=speed)
    finally:
        view.close()
    lived = [name for name in known if name not in names and ports_of(nodes[name].cls, Publisher)]
    diff = ["polyrhythm", "bag", "diff", str(asked.recording), str(out / "run.mcap"), "--nodes", *lived]
    is_comparable = asked.virtual and recording.is_virtual and bool(lived)
    if asked.json:
        result = {"played": names, "recording": str(out / "run.mcap"), "outcome": outcome}
        print(json.dumps({**result, "compare": shlex.join(diff) if is_comparable else None}))
    else:
        print(f"played {', '.join(names)}; the others lived; recorded in {out / 'run.mcap'}")
        if lived:
            print(_how_to_compare(asked.recording, out / "run.mcap", shlex.join(diff) if is_comparable else None))
    return 0 if outcome is None or outcome[0] else 1


def _how_to_compare(then: Path, now: Path, diff: str | None) -> str:
    """Where the live nodes went another way than in the recorded run."""
    if diff is not None:
        return f"the first thing that they said otherwise: {diff}"
    plots = "; ".join(shlex.join(["polyrhythm", "bag", "plot", str(path)]) for path in (then, now))
    return f"every stamp is of a clock of its own, so compare by eye, or export both --to csv: {plots}"


def _chosen(launch: Launch, names: list[str], played: Collection[str]) -> list[NodeSpec]:
    """The nodes to run again. `played`: those that were played from a recording themselves."""
    nodes = {name: spec for name, spec in launch.graph.nodes.items() if not spec.cls.subscribes_all}
    for name in names:
        if name not in nodes and name != "all":
            raise UserError(f"--node {name}: the recorded run has no such node; known: {choices(nodes)}, all")
        if name in played:
            raise UserError(
                f"--node {name}: was played from a recording in this run, and so ran nothing; "
                "replay it from the recording that it was played from"
            )
    return [spec for name, spec in nodes.items() if name in names or ("all" in names and name not in played)]


def _print(results: list[NodeResult], damage: list[str], since: list[str], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                **result.__dict__,
                "difference": result.difference and result.difference.__dict__,
                "is_exact": result.is_exact,
            }
            for result in results
        ]
        print(json.dumps({"nodes": rows, "damage": damage, "since": since}))
        return
    for result in results:
        print(f"{result.node}: {result.calls} calls run again, {result.compared} messages compared")
        if result.difference is not None:
            print(f"  differs: {result.difference.sentence()}")
        for topic, number in result.not_compared.items():
            print(f"  not compared: {number} messages on {topic}, which the recording does not hold as such")
        for doubt in result.doubts:
            print(f"  not bit-exact: {doubt}")
        if result.is_exact:
            print("  the same, bit for bit")
    for text in (*since, *damage):
        print(f"! {text}")
