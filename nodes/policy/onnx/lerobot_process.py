"""LeRobot in a process of its own: it exports a policy and says what it makes of a sample; or its server is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from runtime.errors import PolyrhythmError, UserError
from runtime.extras import install
from runtime.operating_system.processes import foreign_environment

SIDE = Path(__file__).with_name("lerobot_side")
LONGEST_S = 900.0
FURTHEST = 1e-3
"""How far an exported model may be off, m, rad, m/s or rad/s; another runtime rounds otherwise."""


def exported(python: str, folder: Path, sample: Mapping[str, NDArray[np.float32]], out: Path) -> NDArray[np.float32]:
    """Have the folder's policy exported to `out`/model.onnx; what LeRobot says to the sample, (steps, columns).

    `python` is that of an environment with LeRobot, onnx and onnxscript; it asks no server. Raises UserError.
    """
    # mypy takes a mapping of arrays for the function's own flags
    np.savez(out / "sample.npz", **dict[str, Any](sample))
    program = os.path.abspath(shutil.which(python) or python)  # it runs in another folder
    command = [program, "-E", str(SIDE / "export.py"), str(folder.resolve()), str(out / "sample.npz"), str(out)]
    offline = {**foreign_environment(), "HF_HUB_OFFLINE": "1"}
    print(f"LeRobot exports {folder} (a minute or so)", flush=True)
    try:
        told = subprocess.run(
            command, cwd=out, env=offline, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S
        )
    except OSError as problem:
        raise UserError(f"--python {python}: cannot be started ({problem.strerror})") from problem
    except subprocess.TimeoutExpired as problem:
        raise UserError(f"LeRobot did not export {folder} within {LONGEST_S:g} s") from problem
    if told.returncode or not (out / "answer.npy").exists() or not (out / "model.onnx").exists():
        why = (told.stderr.strip().splitlines() or ["it said nothing"])[-1][:300]
        lacks = "ModuleNotFoundError" in why
        remedy = f"; in its environment: {python} -m pip install 'lerobot==0.4.4' onnx onnxscript" if lacks else ""
        raise UserError(f"LeRobot does not export {folder}: {why}{remedy}")
    answer: NDArray[np.float32] = np.load(out / "answer.npy", allow_pickle=False)
    return answer


def become_gateway(python: str, folder: Path, server: str, bind: str, device: str) -> NoReturn:
    """This process becomes LeRobot's Python with the gateway to its server. Raises UserError."""
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} has no config.json; expected a folder as LeRobot saves it")
    command = [python, "-E", str(SIDE / "gateway.py"), str(folder), "--server", server, "--bind", bind]
    try:
        os.execvpe(python, [*command, "--device", device], foreign_environment())
    except OSError as problem:
        raise UserError(f"--python {python}: cannot be started ({problem.strerror})") from problem


def as_lerobot_says(model: bytes, given: Mapping[str, NDArray[np.float32]], answer: NDArray[np.float32]) -> str:
    """How close the file comes to LeRobot's own answer, in a sentence. Raises UserError where that is not close."""
    try:
        from nodes.models.onnx_runtime import open_session

        session, _ = open_session(model, name="the adopted model", providers=("CPUExecutionProvider",))
    except ModuleNotFoundError:
        return f"not compared with LeRobot's own answer: {install('nodes[onnx]')}"
    except PolyrhythmError as problem:
        raise UserError(str(problem)) from problem
    wanted = [one.name for one in session.get_inputs()]
    joints = np.zeros((1, 8), np.float32)
    said = np.asarray(session.run(["chunk"], {name: given.get(name, joints) for name in wanted})[0])[0]
    if len(said) != len(answer):
        raise UserError(f"the adopted model says {len(said)} steps, and LeRobot {len(answer)}")
    off = float(np.abs(said[:, : answer.shape[1]] - answer).max())
    if not off <= FURTHEST:
        raise UserError(f"the adopted model is {off:.3g} off from what LeRobot says to the same sample")
    return f"compared with LeRobot's own answer to a sample: {off:.1g} off at most"
