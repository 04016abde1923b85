// One participant of an episode: what they may know, whose turn it is, and what they do. All text goes in as text.
import { Link } from "/static/link.js";
import { $, all, cameIn, cover, LOST, make, notice, sendFrom, whenNew } from "/static/page.js";

const KINDS = { speak: "Say", "non-verbal communication": "Gesture", action: "Do", none: "Nothing", leave: "Leave" };
const HINTS = {
  speak: "Say something",
  "non-verbal communication": "What your face, hands or body show",
  action: "What you do",
  none: "",
  leave: "A last gesture, if you like",
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
  $("#people").replaceChildren(
    ...state.people.map((person) => {
      const list = make("dl");
      for (const [name, value] of person.lines)
        list.append(make("dt", "", name), make("dd", name === "secret" ? "secret" : "", value));
      return make(
        "div",
        "card",
        make("h2", "", person.is_self ? "About you" : person.name),
        person.lines.length ? list : make("p", "soft small", "You know nothing about them."),
      );
    }),
  );
}

function drawTurns(turns) {
  const box = $("#story-box"),
    isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  $("#story").replaceChildren(
    ...turns.map((turn) => {
      const mine = turn.speaker === state.name,
        who = mine ? "You" : turn.speaker;
      if (turn.kind === "none") return make("li", "aside", `${who} did nothing${turn.note ? ` (${turn.note})` : ""}`);
      if (turn.kind === "leave") return make("li", "aside", `${who} left${turn.argument ? `: ${turn.argument}` : ""}`);
      const line = make("li", mine ? "mine" : ""),
        head = make("span", "who", make("b", "", who));
      if (turn.kind !== "speak") head.append(make("span", "tag", KINDS[turn.kind] === "Do" ? "action" : "gesture"));
      if (turn.to.length) {
        line.classList.add("private");
        head.append(
          make("span", "tag", `only to ${turn.to.map((name) => (name === state.name ? "you" : name)).join(", ")}`),
        );
      }
      if (turn.note) head.append(make("span", "tag", turn.note));
      line.append(head, turn.argument);
      return line;
    }),
  );
  if (isAtEnd || state.ask) box.scrollTop = box.scrollHeight;
  if (isPhone && turns.some((turn) => turn.speaker === state.name)) fold();
}
const isPhone = matchMedia("(max-width: 900px)").matches;
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
  end.replaceChildren(
    make("h2", "", "The end"),
    make("p", "", `${state.outcome.reason}; ${state.outcome.turns} acts.`),
  );
  const scores = state.scores;
  if (!scores) {
    end.append(make("p", "soft", "The scores are on their way…"));
    return;
  }
  if (scores.problem) {
    end.append(make("p", "soft", `The evaluation failed: ${scores.problem}`));
    return;
  }
  const table = make("table"),
    head = make("tr", "", make("th", "", `judge: ${scores.judge}`));
  for (const name of scores.dimensions) {
    const cell = make("th", "", make("abbr", "", name));
    cell.scope = "col";
    cell.firstChild.title = DIMENSIONS[name] ?? name;
    head.append(cell);
  }
  table.append(make("thead", "", head));
  const body = make("tbody");
  for (const row of scores.rows) {
    const name = make("th", "", row.name === state.name ? `${row.name} (you)` : row.name);
    name.scope = "row";
    body.append(
      make("tr", "", name, ...row.values.map((value) => make("td", "", value === null ? "–" : String(value)))),
    );
  }
  table.append(body);
  const why = make("details", "", make("summary", "", "Why"));
  for (const one of scores.reasons)
    why.append(make("p", "", make("b", "", `${one.name}, ${one.dimension}: `), one.text));
  const box = make("div", "scroll", table);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Scores");
  end.append(box, why);
  $("#story-box").scrollTop = $("#story-box").scrollHeight;
}

// --- what a person does

const kind = () => $("#kinds input:checked").value;
for (const [value, label] of Object.entries(KINDS)) {
  const input = make("input");
  Object.assign(input, { type: "radio", name: "kind", value, checked: value === "speak" });
  $("#kinds").append(make("label", "", input, make("span", "", label)));
  input.addEventListener("change", choose);
}
function choose() {
  isSure = false;
  if (kind() === "none" && document.activeElement === $("#words")) $("#send").focus(); // Enter passes
  $("#words").disabled = kind() === "none";
  $("#words").placeholder = HINTS[kind()];
  $("#to-label").hidden = SILENT.includes(kind());
  $("#send").textContent = {
    speak: "Say",
    "non-verbal communication": "Show",
    action: "Do it",
    none: "Pass",
    leave: "Leave",
  }[kind()];
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
$("#say").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
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
