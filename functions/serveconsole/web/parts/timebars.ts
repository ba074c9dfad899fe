/** How many things there are from a time until another one, both in milliseconds. They are of two kinds: the lower and the upper part of the bar. */
export interface Bar {
  start: number;
  end: number;
  lower: number;
  upper: number;
}

/** How long a bar is, in the local time zone. */
export type Step = "minutes" | "hour" | "day" | "week";

const minute = 60_000;
/** The steps with the longest period that each of them divides into bars. The last one has no limit. */
const steps: [Step, number][] = [["minutes", 150 * minute], ["hour", 36 * 60 * minute], ["day", 36 * 1440 * minute], ["week", Infinity]];

/** Returns the shortest step that divides a period, in milliseconds, into few bars. */
export function stepOf(period: number): Step {
  return steps.find(([, longest]) => period <= longest)![0];
}

/** Returns the beginning of the step in which a time is. */
function beginningOf(step: Step, instant: number): Date {
  const time = new Date(instant);
  if (step === "minutes") time.setMinutes(time.getMinutes() - (time.getMinutes() % 5), 0, 0);
  else if (step === "hour") time.setMinutes(0, 0, 0);
  else time.setHours(0, 0, 0, 0);
  if (step === "week") time.setDate(time.getDate() - ((time.getDay() + 6) % 7));
  return time;
}

/** Returns the beginning of the next step. A day may have 23 or 25 hours. */
function nextOf(step: Step, beginning: Date): Date {
  const next = new Date(beginning);
  if (step === "day" || step === "week") next.setDate(next.getDate() + (step === "day" ? 1 : 7));
  else next.setTime(next.getTime() + (step === "hour" ? 60 : 5) * minute);
  return next;
}

/** Counts things in bars from the step of the first time to the step of the last one. Things outside of the period are not counted. */
export function countInBars(step: Step, first: number, last: number, things: { instant: number; isUpper: boolean }[]): Bar[] {
  const bars: Bar[] = [];
  for (let beginning = beginningOf(step, first); beginning.getTime() <= last;) {
    const next = nextOf(step, beginning);
    bars.push({ start: beginning.getTime(), end: next.getTime(), lower: 0, upper: 0 });
    beginning = next;
  }
  for (const { instant, isUpper } of things) {
    const bar = bars.find(({ start, end }) => instant >= start && instant < end);
    if (bar) bar[isUpper ? "upper" : "lower"]++;
  }
  return bars;
}
