"""VLMs: subtask, image and utterance in; replies, descriptions and actions out, about 5 Hz.

- what they are made of: `parts` (the contracts), `node`, and `work`, which joins the parts
- eyes: `geometry_eyes`, `model_eyes`, those of `detector`; belief: `belief`, `memory`, `poses`
- choice: `next_action` (a table), `in_room` (with a map), `advised` (by a model); `situation`, `deeds`, `hold`
- talk: `talk`, by the grammar `grammar_talk`
- the nodes: `local` (no model), the room `detector`; with a model `pointing_vlm` (`pointing`, `model_prompt`),
  `openai_api` and the room `onnx`
"""
