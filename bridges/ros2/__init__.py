"""ROS 2 without a ROS installation: topics both ways and a robot behind the guard, over Zenoh or rosbridge."""
