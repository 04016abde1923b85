// Around the seats: who asks for one, what those in shadow would do, and the planner's drafts that wait for a yes.
import words from "/static/console/console_en.js";
import { holderWords, nodeWords } from "/static/console/summary.js";
import { $, draw, html, list, nothing, once, setHidden, setText } from "/static/dom.js";
import { fill } from "/static/words.js";

/** @typedef {import("/static/link.js").Link<import("/static/wire").FromConsole>} ConsoleLink */

export function wishes(box, seat, link) {
  const answer = (one, is_granted) =>
    once(() => link.send({ t: "answer", seat: box.dataset.seat, wish: one.wish, is_granted }));
  const line = (one) =>
    html`<p class="wish row">${fill(words.asks, one)}<button type="button" @click=${answer(one, true)}>${words.grant}</button><button type="button" @click=${answer(one, false)}>${words.refuse}</button></p>`;
  draw(
    box,
    list(seat.wishes, (one) => one.wish, line),
  );
}

export function shadows(line, seat) {
  const would = seat.shadows.map((one) => `${nodeWords(one.source)}: ${one.text}`).join("; "),
    told = would ? html`<span class="would">${fill(words.in_shadow, { words: would })}</span>` : nothing;
  draw(line, html`<b>${holderWords(seat)}: </b>${seat.live || words.says_nothing}${told}`);
}

const UNDO_S = 1;

// The drafts of one seat's model, which wait for a yes or may be taken back. `begins`: "write", "approve" or "undo".
export class Drafts {
  /** @param {ConsoleLink} link @param {"planner" | "vlm"} seat */
  constructor(link, seat, mine, begins, hooks) {
    this.link = link;
    this.seat = seat;
    this.mine = mine;
    this.hooks = hooks;
    this.next = null;
    this.shown = 0;
    this.box = $(`.review[data-seat=${seat}]`);
    this.box.replaceChildren($("#review").content.cloneNode(true));
    this.form = this.$("form");
    for (const part of ["legend", ".write", ".what"])
      this.$(part).textContent = words[`${seat}_${part.replace(".", "")}`];
    this.form.elements.text.readOnly = seat === "vlm"; // an action is let through or not; what is said with it may be edited
    for (const one of this.radios) {
      one.name = `${seat}-mode`;
      one.checked = one.value === begins;
      one.addEventListener("change", () => this.set());
    }
    for (const name of ["wait", "end"]) this.form.elements[name].addEventListener("change", () => this.set());
    this.$("[data-decide=reject]").addEventListener("click", () => this.decide("reject"));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (/** @type {HTMLInputElement} */ (document.activeElement)?.name !== "wait") this.decide("approve");
    });
    this.$(".draft-next button").addEventListener("click", () => {
      if (this.next) this.fill(this.next);
    });
    this.draw();
  }

  $(selector) {
    return this.box.querySelector(selector);
  }

  get radios() {
    return [...this.box.querySelectorAll("input[type=radio]")];
  }

  get mode() {
    return this.radios.find((one) => one.checked).value;
  }

  get isOn() {
    return this.mode !== "write";
  }

  draw() {
    const isUndo = this.mode === "undo";
    this.form.hidden = !this.isOn;
    this.hooks.writes(!this.isOn);
    this.$(".terms").hidden = isUndo;
    this.$("[data-decide=approve]").firstChild.textContent = isUndo ? words.send_now : words.approve;
    this.$("[data-decide=reject]").firstChild.textContent = isUndo ? words.take_back : words.reject;
  }

  set() {
    this.draw();
    const isUndo = this.mode === "undo",
      wait_s = Math.min(60, Math.max(2, Number(this.form.elements.wait.value) || 8));
    if (this.mine())
      this.link.send({
        t: "supervise",
        seat: this.seat,
        on: this.isOn,
        wait_s: isUndo ? UNDO_S : wait_s,
        at_end: isUndo ? "send" : this.form.elements.end.value,
      });
  }

  // What somebody is typing is theirs: the model's next words stand beside it, and go in only when they are asked for.
  get isTyped() {
    const { text, sentence } = this.form.elements;
    return text.value !== text.defaultValue || sentence.value !== sentence.defaultValue;
  }

  show(review) {
    const mine = this.mine();
    if (mine && this.isOn !== review.on && performance.now() - (this.asked ?? -1e9) > 1000) {
      this.asked = performance.now();
      this.set();
    }
    const draft = mine ? review.draft : null,
      elements = this.form.elements;
    if (!draft && this.shown && this.isTyped) this.rescue();
    setHidden(this.$(".draft"), !draft);
    setHidden(this.$(".draft-none"), Boolean(draft));
    if (!draft) {
      this.shown = 0;
      this.next = null;
      setHidden(this.$(".draft-next"), true);
      return;
    }
    const isNew = this.shown !== draft.n,
      isOther = elements.text.defaultValue !== draft.text || elements.sentence.defaultValue !== draft.sentence;
    if (this.shown && isOther && this.isTyped) this.offer(draft);
    else if (isNew || isOther) this.fill(draft);
    this.shown = draft.n;
    const end = review.at_end === "send" ? words.draft_goes_out : words.draft_dropped;
    setText(this.$(".draft-left"), fill(end, { left_s: Math.ceil(draft.left_s) }));
    this.$(".draft-bar").style.width = `${(100 * draft.left_s) / review.wait_s}%`;
  }

  fill(draft) {
    for (const name of ["text", "sentence"]) {
      const one = this.form.elements[name];
      one.defaultValue = draft[name];
      one.value = draft[name];
    }
    this.form.elements.text.parentElement.hidden = !draft.has_plan;
    this.next = null;
    this.$(".draft-next").hidden = true;
  }

  offer(draft) {
    this.next = draft;
    this.$(".draft-next").hidden = false;
    const draftWords = [draft.text, draft.sentence].filter(Boolean).join(" / "),
      line = fill(words.draft_is_now, { words: draftWords });
    setText(this.$(".draft-next span"), line);
  }

  // The time is up while somebody types: their words wait where they write themselves.
  rescue() {
    const { text, sentence } = this.form.elements;
    this.hooks.rescue(text.value, sentence.value);
    text.value = text.defaultValue;
    sentence.value = sentence.defaultValue;
  }

  decide(word) {
    if (!this.shown || !this.mine()) return;
    const { text, sentence } = this.form.elements,
      isEdit = word === "approve" && this.isTyped,
      typed = [text.value, sentence.value],
      lost = () => isEdit && this.hooks.rescue(...typed);
    this.link.send(
      {
        t: "decide",
        seat: this.seat,
        draft: this.shown,
        do: isEdit ? "edit" : word,
        text: text.value,
        sentence: sentence.value,
      },
      { lost },
    );
    text.defaultValue = text.value;
    sentence.defaultValue = sentence.value;
    this.shown = 0;
  }
}
