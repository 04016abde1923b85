// Rating a recording: scrub through it, score each agent in each dimension, say why. All text goes in as text.
import { Link } from "/static/link.js";
import { hasKeys, isText, keyOf, keysSwitch, ownKeys } from "/static/keyboard.js";
import {
  $,
  all,
  draw,
  forget,
  html,
  list,
  paint,
  radio,
  scaleValues,
  setAttribute,
  signed,
  svg,
  table,
  toggle,
  whenNew,
} from "/static/dom.js";
import { cameIn, clock, cover, LOST, notice } from "/static/page.js";

const SPEECH = new Set(["heard", "said", "speak", "non-verbal communication", "action", "none", "leave"]);
const PAINT = { mark: "good", note: "good", interrupt: "bad", guard: "bad", seat: "person", end: "text" };
const PEOPLE = 4; // colours of people
let person = null,
  found = null,
  name = "",
  isAgain = false,
  opened = 0, // how often: what one rater filled in is nobody else's
  at = 0,
  playing = null,
  agent = "";
const ratings = new Map(); // "agent dimension" -> {score, rationale}

/** @type {Link<import("/static/wire").FromRecordings>} */
const link = new Link({
  lost: () => notice(LOST),
  welcome: (message) => {
    person = message;
    cameIn(message);
    if (found && message.has_list) open(name, true);
    else if (found) {
      watch();
      send();
    } else if (message.recording) take_up(message.recording);
    else showList();
  },
  state: (message) => {
    if (message.notices.length) notice(message.notices.at(-1));
    if (message.recordings) whenNew("list", message.recordings, shelf);
    if (message.recording) {
      if (isAgain) {
        isAgain = false;
        watch();
        send();
      } else take_up(message.recording);
    }
    if (message.ratings) whenNew("ratings", message.ratings, take);
    if (message.agreement) whenNew("agreement", message.agreement, agreement);
  },
  frame: (header, bitmap) => {
    const canvas = all(".camera canvas")[Number(header.camera.split(" ").at(-1))];
    if (canvas) paint(canvas, bitmap);
    bitmap.close();
  },
  cover,
});

const key = (name, dimension) => `${name} ${dimension}`;
const isSpeech = (event) => SPEECH.has(event.kind) && found.agents.includes(event.who);

// --- the list of recordings, where this page has one

function showList() {
  play(false);
  found = null;
  ratings.clear();
  watch();
  $("#list").hidden = false;
  $("#watch").hidden = true;
  $("#rate").hidden = false;
  $("#back").hidden = true;
  document.body.dataset.at = "list";
  $("#where").textContent = "Choose a recording";
  $("#progress").textContent = "";
  document.title = "Recordings - annotation";
  $("#rater-label").hidden = !person.may_rate;
  for (const one of ["#agents", "#scales", "#part"]) $(one).hidden = true;
}

function shelf(all) {
  const day = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }),
    rated = (one) => (one.raters ? `rated by ${one.raters}` : "not rated"),
    none = html`<p class="soft">No finished recording yet. A trial is here a few seconds after its end. A run's own recording is there when the run is over: here in the next run, or at once with</p><code>polyrhythm annotate RUN.mcap</code>`;
  const row = (one) =>
    html`<button type="button" class="recording stack" @click=${() => open(one.name)}><b>${one.name}</b><span class="soft small">${day(one.at_s)} · ${rated(one)}</span></button>`;
  draw("#recordings", all.length ? list(all, (one) => one.name, row) : none);
  if (!found) $("#where").textContent = all.length ? "Choose a recording" : "No recording yet";
}

function open(wanted, again = false) {
  const rater = $("#rater").value.trim();
  if (person.may_rate && !rater) {
    notice("Under which name or code do you rate?");
    $("#rater").focus();
    return;
  }
  name = wanted;
  isAgain = again;
  sessionStorage.setItem("rater", rater);
  link.send({ t: "open", recording: wanted, rater });
  if (!again) $("#where").textContent = `Reading ${wanted}…`;
}
$("#rater").value = sessionStorage.getItem("rater") ?? "";
$("#back").addEventListener("click", () => {
  link.send({ t: "open" });
  showList();
});

function take_up(recording) {
  found = recording;
  agent = found.agents[0];
  opened += 1;
  ratings.clear();
  forget("ratings");
  $("#list").hidden = true;
  $("#watch").hidden = false;
  $("#back").hidden = !person.has_list;
  document.body.dataset.at = "recording";
  for (const one of ["#agents", "#scales"]) $(one).hidden = !person.may_rate;
  build();
  go(0);
}

// --- the recording

const ends = () => found.begins_s + found.duration_s; // times are those of the run, of which this may be a piece
const x = (seconds) => (1000 * (seconds - found.begins_s)) / Math.max(0.1, found.duration_s);

