"""Control policies: action, image and joint state in; joint commands and feedback out, about 20 Hz."""
