// Reads one JSON array of [value, expression] and prints what each gives: {result}, or {error}.
const parameters = ["value", "valueExists", "context", "atob", "btoa", "virtualToHostDNS"];
const context = {
  hostObject: null,
  path: "spec.a",
  tenant: { config: { list: [1, 2, 3], name: "c" }, name: "tenant", namespace: "host" },
  virtualObject: { metadata: { labels: { app: "web" } } },
};

function freeze(v) {
  if (v && typeof v === "object") Object.values(Object.freeze(v)).forEach(freeze);
  return v;
}

function sorted(v) {
  if (Array.isArray(v)) return v.map(sorted);
  if (v && typeof v === "object") return Object.fromEntries(Object.keys(v).sort().map((k) => [k, sorted(v[k])]));
  return v;
}

function check(v) {
  if (typeof v === "number" && !Number.isFinite(v)) throw new Error("not finite");
  if (typeof v === "function" || typeof v === "symbol") throw new Error("no JSON");
  if (typeof v === "string" && !v.isWellFormed()) throw new Error("half of a pair");
  if (v && typeof v === "object") {
    const prototype = Object.getPrototypeOf(v);
    if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) throw new Error("no JSON");
    Object.entries(v).flat().forEach(check);
  }
  return v;
}

let text = "";
process.stdin.on("data", (d) => (text += d));
process.stdin.on("end", () => {
  freeze(context);
  const out = JSON.parse(text).map(([value, expression]) => {
    try {
      const f = new Function(...parameters, `"use strict"; return (${expression}\n)`);
      const result = check(f(sorted(value), true, context, atob, btoa, () => ""));
      return { result: result === undefined ? null : result };
    } catch (e) {
      return { error: String(e) };
    }
  });
  console.log(JSON.stringify(out));
});
