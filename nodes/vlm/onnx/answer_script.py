"""The answer as a script: what is the same in every answer is given, and only between words is the model asked.

`script` yields what may come next, one text (which is written down) or several (of which the model chooses one), and
is sent which one it was. No alternative begins with another, so a choice ends where one of them is complete. What comes
out is always an answer that `prompt.parse` reads, however small the model; whether it is true is another question.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

Script = Generator[tuple[str, ...], str, None]


def script(
    labels: Iterable[str],
    colours: Iterable[str],
    most_across: int,
    most_down: int,
    has_room: Callable[[int], bool],
    skills: Iterable[str] = (),
    sayings: Iterable[str] = (),
) -> Script:
    """`has_room(n)`: whether one more thing may be listed after n; `most_across` and `most_down`: the largest u and v.

    `skills` are those that may be chosen, `sayings` the codes of what may be said.

    A model that lists a thing for the second time has run out of things, and its list is closed.
    """
    a_label = tuple(f'{word}"' for word in labels)
    a_colour = tuple(f'{word}"' for word in colours)
    a_column = tuple(f"{number}," for number in range(most_across + 1))
    a_row = tuple(f"{number}}}" for number in range(most_down + 1))
    listed: list[tuple[str, str, str, str]] = []
    yield (' {"objects":[',)
    more = yield ("{", "]") if has_room(0) else ("]",)
    while more != "]":
        yield ('"label":"',)
        label = yield a_label
        yield (',"colour":"',)
        colour = yield a_colour
        yield (',"u":',)
        u = yield a_column
        yield ('"v":',)
        v = yield a_row
        thing = (label, colour, u, v)
        is_new = thing not in listed
        listed.append(thing)
        more = yield (",", "]") if is_new and has_room(len(listed)) else ("]",)
        if more == ",":
            yield ("{",)
    yield (',"target":',)
    numbers = tuple(f"{place}," for place in range(-1, len(listed)))
    yield numbers
    yield ('"place":',)
    yield numbers
    yield ('"skill":"',)
    yield ('"', *(f'{name}"' for name in skills))
    yield (',"done":',)
    yield ("false", "true")
    yield (',"say":"',)
    yield ('"}', *(f'{code}"}}' for code in sayings))


def continuations(alternatives: Iterable[str], vocabulary: dict[str, int]) -> dict[int, str]:
    """The tokens with which an alternative can begin, and what they say: all that the model may choose from."""
    found: dict[int, str] = {}
    for text in alternatives:
        for end in range(1, len(text) + 1):
            token = vocabulary.get(text[:end])
            if token is not None:
                found[token] = text[:end]
    return found


def remaining(alternatives: Iterable[str], chosen: str) -> tuple[str, ...]:
    """What is left of the alternatives that begin with what was chosen; `("",)` where one is complete."""
    return tuple(text[len(chosen) :] for text in alternatives if text.startswith(chosen))


def missing_letters(alternatives: Iterable[str], vocabulary: dict[str, int]) -> str:
    """The characters of these that are no token of their own: without them a choice could have no way on."""
    return "".join(sorted({letter for text in alternatives for letter in text if letter not in vocabulary}))
