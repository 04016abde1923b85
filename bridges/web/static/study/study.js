// A study: one page for the participant, one for the experimenter; the token decides which. All text goes in as text.
import { Link } from "/static/link.js";
import { hasKeys, isText, stopKeys } from "/static/keyboard.js";
import { $, atOnce, onClick, paint } from "/static/dom.js";
import { cameIn, cover, LOST, notice, TOLD, told } from "/static/page.js";
import { fill, remembered, speak, words } from "/static/study/strings.js";
import { participant } from "/static/study/participant.js";
import { experimenter } from "/static/study/experimenter.js";

await speak(remembered);
let role = "",
  view = null,
  page = null,
  early = null,
  watched = null;
const watch = () => {
  const cameras = document.hidden ? [] : (page?.cameras() ?? []);
  if (watched !== String(cameras) && link.send({ t: "watch", cameras })) watched = String(cameras);
};
/** @type {Link<import("/static/wire").FromStudy>} */
const link = new Link({
  welcome: async (message) => {
    role = message.role;
    if (role === "participant") await speak(message.lang);
    else document.documentElement.lang = "en";
    cameIn(message);
    page ??= role === "experimenter" ? experimenter(link) : participant(link);
    page.met?.();
    if (early) {
      const first = early;
      early = null;
      link.hooks.state(first);
    }
    watched = null; // a new link knows of none
    watch();
  },
  state: (message) => {
    if (message.notices.length) {
      const last = message.notices.at(-1);
      notice(role === "participant" ? fill(words[last] ?? last, words) : last);
    }
    if (!page) {
      early = { ...early, ...message, view: message.view ?? early?.view ?? null };
      return;
    } // the words are still on their way
    if (message.view) {
      view = message.view;
      $("#title").textContent = view.title;
      document.title = `${view.title} - ${role}`;
      page.show(view);
      watch();
    }
    page.tick(message);
  },
  lost: () => notice(role === "participant" ? words.lost : LOST),
  told: (kind) => told(kind, role === "participant" ? words : TOLD),
  frame: (_, bitmap) => {
    const canvas = page.picture();
    if (canvas) {
      canvas.hidden = false; // until there is a picture
      paint(canvas, bitmap);
    }
    bitmap.close();
  },
  cover: (text, kind) => {
    const isTheirs = role === "participant" || (!role && remembered !== "en"); // not let in: the last one's language
    cover(isTheirs && text ? (words[kind] ?? text) : text);
    if (text) page?.lost?.();
  },
});

const stop = (why) => link.send({ t: "stop", why });
atOnce($("#stop"), () => stop("stop button"));
onClick("#resume", () => link.send({ t: "resume" })); // twice after an emergency stop, and not by a double click
addEventListener("visibilitychange", watch);
stopKeys(stop, () => !$("#stop").hidden);
addEventListener("keydown", (event) => {
  if (isText(event.target)) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (hasKeys()) page?.key?.(event);
});
