"""The page on which a person plays a seat of a text episode."""
