"""Sentences to train the spotter on, by seed: stops that are called, words that sound like them, and other talk.

None of them is a sentence of `bench.ears`, by which the spotter is measured.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from bench.ears import OTHERS, STOPS

ROOT = Path(__file__).parents[2]

CALLS = (
    "stop", "stop now", "stop it", "stop it now", "stop that", "stop this", "stop at once", "stop there", "stop here",
    "stop right there", "please stop", "would you stop", "stop please", "just stop", "stop everything",
    "stop working", "stop driving now", "stop turning", "stop pushing", "stop pulling", "stop the motor",
    "stop the gripper", "stop you", "stop the base", "stop the machine", "stop, I said", "stop, my finger",
    "stop, my hand is in there", "all stop", "stop before it falls", "stop or it breaks", "you must stop",
    "you have to stop", "can you stop", "I said stop", "halt", "halt now", "halt, please", "halt the arm",
    "halt, I said", "and halt", "halt at once", "robot halt", "freeze", "freeze now", "freeze, please",
    "freeze right there", "now freeze", "freeze, I said", "robot freeze", "ouch", "ouch, my arm", "ouch, careful",
    "ouch, you pinched me", "ouch, my finger", "ouch, that was me", "oh ouch", "ow", "ow, ow", "ow, my foot",
    "ow, my finger", "ow, that was my knee", "ow, you hit me", "ow, what was that", "it hurts", "this hurts",
    "that hurt", "it hurts me", "you hurt me", "that hurt me", "my hand hurts", "that is hurting", "it is hurting me",
    "you are hurting my arm", "this is hurting my hand", "this hurts a lot", "my arm is hurting", "don't move",
    "don't move now", "please don't move", "don't move any more", "don't move the arm", "do not move",
    "don't move, I am under you", "robot, don't move", "don't you move", "you, don't move", "emergency",
    "emergency, stop", "this is an emergency", "emergency stop now", "an emergency", "emergency, halt", "hold it",
    "hold it there", "hold it right there", "please hold it", "hold it, please", "now hold it", "hold it now",
    "careful", "careful there", "careful, my hand", "careful with that", "be careful", "please be careful",
    "careful now",
)  # fmt: skip
BEFORE = (
    "", "", "", "", "no", "hey", "robot", "wait", "oh", "please", "hey you", "no no", "oh no", "okay", "listen",
    "hello",
)  # fmt: skip
AFTER = (
    "", "", "", "", "", "please", "now", "robot", "you are too close", "there is somebody", "the glass is falling",
    "my child is there", "I am in the way", "the cat is under you", "that was close", "I mean it", "that is enough",
    "you will break it", "right now", "at once", "that is my foot",
)  # fmt: skip
MENTIONS = (
    "the next stop is ours", "we walked to the stop", "they never stop talking", "it would not stop raining",
    "I could not stop laughing", "does it hurt when you run", "he was hurt last year", "call the emergency number",
    "the emergency exit is at the back", "she is always careful with knives", "the lake will freeze in winter",
    "the work came to a halt", "can you hold it for me", "nobody got hurt", "you can freeze the soup",
)  # fmt: skip
ALIKE = (
    "top", "tops", "shop", "shops", "stock", "stocks", "hop", "step", "steps", "stuff", "staff", "stamp", "stone",
    "stove", "store", "story", "star", "start", "started", "stay", "stick", "stack", "stool", "stood", "still",
    "steep", "soap", "soup", "sob", "spot", "spots", "drop", "drops", "crop", "chop", "mop", "pop", "cop", "swap",
    "stub", "stab", "step up", "stopwatch", "stocking", "tap", "tip", "stomp", "stump", "storm", "sock", "on top",
    "the top one", "a shop", "must hop", "salt", "hall", "hold", "holds", "held", "hauled", "alter", "fault", "hot",
    "halter", "hat", "holy", "whole", "hollow", "fries", "free", "trees", "breeze", "cheese", "three", "these",
    "please", "frieze", "fridge", "friends", "fresh", "frisk", "how", "now", "cow", "owl", "out", "house", "hour",
    "our", "about", "couch", "touch", "pouch", "crouch", "allow", "wow", "loud", "cloud", "mouse", "mouth", "south",
    "round", "town", "brown", "down", "oat", "hours", "vouch", "slouch", "heart", "hard", "her", "earth", "hut",
    "shirt", "dirt", "hers", "bird", "word", "work", "heard", "hearts", "herb", "move", "moves", "moving", "movie",
    "room", "smooth", "groove", "remove", "improve", "don't mind", "don't forget", "don't worry", "don't know",
    "don't lose it", "a moment", "emerge", "energy", "emerging", "urgent", "merge", "agency", "hold my cup",
    "hold the bowl", "holding", "hold hands", "hot tea", "fold it", "told it", "sold it", "hold them", "carefree",
    "carrot", "cable", "carpet", "cheerful", "awful", "wonderful", "handful", "care", "scared", "careless", "water",
    "weight", "what", "want", "waiter", "stopover", "nonstop music", "top shelf", "bus", "stupid", "stutter",
)  # fmt: skip
THINGS = (
    "cup", "bottle", "bowl", "plate", "spoon", "towel", "lamp", "book", "chair", "jar", "apple", "pan", "knife",
    "box", "phone", "letter", "basket", "pillow", "kettle", "sponge", "bread", "butter", "window", "radio", "garden",
    "ticket", "pencil",
)  # fmt: skip
DOERS = ("I", "we", "they", "you", "my brother", "the neighbour", "her mother", "the robot", "our teacher", "a friend")
DEEDS = (
    "bought", "found", "lost", "wanted", "washed", "carried", "saw", "forgot", "painted", "opened", "took", "left",
    "fixed", "looked at", "talked about", "put away", "brought", "cleaned", "asked for", "thought of",
)  # fmt: skip
WHERE = (
    "in the kitchen", "at home", "near the station", "this morning", "on the table", "after lunch", "last week",
    "for a while", "behind the door", "with great pleasure", "once more", "over there", "before dinner",
    "in the evening", "at the market",
)  # fmt: skip
ORDERS = ("give me", "bring me", "take", "look for", "put down", "pick up", "show me", "clean", "point at", "turn to")
HEADS = (
    "st", "s", "t", "h", "fr", "k", "m", "b", "d", "sh", "p", "w", "l", "r", "g", "n", "j", "th", "ch", "f", "v", "sp",
)  # fmt: skip
MIDDLES = ("a", "o", "e", "i", "u", "ee", "oo", "ow", "ay", "er", "ar")
TAILS = ("", "t", "p", "k", "n", "m", "s", "l", "ch", "d", "sh", "v", "z")
SYLLABLES = tuple(
    sorted(
        {head + middle + tail for head in HEADS for middle in MIDDLES for tail in TAILS}
        - {"stop", "freez", "frees", "hert", "hots", "howl"}
    )
)

ALARMS = {
    "stop": 1, "halt": 2, "freeze": 3, "ouch": 4, "ow": 4, "hurt": 5, "hurts": 5, "hurting": 5, "emergency": 7,
    "careful": 9,
}  # fmt: skip
"""Words of alarm, and their place among the network's answers."""
PAIRS = {("don't", "move"): 6, ("not", "move"): 6, ("you", "move"): 6, ("hold", "it"): 8}
LIKE_THEM = frozenset(
    {"stopped", "stops", "stopping", "nonstop", "stopwatch", "stopover", "freezer", "freezes", "halter"}
)
"""They begin or end as a word of alarm does: nothing is taught by them."""


def plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z']+", text.lower()))


MEASURED = frozenset(map(plain, (*STOPS, *OTHERS)))


def labels(words: list[str]) -> list[int]:
    """For each word the place of the alarm that ends with it, 0 for none, -1 for one that teaches nothing."""
    found = []
    for place, word in enumerate(words):
        pair = PAIRS.get((words[place - 1], word), 0) if place else 0
        found.append(pair or (-1 if word in LIKE_THEM else ALARMS.get(word, 0)))
    return found


def prose() -> list[str]:
    """Sentences of the project's own pages, in plain words."""
    lines = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for line in re.split(r"(?<=[.!?])\s+|\n\n", page.read_text(encoding="utf-8")):
            words = re.findall(r"[A-Za-z']+", line)
            if len(words) >= 4 and not re.search(r"[`|{}\[\]<>#_=/\\]", line):
                lines.append(" ".join(words[:12]))
    return lines


def called(draw: random.Random) -> str:
    """A stop that somebody calls."""
    parts = [draw.choice(BEFORE), draw.choice(CALLS), draw.choice(AFTER)]
    if draw.random() < 0.1:
        parts.insert(1, draw.choice(CALLS))
    mark = draw.choice((", ", " ", "! "))
    return mark.join(part for part in parts if part) + draw.choice(("!", ".", "!", ""))


def other(draw: random.Random, pages: list[str]) -> str:
    """What is no alarm, though it may sound like one."""
    kind = draw.random()
    if kind < 0.25:
        return draw.choice(pages)
    if kind < 0.40:
        said = [
            draw.choice(DOERS),
            draw.choice(DEEDS),
            draw.choice(("the", "a", "my", "his")),
            draw.choice(THINGS),
            draw.choice(WHERE),
        ]
        return " ".join(said)
    if kind < 0.48:
        return f"{draw.choice(ORDERS)} the {draw.choice(THINGS)} {draw.choice(WHERE)}"
    if kind < 0.55:
        return draw.choice(MENTIONS)
    if kind < 0.82:
        return " ".join(
            draw.choice(("the", "a", "my", "and", "is", "", "", draw.choice(THINGS), draw.choice(DEEDS)))
            + " "
            + draw.choice(ALIKE)
            for _ in range(draw.randint(1, 4))
        )
    return " ".join("".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(draw.randint(2, 5)))


def sentences(seed: int, calls: int, others: int) -> Iterator[str]:
    """So many of both, none of them measured."""
    draw, pages = random.Random(seed), prose()
    for number in range(calls + others):
        text = ""
        while not plain(text) or plain(text) in MEASURED:
            text = called(draw) if number < calls else other(draw, pages)
        yield text
