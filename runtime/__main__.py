"""`polyrhythm`, also as `python -m runtime`: Ctrl-C gives its exit code also while all else is still loaded."""

import sys

from runtime.exit_codes import code_of_interrupt
from runtime.operating_system.loading import WholeImports


def main() -> int:
    """Run the command of the command line; returns its exit code."""
    try:
        with WholeImports():
            from runtime.cli import main as command

        return command()
    except KeyboardInterrupt:
        return code_of_interrupt(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
