import { useSignal } from "@preact/signals";
import { text, type Text } from "../texts";

/** A button that copies what its function returns. */
export function Copy({ what, label }: { what: () => string; label?: string }) {
  const done = useSignal<Text | null>(null);
  return (
    <button
      type="button"
      onClick={async () => {
        done.value = await navigator.clipboard.writeText(what()).then(() => "copied" as const, () => "copyFailed" as const);
        setTimeout(() => (done.value = null), 2000);
      }}
    >
      <span aria-live="polite">{done.value ? text(done.value) : (label ?? text("copy"))}</span>
    </button>
  );
}

/** The command that does the same as the page. */
export function AsKubectl({ command, label }: { command: string; label?: string }) {
  return (
    <div class="kubectl">
      <span class="quiet">{label ?? text("asKubectl")}</span>
      <code>{command}</code>
      <Copy what={() => command} />
    </div>
  );
}

/** Quotes a word for a shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
