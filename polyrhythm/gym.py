"""The robot for somebody else's loop: `from polyrhythm.gym import GuardedEnv, TableEnv`. Needs the extra `gym`."""

try:
    from nodes.sim.guarded_env import GuardedEnv, Stepped
    from nodes.sim.gymnasium_env import TableEnv
except ModuleNotFoundError as _problem:
    from runtime.extras import explained as _explained

    raise _explained(_problem, __name__) from None

__all__ = ["GuardedEnv", "Stepped", "TableEnv"]
