"""A thin OpenAI-compatible server for one language model on this machine: python -m ....serve_model MODEL --port 8731.

It knows /v1/models and /v1/chat/completions, answers one request at a time, and the same request the same way.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nodes.episodes.learning.finetune import load
from runtime.command_line.arguments import answered, port_number

MOST_TOKENS = 512


class LocalModel:
    """A loaded model that goes on with chats."""

    def __init__(self, model: str, template: Path | None, threads: int) -> None:
        self.words, self.model = load(model, template)
        self.model.eval()
        if threads:
            import torch

            torch.set_num_threads(threads)
        self._lock = threading.Lock()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """A chat completion. Raises KeyError, TypeError, ValueError for a request that is none."""
        import torch

        text = self.words.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False)
        asked = self.words(text, add_special_tokens=False, return_tensors="pt")
        heat = float(body.get("temperature") or 0.0)
        most = int(body.get("max_completion_tokens") or body.get("max_tokens") or MOST_TOKENS)
        how: dict[str, Any] = {"do_sample": True, "temperature": heat, "top_p": 0.95} if heat else {"do_sample": False}
        with self._lock, torch.inference_mode():
            torch.manual_seed(zlib.crc32(text.encode()) ^ int(body.get("seed") or 0))
            ids = self.model.generate(
                **asked, max_new_tokens=min(most, MOST_TOKENS), pad_token_id=self.words.eos_token_id, **how
            )
        new = ids[0][asked["input_ids"].shape[1] :].tolist()
        is_whole = bool(new) and new[-1] == self.words.eos_token_id
        count = asked["input_ids"].shape[1]
        content = self.words.decode(new, skip_special_tokens=True)
        choice = {"index": 0, "message": {"role": "assistant", "content": content},
                  "finish_reason": "stop" if is_whole else "length"}  # fmt: skip
        usage = {"prompt_tokens": count, "completion_tokens": len(new), "total_tokens": count + len(new)}
        return {"id": "local", "object": "chat.completion", "model": body.get("model", ""), "choices": [choice],
                "usage": usage}  # fmt: skip


def handler(answerer: LocalModel) -> type[BaseHTTPRequestHandler]:
    """What answers requests with that model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": "policy", "object": "model"}]})

        def do_POST(self) -> None:
            try:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                self._send(200, answerer.answer(body))
            except (KeyError, TypeError, ValueError) as problem:
                self._send(400, {"error": {"message": f"no chat completion request: {problem!r}"}})

        def log_message(self, *_: object) -> None:
            """Requests are not logged."""

        def _send(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def main(argv: list[str]) -> int:
    """Serve until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m nodes.episodes.learning.serve_model", description=__doc__)
    parser.add_argument("model", help="a folder of transformers, or a .gguf file")
    parser.add_argument("--port", type=port_number, default=8731)
    parser.add_argument("--chat-template", type=Path)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    asked = parser.parse_args(argv)

    def serve() -> int:
        answerer = LocalModel(asked.model, asked.chat_template, asked.threads)
        server = ThreadingHTTPServer(("127.0.0.1", asked.port), handler(answerer))
        print(f"serves {asked.model} at http://127.0.0.1:{asked.port}/v1", flush=True)
        server.serve_forever()
        return 0

    return answered("serve_model", serve)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
