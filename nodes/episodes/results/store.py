"""The log of a run: one file with its episodes, turns, prompts seen, calls with answers, and evaluations.

An answer is committed before it is used, so a killed run goes on from it; everything else follows from plans, seeds and
answers and is played again as it was.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.rules import why_broken
from nodes.episodes.dialogue.turn_based import PromptRecord
from nodes.episodes.results.evaluations import FIRST_JUDGE, Evaluations, TurnScore
from nodes.episodes.results.run_file import StoreError, json_list, to_json
from nodes.models.chat_format import ModelAnswer
from runtime.errors import UserError
from runtime.msgs.episode import Outcome, Turn

TABLES = (
    "episodes",
    "plans",
    "turns",
    "prompts",
    "calls",
    "latencies",
    "left_out",
    "texts",
    "steps",
    "evaluations",
    "judgements",
    "turn_scores",
    "checks",
    "ratings",
    "rationales",
    "preferences",
    "qualifications",
)
"""What a run's file holds besides its spec and card."""


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
    codename: str

    @property
    def label(self) -> str:
        """As lists show it: with the codename, where the identifier says nothing to people."""
        return f"{self.codename} s{self.seed} {self.id[-8:]}" if self.codename else self.id

    @property
    def line_up(self) -> str:
        """How it was made: who knew what, and who played."""
        return f"{self.transparency}: {' and '.join(dict.fromkeys(self.agents))}"


COACH = 150
"""Seat number under which a coach's calls are logged."""
SET_ASIDE = 10_000_000
"""Added to the seat of calls that are no part of the episode any more."""

SORTS = {
    "episode": "number",
    "participants": "names",
    "agents": "agents",
    "information": "transparency",
    "score": "(SELECT coalesce(avg(CASE WHEN judge <> 'rules' THEN score END), avg(score))"
    " FROM evaluations WHERE episode = id)",
    "turns": "(SELECT count(*) FROM turns WHERE episode = id)",
    "end": "reason",
}
"""What a list of episodes can be sorted by; "score" is the mean of all that was scored, by models where they did."""


