"""A program for LeRobot's own Python: its asynchronous policy server (gRPC), asked in openpi's websocket protocol.

LeRobot's server and client pickle what they say, so whoever answers on that port can run code in this process. That is
why it is a process of its own, why both of its sides are this machine alone, and why it gives numbers and nothing else
to who asks: `nodes.policy.remote.openpi:OpenPiPolicy`, by `polyrhythm policy gateway`. Questions have
LeRobot's own names.
"""

from __future__ import annotations

import argparse
import ipaddress
import pickle
import threading
from pathlib import Path
from typing import Any

import grpc
import msgpack
import numpy as np
from lerobot.async_inference.helpers import RemotePolicyConfig, TimedObservation
from lerobot.configs.policies import PreTrainedConfig
from lerobot.transport import services_pb2, services_pb2_grpc
from lerobot.transport.utils import grpc_channel_options, send_bytes_in_chunks
from safetensors.numpy import load_file
from websockets.sync.server import ServerConnection, serve

IMAGES = "observation.images."
STATE = "observation.state"
LARGEST_BYTES = 1 << 24


class PolicyServer:
    """LeRobot's server with one policy in it; for several threads."""

    def __init__(self, server: str, folder: Path, device: str) -> None:
        config = PreTrainedConfig.from_pretrained(str(folder))
        self.kind = config.type
        self.cameras = {name.removeprefix(IMAGES): feature.shape for name, feature in config.image_features.items()}
        state = config.input_features.get(STATE)
        self.joints = [f"{number}" for number in range(state.shape[0] if state is not None else 0)]
        self._rest = _mean(folder)  # of numbers that are not joints, such as the base's pose
        self._number = 0
        self._lock = threading.Lock()
        self._stub = services_pb2_grpc.AsyncInferenceStub(grpc.insecure_channel(server, grpc_channel_options()))
        features: dict[str, dict[str, Any]] = {
            IMAGES + name: {
                "dtype": "image",
                "shape": (shape[1], shape[2], 3),
                "names": ["height", "width", "channels"],
            }
            for name, shape in self.cameras.items()
        }
        if self.joints:
            features[STATE] = {"dtype": "float32", "shape": (len(self.joints),), "names": self.joints}
        steps = getattr(config, "chunk_size", None) or config.n_action_steps
        asked = RemotePolicyConfig(config.type, str(folder), features, steps, device)
        self._stub.Ready(services_pb2.Empty(), wait_for_ready=True, timeout=30.0)
        self._stub.SendPolicyInstructions(services_pb2.PolicySetup(data=pickle.dumps(asked)))

    def actions(self, seen: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """A chunk, (steps, columns). Raises ValueError, in a sentence."""
        missing = [IMAGES + name for name in self.cameras if IMAGES + name not in seen]
        joints = np.asarray(seen.get(STATE, ()), np.float32).reshape(-1)
        if missing or (self.joints and not 0 < len(joints) <= len(self.joints)):
            raise ValueError(
                f"it was given {', '.join(map(str, seen)) or 'nothing'}; expected {', '.join(self.names())}"
            )
        whole = np.concatenate([joints, self._rest[len(joints) :]]) if len(joints) < len(self.joints) else joints
        raw = {name: np.array(seen[IMAGES + name]) for name in self.cameras}
        raw |= dict(zip(self.joints, whole.tolist(), strict=True)) | {"task": str(seen.get("task", ""))}
        with self._lock:
            self._number += 1
            # Its time is for LeRobot's own statistics; the robot's side knows how old an answer is.
            question = TimedObservation(0.0, self._number, raw, must_go=True)
            self._stub.SendObservations(send_bytes_in_chunks(pickle.dumps(question), services_pb2.Observation))
            data = self._stub.GetActions(services_pb2.Empty()).data
        if not data:
            raise ValueError("LeRobot's server gave no actions; its log says why")
        found = pickle.loads(data)  # the reason for this process
        return np.stack([one.get_action().numpy().astype(np.float32) for one in found])

    def names(self) -> list[str]:
        """What it is to be given."""
        return [*(IMAGES + name for name in self.cameras), *([STATE] if self.joints else ()), "task"]


def _mean(folder: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Of the state in training; zeros where it is not said."""
    for file in sorted(folder.glob("policy_preprocessor*.safetensors")):
        if (found := load_file(file).get(f"{STATE}.mean")) is not None:
            mean: np.ndarray[Any, np.dtype[np.float32]] = found.astype(np.float32).reshape(-1)
            return mean
    return np.zeros(64, np.float32)


def _pack(value: object) -> bytes:
    def with_array(found: Any) -> object:
        return {b"__ndarray__": True, b"data": found.tobytes(), b"dtype": found.dtype.str, b"shape": found.shape}

    packed: bytes = msgpack.packb(value, default=with_array)
    return packed


def _unpack(data: bytes) -> dict[str, Any]:
    def array(found: dict[Any, Any]) -> object:
        if b"__ndarray__" not in found:
            return found
        return np.frombuffer(found[b"data"], np.dtype(found[b"dtype"])).reshape(found[b"shape"])

    seen = msgpack.unpackb(data, object_hook=array)
    if not isinstance(seen, dict):
        raise ValueError("it was given no dictionary")  # told to who asks, like every other
    return seen


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", default="127.0.0.1:8080")
    parser.add_argument("--bind", default="127.0.0.1:8000")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    for place in (asked.server, asked.bind):
        if not _is_loopback(place):
            parser.error(f"{place} is not this machine alone, like 127.0.0.1:8080: what comes from there is unpickled")
    try:
        policy = PolicyServer(asked.server, asked.folder.resolve(), asked.device)
    except grpc.RpcError as problem:
        start = "python -m lerobot.async_inference.policy_server --host=127.0.0.1"
        parser.error(f"{asked.server}: {problem.code().name}; does it run? {start}")

    def talk(connection: ServerConnection) -> None:
        connection.send(_pack({"policy": policy.kind}))
        for question in connection:
            try:
                answer: bytes | str = _pack({"actions": policy.actions(_unpack(question))})  # type: ignore[arg-type]  # text is none
            except (ValueError, TypeError, KeyError, grpc.RpcError) as problem:
                answer = f"{type(problem).__name__}: {problem}".splitlines()[0]
            connection.send(answer)

    host, _, port = asked.bind.rpartition(":")
    with serve(talk, host.strip("[]"), int(port), compression=None, max_size=LARGEST_BYTES) as server:
        print(f"a {policy.kind} policy at ws://{asked.bind}, given {', '.join(policy.names())}; Ctrl-C ends it")
        print(" ".join(_seat(asked.bind, [IMAGES + name for name in policy.cameras])), flush=True)
        server.serve_forever()


def _is_loopback(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        return port.isdecimal() and (host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback)
    except ValueError:
        return False


def _seat(place: str, cameras: list[str]) -> list[str]:
    """The command that asks here."""
    wrist = [name for name in cameras if "wrist" in name]
    head = [name for name in cameras if name not in wrist]
    settings = {
        "use": "nodes.policy.remote.openpi:OpenPiPolicy",
        "server": f"ws://{place}",
        "image_name": "".join(head[:1]),
        "wrist_name": "".join(wrist[:1]),
        "joints_name": STATE,
        "text_name": "task",
        "size_px": 0,
    }
    return ["polyrhythm run laptop", *(f"--set policy.{name}={value}" for name, value in settings.items())]


if __name__ == "__main__":
    main()
