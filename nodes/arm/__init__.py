"""A six-joint arm of ours on a pedestal beside the table: its MJCF and its robot file. No code."""
