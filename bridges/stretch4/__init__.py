"""Hello Robot's Stretch 4 behind the robot protocol, by the maker's own server."""
