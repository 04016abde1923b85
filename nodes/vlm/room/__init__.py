"""VLMs in a room with a map: by the head camera's images, and by what a simulator tells.

`blobs` finds groups of points in one image, `crops` tells what they are, `sight` remembers them as a scene, `grounding`
finds the thing that words mean; none of them knows the simulator. `simulator_eyes` reads it, `vlm` has the nodes.
"""
