// Push to talk: while its button is held (or after a tap, until the next) the microphone's sound goes to the server in pieces.
import { hasKeys, isText, keyBox, keyOf } from "/static/keyboard.js";
import { awayFrom, make, setHidden } from "/static/dom.js";
import english from "/static/speech/talk_en.js";
import { fill } from "/static/words.js";
import { packed, RATE_HZ, Resampler } from "/static/speech/resample.js";

const TAP_MS = 350,
  TAIL_MS = 200,
  LONGEST_S = 19.5,
  PIECE = RATE_HZ / 10,
  IDLE_MS = 60_000,
  WAIT_MS = 15_000,
  STARTS_MS = 6000,
  SILENCE = 0.001;
const AWAY_PX = 60; // a finger let go so far from the button throws away
const HAS_KEYS = !matchMedia("(hover: none) and (pointer: coarse)").matches;
const NO_WORDS =
  "Nobody would understand speech here: this run has no recogniser (--add words=nodes.voice.recogniser:Recogniser).";

const isAway = (event, button) => event.pointerType === "touch" && awayFrom(button, event) > AWAY_PX;

export class PushToTalk {
  // isTold: whether this person is told why it does not work, and how it would; words: what the button says.
  constructor(link, isTold, words = english) {
    this.link = link;
    this.isTold = isTold;
    this.words = words;
    this.hint = `${words.hint} ${HAS_KEYS ? words.hint_keys : words.hint_touch}`;
    this.mode = "idle";
    this.count = 0;
    this.voice = null;
    this.button = make("button", "talk");
    this.button.type = "button";
    this.button.setAttribute("aria-keyshortcuts", "V");
    this.word = make("span", "", words.talk);
    this.button.append(this.word, " ", keyBox("v"));
    this.level = make("div", "", "");
    const meter = make("div", "level", this.level);
    meter.setAttribute("aria-hidden", "true");
    this.status = make("p", "", this.hint);
    this.status.setAttribute("role", "status");
    this.fault = make("p", "fault");
    this.fault.hidden = true;
    this.box = make("div", "mic", this.button, meter, this.status, this.fault);
    this.box.hidden = true;
    this.box.setAttribute("role", "group");
    this.box.setAttribute("aria-label", words.talk);
    this.listen();
  }

