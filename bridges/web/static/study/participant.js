// What a participant sees: one step at a time. Every answer is sent as soon as it is given.
import { keysSwitch, shown } from "/static/keyboard.js";
import {
  $,
  button,
  draw,
  html,
  list,
  nothing,
  once,
  radio,
  scaleValues,
  setHidden,
  signed,
  twice,
  whenNew,
} from "/static/dom.js";
import { notice, sendFrom } from "/static/page.js";
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
  $("#stop").firstChild.textContent = `${words.stop} `;
  $("#stop kbd").textContent = words.space;

  const boxOf = (item) => main.querySelector(`[data-item="${CSS.escape(item.id)}"]`);
  const next = (text, act) =>
    html`<div class="next"><button type="button" class="main" @click=${once(act)}>${text}</button></div>`;
  const wait = (text) => html`<section class="wait soft">${text}</section>`;
  // A picture or video of the protocol.
  const media = (url) =>
    /\.(mp4|webm)$/.test(url)
      ? html`<video class="media" controls src=${url}></video>`
      : html`<img class="media" alt="" src=${url}>`;
  const bar = () => {
    const width = Math.round((100 * view.place) / Math.max(1, view.count - 1));
    return html`<div id="bar" role="progressbar" aria-label=${words.progress} aria-valuenow=${view.place} aria-valuemax=${view.count - 1}><div .style=${`width: ${width}%`}></div></div>`;
  };

  function consent(step) {
    const agree = () => {
      const ticked = main.querySelectorAll(".tick input:checked").length;
      if (ticked < step.statements.length) notice(fill(words.tick, words));
      else link.send({ t: "agree", ticked });
    };
    const tick = (statement) => html`<label class="tick"><input type="checkbox"><span>${statement}</span></label>`;
    return html`
      <h2>${words.consent}</h2>
      <section><p class="text">${step.text}</p>${step.statements.map(tick)}</section>
      ${next(words.agree, agree)}`;
  }

  function questionnaire(step) {
    const submit = () => {
      const missing = step.items.filter((item) => item.required && !answered(item) && !boxOf(item).hidden);
      for (const item of step.items) boxOf(item).dataset.missing = String(missing.includes(item));
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
    return html`
      <h2>${step.title}</h2>
      ${step.intro ? html`<p class="soft">${step.intro}</p>` : nothing}
      <section>${step.items.map((item) => (["text", "number"].includes(item.kind) ? written(step, item) : chosen(step, item)))}</section>
      ${next(words.next, submit)}
      ${step.source ? html`<p class="soft small">${step.source}</p>` : nothing}`;
  }

  const isChosen = (item) => item.kind === "scale" || item.kind === "choice";
  const inputOf = (item) => boxOf(item).querySelector(isChosen(item) ? "input:checked" : "input, textarea");
  const answered = (item) => Boolean(inputOf(item)?.value.trim());
  const given = (item) => {
    const input = inputOf(item);
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

  // Items that only some answers ask for come and go with them.
  function branch(items) {
    const isShown = (item) =>
      Object.entries(item.when).every(([other, value]) => {
        const asked = items.find((one) => one.id === other);
        return given(asked) === value && isShown(asked);
      });
    for (const item of items) boxOf(item).hidden = !isShown(item);
  }

  const asked = (item) =>
    html`${item.text}${item.required ? nothing : html`<span class="soft"> ${words.optional}</span>`}`;
  const shownWith = (item) => (item.media ? media(item.media) : nothing);

  function written(step, item) {
    const isNumber = item.kind === "number",
      id = `item-${item.id}`,
      value = step.answers[item.id] ?? "";
    const typed = ({ target }) => {
      if (target.maxLength > 0 && target.value.length >= target.maxLength) notice(words.too_long);
      branch(step.items);
      if (!isNumber) later(step.ident, item.id, target.value);
    };
    // Half a number is another number: it is sent when the field is left; what is refused takes back what was sent.
    const left = ({ target }) => {
      flush();
      if (!isNumber) return;
      if (!target.validity.valid) {
        notice(fill(words.range, item));
        target.value = "";
        branch(step.items);
      }
      link.send({ t: "answer", step: step.ident, item: item.id, value: given(item) });
    };
    const field = isNumber
      ? html`<input id=${id} type="number" min=${item.low} max=${item.high} step=${item.step} .value=${value} @input=${typed} @change=${left}>`
      : html`<textarea id=${id} rows="4" maxlength="16000" .value=${value} @input=${typed} @change=${left}></textarea>`;
    return html`<div class="item" data-item=${item.id}>${shownWith(item)}<label for=${id} data-please=${words.please}>${asked(item)}</label>${field}</div>`;
  }

  function chosen(step, item) {
    const value = step.answers[item.id],
      isScale = item.kind === "scale",
      values = isScale ? scaleValues(item) : item.choices,
      looks = !isScale ? "options" : values.length > COARSE ? "scale fine" : "scale";
    const choose = (one) => (event) => {
      const box = event.target.closest(".item");
      link.send({ t: "answer", step: step.ident, item: item.id, value: one });
      branch(step.items);
      box.dataset.missing = "false";
      if (isScale) box.querySelector("output").textContent = String(one);
    };
    const row = (one) => radio(`item-${item.id}`, one, one === value, choose(one), isScale ? signed(one) : String(one)),
      now = typeof value === "number" ? String(value) : "",
      ends = html`<div class="ends"><span>${item.low_label}</span><output class="chosen" .textContent=${now}></output><span>${item.high_label}</span></div>`;
    return html`<fieldset class="item" data-item=${item.id}>${shownWith(item)}<legend data-please=${words.please}>${asked(item)}</legend><div class=${`choices ${looks}`}>${values.map(row)}</div>${isScale ? ends : nothing}</fieldset>`;
  }

  function trial(step) {
    return html`
      <h2>${step.title}</h2>
      ${step.practice ? html`<p class="soft">${words.practice}</p>` : nothing}
      <section><p class="text">${step.text}</p>${step.media.map(media)}</section>
      ${view.running && !view.paused ? talk(step) : wait(view.running ? words.paused : words.soon)}`;
  }

  function talk(step) {
    const say = (event) => {
      event.preventDefault();
      const field = $("#words"),
        text = field.value.trim();
      if (text) sendFrom(link, field, { t: "say", text });
    };
    const camera = html`<canvas id="picture" class="media" role="img" aria-label=${words.camera} hidden></canvas>`, // until there is one
      story = html`<div role="log" aria-label=${words.spoken} tabindex="0"><ol class="story column"></ol></div>`,
      speak = html`<form @submit=${say}><label class="hidden" for="words">${words.your_words}</label><input id="words" maxlength="1000" placeholder=${words.say_hint} autocomplete="off"><button type="submit" class="main">${words.say}</button></form>${talking.box}`;
    return html`
      ${step.camera ? camera : nothing}
      <section id="talk" class="column"><p id="robot-state" class="late" role="status" hidden>${words.robot_stopped}</p>${step.lines ? story : nothing}${step.speak ? speak : nothing}</section>`;
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

  const KINDS = { consent, questionnaire, trial };
  function page() {
    const { step } = view;
    if (!step) return wait(words.waiting);
    if (view.withdrawn) return html`<h2>${words.stopped}.</h2><section class="wait">${words.call}</section>`;
    if (step.kind === "thanks")
      return html`${bar()}<h2>${words.thanks}</h2><section><p class="text">${step.text}</p></section>`;
    return html`${bar()}${KINDS[step.kind](step)}`;
  }

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
        const fresh = {}; // what stood there before, and what was filled in, is gone
        draw(
          main,
          list([fresh], () => fresh, page),
        );
        if (step?.kind === "questionnaire" && !view.withdrawn) branch(step.items);
        main.querySelector("h2")?.setAttribute("tabindex", "-1");
        main.querySelector("#words")?.focus();
        scrollTo(0, 0);
      });
      if (step?.kind === "trial")
        whenNew("lines", [step.ident, step.attempt, view.paused, step.lines], () => lines(step));
    },
    cameras: () => (view?.running && view.step?.camera ? [view.step.camera] : []),
    picture: () => $("#picture"),
    tick(message) {
      if ($("#robot-state")) setHidden("#robot-state", !(view.stop && message.stopped));
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
