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
  const oldLines = a.slice(start, a.length - end);
  const newLines = b.slice(start, b.length - end);
  const lines: Line[] = a.slice(0, start).map((line) => [" ", line]);
  const width = newLines.length + 1;
  if (oldLines.length * newLines.length > 4_000_000) {
    lines.push(...oldLines.map((line): Line => ["-", line]), ...newLines.map((line): Line => ["+", line]));
  } else {
    // common[i * width + j] is how many lines the rests of both have in common, from i and from j.
    const common = new Uint32Array((oldLines.length + 1) * width);
    for (let i = oldLines.length - 1; i >= 0; i--) {
      for (let j = newLines.length - 1; j >= 0; j--) {
        common[i * width + j] = oldLines[i] === newLines[j]
          ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
      }
    }
    for (let i = 0, j = 0; i < oldLines.length || j < newLines.length; ) {
      if (i < oldLines.length && j < newLines.length && oldLines[i] === newLines[j]) {
        lines.push([" ", oldLines[i]!]);
        i++;
        j++;
      } else if (i < oldLines.length && (j >= newLines.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) lines.push(["-", oldLines[i++]!]);
      else lines.push(["+", newLines[j++]!]);
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
