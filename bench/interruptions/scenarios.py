"""The scenarios as data: what is said, at which phase of the first pick, and what counts as done afterwards."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from runtime import UserError
from runtime.errors import choices

FILE = Path(__file__).with_name("scenarios.toml")
WANTS = ("cups", "cups but it", "ball", "cups and ball", "")
"""What must be in the bin in the end; "" leaves it open."""
CONTROL_MOMENT = "approach"
BURST_S = 0.4


class Moment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A phase of the first pick, and about how long it lasts."""

    length_s: float


class InterruptionKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of interruption, or a control; `burst`: lines one after the other, "NAME: " before another's."""

    wants: str
    known: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    burst: tuple[str, ...] = ()
    body: str = ""


class PartnerKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remarks before the order, about the own cup and about any."""

    wants: str
    telling: tuple[str, ...]
    idle: tuple[str, ...]


class Scenarios(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them."""

    moments: dict[str, Moment]
    kinds: dict[str, InterruptionKind]
    controls: dict[str, InterruptionKind]
    partner: PartnerKind


class Drawn(msgspec.Struct, frozen=True):
    """One scenario with what its seed decides; `lines` may hold {colour} and {it}."""

    kind: str
    moment: str
    lines: tuple[str, ...]
    is_new_wording: bool
    wants: str
    body: str
    offset_s: float  # from the beginning of the phase to the end of the (first) words
    own: str | None = None  # colour of the cup that is not to be taken; "": there is none; None: the first one picked
    remark: str = ""  # said before the order


@cache
def shipped() -> Scenarios:
    """Those that ship. Raises UserError where the file says what is not known."""
    data: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    try:
        scenarios = msgspec.convert(data, Scenarios)
    except msgspec.ValidationError as problem:
        raise UserError(f"{FILE.name}: {problem}") from problem
    for name, kind in {**scenarios.kinds, **scenarios.controls}.items():
        if kind.wants not in WANTS:
            raise UserError(f"{FILE.name}: {name} wants {kind.wants!r}; known: {choices(WANTS)}")
    return scenarios


def names() -> tuple[str, ...]:
    """All scenarios: "stop-approach" and so on, then the controls."""
    known = shipped()
    kinds = tuple(f"{kind}-{moment}" for kind in known.kinds for moment in known.moments)
    return (*kinds, *known.controls)


def draw(name: str, seed: int) -> Drawn:
    """The scenario of that name with this seed's wording and offset. Raises UserError."""
    known = shipped()
    if name not in (*names(), *partner_names()):
        raise UserError(f"scenario {name!r}: known: {choices((*names(), *partner_names()))}")
    generator = random.Random(f"{name}/{seed}")
    what, _, moment = name.partition("-")
    if what == "partner":
        return _draw_partner(known, moment, generator)
    if not moment:
        control = known.controls[what]
        lines = control.burst or ((generator.choice(control.words),) if control.words else ())
        kind, moment, is_new = control, CONTROL_MOMENT, False
    else:
        kind = known.kinds[what]
        number = generator.randrange(len(kind.known) + len(kind.new))
        lines, is_new = ((*kind.known, *kind.new)[number],), number >= len(kind.known)
    offset_s = generator.uniform(0.0, known.moments[moment].length_s)
    return Drawn(what, moment, lines, is_new, kind.wants, kind.body, offset_s)


def partner_names() -> tuple[str, ...]:
    """The scenarios of somebody with a cup of their own; they are no part of the main experiment."""
    return tuple(f"partner-{moment}" for moment in shipped().moments)


def _draw_partner(known: Scenarios, moment: str, generator: random.Random) -> Drawn:
    """Own cup blue, red or none, a third each. Of its owners 60 % tell, 20 % say something idle; of others half do."""
    own, told = generator.choice(("blue", "red", "")), generator.random()
    says = "telling" if own and told < 0.6 else "idle" if told < (0.8 if own else 0.5) else ""
    colour = own if says == "telling" else generator.choice(("blue", "red"))
    words = {"telling": known.partner.telling, "idle": known.partner.idle}.get(says, ("",))
    objection = generator.choice((*known.kinds["retraction"].known, *known.kinds["retraction"].new))
    return Drawn(
        "partner", moment, (objection,), False, known.partner.wants if own else "cups", "",
        generator.uniform(0.0, known.moments[moment].length_s), own, generator.choice(words).format(colour=colour),
    )  # fmt: skip
