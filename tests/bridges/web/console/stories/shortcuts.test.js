import assert from "node:assert/strict";
import test from "node:test";
import { ChosenKeys, chordOf, ESCAPES_MS, EscapeTwice, HeldKey, HOLD_MS, KEYS, letterOf } from "./shortcuts.js";

test("a key means what the layout writes on it", () => {
  assert.equal(letterOf({ key: "z", code: "KeyW" }), "z");                       // French
  assert.equal(letterOf({ key: "W", code: "KeyW", shiftKey: true }), "w");
  assert.equal(letterOf({ key: "ц", code: "KeyW" }), "w");                       // no Latin letter there: by its place
  assert.equal(letterOf({ key: "&", code: "Digit1" }), "1");                     // French digits need Shift
  assert.equal(letterOf({ key: "!", code: "Digit1", shiftKey: true }), "!");
  assert.equal(letterOf({ key: "/", code: "Digit7", shiftKey: true }), "/");     // German
  assert.equal(letterOf({ key: "ArrowUp", code: "ArrowUp" }), "ArrowUp");
});

test("Escape twice in time, and a third press begins anew", () => {
  const escapes = new EscapeTwice();
  assert.deepEqual([0, ESCAPES_MS + 1, ESCAPES_MS + 2, ESCAPES_MS + 3].map((at) => escapes.press(at)), [false, false, true, false]);
});

test("a key that is held acts once; one that is let go, or followed by another, never", () => {
  const key = new HeldKey(), act = () => "done";
  key.down("KeyP", act, 0);
  assert.equal(key.due(HOLD_MS - 1), null);
  assert.equal(key.due(HOLD_MS), act);
  assert.equal(key.due(HOLD_MS + 1), null);
  key.down("KeyP", act, 1000);
  assert.equal(key.up("KeyX"), false);
  assert.equal(key.up("KeyP"), true);
  assert.equal(key.due(3000), null);
  key.down("KeyP", act, 4000); key.forget();
  assert.equal(key.due(5000), null);
});

test("a chord is named in one order, whatever Alt makes of the letter", () => {
  const press = (key, code, ...beside) => ({ key, code, ...Object.fromEntries(beside.map((one) => [`${one}Key`, true])) });
  assert.equal(chordOf(press("K", "KeyK", "shift", "ctrl")), "ctrl+shift+k");
  assert.equal(chordOf(press("\u00e7", "KeyC", "alt")), "alt+c");
  assert.equal(chordOf(press("F4", "F4")), "F4");
  assert.equal(chordOf(press("a", "KeyA")), "");
  assert.equal(chordOf(press("A", "KeyA", "shift")), "");
});

test("a chosen key does the work, the old one none, and two never share one", () => {
  const keys = new ChosenKeys();
  assert.equal(keys.choose("p", "ö"), "");
  assert.deepEqual(["ö", "p", "w", "1"].map((key) => keys.meant(key)), ["p", "", "w", "1"]);
  assert.match(keys.choose("m", "w"), /^W already is: Ahead\.$/);
  for (const key of [" ", "3", "Enter"]) assert.match(keys.choose("m", key), /digits and the space bar/);
  assert.equal(keys.meant("m"), "m");
  assert.equal(keys.choose("m", "p"), "");          // free, since P has moved
  assert.match(keys.choose("p", "p"), /already is: Mark/);
  assert.deepEqual(keys.chosen, { p: "ö", m: "p" });
});

test("chosen keys are kept as they were; of a file, what is no key is left out, and all where two would share one", () => {
  const keys = new ChosenKeys(), swapped = { p: "m", m: "p" };
  keys.use(swapped);
  assert.deepEqual(["p", "m"].map((key) => keys.meant(key)), ["m", "p"]);
  keys.use({ nothing: "k", m: 7, y: "F4", w: "ü" });
  assert.deepEqual(keys.chosen, { w: "ü" });
  keys.use({ p: "x" });                              // X is the wrist's
  assert.deepEqual(keys.chosen, {});
  keys.use(undefined);
  assert.equal(keys.meant("w"), "w");
});

test("each page has its own keys, and a chosen one does their work there", () => {
  for (const [page, keys] of Object.entries(KEYS)) {
    const own = new ChosenKeys(keys);
    for (const known of Object.keys(keys)) assert.equal(own.meant(known), known, page);
    const [first, second] = Object.keys(keys);
    assert.match(own.choose(first, second), /already is/, page);
    assert.equal(own.choose(first, "ñ"), "", page);
    assert.deepEqual([own.meant("ñ"), own.meant(first)], [first, ""], page);
  }
  assert.equal(new ChosenKeys(KEYS.study).meant("w"), "w"); // no work of a study's page
});
