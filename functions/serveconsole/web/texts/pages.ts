import english from "./en-pages.json";

/** The texts of the pages that are loaded by those who open them. */
export const pageTexts: Record<string, string> = english;