function build() {
  $("#where").textContent =
    `${found.episode} · ${clock(found.duration_s)} · ${person.may_rate ? `you are ${person.has_list ? $("#rater").value.trim() : person.role}` : "you look on"}`;
  document.title = `${found.episode} - annotation`;
  $("#scrub").min = String(found.begins_s);
  $("#scrub").max = String(found.begins_s + Math.max(0.1, found.duration_s));
  cameras();
  const paintOf = (event) => `var(--seat${found.agents.indexOf(event.who) % PEOPLE})`,
    tick = (event) =>
      isSpeech(event)
        ? svg`<rect x=${x(event.at_s) - 1.5} y="3" width="6" height="18" fill=${paintOf(event)}></rect>`
        : svg`<rect x=${x(event.at_s) - 1.5} y="24" width="3" height="13" fill=${`var(--${PAINT[event.kind] ?? "soft"})`}></rect>`;
  draw(
    "#timeline",
    svg`${found.events.map(tick)}<rect id="cursor" x="0" y="0" width="2" height="40" fill="var(--text)"></rect>`,
  );
  const isDone = (event) => event.kind === "action" && found.agents.includes(event.who),
    only = (event) => (event.to?.length ? ` (only to ${event.to.join(", ")})` : ""),
    said = (event) => (event.kind === "non-verbal communication" || isDone(event) ? `[${event.text}]` : event.text),
    line = (event) =>
      html`<button type="button" tabindex="-1" class=${`line ${event.kind.split(" ")[0]}`} data-speech=${String(isSpeech(event))} .style=${isSpeech(event) ? `border-color: ${paintOf(event)}` : ""} @click=${() => go(event.at_s)}><time>${clock(event.at_s)}</time><b>${event.who || event.kind}</b>${only(event)}: ${said(event)}</button>`;
  draw("#lines", found.events.map(line));
  agents();
  if (person.may_rate) drawScales();
}

function agents() {
  const choose = (name) => () => {
    agent = name;
    agents();
    drawScales();
  };
  draw(
    "#agents",
    list(
      found.agents,
      (name) => `${opened} ${name}`,
      (name) => radio("agent", name, name === agent, choose(name)),
    ),
  );
}
$("#timeline").addEventListener("click", (event) => {
  const box = $("#timeline").getBoundingClientRect();
  go(found.begins_s + (found.duration_s * (event.clientX - box.left)) / box.width);
});

// --- the cameras: one large, the others small beside it; the one that was chosen stays so in the next recording

function cameras() {
  $("#pictures").hidden = !found.cameras.length;
  $("#camera-key").hidden = found.cameras.length < 2;
  const camera = (name) =>
    html`<button type="button" class="camera picture" data-camera=${name} aria-label=${`${name} camera`} @click=${() => choose(name)}><canvas></canvas><span class="over">${name}</span></button>`;
  draw(
    "#pictures",
    list(found.cameras, (name) => `${opened} ${name}`, camera),
  );
  const last = sessionStorage.getItem("camera");
  enlarge(found.cameras.includes(last) ? last : found.cameras[0]);
  watch();
}

function enlarge(name) {
  all(".camera").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.camera === name)));
}
function choose(name) {
  sessionStorage.setItem("camera", name);
  enlarge(name);
}
function nextCamera() {
  const now = all(".camera").findIndex((one) => one.getAttribute("aria-pressed") === "true");
  choose(found.cameras[(now + 1) % found.cameras.length]);
}
const watch = () =>
  link.send({ t: "watch", cameras: (found?.cameras ?? []).map((_, place) => `${person.session} ${place}`) });

function go(seconds) {
  at = Math.min(ends(), Math.max(found.begins_s, seconds));
  $("#scrub").value = String(at);
  setAttribute("#scrub", "aria-valuetext", clock(at));
  $("#time").textContent = `${clock(at)} of ${clock(ends())}`;
  $("#cursor")?.setAttribute("x", String(x(at)));
  const lines = all(".line");
  let now = -1;
  found.events.forEach((event, place) => {
    if (event.at_s <= at + 0.001) now = place;
    toggle(lines[place], "later", event.at_s > at);
  });
  lines.forEach((one, place) => setAttribute(one, "aria-current", String(place === now)));
  if (now >= 0) reveal($("#lines"), lines[now]);
  send();
}
function reveal(box, one) {
  const top = one.offsetTop - box.offsetTop,
    isSeen = top >= box.scrollTop && top + one.offsetHeight <= box.scrollTop + box.clientHeight;
  if (!isSeen) box.scrollTop = top - box.clientHeight / 2;
}
const send = () => link.send({ t: "seek", at_s: at });

