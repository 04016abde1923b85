"""roslibpy as a person would use it: `python foreign_client.py PORT` prints what it hears, says what it reads."""

from __future__ import annotations

import json
import sys
from typing import Any

import roslibpy

ros: Any = roslibpy.Ros(host="127.0.0.1", port=int(sys.argv[1]))
ros.run(timeout=20)
topics: dict[str, Any] = {}


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    name, kind = asked["topic"], asked["type"]
    if name not in topics:
        topics[name] = roslibpy.Topic(ros, name, kind)
        if "message" in asked:
            topics[name].advertise()
    if "message" in asked:
        topics[name].publish(roslibpy.Message(asked["message"]))
    else:
        topics[name].subscribe(lambda message, name=name: say(topic=name, message=dict(message)))
        say(subscribed=name)
ros.terminate()
