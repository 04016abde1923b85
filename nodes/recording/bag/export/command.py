"""`polyrhythm bag export --to FORMAT`: a recording for other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nodes.mcap.parts import parts_of
from nodes.recording.bag.recording import Recording, check_out, tell_damage
from nodes.recording.draft import drafted
from runtime.command_line.arguments import new_path, unique_path
from runtime.errors import RecordingError, UserError

FORMATS = ("lerobot", "ros2", "rerun", "jsonl", "csv", "mp4", "wav")


def main(argv: list[str]) -> int:
    """`polyrhythm bag export`: 0; 1 where the recording has not what the format needs, or a chunk was left out."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag export",
        description="Write a recording as a LeRobot dataset, v3.0 or v2.1 (needs the extra nodes[export]), "
        "as a ROS 2 bag (needs nodes[bags]), as a Rerun file (needs nodes[rerun]), as JSON lines, as one CSV "
        "file a topic, as one video a camera, or as one sound a microphone. Tables are made of any MCAP file, too: "
        "JSON, ROS 1, ROS 2 and protobuf (needs nodes[mcap]).",
        epilog="example: polyrhythm bag export run.mcap --to lerobot --out dataset",
    )
    parser.add_argument(
        "recordings", type=Path, nargs="+", metavar="RUN.mcap", help="lerobot: one episode each; a folder: all in it"
    )
    parser.add_argument("--to", choices=FORMATS, required=True)
    parser.add_argument("--out", type=Path, metavar="PATH", help="default: beside the recording")
    parser.add_argument("--hz", type=float, metavar="N", help="frames a second; lerobot: 20, mp4: the camera's own")
    parser.add_argument(
        "--skip-damaged", action="store_true",
        help="lerobot, ros2, rerun, mp4, wav: leave out and count what cannot be read; default: end there and name it",
    )  # fmt: skip
    _add_dataset_options(parser)
    parser.add_argument("--images", action="store_true", help="jsonl: with the images' data (base64)")
    asked = parser.parse_args(argv)
    if asked.hz is not None and not 0.01 <= asked.hz <= 1000:
        raise UserError(f"--hz {asked.hz:g}: expected a rate from 0.01 to 1000")
    if asked.to == "lerobot" and asked.hz is not None and asked.hz != round(asked.hz):
        raise UserError(f"--hz {asked.hz:g}: a LeRobot dataset has a whole number of frames a second")
    if asked.to != "lerobot":
        _refuse_dataset_options(asked)
    first: Path = asked.recordings[0]
    is_table = asked.to in ("jsonl", "csv")
    sources = [one for path in asked.recordings for one in (_recordings_in(path) if asked.to == "lerobot" else [path])]
    # before the name beside it: a folder may have none
    recordings = [Recording(path, takes_any=is_table) for path in sources]
    suffix = {
        "lerobot": "-lerobot",
        "ros2": "-ros2",
        "rerun": ".rrd",
        "jsonl": ".jsonl",
        "csv": "-csv",
        "mp4": "-videos",
        "wav": "-sound",
    }[asked.to]
    out = asked.add or asked.out or unique_path(first.with_name(first.stem + suffix))
    if asked.add is None:
        check_out(out, *recordings)
    with drafted(out, replaces=asked.add is not None) as draft:
        lines = _dataset(asked, recordings, draft) if asked.to == "lerobot" else _export(asked, recordings[0], draft)
    for line in lines:
        print(line.replace(str(draft), str(out)))
    return tell_damage(*recordings) * (not asked.skip_damaged)


def _add_dataset_options(parser: argparse.ArgumentParser) -> None:
    for_dataset = parser.add_argument_group("a dataset", "for --to lerobot")
    for_dataset.add_argument(
        "--camera", action="append", default=[], metavar="NAME", help="only this one, like head; default: all"
    )
    for_dataset.add_argument("--task", metavar="TEXT", help="the task of frames before any subtask; default: none")
    for_dataset.add_argument(
        "--feature", action="append", default=[], metavar="NAME=TOPIC:FIELD",
        help="a column of numbers more, like observation.force=gripper/force:force_n; observation.state and action "
        "take the place of a robot's; default: [export.features] of the launch file",
    )  # fmt: skip
    for_dataset.add_argument("--version", choices=("v3.0", "v2.1"), help="v2.1: for openpi and GR00T; default: v3.0")
    for_dataset.add_argument(
        "--layout", choices=("default", "policy", "same"), default="default",
        help="what a state holds: joints and odometry; only joints, as policy servers get them from us; the same names "
        "as an action",
    )  # fmt: skip
    for_dataset.add_argument("--add", type=Path, metavar="DIR", help="to this dataset, behind its episodes")
    for_dataset.add_argument("--only", choices=("success", "failure"), help="recordings whose run ended so")
    for_dataset.add_argument(
        "--corrections", action="store_true", help="only while a person held the policy's seat: each time is an episode"
    )
    for_dataset.add_argument(
        "--words", action="store_true", help="with what was heard, said, planned and interrupted; names become roles"
    )
    for_dataset.add_argument(
        "--task-from", choices=("subtask", "words"), default="subtask",
        help="the task is the planner's subtask, or what a person said last",
    )  # fmt: skip
    for_dataset.add_argument(
        "--accept-problems", action="store_true", help="also where `polyrhythm dataset doctor` finds problems"
    )


