"""`Evaluations`: what judges, checks and human raters made of the episodes in a run's file."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from nodes.episodes.evaluation.dimensions import SEVEN, Dimension
from nodes.episodes.results.run_file import RunFile, to_json
from runtime.errors import UserError
from runtime.msgs.episode import Score, Scores

FIRST_JUDGE = 200
"""Calls under this seat number and above are judges'."""


def judge_seat(judge: str, dimensions: Sequence[Dimension] = SEVEN) -> int:
    """The number under which a judge's calls on these dimensions stand in the log."""
    asked = judge.encode() if tuple(dimensions) == SEVEN else judge.encode() + msgspec.json.encode(dimensions)
    return FIRST_JUDGE + zlib.crc32(asked) % 1_000_000


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
            if scores.state == "failed":
                where = (scores.episode, scores.judge)
                kept = self.db.execute(
                    "UPDATE judgements SET why = ? WHERE episode = ? AND judge = ? AND state = 'done'",
                    (scores.why, *where),
                )
                if kept.rowcount:
                    return
            self.db.executemany(
                "INSERT OR REPLACE INTO evaluations VALUES (?,?,?,?,?,?)",
                [(scores.episode, scores.judge, s.name, s.dimension, s.score, s.reasoning) for s in scores.scores],
            )
            self.db.execute(
                "INSERT OR REPLACE INTO judgements VALUES (?,?,?,?)",
                (scores.episode, scores.judge, scores.state, scores.why),
            )

    def take_dimensions(self, dimensions: Sequence[Dimension], *, may_change: bool = False) -> None:
        """Keep what this run is judged on. Raises UserError for a name that stood for another scale before.

        `may_change`: the scores on it are asked for anew.
        """
        known = {
            one.name: one
            for kept in (self.spec.get("dimensions", []), self._get("dimensions") or [])
            for one in msgspec.convert(kept, tuple[Dimension, ...])
        }
        for one in dimensions:
            before = known.get(one.name, one)
            if before != one and not may_change:
                raise UserError(
                    f"{self.path}: {one.name} was judged as {before.label} ({before.instruction[:60]!r}), and is now "
                    f"{one.label} ({one.instruction[:60]!r}); give it another name, or judge anew with --again"
                )
            known[one.name] = one
        with self.db:
            self._set("dimensions", msgspec.to_builtins(list(known.values())))

    def scores(self, episode: str) -> list[Scores]:
        """The evaluations of an episode, one per judge."""
        found = []
        for judge, state, why in self.db.execute(
            "SELECT judge, state, why FROM judgements WHERE episode = ? ORDER BY judge", (episode,)
        ).fetchall():
            rows = self.db.execute(
                "SELECT name, dimension, score, reasoning FROM evaluations WHERE episode = ? AND judge = ?"
                " ORDER BY name, dimension",
                (episode, judge),
            )
            scores = tuple(Score(name=row[0], dimension=row[1], score=row[2], reasoning=row[3]) for row in rows)
            found.append(Scores(episode=episode, judge=judge, state=state, scores=scores, why=why))
        return found

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

    def rationales(self) -> dict[tuple[str, str, str, str], str]:
        """The reasons of human ratings, by (episode, rater, name, dimension)."""
        found = self.db.execute("SELECT * FROM rationales").fetchall()
        return {(episode, rater, name, dimension): text for episode, rater, name, dimension, text in found}

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
