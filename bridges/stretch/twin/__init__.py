"""A Stretch 3 behind its serial ports: what boards and servos answer, so that stretch_body itself runs unchanged."""
