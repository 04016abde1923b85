"""`GrammarTalk`: the *talk* of a VLM beside a scripted planner: by the same grammar, what is to be left alone."""

from __future__ import annotations

from nodes.msgs import Utterance
from nodes.planner.orders import Order, is_vague
from nodes.planner.words.parser import parser_of
from nodes.planner.words.referents import as_references, named_under_way, referents
from nodes.planner.words.spelled import spelled_out
from nodes.planner.words.understanding import Conversation, spared_by, understand_in
from nodes.vlm.choice.things import is_meant_by
from nodes.vlm.talk import HeardOfWork, WorkUnderWay
from runtime.clock import to_ns

REACTION_S = 1.0
"""Who objects to "that one" means what the robot did so long before they began to speak."""


class GrammarTalk:
    """Keeps what was spoken of, and whose it is."""

    def __init__(self) -> None:
        self._said = Conversation()

    def hear(self, utterance: Utterance, work: WorkUnderWay) -> HeardOfWork:
        task, scene, world, target = work.task, work.around.scene, work.around.world, work.target
        kinds = {one.label for one in task.things} - {"*"}
        kind = kinds.pop() if len(kinds) == 1 else ""
        spelled = spelled_out(utterance.text, scene, {}, utterance.speaker, kind)
        if spelled.is_untold and spelled.is_objection:
            return HeardOfWork(is_for_plan=True)
        order = Order(task.skill, task.things, task.excluding, task.place, task.relation)
        before = Conversation(orders=(order,), mentioned=self._said.mentioned, owners=self._said.owners)
        intent, self._said = understand_in(spelled.text, world, before, parser_of(world))
        left = [one for one in intent.protected if not is_vague(one)]
        is_late = work.retracted_ns is not None and work.began_ns - to_ns(REACTION_S) < work.retracted_ns
        says = ""
        for what in spared_by(intent):
            found = referents(what, order, scene, target)
            if found.by == "action" and what.label == "" and is_late:
                return HeardOfWork()  # they mean what they have just retracted: they had not seen that it was left
            if not found.is_clear:
                continue  # the planner asks
            left += as_references(found.things, scene)
            if found.by == "action":
                says = f"All right, I leave the {found.things[0].name}. "
        is_other = intent.deed == "do" and not intent.is_addition and intent.is_correction
        is_instead = is_other and not any(
            is_meant_by(one, target) for each in intent.orders for one in each.things if target
        )  # "The ball instead": what is under way is no longer wanted
        is_told = intent.why == "told" and bool(named_under_way(intent.told_of, order, scene, target))
        # "It is still half full": the planner asks
        return HeardOfWork(tuple(left), intent.released, is_instead or is_told, says)
