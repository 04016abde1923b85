// How an operator's page is laid out: which parts are there, how wide the pictures are, which keys do what; kept by name in
// this browser.
import { $, all, draw, html, list, make, once, onSubmit } from "/static/dom.js";
import { notice, opens } from "/static/page.js";
import { kept } from "/static/console/library.js";
import { chosenKeys, keyFields, showKeys } from "/static/keyboard.js";

const KEPT = "layouts";
const PARTS = {
  cameras: "Small cameras",
  body: "The robot from behind",
  map: "The floor from above",
  decisions: "Subtask, action, feedback",
  events: "Events",
  joints: "Single joints",
  library: "Postures, places, motions",
  gestures: "Gestures",
  deck: "Sentences",
  ears: "Voice and ears",
};
const FILE = "polyrhythm-operator.json";
const FIRST = { away: [], wide: "even", large: "head", keys: {} };

// A layout of a file that anybody may have written: what is none of it is as at first.
function layoutOf(given) {
  const { away, wide, large, keys } = given ?? {};
  return {
    away: Array.isArray(away) ? away.filter((one) => one in PARTS) : FIRST.away,
    wide: all("input[name=wide]").some((one) => one.value === wide) ? wide : FIRST.wide,
    large: typeof large === "string" ? large : FIRST.large,
    keys: keys !== null && typeof keys === "object" ? keys : FIRST.keys,
  };
}
const layoutsOf = (named) =>
  Object.fromEntries(Object.entries(named ?? {}).map(([name, one]) => [name.slice(0, 24), layoutOf(one)]));

export class Layout {
  // library(): what else goes into the file; large(camera): make it large; largeNow(): which one is.
  constructor(hooks) {
    this.hooks = hooks;
    const found = kept(KEPT, {});
    this.now = layoutOf(found.now);
    this.named = layoutsOf(found.named);
    opens("#layout", "#layouts", () => this.draw());
    $("#layouts").addEventListener("close", () => $("#layout").focus());
    onSubmit("#keep-layout", ({ name: field }) => {
      const name = field.value.trim().slice(0, 24);
      if (!name) return;
      this.named[name] = { ...this.now, away: [...this.now.away], large: this.hooks.largeNow() };
      field.value = "";
      this.set({});
    });
    $("#write-file").onclick = () => this.write();
    $("#read-file").addEventListener("change", (event) => this.read(event.target.files[0]));
    keyFields($("#chosen-keys"), () => this.set({ keys: { ...chosenKeys.chosen } }));
    this.apply();
  }

  set(change) {
    this.now = { ...this.now, ...change };
    localStorage.setItem(KEPT, JSON.stringify({ now: this.now, named: this.named }));
    this.apply();
    this.draw();
  }

  apply() {
    for (const part of all("[data-part]")) part.dataset.away = String(this.now.away.includes(part.dataset.part));
    document.body.dataset.wide = this.now.wide;
    chosenKeys.use(this.now.keys);
    showKeys();
  }

  draw() {
    const { away, wide } = this.now;
    const put = (part, isIn) => this.set({ away: isIn ? away.filter((one) => one !== part) : [...away, part] });
    draw(
      "#parts",
      Object.entries(PARTS).map(
        ([part, words]) =>
          html`<label><input type="checkbox" .checked=${!away.includes(part)} @change=${(event) => put(part, event.target.checked)}> ${words}</label>`,
      ),
    );
    for (const one of all("input[name=wide]")) {
      one.checked = one.value === wide;
      one.onchange = () => this.set({ wide: one.value });
    }
    const take = (layout) => {
      this.set({ ...layout, away: [...layout.away] });
      this.hooks.large(layout.large);
    };
    const forget = (name) => {
      delete this.named[name];
      this.set({});
    };
    draw(
      "#named",
      list(
        Object.entries(this.named),
        ([name]) => name,
        ([name, layout]) =>
          html`<span class="pair"><button type="button" @click=${() => take(layout)}>${name}</button><button type="button" class="away" aria-label=${`Forget ${name}`} @click=${once(() => forget(name))}>×</button></span>`,
      ),
    );
  }

  write() {
    const text = JSON.stringify({ layouts: this.named, library: this.hooks.library()?.document ?? {} }, null, 1);
    save(new Blob([text], { type: "application/json" }), FILE);
  }

  async read(file) {
    if (!file) return;
    try {
      const given = JSON.parse(await file.text());
      if (!given?.layouts && !given?.library) throw new TypeError("another file");
      this.named = { ...this.named, ...layoutsOf(given.layouts) };
      const library = this.hooks.library();
      if (library && given.library) library.document = given.library;
      this.set({});
      notice(`What ${file.name} holds is here now.`);
    } catch {
      notice(`${file.name} is no file that this page has written; nothing was changed.`);
    }
  }
}

// Hands a file to the browser, which keeps it where it keeps downloads.
export function save(blob, name) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
