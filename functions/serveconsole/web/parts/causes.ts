import type { Cause } from "../api";
import { text } from "../texts";

/** Reports whether a path is a field or is below it. */
export const isWithin = (path: string | undefined, field: string) => path !== undefined && (path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`));

/** Returns a message without the value that it repeats: the value stands in the field or is marked in the text. */
export function withoutValue(message: string): string {
  return message.replace(/^(?:Invalid value|Duplicate value|Unsupported value): (?:"(?:[^"\\]|\\.)*"|[^":\s]+)(?:: |$)/s, (match) => (match.endsWith(": ") ? "" : match)).replace(/^Invalid value: (?!")/, "");
}

/** Returns the reason in a message: what is left without the name of its type, its value and its regular expression. */
function reasonIn(message: string): string {
  return withoutValue(message)
    .replace(/^(?:Invalid value|Duplicate value|Unsupported value): "(?:[^"\\]|\\.)*"$/s, "")
    .replace(/^(?:Required value|Duplicate value|Unsupported value|Forbidden|Too long|Too many)(?:: |$)/, "").replace(/^\d+: /, "")
    .replace(/ \((?:e\.g\. .*, )?regex used for validation is '.*'\)$/s, "");
}

/** Returns the values in a text, as people list them. */
function listed(values: string): string {
  const names = [...values.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, name = ""]) => name);
  const last = names.pop() ?? "";
  return names.length > 0 ? text("wrong.or", { names: names.join(", "), last }) : last;
}

/** Says what is wrong with a field and what is right. Where the API says more than the console knows, it is the reason of the API. */
function wordsOf({ reason = "", message = "" }: Cause): string {
  const why = reasonIn(message);
  const [, most] = /^(?:may not be more than|must be no more than|must have at most) (\d+) /.exec(why) ?? [];
  if (reason === "AlreadyExists") return text(message.startsWith("object is being deleted") ? "wrong.beingDeleted" : "wrong.taken");
  if (why === "unknown field") return text("wrong.unknownField");
  if (why === "duplicate field") return text("wrong.duplicateField");
  if (/RFC 1123 subdomain/.test(why)) return text("wrong.name");
  if (/RFC 1123 label/.test(why)) return text("wrong.label");
  if (why.startsWith("supported values: ")) return text("wrong.supported", { names: listed(why) });
  if (most) return text(reason === "FieldValueTooMany" ? "wrong.tooMany" : why.endsWith("bytes") ? "wrong.tooLongBytes" : "wrong.tooLong", { count: Number(most) });
  if (why) return why;
  switch (reason) {
    case "FieldValueRequired": return text("wrong.required");
    case "FieldValueDuplicate": return text("wrong.duplicate");
    case "FieldValueForbidden": return text("wrong.forbidden");
    default: return message;
  }
}

/** What a form says about a cause. */
interface Saying {
  /** The path below the field of the form. Empty: it is that field. */
  below: string;
  says: string;
}

/** Returns what a form says about a cause at one of its fields. Of several values in a field, it names the wrong one. */
function sayingOf(cause: Cause, path: string): Saying {
  const below = (cause.field ?? "").slice(path.length).replace(/^\./, "");
  const says = wordsOf(cause);
  if (!/^\[\d+\]$/.test(below)) return { below, says };
  const [, value] = /^[A-Z][a-z ]+: "((?:[^"\\]|\\.)*)"/s.exec(cause.message ?? "") ?? [];
  return { below: "", says: value === undefined ? says : text("wrong.valueIs", { value: value.replace(/\\(["\\])/g, "$1"), says }) };
}

/** Returns what a form says about the causes at a field, each of which has the path of the field. Of two rules for a name, it is the stricter one. */
export function sayingsOf(causes: [cause: Cause, path: string][]): Saying[] {
  const isLabel = ({ message = "" }: Cause) => message.includes("RFC 1123 label");
  const said = causes.filter(([{ field, message = "" }]) => !message.includes("RFC 1123 subdomain") || !causes.some(([other]) => other.field === field && isLabel(other)));
  const sayings = said.map(([cause, path]) => sayingOf(cause, path));
  return sayings.filter(({ below, says }, i) => sayings.findIndex((other) => other.below === below && other.says === says) === i);
}
