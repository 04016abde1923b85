"""A referential game: a speaker describes one of four pictures to listeners who know some languages and not others.

The speaker with the partner in mind holds a belief over what the listener understands, sees each choice, and says next
what will most probably be understood, with a cost for length (thesis, equation 3.3). Words are data (`words.json`).
"""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path

import msgspec

WORDS: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
PICTURES = tuple(itertools.product(("red", "blue", "green"), ("circle", "square", "star"), ("big", "small")))
SHOWN = 4
COST = 0.05
"""kappa: what a word costs."""

SPEAKERS = ("no mind", "partner in mind", "knows the listener")
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


class Mind:
    """A belief over which languages the other speaks, updated by Bayes' rule from each choice."""

    def __init__(self) -> None:
        names = sorted(WORDS)
        kinds = [frozenset(some) for size in (1, 2) for some in itertools.combinations(names, size)]
        self.belief = {kind: 1.0 / len(kinds) for kind in kinds}

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


def messages_for(picture: Picture) -> list[Description]:
    """All that can be said of a picture."""
    return [
        Description(language, part)
        for language in sorted(WORDS)
        for size in (1, 2, 3)
        for part in itertools.combinations(picture, size)
    ]


def play(speaker: str, seed: int, rounds: int) -> list[bool]:
    """So many rounds with one listener; which were understood."""
    listener, mind, chance = PartnerListener(seed), Mind(), random.Random(f"game {seed}")
    if speaker == "knows the listener":
        mind.belief = {listener.spoken: 1.0}
    right: list[bool] = []
    for _ in range(rounds):
        shown = tuple(chance.sample(PICTURES, SHOWN))
        target = shown[chance.randrange(SHOWN)]

        def worth(message: Description, shown: tuple[Picture, ...] = shown, target: Picture = target) -> float:
            return mind.expect(message, shown, target) * math.exp(-COST * len(message.meanings))

        message = max(messages_for(target), key=worth)
        chosen = listener.choose(message, shown, random.Random(f"choice {seed} {len(right)}"))
        right.append(chosen == target)
        if speaker == "partner in mind":
            mind.saw(message, shown, chosen)
    return right
