import { expect, it } from "vitest";
import { asText, crumbs, join, ordered } from "./paths";

it("knows the folders of a path", () => {
  expect(crumbs("/")).toEqual([{ name: "/", path: "/" }]);
  expect(crumbs("/home/user").map((each) => each.path)).toEqual(["/", "/home", "/home/user"]);
  expect([join("/", "a"), join("/home", "a")]).toEqual(["/a", "/home/a"]);
});

it("shows folders first", () => {
  const entries = [
    { name: "b", type: "file" },
    { name: "z", type: "directory" },
    { name: "a", type: "file" },
  ];
  expect(ordered(entries).map((each) => each.name)).toEqual(["z", "a", "b"]);
});

it("tells texts from other files", () => {
  const bytes = (...values: number[]) => new Uint8Array(values).buffer;
  expect(asText(bytes(0x68, 0xc3, 0xa9))).toBe("hé");
  expect(asText(bytes(0x68, 0))).toBe(null);
  expect(asText(bytes(0xff, 0xfe))).toBe(null);
});
