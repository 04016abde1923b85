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
  constructor(link, mine, hooks) {
    this.link = link; this.mine = mine; this.hooks = hooks; this.next = null; this.shown = 0; this.left = 0; this.wait = 8; this.form = $("#drafts");
    for (const one of document.querySelectorAll("input[name=planner-mode]")) one.addEventListener("change", () => this.set());
    for (const name of ["wait", "end"]) this.form.elements[name].addEventListener("change", () => this.set());
    $("[data-decide=reject]").addEventListener("click", () => this.decide("reject"));
    this.form.addEventListener("submit", (event) => { event.preventDefault(); if (document.activeElement?.name !== "wait") this.decide("approve"); });
    $("#draft-next button").addEventListener("click", () => { if (this.next) this.fill(this.next); });
  }

  get isOn() { return $("input[name=planner-mode]:checked").value === "approve"; }

  set() {
    $("#drafts").hidden = !this.isOn; $("#plan").hidden = this.isOn;
    if (this.mine()) this.link.send({ t: "supervise", on: this.isOn, wait_s: Math.min(60, Math.max(2, Number(this.form.elements.wait.value) || 8)), at_end: this.form.elements.end.value });
  }

  // What somebody is typing is theirs: the model's next words stand beside it, and go in only when they are asked for.
  get isTyped() { const { text, sentence } = this.form.elements; return text.value !== text.defaultValue || sentence.value !== sentence.defaultValue; }

  show(supervision, mine) {
    if (mine && this.isOn !== supervision.on && performance.now() - (this.asked ?? -1e9) > 1000) { this.asked = performance.now(); this.set(); }
    const draft = mine ? supervision.draft : null, elements = this.form.elements;
    if (!draft && this.shown && this.isTyped) this.rescue();
    $("#draft").hidden = !draft; $("#draft-none").hidden = Boolean(draft);
    if (!draft) { this.shown = 0; this.next = null; $("#draft-next").hidden = true; return; }
    const isNew = this.shown !== draft.n, isOther = elements.text.defaultValue !== draft.text || elements.sentence.defaultValue !== draft.sentence;
    if (this.shown && isOther && this.isTyped) this.offer(draft);
    else if (isNew || isOther) this.fill(draft);
    this.shown = draft.n;
    $("#draft-left").textContent = `${Math.ceil(draft.left_s)} s, then it ${supervision.at_end === "send" ? "goes out" : "is dropped"}`;
    $("#draft-bar").style.width = `${100 * draft.left_s / supervision.wait_s}%`;
  }

  fill(draft) {
    for (const name of ["text", "sentence"]) { const one = this.form.elements[name]; one.defaultValue = draft[name]; one.value = draft[name]; }
    this.form.elements.text.parentElement.hidden = !draft.has_subtask;
    this.next = null; $("#draft-next").hidden = true;
  }

  offer(draft) {
    this.next = draft; $("#draft-next").hidden = false;
    const words = [draft.text, draft.sentence].filter(Boolean).join(" / "), line = `The model's draft is now: “${words}”. What you typed is kept.`;
    if ($("#draft-next span").textContent !== line) $("#draft-next span").textContent = line;
  }

  // The time is up while somebody types: their words wait where they write themselves.
  rescue() {
    const plan = $("#plan").elements;
    for (const name of ["text", "sentence"]) plan[name].value = this.form.elements[name].value;
    this.hooks.notice("The draft's time is up. What you typed stands under “write”.");
  }

  decide(word) {
    if (!this.shown || !this.mine()) return;
    const { text, sentence } = this.form.elements;
    this.link.send({ t: "decide", draft: this.shown, do: word === "approve" && this.isTyped ? "edit" : word, text: text.value, sentence: sentence.value });
    text.defaultValue = text.value; sentence.defaultValue = sentence.value;
    this.shown = 0;
  }
}
