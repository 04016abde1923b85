"""A policy's model in an ONNX file: what it is told (`inputs`, `tensors`), how it runs and how its chunks are played.

- the node: `policy`, with `session` and `chunks`; shipped files: `models`
- `adopt` makes such a file of a LeRobot folder, by a process of LeRobot's own (`lerobot_process`, `lerobot_side`)
"""
