"""VLMs: subtask, image and utterance in; replies, descriptions and actions out, about 5 Hz.

- what they are made of: `parts` (the contracts), `node`, and `work`, which joins the parts
- the rooms `eyes` and `choice`; belief: `belief`, `memory`; talk: `talk`, by the grammar `grammar_talk`
- the nodes: `local` (no model), the rooms `detector` and `room` (with a map); with a model `pointing_vlm`, `openai_api`
  and the room `onnx`
"""
