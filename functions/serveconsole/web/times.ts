import { signal } from "@preact/signals";

/** A day, in milliseconds. */
export const day = 86_400_000;

/** The current time, in milliseconds. It advances every ten seconds while the tab is visible and when it becomes visible, so that texts of times are right. */
export const currentTime = signal(Date.now());
const advance = () => {
  if (!document.hidden) currentTime.value = Date.now();
};
setInterval(advance, 10_000);
document.addEventListener("visibilitychange", advance);

const units: [Intl.RelativeTimeFormatUnitSingular, number][] = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** Returns the distance of a time from now, rounded: "in 3 days", "5 min. ago". A unit begins at one and a half of it. */
export function formatDistance(time: string): string {
  const seconds = Math.round((Date.parse(time) - Math.max(currentTime.value, Date.now())) / 1000);
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size * 1.5 || unit === "second") return relative.format(Math.round(seconds / size), unit);
  }
  return time;
}

const unitSeconds: Record<string, number> = { d: 86_400, h: 3600, m: 60, s: 1, ms: 0.001 };

/** Returns the seconds of a length of time as the API writes it, such as 1h30m. */
export function secondsOf(duration = ""): number {
  return [...duration.matchAll(/([\d.]+)(ms|[dhms])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * unitSeconds[unit!]!, 0);
}

/** Returns a length of time in its largest whole unit: "10 minutes", "90 seconds". */
export function formatDuration(seconds: number): string {
  const [unit, size] = units.find(([, size]) => seconds % size === 0)!;
  return new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: "long" }).format(seconds / size);
}

// Creating a format takes longer than using it.
const timeOfDay = new Intl.DateTimeFormat("en", { timeStyle: "short" });
const dateAndTime = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

/** Returns the hour and the minute of a time in the local time zone. */
export function formatTime(time: string): string {
  return timeOfDay.format(new Date(time));
}

/** Returns the date and the time in the local time zone. */
export function formatDateTime(time: string): string {
  return dateAndTime.format(new Date(time));
}
