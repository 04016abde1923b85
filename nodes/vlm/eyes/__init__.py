"""Eyes of a VLM: by geometry, and by a model that names and points at what it sees."""
