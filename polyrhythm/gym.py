"""The robot for somebody else's loop: `from polyrhythm.gym import GuardedEnv, TableEnv`. Needs the extra `gym`."""

from nodes.sim.guarded_env import GuardedEnv, Stepped
from nodes.sim.gymnasium_env import TableEnv

__all__ = ["GuardedEnv", "Stepped", "TableEnv"]
