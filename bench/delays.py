"""Chunks under delay: what a policy's answers are worth when they come late: `python -m bench.delays --plot FILE.png`.

The shipped policy picks one thing of each table and puts it into the bin; robot and table are imagined, at 20 Hz. An
answer comes so many steps after what it was made from, and one question is out at a time. The answer is "shipped": the
steps that the model gives; or "rolled": 24 steps, the same model led on through its own imagination. In each answer
the target is seen 8 mm off, anew. Five executors play the same answers.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from bench.executors import EXECUTORS, STEP_S, Episode, Executor, Late, Row, Rows, Watched
from bench.libero_scene import INSTALL, LIBERO, play_libero
from examples.train_policy.imagined import ImaginedRobot
from examples.train_policy.teacher import MOTION, is_done
from nodes.models.onnx_file import read_model_with_data
from nodes.msgs import Action, JointCommand, RobotState, SeenObject, aimed_at
from nodes.plotting.figure import Figure
from nodes.policy.onnx.inputs import feel, pose_of
from nodes.policy.onnx.policy import place_of
from nodes.policy.onnx.session import PolicySession
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M
from nodes.statistics.paired import wilson
from nodes.stretch.kinematics import ARM, GRIPPER, LIFT, grasp_point, to_odometry
from runtime.command_line.arguments import count

LONG_STEPS = 24
OFF_M = 0.008
ACTION_STEPS = 600
"""Of pick, and again of place: 30 s."""
FIRST_SEED = 100
"""Tables that the policy was not trained on."""
DELAYS = (0, 1, 2, 3, 5, 8, 10, 15, 20)
ANSWERS = ("shipped", "rolled")


@dataclass
class Table:
    """One table, a robot, and an executor that is told late."""

    answers: str
    delay: int
    seed: int
    executor: Executor
    session: PolicySession

    def __post_init__(self) -> None:
        self.robot = ImaginedRobot(self.seed)
        self.dice = random.Random(f"delays/{self.seed}")
        self.target = self.dice.randrange(len(self.robot.things))
        self.thing = self.robot.things[self.target]
        self.late = Late(self.executor, self.delay)
        self.watched = Watched()
        self.sent = np.array(self.robot.position)
        self.elapsed_s = 0.0

    def play(self) -> bool:
        """Pick and place; whether the thing lies in the bin."""
        return all(self._act(skill) for skill in ("pick", "place")) and self.robot.things[self.target].is_in_bin

    def _act(self, skill: str) -> bool:
        self.late.out, self.thing = None, self.robot.things[self.target]  # as it stood when the action began
        for step in range(ACTION_STEPS):
            self.elapsed_s = step * STEP_S
            state = self.robot.state()
            if is_done(self._action(skill, off_m=0.0), state):
                return True
            self._tick(skill, state)
        return False

    def _tick(self, skill: str, state: RobotState) -> None:
        row, is_seam = self.late.play(lambda: self._answer(skill, state))
        if row is None:
            self.watched.held_still += 1
            rest = list(MOTION.resting(state, None))
            rest[GRIPPER] = float(self.sent[GRIPPER])
            row = np.array((*rest, 0.0, 0.0))
        self.watched.jumps[is_seam].append(1e3 * float(np.abs(row[[LIFT, ARM]] - self.sent[[LIFT, ARM]]).max()))
        self.sent = row[:8]
        self.robot.follow(_command(row), STEP_S)
        at = self.robot.state()
        x, y, z = to_odometry(*pose_of(at), grasp_point(tuple(self.robot.position.tolist())))
        self.watched.hands.append((float(x), float(y), float(z)))

    def _answer(self, skill: str, state: RobotState) -> Rows:
        action = self._action(skill, off_m=OFF_M)
        if self.answers == "shipped":
            return self._asked(state, action)
        robot, rows = copy.deepcopy(self.robot), []
        for _ in range(LONG_STEPS):
            rows.append(self._asked(robot.state(), action)[0])
            robot.follow(_command(rows[-1]), STEP_S)
        return np.stack(rows)

    def _asked(self, state: RobotState, action: Action) -> Rows:
        history = self.session.wants().history
        return self.session.run({}, feel(state, action, history=history, elapsed_s=self.elapsed_s)).chunk

    def _action(self, skill: str, *, off_m: float) -> Action:
        thing = self.thing
        place, size = (thing.x_m, thing.y_m, thing.z_m), self.robot.sizes[thing.name]
        label, colour = thing.label, thing.colour
        if skill == "place":
            place, size = (*BIN_XY_M, sum(BIN_Z_M) / 2), (0.26, BIN_Z_M[1] - BIN_Z_M[0])
            label, colour = "bin", "teal"
        x, y, z = (at + (self.dice.gauss(0.0, off_m) if off_m else 0.0) for at in place)
        seen = SeenObject(label=label, colour=colour, x_m=x, y_m=y, z_m=z, width_m=size[0], height_m=size[1],
                          u_px=0.0, v_px=0.0)  # fmt: skip
        return Action(id=skill, skill=skill, arguments=aimed_at(seen))


def _command(row: Row) -> JointCommand:
    numbers = row.tolist()
    return JointCommand(position=tuple(numbers[:8]), base_v_mps=numbers[8], base_w_radps=numbers[9])


def play(answers: str, executor: str, delay: int, seed: int) -> Episode:
    """One episode."""
    if answers == LIBERO:
        return play_libero(executor, delay, seed)
    data, beside, _ = read_model_with_data(place_of("clear-table"), "")
    session = PolicySession(data, name="clear-table", width_px=160, height_px=120, beside=beside,
                            providers=("CPUExecutionProvider",))  # fmt: skip
    table = Table(answers, delay, seed, EXECUTORS[executor](), session)
    is_success = table.play()
    return table.watched.episode(answers, executor, delay, seed, is_success=is_success)


def _play(one: tuple[str, str, int, int]) -> Episode:
    return play(*one)


def lines(episodes: Sequence[Episode]) -> Iterator[str]:
    """A row for each kind of answer, executor and delay, as Markdown."""
    yield "| answers | executor | delay, steps | success | 95 % | s | still | seam mm | elsewhere mm | jerk m/s³ |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for (answers, executor, delay), mine in grouped(episodes).items():
        done = [one for one in mine if one.is_success]
        low, high = wilson(len(done), len(mine))
        took = f"{median(one.seconds for one in done):.1f}" if done else "-"
        seams = [one.seam_mm for one in mine if one.seam_mm is not None]
        others = [one.elsewhere_mm for one in mine if one.elsewhere_mm is not None]
        yield (
            f"| {answers} | {executor} | {delay} | {len(done)} of {len(mine)} | {low:.0%} to {high:.0%} | {took} "
            f"| {median(one.held_still for one in mine):.0%} | {_middle(seams)} | {_middle(others)} "
            f"| {median(one.jerk_mps3 for one in mine):.1f} |"
        )


def _middle(values: Sequence[float]) -> str:
    return f"{median(values):.1f}" if values else "-"


def grouped(episodes: Sequence[Episode]) -> dict[tuple[str, str, int], list[Episode]]:
    """By answers, executor and delay."""
    found: dict[tuple[str, str, int], list[Episode]] = {}
    for one in episodes:
        found.setdefault((one.answers, one.executor, one.delay), []).append(one)
    return found


def draw(episodes: Sequence[Episode], path: Path) -> None:
    """Success, time and jerk against the delay, a line for each executor."""
    found = grouped(episodes)
    kinds = list(dict.fromkeys(answers for answers, _, _ in found))
    figure = Figure(figsize=(11, 3.4 * len(kinds)))
    for axes_row, answers in zip(figure.subplots(len(kinds), 3, squeeze=False), kinds, strict=True):
        for executor in EXECUTORS:
            points = [(delay, mine) for (kind, who, delay), mine in found.items() if (kind, who) == (answers, executor)]
            for axes, measured in zip(axes_row, (_share, _time_s, _jerk), strict=True):
                told = [(delay, value) for delay, mine in points if (value := measured(mine)) is not None]
                axes.plot([at for at, _ in told], [value for _, value in told], "o-", label=executor, markersize=4)
        titles = (f"{answers} answers: success", "median time of those, s", "jerk of the gripper, m/s³")
        for axes, title in zip(axes_row, titles, strict=True):
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xlabel("delay, steps of 50 ms")
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        axes_row[0].set_ylim(-0.03, 1.03)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _share(mine: Sequence[Episode]) -> float | None:
    return sum(one.is_success for one in mine) / len(mine)


def _time_s(mine: Sequence[Episode]) -> float | None:
    times = [one.seconds for one in mine if one.is_success]
    return median(times) if times else None


def _jerk(mine: Sequence[Episode]) -> float | None:
    return median(one.jerk_mps3 for one in mine)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, and draw it where asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.delays", description=__doc__)
    parser.add_argument("--seeds", type=count, default=12, help="tables for each; default: %(default)s")
    parser.add_argument("--delay", type=int, action="append", help="in steps; several; default: 0 to 20")
    parser.add_argument("--answers", choices=ANSWERS, action="append", help="of the imagined table; default: both")
    parser.add_argument("--scene", choices=("imagined", "libero"), default="imagined", help="default: %(default)s")
    parser.add_argument("--jobs", type=count, default=1, help="processes; default: %(default)s")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it as PNG")
    parser.add_argument("--json", action="store_true", help="print every episode")
    asked = parser.parse_args(argv)
    kinds, first = asked.answers or ANSWERS, FIRST_SEED
    if asked.scene == "libero":
        if asked.answers:
            parser.error("--answers belongs to the imagined table; leave it out with --scene libero")
        if find_spec("libero") is None:
            parser.error(f"--scene libero needs LIBERO, in an environment of its own: {INSTALL}")
        kinds, first = (LIBERO,), 0
    seeds = range(first, first + asked.seeds)
    wanted = list(product(kinds, EXECUTORS, asked.delay or DELAYS, seeds))
    with ProcessPoolExecutor(asked.jobs) as pool:
        episodes = list(pool.map(_play, wanted, chunksize=4))
    if asked.plot is not None:
        draw(episodes, asked.plot)
    print(msgspec.json.encode(episodes).decode() if asked.json else "\n".join(lines(episodes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
