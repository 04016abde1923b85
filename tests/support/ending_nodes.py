"""Nodes whose processes end in unusual ways, or leave others behind; named in launch files of tests."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

from nodes.hello import Beat
from runtime import Node, Publisher, Subscription, every, on


class Loud(Node):
    """Prints and logs 1 kB at 500 Hz."""

    beat = Publisher(Beat, "beat")

    def __init__(self) -> None:
        self.count = 0

    @every(hz=500)
    def tick(self) -> None:
        self.count += 1
        print("said", self.count, "." * 1000)
        self.log.info("loud: %d %s", self.count, "." * 1000)
        self.beat.publish(Beat(count=self.count))


class Listener(Node):
    """Finishes the run at a beat, whatever becomes of what others print."""

    beat = Subscription(Beat, "beat")

    def __init__(self, last: int = 1500) -> None:
        self.last = last

    @on(beat)
    def hear(self, beat: Beat) -> None:
        if beat.count >= self.last:
            self.finish(ok=True, reason="heard enough")


def leave(how: str) -> None:
    """End this process in that way."""
    if how == "exit":
        sys.exit(3)
    elif how == "sentence":
        sys.exit("there is no camera")
    elif how == "at once":
        os._exit(3)
    elif how == "crash":
        ctypes.string_at(0)  # the line that is looked for


class Leaves(Node):
    """Ends its process in a plain handler."""

    def __init__(self, how: str) -> None:
        self.how = how

    @every(hz=5)
    def tick(self) -> None:
        leave(self.how)

    def on_stop(self) -> None:
        self.log.info("has stopped")


class LeavesAsync(Leaves):
    """In an async one."""

    @every(hz=5)
    async def tick(self) -> None:  # type: ignore[override]  # of another style
        leave(self.how)


class LeavesBlocking(Leaves):
    """In a blocking one."""

    @every(hz=5, blocking=True)
    def tick(self) -> None:
        leave(self.how)


class LeavesRealtime(Leaves):
    """In a control loop."""

    realtime = True


class Parent(Node):
    """Starts children in three ways, and writes their ids into a file."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def on_start(self) -> None:
        sleep = ["sleep", "300"]
        started = [subprocess.Popen(sleep).pid, subprocess.Popen(sleep, start_new_session=True).pid]
        worker = multiprocessing.get_context("fork").Process(target=threading.Event().wait, args=(300.0,), daemon=True)
        worker.start()
        draft = self.file.with_suffix(".draft")
        draft.write_text(" ".join(map(str, [*started, worker.pid, os.getpid()])))
        draft.rename(self.file)


class Forks(Node):
    """A handler that forks: of one tick there are two then, and one goes on; it also ends a worker by SIGTERM."""

    beat = Publisher(Beat, "beat")

    def __init__(self) -> None:
        self.count = 0

    @every(hz=20)
    def tick(self) -> None:
        self.count += 1
        if self.count == 5:
            worker = multiprocessing.get_context("fork").Process(target=threading.Event().wait, args=(300.0,))
            worker.start()
            worker.terminate()
            worker.join()
        elif self.count == 10 and (child := os.fork()):
            os.waitpid(child, 0)
        self.beat.publish(Beat(count=self.count))
        if self.count == 30:
            self.finish(ok=True, reason="one of two")


class Orphans(Node):
    """Leaves orphans that end at once, as a shell's background jobs do."""

    def __init__(self) -> None:
        self.count = 0

    @every(hz=20)
    def tick(self) -> None:
        self.count += 1
        if self.count <= 10:
            subprocess.run(["sh", "-c", "sleep 0.1 & :"], check=True)
        elif self.count == 40:
            zombies = [
                name for name in filter(str.isdigit, os.listdir("/proc"))
                if Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
            ]  # fmt: skip
            self.finish(ok=not zombies, reason=f"{len(zombies)} zombies")
