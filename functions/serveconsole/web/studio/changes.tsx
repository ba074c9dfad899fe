import { text } from "../texts";

type Line = [" " | "+" | "-", string];

/** Compares the lines of two texts. If too many lines differ to be compared, all of them count as changed. */
export function diffLines(before: string, after: string): Line[] {
  const a = before === "" ? [] : before.replace(/\n$/, "").split("\n");
  const b = after === "" ? [] : after.replace(/\n$/, "").split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const left = a.slice(start, a.length - end);
  const right = b.slice(start, b.length - end);
  const lines: Line[] = a.slice(0, start).map((line) => [" ", line]);
  const width = right.length + 1;
  if (left.length * right.length > 4_000_000) {
    lines.push(...left.map((line): Line => ["-", line]), ...right.map((line): Line => ["+", line]));
  } else {
    // common[i * width + j] is how many lines the rests of both have in common, from i and from j.
    const common = new Uint32Array((left.length + 1) * width);
    for (let i = left.length - 1; i >= 0; i--) {
      for (let j = right.length - 1; j >= 0; j--) {
        common[i * width + j] = left[i] === right[j]
          ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
      }
    }
    for (let i = 0, j = 0; i < left.length || j < right.length; ) {
      if (i < left.length && j < right.length && left[i] === right[j]) {
        lines.push([" ", left[i]!]);
        i++;
        j++;
      } else if (i < left.length && (j >= right.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) lines.push(["-", left[i++]!]);
      else lines.push(["+", right[j++]!]);
    }
  }
  return [...lines, ...a.slice(a.length - end).map((line): Line => [" ", line])];
}

const kinds = { "+": "added", "-": "removed", " ": "same" } as const;

/** An object, with the lines that have changed. */
export function Changes({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = diffLines(before, after);
  return (
    <div class="changes" role="region" aria-label={label} tabIndex={0}>
      {before === after && <p class="quiet">{text("studio.same")}</p>}
      <pre>{lines.map(([kind, line]) => <span class={kinds[kind]}>{`${kind} ${line}\n`}</span>)}</pre>
    </div>
  );
}
