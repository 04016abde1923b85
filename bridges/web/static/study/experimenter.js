// What the experimenter sees: the plan, the step that is now, marks and notes, and all that was said and answered.
import { keyBox, KeyHolder, keyOf, keysSwitch, ownKeys } from "/static/keyboard.js";
import { $, button, clock, make, notice, once, sendFrom, twice, whenNew } from "/static/page.js";

export function experimenter(link) {
  let view = null,
    seen = null,
    elapsed_s = null;
  $("#stop").hidden = false;
  keysSwitch($("#single-keys"));
  ownKeys($("#chosen-keys"));

  $("#begin").addEventListener("submit", (event) => {
    event.preventDefault();
    link.send({ t: "begin", number: Number($("#number").value) });
    $("#number").blur();
  });
  $("#note").addEventListener("submit", (event) => {
    event.preventDefault();
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
    const one = make("button", className, text);
    one.type = "button";
    return twice(
      one,
      (isAsked) => {
        one.textContent = isAsked ? `${text}: sure?` : text;
      },
      act,
    );
  };

  function current() {
    const box = $("#current"),
      parts = [];
    if (!view.code)
      parts.push(
        make("h2", "", "No session yet"),
        make(
          "p",
          "soft",
          "Give the participant's number on the left. It decides the order of conditions; the same number goes on with a session that was not finished.",
        ),
      );
    else if (view.withdrawn)
      parts.push(
        make("h2", "", `${view.code} has stopped`),
        make("p", "", "The session is over; what was collected so far is kept."),
      );
    else if (view.over)
      parts.push(
        make("h2", "", `${view.code}: the session is over`),
        make("p", "", "Everything is in the session's files."),
      );
    else {
      parts.push(make("h2", "", `${view.code}: ${view.steps[view.place].title}`));
      if (view.kind === "trial") {
        const time = make("div", "clock", "–");
        time.id = "clock";
        parts.push(
          make("p", "", make("b", "", `Trial ${view.trial}, ${view.condition.title}. `), view.condition.notes),
          make("p", "soft", view.task.text),
          view.task.notes ? make("p", "", make("b", "", "Task: "), view.task.notes) : null,
          seats(),
          time,
        );
      } else if (view.kind === "questionnaire")
        parts.push(
          make(
            "p",
            "soft",
            view.missing
              ? `The participant is answering; ${view.missing} to go.`
              : "All answered; the participant has not gone on yet.",
          ),
        );
      else parts.push(make("p", "soft", "The participant is reading."));
      if (view.steps[view.place - 1]?.kind === "trial")
        parts.push(
          make(
            "p",
            "soft",
            "Between trials the robot's models may go on with what it was asked. Press STOP before anybody goes near it.",
          ),
        );
    }
    box.replaceChildren(...parts.filter(Boolean));
    const controls = [];
    if (view.code && !view.over) {
      if (view.kind === "trial") {
        const go = button(
          view.running ? "End trial" : view.attempt ? "Start again" : "Start trial",
          once(toggleTrial),
          "main",
        );
        go.append(keyBox("t"));
        controls.push(go);
        if (view.running)
          controls.push(button(view.paused ? "Go on" : "Pause", () => link.send({ t: "pause", is_on: !view.paused })));
        if (view.running) controls.push(sure("Abort", () => link.send({ t: "end", how: "aborted" }), "bad"));
      }
      if (view.kind !== "consent" && !view.running)
        controls.push(sure("Skip this step", () => link.send({ t: "skip" }), ""));
      controls.push(sure("Participant stops", () => link.send({ t: "withdraw" }), ""));
    }
    $("#controls").replaceChildren(...controls);
  }

  function seats() {
    const box = make("ul", "seats small");
    box.id = "seats";
    box.setAttribute("aria-label", "What the condition sets");
    return box;
  }
  function inForce(list) {
    const box = $("#seats");
    if (!box) return;
    box.hidden = !list.length;
    box.replaceChildren(
      ...list.map((one) => {
        const isSo = one.wanted === one.now,
          line = make(
            "li",
            "",
            `Seat ${one.seat}: ${one.wanted}`,
            isSo ? " ✓" : view.running ? ` — ${one.now || "nobody"} holds it` : " when the trial starts",
          );
        line.dataset.state = isSo ? "so" : view.running ? "not" : "next";
        return line;
      }),
    );
  }

  function steps() {
    $("#steps").replaceChildren(
      ...(view.steps ?? []).map((step, place) => {
        const line = make("li", "", step.title, step.about ? make("small", "", step.about) : null);
        line.dataset.state =
          place < view.place || (view.over && place === view.place) ? "done" : place === view.place ? "now" : "next";
        if (line.dataset.state === "now") line.setAttribute("aria-current", "step");
        return line;
      }),
    );
    $("#steps [data-state=now]")?.scrollIntoView({ block: "nearest" });
  }

  function lines() {
    const box = $("#lines"),
      isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 50;
    box.replaceChildren(
      ...(view.lines ?? []).map((line) =>
        make(
          "p",
          line.kind,
          make("time", "", new Date(line.at_s * 1000).toTimeString().slice(0, 8)),
          make("b", "", line.kind === "said" ? `${line.who}: ` : `${line.kind}: `),
          line.text,
        ),
      ),
    );
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  function answers() {
    const rows = (view.answers ?? []).map((one) =>
      make(
        "tr",
        "",
        make("td", "", one.trial ? `trial ${one.trial}` : one.step),
        make("td", "", one.item),
        make("td", "", String(one.value)),
      ),
    );
    const cell = (text) => {
      const one = make("th", "", text);
      one.scope = "col";
      return one;
    };
    $("#answers").replaceChildren(
      rows.length
        ? make(
            "table",
            "small",
            make("thead", "", make("tr", "", cell("where"), cell("item"), cell("answer"))),
            make("tbody", "", ...rows),
          )
        : make("p", "soft small", "None yet."),
    );
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
      whenNew("marks", view.marks, () =>
        $("#marks").replaceChildren(
          ...view.marks.map((one) => {
            const press = button(one.label, () => mark(one.label));
            press.append(make("kbd", "", one.key));
            return press;
          }),
          (() => {
            const press = button("mark", () => mark("mark"));
            press.append(keyBox("m"));
            return press;
          })(),
        ),
      );
      whenNew("known", view.sessions, () => {
        $("#known").textContent = view.sessions.length
          ? `Took part: ${view.sessions.join(", ")}`
          : "Nobody has taken part yet.";
      });
      whenNew(
        "current",
        [view.code, view.place, view.running, view.paused, view.attempt, view.over, view.missing],
        current,
      );
      whenNew("steps", [view.code, view.place, view.over], steps);
      whenNew("lines", view.lines, lines);
      whenNew("answers", view.answers, answers);
    },
    tick(message) {
      elapsed_s = message.elapsed_s;
      whenNew("seats", [view?.code, view?.place, view?.attempt, view?.running, message.seats], () =>
        inForce(message.seats ?? []),
      );
      const where = $("#where"),
        guard = message.guard;
      whenNew("address", message.participant, () => {
        $("#address").textContent = message.participant
          ? `${location.origin}${location.pathname}#${message.participant}`
          : "";
      });
      where.dataset.mode =
        view?.running && message.stopped && !view.paused
          ? "stopped"
          : view?.running && message.recorder.mode !== "recording" && !isStarting(message)
            ? "unrecorded"
            : view?.running
              ? "running"
              : "";
      where.title = message.recorder.why;
      where.textContent = [
        view?.code || "no session",
        `participant's page: ${message.participants ? "open" : "not open"}`,
        recorder(message.recorder, isStarting(message)),
        guard ? `robot ${guard.mode}` : "",
        ...Object.entries(message.voice.deaf).map(([who, why]) => `the ${who} is deaf: ${why}`),
      ]
        .filter(Boolean)
        .join(" · ");
      const time = $("#clock");
      if (time && message.elapsed_s !== null) {
        const limit = view.limit_s;
        time.textContent = limit ? `${clock(message.elapsed_s)} of ${clock(limit)}` : clock(message.elapsed_s);
        time.classList.toggle("late", Boolean(limit) && message.elapsed_s > limit - 10);
      } else if (time) time.textContent = view.limit_s ? `limit ${clock(view.limit_s)}` : "no limit";
    },
    cameras: () => ["head"],
    frame(header, bitmap) {
      const canvas = $("#camera canvas");
      canvas.hidden = false;
      if (canvas.width !== header.width * 2) {
        canvas.width = header.width * 2;
        canvas.height = header.height * 2;
      }
      canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      seen?.close();
      seen = bitmap;
    },
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
