// In the browser's sound thread: hands over what the microphone gives, in blocks of about 10 ms.
const BLOCK = 512;

registerProcessor(
  "talking",
  class extends AudioWorkletProcessor {
    constructor() {
      super();
      this.block = new Float32Array(BLOCK);
      this.filled = 0;
    }

    process([[channel]]) {
      for (let from = 0; channel && from < channel.length; ) {
        const part = channel.subarray(from, from + BLOCK - this.filled);
        this.block.set(part, this.filled);
        this.filled += part.length;
        from += part.length;
        if (this.filled === BLOCK) {
          this.port.postMessage(this.block.slice());
          this.filled = 0;
        }
      }
      return true;
    }
  },
);
