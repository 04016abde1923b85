// Around the seats: who asks for one, what those in shadow would do, and the planner's drafts that wait for a yes.
const make = (tag, className, text) => { const one = document.createElement(tag); if (className) one.className = className; if (text !== undefined) one.textContent = text; return one; };
const $ = (selector) => document.querySelector(selector);

export function wishes(box, seat, link) {
  const key = seat.wishes.map((one) => one.wish).join();
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...seat.wishes.map((one) => {
    const line = make("p", "wish", `${one.name} asks for this seat `);
    for (const [word, yes] of [["Grant", true], ["Refuse", false]]) {
      const button = make("button", "", word); button.type = "button";
      button.addEventListener("click", () => link.send({ t: "answer", seat: box.dataset.seat, wish: one.wish, is_granted: yes }));
      line.append(button);
    }
    return line;
  }));
}

export function shadows(line, seat) {
  const words = seat.shadows.map((one) => `${one.source}: ${one.text}`).join("; ");
  const text = `${seat.holder || "nobody"}: ${seat.live || "says nothing"}${words ? ` · in shadow, ${words}` : ""}`;
  if (line.textContent === text) return;
  line.replaceChildren(make("b", "", `${seat.holder || "nobody"}: `), seat.live || "says nothing");
  if (words) line.append(make("span", "would", ` · in shadow, ${words}`));
}

export class Drafts {
  constructor(link, mine) {
    this.link = link; this.mine = mine; this.shown = 0; this.left = 0; this.wait = 8; this.form = $("#drafts");
    for (const one of document.querySelectorAll("input[name=planner-mode]")) one.addEventListener("change", () => this.set());
    for (const name of ["wait", "end"]) this.form.elements[name].addEventListener("change", () => this.set());
    for (const button of document.querySelectorAll("[data-decide]")) button.addEventListener("click", () => this.decide(button.dataset.decide));
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.decide("approve"); });
  }

  get isOn() { return $("input[name=planner-mode]:checked").value === "approve"; }

  set() {
    $("#drafts").hidden = !this.isOn; $("#plan").hidden = this.isOn;
    if (this.mine()) this.link.send({ t: "supervise", on: this.isOn, wait_s: Math.min(60, Math.max(2, Number(this.form.elements.wait.value) || 8)), at_end: this.form.elements.end.value });
  }

  show(supervision, mine) {
    if (mine && this.isOn !== supervision.on && performance.now() - (this.asked ?? -1e9) > 1000) { this.asked = performance.now(); this.set(); }
    const draft = mine ? supervision.draft : null, elements = this.form.elements;
    $("#draft").hidden = !draft; $("#draft-none").hidden = Boolean(draft);
    if (!draft) { this.shown = 0; return; }
    if (this.shown !== draft.n || (elements.text.defaultValue !== draft.text || elements.sentence.defaultValue !== draft.sentence)) {
      this.shown = draft.n;
      for (const [name, value] of [["text", draft.text], ["sentence", draft.sentence]]) { elements[name].defaultValue = value; elements[name].value = value; }
      elements.text.parentElement.hidden = !draft.has_subtask;
    }
    $("#draft-left").textContent = `${Math.ceil(draft.left_s)} s, then it ${supervision.at_end === "send" ? "goes out" : "is dropped"}`;
    $("#draft-bar").style.width = `${100 * draft.left_s / supervision.wait_s}%`;
  }

  decide(word) {
    if (!this.shown || !this.mine()) return;
    const { text, sentence } = this.form.elements, isEdited = text.value !== text.defaultValue || sentence.value !== sentence.defaultValue;
    this.link.send({ t: "decide", draft: this.shown, do: word === "approve" && isEdited ? "edit" : word, text: text.value, sentence: sentence.value });
    this.shown = 0;
  }
}