  listen() {
    const button = this.button;
    button.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      button.setPointerCapture(event.pointerId);
      this.press("pointer");
    });
    button.addEventListener("pointerup", (event) => {
      if (this.isOn && isAway(event, button)) this.cancel(this.words.away);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"])
      button.addEventListener(name, () => this.release("pointer"));
    button.addEventListener("click", (event) => {
      if (event.detail === 0) this.press("click");
    }); // by the keyboard, or for somebody
    button.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch is no menu
    addEventListener("keydown", (event) => {
      if (isText(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if (keyOf(event) === "v" && hasKeys() && this.isShown) {
        this.code = event.code;
        event.preventDefault();
        this.press("key");
      } else if (event.key === "Escape" && this.isOn) this.cancel(this.words.away);
    });
    addEventListener("keyup", (event) => {
      if (event.code === this.code) this.release("key");
    });
    addEventListener("blur", () => {
      if (this.by !== "tap") this.end();
    }); // who lets go now is not seen
    addEventListener("visibilitychange", () => {
      if (document.hidden) {
        this.end();
        if (this.mode === "idle") this.close();
      }
    });
    addEventListener("pagehide", () => {
      this.cancel("");
      this.close();
    });
  }

  get isOn() {
    return ["opening", "listening", "ending"].includes(this.mode);
  }
  get isShown() {
    return !this.button.hidden && this.box.isConnected && this.box.offsetParent !== null;
  }

  // --- what the server knows: whether anybody would understand, and what became of what was said

  show(voice) {
    this.voice = voice;
    const why = !voice.understood
      ? NO_WORDS
      : !isSecureContext
        ? this.words.insecure
        : !navigator.mediaDevices?.getUserMedia || !globalThis.AudioWorkletNode
          ? this.words.no_sound
          : "";
    setHidden(this.box, !voice.understood && !this.isTold());
    setHidden(this.button, Boolean(why));
    setHidden(this.level.parentElement, Boolean(why));
    if (why) {
      this.cancel("");
      this.say(why);
    } else if (this.status.textContent === NO_WORDS || !this.status.textContent) this.say(this.hint);
    this.tellFaults(voice.deaf);
    if (this.isOn && !this.isShown) this.cancel("");
    if (voice.count > this.count && (this.isOn || this.mode === "sent")) this.answered(voice);
    else if (this.isAwaited && voice.words && !this.isOn)
      this.rest(fill(this.words.understood, { words: voice.words }));
  }

  tellFaults(deaf) {
    const told = Object.entries(deaf).map(([who, why]) => `The ${who} is deaf: ${why}`);
    const text = !told.length ? "" : this.isTold() ? told.join("; ") : this.words.deaf;
    if (this.fault.textContent !== text) this.fault.textContent = text;
    setHidden(this.fault, !text);
  }

  answered(voice) {
    this.count = voice.count;
    clearTimeout(this.timer);
    if (voice.why) {
      this.rest(this.words[voice.why] ?? voice.why);
      return;
    }
    if (voice.words) {
      this.rest(fill(this.words.understood, { words: voice.words }));
      this.isAwaited = true;
      return;
    } // a stop, understood before it was let go
    this.isAwaited = true;
    this.become("understanding", this.words.waiting);
    this.timer = setTimeout(() => {
      this.rest(this.words.nothing);
      this.isAwaited = true;
    }, WAIT_MS);
  }

  // The link is gone, and with it what was being said.
  lost() {
    if (this.isOn || this.mode === "sent") this.rest(this.words.lost);
  }

  // A link is new: the server counts from the beginning.
  met() {
    this.lost();
    this.count = 0;
  }

  // --- the button

  // Browsers let sound begin only once somebody did something, and a finger has done that when it is lifted.
  wake() {
    this.context?.resume().catch(() => {});
  }

  press(by) {
    this.wake();
    if (this.isOn) {
      this.end();
      return;
    }
    if (!this.isShown) return;
    this.by = by === "click" ? "tap" : by;
    this.pressedAt = performance.now();
    this.begin();
  }

  release(by) {
    this.wake();
    if (this.by !== by || !this.isOn) return;
    if (performance.now() - this.pressedAt < TAP_MS) {
      this.by = "tap";
      this.draw();
    } else if (this.mode === "opening") this.rest(this.words.soon);
    else this.end();
  }

  async begin() {
    clearTimeout(this.timer);
    clearTimeout(this.idle);
    this.isAwaited = false;
    this.begunAt = 0;
    this.length = 0;
    this.peak = 0;
    this.left = [];
    this.resampler = null;
    this.count = this.voice.count;
    this.become("opening", this.words.opening);
    try {
      await this.open();
    } catch (problem) {
      this.close();
      if (this.mode === "opening" || this.status.textContent === this.words.soon)
        this.rest(this.words[problem.name] ?? fill(this.words.unusable, { why: problem.message }));
      return;
    }
    if (this.mode === "opening") this.become("listening", this.words.listening);
    else this.sleep();
  }

  end() {
    if (this.mode === "opening") {
      this.rest(this.hint);
      return;
    }
    if (this.mode !== "listening") return;
    this.become("ending", this.words.sending);
    this.timer = setTimeout(() => this.finish(), TAIL_MS); // the last word's end is on its way
  }

  finish() {
    if (this.mode !== "ending") return;
    if (this.left.length) this.send();
    const isMute = this.begunAt && this.peak < SILENCE;
    if (this.begunAt)
      this.link.send({
        t: "talked",
        ago_s: Math.min(60, (performance.now() - this.begunAt) / 1000),
        is_wanted: !isMute,
      });
    if (!this.begunAt || isMute) {
      this.rest(this.words.mute);
      return;
    }
    this.become("sent", this.words.sending);
    this.sleep(); // the server answers, or the link goes
  }

  cancel(text) {
    if (!this.isOn) return;
    if (this.begunAt) this.link.send({ t: "talked", is_wanted: false });
    this.rest(text);
  }

  // Nothing goes on any more; the text stays until the next press.
  rest(text) {
    clearTimeout(this.timer);
    this.begunAt = 0;
    this.isAwaited = false;
    this.become("idle", text);
    this.sleep();
  }

  // --- sound

  async open() {
    if (this.stream?.active && !this.opening) {
      await this.start(this.context);
      return;
    }
    this.opening ??= this.connect(); // pressed again while the browser asks: it asks once
    try {
      await this.opening;
    } finally {
      this.opening = null;
    }
  }

  async connect() {
    const stream = (this.stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    }));
    const context = (this.context = new AudioContext());
    await context.audioWorklet.addModule("/static/speech/microphone_worklet.js");
    await this.start(context);
    const node = new AudioWorkletNode(context, "talking", { channelCount: 1, channelCountMode: "explicit" });
    node.port.onmessage = (event) => this.take(event.data);
    context.createMediaStreamSource(stream).connect(node);
    node.connect(context.destination); // silence: it only pulls
    for (const track of stream.getTracks())
      track.onended = () => {
        this.close();
        if (this.isOn) this.cancel(this.words.gone);
      };
  }

  // Where there is nothing to play sound on, Firefox starts none, and says neither yes nor no.
  async start(context) {
    let timer = 0;
    const late = new Promise((_, refuse) => {
      timer = setTimeout(() => refuse(new DOMException("no sound", "TimeoutError")), STARTS_MS);
    });
    try {
      await Promise.race([context.resume(), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  close() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.context?.close();
    this.stream = this.context = null;
  }

  // A microphone that is not used for a while is closed; the next press opens it again.
  sleep() {
    clearTimeout(this.idle);
    this.idle = setTimeout(
      () => {
        if (!this.isOn) this.close();
      },
      document.hidden ? 0 : IDLE_MS,
    );
  }

  take(block) {
    if (this.mode !== "listening" && this.mode !== "ending") return;
    const rate = this.context.sampleRate;
    if (!this.begunAt) {
      this.begunAt = performance.now() - (1000 * block.length) / rate;
      this.resampler = new Resampler(rate);
      this.link.send({ t: "talk" });
    }
    for (const value of this.resampler.add(block)) {
      this.left.push(value);
      this.peak = Math.max(this.peak, Math.abs(value));
      if (this.left.length === PIECE) this.send();
    }
    if (this.length >= LONGEST_S * RATE_HZ && this.mode === "listening") this.end();
  }

  send() {
    const loud = Math.sqrt(this.left.reduce((sum, one) => sum + one * one, 0) / this.left.length);
    this.level.style.width = `${Math.round(100 * Math.max(0, Math.min(1, 1 + Math.log10(loud + 1e-6) / 2.5)))}%`;
    this.length += this.left.length;
    this.link.send({ t: "sound", pcm: packed(Float32Array.from(this.left)) });
    this.left = [];
  }

  // --- what is seen

  become(mode, text) {
    this.mode = mode;
    this.say(text);
    this.draw();
  }

  say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  draw() {
    const isOn = this.mode === "opening" || this.mode === "listening";
    this.button.setAttribute("aria-pressed", String(isOn));
    this.box.dataset.mode = this.mode;
    this.word.textContent = !isOn ? this.words.talk : this.by === "tap" ? this.words.send : this.words.let_go;
    if (!isOn) this.level.style.width = "0";
  }
}
