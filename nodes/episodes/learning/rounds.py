"""`episodes rounds`: generate tasks, play, filter, train, serve, evaluate, compare; again and again, from a TOML file.

One folder per round. A step that is done has a file STEP.json and is not done again. A run of episodes that was killed
is resumed answer by answer. A training that was killed begins again; a model is moved into place when it is whole.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import msgspec

from nodes.episodes.evaluation.dimensions import NAMES
from nodes.episodes.learning.dataset import write_dataset
from nodes.episodes.results.figures import OVERALL, Value, interval_text, means_by, paired, values_of
from nodes.episodes.results.show import print_json
from nodes.episodes.results.store import Store
from nodes.statistics.paired import mean_of
from runtime.clock import SystemClock
from runtime.command_line.columns import columns
from runtime.errors import PolyrhythmError, UserError, choices, writing
from runtime.hosts.proxies import open_url
from runtime.operating_system.machine import can
from runtime.operating_system.whole_file import write_whole
from runtime.serialization.toml_errors import convert, read_toml

CLOCK = SystemClock()

SERVE_S = 300.0
"""So long a model may load before it answers."""

FREE_S = 5.0
"""So long a server may take to die with the command that was killed."""

PR_SET_PDEATHSIG = 1
BASE = "base"


Some = Annotated[int, msgspec.Meta(ge=1, description="a whole number, at least 1")]
Limit = Annotated[int, msgspec.Meta(ge=0, description="a whole number, 0 for no limit")]


class Loop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table [rounds]: what all rounds have in common."""

    folder: str
    prompts: str  # CSV of inspirational prompts
    base: str  # what the first policy is: a folder or a .gguf file for the two commands
    train: str  # a command with {data}, {base}, {model}
    serve: str  # a command with {model}, {port}
    port: Annotated[int, msgspec.Meta(ge=1, le=65535, description="a port, 1 to 65535")] = 8731
    policy: str = "policy@http://127.0.0.1:{port}/v1#prompt=small#tokens=48"  # how the served model plays
    expert: str = "rules"
    partner: str = "rules"  # whom the policy is evaluated with, in both seat orders
    judges: str = "rules"
    generator: str = ""  # MODEL[@URL] that writes tasks; "": a template
    tasks: Some = 100  # new ones each round
    casts: Some = 10  # conversations per task, each with other characters
    turns: Some = 20
    data_format: Literal["alpaca", "messages"] = "alpaca"
    data_prompts: Literal["shown", "full", "small"] = "shown"
    longest: Limit = 0  # tokens of a pair
    held_out: Annotated[float, msgspec.Meta(ge=0, lt=1, description="a share, from 0 to less than 1")] = 0.1
    evaluation: str = "starter"
    evaluation_tasks: tuple[str, ...] = ()  # (): all of them
    jobs: Some = 16
    max_calls: Limit = 0  # of one step that plays


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[round]]."""

    name: str
    players: tuple[str, ...]  # pairings with {expert}, {policy}
    filter: Literal["bc", "sr"]
    learn_from: str = ""  # {expert} or {policy}: only that one's acts
    begin_with: str = ""  # "base" or an earlier round, whose model plays and learns; "": the round before


class RoundsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of rounds; `quick` replaces keys of `rounds` where a quick run is asked for."""

    rounds: dict[str, Any]
    round: tuple[Round, ...]
    quick: dict[str, Any] = {}


Episodes = Callable[[list[str]], int]
"""The command `polyrhythm episodes`, in this process: a kill ends the step with it."""


