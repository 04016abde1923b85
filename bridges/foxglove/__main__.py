"""`python -m bridges.foxglove` is `polyrhythm foxglove`."""

import sys

from bridges.foxglove.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
