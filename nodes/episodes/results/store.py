"""The log of a run: one file with its episodes, turns, prompts seen, calls with answers, and evaluations.

An answer is committed before it is used, so a killed run goes on from it; everything else follows from plans, seeds and
answers and is played again as it was. `LiveLog` keeps an episode of a launch file: a step is a seat's answer or the end
of a pause, with its time; a moderator that takes the steps again stands where the killed one stood.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from nodes.episodes.agents.agent_spec import agent_of
from nodes.episodes.dialogue.ending import why_broken
from nodes.episodes.dialogue.moderator import LoggedStep
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.turn_based import PromptRecord
from nodes.episodes.evaluation.dimensions import RULES_JUDGE, SEVEN, Dimension
from nodes.episodes.results.card import card_of
from nodes.episodes.results.run_file import RunFile, StoreError, json_list, to_json
from nodes.models.chat_format import ModelAnswer
from nodes.msgs.episode import Outcome, Score, Scores, Turn
from runtime.errors import UserError

FIRST_JUDGE = 200
"""Calls under this seat number and above are judges'."""


def judge_seat(judge: str, dimensions: Sequence[Dimension] = SEVEN) -> int:
    """The number under which a judge's calls on these dimensions stand in the log."""
    asked = judge.encode() if tuple(dimensions) == SEVEN else judge.encode() + msgspec.json.encode(dimensions)
    return FIRST_JUDGE + zlib.crc32(asked) % 1_000_000


def _by_name(dimensions: Iterable[Dimension]) -> dict[str, Dimension]:
    return {one.name: one for one in dimensions}


FOLLOWS = "measured with "
"""How the name of a judge begins that is a measure: instruction following, with the name of its encoder."""


class TurnScore(msgspec.Struct, frozen=True):
    """What a judge made of one turn: a step rating, a turn's relevance, whether a prediction of it came true."""

    turn: int  # the turn's index
    judge: str
    dimension: str
    score: float


