"""The fault matrix as data: what is done, in which surroundings, and what may come of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from bench.faults import answers, attacks, driven, measures, models, trials, watched
from bench.faults.measures import AT_REST, DRIFT, FALSE_HOLDS, GONE, HELD, LIMITS, OUCH, STALE, STANDS, ouch, pressed
from bench.faults.nodes import BOMB, DROP, DUPLICATE, FLOOD, GARBLE, JERK, MIXED, NANS, RANGE, REORDER, SPEED_MPS
from bench.faults.nodes import STALE as LATE
from bench.faults.rig import HOGS, NODES, Rig, hogs
from bench.faults.trials import Trial
from bench.faults.window import COMMAND
from nodes.guard.retreat import SHARE


class Skip(Exception):
    """This fault cannot be injected here; the text says why."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a figure may be; `p99` bounds all but the worst hundredth, and `least` is the least allowed."""

    figure: str
    most: float
    p99: float | None = None
    least: float = 0.0

    @property
    def per_late_ms(self) -> float:
        """What each millisecond of the machine's own lateness adds to it; for a way, what is made in that time."""
        if self.figure == DRIFT:
            return SPEED_MPS  # m/s are mm/ms
        return float(self.figure.endswith(", ms"))


def _nothing(rig: Rig) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the matrix."""

    name: str
    trial: Trial
    bounds: tuple[Bound, ...]
    changes: Mapping[str, str] = field(default_factory=dict)
    around: Callable[[Rig], AbstractContextManager[None]] = _nothing  # held during each trial
    serving: str = ""  # how a model's API behaves meanwhile
    is_alone: bool = False  # no graph beside it: it keeps the machine busy, or times a tool from its very start
    is_quick: bool = False  # belongs to the subset of `make test`
    is_fresh: bool = False  # each trial needs a run of its own
    is_by_rights: bool = False  # priorities decide its figures: it is tried without real-time rights, too
    prepare: Callable[[Path], None] = lambda place: None  # what the run needs in its folder
    most_trials: int = 1000  # fewer where nothing depends on time: the same every time
    prefix: tuple[str, ...] = ()  # the command that the run is started by, such as one that limits it


REST = Bound(AT_REST, 1500.0)
"""Braking from 0.3 m/s takes a second; *held* is its beginning."""
QUIET_OUCH = Bound(OUCH, 100.0, p99=50.0)
LOADED_OUCH = Bound(OUCH, 250.0, p99=100.0)
ESTOPS = (Bound(measures.ESTOP, 250.0, p99=100.0), REST, Bound(measures.LIFTED, 0))
SILENCE = (Bound(HELD, 250.0), REST, Bound(DRIFT, measures.speed_bound_mm(0.25)), Bound(STALE, 0))
UNMOVED = (QUIET_OUCH, REST, Bound(FALSE_HOLDS, 0))
STAND = Bound(STANDS, 1000.0)
ENDS = (Bound(measures.ENDED, 250.0), Bound(STANDS, 2000.0), Bound(GONE, 5000.0), Bound(measures.WHOLE, 1, least=1))
"""As by Ctrl-C."""
KILLED = Bound(measures.KILLED, 3000.0, least=1500.0)
"""Killed after 2 s without a sign of life; the last one may be a heartbeat, 0.5 s before the freeze."""
UNASKED = Bound(measures.UNASKED, 0)
IN_LIMITS = (Bound(LIMITS, 0), Bound(STALE, 0), Bound("backwards", 0))


@contextlib.contextmanager
def _hogged(rig: Rig) -> Iterator[None]:
    rig.wait_moving()
    with hogs():
        yield


@contextlib.contextmanager
def _two_hogs(rig: Rig) -> Iterator[None]:
    rig.wait_moving()
    with hogs(2):
        yield


@contextlib.contextmanager
def _full_disk(rig: Rig) -> Iterator[None]:
    """A small file system under the recording, filled to the last byte."""
    rig.wait_moving()
    filler = rig.out / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
    except OSError:
        pass
    try:
        yield
    finally:
        filler.unlink(missing_ok=True)


@contextlib.contextmanager
def _full_shared_memory(rig: Rig) -> Iterator[None]:
    """A run that drives with shared memory of its own, into which nothing fits any more."""
    rig.wait_moving()
    with (
        Path(f"/proc/{rig.process.pid}/root/dev/shm/filler").open("wb", buffering=0) as file,
        contextlib.suppress(OSError),
    ):
        while file.write(bytes(1 << 12)):
            pass
    yield  # it goes with the run


@contextlib.contextmanager
def _hogged_and_full(rig: Rig) -> Iterator[None]:
    with _full_disk(rig), hogs():
        yield


def mount_small(place: Path) -> None:
    """Put a file system of 8 MB there. Raises Skip where that is not allowed."""
    if os.geteuid() != 0:
        raise Skip("mounting a small file system needs root")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Skip(f"mounting a small file system is refused: {done.stderr.strip()}")


def _without(name: str) -> list[Fault]:
    return [
        Fault(f"{name}: SIGKILL, then Ouch!", trials.without(name, signal.SIGKILL), UNMOVED),
        Fault(f"{name}: SIGSTOP, then Ouch!", trials.without(name, signal.SIGSTOP), (*UNMOVED, KILLED)),
    ]


SEAT = {"seats.policy": 'holder = "policy"'}
CONSOLE = {
    "console": 'use = "bridges.web.console.node:Console"\nprocess = "console"\nparams = { port = 0 }',
    "human_policy": 'use = "bridges.web.console.human_nodes:HumanPolicy"\nprocess = "console"',
    "seats.policy": 'holder = "policy"\nshadows = ["human_policy"]',
}
LINK_LOST = (Bound(driven.LINK, 300.0), *SILENCE)
NOBODY = (*LINK_LOST, Bound(driven.BACK, 2000.0))
HARMLESS = (
    LOADED_OUCH,
    REST,
    Bound(measures.STRANGE, 0),
    Bound(measures.GROWN, 20.0),
    Bound(LIMITS, 0),
    Bound(STALE, 0),
)

API_PLANNER = (
    'use = "nodes.planner.openai_api:OpenAIPlanner"\n'
    'params = { model = "fake", stream = true, give_up_after = 1000000, max_calls = 1000000, deadline_s = 2.0 }'
)

EARS = {"ears": f'use = "{NODES}Ears"'}
WAY_BACK = (
    Bound(attacks.FORWARD, 5.0),
    Bound(attacks.BACK, 300.0, least=50.0),
    Bound(attacks.BACK_SPEED, SPEED_MPS * SHARE * 1e3 + 1.0),
)
"""At most a second of the way that it came, at a quarter of the speed."""

CLAIMED = {
    "guard": 'use = "bench.faults.nodes:WatchedGuard"\nprocess = "robot"\n'
    'params = { arm = "auto", robot = "bench.faults.nodes:LIMITS" }',
    "driver": 'use = "nodes.robot.driver:Driver"\nprocess = "robot"\n'
    'params = { robot = "bench.faults.nodes:MotorRobot", limits = "bench.faults.nodes:LIMITS" }',
}
"""A robot of another name, whose latch outlives the run: trials share none with anybody's real one."""

