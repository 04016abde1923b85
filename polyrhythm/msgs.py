"""The messages of `nodes.msgs`: what robots, guards, people and models say to each other. Needs polyrhythm-nodes."""

try:
    from nodes.msgs import *  # noqa: F403  # exactly its __all__
except ModuleNotFoundError as _problem:
    from runtime.extras import explained as _explained

    raise _explained(_problem, __name__) from None
