"""`Dialogue`: what a robot makes of what it hears, sees and is told: its orders, its questions and what is protected.

It does what was understood, asks or refuses the rest, and says "done" of what the scene shows to have moved. What it
knows of kinds, places and skills comes from the scene and the skill catalogue; what differs between worlds is a
`Household`. With one, an order is carried out thing by thing, and a person is asked for what the hand cannot do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from nodes.interrupts.intent import says_yes, understand
from nodes.msgs import Condition, Reference, Scene, SceneDescription, SeenObject, SeenPerson, Subtask
from nodes.planner.orders import ALIASES, ALL, LEAVE, MOST_ORDERS, Order, Surroundings, Unnamed, covers, is_vague
from nodes.planner.talk.answers import (
    STATES,
    TURNS,
    UNKNOWN,
    Answerable,
    AskedOf,
    DoneDeed,
    WhyLeft,
    answer,
    answer_to_manners,
    capital,
    following,
    reason_of,
    why_left,
)
from nodes.planner.talk.beside_stop import (
    BesideStop,
    asks_for_care,
    objects,
    read_beside_stop,
    restricts,
    speaks_of_rest,
    why_unread,
    wonders,
)
from nodes.planner.talk.brewing import (
    Bar,
    Brewing,
    Cup,
    asks_of_recipe,
    brewed,
    cups_said,
    is_addition,
    is_of_recipe,
    made_meant,
    steps_of,
)
from nodes.planner.talk.gist import SaidPart, asked_about
from nodes.planner.talk.household import Chore, Household, Recipe, plain, says_wrong, tells_where_kinds_go
from nodes.planner.talk.proposals import (
    asks,
    focus_in,
    is_about_work,
    is_plain_refusal,
    meant_by,
    names_in,
    not_understood,
    offer_wash,
    parts_heard,
    propose,
    propose_beside_stop,
    short_quote,
)
from nodes.planner.talk.questions import CONTRADICTS_WITHIN_S, DOUBTS_WITHIN_S, WAITS, About, OpenQuestion
from nodes.planner.talk.turns import before_all, behind_deed, elsewhere, in_turn
from nodes.planner.words.asked import asked_apart, sentences_of, words_of_question
from nodes.planner.words.cues import cues
from nodes.planner.words.languages import in_another_language, is_dark
from nodes.planner.words.lexicon import lexicon_file
from nodes.planner.words.parser import Clause, Noun, parser_of, segments_of
from nodes.planner.words.referents import (
    Referents,
    as_references,
    fits,
    held_by_robot,
    is_so,
    is_still_meant,
    named_under_way,
    place_of,
    referents,
    relation_to,
    standing,
    stands,
)
from nodes.planner.words.replies import (
    MOST_NAMED,
    bare,
    describe,
    in_short,
    list_words,
    moved_nothing,
    name_of_reference,
    named,
    outcome,
    promise,
    question,
    refusal,
    remark,
    small,
    things_words,
    where_are,
)
from nodes.planner.words.spelled import SpelledOut, bound_out, named_out, naming, pronoun_in, spelled_out
from nodes.planner.words.understanding import (
    ANY_OF_THEM,
    INSIDE,
    Conversation,
    Intent,
    adds,
    forbids_ordered,
    only_names,
    spared_by,
    understand_in,
)
from nodes.planner.words.whose import binds_all, forbids, owners_told, with_owned, with_owners
from runtime.clock import to_ns, to_s

TAKES_WITHIN_S = 30.0
"""What was filled is held out so long while more is to be done; then it is set down."""
POINTS_FOR_S = 10.0
OFFERED_S, STILL_M = 2.0, 0.02
"""A thing that is held out so long without a word, by a hand this still, is an offer."""
NODS_EVERY_S = 3.0
MOVED_M = 0.08
ASKED_WITHIN_S = 2.0
"""What was asked so lately is not asked again when a stop is lifted."""
STOPS_WITHIN_S = 1.0
"""So soon after a word of stopping the guard has said that it stopped."""
MOST_HEARD = 12
"""So many utterances are kept, to tell who said what."""
LONGEST_NAME = 6
"""So few words only name what the question before is asked of as well."""
MOST_SHORT = 4
"""An answer of fewer words names no deed: what was said before it asked for that."""
_VIEW = re.compile(
    r"(?:\b(?:from|on|as|by|where|is|mean)|(?<=it)'s|(?<=that)'s|^)\W+"
    r"(?P<who>you(?:rs?|'re)?|robot's|my|mine|me|i|i'm)\b(?!'d| would| want| mean)", re.I
)  # fmt: skip
_POINTS_BACK = re.compile(r"\b(?:it|that|this|they|them|those|he|she)\b", re.I)
_OF_DEED = re.compile(
    r"\bthe (?:very )?(?P<which>first|second|third|last) [a-z]+ (?:that )?you (?:have |just )*(?:took|taken|moved?|put|"
    r"brought|threw|thrown|binned|picked|did)(?: (?:away|up|out|in there|in the [a-z]+|on the [a-z]+))?\b", re.I
)  # fmt: skip
_ITS_SIDE = re.compile(r"\b(?:on|to|at) (?:its|his|her) (left|right)(?:[- ]hand side| side)?\b", re.I)
_IN_TURN = re.compile(
    r"\bthe (?:very )?(?P<which>first|second|third|last) (?:one|thing|of (?:them|those|these))\b"
    r"(?! (?:on|from|to|in)\b)", re.I
)  # fmt: skip
"""What is told by when it was done, or named in an answer."""
_NONSENSE = frozenset({"words", "skill"})
"""Why it asks or refuses by a word that may be none of a name or a deed: all of it is said to be not understood."""
_DARK = frozenset(
    ("words", "choice", "condition", "which_place", "which", "unsure", "what", "contradiction", "owner", "kind",
     "relation", "skill", "place")
)  # fmt: skip
"""Why the grammar asks or refuses where it left words unread, so that they are looked at part by part."""
_MY_WAY = re.compile(
    r"\b(?:(?:ignore|never mind|not listen to) (?:him|her|them)|(?:as|like|the way|what) i (?:said|asked))\b"
)
_NEEDLESS = re.compile(
    r"\b(?:you (?:need not|needn['’]t|(?:do not|don['’]t) (?:have|need) to)|no need to)"
    r"(?! (?:worry|ask|rush|hurry)\b)", re.I
)  # fmt: skip
_REPENTS = re.compile(r"\b(?:changed my mind|second thoughts?|thought better of)\b", re.I)
_ALLOWS = re.compile(r"(?<!can )\byou (?:can|may|might)(?! not)\b(?!.*\?)", re.I)
_WITH_IT = re.compile(r"\bI(?:['’]m| am) \w+ with (?:it|that|this)\b", re.I)
_SELF_ASKED = re.compile(r"\W*(?:and )?which(?: one)?\?\W*", re.I)
_IS_MINE = re.compile(r"\b(?:is|are|was|were) (?:not )?(?:the|that|this|it|one) .*\bmine\b|\bwhich\b.*\bmine\b")
"""Asks whose it is."""
_WHAT_ABOUT = re.compile(r"\W*(?:(?:and|but|so|oh|well)\W+)*(?:what|how) about ((?:the|that|this) [^,.!?]+)\?\W*", re.I)
_HEDGES = re.compile(
    r"\b(?:his|hers|theirs|not|no|never|but|only|except|instead|if|unless|until|wait|leave|keep|other|rather|later|first|last|and)\b|n['’]t\b|\?",
    re.I,
)
_OVER = cues("gist")["over"]
_ONLY = re.compile(r"^\W*(?:just|only)\b|\bonly\W*$", re.I)
_THAT_TOO = re.compile(r"(?:that|this|it|them|those|these)(?: ones?)?(?: too| as well| also)?")
_CALLED = re.compile(
    r"(?<!to )(?<!for )(?:\b(?:he|she)\b(?='s| (?:is|was|has|goes|can|may|should|must|needs|belongs|stays)\b)|\bhim\b"
    r"|\bher\b(?=\W*$|[.,;!?]| (?:in|on|to|into|out|away|back|up|down|where|alone|be|too|first|again)\b))", re.I
)  # fmt: skip
_OUT_AGAIN = re.compile(r"\b(?:out|back)\b", re.I)
_REGRETS = re.compile(r"\b(?:meant|mean|wrong|instead|mistake|sorry|oops|not|no)\b|n['’]t\b", re.I)
_DOWN = re.compile(r"\b(?:put|set|lay) (?:it|that|this) (?:back )?down\W*$", re.I)
_PROMISES = re.compile(r"(?:Then )?I will (?!remember)[^.?]*\. ?")
"""What a stopped robot says with all that waits, and not before."""
_YES = re.compile(
    r"(?:(?:oh|well|and) )*(?:yes|yeah|yep|yup|sure|of course|certainly|(?:it |that |this )(?:is|'s) (?:all )?"
    r"(?:okay|ok|fine|all ?right|alright|good|safe))\b", re.I
)  # fmt: skip
_MOVES = frozenset({"place", "pick", "take", "hand_over", "put_back", "rinse"})
_NOWHERE_M = (math.inf, math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Finished:
    """An order that was carried out, what it moved and from where: for who says that it was wrong."""

    order: Order
    moved: tuple[Reference, ...] = ()
    origin: str = ""


@dataclass(slots=True)
class Dialogue:
    """All that is kept of it; a copy by `replace` is a dialogue by itself, as no value is changed in place."""

    household: Household = field(default_factory=Household)
    habits: Mapping[str, str] = field(default_factory=dict)  # the place of a kind, as people taught it
    around: Surroundings = field(default_factory=Surroundings)
    number: int = 0
    revision: int = 0
    current: Order | None = None  # what the subtask is about, over or not
    later: tuple[Order, ...] = ()
    is_over: bool = False
    is_paused: bool = False
    stopped_ns: int = 0  # since when nothing moves before a "go on"; 0: it may
    stop: tuple[str, str] = ("", "")  # who stopped it last, by which words
    questions: tuple[OpenQuestion, ...] = ()
    talk: Conversation = field(default_factory=Conversation)
    done: tuple[Finished, ...] = ()
    told: tuple[str, ...] = ()  # what was done thing by thing since it last said "done"
    was_there: frozenset[str] = frozenset()  # ids of things that stood so before the order
    origin: str = ""  # where the thing stood that is moved now
    ordered_ns: int = 0
    offering_ns: int = 0  # since when it holds out what was filled; 0: it does not
    unseen_ns: int = 0  # the order came then, when nothing that it may mean had been seen; 0: something had
    by: str = ""  # who ordered what is carried out
    names: Mapping[str, str] = field(default_factory=dict)  # names that people gave, in small letters, and ids
    owners: Mapping[str, str] = field(default_factory=dict)  # ids, and whose these are
    given: frozenset[str] = frozenset()  # ids of what its owner does not need any more
    pointed: tuple[str, str, int] = ("", "", 0)  # person, id, when
    offered: tuple[str, tuple[float, float, float], int] = ("", _NOWHERE_M, 0)  # id, where, since
    nodded_ns: int = 0
    cups: Mapping[str, str] = field(default_factory=dict)  # ids of vessels that were filled or are, and for whom
    heard: tuple[tuple[str, str], ...] = ()  # who said what, the newest last
    reasons: tuple[WhyLeft, ...] = ()  # why something is left alone
    causes: Mapping[Order, tuple[str, str]] = field(default_factory=dict)  # who ordered it, by which words
    dropped: tuple[WhyLeft, ...] = ()  # why something is no longer done
    inside: Mapping[str, str] = field(default_factory=dict)  # what was seen in which vessel
    deeds: tuple[DoneDeed, ...] = ()  # what was done, thing by thing, the newest last
    stood: Mapping[str, str] = field(default_factory=dict)  # where each thing was seen to stand last
    carried: frozenset[str] = frozenset()  # what has been in the hand since
    spoken: tuple[str, ...] = ()  # ids of what the robot named last, in an answer
    is_answer: bool = False  # what is said now is one
    was_answered: bool = False  # and nothing else was named since
    is_untold: bool = False  # what was named last is none that anybody can tell: "it" is that one
    asked: AskedOf | None = None  # what was asked last
    there: str = ""  # the place that was spoken of last

    # --- what is carried out

    @property
    def order(self) -> Order | None:
        """What is carried out now."""
        return None if self.is_over else self.current

    @property
    def orders(self) -> tuple[Order, ...]:
        """What is carried out now and later."""
        return self.later if self.order is None else (self.order, *self.later)

    @property
    def subtask(self) -> Subtask | None:
        """What the VLM is to do for it, or None before the first order."""
        order = self.current
        if order is None:
            return None
        return Subtask(
            id=f"task-{self.number}.{self.revision}",
            text=describe(order),
            state="done" if self.is_over else "wait" if self._is_held() else "work",
            skill=ALIASES.get(order.skill, order.skill),
            things=order.things,
            excluding=order.excluding,
            place=order.place,
            relation=order.relation,
            done_when=condition_of(order),
        )

    @property
    def kept(self) -> set[str]:
        """Ids of what is seen and to be left alone."""
        return {one.id for ref in self.talk.protected for one in self._fitting(ref)}

    @property
    def _each(self) -> bool:
        """Whether an order is carried out thing by thing."""
        return self.household.is_kept

    @property
    def _scene(self) -> Scene:
        return self.around.scene

    @property
    def is_stopped(self) -> bool:
        """Whether nothing moves before a "go on"."""
        return self.stopped_ns > 0

    @property
    def _speaker(self) -> str:
        """Who was heard last."""
        return self.heard[-1][0] if self.heard else ""

    def _is_held(self) -> bool:
        return self.is_paused or any(one.holds for one in self.questions)

    def _things(self) -> list[SeenObject]:
        return [one for one in self._scene.things if not one.is_place]

    def _thing(self, order: Order) -> SeenObject | None:
        """The one thing that an order is about, where it is about one by its id."""
        ident = order.things[0].id if order.things else ""
        return next((one for one in self._things() if ident and one.id == ident), None)

    def _fitting(self, reference: Reference) -> list[SeenObject]:
        return [one for one in self._things() if fits(one, reference, self._scene)]

    def ids_of(self, references: Iterable[Reference]) -> set[str]:
        """The ids of what these mean of what is seen."""
        return {one.id for ref in references for one in self._fitting(ref)}

    def refs(self, things: Iterable[SeenObject]) -> tuple[Reference, ...]:
        """These things alone; by their ids where an order is carried out thing by thing."""
        if not self._each:
            return as_references(tuple(things), self._scene)
        return tuple(Reference(id=one.id, label=one.label, colour=one.colour) for one in things)

    def _place_of(self, thing: SeenObject) -> str:
        return place_of(thing.id, self._scene)

    def _held(self) -> tuple[Reference, ...]:
        held = held_by_robot(self._scene)
        return self.refs([one for one in self._things() if one.id in held])

    def target(self) -> SeenObject | None:
        """What the robot holds or goes for."""
        if self._each:
            return self._thing(self.order) if self.order is not None else None
        return self.around.target

    def _clauses(self, text: str) -> list[Clause]:
        return parser_of(self.around.world).clauses(text)

    # --- questions

    def open(self, *about: About) -> OpenQuestion | None:
        """The newest open question of these kinds."""
        return next((one for one in reversed(self.questions) if one.about in about), None)

    def _asked(self, who: str = "") -> list[OpenQuestion]:
        """The questions that the words of somebody, or of who spoke last, answer; the newest first."""
        return [one for one in reversed(self.questions) if one.awaits and one.may_answer(who or self._speaker)]

    def _close(self, asked: OpenQuestion) -> None:
        self._keep_asking(lambda one: one != asked)

    def _keep_asking(self, is_open: Callable[[OpenQuestion], bool]) -> None:
        """Only these questions are still asked."""
        self.questions = tuple(filter(is_open, self.questions))

    def ask(self, asked: OpenQuestion) -> str:
        """Ask who spoke last, and the same no longer; of an order, one thing. "It" is no longer what was answered."""
        if self._speaker and not asked.to and asked.about in ("order", "deed", "instead"):
            asked = replace(asked, to=(self._speaker,))
        kept = [one for one in self.questions if one.text != asked.text and not (one.about == asked.about == "order")]
        self.questions, self.was_answered = (*kept, asked), False
        return asked.text

    def ask_whether(self, things: Sequence[Reference], now_ns: int, *, at_stop: bool = False) -> str:
        """Hold, and ask whether these are still meant: something was said of them that may forbid it."""
        about = tuple(one for one in self.orders if self._is_about(one, things) and not self._is_there(one))
        if self.order is not None and self.order.skill == "put_back":
            return ""  # nobody ordered that in so many words
        if not self._each and self.order is not None:
            about = (self.order.about(tuple(things)),)
        if not about:
            return ""
        text = f"Shall I still {list_words(in_short(about))}?"
        return self.ask(OpenQuestion("still", text, now_ns, about, choices=tuple(things), is_at_stop=at_stop))

    def ask_which(self, choices: Sequence[Reference], now_ns: int) -> str:
        """Ask which of them is to be left alone, and touch none of them before that is known."""
        if (still := self.open("still")) is not None and len(choices) == 1:
            return self.ask(replace(still, since_ns=now_ns))
        kinds = {one.label for one in choices}
        asked = Order(LEAVE, (Reference(label=kinds.pop() if len(kinds) == 1 else "*"),))
        names = sorted({f"the {bare(one)}" for one in choices})[:MOST_NAMED]
        among = f": {list_words(names, 'or')}" if len(names) > 1 else ""
        self._keep_asking(lambda one: one.about not in ("leave", "still"))
        text = f"Which one shall I leave{among}?"
        return self.ask(OpenQuestion("leave", text, now_ns, (asked,), choices=tuple(choices)))

    def ask_first(self, thing: Reference, now_ns: int) -> str:
        """Ask before a thing is moved to whose removal somebody will probably object."""
        text = f"May I take the {bare(thing)}?"
        return self.ask(OpenQuestion("may", text, now_ns, (Order("place", (thing,)),), choices=(thing,)))

    def tick(self, now_ns: int) -> str:
        """Questions that nobody answers are asked once more, or left, and that is said; what waits is begun."""
        says: list[str] = []
        for asked in self.questions:
            again_s, within_s = WAITS[asked.about]
            waited_s, left = to_s(now_ns - asked.since_ns), asked.at_stake
            keeps = tuple(one for one in self._held() if self.ids_of((one,)) <= self.ids_of(left))
            told = f"I understood no answer for {within_s:.0f} seconds, so I"
            if keeps and asked.is_late:
                continue
            if waited_s >= within_s and keeps:
                self.ask(replace(asked, is_late=True))
                says.append(f"{told} keep hold of {named(keeps)}.")
            elif waited_s >= within_s:
                self._close(asked)
                self.leave(left)
                says.append(f"{told} leave {named(left) if left else 'it'}.")
                says.append("" if left or not asked.awaits else self.goes_on().strip())
            elif again_s and waited_s >= again_s and asked.times == 1:
                says.append(self.ask(replace(asked, times=2)))
        offers = bool(self._offered())
        self.offering_ns = (self.offering_ns or now_ns) if offers else 0
        if offers and self.later and to_s(now_ns - self.offering_ns) >= TAKES_WITHIN_S and not self._is_held():
            says.append(f"Nobody takes {named(self._offered())}. {self._set_down()}")
        return _joined([*says, self._next_if_idle()])

    def _offered(self) -> tuple[Reference, ...]:
        """What was filled and is held out now, where nobody holds out a hand for it."""
        order = self.order if self._each else None
        if order is None or order.skill != "hand_over" or order.things[0].id not in self.cups:
            return ()
        is_taken = any(one.hand_m is not None and not one.holds for one in self._scene.people)
        return () if is_taken or order.things[0].id not in held_by_robot(self._scene) else order.things

    def _set_down(self) -> str:
        """Put what is held out on the table, and go on."""
        things = self._offered()
        self.is_over, self.offering_ns = True, 0
        self.later = (self._placed(things, "table"), *self.later)
        return f"I set {named(things)} down on the table beside you."

    # --- hearing

    def hear(self, text: str, speaker: str = "", now_ns: int = 0) -> str:
        """What to say to an utterance ("": nothing); orders and questions follow it."""
        self.heard = (*self.heard, (speaker, text))[-MOST_HEARD:]
        self._notice()
        before, kept, ordered, self.is_answer = self._spared_ids(), self.kept, self.orders, False
        meant, is_short = self._meant_ids(), bool(self._asked()) and len(text.split()) < MOST_SHORT
        said = self._listen(text, speaker, now_ns)
        earlier = [one for one in self.heard[:-1] if one[0] == speaker] if is_short else []
        self._note_cause((earlier or [(speaker, text)])[-1], ordered, meant)
        if self.is_stopped and self.orders and self.orders != ordered and not said.endswith("?"):
            said = f"{_PROMISES.sub('', said).strip()} {following(self.belief())}"
        elif self.orders and self.orders != ordered and not said.endswith("?") and any(q.holds for q in self.questions):
            said = f"{said} {self._follows()}"  # what is promised waits for that
        self.there = self._place_in(said) or self._place_in(text) or self.there
        if not self.is_answer and said and not answer_to_manners(text) and said != "All right.":
            self.spoken, self.was_answered = self._named_ids(text), False
        spared, told = self._spared_ids(), self.kept - kept
        left = [
            replace(one, ids=one.ids & spared, is_unclear=one.is_unclear and not one.ids & told) for one in self.reasons
        ]
        new = [(spared - before - self.kept, True), ((spared - before) & self.kept, False)]
        left += [WhyLeft(frozenset(ids), speaker, text, is_unclear) for ids, is_unclear in new]
        self.reasons = tuple(one for one in left if one.ids)
        return said.strip()

    def _named_ids(self, text: str) -> tuple[str, ...]:
        return tuple(sorted(self.ids_of(self._references_in(text))))

    def _references_in(self, text: str) -> list[Reference]:
        return [
            Reference(label=one.kind or "*", colour=one.colour) for one in self._named_in(text)
            if not (one.place or one.unknown) and (one.colour or one.kind not in ("", "*")) and one.is_definite
        ]  # fmt: skip

    def _place_in(self, text: str) -> str:
        """The only place that is named there, or the last one to which something goes."""
        words = re.findall(r"[a-z]+", text.lower())
        places = [one for one in self.around.world.places if f" {one} " in f" {' '.join(words)} "]
        return places[0] if len(places) == 1 else ""

    def _meant_ids(self) -> set[str]:
        """What is to be moved or washed, by what is ordered."""
        return {
            one.id for one in self._things() if any(is_still_meant(one, order, self._scene) for order in self.orders)
        }

    def _note_cause(self, cause: tuple[str, str], before: Sequence[Order], meant: set[str]) -> None:
        """Who has brought about by which words what is done now, and what is done no more."""
        for one in self.orders:
            same = [
                two for two in before if (two.skill, two.place) == (one.skill, one.place)
                and self.ids_of(one.things) <= self.ids_of(two.things)
            ]  # fmt: skip
            if one not in before:
                self.causes = {**self.causes, one: self.causes.get(same[0], cause) if same else cause}
        now = self._meant_ids()
        kept = [replace(one, ids=one.ids - now) for one in self.dropped if one.ids - now]
        left = frozenset(meant - now)
        self.dropped = tuple([*kept, WhyLeft(left, *cause)] if left else kept)[-MOST_HEARD:]

    def _cause(self, ident: str, skill: str, place: str) -> tuple[str, str]:
        """Who has ordered this of this thing last, by which words; of what was put back, who wanted it no more."""
        if skill == "put_back" and (whys := [one for one in self.dropped if ident in one.ids]):
            return whys[-1].speaker, whys[-1].text
        for order, cause in reversed(tuple(self.causes.items())):
            things = [Reference(id=one.id, label=one.label, colour=one.colour) for one in order.things]
            if (order.skill, order.place) == (skill, place) and (not ident or ident in self.ids_of(things)):
                return cause
        return self.by, ""

    def _notice(self) -> None:
        """What the hand has brought somewhere since it was looked at last."""
        held = held_by_robot(self._scene)
        stood, inside = dict(self.stood), dict(self.inside)
        for one in self._things():
            if within := [state for state in one.state if state not in STATES]:
                inside[one.id] = " and ".join(within)
            place, before = place_of(one.id, self._scene), self.stood.get(one.id, "")
            is_given = self._is_theirs(one)
            if one.id in self.carried and one.id not in held and (is_given or place):
                is_back = place == before and not any(fits(one, ref, self._scene) for ref in self._worked_on())
                if is_given or is_back or place != before:
                    skill = "hand_over" if is_given else "put_back" if is_back else "place"
                    order = "" if skill == "hand_over" else place
                    self._did(DoneDeed(skill, one.id, one.name, place, before, *self._cause(one.id, skill, order)))
            stood[one.id] = place or before
        self.stood, self.inside = stood, inside
        placed = {one.id for one in self._things() if place_of(one.id, self._scene) or self._is_theirs(one)}
        self.carried = frozenset(held) | (self.carried - placed)
        lent = [one for one in self._things() if one.id in self.owners.keys() - self.given - self.cups.keys()]
        lent = [one for one in lent if one.id not in self.kept and not self._steps_left(one.id)]
        if lent and not (self.orders or self.questions):  # a deed was allowed, and no other one
            self.talk = replace(self.talk, protected=(*self.talk.protected, *self.refs(lent)))

    def _worked_on(self) -> tuple[Reference, ...]:
        return self.current.things if self.current is not None else ()

    def _did(self, deed: DoneDeed) -> None:
        if not self.deeds or deed != self.deeds[-1]:
            self.deeds = (*self.deeds, deed)

    def _spared_ids(self) -> set[str]:
        """What is to be left alone, or waits for a word whether it is."""
        return self.kept | self.ids_of(
            ref for one in self.questions if one.about in ("leave", "still") for ref in one.choices
        )

    def _listen(self, text: str, speaker: str, now_ns: int) -> str:
        self._show(now_ns)
        text, said = self._with_made(text, speaker, now_ns)
        if said:
            return said
        made = {one: whom for one, whom in self.cups.items() if one in self._handed() or self._steps_left(one)}
        before, scene = self.owners, with_owners(self._scene, {**made, **self.owners})
        self.around = replace(self.around, scene=scene)
        said_plainly = self.household.written(text)
        self.owners, rest = owners_told(said_plainly, scene, speaker, before, self._named_owned)
        own = [one for one in self._things() if self.owners.get(one.id) != before.get(one.id)]
        if self._is_given_any(own, speaker):
            self.talk = replace(self.talk, chosen=self.refs(own)[0])
            said = self._listen_to(text, speaker, now_ns)
            self.talk = replace(self.talk, chosen=None)
            return said
        if not own:
            return self._listen_to(with_owned(text, scene, speaker), speaker, now_ns)
        self.around = replace(self.around, scene=with_owners(scene, self.owners))
        said = self._keep_owned(own, text, speaker, now_ns)
        ids, rest = {one.id for one in own}, bound_out(rest, own[:1], ()) if len(own) == 1 else rest
        is_more = any(
            one.act not in ("dark", "social")
            and not (one.words.startswith("the ") and {each.id for each in one.things} <= ids)
            for one in parts_heard(self, rest)
        )
        is_more = is_more or self._is_of_recipe(rest)  # "The blue mug is mine. Make me a coffee."
        is_more = is_more or naming(rest, scene, self.names)[0] != self.names
        more = self._listen_to(with_owned(rest, scene, speaker), speaker, now_ns) if is_more else ""
        is_kept = ids <= self.kept
        return _joined([said if is_kept else "", "" if more in ("I see.", "All right.", said) and is_kept else more])

    def _is_given_any(self, own: Sequence[SeenObject], speaker: str) -> bool:
        """Whether who says that this is hers had asked for any of its kind, which is being given to her."""
        order = self.order
        if order is None or order.skill != "hand_over" or self.by != speaker or len(own) != 1:
            return False
        is_any = not self._named_ids(self.causes.get(order, ("", ""))[1])
        return is_any and own[0].label == order.things[0].label

    def _named_owned(self, words: str, *, is_behind: bool = False) -> tuple[SeenObject, ...]:
        """What somebody says is theirs: by its place in the row as well, where that is the same from each side."""
        words = self._bound(words) if self.was_answered else words
        spelled = spelled_out(words, self._scene, self.names, self._speaker, self._kind_meant())
        words = words if spelled.reply else spelled.text
        return () if spelled.views else meant_by(self, words, is_behind=is_behind)

    def _keep_owned(self, own: Sequence[SeenObject], text: str, speaker: str, now_ns: int) -> str:
        """What is somebody's is left from now on, unless it is ordered all the same."""
        names = tuple(Noun(kind=one.label, colour=one.colour, is_definite=True) for one in own)
        who = {one.id: self.owners[one.id] for one in own}
        told = tuple(
            ("my" if who[one.id] == speaker else who[one.id], ref) for one, ref in zip(own, self.refs(own), strict=True)
        )
        mentioned, owners = (*self.talk.mentioned, *names)[-12:], (*self.talk.owners, *told)
        self.talk = replace(self.talk, mentioned=mentioned, owners=owners)
        self.reasons = (*self.reasons, WhyLeft(frozenset(one.id for one in own), speaker, text))
        return self._spare(Intent("nothing", protected=self.refs(own)), now_ns)

    def _listen_to(self, text: str, speaker: str, now_ns: int) -> str:
        pointed_at = {one.points_at for one in self._scene.people if one.points_at}
        shown = pointed_at.pop() if len(pointed_at) == 1 else self.spoken[0] if len(self.spoken) == 1 else ""
        before = self.names
        self.names, said, rest = naming(text, self._scene, self.names, shown)
        if said:
            called = [one for one in self._things() if one.id in {*self.names.values()} - {*before.values()}]
            if {"my", "our"} & {*text.lower().split()}:  # "My mug is called Joe."
                self.owners = {**self.owners, **{one.id: speaker for one in called}}
            rest = bound_out(rest, called[:1], ())
            is_more = any(one.act not in ("dark", "social") for one in parts_heard(self, rest))
            return _joined([said, self._listen(rest, speaker, now_ns) if is_more else ""])
        if (answered := self._asked_in(text, speaker, now_ns)) is not None:
            return answered
        return self._ordered_in(text, speaker, now_ns)

    def _asked_in(self, text: str, speaker: str, now_ns: int) -> str | None:
        """The answers to what is asked in it, and what is said to the rest; None where it asks nothing plainly.

        A question changes nothing: neither what is done, nor what the robot has asked itself.
        """
        apart = asked_apart(named_out(text, self._scene, self.names))
        runs = [(run, is_asking and not self._orders(run)) for run, is_asking in apart]
        if len(runs) > 1 and any(_SELF_ASKED.fullmatch(run) for run, _ in runs[1:-1]):
            return None  # "Bring me the box. Which one? The red one."
        is_stop = understand(text).wants == "stop" and not all(asks for _, asks in runs)
        clauses = self._clauses(text)
        if is_stop or not any(asks for _, asks in runs) or any(one.word == "another" for one in clauses[-1:]):
            return None
        last, asks_last = runs[-1]
        if not asks_last and last.rstrip().endswith("?") and self._understood(text)[0].deed == "ask":
            return None  # "What did he say? Bring the box?"
        said: list[str] = []
        topic = ""
        for (run, is_asking), (behind, _) in zip(runs, (*runs[1:], ("", False)), strict=True):
            points_back = _POINTS_BACK.search(behind) is not None and "other" not in behind
            if is_asking:
                said.append(self.answered(f"{topic.rstrip('.!… ')}, {run}" if topic else run, speaker))
                topic = ""
            elif points_back and all(one.type == "fragment" and one.nouns for one in self._clauses(run)):
                topic = run  # "The white one. Have you moved it?"
            elif not self._is_manners(run):
                said.append(self._ordered_in(run, speaker, now_ns).removeprefix("I see."))
                self.spoken = self._named_ids(run) or self.spoken
        return _joined(said)

    def _orders(self, question: str) -> bool:
        """Whether the grammar reads an order in what looks like a question: "Is there any way you might wipe it?"."""
        intent = self._understood(question)[0]
        return intent.deed == "do" and any(one.skill not in ("wait", "stop") for one in intent.orders)

    def _understood(self, text: str, asked: OpenQuestion | None = None) -> tuple[Intent, Conversation]:
        """What an utterance means; as an answer it names one of what was asked about: "The cup." of two red things."""
        world = self.around.world
        before = self._talk_about(asked)
        intent, talk = understand_in(text, world, before, parser_of(world))
        kept = dict.fromkeys((*before.protected, *intent.protected))
        talk = replace(talk, protected=self._but(intent.released, tuple(kept)))
        choices = asked.choices if asked is not None and asked.awaits == "thing" else ()

        def chosen(ref: Reference) -> Reference:
            meant = [one for one in choices if covers(ref, one)]
            return meant[0] if ref.count == len(meant) == 1 else ref

        orders = tuple(one.about(tuple(map(chosen, one.things))) for one in intent.orders)
        return (msgspec.structs.replace(intent, orders=orders) if choices else intent), talk

    def _bound(self, text: str) -> str:
        """With "that one" and "them" as what was answered just before, and nothing pointed at or named since."""
        if (done := self._deed_meant(text)) is not None:
            return done
        own = [one for one in self._things() if one.owner.lower() == self._speaker.lower() != ""]
        if len(own) == 1 and _WITH_IT.search(text):
            return bound_out(text, own, ())
        things = [one for ident in self.spoken for one in self._things() if one.id == ident]
        held, ways = held_by_robot(self._scene), [(one.skill, one.place) for one in self.orders]
        is_order = any(one.type == "order" and one.nouns and not one.is_negated for one in self._clauses(text))
        if not (self.was_answered and things):  # "Rinse that.", of one in the hand of several that go there
            things = [one for one in self._things() if one.id in held and is_order and ways and ways.count(ways[0]) > 1]
        if not things or any(one.points_at for one in self._scene.people):
            return self._with_other(text)
        text = _ITS_SIDE.sub(r"to the \1 of it", text) if len(things) == 1 else text
        found = pronoun_in(text)
        if found is None:
            return self._with_other(text)
        behind = re.split(r"\b(?:and|then|but)\b|[.;!]", text[found.end() :])[0]
        beside = self._named_in(text[: found.start()]) + self._named_in(behind)
        is_named = any(one.kind not in ("", "*") or one.colour for one in beside)
        target = self.target()
        is_other = target is not None and target not in things
        is_open = self.open("deed", "may", "still", "instead") is not None
        if is_named or is_open or (is_other and re.search(r"\b(?:not|leave|stop|keep|never)\b|n't\b", text, re.I)):
            return text
        asked = next((one for one in self._asked() if one.awaits == "thing"), None)
        choices = (asked.choices or asked.orders[0].things) if asked is not None else ()
        is_told = len(things) == 1 and things[0].id in self.ids_of(choices)
        if asked is not None and not is_told and all(one.type != "order" for one in self._clauses(text)):
            return text  # it answers what was asked
        others = [one for one in self._things() if one.label == things[0].label and one not in things]
        return bound_out(text, things, standing(others, self._scene))

    def _called(self, text: str) -> str:
        """With "he" and "her" as "it", where what is spoken of has a name."""
        plain = named_out(text, self._scene, self.names)
        told = [one for one in self.talk.mentioned if plain == text and one.kind][-1:]
        named_last = self.ids_of(Reference(label=one.kind or "*", colour=one.colour) for one in told)
        is_called = plain != text or (len(named_last) == 1 and named_last <= {*self.names.values()})
        return _CALLED.sub("it", plain) if is_called else text

    def _with_other(self, text: str) -> str:
        """With "the other cup" as the only one besides what is worked on, or was last."""
        last = self.deeds[-1].id if self.deeds else ""
        target = self.target()
        ids = (target.id if target is not None else "", last)
        about = next((one for ident in ids for one in self._things() if one.id == ident), None)
        alike = [one for one in self._things() if about is not None and one.label == about.label]
        others = [one for one in alike if about is not None and one.id != about.id]
        if len(others) != 1 or self._asked():
            return text
        return re.sub(rf"\bthe other (?:one|{others[0].label})\b", f"the {others[0].name}", text, flags=re.I)

    def _deed_meant(self, text: str) -> str | None:
        """With "the first one you moved" as what that was; None where no deed is spoken of."""
        found = _OF_DEED.search(text)
        brought = list(dict.fromkeys(one.name for one in self.deeds if one.skill in ("place", "hand_over")))
        if found is None and (found := _IN_TURN.search(text)) is not None and not _OUT_AGAIN.search(text):
            told = [one.name for ident in self.spoken for one in self._things() if one.id == ident]
            brought = told if self.was_answered and len(told) > 1 else []
        at = TURNS[found["which"].lower()] if found is not None else 0
        if found is None or not -len(brought) <= at < len(brought):
            return None
        return f"{text[: found.start()]}the {brought[at]}{text[found.end() :]}"

    def _named_in(self, text: str) -> list[Noun]:
        words = [word for one in segments_of(text) for word in one.words]
        return parser_of(self.around.world).named_in(words)

    def _is_manners(self, text: str) -> bool:
        """Whether it says nothing that counts beside a question; a yes counts where the robot has asked."""
        parts = parts_heard(self, text)
        is_short = len(text.split()) <= 4 and not self._orders(text) and self._understood(text)[0].why != "cancelled"
        acts = {one.act for one in parts}
        is_empty = not any(one.things or one.place or one.skill for one in parts)
        plain = r"\W*(?:yes|yeah|yep|yup|no|nope|nah)(?: please| thanks| thank you)?\W*"
        is_answer = bool(self._asked()) and re.fullmatch(plain, text, re.I) is not None
        return is_empty and is_short and acts <= {"social", "yes", "no", "dark", "ask"} and not is_answer  # "Really?"

    def _ordered_in(self, text: str, speaker: str, now_ns: int) -> str:
        """What is made of words that ask nothing plainly."""
        if self.talk.chosen is not None:
            return self._hear(text, speaker, now_ns)
        about = _WHAT_ABOUT.fullmatch(text)
        names = about[1] if about is not None else text if self._asks_again(text) else ""
        left = meant_by(self, names) if names else ()
        if self.was_answered and names and (left or about is None):
            return self.answered(names, speaker)  # asked of what was just asked of another
        if left and all(one.id in self.kept and not self._gives(one) for one in left) and self.why_kept(left):
            self.spoken, self.is_answer, self.was_answered = tuple(one.id for one in left), True, True
            return _joined(dict.fromkeys(reason_of(one, self.belief()) for one in left))
        text = text if self.orders else before_all(text)
        text = self._bound(elsewhere(self._called(text), self.around.world.places))
        text, undone = behind_deed(self, text)
        if undone:
            intent = self.read_alone(text)
            intent = msgspec.structs.replace(intent, deed="ask", why="condition", what=undone, awaits="yes")
            return self._unread(intent, self._clauses(text), now_ns)
        is_owner = any(owner == "my" for owner, _ in self.talk.owners) or self._is_of_recipe(text)
        heard = {who for who, _ in self.heard}
        kind = self._kind_meant()
        spelled = spelled_out(text, self._scene, self.names, speaker, kind, is_owner=is_owner, heard=heard)
        if (seen := self._seen_from(text)) is not None:
            return self._choose(seen[0], seen[1], now_ns)
        if said := "" if spelled.reply or spelled.views else self._which_that_is(spelled.text, now_ns):
            return said
        if spelled.reply:
            return _joined([spelled.reply, self._untold(spelled, now_ns)])
        if spelled.views and not self.open("leave", "still"):
            return self._ask_view(spelled, speaker, now_ns)
        said = self._hear(self.household.written(spelled.text), speaker, now_ns)
        return f"{spelled.aside} {said}" if spelled.aside and "?" in said else said

    def _asks_again(self, text: str) -> bool:
        """ "And the apple?": only names, which answer nothing that the robot has asked, and may forbid nothing."""
        clauses, open_ = self._clauses(text), self.ids_of(ref for one in self._asked() for ref in one.choices)
        is_name = bool(clauses) and all(one.is_question and only_names(one) for one in clauses)
        return is_name and (adds(text) or not {*self._named_ids(text)} & (open_ | self._meant_ids()))

    def _ask_view(self, spelled: SpelledOut, speaker: str, now_ns: int) -> str:
        """Whose left is meant; the robot's view is the first choice. What is ordered ahead of it is done."""
        parts, last = re.split(r"(?<=[.,;!?]) +", spelled.text), focus_in(self).last
        kind, is_objection = self._kind_meant(), objects(self._understood(spelled.text)[0], self._clauses(spelled.text))
        views = [spelled_out(one, self._scene, self.names, speaker, kind).views for one in parts]
        at = next((number for number, seen in enumerate(views) if seen), 0)
        ahead = " ".join(parts[:at])
        said = self._hear(ahead, speaker, now_ns) if self._orders(ahead) else ""
        part = next((one for one in parts_heard(self, " ".join(parts[at:])) if one.skill or one.place), None)
        things = [one for ident in spelled.views for one in self._things() if one.id == ident]
        alike = (Reference(label=things[0].label),)
        order = Order("", alike)
        if part is not None:
            order = self._as_heard(part, alike)
        elif last is not None and last.skill in ("place", "rinse", "hand_over"):
            order = last.about(alike)  # "Now the cup on the left."
        text = _joined([said, f"{spelled.aside} Which one do you mean?"])
        if any(one.act == "spare" for one in parts_heard(self, parts[at])):
            return _joined([said, spelled.aside, self.ask_which(self.refs(things), now_ns)])
        wants, target = understand(spelled.text).wants, self.target()
        if wants == "stop":
            self.stop, self.stopped_ns = self.heard[-1], self.stopped_ns or now_ns
        if target is not None and not said and (is_objection or wants in ("stop", "amend")):
            self._drop(self.refs((target,)))  # that one is not meant, whichever is
        return self.ask(OpenQuestion("order", text, now_ns, (order,), "thing", self.refs(things), is_view=True))

    def _seen_from(self, text: str) -> tuple[OpenQuestion, Reference] | None:
        """ "From where you look": the question that it answers, and what is meant then."""
        asked = next((one for one in reversed(self.questions) if one.is_view), None)
        found = _VIEW.search(f" {text}")
        is_more = any(one.skill or one.place or one.act in ("ask", "back", "no") for one in parts_heard(self, text))
        if asked is None or found is None or is_more or len(asked.choices) != 2 or self._is_order(text):
            return None
        return asked, asked.choices[0 if found["who"].lower().startswith(("you", "robot")) else 1]

    def _which_that_is(self, text: str, now_ns: int) -> str:
        """An order for "that one", where nobody knew just before which that is: asked again, of this order."""
        asked = next((one for one in self._asked()[:1] if one.about == "order" and len(one.choices) > 1), None)
        part = next((one for one in parts_heard(self, text) if one.skill not in ("", "put_back")), None)
        is_told = bool(self._references_in(text)) or any(one.points_at for one in self._scene.people)
        clauses = self._clauses(text)
        is_that = [one.type for one in clauses] == ["order"] and _DOWN.search(text) is None
        is_that = is_that and any(
            x.count == 1 and (x.pronoun or x.is_definite) and not (x.is_other or x.is_plural) for x in clauses[0].nouns
        )
        is_untold, self.is_untold = self.is_untold, False
        if not (asked or is_untold) or part is None or is_told or not is_that:
            return ""
        if asked is None:
            return self._untold(SpelledOut(text, is_untold=True), now_ns)
        return self.ask(replace(asked, since_ns=now_ns, orders=(self._as_heard(part, asked.orders[0].things),)))

    def _as_heard(self, part: SaidPart, things: tuple[Reference, ...]) -> Order:
        relation = relation_to(part.place, self._scene) if part.place else ""
        return Order(part.skill or "place", things, (), part.place, relation)

    def _show(self, now_ns: int) -> None:
        """A finger is remembered for a while; who points at nothing shows what they hold out."""
        who, what, since_ns = self.pointed
        people, is_fresh = self._scene.people, to_s(now_ns - since_ns) < POINTS_FOR_S
        if any(one.points_at for one in people) or not any(one.holds or one.id == who for one in people):
            return
        shown = {one.id: one.holds for one in people if self._each}
        if what and is_fresh:
            shown = {who: what}
        people = tuple(msgspec.structs.replace(one, points_at=shown.get(one.id, "")) for one in people)  # type: ignore[type-var]  # a Struct
        self.around = replace(self.around, scene=msgspec.structs.replace(self._scene, people=people))  # type: ignore[type-var]  # a Struct

    def _kind_meant(self) -> str:
        """What "the one on the left" is: of the kind that is asked for, or worked on."""
        asked = next(iter(self._asked()), None)
        orders = self.orders if self._each or self.current is None else (self.current,)
        things = [one for order in (asked.orders[:1] if asked is not None else orders) for one in order.things]
        kinds = {one.label for one in (asked.choices if asked is not None and asked.choices else things)}
        return kinds.pop() if len(kinds) == 1 and "*" not in kinds else ""

    def _untold(self, spelled: SpelledOut, now_ns: int) -> str:
        """What cannot be told is asked, and what it may forbid is held until then."""
        if not spelled.is_untold:
            return ""
        is_order = all(one.type in ("order", "question") and not one.is_negated for one in self._clauses(spelled.text))
        if not self.orders or (is_order and not spelled.is_objection):
            self.talk, self.spoken, self.is_untold = replace(self.talk, mentioned=()), (), True
            return "Which one do you mean?"
        ids = held_by_robot(self._scene) | self._meant_ids()
        open_ones = [one for one in self._things() if one.id in ids]
        return self.ask_which(self.refs(open_ones) or self._ordered(), now_ns)

    def _ordered(self) -> tuple[Reference, ...]:
        """All that is worked on; with a household, and later."""
        orders = self.orders if self._each else self.orders[:1]
        return tuple(one for order in orders for one in order.things)

    def _held_out(self, text: str, speaker: str, now_ns: int) -> str:
        """What to say to who speaks of what is held out to a person, and take that back; "" of other words."""
        held, order = held_by_robot(self._scene), self.order
        things = [one for one in self._things() if one.id in held]
        if order is None or order.skill != "hand_over" or self._asked() or len(things) != 1:
            return ""
        found = _SAID_TO_HELD.fullmatch(text.strip())
        if found is None:
            return ""
        name = things[0].name
        if found["who"]:
            return f"I hold the {name} out. {found['who']} can take it from my hand."
        if found["got"]:
            return f"I still hold the {name}. Please take it from my hand."
        is_anothers = self.by not in ("", speaker)  # nobody else takes an order back
        return "" if is_anothers else self._cancelled(Intent("nothing", why="cancelled"), now_ns)

    def _hear(self, text: str, speaker: str, now_ns: int) -> str:
        if said_to_held := self._held_out(text, speaker, now_ns):
            return said_to_held
        meaning, clauses = understand(text), self._clauses(text)
        is_cancelled = any(clause.type in ("cancel", "order") for clause in clauses)  # "Mm. Now wash the cup."
        is_cancelled = is_cancelled or any(one.type == "unknown" and len(one.words) > 2 for one in clauses)
        is_waited_for = any(one.awaits for one in self.questions)
        if meaning.is_listening and not (is_waited_for or is_cancelled) and "thank" not in text.lower():
            return ""  # "mhm", and not "okay, never mind"
        if meaning.wants == "stop":
            self.stopped_ns = self.stopped_ns or now_ns
            self.stop = self.stop if text.rstrip().endswith("?") else self.heard[-1]
            return self._stopped(text, speaker, now_ns)
        if meaning.wants == "resume":
            again = next((one for one in self.questions if one.is_at_stop), None)
            self.is_paused = False
            if self.around.is_stopped is None:
                self.stopped_ns = 0
            if again is not None and not self._orders(text):  # "Go on, put it back."
                return self._asked_at_stop(again, clauses, speaker, now_ns)
            if not any(one.awaits == "yes" for one in self.questions):
                return "" if self.is_stopped else self._follows()
            # else it is a yes as well: "Go ahead."
        if self.household.recipes:
            intent = self._understood(text)[0]
            said = self._brew(text, clauses, self._spared(clauses, intent), speaker, now_ns)
            if said is not None:
                return said
        before, things, is_free = (self.orders, self.talk.protected), self._ordered(), not self._asked()
        said = self._heard(text, speaker, now_ns)
        is_as_before = (self.orders, self.talk.protected) == before and not self.open("leave")
        if things and is_free and is_as_before and speaks_of_rest(text, clauses):
            self._keep_asking(lambda one: one.about not in ("still", "order"))
            return self.ask_whether(things, now_ns)
        if things and is_free and is_as_before and said and not self._asked():
            objected = self._objected_to(text, clauses, is_correction=meaning.wants == "amend")
            if not objected and restricts(text) and said.startswith(("I did not understand", "I cannot do that")):
                objected = things  # "Please, not my favourite!"
            objected = () if self._assents(text) else objected
            whether = self.ask_whether(objected, now_ns) if objected else ""
            return _joined([said.partition(" I go on: ")[0], whether]) if whether else said
        return said

    def _asked_at_stop(self, asked: OpenQuestion, clauses: Sequence[Clause], speaker: str, now_ns: int) -> str:
        """Who lifts the stop has not answered what was asked at it, but for a yes beside it by who may say that."""
        objected = self._objected(asked)
        is_yes = asked.awaits == "yes" and asked.may_answer(speaker)
        if is_yes and not objected and any(_YES.match(" ".join(one.words)) for one in clauses):
            said = self.agree(asked, now_ns, speaker)
            return "" if self.is_stopped else said  # what follows is said once it is lifted
        self._close(asked)
        text = objected or asked.text.removeprefix("Stopped. ")
        return self.ask(replace(asked, text=text, since_ns=now_ns, is_at_stop=False))

    def _objected_to(self, text: str, clauses: Sequence[Clause], *, is_correction: bool) -> tuple[Reference, ...]:
        """What is worked on and may be forbidden by words that changed nothing: named beside a "leave", or all."""
        is_unread = is_correction and is_dark(text, frozenset(names_in(self)))
        if is_unread or self._is_foreign(text) or _REPENTS.search(text):
            return self._ordered()
        words = [word for one in clauses for word in one.words]
        nouns = parser_of(self.around.world).named_in(words) if restricts(text) else []
        told_of = tuple(
            Reference(label=one.kind, colour=one.colour)
            for one in nouns
            if not (one.unknown or one.place) and (one.colour or (one.kind not in ("", "*") and one.is_definite))
        )
        goals = {one.place for one in nouns if one.place and not one.kind}  # "Not the sink with that."
        bound = tuple(ref for one in self.orders if one.place in goals for ref in one.things)
        return self.refs(self._under_way(told_of)) or bound

    def _is_foreign(self, text: str) -> str:
        return "" if understand(text).is_listening else in_another_language(text, frozenset(names_in(self)))  # "Ta."

    def _remarked(self, text: str) -> str:
        """What to say to words that change nothing of what is ordered; "" to others."""
        if self.orders and not self._asked() and ANY_OF_THEM.match(text.lower().rstrip(" .!")):
            return "All right."
        parts = parts_heard(self, text)
        is_over = all(one.act in ("yes", "social") for one in parts) and any(_OVER.fullmatch(p.words) for p in parts)
        return "I see." if is_over else ""  # "That's all."

    def _heard(self, text: str, speaker: str, now_ns: int) -> str:
        """What was said of the work, and not of stopping or going on."""
        if reply := self._is_foreign(text) or self._remarked(text):
            return reply
        clauses, before, kept = self._clauses(text), self.talk.orders, self.talk.protected
        mentioned = self.talk.mentioned
        readings = [(one, *self._understood(text, one)) for one in (*self._asked(), None)]
        for asked, intent, talk in readings[:-1]:
            assert asked is not None
            if (said := self._answered(asked, intent, talk, text, speaker, now_ns)) is not None:
                return said
        _, intent, talk = next(one for one in readings if one[0] is None or one[0].about != "may")
        if said := self._given(intent, talk) or self._assents(text):
            return said + self.goes_on()
        if intent.why == "protected" and self.lift(intent.orders):
            return self._heard(text, speaker, now_ns)  # who kept it has changed her mind
        if (said := self._taken_back(text, intent, clauses, now_ns)) is not None:
            return said
        if (said := in_turn(self, text, speaker, now_ns)) is not None:
            return said
        if (said := self._called_off(text, speaker, now_ns)) is not None:
            return said
        if self._each and (said := self._run_household(text, clauses, intent, now_ns)) is not None:
            return said
        self.talk = replace(talk, question=None, awaits="")
        if said := self._wondered(text, intent, clauses, before, now_ns):
            return said
        if self._each and intent.deed == "do" and intent.protected and self.later and _is_same(intent.orders, before):
            return self._spare(Intent("nothing", protected=intent.protected), now_ns)  # "But not the blue one."
        if intent.deed == "do" and tells_where_kinds_go(text) and self._each:
            taught = {ref.label: one.place for one in intent.orders for ref in one.things if not ref.colour}
            self.habits = {**self.habits, **{kind: place for kind, place in taught.items() if kind and place}}
        if intent.deed in ("ask", "refuse") and intent.why in _DARK:
            protected = tuple(one for one in self.talk.protected if one in kept)
            self.talk = replace(self.talk, protected=protected, mentioned=mentioned)
        return self._follow(intent, text, clauses, speaker, now_ns)

    def _wondered(
        self, text: str, intent: Intent, clauses: Sequence[Clause], before: Sequence[Order], now_ns: int
    ) -> str:
        """What to ask of the work where something is only named; "" of other words."""
        if not self.orders or self._asked() or intent.is_addition or not wonders(text, clauses, before):
            return ""
        named_here = tuple(ref for order in intent.orders for ref in order.things if ref.colour or ref.id)
        told_of = (*named_here, *(one for one in intent.told_of if one.colour or one.label))
        about, is_no = self.refs(self._under_way(told_of)), any(one.type == "no" or one.nots for one in clauses)
        beside = {*self._named_ids(text)} - self.kept - self._meant_ids()
        if beside and not (about or is_no):
            return self._as_well(beside, now_ns)  # "The apple?", which nobody has ordered
        return self.ask_whether(about or self._ordered(), now_ns)

    def _assents(self, text: str) -> str:
        """What to say to "yes, the red one", where just that is under way; "" to other words."""
        order = self.order if not self.questions else None
        parts = parts_heard(self, text) if order is not None else []
        named = {one.id for part in parts if part.is_named for one in part.things}
        about = [one for one in self.orders if len(ids := self.ids_of(one.things)) == 1 and named in (set(), ids)][:1]
        is_said = bool(about) and any(one.act == "yes" for one in parts)
        return "All right." if is_said and self._says_so(OpenQuestion("still", "", 0, (*about,)), text) else ""

    def _given(self, intent: Intent, talk: Conversation) -> str:
        """What to say to words that free what is left, by who may or may not say so; "" of other words."""
        things = [one for ref in intent.released for one in self._fitting(ref) if one.id in self.kept]
        if left := [one for one in things if not self._gives(one)]:
            why, who = self.why_kept(left), capital(self._keeper(left[0]))
            return f"{why}I leave {named(self.refs(left))} until {who} says otherwise."
        if not things or intent.deed != "nothing" or intent.protected or intent.unnamed or intent.why == "cancelled":
            return ""
        self.talk, self.given = talk, self.given | {one.id for one in things}
        self._release(self.refs(things))
        return f"All right, {named(self.refs(things))} may be taken now."

    def _talk_about(self, asked: OpenQuestion | None) -> Conversation:
        """The conversation as the parser reads it, with what is being done as the last order, and the question."""
        is_told = self._each or self.current is None or (self.current.skill == "put_back" and self.talk.orders)
        orders = self.talk.orders if is_told or self.current is None else (self.current,)
        talk = replace(self.talk, orders=orders, held=self._held())
        if asked is None:
            return talk
        things = self._about(asked)
        if asked.awaits == "yes" and [one.count for one in things] == [1]:  # "it" is what was asked about
            name = Noun(kind=things[0].label, colour=things[0].colour)
            talk = Conversation() if asked.about == "may" else talk
            talk = replace(talk, mentioned=(*talk.mentioned, name))
        return replace(talk, question=asked.orders[0], awaits=asked.awaits)

    def _follow(self, intent: Intent, text: str, clauses: Sequence[Clause], speaker: str, now_ns: int) -> str:
        held = self.open("leave", "still")
        match intent.deed:
            case "answer":
                return self._answered_or_not(text, speaker, now_ns, intent)
            case "ask" if forbids_ordered(intent, clauses):
                said = self._spare(Intent("nothing", protected=intent.protected), now_ns)
                again = tuple(one for one in intent.orders if one.things and all(ref.is_any for ref in one.things))
                if not self._each or not again:
                    return said
                return _joined([said, self._do_each(Intent("do", again), now_ns, speaker)])  # another one of them
            case "ask" if shown := self._shown(intent):
                return self.do(shown, now_ns, speaker)
            case "ask" if (but := self._seen_so(intent, clauses)) is not None:
                return but or self.do(Intent("do", intent.orders), now_ns, speaker)
            case "ask" if rest := self._the_rest(intent):
                text = f"Shall I {small(describe(rest))}?"
                asked = OpenQuestion("order", text, now_ns, (rest,), "yes")
                is_waste = rest.place in self.around.world.waste
                return self.ask(asked) if is_waste else self.do(Intent("do", (rest,)), now_ns, speaker)
            case "ask" if held is not None and not asks(self, text):
                ids = self.ids_of(ref for one in intent.orders for ref in one.things)
                is_of_others = bool(ids) and ids.isdisjoint(self.ids_of(held.choices))
                return not_understood(self, text) if is_of_others else self.ask_which(held.choices, now_ns)
            case "ask" if (
                self._each and intent.why == "where" and intent.orders[0].skill == "wipe" and intent.orders[0].things
            ):
                washed = Order("rinse", intent.orders[0].things, intent.orders[0].excluding)
                return self._do_each(Intent("do", (washed,)), now_ns, speaker)  # "Scrub the red mug."
            case "ask" if self._each and self._is_put_away(intent, clauses):
                away = Order("place", intent.orders[0].things, intent.orders[0].excluding)
                self.talk = replace(self.talk, question=intent.orders[0], awaits="place")  # "On the tray."
                return self._do_each(Intent("do", (away,)), now_ns, speaker)
            case "ask" | "refuse":
                said = self._by_parts(text, speaker, intent, clauses, now_ns)
                return said or self._unread(intent, clauses, now_ns)
            case "nothing" if intent.why == "cancelled" and (beside := self._beside_cancelled(text)):
                said = self._cancelled(intent, now_ns) if self.orders or self.questions else ""
                return _joined([said, self._heard(beside, speaker, now_ns)])
            case "nothing" if self.order is None and intent.taken and intent.why == "told":
                said = self._spare(Intent("nothing", protected=intent.taken), now_ns)
                return _joined([said, offer_wash(self, parts_heard(self, text), now_ns)])
            case "nothing":
                return self._told(text, speaker, intent, clauses, now_ns)
        said = self.do(intent, now_ns, speaker)
        apart = tuple(one for one in intent.unnamed if one.label)
        if apart and self.order is not None and not self._asked():  # "all cups but that one"
            return f"{said} {self._spare(Intent('nothing', unnamed=apart), now_ns, is_at_it=False)}"
        return said

    def _beside_cancelled(self, text: str) -> str:
        """ "Never mind. The cup I want back on the tray.": the sentences behind what calls off that name something."""
        said = sentences_of(text)
        at = max((n for n, one in enumerate(said, 1) if self.read_alone(one).why == "cancelled"), default=len(said))
        return " ".join(one for one in said[at:] if any(part.is_named for part in parts_heard(self, one)))

    def _seen_so(self, intent: Intent, clauses: Sequence[Clause]) -> str | None:
        """What to say where the state is not seen on which an order depends; "" where it is; None of other words."""
        words = [word for one in clauses if one.condition == "if" for word in one.words]
        states, ids = [word for word in words if word in STATES], self.ids_of(self._about(intent))
        thing = next((one for one in self._things() if ids == {one.id}), None)
        is_of_it = intent.why == "condition" and len(states) == 1 and {*self._named_ids(" ".join(words))} <= ids
        if thing is None or not is_of_it or "not" in words:
            return None
        return "" if is_so(thing, states[0]) else f"The {thing.name} is not {states[0]}, as far as I see."

    def _the_rest(self, intent: Intent) -> Order | None:
        """ "I'll do the plates, you put the rest away": what else stands where those do that are set apart here."""
        order = intent.orders[0] if intent.orders and self._each else Order("")
        apart = self.ids_of((*order.excluding, *intent.taken, *intent.protected))
        places = {self._place_of(one) for one in self._things() if one.id in apart}
        if [one.label for one in order.things] != ["*"] or len(places) != 1 or order.place in {"", *places}:
            return None
        apart |= self.kept | self._meant_ids()
        rest = [one for one in self._things() if self._place_of(one) in places and one.id not in apart]
        rest = [one for one in rest if one.label != self.household.wipes_with]
        return order.about(self.refs(rest)) if rest and intent.why == "which" else None

    def _wanted(self, intent: Intent) -> tuple[Reference, ...]:
        """ "I need it", of what is to be put somewhere: it stays, and nobody has asked to be given it."""
        words = {one.word for one in self._clauses(self.heard[-1][1]) if one.type == "order"} if self.heard else set()
        if words - {"stop", "wait"} != {"want"}:  # "Can I have it?" is an order
            return ()
        ids = self.ids_of(ref for one in intent.orders if one.skill == "hand_over" for ref in one.things)
        away = [one for one in self.orders if one.skill == "place" and not self._is_of_washing(one)]
        taken = self.ids_of(ref for one in away for ref in one.things)
        return self.refs([one for one in self._things() if one.id in ids & taken])

    def _answered_or_not(self, text: str, speaker: str, now_ns: int, intent: Intent) -> str:
        """The answer to a question; what is made of what only looks like one."""
        if not any(one.act == "ask" for one in parts_heard(self, text)):
            if said := answer_to_manners(text) or propose(self, text, speaker, now_ns, intent):
                return said
            said = self.answered(text, speaker)
            return not_understood(self, text) if said.startswith(UNKNOWN) else said
        return self.answered(text, speaker)

    def _by_parts(self, text: str, speaker: str, intent: Intent, clauses: Sequence[Clause], now_ns: int) -> str:
        """What is made of an order that the grammar did not read whole; "" where its own question is the better one."""
        if intent.why == "condition":
            return ""  # the orders are read, and only when they are meant is not
        is_objection = objects(intent, clauses) and bool(self._ordered())
        is_plain = is_plain_refusal(self, text, intent)
        is_apart = any(one.act == "spare" and one.is_named for one in parts_heard(self, text))
        is_held = is_objection and not (self._asked() or is_apart)  # what corrects the work holds it
        is_gist = self._is_dark(text, intent, clauses) and not (is_held or is_plain)
        before = self.orders, self.questions
        if is_gist and (said := propose(self, text, speaker, now_ns, intent)):
            is_lost = intent.why == "tidy" and (self.orders, self.questions) == before
            return f"{said} {self._unread(intent, clauses, now_ns)}" if is_lost else said  # "..., but leave the ball"
        is_known = is_plain or is_objection or bool(self._under_way(intent.told_of))
        return not_understood(self, text) if intent.why in _NONSENSE and not is_known else ""

    def _told(self, text: str, speaker: str, intent: Intent, clauses: Sequence[Clause], now_ns: int) -> str:
        """What is made of words that order nothing: a protection, a remark, or what the grammar left unread."""
        released = self.ids_of(intent.released) & self.kept
        is_told = not (intent.protected or released or intent.unnamed or self._under_way(intent.told_of))
        is_told = is_told and not (self.orders and speaks_of_rest(text, clauses))
        if is_told and intent.why not in ("cancelled", "declined", "elsewhere"):
            if said := propose(self, text, speaker, now_ns, intent):
                return said
            said = self._nothing(intent, now_ns)
            return not_understood(self, text) if said == "I see." and is_about_work(self, text) else said
        said = self._nothing(intent, now_ns)
        is_forbidden = any(one.is_negated or one.type == "protect" for one in clauses)
        said = "All right." if said == "I see." and is_forbidden else said
        named_beside = {one.id for part in parts_heard(self, text) if part.act == "name" for one in part.things}
        new = named_beside - self.kept - self._meant_ids() if intent.protected and self.orders else set()
        is_more = bool(new) and not self._asked()  # "The glass, yeah. Don't touch the jar."
        return _joined([said, self._as_well(new, now_ns) if is_more else ""])

    def _as_well(self, ids: Collection[str], now_ns: int) -> str:
        """Ask whether the same is to be done with these."""
        order = self.orders[0].about(self.refs([one for one in self._things() if one.id in ids]))
        text = f"Shall I {small(describe(order))} as well?"
        asked = OpenQuestion("order", text, now_ns, (order,), "yes", is_more=True)
        return self.too_wide(order.things) or self.ask(asked)

    def _is_dark(self, text: str, intent: Intent, clauses: Sequence[Clause]) -> bool:
        """Whether it is asked or refused as words were left unread."""
        about = intent.orders[0] if intent.orders else Order("")
        if any(one.is_owned and one.is_named for one in parts_heard(self, text)):
            return True
        is_lost = intent.why == "where" and (about.skill != "place" or not about.things)
        is_lost = is_lost or (intent.why == "tidy" and any(one.things for one in parts_heard(self, text)))
        return intent.why in _DARK or is_lost or (intent.why == "where" and _names_place(clauses, about))

    @staticmethod
    def _is_put_away(intent: Intent, clauses: Sequence[Clause]) -> bool:
        """Whether it lacks only a place, which a household knows."""
        is_open = intent.why == "where" and not (intent.what or objects(intent, clauses))
        is_open = is_open and bool(intent.orders) and intent.orders[0].skill in ("place", "put_back", "")
        return is_open and bool(intent.orders[0].things) and not _names_place(clauses, intent.orders[0])

    def _unread(self, intent: Intent, clauses: Sequence[Clause], now_ns: int) -> str:
        """What is asked or refused; what is worked on and was named by it, or objected to, is held."""
        ordered = self.orders
        if intent.why == "protected" and self.ids_of(self._about(intent)) and not self._kept_of(intent.orders):
            return self.do(Intent("do", intent.orders), now_ns, self._speaker)  # another one than what is left
        if intent.why == "protected" and (refused := self.do_but_kept(intent.orders, now_ns, self._speaker)):
            return refused + self.goes_on() if self.orders == ordered else refused
        why = self._why_not(intent)
        is_objection = objects(intent, clauses) and bool(self._ordered()) and not self._asked()
        if intent.why in _NONSENSE and intent.deed == "ask" and (is_objection or self._under_way(intent.told_of)):
            why = f"I did not understand “{short_quote(self.heard[-1][1])}”." if self.heard else why
        is_read = self.open("leave", "still") is not None or any(order.skill for order in intent.orders)
        things = () if is_read else self._under_way(intent.told_of)
        if things:
            whether = self.ask_whether(self.refs(things), now_ns)
            return whether if intent.why == "what" else f"{why} {whether}"
        if objects(intent, clauses) and self._ordered() and not self._asked():
            return f"{why} {self.ask_whether(self._ordered(), now_ns)}"  # "No, bring it to Ben."
        if intent.deed == "ask":
            about = intent.orders[:1] or (Order(""),)
            told_of = tuple(one for one in about[0].things if one.colour or one.id)
            is_held = bool(self._under_way(told_of)) and not intent.is_addition
            self.ask(OpenQuestion("order", why, now_ns, about, missing=intent.awaits or "yes", is_held=is_held))
        return why + self.goes_on()

    def belief(self) -> Answerable:
        """What questions are answered from."""
        asked = next((one.text for one in reversed(self.questions) if one.awaits), "")
        helped = self.open("help", "thing")
        is_done = self.order is not None and self._is_there(self.order)  # and nobody has told it yet
        orders = self.orders[1:] if is_done else self.orders
        return Answerable(
            self._scene, self.around.skills, next(iter(orders), None), orders[1:], self.deeds, self.causes, asked,
            helped.text if helped is not None else "", self.is_stopped, self.stop, self.reasons, self.heard,
            self.names, self.dropped,
        )  # fmt: skip

    def answered(self, text: str, speaker: str) -> str:
        """The answer to a question, from what is believed."""
        asked, said = self._question(text, speaker)
        is_more = self.was_answered and self.asked is not None and asked.is_named and not asked.skill and not asked.asks
        if is_more and self.asked is not None and len(text.split()) <= LONGEST_NAME:  # "And the ball?", after the cup
            asked = replace(self.asked, things=asked.things, is_named=True, kinds=asked.kinds, unseen=asked.unseen)
        self.asked = asked
        said = said or self._told_of_recipe(text, speaker) or answer(asked, self.belief())
        if said.startswith(UNKNOWN) and asked.is_named:  # "And what about the plate?"
            said = self.too_wide(self.refs(asked.things)) or said
        named_there = {one.id: said.lower().find(f"the {one.name}") for one in self._things()}
        self.spoken = tuple(sorted((one for one, at in named_there.items() if at >= 0), key=named_there.__getitem__))
        marks = {one.id for one in asked.things}
        if asked.asks in ("what", "which") and not marks >= {*self.spoken}:  # "What is next to the cup? Bring it."
            self.spoken = tuple(one for one in self.spoken if one not in marks)
        self.spoken = self.spoken or tuple(one.id for one in asked.things if asked.is_named)
        if not self.spoken:  # "Which one is the green glass? Point at it.", and none is seen
            is_dark = any(one.quality for one in self._named_in(text))  # "And the small one?"
            self.talk = replace(self.talk, mentioned=() if is_dark else self._understood(text)[1].mentioned)
        self.is_answer = self.was_answered = True
        return said

    def _question(self, text: str, speaker: str) -> tuple[AskedOf, str]:
        """What is asked; and the answer, where it only asks what stands beside something."""
        words = words_of_question(text) or " ".join(word for one in segments_of(text) for word in one.words)
        own = [one for one in self._things() if one.owner.lower() == speaker.lower() != ""]
        named = re.compile(rf"\b{re.escape(speaker or '?')}\b", re.I)
        why = [one for one in self.reasons if one.speaker == speaker or named.search(one.text)]
        own = own or [one for one in self._things() if any(one.id in each.ids for each in why) and not one.owner]
        if len(own) == 1 and not _IS_MINE.search(words):  # "Is mine still there?"
            words = re.sub(r"\bmine\b", f"the {own[0].name}", words)
        spelled = spelled_out(f"{words}?", self._scene, self.names, speaker)
        words = words if spelled.reply or spelled.views else spelled.text.rstrip("?")
        asked = asked_about(words.lower(), self._scene, parser_of(self.around.world), focus_in(self), speaker)
        return asked, "" if spelled.is_untold or not spelled.reply.startswith("That is the ") else spelled.reply

    def read_alone(self, text: str) -> Intent:
        """What a part of an utterance means by itself."""
        talk = replace(self._talk_about(None), question=None, awaits="")
        return understand_in(text, self.around.world, talk, parser_of(self.around.world))[0]

    def _keeper(self, thing: SeenObject) -> str:
        """Who alone says when a thing that is left may be taken: its owner, if heard before; else who kept it."""
        if thing.owner and any(who.lower() == thing.owner.lower() for who, _ in self.heard):
            return thing.owner
        why = next((one for one in reversed(self.reasons) if thing.id in one.ids), None)
        return why.speaker if why is not None else thing.owner

    def barred(self, orders: Iterable[Order]) -> list[SeenObject]:
        """What these orders are about by name, is to be left, and is not the speaker's to give."""
        return [one for one in self._kept_of(orders) if not self._gives(one, by_order=True)]

    def _kept_of(self, orders: Iterable[Order]) -> list[SeenObject]:
        """What is to be left of what these orders are about by name, and that nothing else can be meant by."""
        named = [ref for order in orders for ref in order.things if ref.count != ALL]
        kept, found = self.kept, [self._fitting(ref) for ref in named]
        meant = [one for fitting in found if {thing.id for thing in fitting} <= kept for one in fitting]
        return list({one.id: one for one in meant}.values())

    def _gives(self, thing: SeenObject, *, by_order: bool = False) -> bool:
        """Whether who speaks may lift what keeps it: she kept it, or it is hers, and she has changed her mind.

        An order alone does not lift what she forbade to everybody ("nobody", "never"): that is asked.
        """
        why, said = next((one.text for one in reversed(self.reasons) if thing.id in one.ids), ""), self.heard[-1][1]
        is_free = _REPENTS.search(said) or _ALLOWS.search(said)
        if by_order and binds_all(why, is_owner=bool(thing.owner)) and not is_free:
            return False
        is_anothers = thing.owner.lower() not in ("", self._speaker.lower())
        return bool(self._speaker) and not is_anothers and self._keeper(thing).lower() == self._speaker.lower()

    def lift(self, orders: Iterable[Order]) -> bool:
        """Free what these orders name and the speaker may give; whether anything was."""
        free = [one for one in self._kept_of(orders) if self._gives(one, by_order=True)]
        self._release(self.refs(free))
        return bool(free)

    def do_but_kept(self, orders: Sequence[Order], now_ns: int, speaker: str) -> str:
        """Do what nobody keeps of these, and ask about the rest who keeps it; "" where nothing of it is kept."""
        each = [(one, self._one_by_one(one.things)) for one in orders]
        ids = {one.id for one in self.barred(one.about(things) for one, things in each)}
        free = [(one, tuple(ref for ref in things if not self.ids_of((ref,)) <= ids)) for one, things in each]
        left = [(one, tuple(ref for ref in things if self.ids_of((ref,)) <= ids)) for one, things in each]
        rest = tuple(one.about(things) for one, things in free if things)
        kept = tuple(one.about(things) for one, things in left if things)
        said = self.do(Intent("do", rest), now_ns, speaker) if ids and rest else ""
        return _joined([said, self.ask_keeper(kept, now_ns)]) if ids else ""

    def _one_by_one(self, references: Iterable[Reference]) -> tuple[Reference, ...]:
        """The same with "both cups" as the two that there are."""
        found: list[Reference] = []
        for ref in references:
            fitting = self._fitting(ref)
            found += self.refs(fitting) if ref.count == len(fitting) > 1 else (ref,)
        return tuple(found)

    def ask_keeper(self, orders: tuple[Order, ...], now_ns: int) -> str:
        """Ask who keeps them, and nobody else, whether this may be done; "" where nothing of it is kept."""
        barred = self.barred(orders)
        if not barred:
            return ""
        if all(one.skill == "place" and self._is_there(one) for one in orders):
            return where_are(barred, self._scene)
        keeper, deeds = self._keeper(barred[0]), list_words([small(describe(one)) for one in orders], "and then")
        if any(one.of and one.orders == orders for one in self.questions):
            return f"I leave {named(self.refs(barred))} until {capital(keeper)} says otherwise."
        whose = "".join(f"The {one.name} is {one.owner}'s. " for one in barred if one.owner)
        why = (whose if keeper == self._speaker else "") or self.why_kept(barred) or whose
        why = why or f"I was asked to leave {named(self.refs(barred))}. "
        if any(not one.skill or (one.skill == "place" and not one.place) for one in orders):
            return f"{why.strip()} I leave {named(self.refs(barred))}."
        text = f"{why}{capital(keeper)}, shall I {deeds}?" if keeper else f"{why}Shall I {deeds}?"
        return self.ask(OpenQuestion("order", text, now_ns, orders, missing="yes", of=keeper))

    def why_kept(self, things: Iterable[SeenObject]) -> str:
        """Who said that these are to be left alone, as a sentence before a question; "" where nobody did."""
        return "".join(dict.fromkeys(f"{capital(why)} " for one in things if (why := why_left(one, self.reasons))))

    def close_proposals(self, asked: Sequence[OpenQuestion]) -> None:
        """Questions about a deed that were asked before, and that hold nothing, are no longer meant."""
        self._keep_asking(lambda one: one.awaits != "yes" or one.about != "order" or one.holds or one not in asked)

    def agree(self, asked: OpenQuestion, now_ns: int, speaker: str, agreed: Intent | None = None) -> str:
        """What follows a yes to this question; what was asked beside the work comes behind that."""
        self._close(asked)
        if asked.about != "order":
            return self._agreed(asked, now_ns, speaker)
        self._give_way(asked, self._about(asked))
        self._release(self.refs(self._kept_of(asked.orders)))
        is_beside = (bool(asked.of) or asked.is_more) and self.order is not None
        said = agreed or Intent("do")
        agreed = msgspec.structs.replace(said, orders=asked.orders, is_addition=said.is_addition or is_beside)
        return self.do(agreed, now_ns, speaker, is_answer=not is_beside)

    def recipe_wish(self, text: str, now_ns: int) -> str:
        """What to ask where a recipe is named and nobody has ordered it in so many words; "" where none is."""
        for recipe in self.household.recipes.values():
            is_named = re.search(recipe.words, plain(text)) and not recipe.is_refused(text)
            if self.cups and re.search(rf"\b(?:the|that|this|my|your|was a \w+) {recipe.words}", plain(text)):
                continue  # one that was made, and no other
            if is_named and not re.search(recipe.unless, plain(text)):
                bar = self._bar(recipe, self.heard[-1][0] if self.heard else "", self.kept)
                made = brewed(text, cups_said(text, bar, is_new=True), bar)
                what = made.said.removeprefix("Sure, ").rstrip(".")
                asks = (made.asks or f"Shall I make {what}?") if made.orders else ""
                return self._made(msgspec.structs.replace(made, asks=asks), now_ns)
        return ""

    def _why_not(self, intent: Intent) -> str:
        things = intent.orders[0].things if intent.orders else ()
        is_unseen = self._scene.is_looked and things and things[0].label != "*" and not self.ids_of(things)
        if intent.why == "where" and is_unseen:
            seen = [f"the {one.name}" for one in self._things()][:MOST_NAMED]
            return f"I see no {bare(things[0])}. I see {list_words(seen) or 'nothing'}."
        if intent.deed == "refuse":
            named_there = self._references_in(self.heard[-1][1]) if intent.why == "skill" and self.heard else ()
            return self.too_wide(named_there) or refusal(intent, self.around.world, self.around.skills)
        return question(intent, self._scene, self.around.world)

    def goes_on(self) -> str:
        if self.order is None or self._is_held():
            return ""
        return f" {following(self.belief())}" if self.is_stopped else f" I go on: {small(describe(self.order))}."

    def _follows(self) -> str:
        """What happens now that nothing forbids to move: an answer is waited for, or what is ordered is done."""
        held = [one for one in reversed(self.questions) if one.holds]
        asked = next(iter((*held, *self._asked())), None)
        if asked is not None and (asked.holds or self.order is None):
            return f"I wait for an answer: {asked.text.removeprefix('Stopped. ')}"
        return following(self.belief())

    def _see_stop(self, now_ns: int) -> str:
        """Whether the guard has stopped the robot; what follows once it no longer has."""
        if self.around.is_stopped:
            self.stopped_ns = self.stopped_ns or now_ns
        elif self.around.is_stopped is not None and to_s(now_ns - self.stopped_ns) > STOPS_WITHIN_S:
            was_stopped, self.stopped_ns = self.is_stopped, 0
            is_told = self.is_paused or any(
                one.holds and one.since_ns > now_ns - to_ns(ASKED_WITHIN_S) for one in self.questions
            )
            return self._follows() if was_stopped and not is_told else ""
        return ""

    # --- what answers a question

    def _answered(
        self, asked: OpenQuestion, intent: Intent, talk: Conversation, text: str, speaker: str, now_ns: int
    ) -> str | None:
        """What to say to an answer; None where it is none to this question, or is an order or a name by itself."""
        if (said := self._answered_beside(asked, intent, text, speaker, now_ns)) is not None:
            return said
        clauses = self._clauses(text)
        is_asking = any(clause.type == "question" for clause in clauses)  # "Ok, but what do you see?"
        is_done = intent.deed == "do" and not is_asking
        order = intent.orders[0] if is_done else Order("")
        is_named = any(noun.kind or noun.colour for clause in clauses for noun in clause.nouns)
        is_only = is_named and _ONLY.search(text) is not None
        is_yes = is_done and asked.awaits == "yes" and intent.orders == asked.orders[:1]
        is_yes = is_yes and not (is_named and (is_only or order.skill == "undo"))  # "Yes, the green one": of another
        is_yes = is_yes or (self._takes_it(asked, intent, clauses) and not is_asking)
        is_yes = is_yes or (asked.awaits == "yes" and not is_asking and self._says_so(asked, text))
        is_yes = is_yes or (
            is_done and asked.about == "may" and all(covers(asked.choices[0], one) for one in order.things)
        )
        is_no = self._says_no(asked, intent, clauses)
        said = " ".join(word for one in clauses for word in one.words)
        if asked.about == "instead" and speaker == self.by and _MY_WAY.search(said):
            self._close(asked)
            return self._declined(asked)
        if is_yes and asked.about == "order":
            self.talk = replace(talk, question=None, awaits="")
            return self.agree(asked, now_ns, speaker, intent if is_done else Intent("do"))
        if is_yes and asked.about == "still" and (again := self._objected(asked)):
            return self.ask(replace(asked, text=again, since_ns=now_ns))
        if asked.awaits == "yes" and asked.about != "order" and (is_yes or is_no):
            self._close(asked)
            kept = talk.protected if is_named else self.talk.protected  # "it" is what was asked about
            if asked.about != "may":
                self.talk = replace(talk, question=None, awaits="", protected=kept)
            return self._agreed(asked, now_ns, speaker) if is_yes else self._declined(asked)
        if asked.about == "place" and order.place and order.things == asked.orders[0].things:
            self._close(asked)
            self.habits = {**self.habits, order.things[0].label: order.place}
            self.later = tuple(one for one in self.later if one.things != order.things)
            return f"All right. {self._add((self._placed(order.things, order.place),), now_ns)}".strip()
        ids, about_it = self.ids_of(order.things), asked.orders[0] if asked.orders else Order("")
        is_same = order.place in ("", about_it.place) and order.skill in ("", about_it.skill)
        is_among = len(ids) == 1 and ids <= {one.id for one in asked.choices} and is_same
        if asked.about == "order" and asked.awaits == "thing" and is_among and self._each:
            self._close(asked)
            self.talk = replace(talk, question=None, awaits="")
            about = self.refs([one for one in self._things() if one.id in ids])
            return self.do(Intent("do", (asked.orders[0].about(about),)), now_ns, speaker, is_answer=True)
        if asked.choices[2:] and order.things and order.things[0].count == 2 and asked.awaits == "thing":
            return self.ask(replace(asked, since_ns=now_ns))  # "Both", of three
        if asked.about == "order" and asked.choices and (one := self._chosen_among(asked.choices, intent, clauses)):
            self.talk = replace(talk, question=None, awaits="")
            return self._choose(asked, one, now_ns)
        return None

    def _answered_beside(self, asked: OpenQuestion, intent: Intent, text: str, speaker: str, now_ns: int) -> str | None:
        """ "Yes, and then wipe the table": the answer, and what is said to the order behind it; None of other words."""
        is_same = intent.deed == "do" and intent.orders == asked.orders[: len(intent.orders)]
        is_same = is_same or self._takes_it(asked, intent, self._clauses(text))
        if is_same or (asked.awaits == "yes" and self._says_so(asked, text)):
            return None
        for found in _PARTS.finditer(text):
            head, rest = text[: found.start()], text[found.end() :]
            read, talk = self._understood(head, asked)
            is_no = asked.awaits == "yes" and self._says_no(asked, read, self._clauses(head))
            is_yes = asked.awaits == "yes" and (says_yes(head) or self._says_so(asked, head))
            rest = re.sub("^(?:and |but )+" if is_no else "^and ", "", rest, flags=re.I)
            is_more = self._is_order(rest) and not _HEDGES.match(rest)
            if not is_more or not (is_yes or is_no or asked.awaits == "thing"):
                continue
            is_read = read.deed == "do" or is_yes or is_no
            said = self._answered(asked, read, talk, head, speaker, now_ns) if is_read else None
            if said is not None:
                about = [one for one in self._things() if one.id in self.ids_of(self._about(asked))]
                rest = bound_out(rest, about, ()) if len(about) == 1 else rest
                return _joined([said, self._heard(f"And {rest}", speaker, now_ns)])
        return None

    @staticmethod
    def _takes_it(asked: OpenQuestion, intent: Intent, clauses: Sequence[Clause]) -> bool:
        """ "He's right, take it": a yes to what takes it somewhere, with no more than that."""
        nouns = [noun for one in clauses for noun in one.nouns if noun.kind or noun.colour]
        is_more = nouns or any(one.targets or one.particles or one.adverbs for one in clauses)
        is_moved = asked.awaits == "yes" and any(one.skill in _MOVES for one in asked.orders[:1])
        return is_moved and not is_more and {one.skill for one in intent.orders} in ({"pick"}, {"take"})

    def _says_no(self, asked: OpenQuestion, intent: Intent, clauses: Sequence[Clause]) -> bool:
        """ "No", "don't pour it away", "I still need it", "not that": what was asked about, by no name, is refused."""
        if intent.why in ("declined", "cancelled") or (intent.what == "no" and intent.deed == "nothing"):
            return True
        bare = [one for one in clauses if not any(n.kind or n.colour for n in (*one.nouns, *one.nots))]
        deeds = [one for one in clauses if one.type in ("order", "fragment")]
        is_off = bool(deeds) and all(
            one in bare and (one.is_negated or one.nots or (one.verb == "leave" and not one.left)) for one in deeds
        )
        is_off = is_off or any(one.type == "protect" and "mind" not in one.words for one in bare)
        return is_off and asked.about in ("deed", "still", "may")

    def empties(self) -> bool:
        """Whether the words heard last pour something away."""
        return bool(self.heard) and _EMPTIES.search(self.heard[-1][1]) is not None

    def _says_so(self, asked: OpenQuestion, text: str) -> bool:
        """ "Yes, that one too", "it can go", "in the bin with it": the deed that was asked about, in other words."""
        parts, ids = parts_heard(self, text), self.ids_of(asked.choices or self._about(asked))
        skills = {"", *(one.skill for one in asked.orders)}
        places = {"", *(one.place for one in asked.orders)}
        if asked.about == "deed" and self.empties():  # "Yes, you can pour it away": it is asked so
            skills, places = {*skills, "rinse"}, {*places, "sink"}
        clauses = [(one.type, one.words or (*one.word.split(),)) for one in self._clauses(text)]
        given = {words for kind, words in clauses if kind == "release"}  # "I don't want it any more."
        beside = {*given, *(words for kind, words in clauses if kind == "cancel" and words[-1:] == ("back",))}
        is_yes = bool(given) and (bool(asked.of) or asked.about in ("deed", "may", "instead"))
        is_yes = is_yes or "yes" in (parts[0].act, parts[-1].act)
        parts = [one for one in parts if tuple(one.words.split()) not in beside and one.words not in ("oh", "well")]
        is_it = all(
            (one.act in ("yes", "deed", "on", "social", "name") or _THAT_TOO.fullmatch(one.words))
            and not (one.is_named and not {thing.id for thing in one.things} <= ids)
            and one.skill in skills and one.place in places and not (one.unknown or one.apart)
            for one in parts
        )  # fmt: skip
        is_deed = any(one.act == "deed" for one in parts) and bool(skills & {"place", "rinse", "hand_over"})
        return is_it and bool(ids) and (is_yes or is_deed) and not any(_HEDGES.search(one.words) for one in parts)

    @staticmethod
    def _about(asked: OpenQuestion | Intent) -> tuple[Reference, ...]:
        return tuple(one for order in asked.orders for one in order.things)

    def _agreed(self, asked: OpenQuestion, now_ns: int, speaker: str) -> str:
        match asked.about:
            case "still":
                return f"All right.{self.goes_on()}"
            case "may":
                return ""
            case "instead" if asked.is_turn:
                return self.take_turns(asked.orders, now_ns, self.by)
            case "instead":
                return self.do(Intent("do", asked.orders, is_correction=True), now_ns, speaker, is_answer=True)
        self._release(self.refs(self._kept_of(asked.orders)))
        return f"All right. {self._add(asked.orders, now_ns)}".strip()

    def _declined(self, asked: OpenQuestion) -> str:
        if asked.about == "instead":
            return f"All right.{self.goes_on()}"
        self.leave(asked.choices or self._about(asked))
        left = named(asked.choices) if asked.choices else "it"
        return _joined([f"All right, I leave {left}.", self._next_if_idle()])

    def _chosen_among(
        self, choices: Sequence[Reference], intent: Intent, clauses: Sequence[Clause]
    ) -> Reference | None:
        """One of them by what it is not, by its place or by a finger; names and "both" are read as orders."""
        if any(clause.type == "order" for clause in clauses):
            return None
        barred = {noun.colour for clause in clauses for noun in clause.nots}
        places = {noun.place for clause in clauses for _, noun in clause.targets if noun is not None and noun.place}
        pointed = {one.points_at for one in self._scene.people if one.points_at}
        if barred:  # "Not the red one."
            chosen = [one for one in choices if one.colour not in barred]
        elif places:  # "The one on the table."
            chosen = [one for one in choices if place_of(one.id, self._scene) in places]
        else:
            chosen = [one for one in choices if intent.unnamed and one.id in pointed]
        return chosen[0] if len(chosen) == 1 else None

    def _give_way(self, asked: OpenQuestion, things: Sequence[Reference]) -> None:
        """What was under way when this was asked beside a stop gives way to what is answered, thing by thing."""
        if self._each and asked.spares and self.ids_of(asked.spares).isdisjoint(self.ids_of(things)):
            self.leave(asked.spares)

    def _choose(self, asked: OpenQuestion, one: Reference, now_ns: int) -> str:
        self._close(asked)
        self._give_way(asked, (one,))
        return self.do(Intent("do", (asked.orders[0].about((one,)),)), now_ns, self.by)

    # --- what is left alone

    def _nothing(self, intent: Intent, now_ns: int, *, is_stopped: bool = False) -> str:
        """No order; but something may be protected from now on, or free again, or the order taken back."""
        if intent.why in ("cancelled", "declined"):
            return self._cancelled(intent, now_ns)
        if intent.protected or intent.released or intent.unnamed:
            return self._spare(intent, now_ns, is_stopped=is_stopped)
        things = self._under_way(intent.told_of)
        if things and intent.why in ("told", "") and not self.open("leave", "still"):
            if _NEEDLESS.search(self.heard[-1][1] if self.heard else ""):
                self.leave(self.refs(things))
                return _joined([f"All right, I leave {named(self.refs(things))}.", self._next_if_idle()])
            return self.ask_whether(self.refs(things), now_ns)
        return remark(intent)

    def _cancelled(self, intent: Intent, now_ns: int) -> str:
        """ "Never mind": the question that is open, or else what is being done."""
        if held := self.open("leave", "still"):
            if again := self._objected(held):
                return self.ask(replace(held, text=again, since_ns=now_ns))
            if intent.why == "declined":
                return self.ask_which(held.choices, now_ns)  # neither a yes nor a no says which
            self._close(held)
            return "All right."
        helped = self.questions[-1] if self.questions and self.questions[-1].about == "help" else None
        if helped is not None and to_s(now_ns - helped.since_ns) < DOUBTS_WITHIN_S:
            self._close(helped)  # "I'll do it, then."
            return f"All right.{self.goes_on()}"
        if asked := self.open("order", "instead", "deed", "place"):
            if intent.what == "yes":  # "Off you go" to "Which one?" says that it is meant, and not which
                return self.ask(replace(asked, since_ns=now_ns))
            self._close(asked)
            return f"All right.{self.goes_on()}" if asked.holds else "All right, I leave it."
        if self.order is not None and (down := self._down()):
            self.later = ()
            self._begin(down, now_ns)
            return f"All right. {promise(down)}"
        self._end()
        return "All right, I leave it."

    def _objected(self, held: OpenQuestion) -> str:
        """What to ask where somebody else than who objected passes over it; "" where that was told already."""
        ids = self.ids_of(held.choices)
        why = next((one for one in reversed(self.reasons) if one.ids & ids), None)
        who = self.heard[-1][0] if self.heard else ""
        if why is None or why.speaker == who or "“" in held.text:
            return ""
        return f"{why.speaker or 'Somebody'} said: “{why.text}” {held.text}"

    def _end(self) -> None:
        """Nothing is carried out any more."""
        self.cups = {ident: whom for ident, whom in self.cups.items() if ident in self._handed()}
        self.is_over, self.later = True, ()
        self._keep_asking(lambda one: one.about != "may")

    def _spare(self, intent: Intent, now_ns: int, *, is_stopped: bool = False, is_at_it: bool = True) -> str:
        """Leave alone what is meant, and ask where nobody can tell what that is."""
        order, last = self.order, self.done[-1] if self.done else None
        target = self.target() if is_at_it else None
        is_heard_by_vlm = target is not None and not (
            self._each or order is None or is_stopped or self.is_stopped or self._is_held()
        )
        found = self._meant(intent, target, is_heard_by_vlm=is_heard_by_vlm)
        if found is None:
            self._end()
            return "All right, I leave it."  # wiping, and not a thing
        left, open_, is_left_by_vlm = found
        is_of_last = order is None and bool(intent.unnamed) and last is not None
        if is_of_last and last is not None and any(covers(two, one) for one in last.moved for two in (*left, *open_)):
            if lost := self.lost((Order("put_back", last.moved),)):
                return self._help(lost)
            text = f"{things_words(last.moved, last.order)} Shall I take that back?"
            return self.ask(OpenQuestion("order", text, now_ns, (Order("undo"),), missing="yes"))
        if order is None and intent.what == "no":
            return "All right."
        held = self.open("leave", "still")
        if held and not any(covers(one, two) or covers(two, one) for one in held.choices for two in left):
            open_ = list(held.choices)
        kept = tuple(one for one in self.talk.protected if one not in intent.protected)
        self.talk = replace(self.talk, protected=kept)
        self.leave(left, intent.released, is_left_by_vlm=is_left_by_vlm)
        names = list_words(list(dict.fromkeys(map(bare, left))), "and the")
        told = [f"All right, I leave the {names}."] if left else []
        if open_:
            return _joined([*told, self.ask_which(open_, now_ns)])
        if held:
            self._close(held)
        return _joined([*(told or ([] if is_left_by_vlm else ["All right."])), self._next_if_idle()])

    def _meant(
        self, intent: Intent, target: SeenObject | None, *, is_heard_by_vlm: bool
    ) -> tuple[list[Reference], list[Reference], bool] | None:
        """What is to be left alone; what nobody can tell apart; whether the VLM has left it. None: the work itself."""
        order, held = self.order, self.open("leave", "still")
        vague = [one for one in intent.protected if is_vague(one)]
        left = [self._as_seen(one) for one in intent.protected if not is_vague(one)]
        open_: list[Reference] = []
        is_left_by_vlm = False
        for what in spared_by(intent):
            found = referents(what, None if self._each else order, self._scene, target)
            if order is not None and not order.things and found.by == "words":
                return None
            if found.by == "words":  # those of them that were asked about, where one was; else that are worked on
                choices = held.choices if held else self._ordered() if self._each and not found.is_clear else ()
                among = tuple(one for one in found.things if any(fits(one, ref, self._scene) for ref in choices))
                found = replace(found, things=among or found.things)
            if found.by == "action" and is_heard_by_vlm:
                is_left_by_vlm = True  # who moves it has left it already, and says so
            elif found.is_clear or 0 < len(found.things) <= what.count:
                left += self.refs(found.things)
            elif found.things:
                open_ += self.refs(found.things)
            elif what.label:
                left += [one for one in vague if one.label == what.label]  # not seen yet
            else:
                open_ += order.things if order is not None else (Reference(label="*"),)
        return list(dict.fromkeys(left)), open_, is_left_by_vlm

    def _as_seen(self, one: Reference) -> Reference:
        """ "The red one", as the only red thing that is seen."""
        is_open = (one.label == "*" and bool(one.colour)) or (self._each and one.count != ALL)
        fitting = {(thing.label, thing.colour) for thing in self._fitting(one)} if is_open else set()
        label, colour = fitting.pop() if len(fitting) == 1 else (one.label, one.colour)
        return Reference(label=label, colour=colour, count=one.count, source=one.source)

    def leave(
        self, left: Sequence[Reference], released: Sequence[Reference] = (), *, is_left_by_vlm: bool = False
    ) -> None:
        """These are protected from now on, and what is carried out is so without them."""
        self._release(released)
        self.talk = replace(self.talk, protected=tuple(dict.fromkeys((*self.talk.protected, *left))))
        self._drop(left, released, is_left_by_vlm=is_left_by_vlm)
        for asked in self.questions:
            if asked.about in ("order", "deed", "place", "may", "help"):
                self._without(asked, left)

    def _drop(
        self, left: Sequence[Reference], released: Sequence[Reference] = (), *, is_left_by_vlm: bool = False
    ) -> None:
        """Carry out what is ordered without these."""
        order = self.order
        rest = [one for one in self.later if not self._is_about(one, left)]
        self.later = tuple(rest if self._each else [_excluding(one, left, released) for one in rest])
        if order is None or order.skill == "put_back":
            return
        changed = order if self._each else _excluding(order, left, released)
        self.revision += changed != order
        self.current = changed
        if self._each and self._is_about(order, left):
            self.is_over = True
            if held := self._held():  # what is in the hand goes back first
                self.later = (self._placed(held[:1], self._home()), *self.later)
        elif left and not self._each and not is_left_by_vlm and self._is_all_left(changed):
            if held_by_robot(self._scene) and (down := self._down()):
                following, self.later = self.later, ()
                self._begin(down, self.ordered_ns)
                self.later = following
            elif self.around.target is None:
                self.is_over = True

    def _called_off(self, text: str, speaker: str, now_ns: int) -> str | None:
        """ "Never mind the wiping, I will do that": what of that is ordered, or was asked about, is not done."""
        parser = parser_of(self.around.world)

        def skills_off(part: str) -> set[str]:
            verbs = {parser.deed_off(one) for one in parser.clauses(part)} - {""}
            return verbs | ({"rinse", "wipe"} if "clean" in verbs else set())

        first, about, then = self._parts_apart(text, lambda part: bool(skills_off(part)))
        off = [one for one in parser.clauses(about) if self._each and parser.deed_off(one)]
        skills, ids = skills_off(about), {ident for one in off for ident in self._named_ids(" ".join(one.words))}
        target = self.target()
        if target is not None and not ids and any(noun.pronoun == "it" for one in off for noun in one.nouns):
            ids = {target.id}
        asked = [one for one in self.questions if one.awaits == "yes" and one.orders[0].skill in skills]
        gone = [
            one for one in (*self.orders, *(order for each in asked for order in each.orders))
            if off and one.skill in skills and (not ids or ids & self.ids_of(one.things))
        ]  # fmt: skip
        if not gone or (ids and any(one.is_negated or one.type == "protect" for one in off)):
            return None  # what is named so is to be left as a whole
        self.questions = tuple(one for one in self.questions if one not in asked)
        things = [one.things for one in gone]
        after = [one for one in self.later if one.things in things and one not in gone and not self._is_of_washing(one)]
        if self.order in gone:
            self._drop([ref for one in gone for ref in one.things])
        else:  # what is done now stays: "Open it." "Close it." "No, leave it open."
            self.later = tuple(one for one in self.later if one.things not in things)
        self.later = (*self.later, *(one for one in after if one.things[0].label != self.household.wipes_with))
        said = [f"All right, I do not {list_words(in_short(list(dict.fromkeys(gone))), 'or')}."]
        said += [self._heard(one, speaker, now_ns) for one in (first, then) if one]
        return _joined([*said, self._next_if_idle()])

    def _drop_all(self) -> None:
        """All that was ordered is taken back; what is in the hand goes back first."""
        held = self._held() if self.order is not None else ()
        self._end()
        if self._each and held:
            self.later = (self._placed(held[:1], self._home()),)

    def _is_about(self, order: Order, left: Sequence[Reference]) -> bool:
        """Whether all that an order is about is among these."""

        def is_among(ref: Reference) -> bool:
            thing = self._thing(Order("", (ref,)))
            if thing is not None:
                return any(fits(thing, one, self._scene) for one in left)
            return any(covers(one, ref) and one.id in ("", ref.id) and not one.source for one in left)

        return bool(order.things) and all(is_among(ref) for ref in order.things)

    def _without(self, asked: OpenQuestion, left: Sequence[Reference]) -> None:
        """A question whose things are left alone is answered; one of two that is leaves the other."""
        choices = asked.choices or tuple(one for order in asked.orders for one in order.things if one.colour or one.id)
        still = tuple(one for one in choices if not self._is_about(Order("", (one,)), left))
        if len(still) == len(choices):
            return
        self._close(asked)
        if len(still) == 1 and asked.choices:  # "I am drinking from the red one."
            self._choose(asked, still[0], asked.since_ns)
        elif still and asked.choices:
            self.questions = (*self.questions, replace(asked, choices=still))

    def _release(self, free: Sequence[Reference]) -> None:
        self.talk = replace(self.talk, protected=self._but(free, self.talk.protected))

    def _but(self, free: Sequence[Reference], protected: Sequence[Reference]) -> tuple[Reference, ...]:
        """What is still protected once these are free: of "the cups", where one of them is, the others."""
        kept, ids = [one for one in protected if not any(covers(ref, one) for ref in free)], self.ids_of(free)
        left = [(one, self._fitting(one)) for one in kept]
        split = [
            self.refs([two for two in seen if two.id not in ids]) if any(two.id in ids for two in seen) else (one,)
            for one, seen in left
        ]
        return tuple(dict.fromkeys(one for refs in split for one in refs))

    def _is_all_left(self, order: Order) -> bool:
        """Whether nothing that is seen is left to do of an order."""
        everything = Order(order.skill, order.things, (), order.place, order.relation)
        was_meant = [one for one in self._scene.things if is_still_meant(one, everything, self._scene)]
        return bool(was_meant) and not any(is_still_meant(one, order, self._scene) for one in was_meant)

    def _under_way(self, told_of: Sequence[Reference]) -> tuple[SeenObject, ...]:
        """What is worked on, or still to be, of what something was said."""
        orders = [one for one in self.orders if one.things] if self._each else [self.order]
        found = [one for each in orders for one in named_under_way(told_of, each, self._scene, self.target())]
        return tuple(dict.fromkeys(found))

    # --- stopped

    def _stopped(self, text: str, speaker: str, now_ns: int) -> str:
        """The reflex has stopped the robot, and the VLM says so; what else was said counts after a "go on"."""
        target, under_way, asked = self.target(), self.order, next(iter(self._asked()), None)
        talk = self._talk_about(asked)
        is_new = under_way is not None and not (talk.orders and self._is_part(under_way, talk.orders[-1]))
        if under_way is not None and is_new and (self._each or under_way.skill != "put_back"):
            talk = replace(talk, orders=(under_way,))
        around = replace(self.around, target=target)
        self.close_proposals(self.questions)
        asked_before = self.questions
        rest = read_beside_stop(text, around, talk, parser_of(self.around.world))
        if self.order is not None and held_by_robot(self._scene) and _DOWN.search(text) and rest.reading != "do":
            return self._cancelled(Intent("nothing", why="cancelled"), now_ns)
        if rest.reading == "nothing":
            return ""
        if (said := self._plain_beside_stop(rest, text, speaker, now_ns)) is not None:
            return said
        if self._each and rest.words:
            clauses = self._clauses(rest.words)
            told = self._brew(rest.words, clauses, self._spared(clauses, rest.intent), speaker, now_ns)
            told = told or self._run_household(rest.words, clauses, rest.intent, now_ns)
            if told is not None:
                return told
        self.talk = replace(rest.talk, question=None, awaits="")
        match rest.reading:
            case "answer":
                return self.answered(rest.words, speaker)
            case "spare":
                return self._nothing(rest.intent, now_ns, is_stopped=True)
            case "do":
                said, is_asked = self._do_beside_stop(rest.intent, target, now_ns, speaker)
                if not is_asked:
                    return said
            case _:
                before = self.orders, self.talk.protected
                said = "" if rest.is_name else propose_beside_stop(self, rest.words, speaker, now_ns, rest.intent)
                if said and (self.orders, self.talk.protected) != before:
                    return f"Stopped. {said}"
                is_kept = any(one.is_owned for one in parts_heard(self, rest.words))
                said = f"Stopped. {said}" if said else "Stopped." if is_kept else why_unread(rest, around)
        if under_way is None:
            return said
        things = self.refs((target,)) if target is not None else under_way.things
        things = self.refs(self._under_way(self._about(rest.intent) if rest.is_name else ())) or things
        if new := next((one for one in self._asked() if one not in asked_before), None):
            self._close(new)
            return self.ask(replace(new, text=said, since_ns=now_ns, is_at_stop=True, is_held=True, spares=things))
        return _joined([said, self.ask_whether(things, now_ns, at_stop=True)])

    def _forbidden_in(self, text: str) -> tuple[Reference, ...]:
        """What is to be left by words that stopped nothing: "That one is hot, so don't touch it"."""
        parts = parts_heard(self, text)
        if any(one.act == "deed" or (one.act == "spare" and (one.is_open or not one.things)) for one in parts):
            return ()
        return self.refs(dict.fromkeys(thing for one in parts if one.act == "spare" for thing in one.things).keys())

    def _plain_beside_stop(self, rest: BesideStop, text: str, speaker: str, now_ns: int) -> str | None:
        """What is said to another turn, to a change of mind and to "careful"; None of other words."""
        if self.order is None and (left := self._forbidden_in(text)):
            self.leave(left)
            return f"Stopped. All right, I leave {named(left)}."
        if (said := in_turn(self, rest.words, speaker, now_ns)) is not None:
            return said
        if (said := self._called_off(rest.words, speaker, now_ns)) is not None:
            return said
        if self.order is None and self._asked() and rest.reading in ("unread", "spare") and rest.words:
            said = self._heard(rest.words, speaker, now_ns)  # nothing was under way: it is of what was asked
            return said and f"Stopped. {said}"
        if rest.reading == "unread" and self.order is not None and _REPENTS.search(text):
            return self._cancelled(Intent("nothing", why="cancelled"), now_ns)
        if rest.reading == "unread" and asks_for_care(text):
            return following(self.belief()) if self.order is not None else ""
        return None

    def _is_part(self, order: Order, whole: Order) -> bool:
        """Whether it is one of the deeds that an order for several things comes to."""
        is_same = (order.skill, order.place) == (whole.skill, whole.place)
        return self._each and is_same and self.ids_of(order.things) <= self.ids_of(whole.things)

    def _do_beside_stop(self, intent: Intent, target: SeenObject | None, now_ns: int, speaker: str) -> tuple[str, bool]:
        """What is said to an order in place of what was under way or behind it; whether that is a question."""
        asked = self.questions
        meant = self.ids_of(self._about(intent))
        kinds = {one.label for one in self._things() if one.id in meant}
        is_of_another = target is not None and target.label not in kinds
        is_of_another = is_of_another and any(one.label in kinds for one in self._ordered())
        if self._each and target is not None and not (intent.is_addition or is_of_another or target.id in meant):
            self.leave(self.refs((target,)))
        said = self.do(intent, now_ns, speaker)
        if any(one not in asked for one in self.questions):
            return f"Stopped. {said}", bool(self._asked())
        return said, False

    # --- what is done

    def do(self, intent: Intent, now_ns: int, speaker: str, *, is_answer: bool = False) -> str:
        """Take on what is ordered, or ask what is missing."""
        skill, other = intent.orders[0].skill, self.by if self.by != speaker else ""
        if not skill:
            things = [name_of_reference(one) for one in intent.orders[0].things]
            wide = self.too_wide(intent.orders[0].things)
            return wide or f"What shall I do with {list_words(things) or 'that'}?"
        if skill == "stop":
            self._end()
            return "All right, I stop that."
        if skill == "wait":
            self.is_paused = True
            return "I wait until you tell me."
        if skill == "undo":
            return self._undo(now_ns, is_back=True)
        if not is_answer and (wanted := self._wanted(intent)):
            self.leave(wanted)
            order = Order("hand_over", wanted)
            text = f"All right, I leave {named(wanted)}. Shall I {small(describe(order))}?"
            return self.ask(OpenQuestion("order", text, now_ns, (order,), "yes"))
        if intent.why == "instead":
            self._drop_all()
        is_new = not is_answer and not self._asked()
        if is_new and not intent.is_addition and (instead := self._contradiction(intent, now_ns, speaker)):
            return self.ask(instead)
        named_so = tuple(self._brought_back(self._pointed_out(order)) for order in _apart(intent.orders))
        orders = tuple(map(self._sparing, named_so))
        if [one.things for one in orders] != [one.things for one in named_so] and not self.lift(orders):
            return self.do_but_kept(orders, now_ns, speaker)
        if not self._each and (binned := self.lost(orders)):
            out, ids = self.refs(binned), {one.id for one in binned}
            free = [one.about(tuple(x for x in one.things if self.ids_of((x,)) - ids)) for one in orders]
            rest = [_excluding(x, out, ()) if self.lost((one,)) else one for one, x in zip(orders, free, strict=True)]
            rest = [x for x in rest if x in orders or any(is_still_meant(y, x, self._scene) for y in self._things())]
            done = self.do(msgspec.structs.replace(intent, orders=tuple(rest)), now_ns, speaker) if rest else ""
            return _joined([done, self._help(binned)])
        if text := self._nothing_to_put_back(orders):
            return text
        if self._each:
            ordered = {one for order in orders for one in self.ids_of(order.things)}
            self._keep_asking(
                lambda one: one.about != "still" or not self.ids_of(one.choices) <= ordered or bool(self._objected(one))
            )
            said = self._do_each(msgspec.structs.replace(intent, orders=orders), now_ns, speaker)
            self._keep_asking(lambda one: one.about != "still" or any(two in self.orders for two in one.orders))
            behind = intent.why == "instead" and not self._asked() and self.later
            return f"{said} Then I will {list_words(in_short(behind))}." if behind else said
        if intent.is_correction:
            orders = tuple(self._among_ordered(order) for order in orders)
        if asked := self._ambiguous(orders):
            is_held = intent.is_correction and self.order is not None
            text, choices = asked
            return self.ask(OpenQuestion("order", text, now_ns, orders[:1], "thing", choices, is_held=is_held))
        if lost := next((one for one in orders if one.skill == "place" and not one.place), None):
            text = f"Where shall I put {named(lost.things)}?"
            return self.ask(OpenQuestion("order", text, now_ns, (lost,), missing="place"))
        return self._do_whole(
            msgspec.structs.replace(intent, orders=orders), other, now_ns, speaker, is_answer=is_answer
        )

    def _do_whole(self, intent: Intent, other: str, now_ns: int, speaker: str, *, is_answer: bool) -> str:
        """Carry whole orders out in place of what is under way, or behind it; a question of something else stays."""
        orders = intent.orders
        asked = None if is_answer else next(iter(self._asked()), None)
        is_apart = asked is not None and self._is_apart(asked, orders)
        is_others = bool(other) and not intent.is_correction
        is_more = (intent.is_addition or is_others) and not is_answer and (asked is None or is_apart)
        if self.order is not None and (is_more or any(one.is_more for one in self.questions)):
            ways = [(one.skill, one.things, one.place) for one in self.orders]
            new = tuple(one for one in orders if (one.skill, one.things, one.place) not in ways)
            self.later = (*self.later, *new)[: MOST_ORDERS - 1]
            said = f"All right. Then {' Then '.join(promise(order) for order in orders)}"
            if is_more and asked is not None:
                return f"{said} {self.ask(replace(asked, since_ns=now_ns))}"
            self.questions = ()
            return said
        before, self.questions = self.order, ()
        if before is not None and _is_same(orders, (before,)):
            self.current, self.later, self.revision, self.is_paused = orders[0], (), self.revision + 1, False
            left = list_words([bare(one) for one in orders[0].excluding], "and the")
            return f"All right, I leave the {left}." if left else "All right."
        self.later, self.by = orders[1:], speaker
        self._begin(orders[0], now_ns)
        self.unseen_ns = 0 if self.ids_of(orders[0].things) else now_ns
        is_dropped = before is not None and not intent.is_correction and orders[0].things != before.things
        dropped = f" I no longer {small(describe(before))}." if before is not None and is_dropped else ""
        said = f"Sure. {' Then '.join(promise(order) for order in orders)}{dropped}"
        if intent.is_addition and asked is not None and is_apart:
            return f"{said} {self.ask(replace(asked, since_ns=now_ns, is_more=True))}"
        return said

    @staticmethod
    def _is_apart(asked: OpenQuestion, orders: Sequence[Order]) -> bool:
        """Whether what was asked is about other things than these orders, so that it stays open beside them."""
        return not any(
            covers(two, one) or covers(one, two)
            for order in orders for one in order.things for about in asked.orders for two in about.things
        )  # fmt: skip

    def pieces(self) -> list[Order]:
        """All that is ordered and not done, thing by thing, with what is in the hand first."""
        if self._each:
            return list(self.orders)
        held, found = held_by_robot(self._scene), []
        for order in self.orders:
            things = [one for one in self._things() if is_still_meant(one, order, self._scene)]
            things = sorted(things, key=lambda one: one.id not in held)
            whole = order.skill != "place" or not things
            found += [order] if whole else [order.about(self.refs((one,))) for one in things]
        return found

    def whole_without(self, apart: Sequence[Order]) -> tuple[Order, ...]:
        """Whole orders, which take in what is not seen yet, without what is named apart; none thing by thing."""
        if self._each:
            return ()
        ids = {one for order in apart for one in self.ids_of(order.things)}
        left = [
            (order, tuple(one for one in order.things if one.count != 1 or not self.ids_of((one,)) <= ids))
            for order in self.orders
        ]
        return tuple(order.about(things) for order, things in left if things or not order.things)

    def take_turns(self, orders: Sequence[Order], now_ns: int, speaker: str) -> str:
        """Do this in this turn; asked first where somebody else has ordered it in another."""
        if self.by and speaker and speaker != self.by:
            steps = list_words([small(describe(one)) for one in orders], "and then")
            text = f"{self.by} said it in another order. Shall I {steps}?"
            return self.ask(OpenQuestion("instead", text, now_ns, tuple(orders), is_turn=True, to=(self.by, speaker)))
        held, is_same = self._held(), self.order == orders[0]
        if not is_same and self._each:
            in_hand = {one.id for one in held} - self.ids_of(orders[0].things)
            self.is_over = True
            back = (self._placed(held[:1], self.origin or "table"),) if in_hand else ()
            self.later = (*back, *orders)
            self._next_if_idle()
        elif not is_same:
            self._begin(orders[0], now_ns)
        if is_same or not self._each:
            self.later = tuple(orders[1:])
        return "All right." if self.is_stopped else f"All right. {following(self.belief())}"

    def _begin(self, order: Order, now_ns: int) -> None:
        """Carry this out from now on."""
        self.current, self.number, self.revision = order, self.number + 1, 0
        self.is_over = self.is_paused = False
        self.ordered_ns = now_ns
        self.was_there = frozenset(one.id for one in self._scene.things if one.id and self._is_at(one, order))
        thing = self._thing(order)
        self.origin = (self._place_of(thing) if thing is not None else "") or self.origin

    def _contradiction(self, intent: Intent, now_ns: int, speaker: str) -> OpenQuestion | None:
        """What to ask where the order contradicts one of a moment ago and does not correct it, or one of another."""
        new = intent.orders[0]
        is_soon = not self._each and self.ordered_ns > 0 and to_s(now_ns - self.ordered_ns) < CONTRADICTS_WITHIN_S
        for order in self.orders:
            who = self.causes.get(order, (self.by, ""))[0]
            other = who if who != speaker else ""
            is_apart = new.place if new.skill == "place" else other and new.skill == "hand_over"
            is_apart = is_apart and order.skill == "place" and order.place != new.place
            is_same = any(covers(one, two) or covers(two, one) for one in order.things for two in new.things)
            if not (is_apart and is_same and (other or (is_soon and not intent.is_correction))):
                continue
            if other and self._is_of_washing(order):
                return None
            text = f"You said the {order.place} a moment ago. Shall I use the {new.place} instead?"
            text = f"{other} said the {order.place}. Shall I {small(describe(new))} instead?" if other else text
            about = self._about(intent)
            of = other if other in {self.owners.get(one, "") for one in self.ids_of(about)} else ""
            return OpenQuestion("instead", text, now_ns, intent.orders, choices=about, of=of, to=(who, speaker))
        return None

    def _is_of_washing(self, order: Order) -> bool:
        """Whether it goes there only as all that is washed does, and nobody has said so."""
        washed = [one.things for one in (*self.orders, *(done.order for done in self.done)) if one.skill == "rinse"]
        return order.things in washed and not any(order.place in text.lower() for _, text in self.heard)

    def _among_ordered(self, order: Order) -> Order:
        """ "Only the cup", of a cup and a ball: that one of what is ordered."""
        things: list[Reference] = []
        for one in order.things:
            meant = [
                thing for thing in self._fitting(one)
                if self.order is not None and is_still_meant(thing, self.order, self._scene)
            ]  # fmt: skip
            is_open = is_vague(one) and not one.is_any and one.count == 1
            things += self.refs(meant) if is_open and len(meant) == 1 else [one]
        return order.about(tuple(things))

    def _brought_back(self, order: Order) -> Order:
        """ "Put it back", "get it out again", of what is in no hand: to where it stood before it was brought away."""
        said = self.heard[-1][1] if self.heard else ""
        is_out = _OUT_AGAIN.search(said) is not None and (order.skill != "hand_over" or not _TO_ME.search(said))
        is_back = order.skill == "put_back" or (order.skill in ("pick", "take", "hand_over") and is_out)
        order = self._of_what_goes_back(order) if order.skill == "put_back" else order
        ids = self.ids_of(order.things)
        moved = [one for one in reversed(self.deeds) if one.skill == "place" and one.id in ids]
        if not is_back or {one.id for one in moved} != ids or not ids or ids & held_by_robot(self._scene):
            return order
        things = self.refs([one for one in self._things() if one.id in ids])
        home = moved[0].origin if moved[0].origin not in self._machines() else ""
        return self._placed(things, home or ("table" if "table" in self.around.world.places else ""))

    def _of_what_goes_back(self, order: Order) -> Order:
        """Of several that "the cup" fits: what is in the hand, or is to be moved, or was moved last."""
        one, target = order.things[0] if len(order.things) == 1 else Reference(), self.target()
        seen = {thing.id: thing for thing in self._fitting(one)}
        moved = [deed.id for deed in reversed(self.deeds) if deed.skill == "place"]
        ways = (*held_by_robot(self._scene), target.id if target is not None else "", *moved)
        ids = [ident for ident in dict.fromkeys(ways) if ident in seen][: None if one.count == ALL else one.count]
        return order.about(self.refs([seen[ident] for ident in ids])) if ids and len(ids) < len(seen) else order

    def _nothing_to_put_back(self, orders: Sequence[Order]) -> str:
        """What to say to putting back what is neither in the hand nor was moved."""
        things = [
            one for order in orders if order.skill == "put_back" for ref in order.things for one in self._fitting(ref)
        ]
        held = held_by_robot(self._scene)
        if len(orders) != 1 or not things or any(one.id in held for one in things):
            return ""
        refs = self.refs(things)
        is_meant = any(self._is_about(one, refs) for one in self.orders)
        if is_meant:
            self._drop(refs)
            return _joined([f"All right, I leave {named(refs)}.", self._next_if_idle()])
        return f"I do not hold {named(refs)}. {where_are(things, self._scene)}"

    def _pointed_out(self, order: Order) -> Order:
        """The order about the things that somebody points at, where its words leave it open which are meant."""
        things: list[Reference] = []
        for one in order.things:
            is_open = is_vague(one) and not one.is_any
            found = referents(Unnamed(label=one.label), None, self._scene) if is_open else Referents()
            alike = self._fitting(one) if is_open and one.count == 1 else []
            here = self._at_hand(alike, order)
            told = found.things if found.by == "pointing" else here if len(here) == 1 < len(alike) else ()
            things += self.refs(told) or [one]
        return order.about(tuple(things))

    def _at_hand(self, things: list[SeenObject], order: Order) -> list[SeenObject]:
        """Those that were not thrown away, where any is left: nobody means the others by "the cup"."""
        waste = {"bin", *self.around.world.waste} - {order.place}
        is_out = order.skill == "put_back" or _OUT_AGAIN.search(self.heard[-1][1] if self.heard else "") is not None
        return things if is_out else [one for one in things if self._place_of(one) not in waste] or things

    def _shown(self, intent: Intent) -> Intent | None:
        """The order with what somebody points at, or one that nobody keeps, where it lacks only that; else None."""
        named = [ref for order in intent.orders for ref in order.things]
        if self._each and intent.why == "protected" and all(self.ids_of((ref,)) - self.kept for ref in named):
            return msgspec.structs.replace(intent, deed="do")
        is_open = any(one.things or (one.skill == "place" and not one.place) for one in intent.orders)
        if not intent.orders or is_open or len(intent.unnamed) != 1 or intent.why != "which":
            return None
        found = referents(intent.unnamed[0], None, self._scene)
        shown = self.refs(found.things)
        orders = tuple(one.about(shown) for one in intent.orders)
        return Intent("do", orders) if found.by == "pointing" else None

    def _sparing(self, order: Order) -> Order:
        """Without what is to be left or out of reach, where it may mean more; "all", where all is left, as these."""
        meant = [self._fitting(ref) for ref in order.things if order.skill != "put_back"]
        seen, kept = [one for fitting in meant for one in fitting], self.kept
        if seen and any(ref.count == ALL for ref in order.things) and {one.id for one in seen} <= kept:
            return Order(order.skill, self.refs(seen), (), order.place, order.relation)
        named = [ref for ref in order.things if ref.count == ALL and ref.label != "*"]  # "all the cups" are told of
        lost = [one for one in seen if self._is_lost(one, order) and not any(fits(one, x, self._scene) for x in named)]
        aside = kept | {one.id for one in lost}
        alone = {one.id for fitting in meant if {two.id for two in fitting} <= aside for one in fitting}
        left = [one for one in seen if one.id in aside - alone and not self._is_excluded(one, order)]
        return _excluding(order, self.refs(left), ()) if left else order

    def _is_lost(self, thing: SeenObject, order: Order) -> bool:
        """Whether it lies where the hand does not reach, and is to be moved away from there."""
        there = self._place_of(thing)
        return order.skill in _MOVES and there in self.around.world.deep and there != order.place

    def _is_for_others(self, thing: SeenObject, order: Order) -> bool:
        """Whether a person has to move it."""
        return thing.width_m > self.household.widest_m or self._is_lost(thing, order)

    def lost(self, orders: Iterable[Order]) -> list[SeenObject]:
        """What these orders are about and that is out of reach where it lies."""
        found = [
            one for order in orders for ref in order.things for one in self._fitting(ref)
            if self._is_lost(one, order) and not self._is_excluded(one, order)
        ]  # fmt: skip
        return list({one.id: one for one in found}.values())

    def _is_excluded(self, thing: SeenObject, order: Order) -> bool:
        return any(fits(thing, ref, self._scene) for ref in order.excluding)

    def _ambiguous(self, orders: Sequence[Order]) -> tuple[str, tuple[Reference, ...]] | None:
        """What to ask where "the cup" could be one of several that are seen, and which these are."""
        for order in orders:
            for one in order.things:
                alike = [thing for thing in self._fitting(one) if not self._is_at(thing, order)]
                alike = self._at_hand([thing for thing in alike if not self._is_excluded(thing, order)], order)
                names = sorted({f"the {thing.name}" for thing in alike})
                if is_vague(one) and not one.is_any and one.count == 1 and len(names) > 1:
                    return f"Which {one.label} do you mean: {list_words(names, 'or')}?", self.refs(alike)
        return None

    def doubt(self, now_ns: int) -> str:
        """What to ask where "the cup" was ordered before any was seen, and now there are several."""
        if not self.unseen_ns or self.order is None or self._asked():
            return ""
        if to_s(now_ns - self.unseen_ns) > DOUBTS_WITHIN_S:
            self.unseen_ns = 0
        asked = self._ambiguous((self.order,)) if self.unseen_ns else None
        if asked is None:
            return ""
        about, self.unseen_ns, self.is_over = (self.order,), 0, True
        return self.ask(OpenQuestion("order", asked[0], now_ns, about, "thing", asked[1]))

    def _is_at(self, thing: SeenObject, order: Order) -> bool:
        return order.skill == "place" and stands(thing, order.place, self._scene)

    def _is_there(self, order: Order) -> bool:
        """Whether all that it is about stands where it was to go, and only nobody has said so yet."""
        things = [thing for ref in order.things for thing in self._fitting(ref)]
        return bool(things) and all(self._is_at(one, order) for one in things)

    def _home(self) -> str:
        """Where what is in the hand goes back to; from a machine, which only fills it, to the table."""
        return "table" if self.origin in self._machines() else self.origin or "table"

    def _machines(self) -> set[str]:
        return {place for recipe in self.household.recipes.values() for place in recipe.machines}

    def _down(self) -> Order | None:
        """To put back what is in the hand; None where nothing is."""
        held = self._held()
        if held and self._each:
            return self._placed(held, self._home())
        return Order("put_back", held) if held and self.around.spec("put_back") is not None else None

    def _taken_back(self, text: str, intent: Intent, clauses: Sequence[Clause], now_ns: int) -> str | None:
        """ "That's wrong, it goes on the shelf"; None of other words, and of what the parser reads as an order."""
        is_read = intent.deed == "do" and (not self._each or len(intent.orders) > 1)
        if not says_wrong(text) or is_read or (self.order is None and not self._each):
            return None
        if intent.unnamed and self.order is not None:
            return self._spare(Intent("nothing", protected=intent.protected, unnamed=intent.unnamed), now_ns)
        nouns = [
            noun for one in clauses for noun in (*one.nouns, *(noun for _, noun in one.targets)) if noun is not None
        ]
        place = next((noun.place for noun in nouns if noun.place), "") if self._each else ""
        return self._undo(now_ns, place, is_back=any(word in ("out", "back") for one in clauses for word in one.words))

    def _undo(self, now_ns: int, place: str = "", *, is_back: bool = False) -> str:
        """Take the last deed back, by what its skill declares; or say why not. `place`: where it goes instead."""
        order, last = self.order, self.done[-1] if self.done else None
        if order is None and last is None:
            return "I have not done anything yet that I could take back."
        if self._each:
            return self._undo_each(last, now_ns, place, is_back=is_back)
        deed = Finished(order, self._moved(order)) if order is not None else last
        assert deed is not None
        spec = self.around.spec(deed.order.skill)
        is_undone = spec is not None and spec.undo != ""
        if not deed.moved and (down := self._down()) is not None:
            self.later = ()
            self._begin(down, now_ns)
            return f"I am sorry. {promise(down)}"
        if not deed.moved and (is_undone or order is not None):
            self._end()
            return "All right, I stop that. I have moved nothing yet."
        if not is_undone or spec is None:
            return f"I cannot take that back: nothing undoes {deed.order.skill.replace('_', ' ')}."
        places = [one for one in self.around.world.places if one != deed.order.place]
        if not places or self.around.spec(spec.undo) is None:
            return "I cannot take that back: I know no other place."
        home = next((one for one in lexicon_file().household["home"] if one in places), sorted(places)[0])
        back = Order("place", deed.moved, (), home, "in" if home in INSIDE else "on")
        if lost := self.lost((back,)):
            return self._help(lost)
        self.done, self.later = (), ()
        self._begin(back, now_ns)
        return f"I am sorry. {promise(back)}"

    def _undo_each(self, last: Finished | None, now_ns: int, place: str, *, is_back: bool) -> str:
        held, order = self._held(), self.order
        if held:  # what is in the hand goes back first, and not what was done before
            things, home = held[:1], self.origin if order is not None or last is None else last.origin
        elif last is not None and last.order.skill in ("place", "hand_over"):
            things, home = last.order.things, last.origin
        elif order is not None and order.skill == "place":
            things, home = order.things, self.origin
        else:
            return "I am sorry. I cannot take that back."
        self._end()
        if place:
            self.habits = {**self.habits, things[0].label: place}
        said = "I am sorry. I will remember that." if place else "I am sorry."
        if not place and not is_back:
            said = f"I am sorry. I take it back. Where does {named(things)} go?"
            self.ask(OpenQuestion("place", said, now_ns, (Order("place", things),)))
        return f"{said} {self._add((self._placed(things, place or home or 'table'),), now_ns)}"

    def _moved(self, order: Order) -> tuple[Reference, ...]:
        """What stands at the order's place now and did not before."""
        moved = [one for one in self._things() if self._is_at(one, order) and one.id not in self.was_there]
        return tuple(Reference(id=one.id, label=one.label, colour=one.colour) for one in moved)

    # --- thing by thing

    def _run_household(self, text: str, clauses: Sequence[Clause], intent: Intent, now_ns: int) -> str | None:
        """What is said to a chore, and to what is ordered beside it; None of other words."""
        chores = [one for one in self.household.chores.values() if one.is_wished(text, clauses)]
        is_told_where = any(one.place and [ref.label for ref in one.things] == ["*"] for one in intent.orders)
        if not chores or is_told_where:
            return None  # "Clear the table. Just bin the lot."
        if any(one.told for one in chores):
            return self._do_chores(chores, intent, self._spared(clauses, intent), "", now_ns)
        first, about, then = self._parts_apart(text, lambda part: any(re.search(c.words, plain(part)) for c in chores))
        said, before = [self._heard(first, self.by, now_ns) if first else ""], self.later
        said.append(self._do_chores(chores, intent, self._spared(clauses, intent), about, now_ns))
        done = [one.things[0] for one in self.orders if one.skill == "rinse" and one not in before]
        then = _THEM.sub(named(done), then) if done else then  # "..., and put them on the shelf"
        return _joined([*said, self._heard(then, self.by, now_ns) if then else ""])

    # --- recipes

    def _is_of_recipe(self, text: str) -> bool:
        """Whether "mine" in it is what the speaker is to have of a recipe."""
        return any(re.search(one.words, plain(text)) for one in self.household.recipes.values())

    def _bar(self, recipe: Recipe, speaker: str, spared: set[str]) -> Bar:
        """What is said of a recipe is read against this."""
        things = self._things()
        ways = {ident: [one for one in self._steps_left(ident) if one.skill != "place"] for ident in self.cups}
        open_ = {ident: self.cups[ident] for ident, left in ways.items() if left}  # and not what is only put back
        why = {one.id: self.why_kept((one,)).strip() for one in things if one.id in self.kept}
        washed = {one.things[0].id for one in self.orders if one.skill == "rinse" and one.things}
        theirs = {one.id for one in things if self._is_theirs(one)}
        vessels = {one.id for one in things if one.label == recipe.vessel}
        shown = [one.points_at for one in self._scene.people if one.points_at in vessels]
        told = [one for one in self.talk.mentioned if one.kind == recipe.vessel][-1:]
        named = [ref.id for noun in told for ref in self._fitting(Reference(label=noun.kind, colour=noun.colour))]
        done = [
            one.order.things[0].id for one in self.done[-1:] if one.order.things and one.order.things[0].id in vessels
        ]
        last = [*done, *(named if len(named) == 1 else ()), *shown]
        own = {  # a coffee for somebody is a yes to taking theirs, where no more was said than whose it is
            one.id for one in things if one.owner and one.label == recipe.vessel
            and not any(forbids(why.text) for why in self.reasons if one.id in why.ids)
        }  # fmt: skip
        spared = spared - (own & self.kept)
        return Bar(recipe, things, spared | theirs, why, open_, speaker, washed, last[-1] if last else "")

    def _steps_left(self, ident: str) -> tuple[Order, ...]:
        return tuple(one for one in self.orders if one.things and one.things[0].id == ident)

    def _handed(self) -> set[str]:
        return {one.order.things[0].id for one in self.done if one.order.skill == "hand_over"}

    def _brew(self, text: str, clauses: Sequence[Clause], spared: set[str], speaker: str, now_ns: int) -> str | None:
        """What is said to a wish for a recipe, and to all that is said of it later; None of other words."""
        for recipe in self.household.recipes.values():
            bar = self._bar(recipe, speaker, spared)
            is_wish, is_named = recipe.is_wished(text, clauses), re.search(recipe.words, plain(text)) is not None
            first, then = "", ""
            if is_wish:
                first, text, then = self._parts_apart(text, bar.is_told_of)
            said_first = self._heard(first, speaker, now_ns) if first else ""
            bar = self._bar(recipe, speaker, spared)
            asked, is_more = self._about_cups(text, bar)
            lost = [one for one in self.cups if one not in bar.cups and one not in self._handed()]
            is_cut = bool(lost) and asked is None and not bar.cups
            if (is_more or is_named) and not is_wish and asks_of_recipe(text):
                return self._told_of_cup(text, bar, asked)
            washes = _WASHES.search(text) and not (text.rstrip().endswith("?") or _CANCELS.search(plain(text)))
            if asked is not None and asked.orders[0].skill == "rinse" and washes:
                return self.agree(asked, now_ns, speaker)  # "Yes, wash it first."
            is_new = is_addition(text, bar)
            if (is_wish and (is_new or not bar.cups)) or (is_more and is_new):
                if asked is not None and (is_wish or not bar.cups):
                    self._close(asked)
                made = brewed(text, cups_said(text, bar, is_new=True), bar)
                said = self._made(made, now_ns)
                if len(made.cups) == 1:
                    then = _IT.sub(f"the {bar.name(made.cups[0][0])}", then)
                said_then = self._heard(then, speaker, now_ns) if then else ""
                return _joined([said_first, said, said_then])
            if bar.cups and is_named and _CANCELS.search(plain(text)) and not is_more:
                return self._cancel_cups(bar, is_own=re.search(r"\b(?:i|me)\b", plain(text)) is not None)
            cups = cups_said(text, bar, is_new=False) if is_more else []
            if cups and asked is not None:
                self._close(asked)
                return self._made(brewed(text, _answered_with(cups, asked.orders, recipe), bar), now_ns)
            if cups and is_cut and cups[0].vessel:  # "The green one, then.", of a coffee whose mug is left now
                whom, extra = self.cups[lost[-1]], cups[0].has_extra
                had = [one.place for one in self.causes if any(ref.id == lost[-1] for ref in one.things)]
                extra = recipe.machine_left_out in had if extra is None else extra
                self.cups = {ident: one for ident, one in self.cups.items() if ident not in lost}
                return self._made(brewed(text, [replace(cups[0], whom=whom, has_extra=extra)], bar), now_ns)
            held = self.open("still", "leave")  # "The white one, then.", where the mug is somebody's
            is_told = any(one.has_extra is not None or (held is not None and one.vessel) for one in cups)
            is_said = any(one.vessel or one.problem for one in cups)
            is_other = any(one.vessel not in ("", *bar.cups) for one in cups) and not restricts(
                text
            )  # "No, the red one!"
            is_told = is_told or (is_said and bool(_USES.search(text) or (is_other and _REGRETS.search(text))))
            if cups and bar.cups and is_told:
                idents = list(bar.cups) if _ALL.search(text) else [self._cup_meant(one.vessel, bar) for one in cups]
                cups = cups * len(idents) if len(cups) < len(idents) else cups
                if held is not None:
                    self._close(held)
                changed = [self._changed(*each, bar) for each in zip(cups, idents, strict=True)]
                return _joined([*dict.fromkeys(changed), self._next_if_idle()])
        return None

    def _about_cups(self, text: str, bar: Bar) -> tuple[OpenQuestion | None, bool]:
        """What the robot has asked of a recipe, and whether it is about what is being made or was."""
        deeds = [one for one in self._asked() if one.about == "deed"]
        asked = next((one for one in deeds if any(step.skill == "wait_here" for step in one.orders)), None)
        is_last = bool(self.done) and any(ref.id in self.cups for ref in self.done[-1].order.things)
        is_cut = any(one not in bar.cups and one not in self._handed() for one in self.cups)  # its mug is left now
        return asked, (asked is not None or bool(bar.cups) or is_last or is_cut) and is_of_recipe(text, bar)

    def _with_made(self, text: str, speaker: str, now_ns: int) -> tuple[str, str]:
        """An utterance with "the coffee" that was made as its mug; and what is asked where it is another's."""
        for recipe in self.household.recipes.values():
            bar = self._bar(recipe, speaker, self.kept)
            if (meant := made_meant(text, bar, self.cups)) is None:
                continue
            found, ident = meant
            thing, whom = self._thing(Order("", (Reference(id=ident),))), self.cups.get(ident, "")
            if thing is not None and whom not in ("", speaker) and _TO_ME.search(text) and not restricts(text):
                order, who = Order("hand_over", self.refs((thing,))), capital(whom)
                text = f"The coffee in the {thing.name} is {who}'s. {who}, shall I hand it over to {capital(speaker)}?"
                said = self.ask(OpenQuestion("order", text, now_ns, (order,), missing="yes", of=whom))
                self.spoken, self.was_answered, self.is_answer = (ident,), True, True
                return "", said
            if thing is not None and (whom in ("", speaker) or not _EMPTIES.search(text)):
                text = f"{text[: found.start()]}the {thing.name}{text[found.end() :]}"
        return text, ""

    def _told_of_recipe(self, text: str, speaker: str) -> str:
        """The answer to a question about what is being made or was; "" to any other."""
        for recipe in self.household.recipes.values() if asks_of_recipe(text) else ():
            bar = self._bar(recipe, speaker, self.kept)
            asked, is_more = self._about_cups(text, bar)
            if is_more or re.search(recipe.words, plain(text)):
                return self._told_of_cup(text, bar, asked) or ""
        return ""

    def _parts_apart(self, text: str, is_own: Callable[[str], bool]) -> tuple[str, str, str]:
        """What is ordered before, what is said of a recipe or chore, and what is ordered behind it."""
        parts = [one.strip(" ?!.") for one in _PARTS.split(text)]
        apart = [one for one in parts if not is_own(one) and self._is_order(one)]
        own = [one for one in parts if one not in apart]
        if not apart or not own:
            return "", text, ""
        is_first = {one: parts.index(one) < parts.index(own[0]) or "first" in one.split() for one in apart}
        first = ". ".join(one.removesuffix(" first") for one in apart if is_first[one])
        return first, ", ".join(own), ". ".join(one for one in apart if not is_first[one])

    def _is_order(self, part: str) -> bool:
        alone = self.read_alone(_THEM.sub("everything", part))
        return alone.deed == "do" and all(one.things or one.place for one in alone.orders)

    def _made(self, made: Brewing, now_ns: int) -> str:
        """Taken on, or asked about first."""
        self.cups = {**self.cups, **dict(made.cups)}
        self._release(tuple(ref for order in made.orders for ref in order.things))
        if made.asks:
            return self.ask(OpenQuestion("deed", made.asks, now_ns, made.orders))
        return _joined([made.said, self._add(made.orders, now_ns)])

    def _cup_meant(self, vessel: str, bar: Bar) -> str:
        """The vessel that is named, or the speaker's, or the one that is filled now."""
        own = [ident for ident, whom in bar.cups.items() if whom == bar.speaker]
        now = [one.things[0].id for one in self.orders if one.things and one.things[0].id in bar.cups]
        return vessel if vessel in bar.cups else (own or now)[-1 if own else 0]

    def _told_of_cup(self, text: str, bar: Bar, asked: OpenQuestion | None) -> str | None:
        """What is in it or will be, where it is and for whom; None of what is not about those."""
        extra, machine = bar.recipe.left_out, bar.recipe.machine_left_out
        orders = self.orders if bar.cups or asked is None else asked.orders
        filled = [one.things[0].id for one in orders if one.skill == "wait_here"]
        known = list(bar.cups) or filled or list(self.cups)[-1:]
        is_of_extra = re.search(rf"\b(?:{extra}|milk)\b", text, re.I) is not None
        found = _ABOUT_CUP.search(plain(text)) if not is_of_extra else None
        if found is None and not is_of_extra:
            return None
        if not known:
            full = [one for one in self._things() if any(re.search(bar.recipe.words, word) for word in one.state)]
            if not full and any(one.within for one in self.deeds):
                return None
            return f"There is some in {named(self.refs(full))}." if full else "I have made none yet."
        vessel = cups_said(text, bar, is_new=False)[0].vessel
        ident = vessel or (self._cup_meant("", bar) if bar.cups else known[0])
        thing = next((one for one in self._things() if one.id == ident), None)
        if found is None:
            got = [one.id for one in self.deeds if one.skill == "wait_here" and one.place == machine]
            if re.search(r"\b(?:which|what|where)\b", text, re.I) and got and not vessel:
                names = list_words([f"the {bar.name(one)}" for one in dict.fromkeys(got)])
                return f"I have put {extra} in {names}."
            is_in = ident in got or (thing is not None and extra in thing.state)
            is_planned = any(one.place == machine and one.things and one.things[0].id == ident for one in orders)
            if ident not in (*self.cups, *known) and not is_in:
                return f"I have put no {extra} in the {bar.name(ident)}."
            is_late = is_planned and not is_in and re.search(r"\b(?:did|have|has|was|were)\b", text, re.I)
            text = f"The coffee in the {bar.name(ident)} is {'with' if is_in or is_planned else 'without'} {extra}."
            return f"{text} I have not put it in yet." if is_late else text
        if found[0].startswith("who"):
            each = [f"the {bar.name(one)} for {self.cups[one] or 'you'}" for one in known]
            return f"I make {list_words(each)}." if bar.cups else f"That was {list_words(each)}."
        left = in_short(self._steps_left(ident))
        still = f"I still have to {list_words(left)}." if left else ""
        return _joined([where_are((thing,), self._scene) if thing is not None else "", still])

    def _cancel_cups(self, bar: Bar, *, is_own: bool) -> str:
        """ "Forget the coffee": the speaker's, where one is; else all of them, but for who wants none for himself."""
        ended = [ident for ident, whom in bar.cups.items() if whom == bar.speaker]
        if is_own and not ended and any(bar.cups.values()):
            return "All right."
        things = [one for one in self._things() if one.id in (ended or bar.cups)]
        self.cups = {ident: whom for ident, whom in self.cups.items() if ident not in ended or ident in self._handed()}
        self._drop(self.refs(things))
        names = list_words([f"the {one.name}" for one in things])
        return _joined([f"All right, no coffee in {names}.", self._next_if_idle()])

    def _changed(self, cup: Cup, ident: str, bar: Bar) -> str:
        """What is being made with or without, or in another vessel."""
        recipe = bar.recipe
        left, machine = self._steps_left(ident), recipe.machine_left_out
        thing = next(one for one in bar.seen if one.id == ident)
        if cup.whom and cup.whom != bar.speaker:
            self.cups = {**self.cups, ident: cup.whom}
        has = any(one.place == machine for one in left) or recipe.left_out in thing.state
        wanted = has if cup.has_extra is None else cup.has_extra
        if cup.problem:
            return f"{cup.problem} I go on with the {thing.name}."
        if cup.vessel and cup.vessel != ident:
            if not any(one.place == recipe.machines[0] for one in left):
                return f"The coffee is in the {thing.name} already."
            other = next(one for one in bar.seen if one.id == cup.vessel)
            self._drop(self.refs((thing,)))
            self.cups = {**self.cups, other.id: self.cups.get(ident, "")}
            self.later = (*self.later, *steps_of(recipe, other, has_extra=wanted))
            return f"All right, in the {other.name}."
        told = f"the coffee in the {thing.name} {'with' if wanted else 'without'} {recipe.left_out}"
        if recipe.left_out in thing.state and not wanted:
            return f"There is {recipe.left_out} in the {thing.name} already."
        if wanted == has:
            return f"All right, {told}."
        steps = [one for one in left if one.place != machine]
        if wanted:
            new = [one for one in steps_of(recipe, thing, has_extra=True) if one.place == machine]
            steps = [*(one for one in steps if one.skill != "hand_over"), *new, *steps[-1:]]
        is_current = self.order is not None and self.order in left
        if is_current and self.order not in steps[:1]:
            self.is_over = True
        else:
            steps = steps[1:] if is_current else steps
        at = next((n for n, one in enumerate(self.later) if one in left), len(self.later))
        rest = [one for one in self.later if one not in left]
        self.later = (*rest[:at], *steps, *rest[at:])
        return f"All right, {told}."

    def _do_chores(self, chores: Sequence[Chore], intent: Intent, spared: set[str], about: str, now_ns: int) -> str:
        """Each of them but for what is left alone, or goes elsewhere: "..., but put the glass on the shelf"."""
        places = {one.id: self._place_of(one) for one in self._things()}
        if (where := _THERE.search(about)) is not None and where[1].lower() in self.around.world.places:
            spared = spared | {ident for ident, place in places.items() if place != where[1].lower()}
        is_tidying = any(one.told for one in chores)
        apart = tuple(one for one in intent.orders if one.place and one.things and intent.deed == "do" and is_tidying)
        spared = spared | self.ids_of(ref for one in apart for ref in one.things)
        promised, steps = [], []
        for chore in sorted(chores, key=lambda one: bool(one.told)):
            things = [one for one in chore.things(self._things(), places) if one.id not in spared]
            if not things and not apart:
                return chore.none
            promised.append(chore.promise([f"the {one.name}" for one in things]))
            spared |= {one.id for one in things}
            steps += [(self.steps(chore.skill, one, ""), one) for one in things]
        said = [f"Sure. I will {list_words(promised)}."]
        said += [self._add(each, now_ns, asks_first=one) for each, one in steps]
        return _joined(
            [*said, self._do_each(msgspec.structs.replace(intent, orders=apart), now_ns, self.by) if apart else ""]
        )

    def _spared(self, clauses: Sequence[Clause], intent: Intent) -> set[str]:
        """Ids of what the sentence excepts, forbids or keeps."""
        nouns = [noun for one in clauses for noun in (*one.excepts, *one.nots) if noun.kind or noun.colour]
        nouns += [noun for one in clauses if one.verb in ("leave", "touch") for noun in one.nouns if noun.kind]
        excepted = [Reference(label=one.kind, colour=one.colour) for one in nouns]
        return self.kept | self.ids_of((*intent.protected, *intent.taken, *excepted))

    def _do_each(self, intent: Intent, now_ns: int, speaker: str) -> str:
        """Take orders on thing by thing, behind what is under way; what is meant instead takes its place."""
        self.by = speaker
        offered = {one.id for one in self._offered()}
        brought = [self.ids_of(one.things) for one in intent.orders if one.skill == "hand_over"]
        if offered and brought == [offered] and len(intent.orders) == 1 and _HERE.search(self.heard[-1][1]):
            return _joined([self._set_down(), self._next_if_idle()])  # "Bring it here", and no hand comes to it
        said = [self._narrow(intent)]
        for order in intent.orders:
            excluded = [
                one.things for one in self.orders if one.place == order.place and self._is_about(one, order.excluding)
            ]
            self._drop([ref for things in excluded for ref in things])
        self._supersede(intent.orders)
        ways = {(one.skill, one.place) for one in intent.orders}
        apart = [
            one for one in self._asked()
            if one.about == "order" and not (intent.is_correction or one.of)
            and (one.orders[0].things or one.orders[0].skill == "wipe")
            and self._is_apart(one, intent.orders) and ways.isdisjoint((two.skill, two.place) for two in one.orders)
        ]  # fmt: skip
        is_new = intent.is_addition or not intent.is_correction
        self._keep_asking(lambda one: one.about != "order" or one in apart or bool(one.choices and is_new))
        if said[0] and any(ref.count > 1 for ref in self._about(intent)):
            return _joined([*said, self._next_if_idle()])
        before = self.later
        for number, order in enumerate(intent.orders):
            behind = [one for one in intent.orders[number + 1 :] if one.skill == "place" and one.things == order.things]
            if order.skill not in ("take", "pick") or not behind:  # "Take this and put it on the shelf."
                said.append(self._split(order, now_ns))
        if not any(said[1:]):
            later = in_short([one for one in self.later if one not in before])
            said = [said[0] or "All right.", f"Then I will {list_words(later)}." if later else ""]
        again = [one for one in apart if one in self.questions and one.text not in " ".join(said)]
        return _joined([*said, *(self.ask(replace(one, since_ns=now_ns)) for one in again)])

    def _split(self, order: Order, now_ns: int) -> str:
        """The steps of one order, or what is to be asked first."""
        if order.skill == "wipe":
            return self._wipe(order.place or "table", now_ns)
        if not order.things and order.skill in _NEEDS:
            what = _VERBS_ASKED.get(order.skill, order.skill.replace("_", " "))
            return self.ask(OpenQuestion("order", f"What shall I {what}?", now_ns, (order,), missing="thing"))
        if not order.things:
            return self._add((order,), now_ns)
        said: list[str] = []
        is_emptied = order.skill == "rinse" and self.empties()
        is_away = order.skill == "pick" and bool(self.heard) and _OFF.search(self.heard[-1][1]) is not None
        for reference in order.things:
            things, text = self._chosen(reference, order, now_ns)
            full = [one for one in things if {"full", "half full"} & set(one.state)]
            things = full if is_emptied and full else things
            said.append(text)
            wide = [one for one in things if self._is_for_others(one, order)]
            if wide and (len(wide) < len(things) or len(order.things) > 1):  # the rest goes on, and waits for nobody
                said.append(self._help(wide))
                things = [one for one in things if one not in wide]
            for thing in things:
                steps = self.steps("place" if is_away else order.skill, thing, order.place)
                if order.skill == "place" and order.relation == "beside":
                    text = f"I cannot put it beside the {order.place}. Shall I put it {steps[0].relation} there?"
                    said.append(self.ask(OpenQuestion("deed", text, now_ns, steps)))
                else:
                    said.append(self._add(steps, now_ns, asks_first=None if is_emptied else thing))
        return _joined(said)

    def _chosen(self, reference: Reference, order: Order, now_ns: int) -> tuple[list[SeenObject], str]:
        """The things, and what is said or asked about them."""
        fitting = [one for one in self._fitting(reference) if not self._is_excluded(one, order)]
        found = [one for one in fitting if one.id not in self.kept or order.skill == "put_back"]
        found = [one for one in found if not order.place or self._place_of(one) != order.place] or found
        if not found and len(fitting) == 1:
            return [], self.ask_keeper(self.steps(order.skill, fitting[0], order.place), now_ns)
        if not found:
            words = f"{reference.colour} {reference.label}".replace("*", "thing that I could take").strip()
            an = "an" if words[:1] in "aeiou" else "a"
            text = f"I do not see {an} {words}. Could you put it on the table for me?"
            return [], self.ask(OpenQuestion("thing", text, now_ns, (order,)))
        found = self._at_hand(found, order) if is_vague(reference) and reference.count == 1 else found
        theirs = [one for one in found if self._is_theirs(one)]
        if reference.count == ALL or len(found) == 1 or reference.label == "*":
            return found, ""
        if reference.count > len(found):
            return found, f"I see only {list_words([f'the {one.name}' for one in found])}."
        if reference.count > 1 or reference.is_any:
            return found[: max(reference.count, 1)], ""
        if order.skill == "take" and theirs:
            return theirs[:1], ""
        about, names = (order.about((reference,)),), sorted(f"the {one.name}" for one in found)
        text = f"Which {reference.label} do you mean: {list_words(names, 'or')}?"
        return [], self.ask(OpenQuestion("order", text, now_ns, about, missing="thing", choices=self.refs(found)))

    def _is_theirs(self, thing: SeenObject) -> bool:
        """Whether a person holds it."""
        held = [one.subject for one in self._scene.relations if one.relation == "held by" and one.object != "robot"]
        return thing.id in held

    def steps(self, skill: str, thing: SeenObject, place: str) -> tuple[Order, ...]:
        """What one deed with one thing comes to; a place that is still to be asked for is ""."""
        things, home = self.refs((thing,)), self.household
        if not self._each:
            return (self._placed(things, place) if skill == "place" else Order(skill, things),)
        if skill == "rinse":
            to = self.habits.get(thing.label) or home.washed_to.get(thing.label, "countertop")
            return Order("rinse", things, (), "sink"), self._placed(things, to)
        if (skill == "place" and not place) or (skill in ("take", "pick") and self._is_theirs(thing)):
            skill, place = "place", self.habits.get(thing.label) or home.belongs.get(thing.label, "")
        return (self._placed(things, place) if skill == "place" else Order(skill, things, (), place),)

    def _placed(self, things: tuple[Reference, ...], place: str) -> Order:
        relation = relation_to(place, self._scene) if self._each else "in" if place in INSIDE else "on"
        return Order("place", things, (), place, relation if place else "")

    def _add(self, steps: Sequence[Order], now_ns: int, *, asks_first: SeenObject | None = None) -> str:
        """Take steps on, once what has to be asked before is asked."""
        if not steps:
            return ""
        first, thing = steps[0], self._thing(steps[0])
        if first.skill == "place" and not first.place:
            return self.ask(OpenQuestion("place", f"Where does {named(first.things)} go?", now_ns, (first,)))
        moves = first.skill in _MOVES
        if thing is not None and moves and self._is_for_others(thing, first):
            return self._ask_for_help(first, thing, now_ns)
        is_poured = any(one.skill == "rinse" and one.things == first.things for one in self.orders)
        pours = (first.skill == "rinse" or first.place in ("sink", "bin")) and not is_poured
        if asks_first is not None and pours and {"full", "half full"} & set(asks_first.state):
            text = f"The {asks_first.name} is not empty. Are you finished with it? Shall I pour it away?"
            return self.ask(OpenQuestion("deed", text, now_ns, tuple(steps)))
        if len(steps) == 1 and first.skill == "place":  # what is washed goes there at once: "Wash it and put it ..."
            is_washed = any(one.skill == "rinse" and one.things == first.things for one in self.orders)
            ways = set(self.household.washed_to.values()) if is_washed else set()
            old = next(
                (x for x in self.later if x.skill == "place" and x.things == first.things and x.place in ways), None
            )
            if old is not None:
                self.later = tuple(first if one is old else one for one in self.later)
        asked = self.open("deed")
        if asked is not None and asked.since_ns == now_ns and asked.orders[0].things == first.things:
            kept = asked.orders[:1] if first.skill == "place" and asked.orders[0].skill == "rinse" else asked.orders
            self._close(asked)  # what follows a deed that is asked about waits for the answer, too
            self.ask(replace(asked, orders=(*kept, *steps)))
            return ""
        if first.skill == "rinse":  # what was to go there is washed there at once
            there = [
                one for one in self.orders if (one.skill, one.place, one.things) == ("place", "sink", first.things)
            ]
            self.later = tuple(one for one in self.later if one not in there)
            self.is_over = self.is_over or self.current in there
        new = [one for one in steps if one not in self.orders]  # not a second time
        is_in_hand = self.order is None and thing is not None and thing.id in held_by_robot(self._scene)
        self.later = (*new, *self.later) if is_in_hand else (*self.later, *new)
        return self._next_if_idle()

    def too_wide(self, things: Sequence[Reference]) -> str:
        """What to say of what the hand cannot take, whatever is to be done with it; "" where it can take any of it."""
        seen = [one for ref in things for one in self._fitting(ref)] if self._each else []
        if not seen or any(one.width_m <= self.household.widest_m for one in seen):
            return ""
        return self._help(seen)

    def _help(self, things: Sequence[SeenObject], what: str = "") -> str:
        """Why the hand cannot take these, and what a person is asked for: `what`, or to take them."""
        names = list_words([f"the {one.name}" for one in things])
        are, them = ("is", "it") if len(things) == 1 else ("are", "them")
        place = self._place_of(things[0])
        is_in = place in self.around.world.deep and things[0].id not in held_by_robot(self._scene)
        why = f"in the {place}, and I cannot reach into it" if is_in else "too wide for my hand"
        what = f"take {them} out" if is_in else what or f"take {them}"
        return f"{capital(names)} {are} {why}. Could you {what}, please?"

    def _ask_for_help(self, order: Order, thing: SeenObject, now_ns: int) -> str:
        what = small(describe(order)) if order.skill == "place" else f"take the {thing.name}"
        text = self._help((thing,), what)
        return self.ask(OpenQuestion("help", text, now_ns, (order,), at_m=(thing.x_m, thing.y_m)))

    def _wipe(self, place: str, now_ns: int) -> str:
        kind = self.household.wipes_with
        tool = next((one for one in self._things() if one.label == kind), None)
        if tool is None:
            text = f"I do not see a {kind}. Could you put one on the table?"
            return self.ask(OpenQuestion("thing", text, now_ns, (Order("wipe", (Reference(label=kind),), (), place),)))
        there = [one for one in self._things() if self._place_of(one) == place]
        wide = [one for one in there if one.width_m > self.household.widest_m and one.id not in self.kept]
        away, home = "countertop" if place != "countertop" else "table", self._place_of(tool) or "countertop"
        said = [self._ask_for_help(self._placed(self.refs((one,)), away), one, now_ns) for one in wide]
        things = self.refs((tool,))
        steps = Order("wipe", things, (), place), self._placed(things, home if home != place else away)
        self.later = (*self.later, *steps)
        begun = self._next_if_idle()
        return _joined(
            ["" if begun.startswith(f"I will wipe the {place}.") else f"Sure. I will wipe the {place}.", *said, begun]
        )

    def _narrow(self, intent: Intent) -> str:
        """ "Only the red one", "first the red, then the blue": the rest of what was ordered is dropped, and said."""
        if not intent.is_correction or intent.is_addition:
            return ""
        under_way = [
            one for one in self.orders
            if one.things and any(one.skill == two.skill and two.place in ("", one.place) for two in intent.orders)
        ]  # fmt: skip
        meant: set[str] = set()
        for order in intent.orders:
            for ref in order.things:
                fitting = [one.id for one in self._fitting(ref)]
                left = [one.things[0].id for one in under_way if one.things[0].id in fitting]
                there = sum(place_of(one, self._scene) == order.place for one in fitting)
                meant.update(fitting if ref.count <= 1 else left[: max(ref.count - there, 0)])  # "Only two of them."
        if not self.orders and self.done:
            return self._take_back(meant)
        kinds = {one.label for one in self._things() if one.id in meant}
        said = self.heard[-1][1] if self.heard else ""
        own = [one for one in under_way if self.causes.get(one, (self.by, ""))[0] == self.by]
        alike = [one for one in under_way if one.things[0].label in kinds]  # "No, the red cup."
        rest = [one for one in own if one.things[0].id not in self.cups] if _REGRETS.search(said) else []
        under_way = under_way if _ONLY.search(said) else alike or rest
        dropped = list(dict.fromkeys(one.things[0] for one in under_way if one.things[0].id not in meant))
        self._drop(dropped)
        return f"I leave {named(dropped)}." if dropped else ""

    def _take_back(self, meant: set[str]) -> str:
        """ "No, the blue one", of what has just been brought: that goes back to where it stood, first of all."""
        last = self.done[-1]
        thing = self._thing(last.order)
        is_spoken_of = self.was_answered and meant <= set(self.spoken)  # "No, he may not. Give it to me."
        if is_spoken_of or not _REGRETS.search(self.heard[-1][1] if self.heard else ""):
            return ""
        kinds = {one.label for one in self._things() if one.id in meant}
        if thing is None or thing.id in meant or kinds != {thing.label} or last.order.skill != "place":
            return ""
        back = self._placed(last.order.things, last.origin or "table")
        if lost := self.lost((back,)):
            return self._help(lost)
        self.later = (*self.later, back)
        return f"Sorry. I take the {thing.name} back."

    def _supersede(self, orders: Sequence[Order]) -> None:
        """What is to be brought elsewhere now is not brought where it was to go before."""
        skills = ("place", "hand_over", "put_back")
        moved = [(ref, one) for one in orders if one.skill in skills for ref in one.things]
        ways = {
            ident: one for ref, one in moved for ids in [self.ids_of((ref,))] if len(ids) == 1 or ref.count == ALL
            for ident in ids
        }  # fmt: skip
        machines = self._machines()
        filled = {one.things[0].id for one in self.orders if one.skill == "wait_here"}  # what is filled goes there then
        self.later = tuple(
            one for one in self.later
            if one.skill not in ("place", "hand_over") or one.place in machines or one.things[0].id not in ways
            or (one.skill == "hand_over" and one.things[0].id not in filled)
        )  # fmt: skip
        order = self.order
        if order is not None and order.things and order.skill in ("place", "hand_over") and order.place not in machines:
            new = ways.get(order.things[0].id, order)
            is_same = (new.skill, new.place) == (order.skill, order.place) and new.relation != "beside"
            self.is_over = not is_same  # "No, on the tray."
        meant = ways.keys() | self.ids_of(ref for ref, _ in moved if ref.count != 1)
        self._keep_asking(lambda one: one.about != "order" or meant.isdisjoint(ref.id for ref in one.choices))

    def _next_if_idle(self) -> str:
        return self._next() if self._each and self.order is None and not self._is_held() else ""

    def _next(self) -> str:
        """Begin what waits; or say what is done."""
        if not (self.later or self.questions):
            told, self.told = self.told, ()
            return f"I am done: {list_words(told)}." if told else ""
        picked = self._away_from_people()
        if picked is None:
            return ""  # all that is left is where a person reaches now
        self.later = tuple(one for one in self.later if one is not picked)
        self._begin(picked, self.ordered_ns)
        if picked.skill == "wait_here":
            return f"The {picked.place} is filling {named(picked.things)}."
        return promise(picked)

    def _away_from_people(self) -> Order | None:
        """The first order away from what a person was asked to take; None where there is none."""
        helped = [one for asked in self.questions if asked.about == "help" and (one := self._thing(asked.orders[0]))]
        passed: set[str] = set()
        for order in self.later:
            thing = self._thing(order)
            if order.skill == "wipe" and any(self._place_of(one) == order.place for one in helped):
                return None
            is_near = thing is not None and any(
                math.dist((thing.x_m, thing.y_m), (one.x_m, one.y_m)) < self.household.keep_off_m
                for one in helped
                if one.id != thing.id
            )
            if not is_near and not (thing is not None and thing.id in passed):
                return order
            passed.add(thing.id if thing is not None else "")
        return None

    # --- what is seen

    def see(self, now_ns: int) -> str:
        """What changed that somebody waits for: help that came, a nod, a finger, something held out."""
        self._notice()
        says = [self._see_stop(now_ns), self.doubt(now_ns)]
        for person in self._scene.people:
            if person.points_at:
                self.pointed = person.id, person.points_at, now_ns
            says.append(self._see_offer(person, now_ns) if self._each else "")
            who = person.id if any(person.id == one for one, _ in self.heard) else self._speaker
            asked = next((one for one in self._asked(who) if one.awaits == "yes" and one.about != "order"), None)
            if person.gesture and asked is not None and to_s(now_ns - self.nodded_ns) > NODS_EVERY_S:
                self.nodded_ns = now_ns
                self._close(asked)
                is_nod = person.gesture == "nod"
                says.append(self._agreed(asked, now_ns, self.by) if is_nod else self._declined(asked))
        for one in self.questions:
            says.append(self._see_help(one, now_ns) if one.about in ("help", "thing") else "")
            shown = [ref for ref in one.choices if ref.id == self.pointed[1] and self.pointed[2] >= one.since_ns]
            says.append(self._choose(one, shown[0], now_ns) if one.about == "order" and shown else "")
        return _joined(says)

    def _see_offer(self, person: SeenPerson, now_ns: int) -> str:
        if not person.holds or person.hand_m is None:
            self.offered = "", _NOWHERE_M, 0
            return ""
        thing, at_m = self._thing(Order("", (Reference(id=person.holds),))), self.offered[1]
        is_offered = self.offered[0] == person.holds and at_m == _NOWHERE_M  # once
        if not is_offered and (self.offered[0] != person.holds or math.dist(at_m, person.hand_m) > STILL_M):
            self.offered = person.holds, person.hand_m, now_ns
        is_hers = any(one.order.skill == "hand_over" and one.order.things[0].id == person.holds for one in self.done)
        is_busy = bool(self.orders or self.questions) or is_hers or is_offered or person.holds in self.kept
        is_late = to_s(now_ns - self.offered[2]) >= OFFERED_S
        if is_busy or not is_late or thing is None or thing.width_m > self.household.widest_m:
            return ""
        self.offered = person.holds, _NOWHERE_M, now_ns
        return f"You hold something out to me. {self._add(self.steps('place', thing, ''), now_ns)}"

    def _see_help(self, asked: OpenQuestion, now_ns: int) -> str:
        order, thing = asked.orders[0], self._thing(asked.orders[0])
        if asked.about == "thing":
            if not self.ids_of(order.things):
                return ""
            self._close(asked)
            return _joined(["Thank you.", self._split(order, now_ns)])
        place = self._place_of(thing) if thing is not None else ""
        if thing is None or self._is_theirs(thing) or not place:
            return ""
        is_moved = math.dist((thing.x_m, thing.y_m), asked.at_m) > MOVED_M
        if place != order.place and not is_moved:
            return ""
        self._close(asked)
        if place == order.place:
            self.done = (*self.done, Finished(order, order.things))
            return _joined(["Thank you for your help!", self._next_if_idle()])
        if thing.width_m > self.household.widest_m:
            return _joined(["Thank you!", self._next_if_idle()])
        return _joined(["Thank you, now I get it.", self._add((order,), now_ns)])

    # --- what the VLM reports

    def report(self, description: SceneDescription, now_ns: int = 0) -> str:
        """What to say about a description by the VLM; the next order follows one that has ended."""
        subtask, order = self.subtask, self.order
        if subtask is None:
            self._recover(description)
        if subtask is None or order is None or description.subtask_id != subtask.id:
            return ""
        left = [one for one in description.left if not any(covers(two, one) for two in order.excluding)]
        if left and not self._each:  # "not that one": only the VLM knew which
            revision = self.revision
            self.leave(left, is_left_by_vlm=True)
            self.revision, order = revision, self.current or order
        if description.progress not in ("finished", "failed"):
            return ""
        self._notice()
        if self._each:
            return self._reported(order, description, now_ns)
        moved = self._moved(order) if order.skill == "place" else ()
        self.done = (*self.done, Finished(order, moved))
        self._finish(order, moved if order.skill == "place" or description.progress == "failed" else order.things)
        if description.progress == "failed":
            nothing = " Nothing was moved." if order.skill == "place" else ""
            so_far = f" {things_words(moved, order)}" if moved else nothing
            why = description.why.rstrip(".") or "something does not work"
            self._end()
            return f"I have to give up: {why}.{so_far}{self._left_undone(order, description)}"
        is_nothing = order.skill == "place" and not moved
        text = f"I moved nothing: I see {moved_nothing(order, self._scene)}." if is_nothing else outcome(order, moved)
        if order.skill == "place" and all(one.count in (1, ALL) for one in order.things):
            text += self._left_undone(order, description)
        while self.later and (lost := self.lost(self.later[:1])):  # it was put there since
            self.later, text = self.later[1:], f"{text} {self._help(lost)}"
        if self.later:
            following, self.later = self.later[0], self.later[1:]
            self._begin(following, now_ns)
            return f"{text} {promise(following)}"
        self._end()
        return text if is_nothing or order.skill == "point" else f"I am done. {text}"

    def _reported(self, order: Order, description: SceneDescription, now_ns: int) -> str:
        """The same of one thing; a person is asked for what cannot be done."""
        self.is_over = True
        self._keep_asking(lambda one: one.about != "still" or one.orders != (order,))
        if description.progress == "finished":
            self.done = (*self.done, Finished(order, order.things if order.skill == "place" else (), self.origin))
            is_filling = order.skill == "wait_here" or order.place in self._machines()
            self.told = self.told if is_filling else (*self.told, small(describe(order)))
            self._finish(order, order.things)
            return self._next()
        thing, why = self._thing(order), description.why
        if thing is None:
            return _joined([f"I have to leave that: {why}.", self._next()])
        where = where_are((thing,), self._scene)
        if description.code == "consent":
            return _joined([f"Nobody said yes, so I do not {small(describe(order))}.", where, self._next()])
        near = "nearer to me" if description.code == "out_of_reach" else "where I can take it"
        text = f"I cannot get the {thing.name}: {why}. {where} Could you help me and put it {near}, please?"
        self.ask(OpenQuestion("help", text, now_ns, (order,), at_m=(thing.x_m, thing.y_m)))
        return _joined([text, self._next()])

    def _finish(self, order: Order, things: Sequence[Reference]) -> None:
        """Note what a finished order has done, where it was not seen to happen."""
        if order.skill in ("look", "point", "nod", "shake", "pick"):
            return
        for ref in things if order.skill != "wipe" else (Reference(label=""),):
            thing = next(iter(self._fitting(ref)), None) if ref.label else None
            name = thing.name if thing is not None else f"{ref.colour} {ref.label}".strip()
            ident = thing.id if thing is not None else ""
            is_noted = any(
                one.skill == order.skill
                and one.name == name
                and (one.place in (order.place, "") or one.skill == "put_back")
                for one in self.deeds
            )
            if not (is_noted and order.skill in ("place", "hand_over", "put_back")):
                cause = self.causes.get(order) or self._cause(ident, order.skill, order.place)
                is_emptied = order.skill in ("rinse", "pour")
                within = self.inside.get(ident, "") if is_emptied else ""
                self.inside = {one: what for one, what in self.inside.items() if one != ident or not is_emptied}
                self._did(DoneDeed(order.skill, ident, name, order.place, self.origin, *cause, within))

    def _left_undone(self, order: Order, description: SceneDescription) -> str:
        """Where the things are that it was about and that were not brought there; and what is found no more."""
        gone = [(one.label, one.colour) for one in description.gone]
        left = [one for one in self._scene.things if is_still_meant(one, order, self._scene)]
        left = [one for one in left if (one.label, one.colour) not in gone]
        text = f" {where_are(left, self._scene)}" if left else ""
        return f"{text} I do not find {named(description.gone)} any more." if gone else text

    def _recover(self, description: SceneDescription) -> None:
        """After a restart of the planner: the order that the VLM still works on."""
        subtask = description.subtask
        if subtask is None or subtask.state != "work" or description.progress == "idle":
            return
        number, _, revision = subtask.id.removeprefix("task-").partition(".")
        if subtask.id.startswith("task-") and number.isdigit() and revision.isdigit():
            skill = {name: alias for alias, name in ALIASES.items()}.get(subtask.skill, subtask.skill)
            self.number, self.revision = int(number), int(revision)
            self.current = Order(skill, subtask.things, subtask.excluding, subtask.place, subtask.relation)


