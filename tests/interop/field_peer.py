"""A node of ROS 2 over rmw_zenoh that others wrote (zenoh-ros2-sdk, in an environment of its own) says and hears words.

usage: field_peer.py PORT DOMAIN HASH_OF_TWIST_STAMPED
"""

from __future__ import annotations

import sys
import time
from typing import Any

from zenoh_ros2_sdk import ROS2Publisher, ROS2Subscriber  # type: ignore[import-not-found]  # an environment of its own

PORT, DOMAIN, STAMPED = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
where = {"domain_id": DOMAIN, "router_port": PORT, "msg_definition": "string data"}


def heard(message: Any) -> None:
    print((time.time_ns() - int(message.data)) * 1e-6, flush=True)


kept = [
    ROS2Subscriber("/said", "std_msgs/msg/String", heard, **where),
    ROS2Subscriber("/cmd_vel", "geometry_msgs/msg/TwistStamped", lambda _: None, type_hash=STAMPED, **where),
]
publisher = ROS2Publisher("/chatter", "std_msgs/msg/String", **where)
print("up", flush=True)
while True:
    publisher.publish(data=str(time.time_ns()))
    time.sleep(0.05)