class Rounds:
    """A file's rounds, played as far as they are not."""

    def __init__(self, path: Path, episodes: Episodes, *, quick: bool = False) -> None:
        """Raises UserError naming file and key."""
        read = convert(read_toml(path), RoundsFile, str(path))
        table = {**read.rounds, **(read.quick if quick else {})}
        self.loop = convert(table, Loop, f"{path}: [rounds]")
        self.folder = Path(self.loop.folder + ("-quick" if quick else ""))
        self.rounds = read.round
        names = [BASE, *(one.name for one in self.rounds)]
        if len(set(names)) < len(names) or not all(name.replace("-", "").isalnum() for name in names):
            raise UserError(f"{path}: the rounds are called {', '.join(names)}; expected different plain words")
        for number, one in enumerate(self.rounds, start=1):
            if one.begin_with and one.begin_with not in names[:number]:
                raise UserError(
                    f"{path}: round {one.name}: begin_with is {one.begin_with!r}; known: {choices(names[:number])}"
                )
        if not Path(self.loop.prompts).is_file():
            raise UserError(f"{path}: prompts: there is no file {self.loop.prompts}")
        self._episodes = episodes
        try:
            self._policy = self.loop.policy.format(port=self.loop.port)
        except (KeyError, ValueError, IndexError) as problem:
            raise UserError(f"{path}: policy is {self.loop.policy!r}; expected {{port}} in it: {problem}") from problem
        for key, fields in (("train", ("data", "base", "model")), ("serve", ("model", "port"))):
            program = _command(getattr(self.loop, key), **dict.fromkeys(fields, ""))[:1]
            if not program or shutil.which(program[0]) is None:
                raise UserError(f"{path}: {key}: there is no program {program[0] if program else ''!r} to be run")

    def run(self) -> dict[str, Any]:
        """All steps that are not done; the comparison of all policies. Raises UserError where a step fails."""
        with writing(f"folder {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._evaluate(self.folder / BASE, self.loop.base)
        before = BASE
        learned: dict[str, tuple[str, ...]] = {BASE: ()}  # in which rounds a policy has learned
        for one in self.rounds:
            folder, before = self.folder / one.name, one.begin_with or before
            base = str(self.folder / before / "model") if before != BASE else self.loop.base
            earlier = [self.folder / name / "tasks" for name in learned[before]]
            learned[one.name] = (*learned[before], one.name)
            before = one.name
            for name, work in (
                ("tasks-made", partial(self._new_tasks, folder, earlier)),
                ("played", partial(self._play, folder, one, base)),
                ("data-written", partial(self._filter, folder, one)),
                ("trained", partial(self._train, folder, base)),
            ):
                self._step(folder, name, work)
            self._evaluate(folder, str(folder / "model"))
        comparison = self.comparison()
        _keep(self.folder / "comparison.json", comparison)
        return comparison

    def _step(self, folder: Path, name: str, work: Callable[[], Any]) -> None:
        done = folder / f"{name}.json"
        if not done.is_file():
            print(f"{folder.name}: {name} ...", file=sys.stderr, flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            _keep(done, work())

    def _new_tasks(self, folder: Path, earlier: list[Path]) -> Any:
        loop = self.loop
        asked = ["scenarios", "new", "--from", loop.prompts, "--n", str(loop.tasks), "--out", str(folder / "tasks")]
        asked += ["--evaluation", loop.evaluation, *(["--model", loop.generator] if loop.generator else [])]
        self._call(folder, asked + [part for path in earlier for part in ("--not-in", str(path))])
        return {"tasks": loop.tasks}

    def _play(self, folder: Path, one: Round, base: str) -> Any:
        pairings = [self._named(text) for text in one.players]
        asked = ["--tasks", str(folder / "tasks"), "--casts", str(self.loop.casts)]
        asked += [part for pairing in pairings for part in ("--agents", pairing)]
        with self._served(folder, base, wanted=any(self._policy in pairing for pairing in pairings)):
            return self._played(folder, folder / "played.sqlite", asked)

    def _filter(self, folder: Path, one: Round) -> Any:
        shutil.rmtree(folder / "data", ignore_errors=True)
        return write_dataset(
            [folder / "played.sqlite"],
            folder / "data",
            one.filter,
            form=self.loop.data_format,
            prompts=self.loop.data_prompts,
            agent=self._named(one.learn_from),
            held_out=self.loop.held_out,
            longest=self.loop.longest,
        )

    def _train(self, folder: Path, base: str) -> Any:
        part, model = folder / "model.part", folder / "model"
        for path in (part, model):
            shutil.rmtree(path, ignore_errors=True)
        command = _command(self.loop.train, data=folder / "data", base=base, model=part)
        began = CLOCK.now_s()
        with open(folder / "train.log", "wb") as log:
            code = _started(command, log).wait()
        if code or not part.exists():
            raise UserError(f"{folder.name}: training ended with {code}: {_last_line(folder / 'train.log')}")
        part.rename(model)
        found = model / "training.json"
        told = msgspec.json.decode(found.read_bytes()) if found.is_file() else {}
        return {"seconds": round(CLOCK.now_s() - began, 1), **told}

    def _evaluate(self, folder: Path, model: str) -> None:
        def work() -> Any:
            names = [part for task in self.loop.evaluation_tasks for part in ("--task", task)]
            agents = f"{self._policy},{self.loop.partner}"
            asked = ["--tasks", self.loop.evaluation, *names, "--agents", agents, "--swap"]
            with self._served(folder, model):
                return self._played(folder, folder / "evaluation.sqlite", asked)

        self._step(folder, "evaluated", work)

    def _played(self, folder: Path, path: Path, asked: list[str]) -> Any:
        """A run of episodes, begun or gone on with."""
        if path.is_file() and not _is_begun(path):  # killed before the first episode was planned
            path.unlink()
        if path.is_file():
            self._call(folder, ["resume", str(path), "--jobs", str(self.loop.jobs)])
        else:
            asked = [*asked, "--turns", str(self.loop.turns), "--judges", self.loop.judges, "--out", str(path)]
            asked += ["--max-calls", str(self.loop.max_calls)] if self.loop.max_calls else []
            self._call(folder, ["run", *asked, "--jobs", str(self.loop.jobs)])
        with Store.read(path) as store:
            calls, prompt_tokens, answer_tokens = store.tokens()
            done = sum(row.state == "done" for row in store.episodes())
            return {"episodes": done, "calls": calls, "prompt_tokens": prompt_tokens, "answer_tokens": answer_tokens}

    def _call(self, folder: Path, asked: list[str]) -> None:
        with open(folder / "episodes.log", "a", encoding="utf-8") as log, contextlib.redirect_stdout(log):
            print("$ polyrhythm episodes", shlex.join(asked))
            code = self._episodes(asked)
        if code:
            why = f": {_last_line(folder / 'episodes.log')}" if asked[0] == "scenarios" else ""  # a run tells it itself
            raise UserError(
                f"{folder.name}: `episodes {asked[0]}` ended with {code}{why} (see {folder / 'episodes.log'}); "
                "the same command goes on from here"
            )

    def _named(self, text: str) -> str:
        return text.replace("{expert}", self.loop.expert).replace("{policy}", self._policy)

    @contextlib.contextmanager
    def _served(self, folder: Path, model: str, *, wanted: bool = True) -> Iterator[None]:
        """The model behind its port for as long as it is needed."""
        if not wanted:
            yield
            return
        url = f"http://127.0.0.1:{self.loop.port}/v1/models"
        until = CLOCK.now_s() + FREE_S
        while _is_taken(self.loop.port):
            if CLOCK.now_s() > until:
                raise UserError(f"port {self.loop.port} is taken by another server; stop it, or name another port")
            CLOCK.block(0.1)
        log = folder / "serve.log"
        with open(log, "ab") as file:
            command = _command(self.loop.serve, model=model, port=self.loop.port)
            server = _started(command, file)
        try:
            until = CLOCK.now_s() + SERVE_S
            while not _answers(url):
                if server.poll() is not None or CLOCK.now_s() > until:
                    raise UserError(f"{folder.name}: the server of {model} does not answer: {_last_line(log)}")
                CLOCK.block(0.1)
            yield
        finally:
            server.kill()
            server.wait()

    def comparison(self) -> dict[str, Any]:
        """Each policy's means by dimension, and its paired differences to the base's."""
        values: dict[str, list[Value]] = {}
        for name in (BASE, *(one.name for one in self.rounds)):
            with Store.read(self.folder / name / "evaluation.sqlite") as store:
                values[name] = [value for value in values_of(store) if value.model == self._policy]
        dimensions = [d for d in (*NAMES, OVERALL) if any(d in v.scores for ones in values.values() for v in ones)]
        means, differences, trained = {}, {}, {}
        for name, ones in values.items():
            table = means_by(ones, dimensions, lambda _: BASE)
            means[name] = msgspec.to_builtins(table.get(BASE, dict.fromkeys(dimensions)))
            if name == BASE:
                continue
            differences[name] = {dimension: _difference(ones, values[BASE], dimension) for dimension in dimensions}
            told = self.folder / name / "trained.json"
            try:
                trained[name] = msgspec.json.decode(told.read_bytes()) if told.is_file() else None
            except msgspec.DecodeError as problem:
                raise UserError(f"{told}: is damaged: {problem}; remove it, and the training is done again") from None
        return {"dimensions": dimensions, "means": means, "to_base": differences, "training": trained}


def _difference(ones: list[Value], base: list[Value], dimension: str) -> dict[str, Any] | None:
    """Paired by task, seed and seat; scenarios are drawn whole."""
    clusters = paired(ones, base, dimension)
    if (found := mean_of(clusters)) is None:
        return None
    pairs = sum(len(each) for each in clusters.values())
    return {"difference": found.mean, "low": found.low, "high": found.high, "pairs": pairs}


def comparison_text(comparison: dict[str, Any]) -> str:
    """The table on the terminal: a policy a line, its means, and below the differences to the base with intervals."""
    dimensions = comparison["dimensions"]
    rows = [("policy", *dimensions)]
    for name, row in comparison["means"].items():
        rows.append((name, *("-" if row[one] is None else f"{row[one]['mean']:.2f}" for one in dimensions)))
        if one := comparison["to_base"].get(name):
            rows.append(("  - base", *(interval_text(one[dimension], "difference") for dimension in dimensions)))
    lines = columns(rows, ("policy",))
    for name, told in comparison["training"].items():
        if told and "loss_before" in told:
            lines.append(f"{name}: loss on held-out tasks {told['loss_before']:.3f} -> {told['loss_after']:.3f}")
    return "\n".join(lines)


def _is_begun(path: Path) -> bool:
    """Whether a run's file holds its plans: the card is written after them."""
    try:
        with Store.read(path) as store:
            return bool(store.card)
    except PolyrhythmError:
        return False


def _command(text: str, **named: object) -> list[str]:
    fields = {"python": sys.executable, **{name: str(value) for name, value in named.items()}}
    try:
        return [part.format(**fields) for part in shlex.split(text)]
    except (KeyError, IndexError) as problem:
        raise UserError(f"command {text!r}: {problem} is none of {', '.join(fields)}") from problem
    except ValueError as problem:
        raise UserError(f"command {text!r}: {problem}") from problem


def _started(command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """A child that outlives no killed command. Its threads sleep where they wait, and cost a busy machine nothing."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def prepare() -> None:
        if can("die with parent"):
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed in between
            os._exit(1)

    environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, preexec_fn=prepare, env=environment)


def _is_taken(port: int) -> bool:
    with socket.socket() as mine:
        return mine.connect_ex(("127.0.0.1", port)) == 0


def _answers(url: str) -> bool:
    try:
        with open_url(urllib.request.Request(url), 5.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def _keep(path: Path, value: object) -> None:
    write_whole(path, msgspec.json.format(msgspec.json.encode(value), indent=1), is_synced=True)


def rounds(asked: argparse.Namespace) -> int:
    """Do all rounds as far as they are not done, and compare."""
    rounds = Rounds(asked.file, asked.episodes, quick=asked.quick)
    comparison = rounds.run()
    if asked.json:
        print_json(comparison)
    else:
        print(comparison_text(comparison))
        print(f"\nrounds: {rounds.folder}")
    return 0
