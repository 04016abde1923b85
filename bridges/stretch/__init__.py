"""Hello Robot's Stretch 3 behind the robot protocol, by the maker's library; and what every robot of theirs shares."""
