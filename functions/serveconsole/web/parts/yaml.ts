/** Texts that YAML reads as themselves, without quotes. */
const plain = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[a-z][\w./-]*$/i;

const scalar = (value: unknown) => (typeof value === "string" && plain.test(value) ? value : JSON.stringify(value));

/** Returns a value of JSON as YAML, without a line break at its end. */
export function yamlOf(value: unknown, indentation = ""): string {
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0) return scalar(value);
  const isNested = (inner: unknown) => typeof inner === "object" && inner !== null && Object.keys(inner).length > 0;
  if (Array.isArray(value)) return value.map((item) => `${indentation}- ${yamlOf(item, `${indentation}  `).trimStart()}`).join("\n");
  return Object.entries(value).map(([name, inner]) => (
    isNested(inner) ? `${indentation}${scalar(name)}:\n${yamlOf(inner, Array.isArray(inner) ? indentation : `${indentation}  `)}` : `${indentation}${scalar(name)}: ${scalar(inner)}`
  )).join("\n");
}