class Evaluations(RunFile):
    """The part of a run's file that says what its episodes were worth."""

    def save_scores(self, scores: Scores) -> None:
        """Keep an evaluation, in place of what the same judge said before of the same dimensions; the rest stays.

        A failed one takes nothing away: what was scored before stays, with why it could not be asked again.
        """
        with self.db:
            self._put(scores)

    def save_rescaled(self, evaluations: Iterable[Scores], dimensions: Sequence[Dimension]) -> None:
        """Keep evaluations on scales that are new to this run, in place of all that were there; all or none."""
        with self.db:
            for scores in evaluations:
                self._put(scores)
            self._set("dimensions", msgspec.to_builtins(list({**self._scales(), **_by_name(dimensions)}.values())))

    def _put(self, scores: Scores) -> None:
        if scores.state == "failed":
            where = (scores.why, scores.episode, scores.judge)
            query = "UPDATE judgements SET why = ? WHERE episode = ? AND judge = ? AND state = 'done'"
            if self.db.execute(query, where).rowcount:
                return
        self.db.executemany(
            "INSERT OR REPLACE INTO evaluations VALUES (?,?,?,?,?,?)",
            [(scores.episode, scores.judge, s.name, s.dimension, s.score, s.reasoning) for s in scores.scores],
        )
        row = (scores.episode, scores.judge, scores.state, scores.why)
        self.db.execute("INSERT OR REPLACE INTO judgements VALUES (?,?,?,?)", row)

    def _scales(self) -> dict[str, Dimension]:
        kept = (*self.spec.get("dimensions", []), *(self._get("dimensions") or []))
        return _by_name(msgspec.convert(kept, tuple[Dimension, ...]))

    def takes_new_scale(self, dimensions: Sequence[Dimension], again_by: Collection[str] = ()) -> bool:
        """Whether scores that are there are of another scale than these; if not, these are kept as the run's.

        `again_by`: who is asked anew. Raises UserError where others have scored by that name on another scale.
        """
        known, is_new = self._scales(), False
        query = "SELECT DISTINCT judge FROM evaluations WHERE dimension = ? AND judge <> ?"
        for one in dimensions:
            if (before := known.get(one.name, one)) == one:
                continue
            scored_by = {judge for (judge,) in self.db.execute(query, (one.name, RULES_JUDGE))}
            if scored_by - {*again_by}:
                raise UserError(
                    f"{self.path}: {one.name} was judged as {before.label} ({before.instruction[:60]!r}), and is now "
                    f"{one.label} ({one.instruction[:60]!r}); give it another name, or judge anew with --again, by all "
                    f"who have: {', '.join(sorted(scored_by))}"
                )
            is_new = is_new or bool(scored_by)
        if not is_new:
            self.save_rescaled((), dimensions)
        return is_new

    def scores(self, episode: str) -> list[Scores]:
        """The evaluations of an episode, one per judge."""
        by_judge: dict[str, list[Score]] = {}
        columns = "judge, name, dimension, score, reasoning"
        query = f"SELECT {columns} FROM evaluations WHERE episode = ? ORDER BY name, dimension"
        for judge, *row in self.db.execute(query, (episode,)):
            by_judge.setdefault(judge, []).append(Score(**dict(zip(Score.__struct_fields__, row, strict=True))))
        query = "SELECT judge, state, why FROM judgements WHERE episode = ? ORDER BY judge"
        return [
            Scores(episode=episode, judge=judge, state=state, scores=tuple(by_judge.get(judge, ())), why=why)
            for judge, state, why in self.db.execute(query, (episode,))
        ]

    def save_turn_scores(self, episode: str, scores: Sequence[TurnScore]) -> None:
        """Keep scores of single turns; the same judge's newer score of a turn and dimension wins."""
        with self.db:
            self.db.executemany(
                "INSERT OR REPLACE INTO turn_scores VALUES (?,?,?,?,?)",
                [(episode, one.turn, one.judge, one.dimension, one.score) for one in scores],
            )

    def turn_scores(self, episode: str) -> list[TurnScore]:
        """The scores of an episode's turns; a file from before there were any has none."""
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'turn_scores'").fetchone():
            return []
        rows = self.db.execute(
            "SELECT turn, judge, dimension, score FROM turn_scores WHERE episode = ? ORDER BY turn, judge, dimension",
            (episode,),
        )
        return [TurnScore(*row) for row in rows]

    def save_checks(self, episode: str, checks: object) -> None:
        """Keep what the rules found out."""
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO checks VALUES (?,?)", (episode, to_json(checks)))

    def checks(self, episode: str) -> dict[str, Any] | None:
        """What the rules found out; None before."""
        row = self.db.execute("SELECT checks FROM checks WHERE episode = ?", (episode,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    def save_ratings(self, episode: str, rater: str, scores: Sequence[Score]) -> None:
        """Keep what one person gives one episode, all of it or nothing; with the reasons where there are some."""
        with self.db:
            for score in scores:
                where = (episode, rater, score.name, score.dimension)
                self.db.execute("INSERT OR REPLACE INTO ratings VALUES (?,?,?,?,?)", (*where, score.score))
                if score.reasoning:
                    self.db.execute("INSERT OR REPLACE INTO rationales VALUES (?,?,?,?,?)", (*where, score.reasoning))

    def ratings(self) -> list[tuple[str, str, str, str, float]]:
        """(episode, rater, name, dimension, score) of all human ratings."""
        return self.db.execute("SELECT * FROM ratings ORDER BY episode, rater, name, dimension").fetchall()

    def save_preference(self, first: str, second: str, rater: str, choice: str, why: str) -> None:
        """Keep which of two episodes one person finds more natural: "first", "second" or "neither"."""
        with self.db:
            self.db.execute(
                "INSERT OR REPLACE INTO preferences VALUES (?,?,?,?,?)", (first, second, rater, choice, why)
            )

    def preferences(self) -> list[tuple[str, str, str, str, str]]:
        """(first, second, rater, choice, why) of all comparisons by people."""
        return self.db.execute("SELECT * FROM preferences ORDER BY first, second, rater").fetchall()

    def rater_keys(self, raters: Sequence[str]) -> dict[str, str]:
        """Who rates by the key in their address; a key is made once, so that an address lasts as long as the run."""
        known: dict[str, str] = self._get("rater_keys") or {}
        known |= {name: secrets.token_urlsafe(12) for name in raters if name not in known}
        with self.db:
            self._set("rater_keys", known)
        return {known[name]: name for name in raters}

    def save_qualification(self, rater: str, *, passed: bool) -> None:
        """Count one attempt at the dialogue with known scores."""
        with self.db:
            self.db.execute(
                "INSERT INTO qualifications VALUES (?,?,1) ON CONFLICT (rater) DO UPDATE SET "
                "passed = max(passed, excluded.passed), attempts = attempts + 1",
                (rater, int(passed)),
            )

    def is_qualified(self, rater: str) -> bool:
        """Whether this person has given the known dialogue its scores."""
        row = self.db.execute("SELECT passed FROM qualifications WHERE rater = ?", (rater,)).fetchone()
        return bool(row and row[0])


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
        return msgspec.json.decode(zlib.decompress(row[0]), type=EpisodePlan)

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
        query = "SELECT id FROM episodes WHERE state = 'done' AND id NOT IN (SELECT episode FROM {}) ORDER BY number"
        rows = self.db.execute(query.format("judgements WHERE judge = ? AND state = 'done'"), (judge,)).fetchall()
        for name in dimensions if judge != "rules" else ():
            rows += self.db.execute(query.format("evaluations WHERE judge = ? AND dimension = ?"), (judge, name))
        return list(dict.fromkeys(row[0] for row in rows))

    def is_judged(self, episode: str, judge: str, dimensions: Sequence[str]) -> bool:
        """Whether that judge has a good evaluation of it, on all these dimensions."""
        found = next((one for one in self.scores(episode) if one.judge == judge and one.state == "done"), None)
        return found is not None and (judge == "rules" or {*dimensions} <= {score.dimension for score in found.scores})

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
        fields = EpisodeRow.__struct_fields__
        known: dict[Any, Any] = {}  # of a hundred thousand rows most texts are the same
        found = []
        for row in self.db.execute(f"SELECT {', '.join(fields)} FROM episodes {how}", values):
            told = {name: known.setdefault(value, value) for name, value in zip(fields, row, strict=True)}
            found.append(EpisodeRow(**told | {name: json_list(told[name]) for name in ("agents", "names")}))
        return found

    def turns(self, episode: str) -> list[Turn]:
        """What happened, in order; the table's columns are the fields of a turn."""
        rows = self.db.execute("SELECT * FROM turns WHERE episode = ? ORDER BY idx", (episode,))
        told = (dict(zip(Turn.__struct_fields__, row[1:], strict=True)) for row in rows)
        return [Turn(**one | {"to": json_list(one["to"])}) for one in told]

    def prompts(self, episode: str) -> list[PromptRecord]:
        """What each prompt held, by seat and ask."""
        rows = self.db.execute(
            "SELECT seat, ask, turn, held, sha FROM prompts WHERE episode = ? ORDER BY seat, ask", (episode,)
        )
        read = msgspec.json.Decoder(tuple[int, ...]).decode
        return [PromptRecord(seat, ask, turn, read(held), sha) for seat, ask, turn, held, sha in rows]

    def calls(self, episode: str) -> list[tuple[int, int, str, str, str, str]]:
        """(seat, number, what, model, prompt, answer) of every call to a model."""
        rows = self.db.execute(
            "SELECT seat, number, what, model, prompt, answer FROM calls WHERE episode = ? AND seat < ?"
            " ORDER BY seat, number",
            (episode, SET_ASIDE),
        ).fetchall()
        return [(*row[:4], self._unpacked(row[4]), row[5]) for row in rows]

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
        query = "SELECT coalesce(sum(fault NOT IN ('', 'cut')), 0), count(*) FROM turns"
        failed, count = self.db.execute(query).fetchone()
        return int(failed), int(count)

    def tokens(self) -> tuple[int, int, int]:
        """Calls, prompt tokens and completion tokens of the run so far."""
        calls, prompt, completion = (sum(one) for one in zip((0, 0, 0), *self.tokens_by_model().values(), strict=True))
        return calls, prompt, completion

    def tokens_by_model(self) -> dict[str, tuple[int, int, int]]:
        """The same by model, "MODEL" or "MODEL@SERVER"; what people typed is no call."""
        rows = self.db.execute(
            "SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens) FROM calls WHERE model != 'human'"
            " GROUP BY model"
        )
        return {model: tuple(spent) for model, *spent in rows}

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
                for (table,) in self.db.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'meta'"
                ).fetchall():
                    self.db.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM shard.{table}")
        finally:
            self.db.execute("DETACH DATABASE shard")
        return int(count)

    def answers(self, episode: str) -> EpisodeAnswers:
        """The answers that models gave in one episode."""
        return EpisodeAnswers(self, episode)

    def _write_turns(self, episode: str, turns: Sequence[Turn]) -> None:
        rows = (msgspec.structs.asdict(cast(Any, turn)) | {"to": to_json(turn.to)} for turn in turns)
        marks = ",".join("?" * 13)
        self.db.executemany(
            f"INSERT OR REPLACE INTO turns VALUES ({marks})", [(episode, *row.values()) for row in rows]
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


class EpisodeAnswers:
    """An `AnswerStore` for one episode; turns that are pending are committed together with the next answer."""

    def __init__(self, store: Store, episode: str) -> None:
        self._store = store
        self._episode = episode
        self.pending_turns: list[Turn] = []
        self.turn_scores: list[TurnScore] = []  # what a coach made of turns, kept with the episode

    def find_answer(self, seat: int, number: int, sha: str) -> ModelAnswer | None:
        row = self._store.db.execute(
            "SELECT sha, answer, ending, took_s FROM calls LEFT JOIN latencies "
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
                    *(self._episode, seat, number, what, model, sha, self._store._packed(prompt)),
                    *(answer.text, answer.prompt_tokens, answer.completion_tokens, answer.ending),
                ),
            )
            self._store.db.executemany(
                "INSERT OR IGNORE INTO left_out VALUES (?,?)", [(model, what) for what in answer.left_out]
            )
            if answer.took_s is not None:  # 0 is a time, too
                where = (self._episode, seat, number)
                self._store.db.execute("INSERT OR REPLACE INTO latencies VALUES (?,?,?,?)", (*where, answer.took_s))
        self.pending_turns.clear()


UNKNOWN = "nobody yet"
"""Who plays a seat that has not answered."""


class LiveLog:
    """An open results file with one episode. Raises UserError where the file holds something else, or is complete."""

    def __init__(self, path: Path, plan: EpisodePlan) -> None:
        self._store = _opened(path, msgspec.structs.replace(plan, agents=(UNKNOWN,) * len(plan.agents)))
        self._plan = self._store.plan(plan.id)
        found = self._store.db.execute("SELECT step FROM steps WHERE episode = ? ORDER BY idx", (plan.id,))
        self.steps = [msgspec.json.decode(row[0], type=LoggedStep) for row in found]
        self.turns = self._store.turns(plan.id)
        self._count = len(self.steps)

    def note(self, step: LoggedStep) -> None:
        """Commit a step, before anything follows from it."""
        with self._store.db:
            self._store.db.execute("INSERT INTO steps VALUES (?,?,?)", (self._plan.id, self._count, to_json(step)))
        self._count += 1

    def note_player(self, seat: int, provenance: str) -> None:
        """Keep who plays a seat, which no launch file tells; two that took turns at it are both named."""
        agent = agent_of(provenance)
        known = self._plan.agents[seat]
        if agent in known.split(" + "):
            return
        agents, truths = list(self._plan.agents), list(self._plan.truths)
        agents[seat] = agent if known == UNKNOWN else f"{known} + {agent}"
        truths[seat] = msgspec.structs.replace(truths[seat], is_human="human" in agents[seat].split(" + "))
        self._plan = msgspec.structs.replace(self._plan, agents=tuple(agents), truths=tuple(truths))
        self._store.set_plan(self._plan)
        self._store.set_card(card_of([self._plan], [scores.judge for scores in self._store.scores(self._plan.id)]))

    def save_turns(self, turns: Sequence[Turn]) -> None:
        """Keep turns as they happen, for whoever reads along."""
        self._store.save_turns(self._plan.id, turns)

    def save_played(self, turns: Sequence[Turn], prompts: Sequence[PromptRecord], outcome: Outcome) -> None:
        """Keep the whole episode and, where it is done, what rules can tell of it."""
        from nodes.episodes.evaluation.by_rules import check_episode

        self._store.save_played(self._plan.id, turns, prompts, outcome)
        if outcome.state == "done":
            self._store.save_checks(self._plan.id, check_episode(self._plan, turns))

    def save_scores(self, scores: Scores) -> None:
        """Keep the judge's scores, and name the judge on the simulation card."""
        self._store.save_scores(scores)
        self._store.set_card(card_of([self._plan], [scores.judge]))

    def close(self) -> None:
        """Let others write the file."""
        self._store.close()


def _opened(path: Path, plan: EpisodePlan) -> Store:
    if not path.exists():
        store = Store.create(path, {"judges": [], "dimensions": [], "is_live": True})
        store.add([plan])
        store.set_card(card_of([plan], []))
        return store
    store = Store.open(path)
    if problem := _problem(store, plan):
        store.close()
        raise UserError(f"{path}: {problem}")
    store.add([plan])  # where it was killed before there was anything to play
    return store


def _problem(store: Store, plan: EpisodePlan) -> str:
    """Why that episode cannot be gone on with in this file; "" where it can."""
    rows = store.episodes()
    another = f"read it with: polyrhythm episodes show {store.path}, or name another file"
    if not store.spec.get("is_live"):
        again = f"go on with: polyrhythm episodes resume {store.path}, or name another file"
        return f"is of polyrhythm episodes run; {again}"
    if rows and rows[0].id != plan.id:
        return f"holds the episode {rows[0].id}, and this launch file plays {plan.id}; {another}"
    if rows and rows[0].state == "done" and any(one.state == "done" for one in store.scores(plan.id)):
        return f"its episode is over ({rows[0].reason}); {another}"
    return ""
