"""`Guard`: the last node before the motors. A thin shell around the state machine; it ticks by itself at 50 Hz.

It alone publishes fences and leases. Epochs, leases and a latched stop outlive it in a small file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from nodes.camera.repeats import PictureWatch
from nodes.guard import persistence
from nodes.guard.arbitration import Arbitration, SeatConfig
from nodes.guard.command_sources import STUCK
from nodes.guard.estop_signal import EstopSignals
from nodes.guard.feed import WatchdogFeed
from nodes.guard.graph_rules import KnowsItsGraph
from nodes.guard.immediate_faults import GuardSettings
from nodes.guard.motion_profile import limits_of
from nodes.guard.persistence import SavedState, StateFile
from nodes.guard.space import Space
from nodes.guard.state_machine import LONGEST_TEXT, GuardMachine
from nodes.guard.stop_latch import Refusal
from nodes.msgs import (
    TERMINAL,
    AnswerCode,
    Cause,
    DriverOrder,
    EStop,
    GuardAnswer,
    GuardOrder,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    OutOfBudget,
    RobotService,
    RobotState,
    RobotStatus,
    SceneDescription,
    SeatRequest,
    Subtask,
)
from nodes.msgs.signature import TOKEN_FILE, Signatures, make_token
from nodes.robot.robot_from_launch import ForRobot, body_named, claim_of
from runtime import (
    ALONE,
    FENCE_TOPIC,
    LEASE_TOPIC,
    URGENT,
    Fence,
    Lease,
    Node,
    ParameterError,
    Publisher,
    QoS,
    Stamped,
    Subscription,
    UserError,
    every,
    on,
    to_ns,
    to_s,
)
from runtime.supervision.registry import account

RATE_HZ = 50
TICKS_PER_FEED = 2
TICKS_PER_REPORT = 5
TICKS_PER_REPETITION = 25
LONGEST_LIFESPAN_S = 0.5
LONGEST_IMAGE_AGE_S = 60.0
LONGEST_ESTOP_SILENCE_S = 10.0
FROZEN_NS = to_ns(0.1)
"""A tick that took longer than this was frozen halfway; a new stamp would hide the age of its output."""
MOST_ESTOP_SOURCES = 32
OTHER_SOURCES = "sources beyond the first 32"
"""Stands for e-stop sources beyond `MOST_ESTOP_SOURCES`: nobody knows which are released, so no re-arming counts."""
LONGEST_NAME = 80
"""Most characters kept of a name."""
UNKNOWN = "what was latched before is not known"


class Guard(ForRobot, KnowsItsGraph, Node):
    """Passes the policy's commands on within all limits, brakes when none is usable, and stops at once when told to.

    `robot` is "stretch_3", or names limits as "module:NAME"; `[run] robot` of a launch file sets it for all nodes. A
    command may name a distant target: each joint goes there at its acceleration limit, and its speed limit times
    `speed_scale` (above 0, at most 1). A command is valid for `lifespan_s`, at most 0.5 s.

    `arm="auto"` arms as soon as the posture is known, in simulation only: with a real robot the run does not start. A
    guard that returns in mid-run starts stopped. With "manual", the default, a person arms it (`polyrhythm guard arm`).
    `memory` says how long a latched stop is kept: "machine" from run to run, "run" within one run.

    Requests arrive on `guard/order`, `robot/service`, `robot/runstop` and `seat/request` and are answered on
    `guard/answer`. They must be signed, except those that stop the robot, and the hand-overs of the launch file's
    ladder after a silence that the guard has seen itself. Orders to the driver stay within the process; no socket
    carries them.

    A command is refused where the oldest image, plan or utterance behind it is older than its `max_..._age_s`, in s. It
    is also refused without an origin that `needs` names, and without a plan or utterance where their limit is given.

    `keep_in` and each box of `keep_out` are [x_low, x_high, y_low, y_high, z_low, z_high], m, odometry frame. Each of
    `estop_sources` counts as pressed after `estop_silence_s` without a message, also at the start. Effort of a joint
    above `max_effort_percent`, in percent of its maximum, stops the robot when it lasts.

    Raises ParameterError where a parameter is outside its range.
    """

    realtime = True
    believes = "lifter"
    thread_safe = ("state_file",)
    robot_parameter = "robot"
    fixed = frozenset(
        {"tick", "settle", "interrupt", "estop", "robot/command", "robot/state", "robot/status", "robot/runstop",
         "driver/runstop", "driver/service"}
    )  # fmt: skip

    command = Subscription(JointCommand, "command", qos=QoS(lifespan_s=0.150))
    state = Subscription(RobotState, "robot/state")
    status = Subscription(RobotStatus, "robot/status", qos=QoS(required=False))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    estops = Subscription(EStop, "estop", qos=QoS(required=False))
    orders = Subscription(GuardOrder, "guard/order", qos=QoS(required=False))
    requests = Subscription(SeatRequest, "seat/request", qos=QoS(required=False))
    services = Subscription(RobotService, "robot/service", qos=QoS(required=False))
    buttons = Subscription(RobotService, "robot/runstop", qos=QoS(required=False))
    subtask = Subscription(Subtask, "subtask", qos=QoS(required=False))
    description = Subscription(SceneDescription, "description", qos=QoS(required=False))
    image = Subscription(Image, "head/image", qos=QoS(required=False))
    out_of_budget = Subscription(OutOfBudget, "seat/out_of_budget", qos=QoS(required=False))

    robot_command = Publisher(JointCommand, "robot/command", qos=ALONE)
    driver_service = Publisher(DriverOrder, "driver/service", qos=ALONE)
    driver_runstop = Publisher(DriverOrder, "driver/runstop", qos=ALONE)
    guard_state = Publisher(GuardState, "guard/state", qos=ALONE)
    answer = Publisher(GuardAnswer, "guard/answer", qos=ALONE)
    fence = Publisher(Fence, FENCE_TOPIC, qos=ALONE)
    lease = Publisher(Lease, LEASE_TOPIC, qos=ALONE)
    raised = Publisher(Interrupt, "interrupt", qos=URGENT)

    def __init__(
        self,
        robot: str = "stretch_3",
        arm: Literal["auto", "manual"] = "manual",
        speed_scale: float = 1.0,
        lifespan_s: float = 0.150,
        max_image_age_s: float = 1.0,
        memory: Literal["machine", "run"] = "machine",
        estop_sources: tuple[str, ...] = (),
        estop_silence_s: float = 0.5,
        max_effort_percent: float = 95.0,
        max_plan_age_s: float | None = None,
        max_utterance_age_s: float | None = None,
        needs: tuple[str, ...] = (),
        keep_in: tuple[float, ...] = (),
        keep_out: dict[str, tuple[float, ...]] | None = None,
    ) -> None:
        if arm not in ("auto", "manual"):
            raise ParameterError(f"guard: arm is {arm!r}; known: auto, manual")
        if memory not in ("machine", "run"):
            raise ParameterError(f"guard: memory is {memory!r}; known: machine, run")
        if not 0.0 < lifespan_s <= LONGEST_LIFESPAN_S:
            raise ParameterError(
                f"guard: lifespan_s is {lifespan_s}; expected more than 0 and at most {LONGEST_LIFESPAN_S}"
            )
        for name, value in (
            ("max_image_age_s", max_image_age_s),
            ("max_plan_age_s", max_plan_age_s),
            ("max_utterance_age_s", max_utterance_age_s),
            ("estop_silence_s", estop_silence_s),
        ):
            if value is not None and not 0.0 < value < float("inf"):
                raise ParameterError(f"guard: {name} is {value}; expected a positive number of seconds")
        for name, value, most_s in (
            ("max_image_age_s", max_image_age_s, LONGEST_IMAGE_AGE_S),
            ("estop_silence_s", estop_silence_s, LONGEST_ESTOP_SILENCE_S),
        ):
            if value > most_s:
                raise ParameterError(f"guard: {name} is {value}; more than {most_s:g} s is no limit")
        if not 0.0 < max_effort_percent <= 100.0:
            raise ParameterError(
                f"guard: max_effort_percent is {max_effort_percent}; expected more than 0, at most 100"
            )
        for origin in needs:
            if origin not in ("image", "plan", "utterance"):
                raise ParameterError(f"guard: needs names {origin!r}; known: image, plan, utterance")
        limited = {"plan": max_plan_age_s, "utterance": max_utterance_age_s}
        self.arm = arm
        self.robot_name = robot
        self.memory = memory
        self.estop_silence_ns = to_ns(estop_silence_s)
        limits = limits_of(robot, speed_scale)
        self.machine = GuardMachine(
            limits,
            GuardSettings(
                lifespan_s=lifespan_s,
                max_image_age_s=max_image_age_s,
                max_plan_age_s=max_plan_age_s,
                max_utterance_age_s=max_utterance_age_s,
                needs=frozenset((*needs, *(name for name, value in limited.items() if value is not None))),
                max_effort_percent=max_effort_percent,
            ),
            Space(limits, keep_in, keep_out),
        )
        # The port forgets a stale command too, so that no output inherits the age of one that was not applied.
        self.command.qos = replace(self.command.qos, lifespan_s=lifespan_s)
        self.pictures = PictureWatch(body_named(limits.body) if limits.body else None)
        self.seen_ns = -1  # the newest picture's time
        self.arbitration = Arbitration()
        self.proofs = Signatures()
        self.estop_sources = tuple(estop_sources)
        self.heard_ns: dict[str, int] = {}  # configured e-stop sources
        self.pressed: set[str] = set()
        self.lifters: frozenset[str] = frozenset()  # nodes that may lift a stop; they check who asked for it
        self.ticks = 0
        self.raised_count = 0
        self.unpublished_fault: Cause = ""  # a fault that the guard has stopped for and not yet published
        self.forwarded = ("", -1)
        self.reported: GuardState | None = None
        self.logged_refusal = ""
        self.state_file: StateFile | None = None
        self.run = ""  # identifies the run; the same for every guard in it
        self.armed_in = ""  # the run in which a guard was armed last
        self.disk_problem = ""
        self.needed_files: tuple[Path, ...] = ()  # by which tools and restarted processes find this run
        self.gone = ""  # why one of them is missing, or ""
        self.estop_signals: EstopSignals | None = None
        self.watchdog: WatchdogFeed | None = None

    def claims(self) -> tuple[str, ...]:
        """The robot that this run reserves, where its latch outlives the run; empty where it does not."""
        return (claim_of(self.robot_name),) if self.memory == "machine" else ()

    def devices(self) -> tuple[str, ...]:
        """Empty: the driver owns the hardware."""
        return ()

    def on_start(self) -> None:
        """Load the latched state, make the run's token, and start listening for the e-stop signal.

        Raises UserError where `arm` is "auto" with a real robot, or where a latch could not be saved.
        """
        info = self.run_info
        if info.devices and self.arm == "auto":
            raise UserError(
                f"{self.name}: arm is 'auto', and {info.devices[0]} is a real one, which a person arms; leave arm out, "
                "and arm it by: polyrhythm guard arm --run NAME"
            )
        now_ns = self.clock.now_ns()
        self.heard_ns = dict.fromkeys(self.estop_sources, now_ns)
        self.lifters = info.in_role("lifter")
        homes = msgspec.convert(info.seats, dict[str, SeatConfig])
        self.arbitration = Arbitration(homes, info.node_seats)
        is_back = False
        if registry := info.registry:
            self.run = registry
            is_back = (Path(registry) / TOKEN_FILE).exists()
            self.proofs = Signatures(make_token(Path(registry)), now_ns)
            self.watchdog = WatchdogFeed(Path(registry), now_ns) if "watchdog" in info.programs else None
        self.needed_files = tuple(path for path in map(Path, info.needed_files) if path.exists())
        self._recall(persistence.place_of(self.memory, self.robot_name, info), now_ns, is_back=is_back)
        if info.has_signal:
            self.estop_signals = EstopSignals()
            self.estop_signals.start()

    def _recall(self, path: Path | None, now_ns: int, *, is_back: bool) -> None:
        """Read what an earlier guard has latched. Raises UserError where this one could save nothing."""
        if path is None:
            return
        known: SavedState | None = None
        problem = ""
        try:
            persistence.carry_over(path)
            known = persistence.read(path)
        except (OSError, ValueError) as error:
            problem = str(error)
        if known is None and not problem and path.parent != Path(self.run) and path.parent.is_dir():
            problem = "it was deleted, and what was latched with it: this robot was here before"
        if known is None and (is_back or problem):
            self.arbitration.begin_at(now_ns // 1_000_000)  # no guard issued more than one per millisecond
            self.state_file = StateFile(path)
            self.machine.restore(UNKNOWN, "", now_ns)
            self._remember()
            self.log.error("%s: %s; the guard starts stopped", path, problem or "the file is gone")
            if not is_back and not path.exists():
                raise UserError(
                    f"{self.name}: {path}: cannot be kept there, so what is latched would be lost; {problem}"
                )
            return
        self.state_file = StateFile(path, known)
        try:
            self.state_file.reserve()
        except OSError as error:
            text = f"{path}: cannot be written ({error.strerror}), so what is latched would be lost; make room there"
            if path.parent != Path(self.run):
                raise UserError(f"{self.name}: {text}") from error
            self.log.error("%s", text)
        if known is not None:
            self.arbitration.restore(known.epochs, known.leases, now_ns)
            self.armed_in = known.armed_in
            was_armed = self.arm == "auto" and known.armed_in != "" and known.armed_in == self.run
            stop = known.stop or ("the guard was restarted" if was_armed else "")
            self.machine.restore(stop, known.estop, now_ns, known.locks)

    # Half a period after a driver in its process: each state is seen, and each command applied, exactly once.
    @every(hz=RATE_HZ, phase=0.5)
    def tick(self) -> None:
        """Check all monitors, apply the newest command, and publish one command to the driver; 50 times a second."""
        now_ns = self.clock.now_ns()
        if self.estop_signals is not None:
            self._take_signals(self.estop_signals, now_ns)
        state = self.state.latest()
        if state is not None:
            self.machine.update_state(state)
            self.pictures.note(state)
        if (picture := self.image.peek()) is not None:  # not read: what the guard says does not stem from it
            self._see(picture.message)
        status = self.status.latest()
        if status is not None:
            self.machine.update_status(status)
        if self.arm == "auto" and self.machine.mode == "disarmed":
            self.arm_robot(now_ns)
        fault = self.machine.check_monitors(now_ns) or self.machine.check_conduct(now_ns)
        self.check_estop_heartbeats(now_ns)
        lost = self.arbitration.expired(now_ns)
        if any(lease.seat == "policy" for lease in lost):
            self._stop("link", "the link to the person in command is lost", now_ns)
        if self.gone:
            self._stop("link", self.gone, now_ns)
        if fault:
            self._output()
            self.unpublished_fault = fault
        elif self.unpublished_fault:  # the reflex had one tick to publish it with its cause
            self._announce(self.unpublished_fault)
        for lease in lost:
            self._issue(lease)
        self.forward(self.command.peek())
        self._output(now_ns)
        if self.ticks % TICKS_PER_FEED == 0:
            self._feed()
        self.ticks += 1
        if self.ticks % TICKS_PER_REPETITION == 1:
            self._repeat()
        self.report(is_due=self.ticks % TICKS_PER_REPORT == 1)

    @every(hz=5, blocking=True)
    def settle(self) -> None:
        """Write the saved state to the disk, on a thread that may wait; check that tools can still reach the run."""
        gone = [path.name for path in self.needed_files if not path.exists()]
        if gone and not self.gone:
            text = (
                f"{gone[0]} of this run was deleted from {self.run}: no tool reaches it any more; end it and start anew"
            )
            self.gone = text
            self.log.error("%s", text)
        if self.state_file is None:
            return
        try:
            self.state_file.sync()
            self.disk_problem = ""
        except OSError as problem:
            text = (
                f"{self.state_file.path}: cannot be synced ({problem.strerror}); a power cut would lose what is latched"
            )
            before, self.disk_problem = self.disk_problem, text
            if text != before:  # once, not five times a second
                self.log.error("%s", text)

    def on_stop(self) -> None:
        """Stop listening for signals and write the saved state to the disk."""
        if self.estop_signals is not None:
            self.estop_signals.close()
        self.needed_files = ()
        self.settle()
        if self.watchdog is not None:
            self.watchdog.close(self.clock.now_ns())

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        """Act on an interrupt at its arrival: braking does not wait for the next tick.

        A "resume" counts only from a node that may lift stops (`role = "lifter"`) and holds no seat.
        """
        now_ns = self.clock.now_ns()
        trigger = self.context.trigger
        if trigger is not None and trigger.envelope.source == self.name:
            return  # this guard's own, already carried out
        interrupt = _clipped(interrupt)
        if trigger is not None and (trigger.envelope.source not in self.lifters or trigger.envelope.seat):
            if interrupt.depth == "resume":
                why = f"resume by {interrupt.by!r} refused: {trigger.envelope.source} does not speak for people"
                self._answer(interrupt.id, "resume", interrupt.by, Refusal("not_a_person", why))
                return
            interrupt = _of_others(interrupt)
        heard_ns = trigger.envelope.begun_ns("utterance") if trigger is not None else now_ns
        was_stopped = self.machine.mode == "stopped"
        if self.unpublished_fault and interrupt.depth == "stop":
            self.unpublished_fault = ""
            self.machine.name_stop(interrupt.id)
        refusal = self.machine.interrupt(interrupt, heard_ns, now_ns)
        if interrupt.depth in ("stop", "replan", "hold"):
            self._output()
        elif interrupt.depth == "resume":
            self._answer(interrupt.id, "resume", interrupt.by, refusal)
        if interrupt.depth == "hold":  # it voids nothing
            self.report(is_due=True)
            return
        if interrupt.depth != "resume" or (was_stopped and self.machine.mode != "stopped"):
            self.fence.publish(self.arbitration.fence(interrupt))
        self.report(is_due=True)
        self._remember()

    @on(estops)
    def emergency(self, estop: EStop) -> None:
        """Latch the emergency stop when a source is pressed. Its release lifts nothing; it only permits re-arming."""
        now_ns, source = self.clock.now_ns(), estop.source[:LONGEST_NAME]
        if source in self.heard_ns:
            self.heard_ns[source] = now_ns
        if not estop.is_pressed:
            self.pressed.discard(source)
            return
        is_known = source in self.pressed or len(self.pressed) < MOST_ESTOP_SOURCES
        self.pressed.add(source if is_known else OTHER_SOURCES)
        self._estop(f"{source}: {estop.why[:LONGEST_TEXT] or 'pressed'}", now_ns)

    @on(orders)
    def ordered(self, order: GuardOrder) -> None:
        """Arm, re-arm or resume for a person whose order is signed; answer on `guard/answer`."""
        now_ns = self.clock.now_ns()
        refusal: Refusal | None
        if not self.proofs.holds(order, now_ns):
            refusal = _unsigned(order.do, order.by)
        elif order.do == "rearm":
            refusal = self._rearm(order.by, now_ns)
        elif order.do == "resume":
            refusal = self._resume(order, now_ns)
        else:
            refusal = None
            if not self.arm_robot(now_ns):
                why = f"arming by {order.by!r}: the guard is {self.machine.mode}, or the robot's state is not known"
                refusal = Refusal("not_ready", why)
        self._answer(order.id, order.do, order.by, refusal)
        self.report(is_due=True)
        self._remember()

    @on(services)
    def serve(self, service: RobotService) -> None:
        """Let the robot home or stow, by a signed request, while nothing is stopped and nothing moves."""
        now_ns = self.clock.now_ns()
        verb = service.verb
        refusal: Refusal | None
        if verb not in ("home", "stow"):
            refusal = Refusal("not_ready", f"{verb} by {service.by!r}: robot/service takes home and stow")
        elif not self.proofs.holds(service, now_ns):
            refusal = _unsigned(verb, service.by)
        else:
            refusal = self.machine.begin_service(now_ns)
            if refusal is None:
                self.driver_service.publish(DriverOrder(verb=verb, why=f"asked for by {service.by}"))
        self._answer(service.id, verb, service.by, refusal)
        self.report(is_due=True)

    @on(buttons)
    def press(self, service: RobotService) -> None:
        """Press the robot's own runstop for anybody; release it for a signed request only."""
        refusal = None
        if service.verb == "release" and not self.proofs.holds(service, self.clock.now_ns()):
            refusal = _unsigned(service.verb, service.by)
        elif service.verb not in ("runstop", "release"):
            refusal = Refusal("not_ready", f"{service.verb} by {service.by!r}: robot/runstop takes runstop and release")
        else:
            self.driver_runstop.publish(DriverOrder(verb=service.verb, why=f"asked for by {service.by}"))
        self._answer(service.id, service.verb, service.by, refusal)

    @on(requests)
    def seated(self, request: SeatRequest) -> None:
        """Give a seat to the holder who was asked for, where the request is signed or the seat's ladder allows it."""
        trigger = self.context.trigger
        source = trigger.envelope.source if trigger is not None else request.holder
        now_ns = self.clock.now_ns()
        is_proven = self.arbitration.allows_ladder(request, now_ns) or self.proofs.holds(request, now_ns)
        answer = self.arbitration.decide(request, source, now_ns, is_proven=is_proven)
        if isinstance(answer, Lease):
            self._issue(answer)
            self._answer(request.id, request.do, request.by, None)
        elif answer:
            code: AnswerCode = "no_seat" if is_proven else "unsigned"
            self._answer(request.id, request.do, request.by, Refusal(code, answer))

    @on(subtask)
    def planned(self, subtask: Stamped[Subtask]) -> None:
        """Note that the planner is heard, and when: a ladder is believed about a silence that the guard sees, too."""
        self.arbitration.hear("planner", subtask.envelope.source, subtask.envelope.published_ns)

    @on(description)
    def described(self, description: Stamped[SceneDescription]) -> None:
        """Note that the VLM is heard, and when."""
        self.arbitration.hear("vlm", description.envelope.source, description.envelope.published_ns)

    @on(out_of_budget)
    def spent(self, message: OutOfBudget) -> None:
        """Note a holder that says of itself that its model may not be asked any more."""
        if (trigger := self.context.trigger) is not None:
            self.arbitration.spend(message.seat, trigger.envelope.source)

    # --- actions

    def arm_robot(self, now_ns: int) -> bool:
        """Arm the guard and save that this run was armed; False where the machine refuses."""
        is_armed = self.machine.arm(now_ns)
        if is_armed:
            self.armed_in = self.run
            self._remember()
        return is_armed

    def _see(self, picture: Image) -> None:
        """Note a camera that shows one picture where it must show another: what stems from it is not fresh."""
        if picture.captured_ns == self.seen_ns:
            return
        self.seen_ns = picture.captured_ns
        sources = self.machine.sources
        was_stuck, sources.is_picture_stuck = sources.is_picture_stuck, self.pictures.see(picture)
        if sources.is_picture_stuck and not was_stuck:
            self.log.warning("camera %s: %s", picture.camera[:LONGEST_NAME], STUCK)

    def _rearm(self, by: str, now_ns: int) -> Refusal | None:
        self.check_estop_heartbeats(now_ns)
        if self.pressed:
            return Refusal("pressed", f"re-arming by {by!r}: still pressed: {', '.join(sorted(self.pressed))}")
        if not self.machine.rearm(by, now_ns):
            return Refusal("not_estopped", f"re-arming by {by!r}: there is no emergency stop")
        return None

    def _resume(self, order: GuardOrder, now_ns: int) -> Refusal | None:
        """Lift a stop for a person who holds the run's token, and tell everybody."""
        self.raised_count += 1
        ident = f"{self.name}-{self.raised_count}"
        interrupt = Interrupt(id=ident, depth="resume", text="go on", by=order.by, cause="person")
        refusal = self.machine.interrupt(interrupt, order.stamp_ns, now_ns, is_operator=True)
        if refusal is None:
            self.fence.publish(self.arbitration.fence(interrupt))
            self.raised.publish(interrupt)
        return refusal

    def _answer(self, request: str, do: str, by: str, refusal: Refusal | None) -> None:
        if refusal is None:
            self.answer.publish(GuardAnswer(request=request, do=do, by=by, is_accepted=True, code="done"))
            return
        code, why = refusal
        self.answer.publish(GuardAnswer(request=request, do=do, by=by, is_accepted=False, code=code, why=why))
        if do != "resume" or code == "not_a_person":  # the machine counts other refused resumes
            self.machine.reject(why, is_expected=code in ("stopped", "estopped"))
        self.report(is_due=True)

    def forward(self, stamped: Stamped[JointCommand] | None) -> None:
        """Hand the machine a command that it has not seen; a source that does not hold the policy's seat is ignored."""
        if stamped is None or (stamped.envelope.source, stamped.envelope.seq) == self.forwarded:
            return
        self.forwarded = (stamped.envelope.source, stamped.envelope.seq)
        self.arbitration.hear("policy", stamped.envelope.source, stamped.envelope.published_ns)
        lease = self.arbitration.leases.get("policy")
        if lease is not None and lease.holder != stamped.envelope.source:
            return  # it came before the hand-over; the ports drop what comes after
        self.machine.accept_command(stamped, self.clock.now_ns())

    def _output(self, begun_ns: int | None = None) -> None:
        """Give the driver the command of this moment; nothing where the process was frozen since `begun_ns`."""
        now_ns = self.clock.now_ns()
        command = self.machine.tick(now_ns)
        if command is not None and self.clock.now_ns() - (begun_ns or now_ns) < FROZEN_NS:
            applied = self.machine.applied  # braking stems from no image
            self.robot_command.publish(command, stems_from=() if applied is None else applied)
        if self.machine.needs_runstop(now_ns):
            self.driver_runstop.publish(
                DriverOrder(verb="runstop", why=self.machine.conduct.runstop_reason or self.machine.reason)
            )

    def _feed(self) -> None:
        """Tell the watchdog what is done; stop where it answers no more."""
        now_ns, machine = self.clock.now_ns(), self.machine
        if self.watchdog is not None and not self.watchdog.tell(
            machine.mode, machine.commanded(), machine.monitors.state, now_ns
        ):
            self._stop("guard", "the watchdog does not answer", now_ns)

    def _stop(self, cause: Cause, why: str, now_ns: int) -> None:
        if self.machine.is_stopped:
            return
        self.machine.stop(cause, why, now_ns, now_ns)
        self._output()
        self._announce(cause)

    def _estop(self, why: str, now_ns: int) -> None:
        if self.machine.mode == "estopped":
            return
        self.machine.estop(why, now_ns)
        self._output()
        self._announce("guard", by="estop")

    def _announce(self, cause: Cause, by: str = "") -> None:
        """Publish a stop that this guard has decided and already carried out."""
        self.unpublished_fault = ""
        self.raised_count += 1
        ident, text = f"{self.name}-{self.raised_count}", self.machine.reason_text
        interrupt = Interrupt(id=ident, depth="stop", text=text, by=by or cause, cause=cause)
        self.machine.name_stop(interrupt.id)
        self.fence.publish(self.arbitration.fence(interrupt))
        self.raised.publish(interrupt)
        self.report(is_due=True)
        self._remember()

    def _take_signals(self, signals: EstopSignals, now_ns: int) -> None:
        """Latch the e-stop for each signal received, and answer the sender once the output brakes."""
        for pid, uid in signals.take():
            self.pressed.add(TERMINAL)
            self._estop(f"{TERMINAL}: pressed by {account(uid)}", now_ns)
            signals.answer(pid)

    def check_estop_heartbeats(self, now_ns: int) -> None:
        """Latch the emergency stop for each configured source that was silent for longer than `estop_silence_s`."""
        for source, heard_ns in self.heard_ns.items():
            if now_ns - heard_ns > self.estop_silence_ns:
                self.pressed.add(source)
                self._estop(f"{source}: silent for {to_s(self.estop_silence_ns):g} s", now_ns)

    def _issue(self, lease: Lease) -> None:
        if lease.seat == "policy":
            self.machine.transfer_control(lease.holder, self.clock.now_ns())
        self.lease.publish(lease)
        self._remember()
        self.log.info(
            "seat %s: held by %s (%s), given by %s: %s", lease.seat, lease.holder, lease.kind, lease.by, lease.why
        )

    def _repeat(self) -> None:
        """Publish epochs and leases again, for readers that joined late."""
        self.fence.publish(Fence(epochs=self.arbitration.epochs))
        for _, lease in sorted(self.arbitration.leases.items()):  # a recording does not keep the launch file's order
            self.lease.publish(lease.repeated())

    def _remember(self) -> None:
        """Save what has changed; a full disk does not stop the guard."""
        machine = self.machine
        now = SavedState(
            epochs=self.arbitration.epochs,
            leases={str(seat): lease for seat, lease in self.arbitration.leases.items()},
            stop=machine.reason if machine.is_stopped else "",
            estop=machine.latch.estop,
            armed_in=self.armed_in,
            locks=machine.latch.stoppers,
        )
        if self.state_file is None:
            return
        try:
            self.state_file.note(now)
        except OSError as problem:
            self.log.error(
                "%s: cannot be written (%s); a restart would not know of this", self.state_file.path, problem.strerror
            )

    def report(self, *, is_due: bool) -> None:
        """Publish `guard/state` where it `is_due` or has changed; log a changed mode, reason or refusal once."""
        report = self.machine.report()
        before = self.reported
        is_news = before is None or (before.mode, before.reason, not before.at_rest_ns) != (
            report.mode,
            report.reason,
            not report.at_rest_ns,
        )
        if is_due or is_news:
            self.reported = report
            self.guard_state.publish(report)
        if before is None or (before.mode, before.reason) != (report.mode, report.reason):
            self.log.info("%s", report.sentence)
        if is_due and self.machine.refusal != self.logged_refusal:  # a refusal may repeat at every tick
            self.logged_refusal = self.machine.refusal
            tell = self.log.info if self.machine.is_refusal_expected else self.log.warning
            tell("refused: %s (%d so far)", self.machine.refusal, self.machine.rejected)


def _clipped(interrupt: Interrupt) -> Interrupt:
    """The interrupt with names and texts cut to the lengths that are kept."""
    texts = {name: getattr(interrupt, name)[:LONGEST_TEXT] for name in ("id", "text", "takes_back")}
    texts |= {"by": interrupt.by[:LONGEST_NAME], "person": interrupt.person[:LONGEST_TEXT]}
    return msgspec.structs.replace(interrupt, **texts)  # type: ignore[type-var]  # a Struct


def _of_others(interrupt: Interrupt) -> Interrupt:
    """What counts of an interrupt that neither the guard nor a reflex has raised: it stops, opens no gripper, owes no
    way back, and has no cause that only those two can know."""
    cause: Cause = interrupt.cause if interrupt.cause in ("person", "ladder") else ""
    return msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        interrupt, is_caught=False, is_pain=False, cause=cause, person=interrupt.person if cause == "person" else ""
    )


def _unsigned(do: str, by: str) -> Refusal:
    return Refusal("unsigned", f"{do} by {by or 'unknown'!r} is not proven with the run's token")
