"""Plays runs on a real Ray cluster of two machines (both are this one), and kills a worker and then a machine of it.

usage: python tests/interop/plays_on_ray.py [evaluation]  (an interpreter that has polyrhythm and Ray; make interop
does both; `evaluation` asks for nodes[demo] besides)

The same run in one process must give the same, to the last character; no answer that had come back is asked for again,
and a budget holds over all workers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TASKS = ["--task", "quiet-hours", "--task", "three-stalls", "--task", "mutual-friend-at-the-wedding"]
PATIENCE_S = 600.0
INTERRUPTIONS = [
    "interruptions",
    "--arm",
    "A",
    "--arm",
    "B+",
    "--scenario",
    "stop-approach",
    "--seeds",
    "2",
    "--for",
    "8",
]
_PROGRAM = "import sys; from nodes.{}.command import main; sys.exit(main(sys.argv[1:]))"


class Model:
    """A server whose answer follows from the question, after 0.1 s; it counts what it is asked."""

    def __init__(self) -> None:
        self.count = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["content-length"]))
                time.sleep(0.1)
                model.count += 1
                act = {"action_type": "speak", "argument": f"I have read {len(text)} characters.", "to": []}
                message = {"role": "assistant", "content": json.dumps(act)}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 20}
                data = json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Who asked was killed."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def begun(*arguments: str, of: str = "episodes") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM.format(of), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, (process.returncode, err[-2000:])
    return out if code == 0 else err


def workers(task: str) -> list[int]:
    """The processes of this cluster that do such a task: below this process, by the name that Ray gives them."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
    found = []
    for process, name in names.items():
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and name.startswith(f"ray::{task}".encode()):
            found.append(process)
    return found


def difference(one: str, other: str) -> str:
    """The first lines that are not the same."""
    pairs = zip(one.split("\n"), other.split("\n"), strict=False)
    return "\n".join(f"{a}\n{b}" for a, b in pairs if a != b)[:2000]


def wait_for(what: Any, why: str) -> Any:
    for _ in range(int(PATIENCE_S / 0.1)):
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError(why)


def evaluates(folder: Path) -> None:
    """The interruption experiment: the same here and on the cluster, where a worker is killed in the midst."""
    here = ended(begun(*INTERRUPTIONS, "--json", "--out", str(folder / "here"), of="evaluation"))
    on_ray = begun(*INTERRUPTIONS, "--json", "--out", str(folder / "there"), "--engine", "ray", of="evaluation")
    results = folder / "there" / "results.jsonl"
    wait_for(lambda: results.is_file() and results.read_bytes().count(b"\n") > 1, "no run comes back from Ray")
    os.kill(wait_for(lambda: workers("play_trial"), "no worker does a run")[0], signal.SIGKILL)
    there = ended(on_ray)
    assert here == there, difference(here, there)
    print(f"{len(json.loads(here)['results'])} evaluated runs are the same on Ray, where a worker was killed")


def main() -> int:
    """0 where all of it holds."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = cluster.address
    model = Model()
    try:
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where)
            if sys.argv[1:] == ["evaluation"]:
                evaluates(folder)
                return 0
            rules = ["run", "--tasks", "starter", "--agents", "rules", "--seeds", "2", "--json"]
            here = ended(begun(*rules, "--out", str(folder / "a.sqlite")))
            there = ended(begun(*rules, "--out", str(folder / "b.sqlite"), "--engine", "ray", "--shards", "4"))
            assert here == there
            print(f"{len(json.loads(here)['episodes'])} episodes by rules are the same on Ray, 4 shards on 2 machines")

            asked = ["run", *TASKS, "--seeds", "4", "--jobs", "2", "--agents", f"m@{model.url}", "--json"]
            here = ended(begun(*asked, "--out", str(folder / "c.sqlite")))
            calls = model.count
            out = str(folder / "d.sqlite")
            on_ray = begun(*asked, "--out", out, "--engine", "ray", "--shards", "4")
            wait_for(lambda: model.count >= 1.3 * calls, "the run on Ray does not go on")
            killed = wait_for(lambda: workers("play_shard"), "no worker plays a shard")[0]
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda: model.count >= 1.6 * calls, "after a worker was killed the run does not go on")
            cluster.remove_node(second, allow_graceful=False)
            there = ended(on_ray)
            assert here == there, difference(here, there)
            again = model.count - 2 * calls
            print(f"a worker and a machine were killed: the same {calls} answers, {again} of them asked for again")
            assert 0 < again <= calls // 2, "what came back before was not asked for again"

            before = model.count
            out = str(folder / "e.sqlite")
            said = ended(begun(*asked, "--out", out, "--engine", "ray", "--max-calls", "50"), code=1)
            assert "the budget of" in said, said
            assert model.count == before + 50, model.count - before
            assert ended(begun("resume", out, "--engine", "ray", "--max-calls", "0", "--json")) == here
            print(f"a budget of 50 calls holds over all workers, and resume makes the other {calls - 50}")
            assert model.count == before + calls
    finally:
        cluster.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
