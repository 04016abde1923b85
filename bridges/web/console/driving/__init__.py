"""How what a person holds down, clicks or names moves the robot.

`may_drive` says whether it does, `teleop` makes a joint command of it, `floor_path` leads past what stands around,
`poses` are named postures.
"""
