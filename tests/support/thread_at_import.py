"""A module that starts a thread when it is imported, which nobody can fork."""

from __future__ import annotations

import threading

from runtime import Node

threading.Thread(target=threading.Event().wait, daemon=True).start()


class Threaded(Node):
    """Does nothing."""
