"""The exit code of a command that Ctrl-C ends, the same at each moment: it imports nothing, and is there at once."""

UNTIL_INTERRUPTED = frozenset(
    ("run", "top", "echo", "hz", "delay", "bw", "record", "metrics", "view", "foxglove", "serve", "annotate", "study")
)
"""What goes on until Ctrl-C: that is no failure, whether it comes while they load, work, stop or sum up."""


def code_of_interrupt(arguments: list[str]) -> int:
    """The code for these arguments of the command line: 130 where it had something to come to an end with."""
    is_endless = arguments[:1] and arguments[0] in UNTIL_INTERRUPTED and "--virtual" not in arguments
    return 0 if is_endless else 130
