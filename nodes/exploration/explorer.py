"""`ExplorerNode`: drives the robot through the room as an explorer chooses, and answers what it is asked."""

from __future__ import annotations

import math

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import OutageError
from nodes.exploration.messages import Deed, StepDone
from nodes.exploration.policies import DONE, Explorer, FrontierExplorer, Memory, ModelExplorer, RandomExplorer
from nodes.exploration.questions import RoomQuestion, answer, majority, question_in
from nodes.exploration.room import COLOURS, MOVES, TRIED_BY, Cell, cell_after, metres
from nodes.models.servers import Servers
from nodes.stretch.kinematics import HEAD_PAN
from nodes.stretch.limits import STOW
from runtime import RELIABLE, Node, Publisher, Subscription, UserError, every, on, to_s
from runtime.msgs import JOINTS, JointCommand, RobotState, Utterance

OTHER_ROOMS = range(1_000_000, 1_000_050)
"""Seeds of the rooms from which the usual answers are taken; no room that is played."""

DRIVE_MPS, TURN_RADPS = 0.25, 1.2
PULL_PER_S, TURN_PER_S = 1.0, 2.0
AIMED_RAD, THERE_M = 0.15, 0.04
LEFTMOST_RAD, RIGHTMOST_RAD, SWEEP_S, LOOK_DOWN_RAD = 1.7, -3.6, 4.0, -0.6
"""The head turns from one end of its range to the other and back, all the time."""
ARM = JOINTS.index("arm")
REACH_M, FOLDED_M = 0.20, 0.03
NAMES = tuple(f"{colour} {kind}" for colour in COLOURS for kind in TRIED_BY)
UNKNOWN = "I do not know"


class ExplorerNode(Node):
    """`policy` is "frontier", "random" or MODEL[@URL]. Base velocity and arm go to the guard on `command`."""

    state = Subscription(RobotState, "robot/state")
    step = Subscription(StepDone, "room/step", qos=RELIABLE)
    heard = Subscription(Utterance, "heard", qos=RELIABLE)

    deed = Publisher(Deed, "room/deed", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)
    command = Publisher(JointCommand, "command")

    def __init__(self, policy: str = "frontier") -> None:
        self.policy = policy
        self.servers = Servers()
        self.memory = Memory()
        self.explorer: Explorer = FrontierExplorer()
        self.usual: dict[str, str] = {}
        self.asked: dict[str, RoomQuestion] = {}  # by its text
        self.began_at: Cell | None = None
        self.action = ""  # under way
        self.goal: Cell = (0, 0)

    def problems(self) -> list[str]:
        """A model that cannot be asked."""
        if self.policy not in ("frontier", "random"):
            try:
                AgentSpec.parse(self.policy).check_model(self.servers)
            except UserError as problem:
                return [f"policy is {self.policy!r}; expected frontier, random or MODEL@URL; as a model: {problem}"]
        return []

    def on_start(self) -> None:
        self.usual = majority(OTHER_ROOMS)
        if self.policy != "frontier":
            seed = self.run_info.seed
            self.explorer = (
                RandomExplorer(seed) if self.policy == "random" else ModelExplorer(self.policy, seed, self.servers)
            )

    @on(step)
    async def choose(self, step: StepDone) -> None:
        """Where the last step led, and the next one; the second exploration is for what could not be answered."""
        self.began_at = self.began_at or (step.x, step.y)
        self.memory.look(step)
        self.action, self.goal = "", (step.x, step.y)
        open_ones = [one for one in self.asked.values() if self.memory.is_open(one)]
        if step.left == 0:
            return
        before, action = self._unreadable(), DONE
        if open_ones or not self.asked:
            try:
                action = await self.clock.external(self.explorer.act(self.memory, open_ones), 0.0)
            except OutageError as problem:
                self.finish(ok=False, reason=str(problem))
                return
        self.action = action
        if action in MOVES:
            self.goal = cell_after(self.goal, action)
        self.deed.publish(Deed(number=step.number + 1, action=action, is_unreadable=self._unreadable() > before))

    def _unreadable(self) -> int:
        return self.explorer.unreadable if isinstance(self.explorer, ModelExplorer) else 0

    @on(heard)
    async def reply(self, question: Utterance) -> None:
        """Answer from what was found out; where that is nothing, what is usual in other rooms."""
        known = question_in(question.text, NAMES)
        text = UNKNOWN
        if known is not None:
            self.asked[question.text] = known
            text = answer(known, self.memory.states, self.memory.places, self.usual)
        self.said.publish(Utterance(speaker="robot", text=text))

    @every(hz=20)
    def drive(self) -> None:
        """Turn to the goal, then go there; beside a thing that is tried, put the arm out."""
        state = self.state.latest()
        if state is None or self.began_at is None:
            return
        is_trying = self.action not in ("", DONE, *MOVES)
        posture = (*STOW[:ARM], REACH_M if is_trying else STOW[ARM], *STOW[ARM + 1 : HEAD_PAN])
        share = abs(to_s(self.clock.now_ns()) / SWEEP_S % 2.0 - 1.0)  # 1, 0, 1 in two sweeps
        head = LEFTMOST_RAD + share * (RIGHTMOST_RAD - LEFTMOST_RAD), LOOK_DOWN_RAD
        v_mps = w_radps = 0.0
        if self.action in MOVES and state.position[ARM] < FOLDED_M:
            v_mps, w_radps = way(state, metres(self.goal, self.began_at))
        self.command.publish(JointCommand(position=(*posture, *head), base_v_mps=v_mps, base_w_radps=w_radps))


def way(state: RobotState, goal_m: tuple[float, float]) -> tuple[float, float]:
    """Speed ahead, m/s, and of the turn, rad/s, that bring the base to a point."""
    x, y = goal_m[0] - state.base_x_m, goal_m[1] - state.base_y_m
    far = math.hypot(x, y)
    if far < THERE_M:
        return 0.0, 0.0
    off = math.remainder(math.atan2(y, x) - state.base_heading_rad, math.tau)
    turn = max(-TURN_RADPS, min(TURN_RADPS, TURN_PER_S * off))
    return (0.0 if abs(off) > AIMED_RAD else min(DRIVE_MPS, PULL_PER_S * far) * math.cos(off)), turn
