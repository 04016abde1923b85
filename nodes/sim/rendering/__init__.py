"""How the simulated cameras see: rays cast in Python, or OpenGL where it works."""
