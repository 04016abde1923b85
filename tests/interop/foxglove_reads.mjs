// Reads a recording with Foxglove's own MCAP reader, or a live view with Foxglove's own client, and checks what is in
// Foxglove's schemas against those, and every other message against its own, as it is recorded or announced.
// Usage: node foxglove_reads.mjs RUN.mcap|ws://ADDRESS
// (where @mcap/core, @mcap/support, @foxglove/schemas and ajv are installed; for an address @foxglove/ws-protocol and ws)
import { open } from "node:fs/promises";
import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const schemas = require("@foxglove/schemas/jsonschema");
const Ajv = require("ajv");

const LIVE_MS = 10000;
const ajv = new Ajv({ strict: false });
const theirs = {};
const published = ["CompressedImage", "CameraCalibration", "FrameTransforms", "JointStates", "SceneUpdate", "Log"];
for (const name of published) theirs[`foxglove.${name}`] = ajv.compile({ ...schemas[name], additionalProperties: true });
const ours = new Map();
const counts = {};
let messages = 0;
let ownInvalid = 0;

function check(name, schemaText, data) {
  const body = JSON.parse(new TextDecoder().decode(data));
  if (theirs[name] && !theirs[name](body)) throw new Error(`${name}: ${JSON.stringify(theirs[name].errors)}`);
  if (!ours.has(schemaText)) ours.set(schemaText, ajv.compile(JSON.parse(schemaText)));
  if (!ours.get(schemaText)(body)) {
    ownInvalid += 1;
    console.error(`${name}: ${JSON.stringify(ours.get(schemaText).errors?.slice(0, 2))}`);
  }
}

async function recorded(path) {
  const { McapIndexedReader } = require("@mcap/core");
  const { loadDecompressHandlers } = require("@mcap/support");
  const file = await open(path, "r");
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
  for await (const message of reader.readMessages({ validateCrcs: true })) {
    messages += 1;
    const schema = reader.schemasById.get(reader.channelsById.get(message.channelId).schemaId);
    counts[schema.name] = (counts[schema.name] ?? 0) + 1;
    check(schema.name, new TextDecoder().decode(schema.data), message.data);
  }
}

async function live(address) {
  const { FoxgloveClient } = require("@foxglove/ws-protocol");
  const WebSocket = require("ws");
  const client = new FoxgloveClient({ ws: new WebSocket(address, ["foxglove.sdk.v1"]) });
  const channels = new Map();
  await new Promise((resolve, reject) => {
    client.on("error", reject);
    client.on("close", () => reject(new Error(`${address} was closed`)));
    client.on("advertise", (all) => all.forEach((one) => channels.set(client.subscribe(one.id), one)));
    client.on("message", ({ subscriptionId, data }) => {
      const channel = channels.get(subscriptionId);
      messages += 1;
      counts[channel.schemaName] = (counts[channel.schemaName] ?? 0) + 1;
      try {
        if (channel.encoding === "json") check(channel.schemaName, channel.schema, data);
      } catch (problem) {
        reject(problem);
      }
    });
    setTimeout(resolve, LIVE_MS);
  });
}

const from = process.argv[2];
const isLive = from.startsWith("ws:");
await (isLive ? live(from) : recorded(from));
for (const name of published) {
  const late = isLive && name === "Log"; // nobody may have spoken meanwhile
  if (!late && !counts[`foxglove.${name}`]) throw new Error(`no foxglove.${name} in ${from}`);
}
const who = isLive ? "@foxglove/ws-protocol" : "@mcap/core";
console.log(`${who} reads ${messages} messages; checked ${JSON.stringify(counts)}`);
process.exit(ownInvalid ? 1 : 0);
