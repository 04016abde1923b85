from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nodes.sim.camera import SimCamera
from nodes.sim.driver import SimDriver
from nodes.sim.messages import BodyPart
from nodes.sim.robot import SimRobot
from runtime.errors import UserError
from runtime.message import Envelope, Stamped
from runtime.virtual.simulation import Simulation
from tests.support.sentences import pattern


def test_a_world_is_drawn_once_and_keeps_the_time_it_was_stepped() -> None:
    camera = SimCamera(width=32, height=24)
    camera.on_start()
    robot = SimRobot()
    robot.start(7_000_000)
    envelope = Envelope(topic="sim/world", source="driver", seq=1, published_ns=camera.clock.now_ns())
    camera.capture()
    assert camera.image.sent == 0
    camera.world.push(Stamped(robot.world(), envelope))
    camera.capture()
    camera.capture()
    assert camera.image.sent == 1


def test_driver_and_camera_run_in_virtual_time_and_twice_alike() -> None:
    pictures = []
    for _ in range(2):
        simulation = Simulation(SimDriver(), SimCamera(width=32, height=24), seed=0)
        images = simulation.record(SimCamera.image)
        truths = simulation.record(SimDriver.truth)
        simulation.publish("sim/body", BodyPart(part="hand", x_m=0.0, y_m=-0.6, z_m=0.6))
        simulation.run(seconds=1.0)
        assert 9 <= len(images) <= 11
        assert len(truths) >= 10
        assert all(later.captured_ns > sooner.captured_ns for sooner, later in pairwise(images))
        assert images[-1].focal_px > 0
        pictures.append(images[-1])
    np.testing.assert_array_equal(pictures[0].rgb, pictures[1].rgb)
    assert pictures[0].depth_m is not None


def test_a_camera_of_another_name_or_back_end_is_refused_before_anything_starts() -> None:
    with pytest.raises(UserError, match="known: head, wrist"):
        SimCamera(camera="tail")
    with pytest.raises(UserError, match="known: rays, gl, auto"):
        SimCamera(backend="vulkan")
    with pytest.raises(UserError, match=pattern("sim.larger_expected")):
        SimCamera(width=0)


def test_a_driver_of_the_simulation_wants_a_simulated_robot() -> None:
    driver = SimDriver(robot="test_driver:Nothing")
    with pytest.raises(UserError, match='expected "module:Class"'):
        driver.on_start()


def test_the_seed_of_a_run_lays_the_table() -> None:
    layouts = []
    for seed in (1, 1, 2):
        simulation = Simulation(SimDriver(), seed=seed)
        truths = simulation.record(SimDriver.truth)
        simulation.run(seconds=0.2)
        layouts.append(truths[-1].objects)
    assert layouts[0] == layouts[1]
    assert layouts[0] != layouts[2]
