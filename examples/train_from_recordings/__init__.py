"""The smallest trainings that go from a LeRobot dataset of recordings to an ONNX policy."""
