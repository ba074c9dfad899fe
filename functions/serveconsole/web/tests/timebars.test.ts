import assert from "node:assert/strict";
import { test } from "node:test";
import { countInBars, stepOf } from "../parts/timebars";

const hour = 3_600_000;

test("a period has few bars", () => {
  for (const [period, step] of [[0, "minutes"], [2 * hour, "minutes"], [3 * hour, "hour"], [36 * hour, "hour"], [37 * hour, "day"], [30 * 24 * hour, "day"], [40 * 24 * hour, "week"]] as const) {
    assert.equal(stepOf(period), step, `${period / hour} h`);
  }
});

test("things are counted in the hour, the day and the week in which they are", () => {
  const at = (day: number, hours: number, minutes = 0) => new Date(2027, 2, day, hours, minutes).getTime();
  const things = [
    { instant: at(4, 9, 59), isUpper: false }, { instant: at(4, 10), isUpper: true }, { instant: at(4, 10, 59), isUpper: false }, { instant: at(5, 0), isUpper: false },
    // Outside of the period.
    { instant: at(1, 0), isUpper: false },
  ];
  const counts = (bars: ReturnType<typeof countInBars>) => bars.map(({ lower, upper }) => [lower, upper]);
  assert.deepEqual(counts(countInBars("hour", at(4, 9, 30), at(4, 11, 10), things)), [[1, 0], [1, 1], [0, 0]]);
  assert.deepEqual(counts(countInBars("day", at(4, 9, 30), at(5, 0), things)), [[2, 1], [1, 0]]);
  // March 4th, 2027 is a Thursday: the week begins on the 1st.
  assert.deepEqual(counts(countInBars("week", at(4, 9), at(8, 0), things)), [[4, 1], [0, 0]]);
  assert.deepEqual(countInBars("minutes", at(4, 9, 58), at(4, 10), []).map(({ start }) => start), [at(4, 9, 55), at(4, 10)]);
});

test("each bar begins where the one before ends, also when the clocks change", () => {
  // A year has each change of the clocks of the time zone in which the test runs.
  for (const step of ["day", "week"] as const) {
    const bars = countInBars(step, new Date(2027, 0, 1).getTime(), new Date(2027, 11, 31, 23).getTime(), []);
    assert.equal(bars.length, step === "day" ? 365 : 53);
    for (const [i, { start, end }] of bars.entries()) {
      assert.equal(bars[i + 1]?.start ?? end, end);
      assert.equal(new Date(start).getHours(), 0);
    }
  }
});
