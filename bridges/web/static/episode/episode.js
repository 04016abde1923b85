// One participant of an episode: what they may know, whose turn it is, and what they do. All text goes in as text.
import { Link } from "/static/link.js";
import { $, all, draw, follow, html, nothing, onSubmit, radio, table, whenNew } from "/static/dom.js";
import { cameIn, cover, LOST, notice, sendFrom } from "/static/page.js";

const KINDS = {
  speak: { words: "Say", hint: "Say something", act: "Say" },
  "non-verbal communication": { words: "Gesture", hint: "What your face, hands or body show", act: "Show" },
  action: { words: "Do", hint: "What you do", act: "Do it" },
  none: { words: "Nothing", hint: "", act: "Pass" },
  leave: { words: "Leave", hint: "A last gesture, if you like", act: "Leave" },
};
const DIMENSIONS = {
  BEL: "believability, 0 to 10",
  REL: "relationship, -5 to 5",
  KNO: "knowledge, 0 to 10",
  SEC: "secret, -10 to 0",
  SOC: "social rules, -10 to 0",
  FIN: "financial and material benefits, -5 to 5",
  GOAL: "goal, 0 to 10",
};
const SILENT = ["none", "leave"];
let state = null,
  isSure = false;

/** @type {Link<import("/static/wire").FromEpisode>} */
const link = new Link({
  welcome: cameIn,
  state: (message) => {
    if (message.notices.length) notice(message.notices.at(-1));
    if (message.episode) show(message.episode);
  },
  frame: () => {},
  lost: () => notice(LOST),
  cover: (text) => cover(text && state?.outcome ? "" : text), // the end stays on screen when the run is over
});

function show(episode) {
  state = episode;
  $("#turn").dataset.mode = episode.outcome ? "over" : episode.ask ? "yours" : "running";
  $("#turn").textContent = episode.outcome
    ? `The episode is over: ${episode.outcome.reason}`
    : episode.ask
      ? episode.is_last
        ? "Your turn, and your last one."
        : "Your turn."
      : episode.name
        ? episode.waiting
        : "Waiting for the episode to begin.";
  document.title = episode.ask ? "Your turn - Polyrhythm episode" : "Polyrhythm episode";
  $("#count").textContent = episode.turns.length ? `turn ${episode.turns.at(-1).number}` : "";
  whenNew("part", [episode.name, episode.scenario, episode.goal, episode.people], drawPart);
  whenNew("turns", episode.turns, drawTurns);
  whenNew("ask", [episode.ask, episode.problem, episode.others], drawAsk);
  whenNew("end", [episode.outcome, episode.scores], drawEnd);
}

function drawPart() {
  $("#you").textContent = state.name ? `You are ${state.name}` : "Your part";
  $("#scenario").textContent = state.scenario;
  $("#goal").textContent = state.goal;
  const line = ([name, value]) => html`<dt>${name}</dt><dd class=${name === "secret" ? "secret" : ""}>${value}</dd>`,
    nothingKnown = html`<p class="soft small">You know nothing about them.</p>`,
    known = ({ lines }) => (lines.length ? html`<dl>${lines.map(line)}</dl>` : nothingKnown),
    card = (one) => html`<div class="card"><h2>${one.is_self ? "About you" : one.name}</h2>${known(one)}</div>`;
  draw("#people", state.people.map(card));
}

const tag = (words) => (words ? html`<span class="tag">${words}</span>` : nothing);
function turnOf(turn) {
  const isMine = turn.speaker === state.name,
    who = isMine ? "You" : turn.speaker,
    aside = (words) => html`<li class="aside">${who} ${words}</li>`;
  if (turn.kind === "none") return aside(`did nothing${turn.note ? ` (${turn.note})` : ""}`);
  if (turn.kind === "leave") return aside(`left${turn.argument ? `: ${turn.argument}` : ""}`);
  const kind = turn.kind === "speak" ? "" : turn.kind === "action" ? "action" : "gesture",
    to = turn.to.map((name) => (name === state.name ? "you" : name)).join(", "),
    looks = [isMine && "mine", to && "private"].filter(Boolean).join(" ");
  return html`<li class=${looks}><span class="who"><b>${who}</b>${tag(kind)}${tag(to && `only to ${to}`)}${tag(turn.note)}</span>${turn.argument}</li>`;
}

function drawTurns(turns) {
  const box = $("#story-box");
  follow(box, () => draw("#story", turns.map(turnOf)));
  if (state.ask) box.scrollTop = box.scrollHeight;
  if (isPhone && turns.some((turn) => turn.speaker === state.name)) fold();
}
const isPhone = matchMedia("(max-width: 1000px)").matches;
let isFolded = false;
function fold() {
  if (!isFolded) $("#part").open = false;
  isFolded = true;
} // once: they may open it again

