import english from "./texts/en.json";
import type pages from "./texts/en-pages.json";

/** The names of the texts of the console. */
export type Text = keyof typeof english | keyof typeof pages;

const texts: Record<string, string> = { ...english };

/** Loads the texts of the pages that are scripts of their own. */
export async function loadTexts(): Promise<void> {
  Object.assign(texts, (await import("./texts/pages")).pageTexts);
}

const numbers = new Intl.NumberFormat("en");

/** Returns a text with the values in place of their names in braces. */
export function text(name: Text, values: Record<string, string | number> = {}): string {
  return (texts[name] ?? name).replace(/\{(\w+)\}/g, (whole, key: string) => {
    const value = values[key];
    return value === undefined ? whole : typeof value === "number" ? numbers.format(value) : value;
  });
}
