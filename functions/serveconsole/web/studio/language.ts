import type { Completion } from "@codemirror/autocomplete";
import language from "./language.json";

/** A name that patches can use, and what it means. */
export interface Term {
  name: string;
  signature: string;
  help: string;
}

/** The names that expressions can use. The values of some are known before the evaluation. */
export const names: Term[] = language.names;
const fields: Term[] = language.fields;
export const expressionFields = ["expression", "reverseExpression"];
const lastField = new RegExp(`(?:^|[\\s{,])(${[...new Set(fields.map(({ signature }) => signature))].join("|")}):(?=\\s|$)`, "g");

/** The column of the first key of a line, after the dashes of list items. */
function columnOf(line: string): number {
  return /^\s*(?:-\s+)*/.exec(line)![0].length;
}

/** Returns the nearest key above a line that the line is below, or null if there is none. */
function parentKey(lines: string[], number: number): string | null {
  const column = columnOf(lines[number]!);
  for (let i = number - 1; i >= 0; i--) {
    const line = lines[i]!;
    if (line.trim() === "" || line.trimStart().startsWith("#") || columnOf(line) >= column) continue;
    return /^\s*(?:-\s+)*([\w-]+):/.exec(line)?.[1] ?? null;
  }
  return null;
}

/** What the text at a place is about: an expression, the fields of a patch or of its reference, or nothing of patches. */
export function subjectAt(text: string, offset: number): "expression" | "patch" | "reference" | null {
  const lines = text.slice(0, offset).split("\n");
  const number = lines.length - 1;
  const line = lines[number]!;
  const field = [...line.matchAll(lastField)].at(-1);
  if (field) return expressionFields.includes(field[1]!) ? "expression" : null;
  const parent = parentKey(lines, number);
  if (parent !== null && expressionFields.includes(parent)) return "expression";
  if (!/^\s*(?:-\s+)*\w*$/.test(line)) return null;
  if (parent === "reference") return "reference";
  return parent === "patches" || (parent === null && lines.some((line) => line.startsWith("- "))) ? "patch" : null;
}

function option({ name, signature, help }: Term, values: Record<string, string>): Completion {
  return { label: name, displayLabel: signature, type: signature.endsWith(")") ? "function" : "variable", detail: values[name], info: help };
}

/** Returns what can be written at a place. */
export function complete(text: string, offset: number, explicit: boolean, values: Record<string, string>): { from: number; options: Completion[] } | null {
  const subject = subjectAt(text, offset);
  const written = /[A-Za-z_$][\w$.]*$/.exec(text.slice(Math.max(0, offset - 200), offset))?.[0] ?? "";
  const from = offset - written.length;
  if (!subject || (written === "" && !explicit)) return null;
  const options = subject === "expression" ? names.map((term) => option(term, values))
    : fields.filter(({ name }) => name.startsWith("reference.") === (subject === "reference"))
      .map(({ signature, help }): Completion => ({ label: signature, apply: `${signature}: `, type: "property", info: help }));
  const matching = options.filter(({ label }) => label.startsWith(written) && label !== written);
  return matching.length === 0 ? null : { from, options: matching };
}

/** Returns the name at a place, and what it means. A part of a longer name is the name up to there. */
export function explain(text: string, offset: number): { from: number; to: number; term: Term } | null {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const end = text.indexOf("\n", offset);
  const line = text.slice(start, end < 0 ? text.length : end);
  for (const match of line.matchAll(/[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*/g)) {
    const from = start + match.index;
    if (offset < from || offset > from + match[0].length) continue;
    const dot = text.slice(offset, from + match[0].length).indexOf(".");
    const name = dot < 0 ? match[0] : text.slice(from, offset + dot);
    const to = from + name.length;
    if (text[to] === ":" && !name.includes(".")) {
      const subject = subjectAt(text, from);
      const term = subject === "expression" ? undefined : fields.find((field) => field.name === (subject === "reference" ? `reference.${name}` : name));
      return term ? { from, to, term } : null;
    }
    if (subjectAt(text, from) !== "expression") return null;
    const parts = name.split(".");
    // Of value.length, value is known; of context, all of its fields are.
    for (let count = parts.length; count > 0; count--) {
      const known = parts.slice(0, count).join(".");
      const term = names.find((candidate) => candidate.name === known);
      if (term) return { from, to, term };
      const below = names.filter((candidate) => candidate.name.startsWith(`${known}.`));
      if (below.length > 0) return { from, to, term: { name: known, signature: known, help: below.map((candidate) => candidate.name).join(", ") } };
    }
    return null;
  }
  return null;
}
