"""Every ROS message that the bridge sends, as CDR with its definition and its JSON: lines for ros2_reads.mjs."""

from __future__ import annotations

import base64
import json
import sys

from nodes.recording.ros2_messages import STORE, to_cdr, to_document
from tests.bridges.ros2.test_messages import SENT

for name, value in SENT.items():
    definition, _ = STORE.generate_msgdef(name, ros_version=2)
    line = {"type": name, "definition": definition, "cdr": base64.b64encode(to_cdr(value)).decode()}
    sys.stdout.write(json.dumps({**line, "expected": to_document(value)}) + "\n")
