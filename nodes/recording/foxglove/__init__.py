"""What viewers such as Foxglove show of a graph, in their own schemas; the same in a recording and in a live view."""
