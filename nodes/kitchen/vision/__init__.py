"""What can be told of a kitchen from its head camera's images alone; nothing here knows the simulator.

`blobs` finds groups of points in one image, `crops` tells what they are, `sight` remembers them as a scene; `gestures`
reads hands and heads, `grounding` finds the thing that words mean.
"""