function play(isOn) {
  if (playing) {
    clearInterval(playing);
    playing = null;
  }
  if (isOn) {
    let last = performance.now();
    if (at >= ends()) at = found.begins_s;
    playing = setInterval(() => {
      const now = performance.now();
      go(at + (now - last) / 1000);
      last = now;
      if (at >= ends()) play(false);
    }, 100);
  }
  $("#play").firstChild.textContent = playing ? "Pause " : "Play ";
}
keysSwitch($("#single-keys"));
ownKeys($("#chosen-keys"));
$("#play").addEventListener("click", () => play(!playing));
$("#scrub").addEventListener("input", () => go(Number($("#scrub").value)));
addEventListener(
  "keydown",
  (event) => {
    if (!found || isText(event.target)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isChoice = event.target instanceof HTMLInputElement && event.target.type === "radio",
      isScrub = event.target === $("#scrub");
    if (
      event.code === "Space" &&
      !isChoice &&
      !(event.target instanceof Element && event.target.matches("button, summary"))
    ) {
      event.preventDefault();
      play(!playing);
    } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && !isChoice) {
      event.preventDefault();
      go(at + (event.key === "ArrowRight" ? 1 : -1) * (event.shiftKey ? 10 : 1));
      return;
    }
    const key = hasKeys() ? keyOf(event) : "";
    if (key === "]") {
      const next = found.events.find((one) => one.at_s > at + 0.01);
      if (next) go(next.at_s);
    } else if (key === "[") {
      const last = found.events.filter((one) => one.at_s < at - 0.01).at(-1);
      if (last) go(last.at_s);
    } else if (key === "c" && found.cameras.length > 1) nextCamera();
    else if (isScrub && event.key === "Home") go(0);
  },
  true,
);

// --- the ratings

function drawScales() {
  const part = found.parts[agent],
    wanted = [
      ["Goal", part?.goal],
      ["Secret", part?.secret],
      ["Situation", part?.scenario],
    ].filter(([, text]) => text);
  $("#part").hidden = !part;
  draw(
    "#part div",
    wanted.map(([name, text]) => html`<p><b>${name}: </b>${text}</p>`),
  );
  draw(
    "#scales",
    list(person.scales, (one) => key(`${opened} ${agent}`, one.id), scale),
  );
  progress();
}

let typed = 0;
function scale({ id, text, low, high, step, low_label, high_label }) {
  const name = agent,
    now = ratings.get(key(name, id)) ?? { score: null, rationale: "" };
  const keep = ({ target }) => {
    clearTimeout(typed);
    const box = target.closest("fieldset"),
      chosen = box.querySelector("input:checked"),
      score = chosen ? Number(chosen.value) : null,
      rationale = box.querySelector("textarea").value.trim();
    box.dataset.done = String(score !== null && rationale !== "");
    ratings.set(key(name, id), { score, rationale });
    const undone = () => {
      box.dataset.done = "false";
    };
    link.send({ t: "rate", name, dimension: id, score, rationale }, { lost: undone, refused: undone });
    progress();
  };
  const soon = (event) => {
    const { target } = event;
    clearTimeout(typed);
    typed = setTimeout(() => keep({ target }), 400);
  };
  return html`<fieldset class="dimension" data-done=${String(now.score !== null && now.rationale !== "")}>
    <legend><b>${id} </b>${text}</legend>
    <div class="choices scale">${scaleValues({ low, high, step }).map((value) => radio(`scale-${id}`, value, now.score === value, keep, signed(value)))}</div>
    <div class="ends"><span>${low_label}</span><span>${high_label}</span></div>
    <textarea rows="1" maxlength="4000" placeholder="Why?" aria-label=${`${id}: why?`} .value=${now.rationale} @input=${soon} @change=${keep}></textarea>
  </fieldset>`;
}

function take(list) {
  const isBusy = $("#scales").contains(document.activeElement);
  for (const one of list)
    if (!isBusy || !ratings.has(key(one.name, one.dimension)))
      ratings.set(key(one.name, one.dimension), { score: one.score, rationale: one.rationale });
  if (!isBusy && found) drawScales();
  else progress();
}

function progress() {
  if (!found || !person.may_rate) return;
  const whole = found.agents.length * person.scales.length,
    done = [...ratings.values()].filter((one) => one.score !== null).length;
  const reasons = [...ratings.values()].filter((one) => one.score !== null && one.rationale).length;
  $("#progress").textContent = `${done} of ${whole} rated, ${reasons} with a reason`;
}

function agreement(found) {
  const heads = ["dimension", "people", "items", "kappa", "weighted kappa", "alpha", "ICC", "Pearson with the model"],
    two = (value) => (value === null ? "–" : value.toFixed(2)),
    model = (one) => (one.matched ? `${two(one.pearson)} on ${one.matched}` : "it gave none"),
    row = (one) =>
      html`<tr>${[one.dimension, one.raters, one.items, two(one.kappa), two(one.weighted_kappa), two(one.alpha), two(one.icc), model(one)].map((cell) => html`<td>${cell}</td>`)}</tr>`,
    box = $("#agreement");
  if (box.hidden) {
    box.hidden = false;
    box.open = !person.may_rate;
  }
  draw(
    "#agreement div",
    html`${found.length ? table(heads, found.map(row)) : html`<p class="soft">Nobody has rated anything yet.</p>`}<p class="soft small">Randolph's kappa of people on five classes; Cohen's weighted kappa (squares, the mean over pairs); Krippendorff's ordinal alpha of their scores; ICC(2,1) of what all of them rated; Pearson of their means with the judge's scores.</p>`,
  );
}
