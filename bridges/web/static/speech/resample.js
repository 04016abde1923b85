// Sound of any rate becomes 16 kHz: what 16 kHz cannot hold is filtered out first, so that it folds onto nothing.
export const RATE_HZ = 16000;
const LOBES = 16,
  PASSED = 0.92,
  PHASES = 320; // exact for 44.1, 48, 88.2 and 96 kHz; others by less than 0.2 % of a sample

export class Resampler {
  constructor(fromHz) {
    this.step = fromHz / RATE_HZ;
    this.cut = PASSED * Math.min(1, 1 / this.step);
    this.half = Math.ceil(LOBES / this.cut); // samples that the filter reaches to each side
    this.kept = new Float32Array(this.half);
    this.at = this.half;
    this.kernels = new Map();
  }

  // The next samples; returns as many of 16 kHz as are whole by now.
  add(samples) {
    const sound = new Float32Array(this.kept.length + samples.length);
    sound.set(this.kept);
    sound.set(samples, this.kept.length);
    const found = [];
    for (; this.at + this.half + 1 < sound.length; this.at += this.step) {
      const whole = Math.floor(this.at),
        kernel = this.kernel(Math.round((this.at - whole) * PHASES));
      let sum = 0;
      for (let tap = 0; tap < kernel.length; tap += 1) sum += kernel[tap] * sound[whole - this.half + 1 + tap];
      found.push(sum);
    }
    const gone = Math.max(0, Math.floor(this.at) - this.half);
    this.kept = sound.slice(gone);
    this.at -= gone;
    return Float32Array.from(found);
  }

  kernel(phase) {
    let kernel = this.kernels.get(phase);
    if (!kernel) {
      kernel = Float32Array.from({ length: 2 * this.half }, (_, tap) =>
        this.weight(tap - this.half + 1 - phase / PHASES),
      );
      const sum = kernel.reduce((one, other) => one + other, 0);
      this.kernels.set(phase, (kernel = kernel.map((one) => one / sum)));
    }
    return kernel;
  }

  weight(x) {
    // a sinc under a Blackman window
    const turn = (Math.PI * x) / this.half,
      angle = Math.PI * x * this.cut;
    return Math.abs(x) >= this.half
      ? 0
      : (angle ? Math.sin(angle) / angle : 1) * (0.42 + 0.5 * Math.cos(turn) + 0.08 * Math.cos(2 * turn));
  }
}

// As 16-bit samples, lowest byte first, in base64.
export function packed(samples) {
  const bytes = new DataView(new ArrayBuffer(2 * samples.length));
  samples.forEach((value, place) =>
    bytes.setInt16(2 * place, Math.round(32767 * Math.max(-1, Math.min(1, value))), true),
  );
  return btoa(String.fromCharCode(...new Uint8Array(bytes.buffer)));
}
