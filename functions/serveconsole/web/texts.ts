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

/** Text that is written from the right, or that changes the direction. */
const rightToLeft = /[\u0590-\u08ff\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Returns a text without the characters that turn the direction of what follows, or end a part of its own. Source: UAX #9, 2. */
export const withoutTurns = (value: string) => value.replace(/[\u202a-\u202e\u2066-\u2069]/g, "");

/** Returns a value as a part of a text whose order it does not change, in whatever direction it is written. Source: UAX #9, 2.7. */
const isolate = (value: string) => (rightToLeft.test(value) ? `\u2068${withoutTurns(value)}\u2069` : value);

/** Returns a text with the values in place of their names in braces. */
export function text(name: Text, values: Record<string, string | number> = {}): string {
  return (texts[name] ?? name).replace(/\{(\w+)\}/g, (whole, key: string) => {
    const value = values[key];
    return value === undefined ? whole : typeof value === "number" ? numbers.format(value) : isolate(value);
  });
}
