// The robot's voice and ears: what it says now and what waits, how loud and fast it speaks, and what its microphone hears.
import { $, draw, html, nothing, whenNew } from "/static/dom.js";

const MANNER = ["volume", "speed", "pitch"],
  SETTLES_MS = 300,
  AHEAD_S = 0.15;

export class RobotVoice {
  constructor(link) {
    this.link = link;
    this.sound = null; // the page's sound output, while somebody listens
    this.endsAt = 0;
    this.timer = 0;
    $("#quiet").onclick = () => link.send({ t: "quiet" });
    for (const name of MANNER)
      $(`#voice-${name}`).oninput = () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.set(), SETTLES_MS);
        this.words();
      };
    $("#listen").onclick = () => this.listen();
  }

  words() {
    for (const name of MANNER)
      $(`#voice-${name}`).nextElementSibling.textContent = `${Math.round(100 * Number($(`#voice-${name}`).value))} %`;
  }

  set() {
    this.timer = 0;
    const [volume, speed, pitch] = MANNER.map((name) => Number($(`#voice-${name}`).value));
    this.link.send({ t: "voice", volume, speed, pitch });
  }

  async listen() {
    const isOn = this.sound === null;
    if (isOn) this.sound = new AudioContext();
    else {
      await this.sound.close();
      this.sound = null;
    }
    $("#listen").setAttribute("aria-checked", String(isOn));
    this.link.send({ t: "listen", on: isOn });
  }

  show(message) {
    whenNew("words", message.words, (words) => {
      $("#queue").hidden = !words?.now && !words?.waiting.length;
      const waiting = (words?.waiting ?? []).map((text) => html`<span>${text}</span>`);
      draw("#queue-words", html`${words?.now ? html`<b>${words.now}</b>` : nothing}${waiting}`);
    });
    if (!this.timer && message.voice_set)
      whenNew("voice", message.voice_set, (now) => {
        for (const name of MANNER) $(`#voice-${name}`).value = now[name];
        this.words();
      });
    if (message.sound && this.sound) for (const piece of message.sound.pieces) this.play(piece.pcm, message.sound.rate);
  }

  // 16-bit samples, lowest byte first; pieces follow each other without a gap where they come in time.
  play(pcm, rate) {
    const bytes = Uint8Array.from(atob(pcm), (one) => one.charCodeAt(0)),
      samples = new Int16Array(bytes.buffer, 0, bytes.length >> 1),
      piece = this.sound.createBuffer(1, samples.length, rate);
    piece.copyToChannel(
      Float32Array.from(samples, (one) => one / 32768),
      0,
    );
    const source = this.sound.createBufferSource();
    source.buffer = piece;
    source.connect(this.sound.destination);
    const begin = Math.max(this.endsAt, this.sound.currentTime + AHEAD_S);
    source.start(begin);
    this.endsAt = begin + piece.duration;
  }
}
