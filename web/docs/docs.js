// Shows the server's own description of its API. Text only ever becomes text, never markup.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
const REFERENCE = "#/components/schemas/";

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

function typeOf(schema) {
  if (!schema || Object.keys(schema).length === 0) return "anything";
  if (schema.$ref) {
    const name = schema.$ref.slice(REFERENCE.length);
    return make("a", { href: "#schema-" + name }, name);
  }
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.flatMap((one, i) => (i ? [" or ", typeOf(one)] : [typeOf(one)])).flat();
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type || "anything";
  if (schema.type === "array") return ["list of ", typeOf(schema.items)].flat();
  const bounds = [];
  if (schema.format) bounds.push(schema.format);
  if (schema.pattern) bounds.push(schema.pattern);
  const range = (low, high, unit) => {
    if (low !== undefined || high !== undefined) bounds.push(`${low ?? ""}…${high ?? ""}${unit}`);
  };
  range(schema.minimum, schema.maximum, "");
  range(schema.minLength, schema.maxLength, " characters");
  return bounds.length ? `${type} (${bounds.join(", ")})` : type;
}

function table(head, rows) {
  return make("table", { class: "fields" },
    make("thead", {}, make("tr", {}, head.map((text) => make("th", {}, text)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, cell))))));
}

function fields(schema) {
  const required = schema.required || [];
  const rows = Object.entries(schema.properties || {}).map(([name, inner]) => [
    make("code", {}, name), typeOf(inner), required.includes(name) ? "required" : "",
    inner.description || ""]);
  return rows.length ? table(["field", "type", "", ""], rows) : make("p", {}, typeOf(schema));
}

function body(content) {
  const [type, media] = Object.entries(content || {})[0] || [];
  return type ? [type, ": ", typeOf(media.schema)].flat() : "";
}

function describe(method, path, operation, document_) {
  const parts = [];
  const parameters = operation.parameters || [];
  if (parameters.length) {
    parts.push(make("h4", {}, "Parameters"), table(["name", "where", "type", ""],
      parameters.map((one) => [make("code", {}, one.name), one.in, typeOf(one.schema),
        one.description || ""])));
  }
  if (operation.requestBody) {
    parts.push(make("h4", {}, "Body"), make("p", {}, body(operation.requestBody.content)));
  }
  const answers = Object.entries(operation.responses || {}).map(([status, answer]) => {
    const shown = answer.$ref ? document_.components.responses[answer.$ref.split("/").pop()] : answer;
    return [status, shown.description || "", body(shown.content)];
  });
  parts.push(make("h4", {}, "Answers"), table(["status", "", "body"], answers));
  return make("details", { class: "operation", id: operation.operationId },
    make("summary", {},
      make("span", { class: "method" }, method.toUpperCase()),
      make("span", { class: "path" }, path),
      make("span", { class: "summary" }, operation.summary || ""),
      make("span", { class: "role" }, operation["x-role"] || ""),
      operation.deprecated ? make("span", { class: "old" }, "another spelling") : null),
    make("div", {}, parts));
}

function show(document_) {
  document.getElementById("version").textContent = document_.info.version;
  document.getElementById("about").textContent = document_.info.description;
  const chapters = new Map();
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const method of METHODS) {
      if (!item[method]) continue;
      const tag = (item[method].tags || ["other"])[0];
      if (!chapters.has(tag)) chapters.set(tag, []);
      chapters.get(tag).push(describe(method, path, item[method], document_));
    }
  }
  for (const [tag, operations] of chapters) {
    document.getElementById("chapters").append(make("a", { href: "#chapter-" + tag }, tag));
    document.getElementById("operations").append(
      make("section", { id: "chapter-" + tag }, make("h2", {}, tag), operations));
  }
  document.getElementById("schemas").append(make("h2", {}, "Schemas"),
    ...Object.entries(document_.components.schemas).map(([name, schema]) =>
      make("details", { class: "operation", id: "schema-" + name },
        make("summary", {}, make("span", { class: "path" }, name)),
        make("div", {}, make("p", {}, schema.description || ""), fields(schema)))));
}

// A link to something that is folded opens it.
function open() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
  if (target) target.scrollIntoView();
}

document.getElementById("find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of document.querySelectorAll("#operations details")) {
    const text = one.querySelector("summary").textContent.toLowerCase();
    one.hidden = !words.every((word) => text.includes(word));
  }
});

fetch("/api/v1/openapi.json")
  .then((answer) => {
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return answer.json();
  })
  .then((document_) => {
    show(document_);
    open();
    addEventListener("hashchange", open);
  })
  .catch((error) => {
    document.getElementById("about").textContent = `The description could not be read: ${error.message}`;
  });
