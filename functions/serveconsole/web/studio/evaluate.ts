import { group, send, type Cause, type Refusal } from "../api";
import { withoutValue } from "../parts/causes";
import { parseJson, isFields, toJson, rangeIn, rangeOf, stepsOf, type Fields, type Finding, type ParsedText } from "./documents";
import { expressionFields } from "./language";
import type { Work } from "./share";

/** The path of evaluations in the API. */
export const evaluationsPath = `${group}/syncpatchevaluations`;

export type Direction = "TenantToHost" | "HostToTenant";

/** The spec of an evaluation, as it is sent and as a test file has it. */
export interface Spec {
  direction: Direction;
  namespaceMode: string;
  naming?: string;
  patches?: unknown[];
  resource?: string;
  configuration?: unknown;
  object: unknown;
  context: Fields;
  checks?: string[];
}

export interface Match {
  path: string;
  outcome: string;
  reason?: string;
  before?: unknown;
  after?: unknown;
}

export interface Reference {
  apiVersion?: string;
  kind?: string;
  name: string;
  namespace?: string;
  hostName?: string;
  hostNamespace?: string;
}

/** The fields of the status of an evaluation that the studio reads. */
export interface Status {
  object?: unknown;
  patches?: { index: bigint | number; path: string; outcome: string; reason?: string; matches?: Match[]; omittedMatches?: bigint | number }[];
  references?: Reference[];
  error?: { index: bigint | number; path: string; message: string; line?: bigint | number; column?: bigint | number };
  warnings?: string[];
  checks?: { type: string; passed: boolean; reason?: string; differences?: { path: string; want?: unknown; got?: unknown }[] }[];
}

/** A list of patches in a configuration: its name in the API, and the steps to it. */
export interface Resource {
  name: string;
  steps: string[];
}

/** Returns the lists of patches in a configuration. */
export function resourcesOf(configuration: unknown): Resource[] {
  const resources: Resource[] = [];
  const walk = (value: unknown, steps: string[]) => {
    if (!isFields(value)) return;
    if (steps.length > 1 && Array.isArray(value.patches)) resources.push({ name: steps.join("."), steps: ["sync", ...steps, "patches"] });
    if (steps.length < 3) for (const [key, child] of Object.entries(value)) if (key !== "patches") walk(child, [...steps, key]);
  };
  const sync = isFields(configuration) ? configuration.sync : undefined;
  if (isFields(sync)) for (const side of ["toHost", "fromHost"]) walk(sync[side], [side]);
  return resources;
}

const patchFields = ["path", "expression", "reverseExpression", "reference", "labels"];

/** Returns the steps to the first map of a configuration that looks like a patch: its fields are those of a patch, or it is an item of patches. */
export function stepsToPatch(value: unknown, steps: string[] = []): string[] | null {
  if (isFields(value)) {
    const fields = patchFields.filter((field) => field in value);
    if (fields.length > 1 || fields.some((field) => expressionFields.includes(field)) || (fields.length > 0 && steps.at(-2) === "patches")) return steps;
  }
  if (typeof value !== "object" || value === null) return null;
  for (const [key, child] of Object.entries(value)) {
    const found = stepsToPatch(child, [...steps, key]);
    if (found) return found;
  }
  return null;
}

/** Returns the list of patches for the kind of an object, or the first one. */
export function resourceFor(resources: Resource[], object: unknown): Resource | undefined {
  const kind = isFields(object) && typeof object.kind === "string" ? object.kind.toLowerCase() : "";
  const version = isFields(object) && typeof object.apiVersion === "string" ? object.apiVersion : "";
  const plurals = [kind, `${kind}s`, `${kind}es`, kind.replace(/y$/, "ies")];
  return resources.find(({ name }) => {
    const key = name.replace(/^(toHost|fromHost)\./, "");
    const custom = key.startsWith("customResources.") ? key.slice("customResources.".length).split("/")[0] : undefined;
    if (custom !== undefined) return plurals.some((plural) => custom === `${plural}.${version.split("/")[0]}`);
    return plurals.includes(key.slice(key.lastIndexOf(".") + 1).toLowerCase());
  }) ?? resources[0];
}

/** Returns the spec of the evaluation of a direction. */
export function specOf(
  work: Work, configuration: unknown, list: Resource | undefined, direction: Direction, tenant: unknown, host: unknown, references: Reference[],
): Spec {
  const source = JSON.stringify([work.configuration]);
  const context: Fields = { tenant: { name: work.name, namespace: work.namespace, ...(isFields(configuration) ? { config: configuration } : {}) } };
  // Most expressions do not read these objects, and a test file is easier to read without them.
  if (source.includes("hostObject") && host !== null) context.hostObject = host;
  if (source.includes("virtualObject") && tenant !== null) context.virtualObject = tenant;
  if (direction === "HostToTenant" && references.length > 0) context.references = references;
  return {
    direction, namespaceMode: work.mode,
    // The API has the same default, and a test file is easier to read without it.
    ...(work.naming === "neutral" ? {} : { naming: work.naming }),
    ...(Array.isArray(configuration) ? { patches: configuration } : { resource: list?.name ?? "", configuration }),
    object: direction === "TenantToHost" ? tenant : host, context, checks: ["RoundTrip", "Fixpoint"],
  };
}

/** Returns the spec of an evaluation of the first patches alone. Its resource stays: which expressions are evaluated depends on it. */
export function withFirstPatches(spec: Spec, list: Resource | undefined, count: number): Spec {
  const { checks: _, ...rest } = spec;
  if (spec.patches) return { ...rest, patches: spec.patches.slice(0, count) };
  const cut = (value: unknown, steps: string[]): unknown => {
    if (steps.length === 0) return Array.isArray(value) ? value.slice(0, count) : value;
    return isFields(value) ? { ...value, [steps[0]!]: cut(value[steps[0]!], steps.slice(1)) } : value;
  };
  return { ...rest, configuration: cut(spec.configuration, list?.steps ?? []) };
}

