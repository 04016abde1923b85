"""`Waver`: the arm in simulation, without physics. The class for the hardware keeps the same protocol."""

from waver.limits import LIMITS
from nodes.sim.kinematic import KinematicRobot


class Waver(KinematicRobot):
    limits = LIMITS
    folded = (0.0, -1.4, 2.2, 0.0)  # where it starts, and stows to
