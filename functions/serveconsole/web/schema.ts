import { ask } from "./api";

/** A part of the description of the API, as far as the console reads it. */
interface Schema {
  $ref?: string;
  allOf?: Schema[];
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
}

/** What is known about a field. */
export interface Help {
  path: string;
  type: string;
  description: string;
  values: string[];
  /** The names of the fields in it. */
  fields: string[];
}

let schemas: Promise<Record<string, Schema>> | null = null;

/** Reads the description of the API, once. A failure is repeated by the next caller. */
function read(): Promise<Record<string, Schema>> {
  schemas ??= ask<{ components: { schemas: Record<string, Schema> } }>("/openapi/v3/apis/management.platform.sh/v1").then((api) => api.components.schemas);
  schemas.catch(() => (schemas = null));
  return schemas;
}

/** Returns what is known about a field of a kind, or null if there is no such field. */
export async function helpFor(kind: string, steps: (string | number)[]): Promise<Help | null> {
  const all = await read();
  const resolved = (of: Schema | undefined): Schema | undefined => {
    for (let i = 0; of && i < 10; i++) {
      const ref: string | undefined = of.$ref ?? (of.allOf?.length === 1 ? of.allOf[0]?.$ref : undefined);
      if (!ref) return of;
      const target: Schema | undefined = all[ref.slice(ref.lastIndexOf("/") + 1)];
      // What is said about the field is better than what is said about its type.
      of = target && { ...target, description: of.description ?? target.description };
    }
    return of;
  };
  const name = Object.keys(all).find((one) => one.endsWith(`.${kind}`));
  let at = resolved(name ? all[name] : undefined);
  for (const step of steps) {
    at = resolved(typeof step === "number" ? at?.items : at?.properties?.[step] ?? at?.additionalProperties);
    if (!at) return null;
  }
  if (!at) return null;
  const items = resolved(at.items);
  return {
    path: steps.map((step, i) => (typeof step === "number" ? `[${step}]` : i > 0 ? `.${step}` : step)).join(""),
    type: at.type === "array" ? `list of ${items?.type ?? "object"}` : at.type ?? "object",
    description: at.description ?? "",
    values: (at.enum ?? []).map(String),
    fields: Object.keys(at.properties ?? items?.properties ?? {}).sort(),
  };
}
