"""Every ROS message that the bridge sends, as CDR with its definition and its JSON: lines for ros2_reads.mjs."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from rosbags.typesys import Stores, get_typestore

from nodes.recording.ros2_messages import STORE, to_cdr, to_document
from tests.bridges.ros2.test_messages import SENT


def plain(part: Any) -> Any:
    """Names of parts of actions and services as names of messages, the only ones that a definition may hold."""
    if isinstance(part, str):
        return part.replace("/action/", "/msg/").replace("/srv/", "/msg/")
    return type(part)(map(plain, part)) if type(part) in (tuple, list) else part


store = get_typestore(Stores.EMPTY)
store.register({plain(name): plain(fields) for name, fields in STORE.fielddefs.items()})
for name, value in SENT.items():
    definition, _ = store.generate_msgdef(plain(name), ros_version=2)
    line = {"type": name, "definition": definition, "cdr": base64.b64encode(to_cdr(value)).decode()}
    sys.stdout.write(json.dumps({**line, "expected": to_document(value)}) + "\n")
