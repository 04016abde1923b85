"""VLMs: subtask, image and utterance in; replies, descriptions and actions out, about 5 Hz.

- the nodes: `local` (no model), the room `onnx` (a model in this process), `openai_api` (a model on a server)
- what all do: `next_action`, `memory`, `poses`; what they make of words at once: `talk`, by the grammar `grammar_talk`
- with a model: `pointing_vlm`, `pointing`, `model_prompt` (question and answer)
"""
