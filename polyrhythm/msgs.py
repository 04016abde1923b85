"""The messages of `nodes.msgs`: what robots, guards, people and models say to each other."""

from nodes.msgs import *  # noqa: F403  # exactly its __all__
