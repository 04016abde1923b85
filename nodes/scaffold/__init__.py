"""The first files of a user's own project: what `polyrhythm new` writes, from templates."""
