"use strict";

// Everything that is drawn here is put in as text, never as markup: what the server says cannot become a script.
const byId = (id) => document.getElementById(id);
const STORED = "gembridge.key";

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Text with `words` in backticks as code. */
function prose(name, text, className) {
  const made = element(name, undefined, className);
  text.split("`").forEach((piece, place) => {
    if (piece) made.append(place % 2 ? element("code", piece) : document.createTextNode(piece));
  });
  return made;
}

function say(text, kind) {
  byId("status").textContent = text;
  byId("status").dataset.kind = kind || "";
}

/** The key may come in the fragment, which no server sees; it is taken out of the address at once. */
function keyOfAddress() {
  const found = new URLSearchParams(location.hash.slice(1)).get("key");
  if (found !== null) history.replaceState(null, "", location.pathname);
  return found;
}

async function load(key) {
  say("Loading…");
  let answer;
  try {
    answer = await fetch("/openapi.json", { headers: { authorization: `Bearer ${key}` }, cache: "no-store" });
  } catch {
    say("The server does not answer. Is gembridge still running?", "error");
    return;
  }
  if (!answer.ok) {
    sessionStorage.removeItem(STORED);
    const problem = await answer.json().catch(() => null);
    say(problem?.error?.message ?? `The server answered ${answer.status}.`, "error");
    return;
  }
  sessionStorage.setItem(STORED, key);
  byId("unlock").hidden = true;
  say("");
  draw(await answer.json());
}

function draw(api) {
  byId("title").textContent = `${api.info.title} ${api.info.version}`;
  byId("about").replaceWith(prose("p", api.info.description ?? ""));
  const contents = element("ul");
  const routes = byId("routes");
  routes.replaceChildren();
  for (const { path, method, operation } of operations(api)) {
    const id = `${method}${path}`.replace(/[^a-z0-9]+/gi, "-");
    const link = element("a", `${method.toUpperCase()} ${path}`);
    link.href = `#${id}`;
    const item = element("li");
    item.append(link);
    contents.append(item);
    routes.append(drawOperation(api, id, method, path, operation));
  }
  byId("contents").replaceChildren(contents);
}

/** What people come for first: what takes a body, then what needs a key, then the rest. The parts of this page are left out. */
function operations(api) {
  const found = [];
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (typeof operation !== "object" || operation === null || !operation.responses) continue;
      if (!path.startsWith("/docs")) found.push({ path, method, operation });
    }
  }
  const rank = ({ path, operation }) => (isOpen(operation) ? 4 : 0) + (path.startsWith("/v1/") ? 0 : 2) + (operation.requestBody ? 0 : 1);
  return found.sort((one, other) => rank(one) - rank(other) || one.path.localeCompare(other.path));
}

function isOpen(operation) {
  return Array.isArray(operation.security) && operation.security.some((one) => Object.keys(one).length === 0);
}

function drawOperation(api, id, method, path, operation) {
  const section = element("section");
  section.id = id;
  const heading = element("h2");
  heading.append(element("span", method.toUpperCase(), "method"), document.createTextNode(path));
  section.append(heading);
  if (isOpen(operation)) section.append(element("p", "open: no key is needed", "open"));
  const told = [operation.summary, operation.description].filter(Boolean).join("\n\n");
  for (const paragraph of told.split(/\n{2,}/).filter(Boolean)) section.append(prose("p", paragraph));
  if (operation.parameters?.length) {
    section.append(element("h3", "Parameters"));
    section.append(rows(operation.parameters.map((one) => [`${one.name} (${one.in})`, one.description ?? ""])));
  }
  const body = operation.requestBody?.content?.["application/json"];
  if (body) {
    section.append(element("h3", "Body"));
    const shape = resolve(api, body.schema);
    const required = new Set(shape.required ?? []);
    const example = exampleOf(api, body);
    const isUsual = (name) => required.has(name) || Object.hasOwn(example ?? {}, name);
    const fields = Object.entries(shape.properties ?? {}).sort(([one], [other]) => isUsual(other) - isUsual(one));
    if (fields.length) {
      section.append(rows(fields.map(([name, field]) =>
        [required.has(name) ? `${name} *` : name, describe(api, field)])));
    }
  }
  section.append(element("h3", "Answers"));
  section.append(rows(Object.entries(operation.responses).map(([status, one]) => [status, resolve(api, one).description ?? ""])));
  section.append(element("h3", "curl"));
  section.append(element("pre", shellLine(method, path, isOpen(operation), body && exampleOf(api, body))));
  return section;
}

/** Its own, or that of another route with the same body. */
function exampleOf(api, body) {
  if (body.example !== undefined) return body.example;
  const bodies = Object.values(api.paths).flatMap((methods) => Object.values(methods))
    .map((operation) => operation?.requestBody?.content?.["application/json"]);
  return bodies.find((other) => other?.example !== undefined && other.schema?.$ref === body.schema?.$ref)?.example;
}

function resolve(api, schema) {
  let found = schema ?? {};
  for (let steps = 0; found.$ref && steps < 8; steps += 1) {
    found = found.$ref.replace("#/", "").split("/").reduce((at, part) => at?.[part], api) ?? {};
  }
  return found;
}

function describe(api, schema) {
  const field = resolve(api, schema);
  const kinds = [field.type ?? field.oneOf?.map((one) => resolve(api, one).type ?? "object")].flat(2).filter((kind) => kind && kind !== "null");
  return [[...new Set(kinds)].join(" or "), schema.description ?? field.description].filter(Boolean).join(": ");
}

function rows(pairs) {
  const table = element("table");
  for (const pair of pairs) {
    const row = element("tr");
    row.append(...pair.map((text) => prose("td", text)));
    table.append(row);
  }
  return table;
}

function shellLine(method, path, isOpen, example) {
  const words = [`curl ${location.origin}${path}`];
  if (method !== "get") words.push(`-X ${method.toUpperCase()}`);
  if (!isOpen) words.push('-H "Authorization: Bearer $GEMBRIDGE_KEY"');
  if (example !== undefined) {
    words.push("-H 'Content-Type: application/json'");
    words.push(`-d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`);
  }
  return words.join(" \\\n  ");
}

byId("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  load(byId("key").value.trim());
});
const known = keyOfAddress() ?? sessionStorage.getItem(STORED);
if (known) load(known);
