// Rating a recording: scrub through it, score each agent in each dimension, say why. All text goes in as text.
import { Link } from "/static/link.js";
import { hasKeys, keyOf, keysSwitch, ownKeys } from "/static/keyboard.js";
import { $, all, cameIn, clock, cover, forget, isText, LOST, make, notice, whenNew } from "/static/page.js";

const SPEECH = new Set(["heard", "said", "speak", "non-verbal communication", "action", "none", "leave"]);
const COLOURS = {
  mark: "#7be495",
  note: "#7be495",
  interrupt: "#ff8a80",
  guard: "#ff8a80",
  plan: "#aebace",
  action: "#aebace",
  feedback: "#aebace",
  seat: "#ffc857",
  end: "#eaeff6",
};
const PEOPLE = ["#6cd0ff", "#ffc857", "#d7a6ff", "#ffb38a"];
let person = null,
  found = null,
  name = "",
  isAgain = false,
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
    if (message.recordings) whenNew("list", message.recordings, list);
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
    if (canvas && (canvas.width !== bitmap.width || canvas.height !== bitmap.height)) {
      canvas.width = bitmap.width;
      canvas.height = bitmap.height;
    }
    canvas?.getContext("2d").drawImage(bitmap, 0, 0);
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

function list(all) {
  const day = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  $("#recordings").replaceChildren(
    ...(all.length
      ? all.map((one) => {
          const choose = make(
            "button",
            "recording",
            make("b", "", one.name),
            make("span", "soft small", `${day(one.at_s)} · ${one.raters ? `rated by ${one.raters}` : "not rated"}`),
          );
          choose.type = "button";
          choose.addEventListener("click", () => open(one.name));
          return choose;
        })
      : [
          make(
            "p",
            "soft",
            "No finished recording yet. A trial is here a few seconds after its end. A run's own recording is there when the run is over: here in the next run, or at once with",
          ),
          make("code", "", "polyrhythm annotate RUN.mcap"),
        ]),
  );
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
  ratings.clear();
  forget("ratings");
  $("#list").hidden = true;
  $("#watch").hidden = false;
  $("#back").hidden = !person.has_list;
  document.body.dataset.at = "recording";
  for (const one of ["#agents", "#scales"]) $(one).hidden = !person.may_rate;
  for (const one of ["#timeline", "#lines", "#agents"]) $(one).replaceChildren();
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
  const line = $("#timeline"),
    tag = (name, values) => {
      const one = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(values)) one.setAttribute(key, value);
      return one;
    };
  line.setAttribute("viewBox", "0 0 1000 40");
  for (const event of found.events) {
    const person = found.agents.indexOf(event.who),
      isOfPerson = isSpeech(event);
    line.append(
      tag("rect", {
        x: x(event.at_s) - 1.5,
        y: isOfPerson ? 3 : 24,
        width: isOfPerson ? 6 : 3,
        height: isOfPerson ? 18 : 13,
        rx: 1,
        fill: isOfPerson ? PEOPLE[person % PEOPLE.length] : (COLOURS[event.kind] ?? "#aebace"),
      }),
    );
  }
  line.append(tag("rect", { id: "cursor", x: 0, y: 0, width: 2, height: 40, fill: "#fff" }));
  line.onclick = (event) => {
    const box = line.getBoundingClientRect();
    go(found.begins_s + (found.duration_s * (event.clientX - box.left)) / box.width);
  };
  $("#lines").append(
    ...found.events.map((event, place) => {
      const one = make(
        "button",
        `line ${event.kind.split(" ")[0]}`,
        make("time", "", clock(event.at_s)),
        make("b", "", event.who || event.kind),
        `${event.to?.length ? ` (only to ${event.to.join(", ")})` : ""}: `,
        event.kind === "non-verbal communication" || (event.kind === "action" && found.agents.includes(event.who))
          ? `[${event.text}]`
          : event.text,
      );
      one.type = "button";
      one.tabIndex = -1;
      one.dataset.speech = String(isSpeech(event));
      if (isSpeech(event)) one.style.borderColor = PEOPLE[found.agents.indexOf(event.who) % PEOPLE.length];
      one.addEventListener("click", () => go(found.events[place].at_s));
      return one;
    }),
  );
  $("#agents").append(
    ...found.agents.map((name) => {
      const input = make("input");
      Object.assign(input, { type: "radio", name: "agent", value: name, checked: name === agent });
      input.addEventListener("change", () => {
        agent = name;
        drawScales();
      });
      return make("label", "", input, make("span", "", name));
    }),
  );
  if (person.may_rate) drawScales();
}

// --- the cameras: one large, the others small beside it; the one that was chosen stays so in the next recording

