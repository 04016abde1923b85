"""The button at the motors of the test robot, which asks no other program: `python .../button.py FOLDER PLACE`."""

from __future__ import annotations

import struct
import sys


def main(folder: str, place: str) -> None:
    """Press it: the flag at that place of the switchboard."""
    with open(f"{folder}/switches", "r+b", buffering=0) as switches:
        switches.seek(int(place))
        switches.write(struct.pack("<q", 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
