"""`Judge`: the evaluation of an episode on the bus, for episodes run from a launch file."""

from __future__ import annotations

from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.evaluation.by_rules import judge_by_rules
from nodes.episodes.evaluation.dimensions import RULES_JUDGE
from nodes.msgs.episode import Outcome, Scores, Turn
from runtime import RELIABLE, Node, Publisher, Subscription, on


class Judge(Node):
    """Hears the turns and scores the episode when it is over: by rules, or by a model ("MODEL[@URL]")."""

    turn = Subscription(Turn, "episode/turn")
    outcome = Subscription(Outcome, "episode/outcome")
    scores = Publisher(Scores, "episode/scores", qos=RELIABLE)

    def __init__(
        self,
        task: str,
        judge: str = RULES_JUDGE,
        order: str = "round-robin",
        mode: str = "AGENTS",
        max_turns: int = 20,
        wins: tuple[str, ...] = (),
    ) -> None:
        self._plan = plan_of_task(task, order=order, mode=mode, max_turns=max_turns, wins=wins)
        self._judge = judge
        self._turns: dict[int, Turn] = {}

    @on(turn)
    def hear(self, turn: Turn) -> None:
        self._turns[turn.index] = turn  # a moderator that comes back tells all of them again

    @on(outcome)
    async def end(self, outcome: Outcome) -> None:
        """Events of two topics come in no order of their own: the outcome says how many turns there were."""
        while len(self._turns) < outcome.turns:
            await self.clock.sleep(0.02)
        turns = [self._turns[index] for index in sorted(self._turns)]
        if outcome.state == "failed":
            why = f"the episode {outcome.reason}"
            scores = Scores(episode=outcome.episode, judge=self._judge, state="failed", scores=(), why=why)
        elif self._judge == RULES_JUDGE:
            scores = judge_by_rules(self._plan, turns)
        else:
            scores = await self.clock.external(self._ask(turns), 0.0)
        self.scores.publish(scores)

    async def _ask(self, turns: list[Turn]) -> Scores:
        from nodes.episodes.agents.agent_spec import AgentSpec
        from nodes.episodes.agents.seat_caller import NoStore, SeatCaller
        from nodes.episodes.evaluation.by_model import judge_by_model
        from nodes.models.servers import Servers

        async with Servers() as servers:
            caller = SeatCaller(AgentSpec.parse(self._judge, temperature=0.0), servers, NoStore(), 0, tokens=6000)
            return await judge_by_model(self._judge, caller, self._plan, turns)
