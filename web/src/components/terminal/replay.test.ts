import { describe, expect, it } from "vitest";
import { Seam } from "./replay";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array) => new TextDecoder().decode(value);

function after(...written: string[]) {
  const seam = new Seam();
  for (const each of written) seam.note(bytes(each));
  return (replay: string) => text(seam.fresh(bytes(replay)));
}

describe("what is new after a lost connection", () => {
  it("is everything on an empty screen", () => {
    expect(after()("$ ls\r\n")).toBe("$ ls\r\n");
  });
  it("is what follows the end of what was written, in pieces or not", () => {
    expect(after("$ l", "s\r\na b\r\n", "$ ")("$ ls\r\na b\r\n$ echo\r\n$ ")).toBe("echo\r\n$ ");
  });
  it("is nothing if nothing happened meanwhile", () => {
    expect(after("$ ls\r\n$ ")("$ ls\r\n$ ")).toBe("");
  });
  it("is everything if the server knows nothing of the past", () => {
    expect(after("$ ls\r\na b\r\n$ ")("pwd\r\n")).toBe("pwd\r\n");
  });
  it("is found by the end only, however much was written", () => {
    const long = "0123456789".repeat(1000);
    expect(after(long, "end")(`${long.slice(-2000)}end and more`)).toBe(" and more");
  });
});
