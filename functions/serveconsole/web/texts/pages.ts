import english from "./en-pages.json";

/** The texts of the pages that are scripts of their own. */
export const pageTexts: Record<string, string> = english;