def _refuse_dataset_options(asked: argparse.Namespace) -> None:
    if len(asked.recordings) > 1:
        raise UserError(f"--to {asked.to}: takes one recording; only a dataset has several episodes")
    parser = argparse.ArgumentParser()
    _add_dataset_options(parser)
    given = [name for name, usual in vars(parser.parse_args([])).items() if getattr(asked, name) != usual]
    if given:
        raise UserError(f"--to {asked.to}: --{given[0].replace('_', '-')} is for a dataset")


def _recordings_in(path: Path) -> list[Path]:
    """The file; of a folder all recordings in it and in the folders of it, in the order of their names."""
    if not path.is_dir():
        return [path]
    files = sorted([*path.glob("*.mcap"), *path.glob("*/*.mcap")])
    later = {part for file in files for part in parts_of(file)[1:]}
    return [file for file in files if file not in later] or [path]


def _dataset(asked: argparse.Namespace, recordings: list[Recording], draft: Path) -> list[str]:
    """Export, and look at what came out. Raises RecordingError where that is not fit to train on, unless accepted."""
    from nodes.recording.dataset.doctor import examine
    from nodes.recording.dataset.episode import outcome_of
    from nodes.recording.dataset.export import DatasetWish, export_lerobot
    from nodes.recording.dataset.folder import DatasetFolder

    base = DatasetFolder(asked.add) if asked.add is not None else None
    if base is not None:
        base.check_whole()
    version: Any = asked.version or (base.info.codebase_version if base is not None else "v3.0")
    fps = round(asked.hz or (base.info.fps if base is not None else 20))
    if base is not None and (version, fps) != (base.info.codebase_version, base.info.fps):
        had = f"{base.info.codebase_version} with {base.info.fps:g} frames a second"
        raise UserError(f"--add {asked.add}: is {had}, not {version} with {fps}; leave --version and --hz out")
    if version != "v3.0" and version != "v2.1":
        raise UserError(f"--add {asked.add}: is of {version}; expected v3.0 or v2.1")
    chosen = [one for one in recordings if asked.only is None or outcome_of(one) is (asked.only == "success")]
    if not chosen:
        raise RecordingError(f"{recordings[0].path}: no recording's run ended in {asked.only}")
    if len(chosen) < len(recordings):
        _tell(f"{len(recordings) - len(chosen)} of {len(recordings)} recordings did not end in {asked.only}")
    wish = DatasetWish(
        fps=fps,
        version=version,
        layout=asked.layout,
        cameras=[f"{name}/image" for name in asked.camera],
        task=asked.task,
        chosen=asked.feature,
        has_words=asked.words,
        has_task_from_words=asked.task_from == "words",
        skip_damaged=asked.skip_damaged,
        only_corrections=asked.corrections,
    )
    episodes, frames = export_lerobot(chosen, draft, wish, base=base, tell=_tell)
    findings = examine(draft)
    problems = [one for one in findings if one.is_problem]
    for one in problems:
        _tell(one.told.replace(str(draft), draft.name))
    if problems and not asked.accept_problems:
        raise RecordingError(
            "nothing is exported, for the dataset would have the problems above; --accept-problems exports it even so"
        )
    notes = len(findings) - len(problems)
    more = [f"{notes} notes on it: polyrhythm dataset doctor {draft}"] if notes else []
    return [f"{frames} frames in {episodes} episode(s) in {draft}", *more]


