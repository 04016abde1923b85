"""`polyrhythm bag export --to FORMAT`: a recording for other tools."""

from __future__ import annotations

import argparse
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from nodes.recording.bag.recording import Recording, check_out, tell_damage
from runtime.command_line.arguments import new_path, unique_path
from runtime.errors import UserError

FORMATS = ("lerobot", "ros2", "rerun", "jsonl", "csv", "mp4", "wav")


def main(argv: list[str]) -> int:
    """`polyrhythm bag export`: 0; 1 where the recording has not what the format needs, or a chunk was left out."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag export",
        description="Write a recording as a LeRobot v3.0 dataset (needs the extra polyrhythm[export]), as a ROS 2 bag "
        "(needs polyrhythm[ros2]), as a Rerun file (needs polyrhythm[rerun]), as JSON lines, as one CSV file a topic, "
        "as one video a camera, or as one sound a microphone. Tables are made of any MCAP file, too: JSON, ROS 1, "
        "ROS 2 and protobuf (needs polyrhythm[mcap]).",
        epilog="example: polyrhythm bag export run.mcap --to lerobot --out dataset",
    )
    parser.add_argument("recordings", type=Path, nargs="+", metavar="RUN.mcap", help="lerobot: one episode each")
    parser.add_argument("--to", choices=FORMATS, required=True)
    parser.add_argument("--out", type=Path, metavar="PATH", help="default: beside the recording")
    parser.add_argument("--hz", type=float, metavar="N", help="frames a second; lerobot: 20, mp4: the camera's own")
    parser.add_argument(
        "--skip-damaged", action="store_true",
        help="lerobot, ros2, rerun, mp4, wav: leave out and count what cannot be read; default: end there and name it",
    )  # fmt: skip
    parser.add_argument(
        "--camera", action="append", default=[], metavar="NAME", help="lerobot: only this one, like head; default: all"
    )
    parser.add_argument("--task", metavar="TEXT", help="lerobot: the task of frames before any subtask; default: none")
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME=TOPIC:FIELD",
        help="lerobot: a column of numbers more, like observation.force=gripper/force:force_n; observation.state and "
        "action take the place of a robot's; default: [export.features] of the launch file",
    )  # fmt: skip
    parser.add_argument("--images", action="store_true", help="jsonl: with the images' data (base64)")
    asked = parser.parse_args(argv)
    if asked.hz is not None and not 0.01 <= asked.hz <= 1000:
        raise UserError(f"--hz {asked.hz:g}: expected a rate from 0.01 to 1000")
    if asked.to == "lerobot" and asked.hz is not None and asked.hz != round(asked.hz):
        raise UserError(f"--hz {asked.hz:g}: a LeRobot dataset has a whole number of frames a second")
    if len(asked.recordings) > 1 and asked.to != "lerobot":
        raise UserError(f"--to {asked.to}: takes one recording; only a dataset has several episodes")
    if asked.camera and asked.to != "lerobot":
        raise UserError(f"--to {asked.to}: takes all cameras; --camera is for a dataset")
    if (asked.feature or asked.task is not None) and asked.to != "lerobot":
        raise UserError(f"--to {asked.to}: --feature and --task are for a dataset")
    first: Path = asked.recordings[0]
    is_table = asked.to in ("jsonl", "csv")
    recordings = [
        Recording(path, takes_any=is_table) for path in asked.recordings
    ]  # before the name beside it: a folder may have none
    suffix = {
        "lerobot": "-lerobot",
        "ros2": "-ros2",
        "rerun": ".rrd",
        "jsonl": ".jsonl",
        "csv": "-csv",
        "mp4": "-videos",
        "wav": "-sound",
    }[asked.to]
    out = asked.out or unique_path(first.with_name(first.stem + suffix))
    check_out(out, *recordings)
    was_there = out.is_dir()
    try:
        _export(asked, recordings, out)
    except BaseException:
        for path in out.iterdir() if was_there else [out]:
            _remove(path)  # none of it was there before: so that the same command with --skip-damaged can be typed next
        raise
    tell_damage(*recordings)
    return int(not asked.skip_damaged and any(recording.has_left_out for recording in recordings))


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _export(asked: argparse.Namespace, recordings: list[Recording], out: Path) -> None:
    if asked.to == "lerobot":
        from nodes.recording.bag.export.lerobot import export_lerobot

        frames = export_lerobot(
            recordings,
            out,
            fps=round(asked.hz or 20),
            skip_damaged=asked.skip_damaged,
            cameras=[f"{name}/image" for name in asked.camera],
            task=asked.task,
            chosen=asked.feature,
            tell=_tell,
        )
        print(f"{frames} frames in {len(asked.recordings)} episode(s) in {out}")
    elif asked.to == "ros2":
        for topic, number in (
            _ros2().export_ros2(recordings[0], out, skip_damaged=asked.skip_damaged, tell=_tell).items()
        ):
            print(f"{number} messages of {topic}")
        print(f"a ROS 2 bag: {out}")
    elif asked.to == "rerun":
        for topic, number in (
            _rerun().export_rerun(recordings[0], out, skip_damaged=asked.skip_damaged, tell=_tell).items()
        ):
            print(f"{number} messages of {topic}")
        print(f"a Rerun file: {out}")
    elif asked.to == "mp4":
        from nodes.recording.bag.export.video import export_videos

        for path, number in export_videos(recordings[0], out, hz=asked.hz, skip_damaged=asked.skip_damaged, tell=_tell):
            print(f"{number} frames in {path}")
    elif asked.to == "wav":
        from nodes.recording.bag.export.sound import export_sounds

        for path, number in export_sounds(recordings[0], out, skip_damaged=asked.skip_damaged, tell=_tell):
            print(f"{number} utterances in {path}")
    elif asked.to == "csv":
        from nodes.recording.bag.export.tables import export_csv

        for path, number in export_csv(recordings[0], out, tell=_tell):
            print(f"{number} rows in {path}")
    else:
        from nodes.recording.bag.export.tables import export_jsonl

        lines = export_jsonl(recordings[0], out, with_images=asked.images, tell=_tell)
        print(f"{lines} lines in {out}")


def import_main(argv: list[str]) -> int:
    """`polyrhythm bag import`: a ROS 2 bag as a recording; 1 where it holds less than it says."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag import",
        description="Read a ROS 2 bag (a folder of rosbag2) into a recording that can be replayed: images, JointState "
        "with Odometry, String on heard and said. Needs polyrhythm[ros2]; no ROS.",
        epilog="example: polyrhythm bag import kitchen_bag --out kitchen.mcap",
    )
    parser.add_argument("bag", type=Path, metavar="BAG", help="the bag's folder, with its metadata.yaml; or one file")
    parser.add_argument("--out", type=Path, metavar="RUN.mcap", help="default: beside the bag")
    parser.add_argument(
        "--take", action="append", default=[], metavar="OURS=TOPIC",
        help="which topic of the bag becomes ours, where there are several, such as robot/state=/arm/joint_states or "
        "odometry=/odometry/filtered; default: the usual name, or the first",
    )  # fmt: skip
    asked = parser.parse_args(argv)
    chosen = dict(one.split("=", 1) for one in asked.take if "=" in one)
    if len(chosen) < len(asked.take):
        raise UserError("--take: expected OURS=TOPIC, each of ours once, such as robot/state=/arm/joint_states")
    out = new_path(asked.out, asked.bag.with_name(asked.bag.stem + ".mcap"))
    found = _ros2().import_ros2(asked.bag, out, chosen)
    for (topic, ours), number in sorted(found.taken.items()):
        print(f"{number} messages of {topic} are in {ours}")
    for (topic, why), number in sorted(found.left_out.items()):
        print(f"{number} messages of {topic} are left out: {why}")
    for topic, number in sorted(found.lost.items()):
        _tell(f"{number} messages of {topic} that metadata.yaml counts are not in the bag")
    print(f"a recording: {out}")
    return int(bool(found.lost))


def _ros2() -> ModuleType:
    """The module that needs `rosbags`. Raises UserError where that is not installed."""
    try:
        from nodes.recording.bag.export import ros2
    except ImportError as problem:
        raise UserError(f"{problem.name} is not installed: pip install 'polyrhythm[ros2]'") from problem
    return ros2


def _rerun() -> ModuleType:
    """The module that needs `rerun-sdk`. Raises UserError where that is not installed."""
    try:
        from nodes.recording.bag.export import rerun_file
    except ImportError as problem:
        raise UserError(f"{problem.name} is not installed: pip install 'polyrhythm[rerun]'") from problem
    return rerun_file


def _tell(sentence: str) -> None:
    print(f"! {sentence}", file=sys.stderr)
