"""A referential game: a speaker describes one of four pictures to listeners who know some languages and not others.

The speaker with the partner in mind holds a belief over what the listener understands, sees each choice, and says next
what will most probably be understood, with a cost for length (thesis, equation 3.3). Words are data (`words.json`), and
what was learned of each listener is, too (`read_minds`, `write_minds`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.statistics.paired import mean_of
from runtime.command_line.columns import columns
from runtime.errors import UserError, writing
from runtime.operating_system.whole_file import write_whole
from runtime.serialization.toml_errors import read_text

WORDS: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
PICTURES = tuple(itertools.product(("red", "blue", "green"), ("circle", "square", "star"), ("big", "small")))
SHOWN = 4
COST = 0.05
"""kappa: what a word costs."""

RSA = "usual listener (RSA)"
SPEAKERS = ("no mind", RSA, "partner in mind", "knows the listener")
"""Who takes all for speakers of its own language; who reckons with the usual listener, as RSA does; who learns this
one; who knows them."""
Picture = tuple[str, str, str]
KNOWN_SHARES = (0.05, 0.95)
"""How probable it is that a word is understood, of a language that the listener does not or does speak."""


class Description(msgspec.Struct, frozen=True):
    """What is said: some of a picture's three words, in one language."""

    language: str
    meanings: tuple[str, ...]


class PartnerListener:
    """Understands each word of its languages, and of others now and then; guesses among what fits."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"listener {seed}")
        self.spoken = frozenset(chance.sample(sorted(WORDS), chance.choice((1, 2))))
        self.known = {
            (language, meaning)
            for language, words in WORDS.items()
            for meaning in words
            if chance.random() < KNOWN_SHARES[language in self.spoken]
        }

    def choose(self, message: Description, shown: tuple[Picture, ...], chance: random.Random) -> Picture:
        """A picture that has all that was understood."""
        understood = {meaning for meaning in message.meanings if (message.language, meaning) in self.known}
        return chance.choice([picture for picture in shown if understood <= set(picture)])


KINDS = tuple(frozenset(some) for size in (1, 2) for some in itertools.combinations(sorted(WORDS), size))
"""The languages that a listener may speak."""


class AdaptedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a file of minds: what was learned of one listener in the rounds played so far."""

    listener: int  # its seed
    rounds: int
    belief: dict[str, float]  # languages, "german+polish" -> probability


class ListenerBelief:
    """A belief over which languages the other speaks, updated by Bayes' rule from each choice."""

    def __init__(self, learned: AdaptedModel | None = None) -> None:
        self.rounds = learned.rounds if learned else 0
        self.belief = {kind: 1.0 / len(KINDS) for kind in KINDS}
        if learned:
            self.belief = {kind: learned.belief.get("+".join(sorted(kind)), 0.0) for kind in KINDS}

    def probability(
        self, message: Description, shown: tuple[Picture, ...], picture: Picture, kind: frozenset[str]
    ) -> float:
        """That a listener of this kind chooses that picture."""
        share, total = KNOWN_SHARES[message.language in kind], 0.0
        for understood in itertools.product((True, False), repeat=len(message.meanings)):
            words = {m for m, is_known in zip(message.meanings, understood, strict=True) if is_known}
            weight = math.prod(share if is_known else 1.0 - share for is_known in understood)
            fitting = [one for one in shown if words <= set(one)]
            total += weight * (picture in fitting) / len(fitting)
        return total

    def expect(self, message: Description, shown: tuple[Picture, ...], picture: Picture) -> float:
        """That this listener chooses it, as far as is known of them."""
        return sum(share * self.probability(message, shown, picture, kind) for kind, share in self.belief.items())

    def saw(self, message: Description, shown: tuple[Picture, ...], chosen: Picture) -> None:
        """Take in a choice."""
        fresh = {kind: share * self.probability(message, shown, chosen, kind) for kind, share in self.belief.items()}
        whole = sum(fresh.values())
        self.belief = {kind: share / whole for kind, share in fresh.items()}
        self.rounds += 1

    def adapted(self, listener: int) -> AdaptedModel:
        """All of it, for a file."""
        return AdaptedModel(listener, self.rounds, {"+".join(sorted(kind)): p for kind, p in self.belief.items()})


def messages_for(picture: Picture) -> list[Description]:
    """All that can be said of a picture."""
    return [
        Description(language, part)
        for language in sorted(WORDS)
        for size in (1, 2, 3)
        for part in itertools.combinations(picture, size)
    ]


