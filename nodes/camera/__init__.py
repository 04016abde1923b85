"""Cameras: a webcam, stream or video file by OpenCV, and an Intel RealSense with depth."""
