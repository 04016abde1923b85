"""How the spotter of called stops was trained: sentences, voices, noise, and the network."""
