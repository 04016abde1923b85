"""Clients of models: OpenAI-compatible servers with budgets and dialects, and ONNX files.

- asking: `client`, `chat_request`, `request`, `model`, `pace_and_outages`, `servers`, `address`, `budget`,
  `http_client`, `realtime`
- words of the API: `chat_format`, `dialect`, `refusals`, `openai_errors`
- what came back: `answers`, `json_reading`
- models here: `onnx_file`, `onnx_runtime`, `smollm2`
"""
