"""A policy without weights for tests of rounds: `train DATA BASE MODEL` counts its data, `serve MODEL PORT [ASKED]`
answers, and adds a byte to the file ASKED for each answer.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def train(data: Path, base: str, model: Path) -> None:
    """The model is a number: how many pairs it has seen, with those of its base."""
    before = json.loads((Path(base) / "model.json").read_text()) if Path(base).is_dir() else 0
    model.mkdir()
    pairs = len((data / "train.jsonl").read_text().splitlines())
    (model / "model.json").write_text(json.dumps(before + pairs))


def serve(model: str, port: int, asked: Path | None) -> None:
    """A trained model offers 900; the base says that it would think about it."""
    is_trained = Path(model).is_dir()
    content = '"How about 900 euros?"' if is_trained else '"I will think about it."'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply({"data": []})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if asked is not None:
                with asked.open("ab") as file:
                    file.write(b".")
            choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
            self.reply({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})

        def log_message(self, *_: object) -> None:
            pass

        def reply(self, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        serve(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]) if sys.argv[4:] else None)
