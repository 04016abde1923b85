"""The log of a run: one SQLite file (WAL) with its episodes, turns, prompts seen, calls with answers, and evaluations.

One process writes (a lock beside the file says who), any number read. An answer is committed before it is used, so a
killed run goes on from it; everything else follows from plans, seeds and answers and is played again as it was.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from nodes.episodes.chat_wire import Answer
from nodes.episodes.conduct import PromptRecord
from nodes.episodes.plan import EpisodePlan
from runtime.episode_msgs import Outcome, Score, Scores, Turn
from runtime.errors import PolyrhythmError, UserError

VERSION = 1
FIRST_JUDGE = 200
"""Calls under this seat number and above are judges'."""

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS episodes (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL, task TEXT NOT NULL, scenario TEXT NOT NULL, seed INTEGER NOT NULL,
  mode TEXT NOT NULL, transparency TEXT NOT NULL, turn_order TEXT NOT NULL, agents TEXT NOT NULL, names TEXT NOT NULL,
  state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', seconds REAL NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0, recording TEXT NOT NULL DEFAULT '', plan TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
  episode TEXT NOT NULL, idx INTEGER NOT NULL, number INTEGER NOT NULL, speaker TEXT NOT NULL, kind TEXT NOT NULL,
  argument TEXT NOT NULL, recipients TEXT NOT NULL, at_s REAL NOT NULL, lasts_s REAL NOT NULL, note TEXT NOT NULL,
  PRIMARY KEY (episode, idx)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (
  episode TEXT NOT NULL, seat INTEGER NOT NULL, ask INTEGER NOT NULL, turn INTEGER NOT NULL, held TEXT NOT NULL,
  sha TEXT NOT NULL, PRIMARY KEY (episode, seat, ask)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (
  episode TEXT NOT NULL, seat INTEGER NOT NULL, number INTEGER NOT NULL, what TEXT NOT NULL, model TEXT NOT NULL,
  sha TEXT NOT NULL, prompt TEXT NOT NULL, answer TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, PRIMARY KEY (episode, seat, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluations (
  episode TEXT NOT NULL, judge TEXT NOT NULL, name TEXT NOT NULL, dimension TEXT NOT NULL, score REAL,
  reasoning TEXT NOT NULL, PRIMARY KEY (episode, judge, name, dimension)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS judgements (
  episode TEXT NOT NULL, judge TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL,
  PRIMARY KEY (episode, judge)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checks (episode TEXT PRIMARY KEY, checks TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ratings (
  episode TEXT NOT NULL, rater TEXT NOT NULL, name TEXT NOT NULL, dimension TEXT NOT NULL, score REAL NOT NULL,
  PRIMARY KEY (episode, rater, name, dimension)) WITHOUT ROWID;
"""


class StoreError(PolyrhythmError):
    """A run's file cannot be used; the text says which and why."""


class EpisodeRow(msgspec.Struct, frozen=True):
    """One episode as the log has it."""

    id: str
    number: int
    task: str
    scenario: str
    seed: int
    mode: str
    transparency: str
    turn_order: str
    agents: tuple[str, ...]
    names: tuple[str, ...]
    state: str  # "waiting", "done", "failed"
    reason: str
    seconds: float
    failures: int
    recording: str


class Store:
    """A run's file. Open with `Store.create`, `Store.open` (to write) or `Store.read`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: IO[str] | None) -> None:
        self.path = path
        self._db = connection
        self._lock = lock

    @classmethod
    def create(cls, path: Path, spec: dict[str, Any]) -> Store:
        """A new run. Raises UserError where the file exists already."""
        if path.exists():
            raise UserError(f"{path}: exists already; resume it, or name another file with --out")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UserError(f"{path}: its folder cannot be made: {problem.strerror}") from problem
        store = cls._opened(path)
        with store._db:
            store._db.executescript(_TABLES)
            store._set("version", VERSION)
            store._set("spec", spec)
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """An existing run, to go on writing. Raises StoreError where another process writes it."""
        _check_is_file(path)
        store = cls._opened(path)
        store._check_version()
        return store

    @classmethod
    def read(cls, path: Path) -> Store:
        """An existing run, to read only, also while another process writes it."""
        _check_is_file(path)
        try:
            store = cls(path, _connect(f"file:{path.resolve()}?mode=ro"), None)
            store._check_version()
        except sqlite3.OperationalError as problem:
            raise StoreError(f"{path}: cannot be read: {problem}") from problem
        return store

    @classmethod
    def _opened(cls, path: Path) -> Store:
        lock = _take_lock(path)
        try:
            connection = _connect(f"file:{path.resolve()}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as problem:
            lock.close()
            raise StoreError(f"{path}: is no run: {problem}") from problem
        return cls(path, connection, lock)

    def close(self) -> None:
        """Close the file and let others write it."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spec(self) -> dict[str, Any]:
        """What the run was asked for."""
        found: dict[str, Any] = self._get("spec")
        return found

    @property
    def card(self) -> dict[str, Any]:
        """The simulation card of the run; {} before there is one."""
        found: dict[str, Any] = self._get("card") or {}
        return found

    def set_card(self, card: dict[str, Any]) -> None:
        """Keep the simulation card."""
        with self._db:
            self._set("card", card)

    def add(self, plans: Iterable[EpisodePlan]) -> None:
        """Take in episodes that are to be played; those already there stay as they are."""
        rows = [
            (
                plan.id,
                number,
                plan.task,
                plan.scenario,
                plan.seed,
                plan.mode,
                plan.transparency,
                plan.rules.order,
                _json(plan.agents),
                _json(plan.names),
                "waiting",
                _json(plan),
            )
            for number, plan in enumerate(plans)
        ]
        with self._db:
            self._db.executemany(
                "INSERT OR IGNORE INTO episodes (id, number, task, scenario, seed, mode, transparency, turn_order,"
                " agents, names, state, plan) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                rows,
            )

    def plan(self, episode: str) -> EpisodePlan:
        """The plan of an episode. Raises UserError where there is none of that name."""
        row = self._db.execute("SELECT plan FROM episodes WHERE id = ?", (episode,)).fetchone()
        if row is None:
            raise UserError(
                f"{self.path}: there is no episode {episode[:80]!r}; polyrhythm episodes show RUN lists them"
            )
        return msgspec.json.decode(row[0], type=EpisodePlan)

    def unfinished(self) -> list[EpisodePlan]:
        """The episodes that are waiting or have failed, in order."""
        rows = self._db.execute("SELECT plan FROM episodes WHERE state != 'done' ORDER BY number")
        return [msgspec.json.decode(row[0], type=EpisodePlan) for row in rows]

    def unjudged(self, judge: str) -> list[str]:
        """The episodes that are done and have no good evaluation by that judge."""
        rows = self._db.execute(
            "SELECT id FROM episodes WHERE state = 'done' AND id NOT IN"
            " (SELECT episode FROM judgements WHERE judge = ? AND state = 'done') ORDER BY number",
            (judge,),
        )
        return [row[0] for row in rows]

    def episodes(self) -> list[EpisodeRow]:
        """All episodes in order."""
        fields = ", ".join(EpisodeRow.__struct_fields__)
        found = []
        for row in self._db.execute(f"SELECT {fields} FROM episodes ORDER BY number"):
            values = dict(zip(EpisodeRow.__struct_fields__, row, strict=True))
            values["agents"], values["names"] = json_list(values["agents"]), json_list(values["names"])
            found.append(EpisodeRow(**values))
        return found

    def turns(self, episode: str) -> list[Turn]:
        """What happened, in order."""
        rows = self._db.execute(
            "SELECT idx, number, speaker, kind, argument, recipients, at_s, lasts_s, note FROM turns"
            " WHERE episode = ? ORDER BY idx",
            (episode,),
        )
        return [
            Turn(
                index=row[0],
                number=row[1],
                speaker=row[2],
                kind=row[3],
                argument=row[4],
                to=json_list(row[5]),
                at_s=row[6],
                lasts_s=row[7],
                note=row[8],
            )
            for row in rows
        ]

    def prompts(self, episode: str) -> list[PromptRecord]:
        """What each prompt held, by seat and ask."""
        rows = self._db.execute(
            "SELECT seat, ask, turn, held, sha FROM prompts WHERE episode = ? ORDER BY seat, ask", (episode,)
        )
        return [
            PromptRecord(row[0], row[1], row[2], msgspec.json.decode(row[3], type=tuple[int, ...]), row[4])
            for row in rows
        ]

    def calls(self, episode: str) -> list[tuple[int, int, str, str, str, str]]:
        """(seat, number, what, model, prompt, answer) of every call to a model."""
        return self._db.execute(
            "SELECT seat, number, what, model, prompt, answer FROM calls WHERE episode = ? ORDER BY seat, number",
            (episode,),
        ).fetchall()

    def tokens(self) -> tuple[int, int, int]:
        """Calls, prompt tokens and completion tokens of the run so far."""
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0) FROM calls"
        ).fetchone()
        return int(row[0]), int(row[1]), int(row[2])

    def save_turns(self, episode: str, turns: Sequence[Turn]) -> None:
        """Keep turns as they happen."""
        with self._db:
            self._write_turns(episode, turns)

    def save_played(
        self, episode: str, turns: Sequence[Turn], prompts: Sequence[PromptRecord], outcome: Outcome
    ) -> None:
        """Keep a whole episode, in one transaction."""
        with self._db:
            self._db.execute("DELETE FROM turns WHERE episode = ?", (episode,))
            self._db.execute("DELETE FROM prompts WHERE episode = ?", (episode,))
            self._write_turns(episode, turns)
            self._db.executemany(
                "INSERT OR REPLACE INTO prompts VALUES (?,?,?,?,?,?)",
                [(episode, one.seat, one.ask, one.turn, _json(one.held), one.sha) for one in prompts],
            )
            self._db.execute(
                "UPDATE episodes SET state = ?, reason = ?, seconds = ?, failures = ? WHERE id = ?",
                (outcome.state, outcome.reason, outcome.seconds, outcome.failures, episode),
            )

    def link_recording(self, episode: str, recording: str) -> None:
        """Note the recording of an embodied episode."""
        with self._db:
            self._db.execute("UPDATE episodes SET recording = ? WHERE id = ?", (recording, episode))

    def save_scores(self, scores: Scores) -> None:
        """Keep an evaluation, replacing an older one by the same judge."""
        with self._db:
            self._db.execute("DELETE FROM evaluations WHERE episode = ? AND judge = ?", (scores.episode, scores.judge))
            self._db.executemany(
                "INSERT INTO evaluations VALUES (?,?,?,?,?,?)",
                [(scores.episode, scores.judge, s.name, s.dimension, s.score, s.reasoning) for s in scores.scores],
            )
            self._db.execute(
                "INSERT OR REPLACE INTO judgements VALUES (?,?,?,?)",
                (scores.episode, scores.judge, scores.state, scores.why),
            )

    def forget_judgement(self, episode: str, judge: str) -> None:
        """Let that judge judge anew: its scores and its stored answers go."""
        with self._db:
            self._db.execute("DELETE FROM judgements WHERE episode = ? AND judge = ?", (episode, judge))
            self._db.execute("DELETE FROM evaluations WHERE episode = ? AND judge = ?", (episode, judge))
            self._db.execute(
                "DELETE FROM calls WHERE episode = ? AND seat >= ? AND model = ?",
                (episode, FIRST_JUDGE, judge.partition("@")[0].removeprefix("openai:")),
            )

    def scores(self, episode: str) -> list[Scores]:
        """The evaluations of an episode, one per judge."""
        found = []
        for judge, state, why in self._db.execute(
            "SELECT judge, state, why FROM judgements WHERE episode = ? ORDER BY judge", (episode,)
        ).fetchall():
            rows = self._db.execute(
                "SELECT name, dimension, score, reasoning FROM evaluations WHERE episode = ? AND judge = ?"
                " ORDER BY name, dimension",
                (episode, judge),
            )
            scores = tuple(Score(name=row[0], dimension=row[1], score=row[2], reasoning=row[3]) for row in rows)
            found.append(Scores(episode=episode, judge=judge, state=state, scores=scores, why=why))
        return found

    def save_checks(self, episode: str, checks: object) -> None:
        """Keep what the rules found out."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO checks VALUES (?,?)", (episode, _json(checks)))

    def checks(self, episode: str) -> dict[str, Any] | None:
        """What the rules found out; None before."""
        row = self._db.execute("SELECT checks FROM checks WHERE episode = ?", (episode,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    def save_rating(self, episode: str, rater: str, score: Score) -> None:
        """Keep one human rating."""
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO ratings VALUES (?,?,?,?,?)",
                (episode, rater, score.name, score.dimension, score.score),
            )

    def ratings(self) -> list[tuple[str, str, str, str, float]]:
        """(episode, rater, name, dimension, score) of all human ratings."""
        return self._db.execute("SELECT * FROM ratings ORDER BY episode, rater, name, dimension").fetchall()

    def answers(self, episode: str) -> EpisodeAnswers:
        """The answers that models gave in one episode."""
        return EpisodeAnswers(self, episode)

    def _write_turns(self, episode: str, turns: Sequence[Turn]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO turns VALUES (?,?,?,?,?,?,?,?,?,?)",
            [
                (episode, t.index, t.number, t.speaker, t.kind, t.argument, _json(t.to), t.at_s, t.lasts_s, t.note)
                for t in turns
            ],
        )

    def _check_version(self) -> None:
        try:
            version = self._get("version")
        except sqlite3.Error as problem:
            raise StoreError(f"{self.path}: is no run: {problem}") from problem
        if version != VERSION:
            raise StoreError(f"{self.path}: was written as version {version}; this program reads {VERSION}")

    def _set(self, key: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, _json(value)))

    def _get(self, key: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    @contextmanager
    def batch(self) -> Iterator[None]:
        """All that is written inside is one transaction."""
        self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._db.rollback()
            raise
        self._db.commit()


class EpisodeAnswers:
    """An `AnswerStore` for one episode; turns that are pending are committed together with the next answer."""

    def __init__(self, store: Store, episode: str) -> None:
        self._store = store
        self._episode = episode
        self.pending_turns: list[Turn] = []

    def find_answer(self, seat: int, number: int, sha: str) -> str | None:
        row = self._store._db.execute(
            "SELECT sha, answer FROM calls WHERE episode = ? AND seat = ? AND number = ?", (self._episode, seat, number)
        ).fetchone()
        if row is None:
            return None
        if row[0] != sha:
            raise StoreError(
                f"{self._store.path}: episode {self._episode}: call {number} of seat {seat} was answered to another "
                "prompt; the run was made with another version of the prompts and cannot be resumed"
            )
        answer: str = row[1]
        return answer

    def keep_answer(self, seat: int, number: int, what: str, model: str, prompt: str, sha: str, answer: Answer) -> None:
        with self._store._db:
            self._store._write_turns(self._episode, self.pending_turns)
            self._store._db.execute(
                "INSERT INTO calls VALUES (?,?,?,?,?,?,?,?,?,?)",
                (
                    self._episode,
                    seat,
                    number,
                    what,
                    model,
                    sha,
                    prompt,
                    answer.text,
                    answer.prompt_tokens,
                    answer.completion_tokens,
                ),
            )
        self.pending_turns.clear()


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=10.0, cached_statements=64)


def _check_is_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{path}: there is no such run; polyrhythm episodes run makes one")


def _take_lock(path: Path) -> IO[str]:
    """Held as long as the file is open; the system lets go of it when the process dies, however it dies."""
    lock = open(path.with_name(path.name + ".lock"), "a+")  # noqa: SIM115  # kept open on purpose
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StoreError(f"{path}: process {holder} is writing this run; wait for it, or stop it first") from problem
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def json_list(text: str) -> tuple[str, ...]:
    """A list of texts as the log keeps it."""
    return msgspec.json.decode(text, type=tuple[str, ...])
