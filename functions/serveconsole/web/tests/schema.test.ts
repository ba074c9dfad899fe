import { answerWith } from "./environment";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refusal } from "../api";
import { readFieldHelp } from "../schema";

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const schemas = {
  "sh.platform.v1.ConfigStatus": {
    type: "object", description: "The status.",
    properties: {
      audit: { allOf: [ref("sh.platform.v1.Audit")], description: "Audit of this platform." }, plain: ref("sh.platform.v1.Audit"),
      buttons: { type: "array", description: "Buttons.", items: ref("sh.platform.v1.Button") }, words: { type: "array", items: { type: "string" } },
      labels: { type: "object", additionalProperties: { type: "string", description: "A label." } }, broken: ref("sh.platform.v1.Absent"),
      loop: ref("sh.platform.v1.Loop"), anything: { description: "Anything." },
    },
  },
  "sh.platform.v1.Audit": { type: "object", description: "Any audit.", properties: { level: { type: "integer", description: "How much.", enum: [1, 2] }, keep: { type: "string" } } },
  "sh.platform.v1.Button": { type: "object", properties: { text: { type: "string", description: "Its text." }, link: { type: "string" } } },
  "sh.platform.v1.Loop": ref("sh.platform.v1.Loop"),
  "sh.platform.v1.NoConfig": { type: "string" },
  "sh.platform.v1.Config": { type: "object", properties: { status: ref("sh.platform.v1.ConfigStatus") } },
};

test("a failure to read the description is repeated by the next caller, and a success is kept", async () => {
  let requests = 0;
  answerWith(({ path }) => {
    requests++;
    assert.equal(path, "/openapi/v3/apis/management.platform.sh/v1");
    return requests === 1 ? Response.json({ message: "busy" }, { status: 503 }) : Response.json({ components: { schemas } });
  });
  await assert.rejects(readFieldHelp("Config", []), (failure) => failure instanceof Refusal && failure.code === 503);
  assert.equal((await readFieldHelp("Config", []))?.type, "object");
  await readFieldHelp("Config", ["status"]);
  assert.equal(requests, 2);
});

test("a field is explained by what is said about it, or about its type", async () => {
  for (const [steps, expected] of [
    [["status", "audit"], { path: "status.audit", type: "object", description: "Audit of this platform.", values: [], fields: ["keep", "level"] }],
    [["status", "plain"], { path: "status.plain", type: "object", description: "Any audit.", values: [], fields: ["keep", "level"] }],
    [["status", "audit", "level"], { path: "status.audit.level", type: "integer", description: "How much.", values: ["1", "2"], fields: [] }],
    [["status", "buttons"], { path: "status.buttons", type: "list of object", description: "Buttons.", values: [], fields: ["link", "text"] }],
    [["status", "buttons", 3, "text"], { path: "status.buttons[3].text", type: "string", description: "Its text.", values: [], fields: [] }],
    [["status", "words"], { path: "status.words", type: "list of string", description: "", values: [], fields: [] }],
    [["status", "labels", "any.name"], { path: "status.labels.any.name", type: "string", description: "A label.", values: [], fields: [] }],
    [["status", "anything"], { path: "status.anything", type: "object", description: "Anything.", values: [], fields: [] }],
  ] as const) {
    assert.deepEqual(await readFieldHelp("Config", [...steps]), expected, steps.join("/"));
  }
});

test("what is not described has no help", async () => {
  for (const steps of [["absent"], ["status", "audit", "absent"], ["status", "audit", 0], ["status", "buttons", "text"], ["status", "broken"], ["status", "audit", "level", "x"]]) {
    assert.equal(await readFieldHelp("Config", steps), null, steps.join("/"));
  }
  assert.equal(await readFieldHelp("Absent", []), null);
  // A description that refers to itself ends.
  assert.equal((await readFieldHelp("Config", ["status", "loop"]))?.type, "object");
});
