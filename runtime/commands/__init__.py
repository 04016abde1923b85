"""What `polyrhythm COMMAND` does, a file for each family of commands; `runtime.cli` imports them when asked for."""

GROUP = "polyrhythm.commands"
"""The entry points by which other packages give commands."""
