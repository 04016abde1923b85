// How an operator's page is laid out: which parts are there, how wide the pictures are, which keys do what; kept by name in
// this browser.
import { $, all, button, make, notice } from "/static/page.js";
import { kept } from "/static/console/library.js";
import { chosenKeys, showKeys, shown } from "/static/keyboard.js";
import { KEYS, letterOf } from "/static/shortcuts.js";

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

export class Layout {
  // library(): what else goes into the file; large(camera): make it large; largeNow(): which one is.
  constructor(hooks) {
    this.hooks = hooks;
    const found = kept(KEPT, { now: { away: [], wide: "even", large: "head", keys: {} }, named: {} });
    this.now = found.now;
    this.named = found.named;
    $("#layout").onclick = () => {
      this.draw();
      $("#layouts").showModal();
      $("#layouts").focus(); // not its stop button: Enter is to stop nothing by surprise
    };
    $("#layouts-close").onclick = () => $("#layouts").close();
    $("#layouts").addEventListener("close", () => $("#layout").focus());
    $("#keep-layout").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = event.target.elements.name,
        name = field.value.trim().slice(0, 24);
      if (!name) return;
      this.named[name] = { ...this.now, away: [...this.now.away], large: this.hooks.largeNow() };
      field.value = "";
      this.set({});
    });
    $("#write-file").onclick = () => this.write();
    $("#read-file").addEventListener("change", (event) => this.read(event.target.files[0]));
    this.keys();
    this.apply();
  }

  // A field for each single key: what is pressed in it is the key from then on.
  keys() {
    const [list, told] = [$("#chosen-keys div"), $("#chosen-keys [role=status]")];
    list.append(
      ...Object.entries(KEYS).map(([known, does]) => {
        const field = make("input");
        Object.assign(field, { readOnly: true, size: 2 });
        field.dataset.of = known;
        field.onkeydown = (event) => {
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          const isUndone = ["Delete", "Backspace"].includes(event.key);
          if (event.key.length !== 1 && !isUndone) return;
          event.preventDefault();
          told.textContent =
            chosenKeys.choose(known, isUndone ? known : letterOf(event)) || `${shown(known)}: ${does}.`;
          this.set({ keys: { ...chosenKeys.chosen } });
        };
        return make("label", "", field, ` ${does}`);
      }),
    );
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
    for (const field of all("#chosen-keys input")) field.value = shown(field.dataset.of);
  }

  draw() {
    const { away, wide } = this.now;
    $("#parts").replaceChildren(
      ...Object.entries(PARTS).map(([part, words]) => {
        const label = make("label", ""),
          box = make("input");
        Object.assign(box, { type: "checkbox", checked: !away.includes(part) });
        box.onchange = () => this.set({ away: box.checked ? away.filter((one) => one !== part) : [...away, part] });
        label.append(box, ` ${words}`);
        return label;
      }),
    );
    for (const one of all("input[name=wide]")) {
      one.checked = one.value === wide;
      one.onchange = () => this.set({ wide: one.value });
    }
    $("#named").replaceChildren(
      ...Object.entries(this.named).map(([name, layout]) => {
        const pair = make("span", "pair");
        pair.append(
          button(name, () => {
            this.set({ ...layout, away: [...layout.away] });
            this.hooks.large(layout.large);
          }),
          Object.assign(
            button(
              "×",
              () => {
                delete this.named[name];
                this.set({});
              },
              "away",
            ),
            { ariaLabel: `Forget ${name}` },
          ),
        );
        return pair;
      }),
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
      if (given.layouts) this.named = { ...this.named, ...given.layouts };
      const library = this.hooks.library();
      if (library && given.library) library.document = given.library;
      this.set({});
      notice(`What ${file.name} holds is here now.`);
    } catch {
      notice(`${file.name} is no file that this page has written: it is no JSON.`);
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
