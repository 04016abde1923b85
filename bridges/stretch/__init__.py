"""Hello Robot's Stretches behind the robot protocol: the 3 by the maker's library, the 4 by the maker's server."""
