"""Writes the recording of a plausible run of 60 s, with known figures, for the tests of everything that reads one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    Reference,
    RobotState,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
    aimed_at,
)
from nodes.recording.recorder import Recorder
from nodes.sim.messages import ObjectTruth, Truth
from runtime.clock import SystemClock
from runtime.coordination.health import Health, PathHealth, PortHealth, Spending, TimerHealth
from runtime.message import Envelope, Message, Stamped
from runtime.run_facts import RunFacts

START_NS = 5_000_000_000_000
STOP_S, HELD_MS, REST_S, RESUME_S = 30.0, 12.0, 30.4, 36.0
COLOURS = {"red": (200, 50, 45), "green": (60, 160, 80), "blue": (50, 90, 200), "yellow": (225, 190, 60)}
DIALOGUE = (
    (2.0, "heard", "collaborator", "Please clear the table: put the cups in the bin"),
    (2.6, "said", "robot", "All right, I will put every cup in the bin."),
    (14.0, "heard", "collaborator", "No, not the blue one"),
    (14.4, "said", "robot", "I leave the blue one."),
    (STOP_S, "heard", "collaborator", "Ouch! That's my toe!"),
    (30.1, "said", "robot", "Sorry. I stopped."),
    (RESUME_S, "heard", "collaborator", "All right, go on"),
    (59.0, "said", "robot", "Every cup but the blue one is in the bin."),
)
ACTIONS = (
    (3.2, "pick", "red", 8.0, "success"),
    (8.2, "place", "red", 12.0, "success"),
    (12.4, "pick", "blue", 14.5, ""),
    (14.5, "pick", "green", 20.0, "failure"),
    (20.2, "pick", "green", 26.0, "success"),
    (26.4, "place", "green", 42.0, "success"),
    (42.3, "pick", "yellow", 50.0, "success"),
    (50.2, "place", "yellow", 58.0, "success"),
)


class _StartOfRun(SystemClock):
    def now_ns(self) -> int:
        return START_NS


class _Writer:
    def __init__(self, folder: Path) -> None:
        self.recorder = Recorder(path=str(folder / "run.mcap"))
        self.recorder.clock = _StartOfRun()
        self.recorder.run_info = RunFacts.of(
            {
                "seed": 7,
                "launch_text": '[nodes.planner]\nuse = "nodes.planner:Planner"\n',
                "machine": "a machine",
                "git": "abc123",
                "versions": {"polyrhythm": "0.1.0"},
            }
        )
        self.seqs: dict[tuple[str, str], int] = {}
        self.waiting: list[tuple[int, Stamped[Message]]] = []

    def put(
        self, at_s: float, topic: str, source: str, message: Message, *, image_ms: float = 0.0, heard_s: float = 0.0
    ) -> None:
        ns = START_NS + round(at_s * 1e9)
        origins = {"image": ns - round(image_ms * 1e6)} if image_ms else {}
        if heard_s:
            origins["utterance"] = START_NS + round(heard_s * 1e9)
        envelope = Envelope(topic=topic, source=source, seq=0, published_ns=ns, origins=origins)
        self.waiting.append((ns, Stamped(message, envelope)))

    def close(self) -> Path:
        self.recorder.on_start()
        for ns, stamped in sorted(self.waiting, key=lambda one: one[0]):
            key = (stamped.envelope.topic, stamped.envelope.source)
            seq = self.seqs[key] = self.seqs.get(key, 0) + 1
            old = stamped.envelope
            envelope = Envelope(old.topic, old.source, seq, ns, old.origins)
            self.recorder.on_any(Stamped(stamped.message, envelope))
        outcome = {"ok": True, "reason": "every cup but the blue one is in the bin"}
        self.recorder.run_info = self.recorder.run_info.noting(outcome=outcome)
        self.recorder.on_stop()
        return Path(self.recorder.path)


def picture(at_s: float) -> NDArray[np.uint8]:
    """A table with cups, seen from above a robot's head, the gripper going to and fro."""
    image = np.full((120, 160, 3), (205, 200, 190), np.uint8)
    cv2.rectangle(image, (10, 40), (150, 119), (150, 110, 75), -1)
    for index, colour in enumerate(COLOURS.values()):
        cv2.circle(image, (35 + index * 28, 70 + 8 * (index % 2)), 9, colour, -1)
    x = int(80 + 50 * math.sin(at_s / 4))
    cv2.rectangle(image, (x - 6, 0), (x + 6, 55), (60, 60, 65), -1)
    return image


