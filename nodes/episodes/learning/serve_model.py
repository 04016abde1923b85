"""A model of transformers, or a .gguf file, behind `transformers serve`: python -m ....serve_model MODEL --port 8731.

What it adds: a .gguf file, or "smollm2", is first written out as plain numbers, and a chat template can be given.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from tempfile import mkdtemp

from nodes.episodes.learning.finetune import load, load_words
from runtime.command_line.arguments import answered, port_number

NAME = "policy"
"""What the model is called by who asks it: the server wants the very name of the folder that it was given."""
SERVE = "from transformers.cli.transformers import main; main()"


def main(argv: list[str]) -> int:
    """Become the server, until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m nodes.episodes.learning.serve_model", description=__doc__)
    parser.add_argument("model", help="a folder of transformers, a .gguf file, or smollm2")
    parser.add_argument("--port", type=port_number, default=8731)
    parser.add_argument("--chat-template", type=Path)
    asked = parser.parse_args(argv)

    def serve() -> int:
        load_words(asked.model, asked.chat_template)  # it can be asked, or this says why not
        place = Path(mkdtemp(prefix="polyrhythm-model-"))
        if Path(asked.model).is_dir() and not asked.chat_template:
            (place / NAME).symlink_to(Path(asked.model).resolve())
        else:
            words, model = load(asked.model, asked.chat_template)
            model.save_pretrained(place / NAME)
            words.save_pretrained(place / NAME)
        os.chdir(place)
        command = [sys.executable, "-c", SERVE, "serve", NAME, "--host", "127.0.0.1", "--port", str(asked.port)]
        os.execv(sys.executable, command)

    return answered("serve_model", serve)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
