"""Worlds and scenarios as files, and the model of a room that is made of them."""
