"""VLMs: subtask, image and utterance in; replies, descriptions and actions out, about 5 Hz.

- the nodes: `local` (no model), `onnx_vlm` (a model in this process), `openai_api` (a model on a server)
- what all do: `next_action`, `memory`, `poses`
- with a model: `pointing_vlm`, `pointing`, `model_prompt` (question and answer), `answer_script`
- the model in this process: `onnx_folder`, `onnx_parts`, `onnx_words`, `onnx_eyes`, `onnx_model`, `onnx_request`
"""