class Store(Evaluations):
    """A run's file. Open with `Store.create`, `Store.open` (to write) or `Store.read`."""

    def add(self, plans: Iterable[EpisodePlan], *, first: int = 0, step: int = 1) -> None:
        """Take in episodes that are to be played, numbered from `first` by `step`; those already there stay."""
        with self.db:
            for number, plan in enumerate(plans):
                self.db.execute("INSERT OR IGNORE INTO plans VALUES (?,?)", (plan.id, _packed_plan(plan)))
                self.db.execute(
                    "INSERT OR IGNORE INTO episodes (id, number, task, scenario, seed, mode, transparency, turn_order,"
                    " agents, names, state, codename) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                    (
                        *(plan.id, first + step * number, plan.task, plan.scenario, plan.seed),
                        *(plan.mode, plan.transparency, plan.rules.order, to_json(plan.agents), to_json(plan.names)),
                        *("waiting", plan.codename),
                    ),
                )

    def plan(self, episode: str) -> EpisodePlan:
        """The plan of an episode. Raises UserError where there is none of that name."""
        row = self.db.execute("SELECT plan FROM plans WHERE episode = ?", (episode,)).fetchone()
        if row is None:
            raise UserError(
                f"{self.path}: there is no episode {episode[:80]!r}; polyrhythm episodes show RUN lists them"
            )
        return _unpacked_plan(row[0])

    def set_plan(self, plan: EpisodePlan) -> None:
        """Keep what became known of an episode since it was planned: who plays it."""
        with self.db:
            self.db.execute("UPDATE episodes SET agents = ? WHERE id = ?", (to_json(plan.agents), plan.id))
            self.db.execute("UPDATE plans SET plan = ? WHERE episode = ?", (_packed_plan(plan), plan.id))

    def unfinished(self) -> KeptPlans:
        """The episodes that are waiting or have failed, in order."""
        return KeptPlans(self, "WHERE state != 'done'")

    def not_done(self) -> tuple[int, str]:
        """How many episodes are waiting or have failed, and why the first one that has failed did."""
        count, why = self.db.execute(
            "SELECT count(*), (SELECT reason FROM episodes WHERE state != 'done' AND reason != '' ORDER BY number)"
            " FROM episodes WHERE state != 'done'"
        ).fetchone()
        return count, why or "not played"

    def has_people(self) -> bool:
        """Whether a person plays in an episode that is not done."""
        rows = self.db.execute("SELECT DISTINCT agents FROM episodes WHERE state != 'done'")
        return any("human" in json_list(agents) for (agents,) in rows)

    def unjudged(self, judge: str, dimensions: Sequence[str] = ()) -> list[str]:
        """The episodes that are done and have no good evaluation by that judge, or not on all these dimensions."""
        rows = self.db.execute(
            "SELECT id FROM episodes WHERE state = 'done' AND id NOT IN"
            " (SELECT episode FROM judgements WHERE judge = ? AND state = 'done') ORDER BY number",
            (judge,),
        )
        missing = dict.fromkeys(row[0] for row in rows)
        if judge != "rules":
            for name in dimensions:
                rows = self.db.execute(
                    "SELECT id FROM episodes WHERE state = 'done' AND id NOT IN"
                    " (SELECT episode FROM evaluations WHERE judge = ? AND dimension = ?) ORDER BY number",
                    (judge, name),
                )
                missing |= dict.fromkeys(row[0] for row in rows)
        return list(missing)

    def is_judged(self, episode: str, judge: str, dimensions: Sequence[str]) -> bool:
        """Whether that judge has a good evaluation of it, on all these dimensions."""
        found = next((one for one in self.scores(episode) if one.judge == judge and one.state == "done"), None)
        return found is not None and (
            judge == "rules" or set(dimensions) <= {score.dimension for score in found.scores}
        )

    def episodes(self) -> list[EpisodeRow]:
        """All episodes in order."""
        return self._rows("ORDER BY number", ())

    def matching(
        self, wanted: Mapping[str, str], offset: int, most: int, sort: str = ""
    ) -> tuple[list[EpisodeRow], int]:
        """So many of the episodes whose task, agent, state, end or text holds what is wanted; and their number.

        `sort` is one of SORTS, with "-" before it for the other direction; "": as they were planned.
        """
        by = SORTS.get(sort.removeprefix("-"), "number") + (" DESC" if sort.startswith("-") else "")
        columns = {"task": "task || ' ' || codename", "agent": "agents", "state": "state", "end": "reason"}
        tests = [f"instr(lower({columns[key]}), ?)" for key in wanted if key in columns]
        values = [value.lower() for key, value in wanted.items() if key in columns]
        if text := wanted.get("text"):
            tests.append("EXISTS (SELECT 1 FROM turns WHERE episode = id AND instr(lower(argument), ?))")
            values.append(text.lower())
        where = f"WHERE {' AND '.join(tests)}" if tests else ""
        (count,) = self.db.execute(f"SELECT count(*) FROM episodes {where}", values).fetchone()
        return self._rows(f"{where} ORDER BY {by}, number LIMIT ? OFFSET ?", (*values, most, offset)), count

    def episode(self, name: str) -> EpisodeRow:
        """The episode of that name, which there is."""
        return self._rows("WHERE id = ?", (name,))[0]

    def failed_evaluations(self) -> int:
        """How many evaluations have failed."""
        return int(self.db.execute("SELECT count(*) FROM judgements WHERE state = 'failed'").fetchone()[0])

    def judges(self) -> list[str]:
        """Who has judged something."""
        return [row[0] for row in self.db.execute("SELECT DISTINCT judge FROM judgements WHERE state = 'done'")]

    def _rows(self, how: str, values: Sequence[object]) -> list[EpisodeRow]:
        fields = ", ".join(EpisodeRow.__struct_fields__)
        found = []
        known: dict[Any, Any] = {}  # of a hundred thousand rows most texts are the same
        lists: dict[str, tuple[str, ...]] = {}
        for row in self.db.execute(f"SELECT {fields} FROM episodes {how}", values):
            fields_of: dict[str, Any] = {
                name: known.setdefault(value, value) if name not in ("id", "seconds") else value
                for name, value in zip(EpisodeRow.__struct_fields__, row, strict=True)
            }
            for name in ("agents", "names"):
                text = fields_of[name]
                fields_of[name] = lists.get(text) or lists.setdefault(text, json_list(text))
            found.append(EpisodeRow(**fields_of))
        return found

    def turns(self, episode: str) -> list[Turn]:
        """What happened, in order."""
        rows = self.db.execute(
            "SELECT idx, number, speaker, kind, argument, recipients, at_s, lasts_s, note, fault, timing, because"
            " FROM turns WHERE episode = ? ORDER BY idx",
            (episode,),
        )
        names = ("index", "number", "speaker", "kind", "argument", "to", "at_s", "lasts_s", "note", "fault", "timing")
        return [
            Turn(**dict(zip((*names, "because"), (*row[:5], json_list(row[5]), *row[6:]), strict=True))) for row in rows
        ]

    def prompts(self, episode: str) -> list[PromptRecord]:
        """What each prompt held, by seat and ask."""
        rows = self.db.execute(
            "SELECT seat, ask, turn, held, sha FROM prompts WHERE episode = ? ORDER BY seat, ask", (episode,)
        )
        return [
            PromptRecord(row[0], row[1], row[2], msgspec.json.decode(row[3], type=tuple[int, ...]), row[4])
            for row in rows
        ]

    def calls(self, episode: str) -> list[tuple[int, int, str, str, str, str]]:
        """(seat, number, what, model, prompt, answer) of every call to a model."""
        rows = self.db.execute(
            "SELECT seat, number, what, model, prompt, answer FROM calls WHERE episode = ? AND seat < ?"
            " ORDER BY seat, number",
            (episode, SET_ASIDE),
        ).fetchall()
        return [
            (seat, number, what, model, self._unpacked(text), answer)
            for seat, number, what, model, text, answer in rows
        ]

    def _packed(self, prompt: str) -> bytes:
        """A prompt by reference: its parts are stored once, however many prompts hold them; two transcripts differ by
        a line."""
        parts: list[tuple[int, str]] = []
        for block in prompt.split("\n\n"):
            lines = block.split("\n") if "\nTurn " in block else [block]
            ids = [
                int.from_bytes(hashlib.sha256(line.encode(errors="replace")).digest()[:8]) >> 1 & ~1 for line in lines
            ]
            parts += zip([*ids[:-1], ids[-1] | 1], lines, strict=True)  # odd: the end of a block
        self.db.executemany("INSERT OR IGNORE INTO texts VALUES (?,?)", [(key & ~1, text) for key, text in parts])
        return array("q", [key for key, _ in parts]).tobytes()

    def _unpacked(self, packed: bytes) -> str:
        found = []
        for key in array("q", packed):
            (text,) = self.db.execute("SELECT text FROM texts WHERE id = ?", (key & ~1,)).fetchone()
            found += [text, "\n\n" if key & 1 else "\n"]
        return "".join(found[:-1])

    def set_aside_failed(self, plan: EpisodePlan) -> None:
        """Let a broken episode be played on from its first failed turn: later answers are no part of it any more.

        They stay in the file under seats of their own, as what was paid for. Where it failed otherwise all is kept.
        """
        with self.db:  # the last word of a seat, which it may have longer questions read to by now
            self.db.execute(
                "DELETE FROM calls AS one WHERE episode = ? AND ending = 'full' AND NOT EXISTS (SELECT 1 FROM calls"
                " WHERE episode = one.episode AND seat = one.seat AND number > one.number AND ending <> 'full')",
                (plan.id,),
            )
        turns = self.turns(plan.id)
        if not why_broken(turns, plan.names, is_over=True):
            return
        first = next(turn for turn in turns if turn.is_failed)
        speaks, is_free = plan.names.index(first.speaker), plan.rules.order == "asynchronous"
        shas: dict[int, list[str]] = {}
        for one in self.prompts(plan.id):
            if one.turn > first.number or (one.turn == first.number and (is_free or one.seat == speaks)):
                shas.setdefault(one.seat, []).append(one.sha)
        with self.db:
            self._move_calls(plan.id, COACH, 1)
            for seat, ones in shas.items():
                marks = ",".join("?" * len(ones))
                query = f"SELECT min(number) FROM calls WHERE episode = ? AND seat = ? AND sha IN ({marks})"
                (number,) = self.db.execute(query, (plan.id, seat, *ones)).fetchone()
                if number is not None:
                    self._move_calls(plan.id, seat, number)

    def _move_calls(self, episode: str, seat: int, first: int) -> None:
        query = "SELECT coalesce(max(number), 0) FROM calls WHERE episode = ? AND seat = ?"
        (last,) = self.db.execute(query, (episode, SET_ASIDE + seat)).fetchone()
        for table in ("calls", "latencies"):
            self.db.execute(
                f"UPDATE {table} SET seat = ?, number = number + ? WHERE episode = ? AND seat = ? AND number >= ?",
                (SET_ASIDE + seat, last, episode, seat, first),
            )

    def failed_turns(self) -> tuple[int, int]:
        """How many turns could not be understood, and of how many, over all episodes."""
        failed, count = self.db.execute(
            "SELECT coalesce(sum(fault NOT IN ('', 'cut')), 0), count(*) FROM turns"
        ).fetchone()
        return int(failed), int(count)

    def tokens(self) -> tuple[int, int, int]:
        """Calls, prompt tokens and completion tokens of the run so far."""
        spent = self.tokens_by_model().values()
        return sum(one[0] for one in spent), sum(one[1] for one in spent), sum(one[2] for one in spent)

    def tokens_by_model(self) -> dict[str, tuple[int, int, int]]:
        """The same by model, "MODEL" or "MODEL@SERVER"; what people typed is no call."""
        rows = self.db.execute(
            "SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens) FROM calls WHERE model != 'human'"
            " GROUP BY model"
        )
        return {model: (calls, prompt, completion) for model, calls, prompt, completion in rows}

    def save_turns(self, episode: str, turns: Sequence[Turn]) -> None:
        """Keep turns as they happen."""
        with self.db:
            self._write_turns(episode, turns)

    def save_played(
        self, episode: str, turns: Sequence[Turn], prompts: Sequence[PromptRecord], outcome: Outcome
    ) -> None:
        """Keep a whole episode, in one transaction."""
        with self.db:
            self.db.execute("DELETE FROM turns WHERE episode = ?", (episode,))
            self.db.execute("DELETE FROM prompts WHERE episode = ?", (episode,))
            self._write_turns(episode, turns)
            self.db.executemany(
                "INSERT OR REPLACE INTO prompts VALUES (?,?,?,?,?,?)",
                [(episode, one.seat, one.ask, one.turn, to_json(one.held), one.sha) for one in prompts],
            )
            self.db.execute(
                "UPDATE episodes SET state = ?, reason = ?, seconds = ?, failures = ? WHERE id = ?",
                (outcome.state, outcome.reason, outcome.seconds, outcome.failures, episode),
            )

    def link_recording(self, episode: str, recording: str) -> None:
        """Note the recording of an embodied episode."""
        with self.db:
            self.db.execute("UPDATE episodes SET recording = ? WHERE id = ?", (recording, episode))

    def take_in(self, other: Path) -> int:
        """All that another run's file holds, as it stands there; how many episodes. Raises UserError for a clash."""
        with Store.read(other) as shard:
            mine, theirs = self.spec, shard.spec
            keys = [key for key in {**mine, **theirs} if key != "shard" and mine.get(key) != theirs.get(key)]
            if keys:
                other_parts = " and ".join(dict.fromkeys(_PARTS_OF_A_RUN.get(key, "other settings") for key in keys))
                raise UserError(
                    f"{other}: is of another run than the files before it, with {other_parts}; merge shards of one run"
                )
        self.db.execute("ATTACH DATABASE ? AS shard", (str(other.resolve()),))
        try:
            (both,) = self.db.execute(
                "SELECT min(id) FROM shard.episodes WHERE id IN (SELECT id FROM episodes)"
            ).fetchone()
            if both is not None:
                raise UserError(f"{other}: holds {both}, and so does another file; merge each shard once")
            (count,) = self.db.execute("SELECT count(*) FROM shard.episodes").fetchone()
            with self.db:
                for table in TABLES:
                    self.db.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM shard.{table}")
        finally:
            self.db.execute("DETACH DATABASE shard")
        return int(count)

    def answers(self, episode: str) -> EpisodeAnswers:
        """The answers that models gave in one episode."""
        return EpisodeAnswers(self, episode)

    def _write_turns(self, episode: str, turns: Sequence[Turn]) -> None:
        self.db.executemany(
            f"INSERT OR REPLACE INTO turns VALUES ({','.join('?' * 13)})",
            [
                (
                    *(episode, t.index, t.number, t.speaker, t.kind, t.argument, to_json(t.to)),
                    *(t.at_s, t.lasts_s, t.note, t.fault, t.timing, t.because),
                )
                for t in turns
            ],
        )


