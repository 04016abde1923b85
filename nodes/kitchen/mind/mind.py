"""What a robot in a kitchen makes of what it hears and sees: its tasks, its questions and what it learned. Pure values.

Orders are read by the parser of `nodes.planner`, the words around them by `phrases`. `seen` answers what is where,
`household` says where things belong, and `tasks` are the values that are kept. Here it is decided: what to do, what to
ask a person for, and what to say.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from nodes.interrupts.intent import beside_stop, understand
from nodes.kitchen.mind import phrases
from nodes.kitchen.mind.household import FRUIT, household
from nodes.kitchen.mind.seen import Seen, is_dirty, is_empty
from nodes.kitchen.mind.tasks import About, CompletedCall, OpenQuestion, SkillCall, about_alone, call_of
from nodes.msgs import Condition, Reference, Scene, SceneDescription, SeenObject, SeenPerson, Subtask
from nodes.planner.languages import in_another_language
from nodes.planner.orders import ALL, LEAVE, Order, Surroundings, is_vague
from nodes.planner.parser import Clause, parser_of
from nodes.planner.referents import named_under_way, referents
from nodes.planner.replies import answer, list_words, question, remark, where_are
from nodes.planner.rules import Finished, why_not
from nodes.planner.spelled import SpelledOut, naming, spelled_out
from nodes.planner.stopped import objects, read_beside_stop, speaks_of_rest, told_as_paused, why_unread
from nodes.planner.understanding import ANY_OF_THEM, Conversation, Intent, forbids_ordered, spared_by, understand_in
from nodes.sim.world_file import GRASP_WIDTH_M
from runtime.clock import to_s

AGAIN_S, GIVE_UP_S, HELP_S = 20.0, 40.0, 60.0
"""A question is asked again after this long, and left after that; so long a person may take to help."""
POINTS_FOR_S = 10.0
OFFERED_S, STILL_M = 2.0, 0.02
"""A thing that is held out so long without a word, by a hand this still, is an offer."""
MOVED_M = 0.08
KEEP_OFF_M = 0.35
"""So near to what a person was asked to take, the robot waits: a hand comes there."""


@dataclass(slots=True)
class Mind:
    """All of it; `habits` says where a kind goes, as people taught it."""

    habits: dict[str, str] = field(default_factory=dict)
    speaker: str = "robot"
    tasks: deque[SkillCall] = field(default_factory=deque)
    number: int = 0
    current: SkillCall | None = None
    origin: str = ""
    deeds: list[CompletedCall] = field(default_factory=list)
    questions: list[OpenQuestion] = field(default_factory=list)
    talk: Conversation = field(default_factory=Conversation)
    world: Surroundings = field(default_factory=Surroundings)
    is_paused: bool = False
    kept: set[str] = field(default_factory=set)  # ids that a person wants left alone
    pointed: tuple[str, int] = ("", 0)  # id, when
    offered: tuple[str, int] = ("", 0)
    offered_at_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    done_names: list[str] = field(default_factory=list)
    is_for_coffee: bool = False
    by: str = ""  # who ordered last
    names: Mapping[str, str] = field(default_factory=dict)  # names that people gave, in small letters, and ids
    wishes: set[str] = field(default_factory=set)  # "without cream"
    nodded_ns: int = 0
    at_stop: str = ""  # a question that was asked beside a stop, and is asked again when that is lifted

    @property
    def seen(self) -> Seen:
        """What can be asked of the newest scene."""
        return Seen(self.world)

    # --- the contract

    @property
    def subtask(self) -> Subtask | None:
        """What the VLM is to do now."""
        if not self.number:
            return None
        task = self.current
        if task is None:
            return Subtask(id=f"task-{self.number}.done", text="nothing", state="done")
        things = (Reference(id=task.thing),) if task.thing else ()
        relation = self.seen.relation(task.place) if task.skill == "place" else ""
        return Subtask(
            id=f"task-{self.number}", text=task.text or task.skill, state="wait" if self.is_paused else "work",
            skill=task.skill, things=things, place=task.place, relation=relation,
            done_when=Condition(things=things, relation=relation, place=task.place) if relation else None,
        )  # fmt: skip

    def report(self, description: SceneDescription, now_ns: int) -> list[str]:
        """After a description by the VLM."""
        task = self.current
        if task is None or description.subtask_id != f"task-{self.number}":
            return []
        if description.progress == "finished":
            return self._finished(task, now_ns)
        if description.progress == "failed":
            return self._failed(task, description, now_ns)
        return []

    # --- seeing

    def see(self, scene: Scene, now_ns: int) -> list[str]:
        """What changed that somebody waits for: help that came, a nod, something held out."""
        self.world = replace(self.world, scene=scene)
        says: list[str] = []
        for person in scene.people:
            if person.points_at:
                self.pointed = person.points_at, now_ns
            says += self._see_offer(person, now_ns)
            if person.gesture and to_s(now_ns - self.nodded_ns) > 3.0 and self._open("yes") is not None:
                self.nodded_ns = now_ns
                says += self._answer_yes(person.gesture == "nod", now_ns)
        for asked in [one for one in self.questions if one.about in ("help", "thing")]:
            says += self._see_help(asked, now_ns)
        which = self._open("which")
        if which is not None and self.pointed[0] in which.choices and self.pointed[1] >= which.since_ns:
            says += self._choose(which, self.pointed[0], now_ns)
        return says

    def _see_offer(self, person: SeenPerson, now_ns: int) -> list[str]:
        if not person.holds or person.hand_m is None:
            self.offered = "", 0
            return []
        if self.offered[0] != person.holds or math.dist(self.offered_at_m, person.hand_m) > STILL_M:
            self.offered, self.offered_at_m = (person.holds, now_ns), person.hand_m
        is_busy = self.current is not None or self.questions or self.tasks
        is_hers = any(deed.task.thing == person.holds and deed.task.skill == "hand_over" for deed in self.deeds)
        if is_busy or is_hers or person.holds in self.kept or to_s(now_ns - self.offered[1]) < OFFERED_S:
            return []
        thing = self.seen.thing(person.holds)
        if thing is None or thing.width_m > GRASP_WIDTH_M:
            return []
        self.kept.add(person.holds)  # offered once
        return ["You hold something out to me.", *self._add(self._stow(thing), now_ns)]

    def _see_help(self, asked: OpenQuestion, now_ns: int) -> list[str]:
        if asked.about == "thing":
            assert asked.order is not None
            if not any(self.seen.fitting(one) for one in asked.order.things):
                return []
            self.questions.remove(asked)
            return ["Thank you.", *self._do((asked.order,), now_ns)]
        task = asked.tasks[0]
        thing = self.seen.thing(task.thing)
        if thing is None or self.seen.is_held_by_person(task.thing):
            return []
        place = self.seen.place_of(task.thing)
        if task.place and place == task.place:
            self.questions.remove(asked)
            self.deeds.append(CompletedCall(task, ""))
            return ["Thank you for your help!", *self._then_wipe(now_ns)]
        moved = (thing.x_m - asked.at_m[0]) ** 2 + (thing.y_m - asked.at_m[1]) ** 2 > MOVED_M**2
        if not moved or not place:
            return []
        self.questions.remove(asked)
        if thing.width_m > GRASP_WIDTH_M:
            return ["Thank you!", *self._then_wipe(now_ns)]
        return ["Thank you, now I get it.", *self._add([task], now_ns)]

    def _then_wipe(self, now_ns: int) -> list[str]:
        return [] if self.current is not None else self._next(now_ns)

    def tick(self, now_ns: int) -> list[str]:
        """Questions that nobody answers are asked once more, then left."""
        says: list[str] = []
        for asked in list(self.questions):
            waited_s = to_s(now_ns - asked.since_ns)
            if waited_s > (HELP_S if asked.about in ("help", "thing") else GIVE_UP_S):
                self.questions.remove(asked)
                says.append("Nobody answered, so I leave it.")
            elif waited_s > AGAIN_S and asked.times == 1 and asked.about not in ("help", "thing"):
                self.questions[self.questions.index(asked)] = replace(asked, times=2)
                says.append(asked.text)
        if self.current is None and self.tasks and not self.is_paused:
            says += self._next(now_ns)
        return says

    # --- hearing

    def hear(self, text: str, speaker: str, now_ns: int) -> list[str]:
        """What to say to an utterance; tasks and questions follow it."""
        self.names, named = naming(text, self.world.scene, self.names, self._pointed(now_ns))
        if named:
            return [named]
        which = self._open("which")
        chosen = [one for one in self.seen.things() if which is not None and one.id in which.choices]
        worked_on = {one.thing for one in (self.current, *self.tasks) if one is not None}
        kinds = {one.label for one in chosen or [one for one in self.seen.things() if one.id in worked_on]}
        kind = kinds.pop() if len(kinds) == 1 else ""
        is_owner = any(owner == "my" for owner, _ in self.talk.owners)
        spelled = spelled_out(text, self.world.scene, self.names, speaker, kind, is_owner=is_owner)
        if spelled.reply:
            return [spelled.reply, *(self._asks_untold(spelled, now_ns) if spelled.is_untold else ())]
        said = self._hear(spelled.text, speaker, now_ns)
        return [spelled.aside, *said] if spelled.aside and any("?" in one for one in said) else said

    def _asks_untold(self, spelled: SpelledOut, now_ns: int) -> list[str]:
        """What cannot be told is asked, and what it may forbid is held until then."""
        is_order = all(one.type in ("order", "question") and not one.is_negated for one in self._clauses(spelled.text))
        under_way = {one.thing for one in (self.current, *self.tasks) if one is not None and one.thing}
        if not under_way or (is_order and not spelled.is_objection):
            return ["Which one do you mean?"]
        return [*self._ask_which_to_leave(tuple(sorted(under_way)), now_ns), *self._next_if_idle(now_ns)]

    def _ask_which_to_leave(self, choices: tuple[str, ...], now_ns: int) -> list[str]:
        names = list_words([f"the {self.seen.name(one)}" for one in choices], "or")
        text, held_back = f"Which one shall I leave, {names}?", self._held_back(set(choices))
        return self._ask(OpenQuestion("which", text, now_ns, held_back, order=Order(LEAVE), choices=choices))

    def _hear(self, text: str, speaker: str, now_ns: int) -> list[str]:
        meaning = understand(text)
        if meaning.wants == "stop":  # the reflex has stopped the robot, and the VLM says so
            return self._hear_beside_stop(text, now_ns)
        if meaning.wants == "resume":
            again, self.is_paused, self.at_stop = self.at_stop, False, ""
            if again and self._open("yes") is not None:
                return [again]  # who lifts the stop has not answered what was asked at it
            if self._open("yes") is None and self.current is not None:
                return []  # else it is a yes as well: "Go ahead."
        plain = phrases.plain(text)
        clauses = self._clauses(text)
        world = self.world.world
        known = frozenset(word for name in (*world.kinds, *world.places) for word in name.split())
        if foreign := in_another_language(text, known):
            return [foreign]
        if clauses[:1] and clauses[0].word == "another":
            return []  # somebody else is spoken to
        is_asked = bool(self.questions or self.talk.awaits)
        if meaning.is_listening and not is_asked and not any(one.type == "cancel" for one in clauses):
            return []
        for step in (self._hear_wrong, self._hear_answer, self._hear_recipe, self._hear_chore):
            said = step(text, plain, now_ns)
            if said is not None:
                return said
        before = tuple(one for one in (self.current, *self.tasks) if one is not None and one.thing)
        kept, questions = set(self.kept), list(self.questions)
        said = self._hear_order(self._spelled_out(phrases.small(text), speaker), text, speaker, now_ns)
        return self._held_for_rest(text, before, kept, questions, now_ns) or said

    def _held_for_rest(
        self, text: str, before: tuple[SkillCall, ...], kept: set[str], questions: list[OpenQuestion], now_ns: int
    ) -> list[str]:
        """What was said of several or of the rest, and left nothing and dropped nothing: it is asked of all."""
        new = [one for one in self.questions if one not in questions]
        is_answered = any(one.order is not None and one.order.skill == LEAVE for one in new) or self.kept != kept
        is_dropped = not new and {*before} != {self.current, *self.tasks}
        if not before or is_answered or is_dropped or not speaks_of_rest(text, self._clauses(text)):
            return []
        self.questions = questions
        asked = self._ask_whether({one.thing for one in before}, now_ns, before)
        self.at_stop = ""
        return asked + self._next_if_idle(now_ns)

    def _hear_beside_stop(self, text: str, now_ns: int) -> list[str]:
        """What else was said counts after a "go on"; what cannot be read forbids what was under way."""
        words, task = beside_stop(text), self.current
        for step in (self._hear_wrong, self._hear_recipe, self._hear_chore) if words else ():
            said = step(words, phrases.plain(words), now_ns)
            if said is not None:
                return [*said, "I begin once you tell me."]
        target = self.seen.thing(task.thing) if task is not None else None
        doing = self._told_of(task) if task is not None else None
        talk = replace(self.talk, orders=(doing,)) if doing is not None else self.talk
        around = replace(self.world, target=target)
        rest = read_beside_stop(text, around, talk, parser_of(self.world.world))
        if rest.reading == "nothing":
            return []
        self.talk = rest.talk
        match rest.reading:
            case "answer":
                return [answer(rest.words, rest.intent, self.world.scene, self.world.skills, doing, None, self.by)]
            case "spare" if rest.intent.why in ("cancelled", "declined"):
                return self._leave_it(now_ns)
            case "spare":
                return self._keep(rest.intent, now_ns)
            case "do":
                return self._take_on(rest.intent, task, target, now_ns)
        asked = why_unread(rest, around)
        return [asked, *self._ask_whether({target.id}, now_ns)] if target is not None else [asked]

    def _take_on(self, intent: Intent, task: SkillCall | None, target: SeenObject | None, now_ns: int) -> list[str]:
        """An order beside a stop, in place of what was under way or behind it; it waits for a "go on"."""
        orders = intent.orders
        if target is not None and not intent.is_addition:
            meant = {one.id for order in orders for ref in order.things for one in self.seen.fitting(ref)}
            if target.id not in meant:
                self.kept.add(target.id)
                self._drop({target.id})
            elif task is not None:
                self.current = None
                self.tasks = deque(one for one in self.tasks if one.thing != target.id)
        self.kept |= {one.id for ref in intent.protected for one in self.seen.fitting(ref)}
        self._supersede(orders)
        questions, waiting = len(self.questions), list(self.tasks)
        said = self._do(orders, now_ns)
        later = [one.text for one in (self.current, *self.tasks) if one and one.text and one not in waiting]
        if len(self.questions) > questions or not later:
            return ["Stopped.", *said]
        return [told_as_paused(later)]

    def _ask_whether(self, ids: set[str], now_ns: int, calls: tuple[SkillCall, ...] = ()) -> list[str]:
        """Hold what is to be done with these, and ask whether it still is: something was said of them."""
        held_back = self._held_back(ids)
        calls = calls or held_back
        if not calls:
            return []
        text = f"Shall I still {list_words([one.text or one.skill for one in calls])}?"
        self.at_stop = text
        return self._ask(OpenQuestion("yes", text, now_ns, tasks=calls))

    def _held_back(self, ids: set[str]) -> tuple[SkillCall, ...]:
        """What is to be done with these, and is not done before a question is answered."""
        calls = tuple(one for one in (self.current, *self.tasks) if one is not None and one.thing in ids)
        self._drop(ids)
        return calls

    def _hear_wrong(self, text: str, plain: str, now_ns: int) -> list[str] | None:
        if not phrases.says_wrong(plain) or text.rstrip().endswith("?"):
            return None
        if self.current is not None and (intent := self._understood(text)).unnamed:
            return self._keep(intent, now_ns)  # "Wrong one."
        place = self.seen.place_in(plain)
        if not self.deeds and self.current is None:
            return ["I have not done anything yet that I could take back."]
        deed = self.deeds[-1] if self.deeds else CompletedCall(SkillCall(""), "")
        held = next((one for one in self.seen.things() if self.seen.is_held(one.id)), None)
        if held is not None:  # what is in the hand goes back first, and not what was done before
            home = self.origin if self.current is not None else deed.origin
            deed = CompletedCall(self._put(held, ""), home)
        elif self.current is not None and self.current.skill == "place" and not self.deeds:
            deed = CompletedCall(self.current, self.origin)
        thing = self.seen.thing(deed.task.thing)
        if thing is None or deed.task.skill not in ("place", "hand_over"):
            return ["I am sorry. I cannot take that back."]
        self.current = None
        self.tasks.clear()
        if place:
            self.habits[thing.label] = place
            return ["I am sorry. I will remember that.", *self._add([self._put(thing, place)], now_ns)]
        home = deed.origin or "table"
        if phrases.wants_back(plain):
            return ["I am sorry.", *self._add([self._put(thing, home)], now_ns)]
        asked = f"I am sorry. I take it back. Where does the {thing.name} go?"
        self._ask(OpenQuestion("place", asked, now_ns, tasks=(self._put(thing, ""),)))
        return [asked, *self._add([self._put(thing, home)], now_ns)]

    def _hear_answer(self, text: str, plain: str, now_ns: int) -> list[str] | None:
        if not self.questions:
            return None
        clauses = self._clauses(text)
        if any(clause.type == "question" for clause in clauses):
            return None  # "Where is the red mug?" answers nothing.
        place = "" if text.rstrip().endswith("?") else self.seen.place_in(phrases.without_denied(plain))
        asked = self._open("place")
        if asked is not None and place and len(plain.split()) < 12:
            return self._answer_place(asked, place, now_ns)
        which = self._open("which")
        if which is not None and not any(clause.type == "protect" for clause in clauses):
            said = self._answer_which(which, text, plain, place, now_ns)
            if said is not None:
                return said
        asked = self._open("yes")
        return None if asked is None else self._answer_whether(asked, text, plain, now_ns)

    def _answer_place(self, asked: OpenQuestion, place: str, now_ns: int) -> list[str]:
        self.questions.remove(asked)
        thing = self.seen.thing(asked.tasks[0].thing)
        if thing is None:
            return ["I do not see it any more."]
        self.habits[thing.label] = place
        self.tasks = deque(one for one in self.tasks if one.thing != thing.id)
        return ["All right.", *self._add([self._put(thing, place)], now_ns)]

    def _answer_which(self, which: OpenQuestion, text: str, plain: str, place: str, now_ns: int) -> list[str] | None:
        """One of the choices, or all of them, by name, by what it is not, by its place, by a finger."""
        barred = phrases.barred(plain)
        left = [one for one in which.choices if not any(self.seen.is_named(one, word) for word in barred)]
        chosen = [one for one in left if self.seen.is_named(one, plain)]
        if not chosen and len(left) < len(which.choices):
            chosen = left  # "Not the red one."
        there = [one for one in left if place and self.seen.place_of(one) == place]
        if not chosen and len(there) == 1 and not any(clause.type == "order" for clause in self._clauses(text)):
            chosen = there  # "The one on the table."
        pointed = self._pointed(now_ns)
        if not chosen and pointed in which.choices and phrases.points_out(plain):
            chosen = [pointed]
        if not chosen and ANY_OF_THEM.match(plain):
            chosen = left[:1]
        if not chosen and phrases.means_all(plain):
            first, *others = which.choices
            order = which.order
            said = self._choose(which, first, now_ns)
            for one in others if order is not None else ():
                said += self._choose(replace(which, order=order), one, now_ns)
            return said
        if len(chosen) != 1:
            return None
        which, has_more = self._changed(which, text)
        later = ["Tell me the rest when I am done."] if has_more else []
        return [*self._choose(which, chosen[0], now_ns), *later]

    def _answer_whether(self, asked: OpenQuestion, text: str, plain: str, now_ns: int) -> list[str] | None:
        clauses, is_yes = self._clauses(text), phrases.yes_or_no(text, plain)
        if is_yes and any(clause.condition or clause.verb == "wait" for clause in clauses):
            is_yes = False  # "Yes, but not now."
        intent = self._understood(text)
        if is_yes is None and intent.unnamed and all(what.how == "shown" and not what.label for what in intent.unnamed):
            is_yes = False  # "Do not take it."
        if is_yes is False and any(clause.type == "protect" for clause in clauses):
            about = {one.thing for one in asked.tasks}
            named = [ref for ref in intent.protected if ref.label or ref.colour]
            if named and not any(one.id in about for ref in named for one in self.seen.fitting(ref)):
                # "I am still eating the apple" is no answer about a glass
                said = self._answer_yes(False, now_ns) if phrases.says_no(plain) else []
                return [*said, *self._keep(intent, now_ns)]
        return None if is_yes is None else self._answer_yes(is_yes, now_ns)

    def _changed(self, which: OpenQuestion, text: str) -> tuple[OpenQuestion, bool]:
        """The question with what its answer orders instead ("Put the red one on the shelf"); whether more is said."""
        asked, clauses = which.order, [one for one in self._clauses(text) if one.type == "order" or one.nouns]
        if asked is None or not any(clause.type == "order" for clause in clauses):
            return which, False
        if len(clauses) > 1:
            return which, True
        told = self._understood(text).orders[:1]
        new = next((one for one in told if one.place or one.skill not in ("pick", "take")), None)
        if new is None or (new.skill == asked.skill and not new.place):
            return which, False
        order = Order(new.skill, asked.things, asked.excluding, new.place, new.relation)
        self.questions = [replace(one, order=order) if one == which else one for one in self.questions]
        return replace(which, order=order), False

    def _understood(self, text: str) -> Intent:
        return understand_in(text, self.world.world, self.talk, parser_of(self.world.world))[0]

    def _clauses(self, text: str) -> list[Clause]:
        return parser_of(self.world.world).clauses(text)

    def _hear_recipe(self, text: str, plain: str, now_ns: int) -> list[str] | None:
        if phrases.is_without_cream(plain) and (self.is_for_coffee or not phrases.speaks_of_coffee(plain)):
            self.wishes.add("without cream")
            self.tasks = deque(one for one in self.tasks if one.place != "cream dispenser")
            if self.current is not None and self.current.place == "cream dispenser":
                self.current = None
                return ["All right, without cream.", *self._next(now_ns)]
            return ["All right, without cream."]
        if self._is_wished(text, phrases.wants_coffee):
            return self._brew(text, plain, now_ns)
        return self._drink(now_ns) if self._is_wished(text, phrases.wants_drink) else None

    def _brew(self, text: str, plain: str, now_ns: int) -> list[str]:
        recipe, spared = household().recipes["coffee"], self._spared(text, self._understood(text))
        mugs = [one for one in self.seen.things() if one.label == recipe.vessel and is_empty(one) and not is_dirty(one)]
        denied = phrases.barred_vessels(plain)
        mugs = [one for one in mugs if one.id not in spared and one.colour not in denied]
        mugs = [one for one in mugs if one.colour in plain.split()] or mugs
        if not mugs:
            return [f"I see no clean {recipe.vessel} for a coffee. Could you put one on the table?"]
        wanted, extras = phrases.cups_of_coffee(plain), phrases.put_into_coffee(plain)
        is_black = phrases.is_without_cream(plain) or bool(extras and "cream" not in extras)
        mugs = mugs[:wanted]
        self.is_for_coffee = True
        machines = [one for one in recipe.machines if not (is_black and one.startswith("cream"))]
        steps = []
        for mug in mugs:
            for machine in machines:
                steps += [self._put(mug, machine), SkillCall("wait_here", mug.id, machine, f"wait at the {machine}")]
            steps.append(SkillCall("hand_over", mug.id, "", f"give you the {mug.name}"))
        missing = [one for one in extras if one not in ("cream", recipe.vessel)]
        if missing:
            text = f"I have no {list_words(missing, 'and no')}. Shall I leave that out?"
            return self._ask(OpenQuestion("yes", text, now_ns, tasks=tuple(steps)))
        names = list_words([f"the {mug.name}" for mug in mugs])
        what = "a coffee" if len(mugs) == 1 else f"{len(mugs)} coffees"
        fewer = f" I see no clean {recipe.vessel} for more." if len(mugs) < wanted else ""
        said = f"Sure, {what}{'' if is_black else ' with cream'}, in {names}.{fewer}"
        return [said, *self._add(steps, now_ns)]

    def _drink(self, now_ns: int) -> list[str]:
        full = [one for one in self.seen.things() if "full" in one.state or one.label == "bottle"]
        if not full:
            return ["I see nothing to drink."]
        thing = full[0]
        return self._add([SkillCall("hand_over", thing.id, "", f"bring you the {thing.name}")], now_ns)

    def _hear_chore(self, text: str, plain: str, now_ns: int) -> list[str] | None:
        intent = self._understood(text)
        spared = self._spared(text, intent)
        things = [one for one in self.seen.things() if one.id not in spared]
        if self._is_wished(text, phrases.wants_dishes):
            dirty = [one for one in things if one.label in ("mug", "glass", "plate", "bowl") and is_dirty(one)]
            return self._wash(dirty, now_ns)
        is_fruit = self._is_wished(text, phrases.wants_fruit_washed)
        fruit = [one for one in things if one.label in FRUIT] if is_fruit else []
        if self._is_wished(text, phrases.wants_table_cleared, of_things=False):
            said = (
                ["Sure. I will wash the fruit and clear the table."] if is_fruit else ["Sure. I will clear the table."]
            )
            if fruit:
                said += self._wash(fruit, now_ns, is_silent=True)
            apart = [one for one in intent.orders if one.skill in ("place", "hand_over", "put_back") and one.things]
            apart = apart if intent.deed == "do" else []  # "Clear the table, but put the glass on the shelf."
            named = {one.id for order in apart for ref in order.things for one in self.seen.fitting(ref)}
            said += self._tidy("table", spared | named | {one.id for one in fruit}, now_ns)
            return said + self._do(apart, now_ns)
        return self._wash(fruit, now_ns) if is_fruit else None

    def _is_wished(self, text: str, matches: Callable[[str], bool], *, of_things: bool = True) -> bool:
        """Whether the words of a chore are an order: not forbidden, asked about, told of, or bound to a condition.

        Where no clause by itself has the words, all of the sentence may, unless it forbids or asks anything. Without
        `of_things`, it is no chore where a thing is named: "clean the plate".
        """
        if not matches(phrases.plain(text)):
            return False
        clauses = self._clauses(text)
        meant = [clause for clause in clauses if matches(" ".join(clause.words))]
        is_safe = not any(
            clause.type in ("question", "unsure") or clause.is_negated or clause.condition for clause in clauses
        )
        types = ("order", "unknown", "fragment") if of_things else ("order", "unknown")
        ordered = [clause for clause in meant if clause.type in types]
        if not of_things:
            ordered = [one for one in ordered if not any(noun.kind not in ("", "*") for noun in one.nouns)]
        is_ordered = bool(ordered) and not any(clause.is_negated or clause.condition for clause in ordered)
        return is_ordered or (is_safe and not meant)

    def _spared(self, text: str, intent: Intent) -> set[str]:
        """Ids of what the sentence excepts, forbids or keeps."""
        clauses = self._clauses(text)
        named = [noun for clause in clauses for noun in (*clause.excepts, *clause.nots) if noun.kind or noun.colour]
        left = [noun for clause in clauses if clause.verb in ("leave", "touch") for noun in clause.nouns if noun.kind]
        spared = [
            *intent.protected,
            *intent.taken,
            *(Reference(label=one.kind, colour=one.colour) for one in (*named, *left)),
        ]
        return self.kept.union(one.id for ref in spared for one in self.seen.fitting(ref))

    def _wash(self, things: Sequence[SeenObject], now_ns: int, *, is_silent: bool = False) -> list[str]:
        if not things:
            return ["I see nothing that has to be washed."]
        said = [] if is_silent else [f"Sure. I will wash {list_words([f'the {one.name}' for one in things])}."]
        for one in things:
            said += self._add(self._rinse(one), now_ns, asks_first=one)
        return said

    def _steps(self, skill: str, thing: SeenObject, place: str) -> list[SkillCall]:
        return self._rinse(thing) if skill == "rinse" else [call_of(skill, thing, place, self.seen)]

    def _rinse(self, thing: SeenObject) -> list[SkillCall]:
        to = self.habits.get(thing.label) or household().washed_to.get(thing.label, "countertop")
        return [
            SkillCall("rinse", thing.id, "sink", f"wash the {thing.name}"), self._put(thing, to)
        ]  # fmt: skip

    def _tidy(self, place: str, skip: set[str], now_ns: int) -> list[str]:
        said: list[str] = []
        for thing in self.seen.things():
            if self.seen.place_of(thing.id) == place and thing.id not in skip:
                said += self._add(self._stow(thing), now_ns, asks_first=thing)
        return said

    def _stow(self, thing: SeenObject) -> list[SkillCall]:
        """To where it belongs; a place that is still to be asked for is ""."""
        belongs = self.habits.get(thing.label) or household().belongs.get(thing.label, "")
        return [self._put(thing, belongs)]

    def _hear_order(self, written: str, text: str, speaker: str, now_ns: int) -> list[str]:
        written = phrases.without_you(written)
        world, before = self.world.world, self.talk.orders
        intent, self.talk = understand_in(written, world, self.talk, parser_of(world))
        if phrases.puts_away(written) and intent.orders and not intent.orders[0].place:
            waiting = list(self.tasks)
            return self._told_later(self._put_away(intent.orders[0], now_ns), waiting)
        named = self._named_under_way(intent)
        doubted = self._doubted(intent, written, named)
        match intent.deed:
            case "do" if intent.protected and self.tasks and _is_same_order(intent.orders, before):
                return self._keep(intent, now_ns)  # "But not the blue one."
            case "do" if against := self._against(intent, speaker, now_ns):
                return against
            case "do":
                self.by = speaker
                return self._take_orders(intent, written, now_ns)
            case "ask" | "refuse" if doubted:
                told = [] if named == doubted and intent.why == "what" else [why_not(intent, self.world)]
                return told + self._hold(doubted, now_ns)
            case "ask":
                return self._asks(intent, written, now_ns)
            case "refuse":
                return [why_not(intent, self.world)]
            case "answer":
                return [self._answered(text, intent)]
        if intent.what == "no" and (self.questions or self.current is None):
            return self._leave_it(now_ns)
        if intent.taken and self.current is None:
            intent = msgspec.structs.replace(intent, protected=(*intent.protected, *intent.taken))
        if intent.protected or intent.unnamed:
            return self._keep(intent, now_ns)
        if intent.released:
            self.kept -= {one.id for ref in intent.released for one in self.seen.fitting(ref)}
            return ["All right."]
        if intent.why in ("cancelled", "declined"):
            return self._leave_it(now_ns)
        if intent.why in ("told", "") and named:
            return self._hold(named, now_ns)
        is_forbidden = any(clause.is_negated or clause.type == "protect" for clause in self._clauses(text))
        return ["All right, I leave that."] if is_forbidden else [remark(intent)]

    def _doubted(self, intent: Intent, written: str, named: set[str]) -> set[str]:
        """Ids of what is not gone on with where the words can be neither done nor read: "No, bring it to Ben."."""
        if named and not any(one.skill for one in intent.orders):
            return named
        if forbids_ordered(intent, self._clauses(written)):  # "Not the red one."
            return set()
        under_way = {one.thing for one in (self.current, *self.tasks) if one is not None and one.thing}
        return under_way if objects(intent, self._clauses(written)) else set()

    def _take_orders(self, intent: Intent, written: str, now_ns: int) -> list[str]:
        self.kept |= {one.id for ref in intent.protected for one in self.seen.fitting(ref)}
        dropped = self._narrow(intent)
        self._supersede(intent.orders)
        if phrases.tells_where_kinds_go(written):
            kinds = [(ref, order.place) for order in intent.orders for ref in order.things]
            self.habits |= {ref.label: place for ref, place in kinds if ref.label and not ref.colour and place}
        waiting = list(self.tasks)
        if dropped and any(ref.count > 1 for order in intent.orders for ref in order.things):
            return [*dropped, *self._next_if_idle(now_ns)]
        return [*dropped, *self._told_later(self._do(intent.orders, now_ns), waiting)]

    def _answered(self, text: str, intent: Intent) -> str:
        doing = self._told_of(self.current) if self.current is not None else None
        done = self.deeds[-1].task if self.deeds else None
        moved = done is not None and done.skill == "place"
        last = None if done is None else Finished(order := self._told_of(done), order.things if moved else ())
        return answer(text, intent, self.world.scene, self.world.skills, doing, last, self.by)

    def _named_under_way(self, intent: Intent) -> set[str]:
        """Ids of what is worked on, or still to be, of what something was said."""
        working = [self._told_of(one) for one in (self.current, *self.tasks) if one is not None and one.thing]
        target = self.seen.thing(self.current.thing) if self.current is not None else None
        told, scene = intent.told_of, self.world.scene
        return {one.id for order in working for one in named_under_way(told, order, scene, target)}

    def _hold(self, ids: set[str], now_ns: int) -> list[str]:
        """Ask whether what was named is still to be done; nobody has stopped the robot."""
        asked = self._ask_whether(ids, now_ns)
        self.at_stop = ""
        return asked + self._next_if_idle(now_ns)

    def _against(self, intent: Intent, speaker: str, now_ns: int) -> list[str]:
        """Hold, and ask which is meant, where somebody else has ordered to bring the same thing to another place."""
        under_way = [one for one in (self.current, *self.tasks) if one is not None and one.skill == "place"]
        said: list[str] = []
        for order in intent.orders if self.by not in ("", speaker) and not self.questions else ():
            is_elsewhere = (order.skill == "place" and order.place) or order.skill == "hand_over"
            found = [self.seen.fitting(ref) for ref in order.things if is_elsewhere]
            for thing in [things[0] for things in found if len(things) == 1]:
                first = next((one for one in under_way if one.thing == thing.id and one.place != order.place), None)
                if first is not None:
                    new = call_of(order.skill, thing, order.place, self.seen)
                    text = f"{self.by} said the {first.place}. Shall I {new.text} instead?"
                    self._drop({thing.id})
                    said += self._ask(OpenQuestion("yes", text, now_ns, tasks=(new,), instead=(first,)))
        return said + self._next_if_idle(now_ns) if said else said

    def _narrow(self, intent: Intent) -> list[str]:
        """ "Only the red one", "first the red, then the blue": the rest of what was ordered is dropped, and said."""
        if not intent.is_correction or intent.is_addition:
            return []
        ways = {(order.skill, order.place) for order in intent.orders}
        under_way = [one for one in (self.current, *self.tasks) if one is not None and (one.skill, one.place) in ways]
        meant: set[str] = set()
        for order in intent.orders:
            for ref in order.things:
                fitting = [one.id for one in self.seen.fitting(ref)]
                left = [one.thing for one in under_way if one.thing in fitting]
                there = sum(self.seen.place_of(one) == order.place for one in fitting)
                meant.update(fitting if ref.count <= 1 else left[: max(ref.count - there, 0)])  # "Only two of them."
        if self.current is None and not self.tasks and self.deeds:
            return self._take_back(meant)
        dropped = list(dict.fromkeys(one.thing for one in under_way if one.thing not in meant))
        self._drop(set(dropped))
        return [f"I leave {list_words([f'the {self.seen.name(one)}' for one in dropped])}."] if dropped else []

    def _take_back(self, meant: set[str]) -> list[str]:
        """ "No, the blue one", of what has just been brought: that goes back to where it stood, first of all."""
        deed = self.deeds[-1]
        thing = self.seen.thing(deed.task.thing)
        kinds = {one.label for one in self.seen.things() if one.id in meant}
        is_instead = thing is not None and thing.id not in meant and kinds == {thing.label}
        if thing is None or not is_instead or deed.task.skill != "place":
            return []
        self.tasks.append(self._put(thing, deed.origin or "table"))
        return [f"Sorry. I take the {thing.name} back."]

    def _told_later(self, said: list[str], waiting: Sequence[SkillCall]) -> list[str]:
        """What was said, or else what waits now beside what waited before."""
        later = [one.text for one in self.tasks if one not in waiting and one.text]
        if any(said):
            return said
        return [f"All right. Then I will {list_words(later)}." if later else "All right."]

    def _told_of(self, task: SkillCall) -> Order:
        """A task as an order, for who asks about it."""
        thing = self.seen.thing(task.thing)
        things = () if thing is None else (Reference(label=thing.label, colour=thing.colour),)
        return Order(task.skill, things, (), task.place, self.seen.relation(task.place) if task.place else "")

    def _supersede(self, orders: Sequence[Order]) -> None:
        """What is to be brought elsewhere now is not brought where it was to go before."""
        moved = [ref for order in orders if order.skill in ("place", "hand_over", "put_back") for ref in order.things]
        fitting = [self.seen.fitting(ref) for ref in moved]
        ids = {one.id for things in fitting if len(things) == 1 for one in things}
        self.tasks = deque(one for one in self.tasks if one.thing not in ids or one.skill != "place")
        meant = ids.union(
            one.id for ref, things in zip(moved, fitting, strict=True) if ref.count != 1 for one in things
        )
        self.questions = [one for one in self.questions if one.about != "which" or not meant.issuperset(one.choices)]
        if self.current is not None and self.current.thing in ids and self.current.skill in ("place", "hand_over"):
            self.current = None  # "No, on the tray."

    def _keep(self, intent: Intent, now_ns: int) -> list[str]:
        """Leave alone what is meant, or ask which that is."""
        target = self.seen.thing(self.current.thing) if self.current is not None else None
        kept = [one for ref in intent.protected if not is_vague(ref) for one in self.seen.fitting(ref)]
        unseen = [ref for ref in intent.protected if not self.seen.fitting(ref)]
        said: list[str] = []
        for what in spared_by(intent):
            found = referents(what, None, self.world.scene, target)
            shown = self.seen.thing(self._pointed(now_ns))  # a moment ago too
            if shown is not None and what.how in ("shown", "described") and what.label in ("", shown.label):
                kept.append(shown)
            elif found.is_clear or 0 < len(found.things) <= what.count:
                kept += found.things
            elif found.things:
                worked_on = [one.thing for one in (self.current, *self.tasks) if one is not None]
                open_ones = [one.id for one in found.things]
                choices = tuple([one for one in open_ones if one in worked_on] or open_ones)
                said += self._ask_which_to_leave(choices, now_ns)
        names = [one.name for one in kept] + [f"{one.colour} {one.label}".strip() for one in unseen]
        told = f"All right, I leave {list_words([f'the {name}' for name in dict.fromkeys(names)])}."
        return [*([told] if names else []), *self._leave_alone({one.id for one in kept}, now_ns), *said]

    def _leave_alone(self, ids: set[str], now_ns: int) -> list[str]:
        was_busy = self.current is not None
        self.kept |= ids
        self._drop(ids)
        said = self._next_if_idle(now_ns) if was_busy and self.current is None else []
        for asked in [one for one in self.questions if one.about == "which" and ids & set(one.choices)]:
            self.questions.remove(asked)
            left = tuple(one for one in asked.choices if one not in ids)
            if asked.order is not None and asked.order.skill == LEAVE:
                said += self._add([one for one in asked.tasks if one.thing not in ids], now_ns)
            elif len(left) == 1:  # "I am drinking from the red one."
                said += self._choose(asked, left[0], now_ns)
            elif left:
                self.questions.append(replace(asked, choices=left))
        return said

    def _leave_it(self, now_ns: int) -> list[str]:
        """ "Never mind": the question that is open, or else what is being done."""
        asked = next((one for one in reversed(self.questions) if one.about != "help"), None)
        if asked is not None:
            self.questions.remove(asked)
        elif self.current is not None:
            self.tasks.clear()
            self._drop({self.current.thing})
        else:
            return ["All right."]
        return ["All right, I leave it.", *self._next_if_idle(now_ns)]

    def _asks(self, intent: Intent, written: str, now_ns: int) -> list[str]:
        if forbids_ordered(intent, self._clauses(written)):
            return self._keep(intent, now_ns)
        if intent.orders and intent.why == "where" and not intent.what and intent.orders[0].things:
            return self._put_away(intent.orders[0], now_ns)
        if intent.why == "protected" and self.kept:
            kept = [one.id for order in intent.orders for ref in order.things for one in self.seen.fitting(ref)]
            if len(kept) == 1 and self.kept.issuperset(kept):
                self.talk = replace(self.talk, question=None, awaits="")  # the question is asked, and answered, here
                return self._do(intent.orders, now_ns)
        return [question(intent, self.world.scene, self.world.world)]

    def _put_away(self, order: Order, now_ns: int) -> list[str]:
        said: list[str] = []
        for reference in order.things:
            things, asked = self._meant(reference, order, now_ns)
            said += asked
            for thing in things:
                said += self._add(self._stow(thing), now_ns, asks_first=thing)
        return said

    def _do(self, orders: Iterable[Order], now_ns: int) -> list[str]:
        said: list[str] = []
        for order in orders:
            said += self._order(order, now_ns)
        return said

    def _order(self, order: Order, now_ns: int) -> list[str]:
        skill = order.skill
        if skill == "undo":
            return self._hear_wrong("", "wrong, take it back", now_ns) or []
        if skill in ("wait", "stop"):
            self.is_paused = skill == "wait"
            if skill == "stop":
                self.tasks.clear()
                self.current = None
            return ["I wait until you tell me." if skill == "wait" else "All right, I stop that."]
        if skill == "wipe":
            return self._wipe(order.place or "table", now_ns)
        if not order.things:
            return self._add(
                [
                    SkillCall(
                        {"wait": "hold"}.get(skill, skill),
                        "",
                        order.place,
                        f"{skill}{' to the ' if order.place else ''}{order.place}",
                    )
                ],
                now_ns,
            )
        said: list[str] = []
        for reference in order.things:
            things, asked = self._meant(reference, order, now_ns)
            said += asked
            for thing in things:
                steps = self._steps(skill, thing, order.place)
                if skill == "place" and order.relation == "beside":
                    there = f"{self.seen.relation(order.place)} there"
                    text = f"I cannot put it beside the {order.place}. Shall I put it {there}?"
                    said += self._ask(OpenQuestion("yes", text, now_ns, tasks=tuple(steps)))
                    continue
                if skill in ("take", "pick") and self.seen.is_held_by_person(thing.id):
                    steps = self._stow(thing)
                said += self._add(steps, now_ns, asks_first=thing)
        return said

    def _wipe(self, place: str, now_ns: int) -> list[str]:
        sponge = next((one for one in self.seen.things() if one.label == "sponge"), None)
        if sponge is None:
            order = Order("wipe", (Reference(label="sponge"),), (), place)
            return self._ask(
                OpenQuestion("thing", "I do not see a sponge. Could you put one on the table?", now_ns, order=order)
            )
        said = [f"Sure. I will wipe the {place}."]
        wide = [
            one for one in self.seen.things() if self.seen.place_of(one.id) == place and one.width_m > GRASP_WIDTH_M
        ]
        for one in wide:
            said += self._ask_for_help(
                SkillCall("place", one.id, "countertop" if place != "countertop" else "table"), one, now_ns
            )
        home = self.seen.place_of(sponge.id) or "countertop"
        steps = [
            SkillCall("wipe", sponge.id, place, f"wipe the {place}"),
            self._put(sponge, home if home != place else "countertop"),
        ]
        if wide:
            self.tasks.extend(steps)
            return said
        return said + self._add(steps, now_ns)

    # --- what is meant

    def _meant(self, reference: Reference, order: Order, now_ns: int) -> tuple[list[SeenObject], list[str]]:
        """The things, or what to ask."""
        excluded = [one.id for ref in order.excluding for one in self.seen.fitting(ref)]
        found = [one for one in self.seen.fitting(reference) if one.id not in excluded and one.id not in self.kept]
        found = [one for one in found if not order.place or self.seen.place_of(one.id) != order.place] or found
        kept = [one for one in self.seen.fitting(reference) if one.id in self.kept and one.id not in excluded]
        if not found and len(kept) == 1:
            text = f"I was asked to leave the {kept[0].name}. Shall I take it now?"
            steps = tuple(self._steps(order.skill, kept[0], order.place))
            return [], self._ask(OpenQuestion("yes", text, now_ns, tasks=steps))
        if not found:
            words = f"{reference.colour} {reference.label}".replace("*", "thing that I could take").strip()
            words = f"{'an' if words[:1] in tuple('aeiou') else 'a'} {words}"
            asked = OpenQuestion(
                "thing", f"I do not see {words}. Could you put it on the table for me?", now_ns, order=order
            )
            return [], self._ask(asked)
        if reference.count == ALL or len(found) == 1 or reference.label == "*":
            return found, []
        if reference.count > len(found):
            return found, [f"I see only {list_words([f'the {one.name}' for one in found])}."]
        if reference.count > 1 or reference.is_any:
            return found[: max(reference.count, 1)], []
        pointed = next((one for one in found if one.id == self._pointed(now_ns)), None)
        if pointed is not None:
            return [pointed], []
        held = [one for one in found if self.seen.is_held_by_person(one.id)]
        if order.skill == "take" and held:
            return held[:1], []
        names = [f"the {one.name}" for one in found]
        asked = OpenQuestion(
            "which", f"Which {reference.label} do you mean, {list_words(names, 'or')}?", now_ns,
            order=about_alone(order, (reference,)), choices=tuple(one.id for one in found),
        )  # fmt: skip
        return [], self._ask(asked)

    def _choose(self, asked: OpenQuestion, chosen: str, now_ns: int) -> list[str]:
        self.questions = [one for one in self.questions if one != asked]
        thing, order = self.seen.thing(chosen), asked.order
        if thing is None or order is None:
            return []
        if order.skill == LEAVE:
            others = self._add([one for one in asked.tasks if one.thing != thing.id], now_ns)
            return [f"All right, I leave the {thing.name}.", *others, *self._leave_alone({thing.id}, now_ns)]
        if order.skill == "place" and not order.place:
            return self._add(self._stow(thing), now_ns, asks_first=thing)
        return self._add(self._steps(order.skill, thing, order.place), now_ns, asks_first=thing)

    def _answer_yes(self, is_yes: bool, now_ns: int) -> list[str]:
        asked = self._open("yes")
        assert asked is not None
        self.questions.remove(asked)
        if not is_yes and asked.instead:
            return ["All right.", *self._add(list(asked.instead), now_ns)]
        if not is_yes:
            self.kept |= {one.thing for one in asked.tasks}
            return ["All right, I leave it.", *self._next_if_idle(now_ns)]
        self.kept -= {one.thing for one in asked.tasks}
        return ["All right.", *self._add(list(asked.tasks), now_ns)]

    def _next_if_idle(self, now_ns: int) -> list[str]:
        return self._next(now_ns) if self.current is None else []

    def _spelled_out(self, plain: str, speaker: str) -> str:
        """The sentence with "this one", "my mug" and other names as what they mean here."""
        held = self.seen.held_by_people()
        shown = self.seen.thing(self.pointed[0]) if self.pointed[0] else next(iter(held), None)
        own = [one for one in self.seen.things() if one.owner == speaker]
        return phrases.spelled_out(plain, own, shown, held)

    # --- tasks

    def _add(self, steps: list[SkillCall], now_ns: int, *, asks_first: SeenObject | None = None) -> list[str]:
        """Take tasks on, once what has to be asked before is asked."""
        if not steps:
            return []
        first = steps[0]
        thing = self.seen.thing(first.thing)
        if first.skill == "place" and not first.place and thing is not None:
            text = f"Where {'do the cookies' if thing.label == 'cookie jar' else f'does the {thing.name}'} go?"
            return self._ask(OpenQuestion("place", text, now_ns, tasks=(first,)))
        if (
            thing is not None
            and thing.width_m > GRASP_WIDTH_M
            and first.skill in ("place", "pick", "hand_over", "rinse")
        ):
            return self._ask_for_help(first, thing, now_ns)
        pours = first.skill == "rinse" or first.place in ("sink", "bin")
        if asks_first is not None and pours and not is_empty(asks_first):
            text = f"The {asks_first.name} is not empty. Are you finished with it? Shall I pour it away?"
            return self._ask(OpenQuestion("yes", text, now_ns, tasks=tuple(steps)))
        if self.current is None or any(one not in (self.current, *self.tasks) for one in steps):  # not a second time
            self.tasks.extend(steps)
        return self._next_if_idle(now_ns)

    def _ask_for_help(self, task: SkillCall, thing: SeenObject, now_ns: int) -> list[str]:
        name = thing.name
        what = f"put the {name} {self.seen.relation(task.place)} the {task.place}" if task.place else f"take the {name}"
        text = f"The {name} is too wide for my hand. Could you {what}, please?"
        return self._ask(OpenQuestion("help", text, now_ns, tasks=(task,), at_m=(thing.x_m, thing.y_m)))

    def _next(self, now_ns: int) -> list[str]:
        blocked = {one.tasks[0].thing for one in self.questions if one.about == "help"}
        if self.tasks and self.tasks[0].skill == "wipe" and any(
            self.seen.place_of(one) == self.tasks[0].place for one in blocked
        ):  # fmt: skip
            self.current = None
            return []
        if self.tasks and not self._bring_forward():
            self.current = None
            return []  # all that is left is where a person reaches now
        self.number += 1
        if not self.tasks:
            self.current = None
            done, self.done_names = self.done_names, []
            return [f"I am done: {list_words(done)}."] if done and not self.questions else []
        self.current = task = self.tasks.popleft()
        self.origin = self.seen.place_of(task.thing) or self.origin
        if task.skill == "wait_here":
            return [f"The {task.place} is filling the {self.seen.name(task.thing)}."]
        return [f"I will {task.text}."] if task.text else []

    def _bring_forward(self) -> bool:
        """Whether there is a task away from what a person was asked to take; it comes first then."""
        helped = [self.seen.thing(one.tasks[0].thing) for one in self.questions if one.about == "help"]
        waiting: set[str] = set()
        for task in self.tasks:
            thing = self.seen.thing(task.thing)
            is_near = thing is not None and any(
                math.dist((thing.x_m, thing.y_m), (one.x_m, one.y_m)) < KEEP_OFF_M
                for one in helped
                if one is not None and one.id != thing.id
            )
            if not is_near and task.thing not in waiting:
                self.tasks.remove(task)
                self.tasks.appendleft(task)
                return True
            waiting.add(task.thing)
        return False

    def _finished(self, task: SkillCall, now_ns: int) -> list[str]:
        self.deeds.append(CompletedCall(task, self.origin))
        if task.text and task.skill != "wait_here":
            self.done_names.append(task.text)
        return self._next(now_ns)

    def _failed(self, task: SkillCall, description: SceneDescription, now_ns: int) -> list[str]:
        self.current, why = None, description.why
        thing = self.seen.thing(task.thing)
        if thing is None:
            return [f"I have to leave that: {why}.", *self._next(now_ns)]
        where = where_are((thing,), self.world.scene)
        if description.code == "consent":
            return [f"Nobody said yes, so I do not {task.text or task.skill}. {where}", *self._next(now_ns)]
        near = "nearer to me" if description.code == "out_of_reach" else "where I can take it"
        text = f"I cannot get the {thing.name}: {why}. {where} Could you help me and put it {near}, please?"
        said = self._ask(OpenQuestion("help", text, now_ns, tasks=(task,), at_m=(thing.x_m, thing.y_m)))
        return [*said, *self._next(now_ns)]

    def _ask(self, asked: OpenQuestion) -> list[str]:
        again = [one for one in self.questions if one.about == asked.about and one.choices == asked.choices]
        self.questions = [
            one for one in self.questions if one not in again or not (one.choices or one.text == asked.text)
        ]
        self.questions.append(asked)
        return [asked.text]

    def _open(self, about: About) -> OpenQuestion | None:
        return next((one for one in reversed(self.questions) if one.about == about), None)

    def _drop(self, ids: set[str]) -> None:
        self.tasks = deque(one for one in self.tasks if one.thing not in ids)
        if self.current is not None and self.current.thing in ids:
            held = self.seen.thing(self.current.thing)
            self.current = None
            self.number += 1
            if held is not None and self.seen.is_held(held.id):
                self.tasks.appendleft(self._put(held, self.origin or "table"))

    def _put(self, thing: SeenObject, place: str) -> SkillCall:
        return call_of("place", thing, place, self.seen)

    def _pointed(self, now_ns: int) -> str:
        return self.pointed[0] if to_s(now_ns - self.pointed[1]) < POINTS_FOR_S else ""


def _is_same_order(orders: Sequence[Order], before: Sequence[Order]) -> bool:
    """Whether it is the last order again, with something left out."""
    last = [(one.skill, one.things, one.place) for one in before[-1:]]
    return [(one.skill, one.things, one.place) for one in orders] == last
