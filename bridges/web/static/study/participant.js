// What a participant sees: one step at a time. Every answer is sent as soon as it is given.
import { keysSwitch, shown } from "/static/keyboard.js";
import { $, button, draw, html, list, make, notice, once, sendFrom, twice, whenNew } from "/static/page.js";
import { fill, talkWords, words } from "/static/study/strings.js";
import { PushToTalk } from "/static/speech/push_to_talk.js";
import { unsaid } from "/static/study/unsaid.js";

export function participant(link) {
  const main = $("#participant");
  const talking = new PushToTalk(link, () => false, talkWords);
  let view = null;
  const COARSE = 11; // a scale with more steps is a row of ticks, on any screen
  const keys = button(fill(words.single_key, { key: shown("v") }), () => {});
  keys.setAttribute("role", "switch");
  keysSwitch(keys);
  talking.box.append(keys);
  $("#withdraw").textContent = words.withdraw;
  $("#participant").ariaLabel = words.study;
  $("#stop").replaceChildren(`${words.stop} `, make("kbd", "", words.space));

  const bar = () => {
    const inside = make("div");
    inside.style.width = `${Math.round((100 * view.place) / Math.max(1, view.count - 1))}%`;
    const box = make("div", "", inside);
    box.id = "bar";
    box.setAttribute("role", "progressbar");
    box.setAttribute("aria-label", words.progress);
    box.setAttribute("aria-valuenow", String(view.place));
    box.setAttribute("aria-valuemax", String(view.count - 1));
    return box;
  };
  const next = (text, act) => make("div", "next", button(text, once(act), "main"));

  function consent(step) {
    const ticks = step.statements.map((statement, place) => {
      const box = make("input");
      box.type = "checkbox";
      box.id = `tick-${place}`;
      return make("label", "tick", box, make("span", "", statement));
    });
    const agree = () => {
      const count = main.querySelectorAll(".tick input:checked").length;
      if (count < ticks.length) {
        notice(fill(words.tick, words));
        return;
      }
      link.send({ t: "agree", ticked: count });
    };
    return [
      make("h2", "", words.consent),
      make("section", "", make("p", "text", step.text), ...ticks),
      next(words.agree, agree),
    ];
  }

  function questionnaire(step) {
    const items = step.items.map((item) => boxOf(step, item));
    const submit = () => {
      const missing = step.items.filter(
        (item) =>
          item.required && !answered(item) && !main.querySelector(`[data-item="${CSS.escape(item.id)}"]`).hidden,
      );
      for (const item of step.items)
        main.querySelector(`[data-item="${CSS.escape(item.id)}"]`).dataset.missing = String(missing.includes(item));
      if (missing.length) {
        notice(words.missing);
        const first = main.querySelector("[data-missing=true]");
        first.scrollIntoView({ block: "center" });
        first.querySelector("input, textarea")?.focus();
        return;
      }
      flush();
      if (view.step?.ident === step.ident)
        for (const [item, value] of unsaid(step.items, given, view.step.answers))
          link.send({ t: "answer", step: step.ident, item, value });
      link.send({ t: "submit", step: step.ident, width_px: innerWidth });
    };
    const parts = [make("h2", "", step.title)];
    if (step.intro) parts.push(make("p", "soft", step.intro));
    parts.push(make("section", "", ...items), next(words.next, submit));
    if (step.source) parts.push(make("p", "soft small", step.source));
    return parts;
  }

  const answered = (item) => {
    const box = main.querySelector(`[data-item="${CSS.escape(item.id)}"]`);
    return item.kind === "scale" || item.kind === "choice"
      ? Boolean(box.querySelector("input:checked"))
      : box.querySelector("input, textarea").value.trim() !== "";
  };
  const given = (item) => {
    const isChosen = item.kind === "scale" || item.kind === "choice",
      input = main
        .querySelector(`[data-item="${CSS.escape(item.id)}"]`)
        .querySelector(isChosen ? "input:checked" : "input, textarea");
    if (!input || input.value === "" || !input.validity.valid) return "";
    return item.kind === "scale" || item.kind === "number" ? Number(input.value) : input.value;
  };
  let waiting = null,
    timer = 0;
  function flush() {
    clearTimeout(timer);
    if (waiting) {
      const [step, item, value] = waiting;
      waiting = null;
      link.send({ t: "answer", step, item, value });
    }
  }
  function later(step, item, value) {
    if (waiting && waiting[1] !== item) flush();
    waiting = [step, item, value];
    clearTimeout(timer);
    timer = setTimeout(flush, 250);
  }
  // A field that is left by leaving the page is left, too.
  function leave() {
    const field = document.activeElement;
    if (field instanceof HTMLInputElement && field.type === "number") field.dispatchEvent(new Event("change"));
    flush();
  }
  addEventListener("pagehide", leave);
  addEventListener("visibilitychange", leave);

  // A picture or video of the protocol.
  function media(url) {
    const isVideo = /\.(mp4|webm)$/.test(url),
      one = make(isVideo ? "video" : "img", "media");
    one.src = url;
    if (isVideo) one.controls = true;
    else one.alt = "";
    return one;
  }

  // Items that only some answers ask for come and go with them.
  function branch(items) {
    const isShown = (item) =>
      Object.entries(item.when).every(([other, value]) => {
        const asked = items.find((one) => one.id === other);
        return given(asked) === value && isShown(asked);
      });
    for (const item of items) main.querySelector(`[data-item="${CSS.escape(item.id)}"]`).hidden = !isShown(item);
  }

  function boxOf(step, item) {
    const box = field(step, item);
    if (item.media) box.prepend(media(item.media));
    return box;
  }

  function field(step, item) {
    const value = step.answers[item.id];
    if (item.kind === "text" || item.kind === "number") {
      const input = make(item.kind === "text" ? "textarea" : "input");
      input.id = `item-${item.id}`;
      input.value = value ?? "";
      if (item.kind === "number") {
        Object.assign(input, { type: "number", min: item.low, max: item.high, step: item.step });
      } else {
        input.rows = 4;
        input.maxLength = 16000;
      }
      input.addEventListener("input", () => {
        if (input.maxLength > 0 && input.value.length >= input.maxLength) notice(words.too_long);
        branch(step.items);
        if (item.kind === "text") later(step.ident, item.id, input.value);
      });
      // Half a number is another number: it is sent when the field is left; what is refused takes back what was sent.
      input.addEventListener("change", () => {
        flush();
        if (item.kind !== "number") return;
        if (!input.validity.valid) {
          notice(fill(words.range, item));
          input.value = "";
          branch(step.items);
        }
        link.send({ t: "answer", step: step.ident, item: item.id, value: given(item) });
      });
      const label = make("label", "", item.text, item.required ? null : make("span", "soft", ` ${words.optional}`));
      label.htmlFor = input.id;
      const box = make("div", "item", label, input);
      box.dataset.item = item.id;
      label.dataset.please = words.please;
      return box;
    }
    const chosen = make("output", "chosen", typeof value === "number" ? String(value) : ""),
      isScale = item.kind === "scale",
      values = isScale
        ? Array.from({ length: (item.high - item.low) / item.step + 1 }, (_, place) => item.low + place * item.step)
        : item.choices;
    const choices = make(
      "div",
      isScale ? `choices scale${values.length > COARSE ? " fine" : ""}` : "choices options",
      ...values.map((one) => {
        const input = make("input");
        Object.assign(input, { type: "radio", name: `item-${item.id}`, value: one, checked: one === value });
        input.addEventListener("change", () => {
          link.send({ t: "answer", step: step.ident, item: item.id, value: one });
          branch(step.items);
          box.dataset.missing = "false";
          chosen.textContent = String(one);
        });
        return make("label", "", input, make("span", "", String(one).replace("-", isScale ? "−" : "-")));
      }),
    );
    const legend = make("legend", "", item.text, item.required ? null : make("span", "soft", ` ${words.optional}`));
    legend.dataset.please = words.please;
    const box = make("fieldset", "item", legend, choices);
    box.dataset.item = item.id;
    if (isScale)
      box.append(make("div", "ends", make("span", "", item.low_label), chosen, make("span", "", item.high_label)));
    return box;
  }

  function trial(step) {
    const parts = [
      make("h2", "", step.title),
      make("section", "", make("p", "text", step.text), ...step.media.map(media)),
    ];
    if (step.practice) parts.splice(1, 0, make("p", "soft", words.practice));
    if (!view.running || view.paused) {
      parts.push(make("section", "wait soft", view.running ? words.paused : words.soon));
      return parts;
    }
    if (step.camera) {
      const picture = make("canvas", "media");
      picture.id = "picture";
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", words.camera);
      picture.hidden = true; // until there is one
      parts.push(picture);
    }
    const talk = make("section");
    talk.id = "talk";
    if (step.lines) {
      const story = make("ol", "story");
      const box = make("div", "", story);
      box.setAttribute("role", "log");
      box.setAttribute("aria-label", words.spoken);
      box.tabIndex = 0;
      talk.append(box);
    }
    if (step.speak) {
      const input = make("input");
      Object.assign(input, { id: "words", maxLength: 1000, placeholder: words.say_hint, autocomplete: "off" });
      const label = make("label", "hidden", words.your_words);
      label.htmlFor = "words";
      const send = make("button", "main", words.say);
      send.type = "submit";
      const form = make("form", "", label, input, send);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const text = input.value.trim();
        if (text) sendFrom(link, input, { t: "say", text });
      });
      talk.append(form, talking.box);
    }
    parts.push(talk);
    return parts;
  }

  function lines(step) {
    const story = main.querySelector(".story");
    if (!story || !step.lines) return;
    const who = (line) =>
      line.how === "heard" && line.who === "collaborator" ? words.you : line.who || words.somebody;
    draw(
      story,
      list(
        step.lines,
        (line) => line.i,
        (line) =>
          html`<li class=${line.how === "heard" ? "mine" : ""}><span class="who"><b>${who(line)}</b></span>${line.text}</li>`,
      ),
    );
    story.parentElement.scrollTop = story.parentElement.scrollHeight;
  }

  twice(
    $("#withdraw"),
    (isAsked) => {
      $("#withdraw").textContent = isAsked ? words.withdraw_sure : words.withdraw;
      notice(isAsked ? words.withdraw_again : "");
    },
    () => link.send({ t: "withdraw" }),
  );

  return {
    show(found) {
      view = found;
      const step = view.step;
      $("#where").textContent = step
        ? view.withdrawn
          ? words.stopped
          : (words[step.kind] ?? step.title)
        : words.welcome;
      $("#where").dataset.mode = view.running ? "running" : view.over ? "over" : "";
      $("#withdraw").hidden = !step || view.over;
      $("#stop").hidden = !(view.stop && view.running);
      whenNew("step", [step?.ident, view.running, view.paused, view.withdrawn, view.code], () => {
        notice("");
        if (!step) main.replaceChildren(make("section", "wait soft", words.waiting));
        else if (view.withdrawn)
          main.replaceChildren(make("h2", "", `${words.stopped}.`), make("section", "wait", words.call));
        else if (step.kind === "thanks")
          main.replaceChildren(bar(), make("h2", "", words.thanks), make("section", "", make("p", "text", step.text)));
        else
          main.replaceChildren(
            bar(),
            ...(step.kind === "consent"
              ? consent(step)
              : step.kind === "questionnaire"
                ? questionnaire(step)
                : trial(step)),
          );
        if (step?.kind === "questionnaire" && !view.withdrawn) {
          branch(step.items);
        }
        main.querySelector("h2")?.setAttribute("tabindex", "-1");
        main.querySelector("#words")?.focus();
        scrollTo(0, 0);
      });
      if (step?.kind === "trial")
        whenNew("lines", [step.ident, step.attempt, view.paused, step.lines], () => lines(step));
    },
    cameras: () => (view?.running && view.step?.camera ? [view.step.camera] : []),
    frame(header, bitmap) {
      const canvas = $("#picture");
      if (canvas) {
        canvas.hidden = false;
        if (canvas.width !== header.width) Object.assign(canvas, { width: header.width, height: header.height });
        canvas.getContext("2d").drawImage(bitmap, 0, 0);
      }
      bitmap.close();
    },
    tick(message) {
      if (message.voice) talking.show(message.voice);
    },
    met() {
      talking.met();
    },
    lost() {
      talking.lost();
    },
  };
}
