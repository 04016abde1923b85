"""A simulated Stretch-like robot on a laptop: physics, cameras and a collaborator; and one of kinematics alone."""
