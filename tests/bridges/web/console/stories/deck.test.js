import assert from "node:assert/strict";
import test from "node:test";
import { found, grouped, RECENT, recent } from "./deck.js";

const deck = Array.from({ length: 150 }, (_, n) => ({ text: `Sentence number ${n}.`, group: n < 75 ? "Early" : "Late" }));
deck.push({ text: "Möchten Sie den Becher?", group: "Questions" }, { text: "I am sorry.", group: "Repair" }, { text: "Sorry, once more?", group: "Repair" });

test("three letters find a sentence among 150, whatever its accents", () => {
  assert.deepEqual(found(deck, "moc").map((one) => one.text), ["Möchten Sie den Becher?"]);
  assert.deepEqual(found(deck, "sor").map((one) => one.text), ["Sorry, once more?", "I am sorry."]);
  assert.deepEqual(found(deck, "repair am").map((one) => one.text), ["I am sorry."]);
  assert.equal(found(deck, "entence").length, 0);
  assert.equal(found(deck, " ").length, deck.length);
});

test("what was said lately stands first, each once", () => {
  let lately = [];
  for (const n of [0, 1, 0, 2, 3, 4, 5, 6]) lately = recent(lately, deck[n]);
  assert.deepEqual(lately.map((one) => one.text), [6, 5, 4, 3, 2].map((n) => `Sentence number ${n}.`));
  assert.equal(lately.length, RECENT);
  assert.deepEqual(grouped(deck).map(([name, list]) => [name, list.length]), [["Early", 75], ["Late", 75], ["Questions", 1], ["Repair", 2]]);
});