/**
 * Returns the field of a patch whose expression is evaluated. Below fromHost, most resources have their expression evaluated from host to
 * tenant, and the reverse expression of a patch that has no other.
 */
function expressionField(spec: Spec, list: Resource | undefined, index: number): string {
  if (spec.direction === "TenantToHost") return "expression";
  if (!/^fromHost\.(?!configMaps$|secrets$|customResources\.)/.test(spec.resource ?? "")) return "reverseExpression";
  const patches = (list?.steps ?? []).reduce<unknown>((value, step) => (isFields(value) ? value[step] : undefined), spec.configuration);
  const patch: unknown = Array.isArray(patches) ? patches[index] : undefined;
  return isFields(patch) && patch.expression === undefined ? "reverseExpression" : "expression";
}

/** Evaluates a spec. */
export async function evaluate(spec: Spec, signal: AbortSignal): Promise<Status> {
  const body = toJson({ apiVersion: "management.platform.sh/v1", kind: "SyncPatchEvaluation", spec });
  const answer = await send(`${evaluationsPath}?fieldValidation=Strict`, { method: "POST", body, signal });
  return (parseJson(await answer.text()) as { status?: Status }).status ?? {};
}

/** The findings of one evaluation, by the text that contains their place. Other are the causes without a place. */
export interface Findings {
  configuration: Finding[];
  object: Finding[];
  other: Cause[];
}

/** Returns the patches that did nothing although they have something for this direction: nothing matches their path, or the object is not synced. */
export function idlePatches(status: Status): NonNullable<Status["patches"]> {
  return (status.patches ?? []).filter(({ outcome, reason }) => outcome === "Skipped"
    && !/^(the patch has no |labels are the same on both sides |patch \d+ failed)/.test(reason ?? ""));
}

/** Returns a message about a list of patches. It begins with the name of the list if there are lists below toHost and below fromHost. */
function withListName(resources: Resource[], list: Resource | undefined, message: string): string {
  return list && new Set(resources.map(({ steps: [, side] }) => side)).size > 1 ? `${list.name}: ${message}` : message;
}

function addFinding(findings: Findings, configuration: ParsedText, list: Resource | undefined, object: ParsedText, cause: Cause, severity: Finding["severity"]) {
  const steps = stepsOf(cause.field ?? "");
  const message = withoutValue(cause.message ?? "");
  const parsed = steps[1] === "object" ? object : configuration;
  const fieldSteps = steps[0] !== "spec" ? null : steps[1] === "object" || steps[1] === "configuration" || steps[1] === "patches" ? steps.slice(2) : null;
  if (!fieldSteps) {
    findings.other.push(cause);
    return;
  }
  const [, line, column] = /line (\d+), column (\d+)/.exec(message) ?? [];
  const { from, to } = line && column ? rangeIn(parsed, fieldSteps, Number(line), Number(column)) : rangeOf(parsed, fieldSteps);
  const resources = parsed === configuration ? resourcesOf(configuration.value) : [];
  const ownList = resources.find(({ steps }) => steps.every((step, i) => step === fieldSteps[i]));
  const shownSteps = fieldSteps.slice(ownList ? Math.min(ownList.steps.length, fieldSteps.length - 1) : list && parsed === configuration ? -1 : 0);
  // A mistake in an expression is marked at its line and column. The name of the field says no more.
  const prefix = fieldSteps.length > 0 && !line ? `${shownSteps.join(".")}: ` : "";
  findings[parsed === object ? "object" : "configuration"].push({ from, to, severity, message: withListName(resources, ownList, prefix + message.replace(/^line \d+, column \d+: /, "")) });
}

/** Returns the causes of a refusal, at their places. */
export function findingsOf(refusal: Refusal, configuration: ParsedText, list: Resource | undefined, object: ParsedText): Findings {
  const findings: Findings = { configuration: [], object: [], other: [] };
  for (const cause of refusal.causes) addFinding(findings, configuration, list, object, cause, "error");
  return findings;
}

/** Returns the failure and the warnings of an evaluation, at their places. */
export function failuresOf(status: Status, spec: Spec, configuration: ParsedText, list: Resource | undefined, object: ParsedText): Findings {
  const findings: Findings = { configuration: [], object: [], other: [] };
  const [ownList, listSteps] = spec.patches ? [undefined, []] : [list, list?.steps ?? []];
  const withName = (message: string) => withListName(resourcesOf(configuration.value), ownList, message);
  if (status.error) {
    const { index, path, message, line, column } = status.error;
    const steps = [...listSteps, String(index), expressionField(spec, list, Number(index))];
    findings.configuration.push({ ...rangeIn(configuration, steps, Number(line ?? 0), Number(column ?? 0)), severity: "error", message: withName(`${path}: ${message}`) });
  }
  for (const { index, reason } of idlePatches(status)) {
    const { from, to } = rangeOf(configuration, [...listSteps, String(index), "path"]);
    findings.configuration.push({ from, to, severity: "warning", message: withName(reason ?? "") });
  }
  for (const warning of status.warnings ?? []) {
    const [, field, message] = /^(spec\.\S+): (.*)$/s.exec(warning) ?? [];
    if (field) addFinding(findings, configuration, list, object, { field, message }, "warning");
    else findings.other.push({ message: warning });
  }
  return findings;
}
