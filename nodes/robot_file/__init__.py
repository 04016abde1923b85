"""A robot from its own file, MJCF or URDF: limits, kinematics, and what its camera sees of itself."""
