import { useSignal } from "@preact/signals";
import { text, type Text } from "../texts";

/** A button that copies the text that its function returns. Copied runs when that worked. */
export function CopyButton({ content, label, copied }: { content: () => string; label?: string; copied?: () => void }) {
  const outcome = useSignal<Text | null>(null);
  return (
    <button
      type="button"
      onClick={async () => {
        outcome.value = await navigator.clipboard.writeText(content()).then(() => "action.copied" as const, () => "action.copyFailed" as const);
        if (outcome.value === "action.copied") copied?.();
        setTimeout(() => (outcome.value = null), 2000);
      }}
    >
      <span aria-live="polite">{outcome.value ? text(outcome.value) : (label ?? text("action.copy"))}</span>
    </button>
  );
}

/** The command that does what the page does. */
export function Command({ command, label }: { command: string; label?: string }) {
  return (
    <div class="kubectl">
      <span class="quiet">{label ?? text("command.kubectl")}</span>
      <code>{command}</code>
      <CopyButton content={() => command} />
    </div>
  );
}

/** Quotes a word for a POSIX shell. */
export function quoteForShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns the command that edits an object, or that shows it to those who may not change it. */
export function objectCommand(object: string, mayChange: boolean | undefined): string {
  return mayChange ? `kubectl edit ${object}` : `kubectl get ${object} -o yaml`;
}