function cameras() {
  $("#pictures").hidden = !found.cameras.length;
  $("#camera-key").hidden = found.cameras.length < 2;
  $("#pictures").replaceChildren(
    ...found.cameras.map((name) => {
      const one = make("button", "camera", make("canvas"), make("span", "", name));
      one.type = "button";
      one.dataset.camera = name;
      one.ariaLabel = `${name} camera`;
      one.addEventListener("click", () => choose(name));
      return one;
    }),
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
  $("#scrub").setAttribute("aria-valuetext", clock(at));
  $("#time").textContent = `${clock(at)} of ${clock(ends())}`;
  $("#cursor")?.setAttribute("x", String(x(at)));
  const lines = all(".line");
  let now = -1;
  found.events.forEach((event, place) => {
    if (event.at_s <= at + 0.001) now = place;
    lines[place].classList.toggle("later", event.at_s > at);
  });
  lines.forEach((one, place) => one.setAttribute("aria-current", String(place === now)));
  if (now >= 0) {
    const box = $("#lines"),
      one = lines[now];
    if (
      one.offsetTop < box.offsetTop + box.scrollTop ||
      one.offsetTop + one.offsetHeight > box.offsetTop + box.scrollTop + box.clientHeight
    )
      box.scrollTop = one.offsetTop - box.offsetTop - box.clientHeight / 2;
  }
  send();
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
    if (!found) return;
    if (isText(event.target)) {
      if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
      return;
    }
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
  const part = found.parts[agent];
  $("#part").hidden = !part;
  if (part)
    $("#part div").replaceChildren(
      ...[
        ["Goal", part.goal],
        ["Secret", part.secret],
        ["Situation", part.scenario],
      ]
        .filter(([, text]) => text)
        .map(([name, text]) => make("p", "", make("b", "", `${name}: `), text)),
    );
  $("#scales").replaceChildren(
    ...person.scales.map((scale) => {
      const now = ratings.get(key(agent, scale.id)) ?? { score: null, rationale: "" },
        name = agent;
      const values = Array.from(
        { length: (scale.high - scale.low) / scale.step + 1 },
        (_, place) => scale.low + place * scale.step,
      );
      const why = make("textarea");
      Object.assign(why, { rows: 1, maxLength: 4000, value: now.rationale, placeholder: "Why?" });
      why.setAttribute("aria-label", `${scale.id}: why?`);
      const keep = () => {
        const chosen = box.querySelector("input:checked");
        const score = chosen ? Number(chosen.value) : null,
          rationale = why.value.trim();
        box.dataset.done = String(score !== null && rationale !== "");
        ratings.set(key(name, scale.id), { score, rationale });
        const undone = () => {
          box.dataset.done = "false";
        };
        link.send({ t: "rate", name, dimension: scale.id, score, rationale }, { lost: undone, refused: undone });
        progress();
      };
      const choices = make(
        "div",
        "choices",
        ...values.map((value) => {
          const input = make("input");
          Object.assign(input, { type: "radio", name: `scale-${scale.id}`, value, checked: now.score === value });
          input.addEventListener("change", keep);
          return make("label", "", input, make("span", "", String(value).replace("-", "−")));
        }),
      );
      let timer = 0;
      why.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(keep, 400);
      });
      why.addEventListener("change", () => {
        clearTimeout(timer);
        keep();
      });
      const box = make(
        "fieldset",
        "dimension",
        make("legend", "", make("b", "", `${scale.id} `), scale.text),
        choices,
        make("div", "ends", make("span", "", scale.low_label), make("span", "", scale.high_label)),
        why,
      );
      box.dataset.done = String(now.score !== null && now.rationale !== "");
      return box;
    }),
  );
  progress();
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

function agreement(list) {
  const heads = ["dimension", "people", "items", "kappa", "weighted kappa", "alpha", "ICC", "Pearson with the model"],
    two = (value) => (value === null ? "–" : value.toFixed(2));
  const table = make(
    "table",
    "",
    make(
      "thead",
      "",
      make(
        "tr",
        "",
        ...heads.map((name) => {
          const one = make("th", "", name);
          one.scope = "col";
          return one;
        }),
      ),
    ),
    make(
      "tbody",
      "",
      ...list.map((one) =>
        make(
          "tr",
          "",
          make("td", "", one.dimension),
          make("td", "", String(one.raters)),
          make("td", "", String(one.items)),
          make("td", "", two(one.kappa)),
          make("td", "", two(one.weighted_kappa)),
          make("td", "", two(one.alpha)),
          make("td", "", two(one.icc)),
          make("td", "", one.matched ? `${two(one.pearson)} on ${one.matched}` : "it gave none"),
        ),
      ),
    ),
  );
  const box = $("#agreement");
  if (box.hidden) {
    box.hidden = false;
    box.open = !person.may_rate;
  }
  $("#agreement div").replaceChildren(
    list.length ? table : make("p", "soft", "Nobody has rated anything yet."),
    make(
      "p",
      "soft small",
      "Randolph's kappa of people on five classes; Cohen's weighted kappa (squares, the mean over pairs); Krippendorff's ordinal alpha of their scores; ICC(2,1) of what all of them rated; Pearson of their means with the judge's scores.",
    ),
  );
}