function drawAsk() {
  const isOn = Boolean(state.ask);
  $("#say").dataset.on = String(isOn);
  $("#send").disabled = !isOn;
  $("#problem").hidden = !state.problem;
  $("#problem").textContent = state.problem ? `That does not work: ${state.problem}` : "";
  const chosen = $("#to").value;
  $("#to").replaceChildren(new Option("everyone", ""), ...state.others.map((name) => new Option(`${name} only`, name)));
  $("#to").value = state.others.includes(chosen) ? chosen : "";
  for (const input of all("#kinds input")) {
    input.disabled = isOn && !state.available.includes(input.value);
  }
  if (isOn && document.activeElement === document.body) $("#words").focus();
}

function drawEnd() {
  const end = $("#end");
  end.hidden = !state.outcome;
  $("#say").hidden = Boolean(state.outcome);
  if (!state.outcome) return;
  notice("");
  draw(
    end,
    html`<h2>The end</h2><p>${state.outcome.reason}; ${state.outcome.turns} acts.</p>${evaluation(state.scores)}`,
  );
  $("#story-box").scrollTop = $("#story-box").scrollHeight;
}

function evaluation(scores) {
  const soft = (words) => html`<p class="soft">${words}</p>`;
  if (!scores) return soft("The scores are on their way…");
  if (scores.problem) return soft(`The evaluation failed: ${scores.problem}`);
  const dimension = (name) => html`<abbr title=${DIMENSIONS[name] ?? name}>${name}</abbr>`,
    cell = (value) => html`<td>${value ?? "–"}</td>`,
    row = ({ name, values }) =>
      html`<tr><th scope="row">${name}${name === state.name ? " (you)" : ""}</th>${values.map(cell)}</tr>`,
    heads = [`judge: ${scores.judge}`, ...scores.dimensions.map(dimension)],
    reason = (one) => html`<p><b>${one.name}, ${one.dimension}: </b>${one.text}</p>`;
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Scores">${table(heads, scores.rows.map(row))}</div>
    <details><summary>Why</summary>${scores.reasons.map(reason)}</details>`;
}

// --- what a person does

const kind = () => $("#kinds input:checked").value;
const kinds = Object.entries(KINDS).map(([value, { words }]) => radio("kind", value, value === "speak", choose, words));
draw("#kinds", html`<legend class="hidden">What you do</legend>${kinds}`);
function choose() {
  isSure = false;
  if (kind() === "none" && document.activeElement === $("#words")) $("#send").focus(); // Enter passes
  $("#words").disabled = kind() === "none";
  $("#words").placeholder = KINDS[kind()].hint;
  $("#to-label").hidden = SILENT.includes(kind());
  $("#send").textContent = KINDS[kind()].act;
}

function send() {
  if (!state?.ask) {
    notice("It is not your turn yet; your words are kept.");
    return;
  }
  const words = $("#words").value.trim(),
    silent = SILENT.includes(kind());
  if (!words && !silent) {
    notice("Write something first, or choose Nothing.");
    $("#words").focus();
    return;
  }
  if (kind() === "leave" && !isSure) {
    isSure = true;
    $("#send").textContent = "Really leave";
    notice("Leaving ends your part. Press again to leave.");
    return;
  }
  const asked = state;
  sendFrom(
    link,
    $("#words"),
    {
      t: "act",
      ask: state.ask,
      kind: kind(),
      text: kind() === "none" ? "" : words,
      to: !silent && $("#to").value ? [$("#to").value] : [],
    },
    () => {},
    () => {
      if (state.waiting === "Sent.") show(asked);
      keep();
    },
  );
  if (link.isOpen) show({ ...state, ask: 0, problem: "", waiting: "Sent." }); // one answer to one question, whatever the link's delay
  keep();
  $("#to").value = "";
  $("#kinds input[value=speak]").checked = true;
  choose();
  $("#words").focus();
}
const keep = () => sessionStorage.setItem("words", $("#words").value);
onSubmit("#say", send);
$("#words").addEventListener("input", keep);
$("#words").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
addEventListener("keydown", (event) => {
  const input =
    event.altKey && /^Digit[1-5]$/.test(event.code) ? all("#kinds input")[Number(event.code.at(-1)) - 1] : null;
  if (input && !input.disabled) {
    event.preventDefault();
    input.checked = true;
    choose();
    if (input.value !== "none") $("#words").focus();
  }
});
$("#words").value = sessionStorage.getItem("words") ?? "";
choose();
