"""A simulated arm behind LeRobot's own asynchronous server and client, measured from outside. In LeRobot's Python:

    python tests/interop/lerobot_arm.py policy FOLDER 3.0     an untrained ACT whose actions are of that size, rad
    python tests/interop/lerobot_arm.py server --host=127.0.0.1 --port=8971
    python tests/interop/lerobot_arm.py client --robot.type=echo_arm --robot.port=9911 --robot.id=one --task=wander \\
        --server_address=127.0.0.1:8971 --policy_type=act --pretrained_name_or_path=FOLDER --policy_device=cpu \\
        --actions_per_chunk=50

and in the project's: `python -m bench.said_to_still --watch "python tests/interop/lerobot_arm.py arm 9911"
--say-signal PID_OF_THE_CLIENT --times 1`. The arm prints where its six joints are, 100 times a second.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from typing import Any, ClassVar

NAMES = [f"joint{number}.pos" for number in range(6)]
SIDE_PX = 96
FASTEST_RADPS, HARDEST_RADPS2 = 0.5, 2.0
PERIOD_S = 0.01


def arm(port: int) -> None:
    """Six joints that go to the newest goal, whoever sent it."""
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.bind(("127.0.0.1", port))
    ear.setblocking(False)
    at, speed, goal = [0.0] * 6, [0.0] * 6, [0.0] * 6
    due_s = time.monotonic()
    while True:
        try:
            while True:
                data, who = ear.recvfrom(4096)
                goal = json.loads(data).get("goal", goal)
                ear.sendto(json.dumps(at).encode(), who)
        except BlockingIOError:
            pass
        for joint in range(6):
            away = goal[joint] - at[joint]
            wanted = min(FASTEST_RADPS, (2 * HARDEST_RADPS2 * abs(away)) ** 0.5) * (1 if away > 0 else -1)
            most = HARDEST_RADPS2 * PERIOD_S
            speed[joint] += max(-most, min(most, (wanted if abs(away) > 1e-4 else 0.0) - speed[joint]))
            at[joint] += speed[joint] * PERIOD_S
        print(*(f"{value:.5f}" for value in at), flush=True)
        due_s += PERIOD_S
        time.sleep(max(0.0, due_s - time.monotonic()))


def policy(folder: str, size_rad: float) -> None:
    """An untrained ACT of LeRobot's own, with its processors."""
    import torch
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy
    from lerobot.policies.factory import make_pre_post_processors

    torch.manual_seed(0)
    seen = {
        "observation.state": PolicyFeature(FeatureType.STATE, (6,)),
        "observation.images.front": PolicyFeature(FeatureType.VISUAL, (3, SIDE_PX, SIDE_PX)),
    }
    config = ACTConfig(
        input_features=seen, output_features={"action": PolicyFeature(FeatureType.ACTION, (6,))},
        chunk_size=50, n_action_steps=50, dim_model=64, n_heads=4, dim_feedforward=128, n_encoder_layers=1,
        n_decoder_layers=1, n_vae_encoder_layers=1, latent_dim=8, pretrained_backbone_weights=None, device="cpu",
    )  # fmt: skip
    statistics = {
        "observation.state": {"mean": torch.zeros(6), "std": torch.ones(6)},
        "observation.images.front": {"mean": torch.full((3, 1, 1), 0.5), "std": torch.full((3, 1, 1), 0.3)},
        "action": {"mean": torch.zeros(6), "std": torch.full((6,), size_rad)},
    }
    for part in (ACTPolicy(config), *make_pre_post_processors(config, dataset_stats=statistics)):
        part.save_pretrained(folder)


def client() -> None:
    """LeRobot's client as it is, with a robot that hands goals to the arm."""
    from dataclasses import dataclass

    import numpy as np
    from lerobot.async_inference.robot_client import async_client
    from lerobot.robots import Robot, RobotConfig

    @RobotConfig.register_subclass("echo_arm")
    @dataclass(kw_only=True)
    class EchoArmConfig(RobotConfig):  # type: ignore[misc]  # LeRobot is not installed where this is checked
        port: int = 9911

    class EchoArm(Robot):  # type: ignore[misc]
        config_class = EchoArmConfig
        name = "echo_arm"
        is_connected = is_calibrated = True
        observation_features: ClassVar = {**dict.fromkeys(NAMES, float), "front": (SIDE_PX, SIDE_PX, 3)}
        action_features: ClassVar = dict.fromkeys(NAMES, float)

        def __init__(self, config: EchoArmConfig) -> None:
            super().__init__(config)
            self.port, self.dice = config.port, np.random.default_rng(0)
            self.voice = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.voice.settimeout(2.0)

        def _ask(self, what: dict[str, Any]) -> list[float]:
            self.voice.sendto(json.dumps(what).encode(), ("127.0.0.1", self.port))
            where: list[float] = json.loads(self.voice.recv(4096))
            return where

        def get_observation(self) -> dict[str, Any]:
            picture = self.dice.integers(0, 255, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
            return {**dict(zip(NAMES, self._ask({}), strict=True)), "front": picture}

        def send_action(self, action: dict[str, float]) -> dict[str, float]:
            self._ask({"goal": [float(action[name]) for name in NAMES]})
            return action

        def connect(self, calibrate: bool = True) -> None: ...

        def calibrate(self) -> None: ...

        def configure(self) -> None: ...

        def disconnect(self) -> None: ...

    globals().update(EchoArm=EchoArm, EchoArmConfig=EchoArmConfig)  # LeRobot looks for the one beside the other
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job begins without
    async_client()


def main() -> None:
    """See above."""
    what = sys.argv.pop(1)
    if what == "arm":
        arm(int(sys.argv[1]))
    elif what == "policy":
        policy(sys.argv[1], float(sys.argv[2]))
    elif what == "server":
        from lerobot.async_inference.policy_server import serve

        serve()
    else:
        client()


if __name__ == "__main__":
    main()
