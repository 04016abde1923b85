// Reads a recording with Foxglove's own MCAP reader and checks what is in Foxglove's schemas against those,
// and every other message against its own, as it is recorded.
// Usage: node foxglove_reads.mjs RUN.mcap (where @mcap/core, @mcap/support, @foxglove/schemas and ajv are installed)
import { open } from "node:fs/promises";
import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const { McapIndexedReader } = require("@mcap/core");
const { loadDecompressHandlers } = require("@mcap/support");
const schemas = require("@foxglove/schemas/jsonschema");
const Ajv = require("ajv");

const file = await open(process.argv[2], "r");
const readable = {
  size: async () => BigInt((await file.stat()).size),
  read: async (offset, length) => {
    const buffer = new Uint8Array(Number(length));
    const { bytesRead } = await file.read(buffer, 0, Number(length), Number(offset));
    if (bytesRead !== Number(length)) throw new Error("short read");
    return buffer;
  },
};
const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers: await loadDecompressHandlers() });
const ajv = new Ajv({ strict: false });
const theirs = {};
const published = ["CompressedImage", "CameraCalibration", "FrameTransforms", "JointStates", "SceneUpdate", "Log"];
for (const name of published) theirs[`foxglove.${name}`] = ajv.compile({ ...schemas[name], additionalProperties: true });
const ours = new Map();
const counts = {};
let messages = 0;
let ownInvalid = 0;
for await (const message of reader.readMessages({ validateCrcs: true })) {
  messages += 1;
  const schema = reader.schemasById.get(reader.channelsById.get(message.channelId).schemaId);
  const body = JSON.parse(new TextDecoder().decode(message.data));
  counts[schema.name] = (counts[schema.name] ?? 0) + 1;
  if (theirs[schema.name] && !theirs[schema.name](body)) {
    throw new Error(`${schema.name}: ${JSON.stringify(theirs[schema.name].errors)}`);
  }
  if (!ours.has(schema.id)) ours.set(schema.id, ajv.compile(JSON.parse(new TextDecoder().decode(schema.data))));
  if (!ours.get(schema.id)(body)) {
    ownInvalid += 1;
    console.error(`${schema.name}: ${JSON.stringify(ours.get(schema.id).errors?.slice(0, 2))}`);
  }
}
for (const name of published) {
  if (!counts[`foxglove.${name}`]) throw new Error(`no foxglove.${name} in the recording`);
}
console.log(`@mcap/core reads ${messages} messages; checked ${JSON.stringify(counts)}`);
if (ownInvalid) process.exit(1);
