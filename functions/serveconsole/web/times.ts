import { signal } from "@preact/signals";

/** The time, which advances every ten seconds while the tab is visible. What reads it stays right without a request. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);

const units: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** Says how far a time is from now: "in 3 days", "5 min. ago". */
export function distance(time: string): string {
  const seconds = Math.round((Date.parse(time) - Math.max(now.value, Date.now())) / 1000);
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size * 2 || unit === "second") return words.format(Math.trunc(seconds / size), unit);
  }
  return time;
}

// Making a format takes longer than using it.
const minutes = new Intl.DateTimeFormat("en", { timeStyle: "short" });
const seconds = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

/** Says the hour and the minute of a time in the zone of the reader. */
export function clock(time: string): string {
  return minutes.format(new Date(time));
}

/** Says a time in the zone of the reader. */
export function exact(time: string): string {
  return seconds.format(new Date(time));
}