MODEL = {
    "policy": 'use = "bench.faults.models:ModelPolicy"\n'
    'params = { model = "FOLDER/policy.onnx", image_width_px = 64, image_height_px = 48, needs_action = false, '
    "max_chunk_age_s = 0.25 }"
}
NO_MODEL = (Bound(models.STARTS, 2, least=1), Bound(models.MOVED, 0))

PRESSED = (Bound(watched.PRESSED, 1500.0), Bound(watched.WAY, measures.speed_bound_mm(1.0)))
CREPT = (Bound(watched.PRESSED, 1500.0), Bound(watched.WAY, 150.0))
OTHERWISE = (Bound(watched.PRESSED, 4000.0),)
BACK = (Bound(watched.BACK, 1000.0), Bound(watched.TRIPS, 0), *PRESSED)

MATRIX: tuple[Fault, ...] = (
    Fault("nothing is wrong: Ouch!", ouch, (QUIET_OUCH, REST), is_quick=True, is_by_rights=True),
    Fault("nothing is wrong: e-stop", pressed, ESTOPS, is_by_rights=True),
    Fault(
        "policy: SIGKILL at 0.3 m/s", trials.back(trials.killed), (*SILENCE, UNASKED), is_quick=True, is_by_rights=True
    ),
    Fault("policy: SIGSTOP, later SIGCONT", trials.frozen, SILENCE, is_quick=True),
    *_without("vlm"),
    *_without("planner"),
    Fault(
        "recorder: SIGKILL, then Ouch!",
        trials.recorder_killed,
        (QUIET_OUCH, REST, Bound(measures.LOST, 1000.0), Bound(measures.GAPS, 0)),
    ),
    Fault("recorder: SIGSTOP, then Ouch!", trials.without("recorder", signal.SIGSTOP), (*UNMOVED, KILLED)),
    Fault(
        "camera: SIGKILL, then Ouch!",
        trials.without("camera", signal.SIGKILL),
        (
            QUIET_OUCH,
            REST,
        ),
    ),
    Fault(
        "camera: SIGSTOP, then Ouch!",
        trials.without("camera", signal.SIGSTOP),
        (QUIET_OUCH, REST, KILLED),
    ),
    Fault("guard and driver: SIGKILL", trials.back(trials.robot_killed), (STAND, UNASKED)),
    Fault("guard and driver: SIGSTOP 1.5 s, SIGCONT", trials.robot_frozen, (STAND, Bound(STALE, 0), UNASKED)),
    *(
        Fault(f"{what}: {number.name} while a person drives", driven.lost(driven.at_tool, number), NOBODY, changes=SEAT)
        for what, number in (("seat tool", signal.SIGKILL), ("seat tool", signal.SIGSTOP))
    ),
    *(
        Fault(
            f"{what}: {number.name} while a person drives",
            driven.lost(driven.at_page, number, process),
            (*LINK_LOST, KILLED) if process and number == signal.SIGSTOP else LINK_LOST,
            changes=CONSOLE,
        )
        for what, process in (("console's page", ""), ("console", "console"))
        for number in (signal.SIGKILL, signal.SIGSTOP)
    ),
    Fault("supervisor: SIGSTOP, then Ouch!", trials.without("supervisor", signal.SIGSTOP), UNMOVED),
    Fault("supervisor: SIGKILL", trials.supervisor_killed, (STAND, Bound(GONE, 2000.0)), is_fresh=True, is_quick=True),
    *(
        Fault(
            what,
            trial,
            (
                Bound(measures.ENDED, 250.0),
                Bound(STANDS, 2000.0),
                Bound(GONE, 5000.0),
                Bound(measures.WHOLE, 1, least=1),
            ),
            prefix=COMMAND,
            is_fresh=True,
        )
        for what, trial in (
            ("the terminal's window is closed", trials.window(signal.SIGKILL)),
            ("the terminal is closed and the run gets SIGTERM", trials.window(signal.SIGKILL, signal.SIGTERM)),
            ("the terminal is halted (Ctrl-S), then SIGTERM", trials.window(signal.SIGUSR1, signal.SIGTERM)),
            ("the terminal is halted (Ctrl-S), then SIGINT", trials.window(signal.SIGUSR1, signal.SIGINT)),
        )
    ),
    Fault(
        "crash loop of a node",
        trials.crash_loop,
        (Bound("restarts", 3, least=3), Bound("exit code", 1, least=1)),
        changes={"crasher": f'use = "{NODES}Crasher"'},
        is_fresh=True,
    ),
    Fault(
        f"{HOGS} CPU hogs: Ouch!",
        ouch,
        (
            LOADED_OUCH,
            REST,
        ),
        around=_hogged,
        is_alone=True,
        is_quick=True,
        is_by_rights=True,
    ),
    Fault(f"{HOGS} CPU hogs: policy SIGKILL", trials.killed, SILENCE, around=_hogged, is_alone=True, is_by_rights=True),
    Fault(
        "planner blocks its loop: Ouch!",
        trials.switched(ouch, block=1),
        (
            QUIET_OUCH,
            REST,
        ),
    ),
    Fault(
        "the guard's process: its event loop is blocked",
        trials.switched(ouch, block_robot=1),
        (
            QUIET_OUCH,
            REST,
        ),
        is_by_rights=True,
    ),
    Fault(
        "the guard's process: another thread spins",
        trials.switched(ouch, spin=1),
        (
            LOADED_OUCH,
            REST,
        ),
        is_by_rights=True,
    ),
    Fault("policy runs out of memory", trials.silenced(leak=1), SILENCE),
    Fault("wall clock + 1 h", trials.undisturbed(wall_s=3600), (*UNMOVED, *IN_LIMITS)),
    Fault("wall clock - 1 h", trials.undisturbed(wall_s=-3600), (*UNMOVED, *IN_LIMITS)),
    Fault("30 % of commands dropped", trials.undisturbed(DROP), (QUIET_OUCH, REST, *IN_LIMITS)),
    Fault("30 % of commands doubled", trials.undisturbed(DUPLICATE), (*UNMOVED, *IN_LIMITS)),
    Fault("30 % of commands out of order", trials.undisturbed(REORDER), (QUIET_OUCH, REST, *IN_LIMITS)),
    Fault(
        "dropped, doubled and out of order", trials.undisturbed(MIXED), (QUIET_OUCH, REST, *IN_LIMITS), is_quick=True
    ),
    Fault("commands 200 ms late", trials.silenced(mode=LATE), SILENCE),
    Fault(
        "5,000 commands a second: Ouch!",
        trials.flooded(FLOOD),
        (LOADED_OUCH, REST, Bound("commands taken a second", 55.0), Bound("CPU of the robot's process, %", 50.0)),
        is_alone=True,
        is_quick=True,
        is_by_rights=True,
    ),
    Fault(
        "thousands of garbled frames a second: Ouch!",
        trials.garbled(GARBLE),
        (*HARMLESS, Bound(measures.REFUSED, inf, least=2000)),
        changes=SEAT,
        is_alone=True,
    ),
    Fault(
        "oversized frames and MessagePack bombs: Ouch!",
        trials.garbled(BOMB),
        (*HARMLESS, Bound(measures.REFUSED, inf, least=6)),
        changes=SEAT,
        is_alone=True,
    ),
    Fault("NaN and infinite speeds", trials.silenced(mode=NANS), (*SILENCE, Bound(LIMITS, 0)), is_quick=True),
    Fault("10 m/s and joints out of range", trials.undisturbed(RANGE), (QUIET_OUCH, REST, *IN_LIMITS)),
    Fault("full speed forward and back at 20 Hz", trials.undisturbed(JERK), (QUIET_OUCH, REST, *IN_LIMITS)),
    Fault("the robot's state is always the same", trials.numb, (Bound(measures.NUMB, 250.0), Bound(STALE, 0))),
    Fault("contact", trials.touched, (Bound(measures.TOUCH, 100.0),), is_by_rights=True),
    Fault(
        "the robot's own runstop",
        trials.runstopped,
        (Bound(measures.RUNSTOP, 100.0), Bound(measures.LIFTED, 0), Bound(measures.UNASKED, 0)),
        is_quick=True,
    ),
    *(
        Fault(
            f"policy's model: {what}",
            models.fails(how),
            (Bound(models.FAILED, 600.0), *SILENCE, Bound(LIMITS, 0)),
            changes=MODEL,
            prepare=models.write_good,
        )
        for what, how in (
            ("an inference raises, as a lost GPU", models.RAISES),
            ("it gives NaN", models.NAN),
            ("it gives another shape", models.SHAPE),
            ("an inference takes 2 s", models.HANGS),
        )
    ),
    *(
        Fault(
            f"policy's model: the file {what}",
            models.refused,
            NO_MODEL,
            changes=MODEL,
            prepare=prepare,
            is_fresh=True,
            most_trials=20,
        )
        for what, prepare in (
            ("is missing", lambda place: None),
            ("is cut", models.write_cut),
            ("is of another shape", models.write_wrong_shape),
        )
    ),
    Fault(
        "recorder: SIGSTOP, 30 MB of images a second",
        trials.piling_up,
        (LOADED_OUCH, REST, KILLED, Bound(measures.PILED, 64.0)),
        is_alone=True,
    ),
    Fault("images 3 s old", trials.silenced(image=1), SILENCE[1:]),
    Fault(
        "images of wrong shape, type and content",
        trials.switched(trials.fallen, image=2),
        (
            QUIET_OUCH,
            REST,
        ),
        changes={
            "vlm": 'use = "nodes.vlm.local:LocalVLM"',
            "planner": 'use = "nodes.planner.scripted:ScriptedPlanner"',
        },
    ),
    *(
        Fault(
            f"planner's API: {what}",
            trials.fallen,
            (
                QUIET_OUCH,
                REST,
            ),
            changes={"planner": API_PLANNER},
            serving=behaviour,
        )
        for what, behaviour in (
            ("status 429", "429"),
            ("status 500", "500"),
            ("never answers", "silence"),
            ("trickles", "trickle"),
            ("half-closed stream", "half"),
            ("malformed answers", "malformed"),
        )
    ),
    Fault(
        "10,000 malformed answers of a model",
        answers.thousands,
        (
            QUIET_OUCH,
            REST,
            Bound(answers.TAKEN, 0),
            Bound(answers.READ, inf, least=answers.NUMBER),
            Bound(answers.ASKED, inf, least=answers.OVER_HTTP),
        ),
    ),
    Fault("hogs and full disk: e-stop", pressed, ESTOPS, around=_hogged_and_full, is_alone=True),
    Fault(
        "hogs, full disk and 5,000 commands a second: e-stop",
        trials.switched(pressed, mode=FLOOD),
        ESTOPS,
        around=_hogged_and_full,
        is_alone=True,
        is_by_rights=True,
    ),
    Fault(
        "estop at a terminal",
        attacks.at_terminal,
        (Bound(attacks.ENTER, 400.0, p99=300.0), REST),
        is_quick=True,
        is_alone=True,
        is_by_rights=True,
    ),
    Fault(
        "estop at a terminal, the guard is frozen",
        attacks.guard_frozen,
        (Bound(attacks.ENDED, 850.0), Bound(AT_REST, 2500.0), Bound(attacks.LATCHED, 1, least=1), UNASKED),
        is_alone=True,
    ),
    Fault(
        "the run's folder with its sockets is deleted, then estop at a terminal",
        attacks.folder_deleted,
        (Bound(attacks.DELETED, 1000.0), Bound(attacks.ENTER, 400.0, p99=300.0), Bound(AT_REST, 2500.0)),
        is_fresh=True,
        is_alone=True,
    ),
    Fault(
        "a moving robot: leases, fences, states and commands under every name",
        attacks.impersonated,
        (*UNMOVED, Bound(LIMITS, 0), Bound(STALE, 0), UNASKED),
        is_alone=True,
        is_by_rights=True,
    ),
    Fault(
        "a model that says 100 hostile things: Ouch!",
        attacks.talked_at,
        (*UNMOVED, Bound(attacks.SAID, inf, least=200), Bound(attacks.BY_MODEL, 0), Bound(LIMITS, 0), UNASKED),
        changes={"planner": f'use = "{NODES}HostilePlanner"'},
        is_by_rights=True,
    ),
    Fault("contact, then go on: the way back", attacks.touched_then_on, WAY_BACK),
    Fault("Ouch!, then go on: the way back", attacks.hurt_then_on, WAY_BACK, changes=EARS),
    Fault(
        "two people stop the robot, and one of them says go on",
        attacks.two_people,
        (QUIET_OUCH, REST, Bound(attacks.OTHERS, 0), UNASKED),
        changes=EARS,
    ),
    Fault(
        "a tool floods interrupt: a page's stop button",
        attacks.shouted_down,
        (Bound(attacks.BUTTON, 250.0), REST),  # without real-time rights a bare timer loop beside it is 90 ms late
        is_alone=True,
        is_by_rights=True,
    ),
    Fault(
        "a signed go on, overheard and changed", attacks.overheard, (Bound(attacks.FORGED, 0), UNASKED), changes=EARS
    ),
    Fault(
        "stops under 2,000 names of 1,000 characters",
        attacks.crowded,
        (Bound(attacks.LATCH, 32.0), Bound(attacks.GROWN, 64.0), REST),
    ),
    Fault("a stopped robot: go on under every name", attacks.forged, (Bound(attacks.FORGED, 0), UNASKED)),
    Fault(
        "a second run of the robot, by a copy of the launch file",
        attacks.second_run,
        (Bound(attacks.SECOND, 0), *ESTOPS),
        changes=CLAIMED,
    ),
    *(
        Fault(f"{what}: e-stop", pressed, ESTOPS, prefix=prefix, is_fresh=True, most_trials=20)
        for what, prefix in (("/dev/shm of 64 kB", attacks.SHM_TINY),)
    ),
    Fault(
        "/dev/shm is full: e-stop",
        lambda rig: trials.fallen(rig, pressed),
        ESTOPS,
        around=_full_shared_memory,
        prefix=attacks.SHM_SMALL,
        is_fresh=True,
        most_trials=20,
    ),
    Fault(
        "40 descriptors for each process",
        attacks.starved,
        (Bound(attacks.STARTED, 0),),
        prefix=attacks.FEW_DESCRIPTORS,
        is_fresh=True,
        most_trials=20,
    ),
    Fault(
        "disk full while recording: Ouch!",
        trials.fallen,
        (
            LOADED_OUCH,
            REST,
        ),
        around=_full_disk,
        is_alone=True,
    ),
    *(
        Fault(f"beside a watchdog: {what}", trial, bounds, changes=watched.WATCHDOG, is_quick=is_quick)
        for what, trial, bounds, is_quick in (
            ("guard and driver: SIGKILL", watched.guard_lost(signal.SIGKILL), PRESSED, False),
            ("guard and driver: SIGSTOP", watched.guard_lost(signal.SIGSTOP), PRESSED, True),
            ("a stopped robot creeps, and its driver says that it stands", watched.creeps, CREPT, False),
            ("the motors are twice as fast as the driver says", watched.goes_otherwise, OTHERWISE, False),
            ("noise on both its sockets", watched.garbled, (*UNMOVED, Bound(watched.TRIPS, 0)), False),
            ("the watchdog: SIGKILL, then the guard: SIGSTOP", watched.watchdog_killed, BACK, False),
            ("the watchdog: SIGSTOP", watched.watchdog_frozen, (Bound(watched.SILENT, 1300.0), UNASKED), False),
            ("what it costs", watched.costs, (Bound(watched.COST, 1.0), Bound(watched.TRIPS, 0)), False),
        )
    ),
    Fault(
        "beside a watchdog: 2 CPU hogs and 5,000 commands a second",
        watched.left_alone,
        (Bound(watched.TRIPS, 0), LOADED_OUCH, REST),
        changes=watched.WATCHDOG,
        around=_two_hogs,
        is_alone=True,
    ),
)
