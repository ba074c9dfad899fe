import { isMap, isScalar, isSeq, parseDocument, stringify, type Document, type Node } from "yaml";

/** An error or a warning, with its place in a text. */
export interface Finding {
  from: number;
  to: number;
  severity: "error" | "warning";
  message: string;
}

/** A text in YAML, read as Kubernetes reads it. */
export interface ParsedText {
  text: string;
  /** Its value. Whole numbers are of type bigint, so that none is rounded. Undefined: the text has errors. null: it is empty. */
  value: unknown;
  document: Document;
  findings: Finding[];
}

/** A value that is a map. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** YAML 1.1 without times and numbers to the base of 60, as Kubernetes has it: 0644 is octal, and yes is true. */
const parseOptions = {
  version: "1.1" as const,
  intAsBigInt: true,
  customTags: (tags: unknown[]) => (tags as { format?: string; tag?: string }[])
    .filter((tag) => typeof tag === "string" || (tag.format !== "TIME" && tag.tag !== "tag:yaml.org,2002:timestamp")) as never[],
};

/** Reads a text that is one document. */
export function parseText(text: string): ParsedText {
  const document = parseDocument(text, { ...parseOptions, prettyErrors: false });
  const findings: Finding[] = document.errors.map((failure) => ({
    from: Math.min(failure.pos[0], text.length), to: Math.min(Math.max(failure.pos[1], failure.pos[0] + 1), text.length),
    severity: "error", message: failure.message,
  }));
  let value: unknown;
  if (findings.length === 0) {
    try {
      value = document.toJS({ maxAliasCount: 100 }) ?? null;
      toJson(value);
    } catch (failure) {
      value = undefined;
      findings.push({ from: 0, to: 0, severity: "error", message: failure instanceof Error ? failure.message : String(failure) });
    }
  }
  return { text, value, document, findings };
}

/** Returns a value as JSON. JSON.stringify knows no bigint. */
export function toJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (isFields(value)) {
    return `{${Object.entries(value).filter(([, field]) => field !== undefined).map(([key, field]) => `${JSON.stringify(key)}:${toJson(field)}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${value} is no number of JSON`);
  return JSON.stringify(value) ?? "null";
}

/** Reads JSON without rounding whole numbers. */
export function parseJson(text: string): unknown {
  // Only long numbers can be rounded, and the reader of YAML is slower.
  return /[0-9]{16}/.test(text) ? parseDocument(text, { intAsBigInt: true, prettyErrors: false }).toJS() : JSON.parse(text);
}

/** Returns a value as YAML, with the keys of maps in their order. */
export function toYaml(value: unknown, sorted = true): string {
  return stringify(value, { version: "1.1", sortMapEntries: sorted, lineWidth: 0, aliasDuplicateObjects: false });
}

/** Returns the steps of a field path: spec.patches[0].path has spec, patches, 0 and path. */
export function stepsOf(field: string): string[] {
  return [...field.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map((match) => (match[1] ?? match[2] ?? "").replace(/^"(.*)"$/, "$1"));
}

/** Returns the place of a field, or of the nearest parent that is there. A key may have dots: it is then more than one step. */
export function rangeOf(parsed: ParsedText, steps: (string | number)[]): { from: number; to: number; node: Node | null } {
  let node = parsed.document.contents as Node | null;
  for (let i = 0; i < steps.length; ) {
    let next: Node | undefined;
    let stepCount = 1;
    if (isSeq(node)) next = node.items[Number(steps[i])] as Node | undefined;
    else if (isMap(node)) {
      for (stepCount = Math.min(8, steps.length - i); stepCount > 0 && !next; stepCount--) {
        const key = steps.slice(i, i + stepCount).join(".");
        const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
        if (pair) {
          next = (pair.value ?? pair.key) as Node;
          break;
        }
      }
    }
    if (!next) break;
    node = next;
    i += stepCount;
  }
  const range = node?.range;
  if (!range) return { from: 0, to: Math.min(1, parsed.text.length), node };
  // A block is marked at its first line.
  const end = parsed.text.indexOf("\n", range[0]);
  const to = isScalar(node) ? range[1] : Math.min(range[1], end < 0 ? range[1] : end);
  return { from: range[0], to: Math.max(to, range[0]), node };
}

/** Returns the steps to the field at an offset: the innermost one whose line or block has it. */
export function stepsAt(parsed: ParsedText, offset: number): (string | number)[] {
  const steps: (string | number)[] = [];
  let node = parsed.document.contents as Node | null;
  const holds = (from: number | undefined, to: number | undefined) => from !== undefined && to !== undefined && from <= offset && offset <= to;
  for (;;) {
    let next: Node | null = null;
    if (isMap(node)) {
      for (const pair of node.items) {
        const key = pair.key as Node | null;
        const value = pair.value as Node | null;
        if (isScalar(key) && holds(key.range?.[0], value?.range?.[2] ?? key.range?.[2])) {
          steps.push(String(key.value));
          next = holds(value?.range?.[0], value?.range?.[2]) ? value : null;
        }
      }
    } else if (isSeq(node)) {
      const i = node.items.findIndex((item) => holds((item as Node).range?.[0], (item as Node).range?.[2]));
      if (i >= 0) {
        steps.push(i);
        next = node.items[i] as Node;
      }
    }
    if (!next) return steps;
    node = next;
  }
}

/** Returns the place of a line and a column in the text of a field, both counted from 1, or the place of the whole field. */
export function rangeIn(parsed: ParsedText, steps: (string | number)[], line: number, column: number): { from: number; to: number } {
  const { from, to, node } = rangeOf(parsed, steps);
  if (line !== 1 || column < 1 || !isScalar(node) || typeof node.value !== "string") return { from, to };
  const source = parsed.text.slice(from, to);
  const quoted = source.startsWith('"') || source.startsWith("'") ? 1 : 0;
  if (source.slice(quoted, quoted + node.value.length) !== node.value) return { from, to };
  const position = Math.min(from + quoted + column - 1, to);
  return { from: position, to: Math.min(position + 1, to) };
}

/** Returns the line of a place, from 1. */
export function lineOf(text: string, place: number): number {
  return text.slice(0, place).split("\n").length;
}

/**
 * Returns an object without what a Secret has in it. An object without a kind that has data may be one. Null: the text cannot be
 * read, so that nobody knows what is secret.
 */
export function maskSecrets(text: string): string | null {
  const { value, findings } = parseText(text);
  if (findings.length > 0) return null;
  let masked = false;
  const mask = (value: unknown, top: boolean): unknown => {
    if (Array.isArray(value)) return value.map((item) => mask(item, false));
    if (!isFields(value)) return value;
    const copy: Fields = Object.fromEntries(Object.entries(value).map(([key, field]) => [key, mask(field, false)]));
    if (value.kind !== "Secret" && !(top && value.kind === undefined && (value.data !== undefined || value.stringData !== undefined))) return copy;
    masked = true;
    // "Kioq" is "***" in base64.
    for (const [name, by] of [["data", "Kioq"], ["stringData", "***"]] as const) {
      if (isFields(copy[name])) copy[name] = Object.fromEntries(Object.keys(copy[name]).map((key) => [key, by]));
      else if (copy[name] !== undefined) copy[name] = by;
    }
    const meta = copy.metadata;
    // kubectl apply keeps the whole object there.
    if (isFields(meta) && isFields(meta.annotations)) delete meta.annotations["kubectl.kubernetes.io/last-applied-configuration"];
    return copy;
  };
  const result = mask(value, true);
  return masked ? toYaml(result, false) : text;
}
