import type { LogLine } from "./types";

/** What a search has found in the whole log: before what is loaded, in it, and behind it. */
export class Hits {
  private readonly before: number;
  private readonly after: number;

  /** `outside`: places of the whole log, in order; of those that are loaded `found`, the indexes of `lines`, is
   * the truth. */
  constructor(
    private readonly outside: number[],
    private readonly lines: LogLine[],
    private readonly found: number[],
    from: number,
    until: number,
  ) {
    this.before = lowerBound(outside, from);
    this.after = lowerBound(outside, until + 1);
  }

  get count() {
    return this.before + this.found.length + this.outside.length - this.after;
  }

  /** Where the loaded ones begin, if there are any. */
  get firstLoaded() {
    return this.found.length ? this.before : -1;
  }

  id(at: number): number {
    if (at < this.before) return this.outside[at]!;
    const inside = at - this.before;
    if (inside < this.found.length) return this.lines[this.found[inside]!]!.id;
    return this.outside[this.after + inside - this.found.length]!;
  }

  /** Where this one stands among all of them; -1 = it is none. */
  at(id: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.id(middle) < id) low = middle + 1;
      else high = middle;
    }
    return low < this.count && this.id(low) === id ? low : -1;
  }
}

function lowerBound(sorted: number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
