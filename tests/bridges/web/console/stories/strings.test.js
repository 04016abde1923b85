import assert from "node:assert/strict";
import test from "node:test";
import english from "./strings_en.js";
import talking from "./talk_en.js";

const places = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((one) => one[1]).sort();

for (const language of ["de", "es", "ja"]) for (const [file, said] of [["strings", english], ["talk", talking]]) test(`${file} in ${language} says all that English says`, async () => {
  const other = (await import(`./${file}_${language}.js`)).default;
  assert.deepEqual(Object.keys(other), Object.keys(said));
  for (const [name, text] of Object.entries(said)) {
    assert.deepEqual(places(other[name]), places(text), name);
    assert.notEqual(other[name].trim(), "");
    assert.notEqual(other[name], text, name);
  }
});
