import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { text, type Text } from "../shared";
import type { Bar, Step } from "./timebars";

const formats: Record<Step, [label: Intl.DateTimeFormat, tick: Intl.DateTimeFormat]> = {
  minutes: [new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" }), new Intl.DateTimeFormat("en", { timeStyle: "short" })],
  hour: [new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" }), new Intl.DateTimeFormat("en", { hour: "numeric" })],
  day: [new Intl.DateTimeFormat("en", { dateStyle: "medium" }), new Intl.DateTimeFormat("en", { month: "short", day: "numeric" })],
  week: [new Intl.DateTimeFormat("en", { dateStyle: "medium" }), new Intl.DateTimeFormat("en", { month: "short", day: "numeric" })],
};
const titles: Record<Step, Text> = { minutes: "bars.byMinutes", hour: "bars.byHour", day: "bars.byDay", week: "bars.byWeek" };

/** How many bars have a text below them, at most. */
const maxTicks = 6;
/** How high the picture of a bar is, in its own unit, and the least that a part is high. */
const height = 100;
const leastHeight = 4;

/** The picture of a bar. */
function Stack({ bar: { lower, upper }, most }: { bar: Bar; most: number }) {
  const heightOf = (count: number) => (count === 0 ? 0 : Math.max(leastHeight, (count / most) * (height - 2 * leastHeight)));
  const below = heightOf(lower);
  const above = heightOf(upper);
  return (
    <svg viewBox={`0 0 10 ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {lower > 0 && <rect x="1" width="8" y={height - below} height={below} />}
      {upper > 0 && <rect class="upper" x="1" width="8" y={height - below - above - (lower > 0 ? 2 : 0)} height={above} />}
    </svg>
  );
}

/** What the bars count, the text of a bar, and the names of its parts. */
interface Words {
  title: Text;
  bar: Text;
  lower: Text;
  upper: Text;
}

/**
 * Bars over time, of requests if there are no other words, with their texts and the table behind them. Children replace the table. With choose, each bar with a request is a button that calls it: the tab key reaches
 * one of them, and the arrow keys the others. The newest bar is at the end, and is in sight if the bars are wider than the page.
 */
export function Bars({ bars, step, words, choose, children }: { bars: Bar[]; step: Step; words?: Words; choose?: (bar: Bar) => void; children?: ComponentChildren }) {
  const plot = useRef<HTMLDivElement>(null);
  const current = useSignal<number | null>(null);
  const [label, tick] = formats[step];
  const { title: titleText, bar: barText, lower: lowerText, upper: upperText } = words ?? { title: titles[step], bar: "bars.bar", lower: "bars.permitted", upper: "bars.refused" };
  const title = text(titleText);
  const most = Math.max(1, ...bars.map(({ lower, upper }) => lower + upper));
  const filled = bars.filter(({ lower, upper }) => lower + upper > 0);
  const every = Math.ceil(bars.length / maxTicks);
  // The bar that the tab key reaches: the last one that had the focus, or the newest.
  const reached = filled.find(({ start }) => start === current.value)?.start ?? filled.at(-1)?.start;
  useLayoutEffect(() => { if (plot.current) plot.current.scrollLeft = plot.current.scrollWidth; }, [bars[0]?.start, bars.length]);
  const wordsOf = (bar: Bar) => text(barText, { time: label.format(bar.start), lower: bar.lower, upper: bar.upper });
  const move = (event: KeyboardEvent) => {
    const buttons = [...(plot.current?.querySelectorAll("button") ?? [])];
    const place = buttons.indexOf(event.target as HTMLButtonElement);
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (place < 0 || next === undefined) return;
    event.preventDefault();
    buttons[next]?.focus();
  };
  return (
    <figure class="bars">
      <figcaption>
        {text("bars.most", { title, count: most })}
        <span class="quiet">
          {bars.some(({ lower }) => lower > 0) && <><span class="mark" aria-hidden="true" />{text(lowerText)} </>}
          {bars.some(({ upper }) => upper > 0) && <><span class="mark upper" aria-hidden="true" />{text(upperText)}</>}
        </span>
      </figcaption>
      <div
        ref={plot} class={choose ? "plot chosen" : "plot"} role={choose ? "toolbar" : "img"} onKeyDown={choose && move}
        aria-label={choose ? title : `${title}: ${filled.length === 0 ? text("bars.none") : filled.map(wordsOf).join("; ")}`}
      >
        {bars.map((bar, i) => (
          <span key={bar.start} title={wordsOf(bar)}>
            {choose && bar.lower + bar.upper > 0 ? (
              <button
                type="button" aria-label={wordsOf(bar)} tabIndex={bar.start === reached ? 0 : -1} onFocus={() => (current.value = bar.start)} onClick={() => choose(bar)}
              >
                <Stack bar={bar} most={most} />
              </button>
            ) : <Stack bar={bar} most={most} />}
            {(bars.length - 1 - i) % every === 0 && (i > 0 || every === 1) && <span class="tick" aria-hidden="true">{tick.format(bar.start)}</span>}
          </span>
        ))}
      </div>
      {filled.length > 0 && (
        <details>
          <summary>{text("bars.table")}</summary>
          <div class="table" tabIndex={0} role="region" aria-label={title}>
            <table>
              {children ?? (
                <>
                  <thead><tr><th scope="col">{text("bars.from")}</th><th scope="col">{text(lowerText)}</th><th scope="col">{text(upperText)}</th></tr></thead>
                  <tbody>
                    {filled.map((bar) => <tr key={bar.start}><th scope="row">{label.format(bar.start)}</th><td>{bar.lower}</td><td>{bar.upper}</td></tr>)}
                  </tbody>
                </>
              )}
            </table>
          </div>
        </details>
      )}
    </figure>
  );
}
