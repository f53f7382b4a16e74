import { expect, it } from "vitest";
import { highlight } from "./grammars";
import { languageOf } from "./syntax";

it("knows a language by the end of a name, or by the name", () => {
  expect(languageOf("src/main.cc")).toBe("cpp");
  expect(languageOf("web/App.TSX")).toBe("typescript");
  expect(languageOf("deploy/Dockerfile")).toBe("dockerfile");
  expect(languageOf("Makefile")).toBe("makefile");
  expect(languageOf("notes.unknown")).toBeUndefined();
  expect(languageOf("go/README")).toBeUndefined();
});

it("gives words classes, and loses none of the text", () => {
  const text = 'def f(x):\n    return "a<b"  # why\n';
  const classes: string[] = [];
  const read = (nodes: ReturnType<typeof highlight>): string =>
    nodes
      .map((node) => {
        if (node.type === "text") return node.value;
        if (node.type !== "element") return "";
        classes.push(...(node.properties.className as string[]));
        return read(node.children as never);
      })
      .join("");
  expect(read(highlight(text, "python"))).toBe(text);
  expect(classes).toEqual(expect.arrayContaining(["hljs-keyword", "hljs-string", "hljs-comment"]));
});
