"""`VLMWork`: what the parts of a VLM make of each message: the subtask, what is to be left alone, the action under way.

It has no ports. What it wants done or said it gives to the node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from nodes.interrupts.intent import says_yes, understand
from nodes.msgs import (
    Action,
    Feedback,
    Interrupt,
    Reference,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
    aimed_at,
)
from nodes.planner.orders import Surroundings
from nodes.vlm.choice.deeds import Deeds
from nodes.vlm.choice.giving_up import MOST_TRIES, tried
from nodes.vlm.choice.hold import Event, Hold, LookRound
from nodes.vlm.choice.next_action import LOOK_ROUND, how_many, lost
from nodes.vlm.choice.situation import Decision, Situation
from nodes.vlm.choice.things import as_reference, is_meant_by
from nodes.vlm.parts import IMAGES_PER_GAZE, Belief, Choice, Moment, VLMEyes
from nodes.vlm.talk import SORRY, VlmTalk, WorkUnderWay
from runtime import to_ns

if TYPE_CHECKING:
    from nodes.vlm.node import VLM

WORDS_PER_S = 2.8
"""How fast people speak, where nobody heard when they began."""


class VLMWork:
    """Joins eyes, belief, choice and talk."""

    def __init__(
        self,
        eyes: VLMEyes,
        belief: Belief,
        talk: VlmTalk,
        choice: Choice,
        hold: Hold,
        looks_round: LookRound,
        node: VLM,
    ) -> None:
        self.eyes, self.belief, self.talk, self.choice = eyes, belief, talk, choice
        self.hold, self.looks_round, self.deeds = hold, looks_round, Deeds()
        self.task: Subtask | None = None
        self.vetoed: tuple[Reference, ...] = ()
        self._node = node
        self._retracted_ns: int | None = None  # when the robot was told to leave what it was doing
        self._reply = ""
        self._gazes = 0

    # --- what comes in

    def take(self, subtask: Subtask, published_ns: int | None, now: Moment) -> None:
        """A new subtask replaces the old one; the same one again changes nothing."""
        self.hold.told_how(subtask.listened_ns or published_ns)
        subtask = msgspec.structs.replace(subtask, listened_ns=0)  # type: ignore[type-var]  # a Struct
        if subtask == self.task:
            return
        self.hold.hear_of_yes("something else is to be done", now.now_ns)
        before, self.task = self.task, subtask
        if before is None or before.id != subtask.id:
            self.deeds.new_id()
        if before is None or not _is_same(before, subtask) or (before.state == "done" and subtask.state != "done"):
            self.deeds.new_work()
            self.belief.new_work()
            self.vetoed = ()
        self.act(now)

    def hear(self, utterance: Utterance, published_ns: int | None, now: Moment, *, is_persons: bool) -> None:
        """A correction changes the action under way at once; `is_persons`: a person says it."""
        meaning, is_answer = understand(utterance.text), self.eyes.hear(utterance)
        self.looks_round.is_spoken_to |= self.looks_round.is_armed and is_persons
        if self.hold.yes_state != "not asked" and says_yes(utterance.text):
            if is_persons:
                self.hold.hear_of_yes("person says yes", now.now_ns)
        elif meaning.wants != "nothing":
            self.hold.hear_of_yes("something else is to be done", now.now_ns)
        if meaning.wants != "stop" and self.task is not None and self.task.state == "work":
            self._amend(self.task, utterance, published_ns or now.now_ns, now)
        if is_answer or (meaning.lifts_stop and is_persons):
            self.hold.told_how()

    def _amend(self, task: Subtask, utterance: Utterance, published_ns: int, now: Moment) -> None:
        """What is to be left alone is left at once; the planner hears it too, and remembers it."""
        target, began_ns = self._target, utterance.captured_ns
        if began_ns is None:
            began_ns = now.now_ns - to_ns(len(utterance.text.split()) / WORDS_PER_S)
        around = Surroundings(self.belief.scene(now.now_ns), tuple((now.skills or {}).values()))
        heard = self.talk.hear(utterance, WorkUnderWay(task, around, target, began_ns, self._retracted_ns))
        self._reply += heard.says
        free = {(one.label, one.colour) for one in heard.released}
        vetoed = dict.fromkeys((*self.vetoed, *heard.left))
        self.vetoed = tuple(one for one in vetoed if (one.label, one.colour) not in free)
        if heard.is_for_plan:
            self.hold.wait(now.now_ns, published_ns)
            self.eyes.void()
            if self.deeds.is_running and self.deeds.doing is not None and self.deeds.doing.skill != "hold":
                self._carry_out(Decision("hold", "held", "holding still until there is a plan for the new order"), now)
        elif heard.left:
            if target is not None and any(is_meant_by(one, target) for one in heard.left):
                self._retracted_ns = now.now_ns
            self.act(now)

    @property
    def _target(self) -> SeenObject | None:
        """What the robot holds, or goes for to take it."""
        doing = self.deeds.doing
        return doing.target if doing is not None and doing.skill == "pick" else self.belief.holding

    def interrupted(self, interrupt: Interrupt, now: Moment) -> None:
        """A stop is the guard's to carry out; here it is answered, and afterwards everything is decided afresh."""
        if interrupt.depth == "stop":
            self._node.say("" if self.hold.is_stopped else SORRY)
            self.hold.is_taken_back = False
            self.stop_or_go("stop", now)
        elif interrupt.depth == "resume":
            self.hold.is_taken_back = interrupt.takes_back != ""
            self.stop_or_go("resume", now)
        elif interrupt.depth == "replan":
            self.hold.wait(now.now_ns)
            self.deeds.drop()
        if interrupt.depth in ("stop", "replan"):
            self.hold.hear_of_yes("something else is to be done", now.now_ns)

    def stop_or_go(self, event: Event, now: Moment) -> None:
        """After a stop: choose again from what is seen now; after a false alarm go on with what was being done."""
        if not self.hold.stop_or_go(event):
            return
        self._node.say("", again=True)
        if self.hold.is_taken_back and self.deeds.is_running:
            self.deeds.ask(now.now_ns)
            self.send_again()  # the same one, which a policy that knows it just goes on with
        else:
            self.deeds.drop(is_let_run=True)

    def afresh(self, now: Moment) -> None:
        """Decide afresh, with the next tick."""
        self.deeds.drop()
        self.hold.hear_of_yes("something else is to be done", now.now_ns)

    def learn(self, feedback: Feedback, now: Moment) -> None:
        """How the policy fares; a success or failure is acted on at once."""
        action = self.deeds.doing
        ending = self.deeds.learn(feedback, self.task.id if self.task is not None else "", now.now_ns)
        if action is None or not ending:
            return
        if ending == "looked":
            self.belief.images = 0
            self.belief.has_looked = self.belief.has_looked or feedback.status == "success"
        elif ending == "succeeded":
            self.deeds.succeeded(action, self.belief.holding, now.now_ns)
            self.belief.succeeded(action)
        elif ending == "asks":
            self.hold.hear_of_yes("policy asks", now.now_ns)
        else:
            self._failed(action, feedback.why, now)
        self.act(now)

    def _failed(self, action: Action, why: str, now: Moment) -> None:
        self._node.log.info("%s failed: %s", action.text, why)
        self.deeds.failed(action, why)
        self.belief.failed(action, is_grasping=now.is_grasping)

    # --- what is done about it

    def tick(self, now: Moment) -> SceneDescription:
        """Look and decide; what to tell the planner."""
        hold, deeds = self.hold, self.deeds
        now = replace(
            now,
            task=self.task,
            may_turn=self.looks_round.may_turn and not deeds.is_running and not hold.is_stopped,
            is_held=hold.is_stopped or hold.is_waiting or hold.yes_state != "not asked",
            is_asked=hold.yes_state == "asked",
        )
        self._look(now)
        if hold.has_no_yes(now.now_ns) and deeds.doing is not None:
            self._failed(deeds.doing, "nobody said yes", now)
        self._node.say(hold.lose_patience(now.now_ns))
        if not hold.is_stopped:
            deeds.drop_unanswered(now.now_ns)
        is_giving = now.is_giving and self.belief.holding is not None
        deeds.await_hand(now.now_ns, is_awaited=is_giving and self.belief.hand is None and not hold.is_stopped)
        decision = self.act(now)
        return self._described(decision, self.situation(now))

    def _described(self, decision: Decision, now: Situation) -> SceneDescription:
        """What the planner is told: what is done, seen and brought, and what went wrong."""
        task, objects = now.subtask, self.belief.objects
        names = ", ".join([thing.name for thing in objects] + list(self.belief.unplaced)) or "nothing"
        held = f" It holds the {now.holding.name}." if now.holding is not None else ""
        work = f" Subtask: {task.text}." if task is not None and task.text else ""
        return SceneDescription(
            text=f"The robot {_does(decision)}.{held}{work} It sees: {names}.",
            subtask_id=task.id if task is not None else "",
            progress=decision.progress,
            objects=objects,
            subtask=task,
            why=(decision.why or decision.text) if decision.progress in ("failed", "finished") else "",
            code=decision.code,
            target=self._target,
            left=now.vetoed,
            did=now.did,
            moved=tuple(map(as_reference, now.moved)),
            wanted=how_many(now),
            tried=tried(now),
            gone=tuple(map(as_reference, lost(now))),
        )

    def _look(self, now: Moment) -> None:
        looked = self.eyes.look(now)
        self._node.say(looked.say)
        if looked.is_yes and self.hold.yes_state == "asked":
            self.hold.hear_of_yes("person says yes", now.now_ns)
        if looked.gaze is not None:
            self._gazes += 1
            ident = f"{self._node.name}-gaze-{self._gazes}"
            self._node.send(Action(id=ident, skill="look", arguments=aimed_at(looked.gaze, "thing")))

    def situation(self, now: Moment) -> Situation:
        """All that choice knows."""
        skills, task, belief, deeds, hold = now.skills or {}, self.task, self.belief, self.deeds, self.hold
        may_look = not belief.has_looked and deeds.rounds < MOST_TRIES and self.looks_round.may_turn
        state = now.states[-1] if now.states else None
        return Situation(
            subtask=task, vetoed=self.vetoed, skills=skills, now_ns=now.now_ns, is_grasping=now.is_grasping,
            objects=belief.things(), relations=belief.relations, holding=belief.holding, moved=belief.moved,
            gone=belief.gone(), hand=belief.hand, palm_m=belief.palm_m,
            is_looking_over=belief.images >= IMAGES_PER_GAZE, is_to_look=may_look and LOOK_ROUND in skills,
            doing=deeds.doing, outcome=deeds.outcome, why=deeds.why, code=deeds.code, ended_ns=deeds.ended_ns,
            succeeded_ns=deeds.succeeded_ns, is_for_task=task is not None and deeds.done_for == task.id, did=deeds.did,
            failures=dict(deeds.failures), reasons=dict(deeds.reasons), steps=dict(deeds.steps), looks=deeds.looks,
            is_stopped=hold.is_stopped, is_waiting=hold.is_waiting, is_unconfirmed=hold.yes_state != "not asked",
            base=(state.base_x_m, state.base_y_m, state.base_heading_rad) if state is not None else (0.0, 0.0, 0.0),
        )  # fmt: skip

    def act(self, now: Moment) -> Decision:
        """Decide, and send what has changed."""
        return self._carry_out(self.choice(self.situation(now)), now)

    def _carry_out(self, decision: Decision, now: Moment) -> Decision:
        if decision.skill == "keep" and self.deeds.is_let_run and not self.hold.is_stopped:
            decision = replace(decision, skill="hold")  # a policy whose stop is lifted goes on by itself
        if decision.skill != "keep":
            task_id = self.task.id if self.task is not None else ""
            self._node.send(self.deeds.begin(decision, task_id, self._node.name, now.now_ns))
        reply, self._reply = self._reply, ""
        self._node.say(reply + decision.say)
        return decision

    def send_again(self) -> None:
        """Send the action under way once more."""
        if self.deeds.doing is not None:
            self._node.send(self.deeds.doing)


def _does(decision: Decision) -> str:
    """What it does, or how that ended, as the rest of a sentence: only what was measured is said to be finished."""
    ended = {
        "finished": "has finished: ",
        "failed": "failed, because ",
        "idle": "has " if "nothing" in decision.text else "is ",
    }
    return ended.get(decision.progress, "is ") + decision.text


def _is_same(one: Subtask, other: Subtask) -> bool:
    return (one.skill, one.things, one.place) == (other.skill, other.things, other.place)