def condition_of(order: Order) -> Condition | None:
    """When it is done, where that can be seen."""
    if order.skill == "place":
        return Condition(things=order.things, relation=order.relation, place=order.place)
    holder = {"pick": "robot", "hand_over": "person"}.get(order.skill)
    return Condition(things=order.things, relation="held by", place=holder) if holder else None


_NEEDS = frozenset({"rinse", "pick", "place", "hand_over", "open", "close", "take"})
"""Skills that are nothing without a thing."""
_VERBS_ASKED = {"rinse": "wash", "place": "put there", "hand_over": "hand over"}
_USES = re.compile(r"\b(?:in|into|use|using|instead|rather)\b", re.I)
"""What names a vessel says so that it is filled."""
_SAID_TO_HELD = re.compile(
    r"(?i:(?:no|oh|ah|okay|ok|right|well|actually|sorry|cheers|thanks|thank you|ta|great|just|now|please|and|then)\W+)*"
    r"(?:(?P<got>(?i:(?:i have|i['’]ve|i) (?:got|taken) (?:it|that|hold of it)|got it|here is my hand|(?:i )?have it|"
    r"my hand is (?:out|here|there|open)|i(?: a|['’])m holding (?:it|my hand out)))"
    r"|(?i:(?:you )?keep it|leave it(?: there| be)?|(?:maybe )?later|not (?:now|yet)"
    r"|i(?: will|['’]ll) (?:take|have|get) it later"
    r"|(?:i )?(?:do not|don['’]t) (?:want|need) (?:it|that))"
    r"|(?i:give|hand|pass|bring|take) it (?i:on |over )?(?i:to) (?P<who>[A-Z]\w+))"
    r"(?i:\W+(?:now|after all|any ?more|instead|please|then|thanks|thank you|for now|first))*\W*"
)
"""What somebody says to whom something is held out: that they have it, not now, to whom."""
_IT = re.compile(r"\b(?:it|that)\b(?! (?:is|was)\b)", re.I)
_WASHES = re.compile(r"\b(?:wash|rinse|clean)\b", re.I)
_CANCELS = re.compile(
    r"\b(?:forget|cancel|never mind|no longer|no(?= (?:more )?coffee)|not|don't|stop|skip|leave|drop)\b|n't\b"
)
_TO_ME = re.compile(r"\b(?:me|i|us|we|here)\b", re.I)
_HERE = re.compile(r"\b(?:bring|fetch|here|over)\b", re.I)
_ALL = re.compile(r"\b(?:both|all|each|everyone)\b", re.I)
_PARTS = re.compile(r"(?:,? (?:and )?then |,? and |[.;!?,]+ )", re.I)
_THEM = re.compile(r"\b(?:it|them(?: all)?|everything|it all|all of (?:it|them)|these|those)\b", re.I)
_OFF = re.compile(r"\boff (?:of )?(?:the|this|that|my|our)\b", re.I)
_THERE = re.compile(
    r"\b(?:all|everything|lot|dishes|stuff|things?|dirty)(?: (?:that is|lying|standing))? (?:on|in) the (\w+)", re.I
)
_EMPTIES = re.compile(r"\b(?:empty|emptied|pour|tip|drain)\b", re.I)
_ABOUT_CUP = re.compile(r"\b(?:who|whose|where|ready|done|finished|how long|coming|is there any|have you got)\b")
"""What a question about a cup asks besides what is in it."""