_PARTS_OF_A_RUN = {
    "whole": "other agents, tasks, seeds or rules",
    "judges": "other judges",
    "dimensions": "other dimensions",
    "profiles": "other characters or scenarios",
    "like": "other prompts",
}
"""What differs where a key of what two runs were asked for does."""


def whole_of(ids: Sequence[str]) -> dict[str, Any]:
    """What every shard keeps of the run that it is a part of: how many episodes, and which."""
    return {"episodes": len(ids), "sha256": hashlib.sha256("\n".join(ids).encode()).hexdigest()}


class KeptPlans(Collection[EpisodePlan]):
    """Plans of a run's file, each read when it is wanted: many of them are larger than memory."""

    def __init__(self, store: Store, where: str = "") -> None:
        self._store = store
        self._ids = [row[0] for row in store.db.execute(f"SELECT id FROM episodes {where} ORDER BY number")]

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[EpisodePlan]:
        return map(self._store.plan, self._ids)

    def __contains__(self, plan: object) -> bool:
        return isinstance(plan, EpisodePlan) and plan.id in self._ids


def _packed_plan(plan: EpisodePlan) -> bytes:
    return zlib.compress(msgspec.json.encode(plan), 6)  # a third: profiles and rules are much alike


def _unpacked_plan(packed: bytes) -> EpisodePlan:
    return msgspec.json.decode(zlib.decompress(packed), type=EpisodePlan)


