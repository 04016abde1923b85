// What was sent is not done before the server says so, and a link over which nothing comes is given up.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

let now = 0,
  looks = [],
  again = [],
  told = [],
  reached = true;
const kept = {};
globalThis.WebSocket = class {
  static OPEN = 1;
  constructor() {
    this.readyState = 0;
    this.sent = [];
    WebSocket.last = this;
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.readyState = 3;
  }
};
globalThis.location = { hash: "#code", protocol: "http:", host: "here", pathname: "/" };
globalThis.sessionStorage = {
  getItem: (name) => kept[name] ?? null,
  setItem: (name, value) => {
    kept[name] = value;
  },
};
globalThis.history = {
  replaceState: () => {
    location.hash = "";
  },
};
globalThis.addEventListener = () => {};
globalThis.document = { querySelector: () => null };
globalThis.setTimeout = (act) => again.push(act);
globalThis.setInterval = (act) => {
  looks.push(act);
  return {};
};
globalThis.fetch = async () => {
  if (!reached) throw new TypeError("nobody is there");
};
globalThis.performance = { now: () => now };
const { Link, SILENT_MS } = await import("./link.js");

let link;
const hooks = {
  cover: (text) => told.push(text && "covered"),
  welcome() {},
  state() {},
  lost: (message) => told.push(`lost ${message.t}`),
  told: (kind) => told.push(`stop ${kind}`),
};
const says = (message) => WebSocket.last.onmessage({ data: JSON.stringify(message) });
const state = (more = {}) => says({ t: "state", n: 1, notices: [], ...more });
function opens(heard = 0) {
  WebSocket.last.readyState = 1;
  WebSocket.last.onopen();
  says({ t: "welcome", pages: [], key: "a.key", heard });
}
const pressed = (kind) => WebSocket.last.sent.find((one) => one.t === kind)?.press;
const passes = (ms) => {
  for (let past = 0; past < ms; past += 250) {
    now += 250;
    for (const look of looks) look();
  }
};

beforeEach(() => {
  looks = [];
  again = [];
  location.hash = "#code";
  link = new Link(hooks);
  opens();
  told = [];
});

test("the code of the address is exchanged for a key, and the key opens the page again", () => {
  assert.equal(WebSocket.last.sent[0].token, "code");
  assert.deepEqual([location.hash, kept.token], ["", "a.key"]);
});

test("a press is pending until the server says what became of it", () => {
  const was = [],
    outcome = { done: () => was.push("done"), refused: (why) => was.push(why), lost: () => was.push("lost") };
  link.send({ t: "say", text: "one" }, outcome);
  link.send({ t: "mark" }, outcome);
  assert.deepEqual(was, []);
  const [, , say, mark] = [null, ...WebSocket.last.sent];
  state({ acks: [[say.press, ""]] });
  state({ acks: [[mark.press, "not so fast"]] });
  assert.deepEqual(was, ["done", "not so fast"]);
});

test("a link over which nothing comes for two seconds is covered, closed, and opened again", async () => {
  const before = WebSocket.last;
  state();
  passes(SILENT_MS - 250);
  assert.deepEqual(told, [], "states that come keep it open");
  passes(500);
  assert.deepEqual([told, before.readyState], [["covered"], 3]);
  await null;
  assert.notEqual(WebSocket.last, before);
});

test("a page that has stood still itself reads what waits before it gives the link up", () => {
  now += 60_000;
  for (const look of looks) look();
  assert.deepEqual(told, []);
});

test("after a lost link, what the server had done is done, the rest comes back, and a stop is said again", async () => {
  const was = [];
  link.send({ t: "mark" }, { done: () => was.push("marked"), lost: () => was.push("mark lost") });
  link.send({ t: "say", text: "hello" }, { done: () => was.push("said"), lost: () => was.push("say lost") });
  link.send({ t: "stop" });
  const heard = pressed("mark");
  passes(SILENT_MS + 500);
  await null;
  link.send({ t: "invite" }, { lost: () => was.push("invite lost") });
  opens(heard);
  assert.deepEqual(was, ["invite lost", "marked", "say lost"]);
  assert.ok(pressed("stop"), "a stop is still meant");
  assert.ok(!pressed("say"));
});

test("a stop is told only when the guard says so", () => {
  link.send({ t: "stop" });
  state({ stopped: true });
  assert.deepEqual(told, ["stop sent"], "it was stopped before, and this press has not arrived yet");
  state({ acks: [[pressed("stop"), ""]], stopped: false });
  assert.deepEqual(told, ["stop sent"]);
  state({ stopped: true });
  assert.deepEqual(told, ["stop sent", "stop told"]);
});

test("without a guard nobody says that the robot is stopped", () => {
  link.send({ t: "stop" });
  state({ acks: [[pressed("stop"), ""]], stopped: null });
  assert.deepEqual(told, ["stop sent", "stop nobody"]);
});
