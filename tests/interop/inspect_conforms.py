"""Whether Inspect Robots' own conformance suite finds fault with our robot.   usage: python inspect_conforms.py"""

from __future__ import annotations

import numpy as np
from inspect_robots import Action, Embodiment, Scene, resolve
from inspect_robots.compat import check_compatibility
from inspect_robots.conformance import check_embodiment, check_guardrail_contribution

from bridges.inspect_robots.policies import SeatPolicy


def main() -> None:
    robot = resolve("embodiment", "polyrhythm")
    for report in (check_embodiment(robot.info), check_guardrail_contribution(robot, robot.info.action_space)):
        print(report.summary())
        assert report.ok
    seat = resolve("policy", "polyrhythm_seat")
    assert isinstance(robot, Embodiment)
    assert isinstance(seat, SeatPolicy)
    seat.bind(robot.info)
    for name in ("polyrhythm_clear", "polyrhythm_reach"):
        found = check_compatibility(seat, robot, resolve("task", name))
        assert found.ok, found.issues
    first = robot.reset(Scene("one", "Stand still."), seed=3)
    again = robot.reset(Scene("one", "Stand still."), seed=3)
    assert all(np.array_equal(first.images[name], again.images[name]) for name in first.images)
    assert {spec.name for spec in robot.info.observation_space.cameras} == set(first.images)
    stepped = robot.step(Action(first.state["joint_pos"]))
    assert stepped.info["guard"], stepped.info
    robot.close()


if __name__ == "__main__":
    main()