def _export(asked: argparse.Namespace, recording: Recording, out: Path) -> list[str]:
    """Write anything but a dataset; what was written, in lines."""
    if asked.to in ("ros2", "rerun"):
        if asked.to == "ros2":
            from nodes.recording.bag.export.ros2 import export_ros2 as export
        else:
            from nodes.recording.bag.export.rerun_file import export_rerun as export
        written = export(recording, out, skip_damaged=asked.skip_damaged, tell=_tell)
        kind = "ROS 2 bag" if asked.to == "ros2" else "Rerun file"
        return [*(f"{number} messages of {topic}" for topic, number in written.items()), f"a {kind}: {out}"]
    if asked.to == "mp4":
        from nodes.recording.bag.export.video import export_videos

        videos = export_videos(recording, out, hz=asked.hz, skip_damaged=asked.skip_damaged, tell=_tell)
        return [f"{number} frames in {path}" for path, number in videos]
    if asked.to == "wav":
        from nodes.recording.bag.export.sound import export_sounds

        sounds = export_sounds(recording, out, skip_damaged=asked.skip_damaged, tell=_tell)
        return [f"{number} utterances in {path}" for path, number in sounds]
    from nodes.recording.bag.export.tables import export_csv, export_jsonl

    if asked.to == "csv":
        return [f"{number} rows in {path}" for path, number in export_csv(recording, out, tell=_tell)]
    return [f"{export_jsonl(recording, out, with_images=asked.images, tell=_tell)} lines in {out}"]


def import_main(argv: list[str]) -> int:
    """`polyrhythm bag import`: a ROS 2 bag or a LeRobot dataset as recordings; 1 where it holds less than it says."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag import",
        description="Read a ROS 2 bag (a folder of rosbag2; needs nodes[bags], no ROS) or a LeRobot dataset "
        "(v2.0, v2.1 or v3.0; needs nodes[export]) into recordings that can be replayed. Of a bag: images, "
        "JointState with Odometry, String on heard and said. Of a dataset: images, state, action, tasks and words, "
        "and each episode becomes a recording.",
        epilog="example: polyrhythm bag import kitchen_bag --out kitchen.mcap",
    )
    parser.add_argument("bag", type=Path, metavar="BAG", help="the folder of a bag or a dataset; or one file of a bag")
    parser.add_argument("--out", type=Path, metavar="PATH", help="default: beside it; a folder for several episodes")
    parser.add_argument(
        "--take", action="append", default=[], metavar="OURS=TOPIC",
        help="which topic of the bag becomes ours, where there are several, such as robot/state=/arm/joint_states or "
        "odometry=/odometry/filtered; default: the usual name, or the first",
    )  # fmt: skip
    parser.add_argument("--episode", type=int, metavar="N", help="only this one of a dataset, from 0; default: all")
    parser.add_argument("--degrees", action="store_true", help="a dataset's state and action are degrees")
    asked = parser.parse_args(argv)
    if (asked.bag / "meta" / "info.json").is_file():
        return _import_dataset(asked)
    if asked.episode is not None or asked.degrees:
        raise UserError(f"{asked.bag}: --episode and --degrees are for a LeRobot dataset, and this is none")
    chosen = dict(one.split("=", 1) for one in asked.take if "=" in one)
    if len(chosen) < len(asked.take):
        raise UserError("--take: expected OURS=TOPIC, each of ours once, such as robot/state=/arm/joint_states")
    from nodes.recording.bag.export.ros2 import import_ros2

    out = new_path(asked.out, asked.bag.with_name(asked.bag.stem + ".mcap"))
    found = import_ros2(asked.bag, out, chosen)
    for (topic, ours), number in sorted(found.taken.items()):
        print(f"{number} messages of {topic} are in {ours}")
    for (topic, why), number in sorted(found.left_out.items()):
        print(f"{number} messages of {topic} are left out: {why}")
    for topic, number in sorted(found.lost.items()):
        _tell(f"{number} messages of {topic} that metadata.yaml counts are not in the bag")
    print(f"a recording: {out}")
    return int(bool(found.lost))


def _import_dataset(asked: argparse.Namespace) -> int:
    from nodes.recording.dataset.folder import DatasetFolder
    from nodes.recording.dataset.import_dataset import import_episode

    folder = DatasetFolder(asked.bag)
    chosen = [one for one in folder.episodes if asked.episode in (None, one.index)]
    if not folder.episodes:
        folder.check_whole()
        raise UserError(f"{asked.bag}: holds no episode")
    if not chosen:
        raise UserError(f"{asked.bag}: has no episode {asked.episode}; it has {len(folder.episodes)}, from 0")
    beside = asked.bag.resolve()
    is_one = asked.episode is not None or len(folder.episodes) == 1
    out = new_path(asked.out, beside.with_name(f"{beside.name}{'.mcap' if is_one else '-recordings'}"))
    with drafted(out) as draft:
        if not is_one:
            draft.mkdir()
        for episode in chosen:
            path = draft if is_one else draft / f"episode-{episode.index:06d}.mcap"
            import_episode(folder, episode, path, is_degrees=asked.degrees, tell=_tell)
    frames = sum(one.length for one in chosen)
    print(f"{frames} frames, {'a recording' if is_one else f'{len(chosen)} recordings'}: {out}")
    return 0


def _tell(sentence: str) -> None:
    print(f"! {sentence}", file=sys.stderr)
