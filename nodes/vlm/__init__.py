"""VLMs: subtask, image and utterance in; replies, descriptions and actions out, about 5 Hz."""
