"""The same base without hardware, for trying a graph."""

from serial_base import LIMITS

from nodes.sim.kinematic import KinematicRobot


class SimulatedBase(KinematicRobot):
    """It follows at the limits of the real one."""

    limits = LIMITS
    folded = (0.0,)
