"""Ears and mouth: what people say becomes text on `heard`, what the robot says on `said` becomes sound."""
