import english from "./texts/en.json";

/** The names of the texts of the console. */
export type Text = keyof typeof english;

/** Returns a text, with the values in place of their names in braces. */
export function text(name: Text, values: Record<string, string | number> = {}): string {
  return english[name].replace(/\{(\w+)\}/g, (whole, key: string) => (key in values ? String(values[key]) : whole));
}
