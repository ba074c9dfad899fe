import { ask } from "./api";

/** The part of an OpenAPI schema that the console reads. */
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

/** The description of a field. */
export interface FieldHelp {
  path: string;
  type: string;
  description: string;
  values: string[];
  /** The names of its own fields. */
  fields: string[];
}

let description: Promise<Record<string, Schema>> | null = null;

/** Reads the OpenAPI document once. After a failure, the next caller reads it again. */
function readDescription(): Promise<Record<string, Schema>> {
  description ??= ask<{ components: { schemas: Record<string, Schema> } }>("/openapi/v3/apis/management.platform.sh/v1").then((api) => api.components.schemas);
  description.catch(() => (description = null));
  return description;
}

/** Returns the description of a field of a kind, or null if there is no such field. */
export async function readFieldHelp(kind: string, steps: (string | number)[]): Promise<FieldHelp | null> {
  const schemas = await readDescription();
  const resolve = (schema: Schema | undefined): Schema | undefined => {
    for (let i = 0; schema && i < 10; i++) {
      const ref: string | undefined = schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined);
      if (!ref) return schema;
      const target: Schema | undefined = schemas[ref.slice(ref.lastIndexOf("/") + 1)];
      // The description of the field is better than the description of its type.
      schema = target && { ...target, description: schema.description ?? target.description };
    }
    return schema;
  };
  const name = Object.keys(schemas).find((key) => key.endsWith(`.${kind}`));
  let field = resolve(name ? schemas[name] : undefined);
  for (const step of steps) {
    field = resolve(typeof step === "number" ? field?.items : field?.properties?.[step] ?? field?.additionalProperties);
    if (!field) return null;
  }
  if (!field) return null;
  const items = resolve(field.items);
  return {
    path: steps.map((step, i) => (typeof step === "number" ? `[${step}]` : i > 0 ? `.${step}` : step)).join(""),
    type: field.type === "array" ? `list of ${items?.type ?? "object"}` : field.type ?? "object",
    description: field.description ?? "",
    values: (field.enum ?? []).map(String),
    fields: Object.keys(field.properties ?? items?.properties ?? {}).sort(),
  };
}