def _answered_with(said: Sequence[Cup], orders: Sequence[Order], recipe: Recipe) -> list[Cup]:
    """What was asked about, with what the answer says of it."""
    asked = list(dict.fromkeys(one.things[0].id for one in orders))
    creamy = {one.things[0].id for one in orders if one.place == recipe.machine_left_out}
    found = [replace(said[min(n, len(said) - 1)]) for n in range(max(len(asked), len(said)))]
    return [
        replace(
            cup,
            vessel=cup.vessel or (asked[n] if n < len(asked) and not cup.problem else ""),
            has_extra=(n >= len(asked) or asked[n] in creamy) if cup.has_extra is None else cup.has_extra,
        )
        for n, cup in enumerate(found)
    ]


def _apart(orders: Sequence[Order]) -> list[Order]:
    """ "Both cups, the red one first": the rest, but for that one, is one fewer."""

    def fewer(ref: Reference, order: Order) -> Reference:
        alone = [one for other in orders if other is not order for one in other.things if one.label == ref.label]
        taken = sum(any(covers(left, one) for left in order.excluding) for one in alone if one.count == 1)
        return msgspec.structs.replace(ref, count=ref.count - taken) if 1 <= taken < ref.count else ref  # type: ignore[type-var]  # a Struct

    return [one.about(tuple(fewer(ref, one) for ref in one.things)) for one in orders]


def _is_same(orders: Sequence[Order], before: Sequence[Order]) -> bool:
    """Whether it is the last order again, with something left out."""
    return [(one.skill, one.things, one.place) for one in orders] == [
        (one.skill, one.things, one.place) for one in before[-1:]
    ]


def _excluding(order: Order, left: Sequence[Reference], released: Sequence[Reference]) -> Order:
    """The order without these; what is free again is in it."""
    kept = [one for one in order.excluding if not any(covers(free, one) for free in released)]
    new = [Reference(id=one.id, label=one.label, colour=one.colour, count=one.count) for one in left]
    return Order(order.skill, order.things, tuple(dict.fromkeys((*kept, *new))), order.place, order.relation)


def _names_place(clauses: Sequence[Clause], order: Order) -> bool:
    """Whether a place is named, but for where the things of the order are."""
    nouns = [noun for one in clauses for noun in (*one.nouns, *(noun for _, noun in one.targets)) if noun is not None]
    return any(noun.place and noun.place not in {one.source for one in order.things} for noun in nouns)


def _joined(said: Iterable[str]) -> str:
    return " ".join(one for one in said if one)