class EpisodeAnswers:
    """An `AnswerStore` for one episode; turns that are pending are committed together with the next answer."""

    def __init__(self, store: Store, episode: str) -> None:
        self._store = store
        self._episode = episode
        self.pending_turns: list[Turn] = []
        self.turn_scores: list[TurnScore] = []  # what a coach made of turns, kept with the episode

    def find_answer(self, seat: int, number: int, sha: str) -> ModelAnswer | None:
        row = self._store.db.execute(
            "SELECT sha, answer, ending, coalesce(took_s, 0) FROM calls LEFT JOIN latencies "
            "USING (episode, seat, number) WHERE episode = ? AND seat = ? AND number = ?",
            (self._episode, seat, number),
        ).fetchone()
        if row is None:
            return None
        if row[0] != sha:
            remedy = (
                " and cannot be resumed" if seat < FIRST_JUDGE else "; judge anew with: score RUN --judges J --again"
            )
            raise StoreError(
                f"{self._store.path}: episode {self._episode}: call {number} of seat {seat} was answered to another "
                f"prompt; the run was made with another version of the prompts{remedy}"
            )
        return ModelAnswer(row[1], ending=row[2], took_s=row[3])

    def last_call(self, seat: int) -> int:
        """The number of that seat's newest call; 0 before there is one."""
        where = (self._episode, seat)
        query = "SELECT coalesce(max(number), 0) FROM calls WHERE episode = ? AND seat = ?"
        return int(self._store.db.execute(query, where).fetchone()[0])

    def keep_answer(
        self, seat: int, number: int, what: str, model: str, prompt: str, sha: str, answer: ModelAnswer
    ) -> None:
        with self._store.db:
            self._store._write_turns(self._episode, self.pending_turns)
            self._store.db.execute(
                "INSERT INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                (
                    self._episode,
                    seat,
                    number,
                    what,
                    model,
                    sha,
                    self._store._packed(prompt),
                    answer.text,
                    answer.prompt_tokens,
                    answer.completion_tokens,
                    answer.ending,
                ),
            )
            self._store.db.executemany(
                "INSERT OR IGNORE INTO left_out VALUES (?,?)", [(model, what) for what in answer.left_out]
            )
            if answer.took_s:
                where = (self._episode, seat, number)
                self._store.db.execute("INSERT OR REPLACE INTO latencies VALUES (?,?,?,?)", (*where, answer.took_s))
        self.pending_turns.clear()
