"""`python -m runtime` is `polyrhythm`."""

import sys

from runtime.cli import main

sys.exit(main())
