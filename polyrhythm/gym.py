"""The simulated robot as a Gymnasium environment: `from polyrhythm.gym import TableEnv`. Needs the extra `gym`."""

from nodes.sim.gymnasium_env import TableEnv

__all__ = ["TableEnv"]
