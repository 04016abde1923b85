"""The messages of `runtime.msgs`: what robots, guards, people and models say to each other."""

from runtime.msgs import *  # noqa: F403  # exactly its __all__
