// Reads the CDR of every ROS message that the bridge sends with Foxglove's decoder, and compares each field.
// Usage: python -m tests.interop.ros2_writes | node ros2_reads.mjs (where @foxglove/rosmsg and its serialization are)
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";

const require = createRequire(process.cwd() + "/");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");

// As rosbridge's JSON has it: bytes in base64, other typed arrays as lists; times are sec and nsec there.
const plain = (value) => {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value)) return Array.from(value, Number);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key === "nsec" ? "nanosec" : key, plain(part)]));
};
let number = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { type, definition, cdr, expected } = JSON.parse(line);
  const reader = new MessageReader(parse(definition, { ros2: true }));
  assert.deepEqual(plain(reader.readMessage(Buffer.from(cdr, "base64"))), expected, type);
  number += 1;
}
assert(number > 5, "nothing was read");
console.log(`@foxglove/rosmsg2-serialization reads ${number} types of message as they were sent`);
