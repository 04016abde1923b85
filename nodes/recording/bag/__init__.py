"""`polyrhythm bag`: look into recordings, repair, cut, join, compare and export them."""
