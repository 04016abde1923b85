"""Clients of models: OpenAI-compatible servers with budgets and dialects, and ONNX files."""
