"""Types that msgspec has not seen yet, first used by several threads at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys, threading

sys.setswitchinterval(1e-6)
{setup}
gate = threading.Barrier(4)

def use():
    gate.wait()
    {use}

threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
HEALTH = """
from runtime.coordination.health import Health, PortHealth

ports = (PortHealth(topic="t", received=1, delivered=1, waiting=0, dropped={}),)
health = Health(node="n", pid=1, timers=(), ports=ports, sent={}, errors=0, cpu_s=0.0, rss_mb=0.0)
"""
JSON = f"""
import msgspec
from runtime.serialization.msgspec_cache import from_json
{HEALTH}
text = msgspec.json.encode(health)
"""
FRAMES = f"""
from runtime.serialization.codec import decode, encode
from runtime.message import Envelope
{HEALTH}
frames = encode(Envelope("health/n", "n", 1, 1), health)
"""


@pytest.mark.parametrize(
    "program",
    [
        _PROGRAM.format(setup=JSON, use="from_json(text, Health)"),
        _PROGRAM.format(setup=FRAMES, use="decode(frames, Health)"),
    ],
    ids=["json", "messages"],
)
def test_threads_that_use_a_type_first_at_the_same_time_do_not_kill_the_process(program: str) -> None:
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
