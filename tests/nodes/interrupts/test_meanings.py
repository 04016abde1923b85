"""What each utterance of the tuning half is taken for, word by word: no change of the tables passes unseen.

The meanings stand in meanings.txt, a line for each utterance, and are no goal in themselves: some are wrong, as the
figures of `polyrhythm eval reflex` say. Whoever changes the tables on purpose writes them anew, and looks at what has
changed: python -m tests.nodes.interrupts.test_meanings
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from nodes.evaluation.reflex import read
from nodes.interrupts.intent import Meaning, understand

TABLE = Path(__file__).with_name("meanings.txt")
SAID = ("{}", "{} please", "no no {}", "do not {}", "{} yesterday", "ah {}", "his {}")
"""As it stands, and within other words: courtesy, denials, another day, a sound, and somebody else."""


def written(meaning: Meaning) -> str:
    """What it wants, and every other field that is not as usual: "stop is_pain"."""
    found = [meaning.wants, *(f"talk={meaning.talk}" for _ in meaning.talk[:1])]
    for field in fields(Meaning)[1:]:
        value = getattr(meaning, field.name)
        if field.name != "talk" and value != field.default:
            found.append(field.name if value is True else f"{field.name}={value}".replace(" ", ""))
    return " ".join(found)


def bare(text: str) -> str:
    """Without what ends a sentence, so that what is put beside it is in its clause."""
    return text.rstrip(" .!?…。！？")


def lines() -> list[str]:
    """One for each utterance: its meaning, and those of it within other words."""
    return [" | ".join(written(understand(said.format(bare(one.text)))) for said in SAID) for one in read("tuning")]


def test_every_utterance_of_the_tuning_half_means_what_it_did() -> None:
    texts = [one.text for one in read("tuning")]
    wanted = TABLE.read_text("utf-8").splitlines()
    assert len(wanted) == len(texts)
    changed = [change for change in zip(texts, wanted, lines(), strict=True) if change[1] != change[2]]
    assert changed == []


if __name__ == "__main__":
    TABLE.write_text("\n".join(lines()) + "\n", "utf-8")
