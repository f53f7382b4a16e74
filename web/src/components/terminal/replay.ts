// After a lost connection the server shows the last output of the shell again. What is on the screen already
// must not be written twice.

const TAIL = 256;

/** Remembers the end of what was written, and finds it again in a replay. */
export class Seam {
  private tail = new Uint8Array(0);

  /** To be called with everything that is written. */
  note(bytes: Uint8Array) {
    if (bytes.length >= TAIL) this.tail = bytes.slice(-TAIL);
    else {
      const joined = new Uint8Array(this.tail.length + bytes.length);
      joined.set(this.tail);
      joined.set(bytes, this.tail.length);
      this.tail = joined.slice(-TAIL);
    }
  }

  /** What of the first output after a new connection is new. A server that was started again knows nothing of
   * the past and shows none of it: then everything is new. */
  fresh(bytes: Uint8Array): Uint8Array {
    const { tail } = this;
    if (tail.length === 0) return bytes;
    for (let start = bytes.length - tail.length; start >= 0; start -= 1)
      if (tail.every((byte, index) => bytes[start + index] === byte)) return bytes.subarray(start + tail.length);
    return bytes;
  }
}
