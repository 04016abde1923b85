"""Ratings beside a recording: JSON lines that only grow, read so that the newest of each counts; agreement, export."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import msgspec

from bridges.web.http.jsonl import LineFile, read_lines
from bridges.web.questionnaire.questionnaire import Item
from nodes.statistics.agreement import icc, krippendorff_alpha, merged, pearson, randolph_kappa, weighted_kappa
from runtime.errors import UserError, writing
from runtime.operating_system.whole_file import is_only_writer

CLASSES = 5
RUN = "run"
"""The name of a run's own recording; ratings that were given under it are taken for those of the run's folder."""


class Rating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One annotator's word on one agent in one dimension; `score` None takes it back."""

    episode: str
    rater: str
    name: str
    dimension: str
    score: int | None
    rationale: str = ""
    at_s: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a later rating takes the place of."""
        return self.episode, self.rater, self.name, self.dimension


_encoder = msgspec.json.Encoder()


def ratings_file(recording: Path) -> Path:
    """Where the ratings of a recording are."""
    return recording.with_suffix(".ratings.jsonl")


def name_of(recording: Path) -> str:
    """What it is called among others: every run's is named run.mcap, and known by the run's folder."""
    return recording.resolve().parent.name if recording.stem == RUN else recording.stem


def read_ratings(path: Path) -> dict[tuple[str, str, str, str], Rating]:
    """The newest of each. Raises UserError with the line that is none; a torn last line is left out."""
    rows = read_lines(path, Rating, "rating") if path.exists() else []
    if path.name == ratings_file(Path(RUN)).name:
        name = name_of(path.with_name(RUN))
        rows = [msgspec.structs.replace(row, episode=name) if row.episode == RUN else row for row in rows]
    return {rating.key: rating for rating in rows}


class Ratings:
    """The ratings of one recording while people rate: one process writes, each word is on the disk at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_key = read_ratings(path)
        with writing(path):
            self._lines = LineFile(path)
            is_ours = is_only_writer(self._lines.file)
        if not is_ours:
            self._lines.close()
            raise UserError(f"{path}: another annotate writes here; use its addresses, or end it")
        self._lines.mend(path)

    def save(self, rating: Rating) -> None:
        """Return once it is on the disk. Raises OSError where it cannot be."""
        self._lines.write(rating)
        self.by_key[rating.key] = rating

    def close(self) -> None:
        """Let others write."""
        self._lines.close()


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """One dimension: Randolph's kappa among people on five classes, Pearson of their means with the model's scores."""

    dimension: str
    raters: int
    items: int  # agents of recordings that somebody rated
    kappa: float | None
    alpha: float | None  # Krippendorff's, ordinal, of the scores as they were given
    weighted_kappa: float | None  # Cohen's, squared weights; the mean over pairs of raters
    icc: float | None  # ICC(2,1) of what all of them rated
    matched: int  # of these, how many the model scored, too
    pearson: float | None


def agreement(
    ratings: Iterable[Rating], scales: Sequence[Item], scores: Mapping[tuple[str, str, str], float]
) -> list[RaterAgreement]:
    """For each dimension that was rated; `scores` by (episode, agent, dimension)."""
    given = [rating for rating in ratings if rating.score is not None]
    found = []
    for scale in scales:
        items: dict[tuple[str, str], list[int]] = {}
        own = [rating for rating in given if rating.dimension == scale.id]
        for rating in own:
            assert rating.score is not None
            items.setdefault((rating.episode, rating.name), []).append(rating.score)
        if not items:
            continue
        whole = _whole(own, scale)
        classes = [[merged(score, scale.low, scale.high) for score in values] for values in items.values()]
        pairs = [
            (sum(values) / len(values), scores[episode, name, scale.id])
            for (episode, name), values in items.items()
            if (episode, name, scale.id) in scores
        ]
        found.append(
            RaterAgreement(
                scale.id,
                len({rating.rater for rating in own}),
                len(items),
                randolph_kappa(classes, CLASSES),
                krippendorff_alpha(list(items.values())),
                _mean_weighted_kappa(whole, scale.high - scale.low + 1),
                icc(whole) if whole else None,
                len(pairs),
                pearson([human for human, _ in pairs], [machine for _, machine in pairs]),
            )
        )
    return found


def _whole(ratings: Sequence[Rating], scale: Item) -> list[list[int]]:
    """What all raters of this dimension have rated: items x raters, from 0."""
    raters = sorted({one.rater for one in ratings})
    by_item: dict[tuple[str, str], dict[str, int]] = {}
    for one in ratings:
        assert one.score is not None
        by_item.setdefault((one.episode, one.name), {})[one.rater] = one.score - scale.low
    return [[scores[rater] for rater in raters] for scores in by_item.values() if len(scores) == len(raters)]


def _mean_weighted_kappa(whole: Sequence[Sequence[int]], categories: int) -> float | None:
    columns = list(zip(*whole, strict=True))
    found = [weighted_kappa(one, other, categories) for one, other in combinations(columns, 2)]
    known = [kappa for kappa in found if kappa is not None]
    return sum(known) / len(known) if known else None


def exported(ratings: Iterable[Rating], form: str) -> str:
    """The ratings that stand, as "jsonl" (which `polyrhythm episodes score --ratings` takes) or "csv"."""
    rows = sorted((one for one in ratings if one.score is not None), key=lambda one: one.key)
    fields = ("episode", "rater", "name", "dimension", "score", "rationale")
    if form == "jsonl":
        return "".join(_encoder.encode({name: getattr(row, name) for name in fields}).decode() + "\n" for row in rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([getattr(row, name) for name in fields] for row in rows)
    return out.getvalue()
