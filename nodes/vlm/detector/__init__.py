"""Eyes of a plain camera: a detector of things and a person's pose become a scene, without a server or depth."""