def read_minds(path: Path) -> dict[int, ListenerBelief]:
    """What was learned of each listener, by its seed; without a file of nobody. Raises UserError naming the line."""
    minds = {}
    for number, line in enumerate(read_text(path).splitlines() if path.exists() else (), start=1):
        try:
            learned = msgspec.json.decode(line, type=AdaptedModel)
        except msgspec.MsgspecError as problem:
            raise UserError(f"{path}: line {number}: is no model of a listener: {problem}") from None
        mind = ListenerBelief(learned)
        if not math.isclose(sum(mind.belief.values()), 1.0, abs_tol=1e-6) or min(mind.belief.values()) < 0.0:
            raise UserError(f"{path}: line {number}: belief is no distribution over {', '.join(sorted(WORDS))}")
        minds[learned.listener] = mind
    return minds


def write_minds(path: Path, minds: dict[int, ListenerBelief]) -> None:
    """One line for each listener; the file is whole or as before. Raises UserError."""
    with writing(path):
        write_whole(path, b"".join(msgspec.json.encode(minds[one].adapted(one)) + b"\n" for one in sorted(minds)))


def play(
    speaker: str, seed: int, rounds: int, mind: ListenerBelief | None = None, predicted: list[float] | None = None
) -> list[bool]:
    """So many rounds with one listener; which were understood. A `mind` goes on learning from where it is.

    `predicted` takes in how probable the listener's choice was to the speaker, before it was made.
    """
    mind = mind or ListenerBelief()
    met = mind.rounds
    listener, chance = PartnerListener(seed), random.Random(f"game {seed} {met}" if met else f"game {seed}")
    if speaker == "knows the listener":
        mind.belief = {listener.spoken: 1.0}
    if speaker == "no mind":
        mind.belief = {frozenset(sorted(WORDS)[:1]): 1.0}
    right: list[bool] = []
    for _ in range(rounds):
        shown = tuple(chance.sample(PICTURES, SHOWN))
        target = shown[chance.randrange(SHOWN)]

        def worth(message: Description, shown: tuple[Picture, ...] = shown, target: Picture = target) -> float:
            return mind.expect(message, shown, target) * math.exp(-COST * len(message.meanings))

        message = max(messages_for(target), key=worth)
        chosen = listener.choose(message, shown, random.Random(f"choice {seed} {met + len(right)}"))
        right.append(chosen == target)
        if predicted is not None:
            predicted.append(mind.expect(message, shown, chosen))
        if speaker == "partner in mind":
            mind.saw(message, shown, chosen)
    return right


PREDICTED = "probability of the choice"


def game(asked: argparse.Namespace) -> int:
    """Play every speaker with every listener, and show who was understood in which round."""
    found: dict[str, list[float]] = {}
    intervals: dict[str, list[tuple[float, float]]] = {}
    minds = read_minds(asked.minds) if asked.minds else {}
    learning = [minds.setdefault(seed, ListenerBelief()) for seed in range(asked.listeners)]
    for speaker in SPEAKERS:
        guesses: list[list[float]] = [[] for _ in range(asked.listeners)]
        games = [
            play(speaker, seed, asked.rounds, learning[seed] if speaker == "partner in mind" else None, guesses[seed])
            for seed in range(asked.listeners)
        ]
        tables: list[tuple[str, Sequence[Sequence[float]]]] = [(speaker, games), (f"{speaker}: {PREDICTED}", guesses)]
        for name, each in tables:
            means = [mean_of({str(seed): [game[n]] for seed, game in enumerate(each)}) for n in range(asked.rounds)]
            found[name] = [one.mean for one in means if one is not None]
            intervals[name] = [(one.low or one.mean, one.high or one.mean) for one in means if one is not None]
    if asked.minds:
        write_minds(asked.minds, minds)
    if asked.json:
        print(msgspec.json.encode({**found, "intervals": intervals}).decode())
    else:
        rows = [("understood, round", *(str(number + 1) for number in range(asked.rounds)))]
        for speaker, shares in found.items():
            rows.append((speaker, *(f"{share:.2f}" for share in shares)))
            if speaker.endswith(PREDICTED):
                for name, bounds in zip(("from", "to"), zip(*intervals[speaker], strict=True), strict=True):
                    rows.append((f"  95 %, {name}", *(f"{bound:.2f}" for bound in bounds)))
        print("\n".join(columns(rows, rows[0][:1])))
    return 0
