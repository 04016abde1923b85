// What the experimenter sees: the plan, the step that is now, marks and notes, and all that was said and answered.
import { keyBox, KeyHolder, keyOf, keysSwitch, ownKeys } from "/static/keyboard.js";
import {
  $,
  button,
  draw,
  follow,
  html,
  list,
  make,
  nothing,
  once,
  onSubmit,
  setAttribute,
  setHidden,
  setText,
  table,
  toggle,
  twice,
  whenNew,
} from "/static/dom.js";
import { clock, handOut, notice, sendFrom } from "/static/page.js";

export function experimenter(link) {
  let view = null,
    elapsed_s = null;
  $("#stop").hidden = false;
  keysSwitch($("#single-keys"));
  ownKeys($("#chosen-keys"));

  onSubmit("#begin", () => {
    link.send({ t: "begin", number: Number($("#number").value) });
    $("#number").blur();
  });
  onSubmit("#note", () => {
    const text = $("#note-text").value.trim();
    if (text) sendFrom(link, $("#note-text"), { t: "note", text });
    $("#note-text").blur();
  });
  const mark = (label) =>
    sendFrom(link, $("#note-text"), { t: "mark", label, note: $("#note-text").value.trim() }, () =>
      notice(`marked: ${label}`),
    );

  function toggleTrial() {
    if (view?.kind !== "trial" || view.over) return;
    link.send(view.running ? { t: "end", how: "completed" } : { t: "start" });
  }
  function trialByKey() {
    if (view?.running && elapsed_s !== null && elapsed_s < JUST_S)
      notice("The trial has only just begun: press again to end it.");
    else toggleTrial();
  }
  const keys = new KeyHolder(notice);
  const sure = (text, act, className) => {
    const one = button(text, () => {}, className);
    return twice(one, (isAsked) => setText(one, isAsked ? `${text}: sure?` : text), act);
  };
  // Each control is the same element all the time: what it asks, its place and the focus stay while answers come in.
  const go = button("", toggleTrial, "main"),
    pause = button("Pause", () => link.send({ t: "pause", is_on: !view.paused })),
    abort = sure("Abort", () => link.send({ t: "end", how: "aborted" }), "bad"),
    skip = sure("Skip this step", () => link.send({ t: "skip" }), ""),
    withdraw = sure("Participant stops", () => link.send({ t: "withdraw" }), ""),
    markKey = keyBox("m");
  go.append(make("span"), keyBox("t"));

  const text = (words) => html`<p>${words}</p>`,
    soft = (words) => html`<p class="soft">${words}</p>`;
  function told() {
    if (!view.code)
      return html`<h2>No session yet</h2>${soft("Give the participant's number on the left. It decides the order of conditions; the same number goes on with a session that was not finished.")}`;
    if (view.withdrawn)
      return html`<h2>${view.code} has stopped</h2>${text("The session is over; what was collected so far is kept.")}`;
    if (view.over)
      return html`<h2>${view.code}: the session is over</h2>${text("Everything is in the session's files.")}`;
    const isAfter = view.steps[view.place - 1]?.kind === "trial";
    return html`<h2>${view.code}: ${view.steps[view.place].title}</h2>${step()}${isAfter ? soft("Between trials the robot's models may go on with what it was asked. Press STOP before anybody goes near it.") : nothing}`;
  }
  function step() {
    const { kind, missing, task, condition } = view;
    if (kind === "trial")
      return html`<p><b>Trial ${view.trial}, ${condition.title}. </b>${condition.notes}</p>${soft(task.text)}${task.notes ? html`<p><b>Task: </b>${task.notes}</p>` : nothing}<ul id="seats" class="soft small" aria-label="What the condition sets" hidden></ul><div id="clock" class="clock"></div>`;
    if (kind !== "questionnaire") return soft("The participant is reading.");
    if (missing) return soft(`The participant is answering; ${missing} to go.`);
    return soft("All answered; the participant has not gone on yet.");
  }
  function current() {
    draw("#current", told());
    const isOn = Boolean(view.code && !view.over),
      isTrial = isOn && view.kind === "trial",
      asked = [
        [isTrial, go],
        [isTrial && view.running, pause],
        [isTrial && view.running, abort],
        [isOn && view.kind !== "consent" && !view.running, skip],
        [isOn, withdraw],
      ];
    setText(go.firstChild, view.running ? "End trial" : view.attempt ? "Start again" : "Start trial");
    setText(pause, view.paused ? "Go on" : "Pause");
    draw(
      "#controls",
      asked.map(([isThere, control]) => (isThere ? control : nothing)),
    );
  }

  function inForce(found) {
    if (!$("#seats")) return;
    setHidden("#seats", !found.length);
    const state = (one) => (one.wanted === one.now ? "so" : view.running ? "not" : "next"),
      ends = { so: " ✓", next: " when the trial starts" },
      end = (one) => ends[state(one)] ?? ` — ${one.now || "nobody"} holds it`;
    draw(
      "#seats",
      list(
        found,
        (one) => one.seat,
        (one) => html`<li data-state=${state(one)}>Seat ${one.seat}: ${one.wanted}${end(one)}</li>`,
      ),
    );
  }

  function steps() {
    const state = (place) =>
      place < view.place || (view.over && place === view.place) ? "done" : place === view.place ? "now" : "next";
    const about = (one) => (one.about ? html`<small>${one.about}</small>` : nothing),
      line = (one, place) =>
        html`<li data-state=${state(place)} aria-current=${state(place) === "now" ? "step" : nothing}>${one.title}${about(one)}</li>`;
    draw("#steps", (view.steps ?? []).map(line));
    $("#steps [data-state=now]")?.scrollIntoView({ block: "nearest" });
  }

  function lines() {
    const box = $("#lines"),
      time = (line) => new Date(line.at_s * 1000).toTimeString().slice(0, 8),
      who = (line) => (line.kind === "said" ? line.who : line.kind),
      row = (line) => html`<p class=${line.kind}><time>${time(line)}</time><b>${who(line)}: </b>${line.text}</p>`;
    follow(box, () =>
      draw(
        box,
        list(view.lines ?? [], (line) => line.i, row),
      ),
    );
  }

  function answers() {
    const where = (one) => (one.trial ? `trial ${one.trial}` : one.step),
      row = (one) => html`<tr><td>${where(one)}</td><td>${one.item}</td><td>${one.value}</td></tr>`,
      rows = list(view.answers ?? [], (one) => `${one.step} ${one.trial} ${one.item}`, row);
    draw(
      "#answers",
      view.answers?.length ? table(["where", "item", "answer"], rows) : html`<p class="soft small">None yet.</p>`,
    );
  }

  function marks() {
    const press = (label, key) => html`<button type="button" @click=${once(() => mark(label))}>${label}${key}</button>`,
      own = list(
        view.marks,
        (one) => one.label,
        (one) => press(one.label, html`<kbd>${one.key}</kbd>`),
      );
    draw("#marks", html`${own}${press("mark", markKey)}`);
  }

  const JUST_S = 1; // a key that bounced, or was pressed twice, ends nothing
  const STARTS_S = 3; // the recorder says each second what it does
  const isStarting = (message) =>
    message.recorder.mode === "waiting" && message.elapsed_s !== null && message.elapsed_s < STARTS_S;
  function recorder(now, isSoon) {
    if (now.mode === "recording") return `recording to ${now.file}`;
    if (isSoon) return "recording begins";
    if (now.mode === "stopped") return `NOT RECORDING: ${now.why}`;
    return now.mode === "none" ? `NO RECORDER: ${now.why}` : view?.running ? "NOT RECORDING" : "recorder ready";
  }

  return {
    show(found) {
      view = found;
      whenNew("marks", view.marks, marks);
      whenNew("known", view.sessions, () => {
        $("#known").textContent = view.sessions.length
          ? `Took part: ${view.sessions.join(", ")}`
          : "Nobody has taken part yet.";
      });
      current();
      whenNew("steps", [view.code, view.place, view.over], steps);
      whenNew("lines", view.lines, lines);
      answers();
    },
    tick(message) {
      elapsed_s = message.elapsed_s;
      inForce(message.seats ?? []);
      const where = $("#where"),
        guard = message.guard;
      if (message.address) handOut("#address", message.address.url, message.address.code);
      const mode =
        view?.running && message.stopped && !view.paused
          ? "stopped"
          : view?.running && message.recorder.mode !== "recording" && !isStarting(message)
            ? "unrecorded"
            : view?.running
              ? "running"
              : "";
      setAttribute(where, "data-mode", mode);
      setAttribute(where, "title", message.recorder.why);
      const told = [
        view?.code || "no session",
        `participant's page: ${message.participants ? "open" : "not open"}`,
        recorder(message.recorder, isStarting(message)),
        guard ? `robot ${guard.mode}` : "",
        ...Object.entries(message.voice.deaf).map(([who, why]) => `the ${who} is deaf: ${why}`),
      ]
        .filter(Boolean)
        .join(" · ");
      setText(where, told);
      const time = $("#clock");
      if (time && message.elapsed_s !== null) {
        const limit = view.limit_s;
        setText(time, limit ? `${clock(message.elapsed_s)} of ${clock(limit)}` : clock(message.elapsed_s));
        toggle(time, "late", Boolean(limit) && message.elapsed_s > limit - 10);
      } else if (time) setText(time, view.limit_s ? `limit ${clock(view.limit_s)}` : "no limit");
    },
    cameras: () => ["head"],
    picture: () => $("#camera canvas"),
    key(event) {
      const key = keyOf(event),
        found = view?.marks.find((one) => one.key === key);
      if (found) keys.hold(event, () => mark(found.label), `mark “${found.label}”`);
      else if (key === "m")
        mark("mark"); // at once, for its time; it changes nothing
      else if (key === "n") {
        event.preventDefault();
        $("#note-text").focus();
      } else if (key === "t") {
        event.preventDefault();
        keys.hold(event, trialByKey, view?.running ? "end the trial" : "start the trial");
      }
    },
  };
}
