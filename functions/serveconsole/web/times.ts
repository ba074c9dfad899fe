import { signal } from "@preact/signals";

/** The time, which advances every ten seconds while the tab is visible. What reads it stays right without a request. */
export const currentTime = signal(Date.now());
setInterval(() => {
  if (!document.hidden) currentTime.value = Date.now();
}, 10_000);

const units: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** Says how far a time is from now: "in 3 days", "5 min. ago". */
export function formatDistance(time: string): string {
  const seconds = Math.round((Date.parse(time) - Math.max(currentTime.value, Date.now())) / 1000);
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size * 2 || unit === "second") return relative.format(Math.trunc(seconds / size), unit);
  }
  return time;
}

// Making a format takes longer than using it.
const timeOfDay = new Intl.DateTimeFormat("en", { timeStyle: "short" });
const dateAndTime = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

/** Says the hour and the minute of a time in the zone of the reader. */
export function formatTime(time: string): string {
  return timeOfDay.format(new Date(time));
}

/** Says a time in the zone of the reader. */
export function formatDateTime(time: string): string {
  return dateAndTime.format(new Date(time));
}
