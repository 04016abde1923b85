// What TensorFlow.js itself makes of a picture: node eyes.mjs MODEL(.json and .bin) PICTURE(raw rgb) SIDE KIND OUTPUT FILE
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const tf = require('@tensorflow/tfjs-core');
const { loadGraphModel } = require('@tensorflow/tfjs-converter');
require('@tensorflow/tfjs-backend-wasm');

const [model, picture, side, kind, output, file] = process.argv.slice(2);
await tf.setBackend('wasm');
const table = JSON.parse(readFileSync(`${model}.json`, 'utf8'));
const weights = new Uint8Array(readFileSync(`${model}.bin`));
const graph = await loadGraphModel({
  load: async () => ({
    modelTopology: table.modelTopology,
    weightSpecs: table.weightsManifest.flatMap((group) => group.weights),
    weightData: weights.buffer,
    format: table.format,
  }),
});
const shape = [1, Number(side), Number(side), 3];
const pixels = readFileSync(picture);
const input = tf.tensor(kind === 'int32' ? Int32Array.from(pixels) : Float32Array.from(pixels), shape, kind);
writeFileSync(file, Buffer.from((await graph.execute(input, [output]).data()).buffer));
