"""LeRobot datasets: made of recordings, made into recordings, and examined."""
