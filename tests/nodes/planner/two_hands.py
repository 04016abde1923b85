"""A table and a kitchen whose robot is two quick hands: people talk, the mind decides, things are moved.

Both play the product's own minds. A thing is taken in four seconds and brought in four more, so that a word may fall
while it is in the hand; a stop holds the hands, as the reflex does.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from nodes.interrupts.intent import understand
from nodes.msgs import Relation, Scene, SceneDescription, SeenObject, SeenPerson, Subtask
from nodes.planner.orders import Order, Surroundings
from nodes.planner.talk.dialogue import Dialogue
from nodes.planner.talk.household import household_of
from nodes.planner.words.referents import is_still_meant
from nodes.policy.hand_over import HAND_OVER
from nodes.policy.room_policy import KITCHEN_SPECS
from nodes.policy.skill_catalogue import SPECS
from runtime.clock import to_ns
from tests.nodes.planner.test_household import WORLD, scene_of
from tests.nodes.planner.test_rules import thing as table_thing

STEP_S = 4
Turn = str | int | tuple[str, str]
"""What Ann says, what somebody else says, or for how many seconds the hands work."""
PEOPLE = (SeenPerson(id="Ann", x_m=0.0, y_m=-1.3),)


def at(thing: SeenObject, x_m: float) -> SeenObject:
    return msgspec.convert({**msgspec.to_builtins(thing), "x_m": x_m}, SeenObject)


class TableHands:
    """Four cups, a ball and a bottle in a row, from the red cup on Ann's left on; a bin."""

    thing, goal = "cup", "in the bin"
    inside = frozenset({"bin"})

    def __init__(self, people: tuple[SeenPerson, ...] = PEOPLE) -> None:
        self.now_s, self.busy_s, self.people = 1, 0, people
        self.says: list[str] = []
        self.is_stopped = False
        self.origin = ""
        self.lay()
        self.where = {one.id: "table" for one in self.things}

    def lay(self) -> None:
        row = [(f"cup-{colour}", "cup", colour) for colour in ("red", "blue", "white", "green")]
        row += [("ball-1", "ball", "purple"), ("bottle-1", "bottle", "brown")]
        self.things = [at(table_thing(i, colour, label), -0.3 + 0.12 * n) for n, (i, label, colour) in enumerate(row)]
        self.places = [
            at(table_thing("bin", "teal", "bin", is_place=True), 0.6), table_thing("table", "", "table", is_place=True)
        ]  # fmt: skip
        self.mind = Dialogue()

    # --- the world

    def scene(self) -> Scene:
        relations = tuple(
            Relation(subject=thing, relation="held by" if place in ("robot", "person") else self._relation(place),
                     object=place)
            for thing, place in self.where.items()
        )  # fmt: skip
        return Scene(
            things=(*self.things, *self.places), relations=relations, people=self.people,
            kinds=("cup", "bowl", "block", "ball", "bottle"), places=tuple(one.label for one in self.places),
        )  # fmt: skip

    def _relation(self, place: str) -> Literal["in", "on"]:
        return "in" if place in self.inside else "on"

    def held(self) -> SeenObject | None:
        return next((one for one in self.things if self.where[one.id] == "robot"), None)

    def ends(self) -> dict[str, str]:
        """Where each thing is that does not stand on the table."""
        return {one.name: self.where[one.id] for one in self.things if self.where[one.id] != "table"}

    # --- the mind

    def around(self) -> Surroundings:
        return Surroundings(self.scene(), (*SPECS.values(), HAND_OVER.spec), self.held(), self.is_stopped)

    def subtask(self) -> Subtask | None:
        return self.mind.subtask

    def look(self) -> int:
        self.mind.around = self.around()
        return to_ns(self.now_s)

    def hear(self, text: str, speaker: str) -> str:
        return self.mind.hear(text, speaker, self.look())

    def told(self, description: SceneDescription) -> str:
        return self.mind.report(description, self.look())

    def waits(self) -> str:
        now_ns = self.look()
        return " ".join(text for text in (self.mind.see(now_ns), self.mind.tick(now_ns)) if text)

    def is_more(self, task: Subtask) -> bool:
        return any(one.count != 1 for one in task.things) or len(task.things) > 1

    def meant(self, task: Subtask) -> SeenObject | None:
        order = Order(task.skill, task.things, task.excluding, task.place, task.relation)
        return next((one for one in self.things if is_still_meant(one, order, self.scene())), None)

    # --- what happens

    def play(self, *turns: Turn) -> str:
        """All turns; what was said to the last words."""
        for turn in turns:
            if isinstance(turn, int):
                self.work(turn)
            else:
                speaker, text = turn if isinstance(turn, tuple) else ("Ann", turn)
                wants = understand(text).wants
                self.is_stopped = wants == "stop" or (self.is_stopped and wants != "resume")
                self.last = self.hear(text, speaker)
                self._say(self.last)
        return self.last

    def _say(self, text: str) -> None:
        if text:
            self.says.append(text)

    def work(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1
            self._say(self.waits())
            task = self.subtask()
            if task is None or task.state != "work" or self.is_stopped:
                self.busy_s = 0
                continue
            self.busy_s += 1
            if self.busy_s >= STEP_S:
                self.busy_s = 0
                self._step(task)

    def _step(self, task: Subtask) -> None:
        held, meant = self.held(), self.meant(task)
        if task.skill == "put_back" and held is not None:
            self.where[held.id] = self.origin
            meant = held
        elif held is not None and (meant is None or meant.id != held.id):
            self.where[held.id] = self.origin  # no longer wanted
            return
        elif held is None and meant is not None and task.skill in ("place", "pick", "hand_over"):
            self.origin, self.where[meant.id] = self.where[meant.id], "robot"
            if task.skill != "pick":
                return
        elif held is not None:
            self.where[held.id] = "person" if task.skill == "hand_over" else task.place
        if task.skill != "place" or meant is None or not self.is_more(task):
            self._say(self.told(SceneDescription(text="", subtask_id=task.id, progress="finished")))


class KitchenHands(TableHands):
    """Three mugs, an apple and a banana in a row, from the red mug on Ann's left on; a tray, a sink and more."""

    thing, goal = "mug", "on the tray"
    inside = frozenset(name for name, place in WORLD.places.items() if place.form == "box")

    def lay(self) -> None:
        row = [(f"mug-{colour}", "mug", colour) for colour in ("red", "blue", "white")]
        row += [("apple-1", "apple", "green"), ("banana-1", "banana", "yellow")]
        self.things = [at(table_thing(i, colour, label), -0.3 + 0.12 * n) for n, (i, label, colour) in enumerate(row)]
        self.places = [one for one in scene_of().things if one.is_place]
        self.mind = Dialogue(household=household_of("kitchen"))

    def around(self) -> Surroundings:
        return Surroundings(self.scene(), (*SPECS.values(), *KITCHEN_SPECS.values()), is_stopped=self.is_stopped)

    def scene(self) -> Scene:
        seen = super().scene()
        return Scene(
            things=seen.things, relations=seen.relations, people=seen.people, kinds=tuple(WORLD.kinds),
            places=seen.places,
        )  # fmt: skip

    def is_more(self, task: Subtask) -> bool:
        return False

    def meant(self, task: Subtask) -> SeenObject | None:
        wanted = {one.id for one in task.things if not (task.skill == "place" and self.where[one.id] == task.place)}
        return next((one for one in self.things if one.id in wanted), None)
