"""What a robot in a kitchen makes of what it hears and sees.

`mind` decides; `phrases` (what people say), `household` (what belongs where), `seen` (questions to a scene) and `tasks`
(what is kept in hand) serve it.
"""