def write_run(
    folder: Path, *, seconds: float = 60.0, image_hz: float = 2.0, more: Iterable[tuple[float, str, Message]] = ()
) -> Path:
    """Write the run into that folder and return the path of the recording; `more`: at which second, topic, message."""
    writer = _Writer(folder)
    put = writer.put
    for at_s, topic, speaker, text in DIALOGUE:
        put(at_s, topic, speaker, Utterance(speaker=speaker, text=text), heard_s=at_s)
    put(
        2.5,
        "subtask",
        "planner",
        Subtask(
            id="s1",
            text="Put every cup in the bin",
            state="work",
            skill="place",
            things=(Reference(label="cup", count=0),),
            relation="in",
            place="bin",
        ),
    )
    put(
        14.3,
        "subtask",
        "planner",
        Subtask(
            id="s2",
            text="Put every cup except the blue one in the bin",
            state="work",
            skill="place",
            things=(Reference(label="*", count=0),),
            relation="in",
        ),
    )
    put(58.8, "subtask", "planner", Subtask(id="s3", text="Done", state="done"))
    for index, (at_s, skill, colour, end_s, status) in enumerate(ACTIONS):
        cup = SeenObject(
            label="cup", colour=colour, x_m=0.0, y_m=-0.6, z_m=0.75, width_m=0.08, height_m=0.1, u_px=80, v_px=60
        )
        text = f"{'pick up' if skill == 'pick' else 'put down'} the {colour} cup"
        put(
            at_s,
            "action",
            "vlm",
            Action(
                id=f"a{index}",
                skill=skill,
                arguments=aimed_at(cup, "place" if skill == "place" else "thing"),
                text=text,
            ),
        )
        put(at_s + 0.05, "feedback", "policy", Feedback(action_id=f"a{index}", status="running"))
        if status:
            why = "the gripper closed on nothing" if status == "failure" else ""
            put(end_s, "feedback", "policy", Feedback(action_id=f"a{index}", status=status, why=why))  # type: ignore[arg-type]
        else:
            gave_way = Feedback(action_id=f"a{index}", status="failure", why="it gave way", code="replaced")
            put(end_s, "feedback", "policy", gave_way)
    heard = DIALOGUE[0][3], DIALOGUE[2][3], DIALOGUE[4][3], DIALOGUE[6][3]
    for at_s, number, depth, text in (
        (2.001, 1, "replan", heard[0]),
        (14.002, 2, "amend", heard[1]),
        (STOP_S + 0.004, 3, "stop", heard[2]),
        (RESUME_S + 0.003, 4, "resume", heard[3]),
    ):
        put(
            at_s, "interrupt", "reflex", Interrupt(id=f"reflex-{number}", depth=depth, text=text, by="collaborator"),  # type: ignore[arg-type]
            heard_s=math.floor(at_s),
        )  # fmt: skip
    for at_s, topic, message in more:
        put(at_s, topic, "test", message)
    _write_guard(writer, seconds)
    _write_streams(writer, seconds, image_hz)
    _write_health(writer, seconds)
    return writer.close()


def _write_guard(writer: _Writer, seconds: float) -> None:
    held_ns = START_NS + round(STOP_S * 1e9 + HELD_MS * 1e6)
    for tick in range(int(seconds * 10)):
        at_s = tick / 10 + 0.015
        is_stopped = STOP_S <= at_s < RESUME_S
        writer.put(
            at_s, "guard/state", "guard",
            GuardState(
                mode="stopped" if is_stopped else "moving" if at_s > 3.2 else "armed",
                reason="Ouch! That's my toe!" if is_stopped else "",
                stop_cause="reflex-3" if is_stopped else "",
                stop_heard_ns=START_NS + round(STOP_S * 1e9) if is_stopped else 0,
                held_ns=held_ns if is_stopped else 0,
            ),
        )  # fmt: skip


def _write_streams(writer: _Writer, seconds: float, image_hz: float) -> None:
    for tick in range(int(seconds * 20)):
        at_s = tick / 20
        is_moving = at_s > 3.2 and not REST_S <= at_s < RESUME_S
        speed = 0.1 if is_moving else 0.0
        zeros = (0.0,) * 8
        writer.put(
            at_s, "robot/state", "driver",
            RobotState(
                read_ns=START_NS + round(at_s * 1e9), position=(0.5, *zeros[1:]), velocity=(speed, *zeros[1:]),
                effort=zeros, base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0, base_v_mps=speed, base_w_radps=0.0,
            ),
        )  # fmt: skip
        command = JointCommand(position=zeros, base_v_mps=speed)
        # 98 % of the commands rest on an image of 60 ms, the others on one of 140 ms; none before the first action.
        image_ms = 0.0 if at_s < 3.2 else 140.0 if tick % 50 == 0 else 60.0
        writer.put(at_s + 0.001, "command", "policy", command, image_ms=image_ms)
        writer.put(at_s + 0.010, "robot/command", "guard", command, image_ms=image_ms)
    for tick in range(int(seconds * 5)):
        writer.put(tick / 5, "description", "vlm", SceneDescription(text="", subtask_id="s1", progress="working"))
    for tick in range(int(seconds * image_hz)):
        at_s = tick / image_hz
        image = Image(camera="head", captured_ns=START_NS + round(at_s * 1e9), rgb=picture(at_s))
        writer.put(at_s + 0.02, "head/image", "cameras", image)
    for at_s in (1.0, seconds - 0.5):
        things = tuple(
            ObjectTruth(
                name=f"{colour}_cup", label="cup", colour=colour, x_m=0.0, y_m=0.0, z_m=0.0,
                is_in_bin=at_s > 30 and colour != "blue",
            )
            for colour in COLOURS
        )  # fmt: skip
        truth = Truth(
            objects=things, touched=(), is_moving=True, robot_x_m=0.0, robot_y_m=0.0, robot_heading_rad=0.0
        )  # fmt: skip
        writer.put(at_s, "sim/truth", "driver", truth)


def _paths(lived_s: int) -> tuple[PathHealth, ...]:
    """One budget that is kept and one that is not."""
    topics = ("head/image", "command", "robot/command")
    return tuple(
        PathHealth(
            name=name, topics=topics, p99_budget_ms=budget_ms, count=50 * lived_s, over=over * lived_s, p50_ms=60.0,
            p99_ms=90.0, max_ms=120.0,
        )
        for name, budget_ms, over in (("eye_to_hand", 150.0, 0), ("too_tight", 100.0, 5))
    )  # fmt: skip


def _write_health(writer: _Writer, seconds: float) -> None:
    rates = {"planner": 0.5, "vlm": 5.0, "policy": 20.0, "guard": 50.0}
    for second in range(1, int(seconds)):
        for node, hz in rates.items():
            is_second_life = node == "planner" and second > 40  # killed and started again at 40 s
            lived_s = second - 40 if is_second_life else second
            overruns = second // 20 if node == "vlm" else 0
            timer = TimerHealth(
                name="tick", hz_target=hz, hz_achieved=hz, ticks=int(lived_s * hz), overruns=overruns,
                lateness_p50_ms=0.2, lateness_p99_ms=1.5, lateness_max_ms=3.0,
            )  # fmt: skip
            dropped = {"overwritten": 4 * lived_s} if node == "vlm" else {}
            port = PortHealth(
                topic="head/image", received=5 * lived_s, delivered=5 * lived_s - dropped.get("overwritten", 0),
                waiting=0, dropped=dropped,
            )  # fmt: skip
            writer.put(
                second, f"health/{node}", node,
                Health(
                    node=node, pid=222 if is_second_life else 111, timers=(timer,), ports=(port,),
                    sent={"x": int(lived_s * hz)}, errors=0, cpu_s=lived_s * 0.1, rss_mb=80.0,
                    paths=_paths(lived_s) if node == "guard" else (),
                    spending=Spending(model="m", calls=second, prompt_tokens=10 * second, max_calls=100)
                    if node == "planner" else None,
                ),
            )  # fmt: skip
