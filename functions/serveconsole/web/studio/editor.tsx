import { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { search, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { effect, untracked, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { text } from "../texts";
import { lineOf, type Finding } from "./documents";

const highlighting = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.labelName, tags.typeName, tags.keyword, tags.number, tags.bool, tags.null], color: "var(--code-word)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-key)" },
  { tag: tags.regexp, color: "var(--code-text)" },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--paper)", color: "var(--text)", fontSize: "13px", borderRadius: "8px", border: "1px solid var(--edge)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, monospace', lineHeight: "1.5", maxHeight: "24rem", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--quiet)", border: "none", borderInlineEnd: "1px solid var(--line)", borderStartStartRadius: "7px", borderEndStartRadius: "7px" },
  ".cm-content, .cm-gutter": { minHeight: "9rem" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
  "& .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--text)", border: "1px solid var(--edge)", borderRadius: "6px" },
  ".cm-panels": { backgroundColor: "var(--ground)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panel.cm-search": { fontSize: "13px" },
  ".cm-panel.cm-search :is(input, button)": { minHeight: "24px", color: "var(--text)", backgroundColor: "var(--paper)", backgroundImage: "none", border: "1px solid var(--edge)", borderRadius: "6px" },
  ".cm-searchMatch": { backgroundColor: "color-mix(in srgb, var(--warning) 25%, transparent)" },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: "color-mix(in srgb, var(--warning) 50%, transparent)" },
  ".cm-help, .cm-completionInfo": { padding: "0.3rem 0.5rem", maxWidth: "30rem", lineHeight: "1.4" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--paper)" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "30rem" },
});

/** A text that the page puts into an editor. Each is an object of its own, so that the same text twice is put there twice. */
export interface Replacement {
  text: string;
}

/** Returns a text with the line ends of the editor: places in both are then the same. */
export function lineFeeds(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** Marks a change by the page. The page knows the text, so the editor does not report the change. */
const programChange = Annotation.define<true>();

/**
 * An editor of YAML, and the mistakes in it. The tab key leaves it. It is in a shadow root, where its styles need no exception of
 * the policy.
 *
 * The editor owns its text. The page writes into it only by a new replacement, and the editor takes that at once: what was rendered
 * may be older than what is typed, and is never written back.
 */
export function Editor(props: {
  label: string; findings: Finding[]; change: (text: string) => void;
  /** The text when the editor appears and, later, the text that the findings are about. */
  value: string;
  /** The last text that the page has put into the editor. */
  replacement: ReadonlySignal<Replacement>;
  /** Receives the offset of the cursor in the text. */
  cursor?: (offset: number) => void;
  readOnly?: boolean;
  /** The language, if it is more than YAML. It is read when the editor appears. */
  language?: Extension;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const change = useRef(props.change);
  change.current = props.change;
  const cursor = useRef(props.cursor);
  cursor.current = props.cursor;
  const rendered = props.replacement.peek();
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: props.value,
        extensions: [
          lineNumbers(), history(), drawSelection(), highlightActiveLine(), props.language ?? yaml(), search({ top: true }), syntaxHighlighting(highlighting), theme, indentUnit.of("  "),
          keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap]), EditorView.lineWrapping,
          // A browser that replaces a selection itself adds an inline style, which the policy refuses.
          EditorView.domEventHandlers({
            beforeinput(event, editor) {
              if (event.inputType !== "insertText" || event.data === null || editor.composing || editor.state.selection.main.empty) return false;
              editor.dispatch(editor.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
              event.preventDefault();
              return true;
            },
          }),
          EditorView.contentAttributes.of({ "aria-label": props.label, spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
          EditorState.readOnly.of(props.readOnly ?? false),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !update.transactions.some((transaction) => transaction.annotation(programChange))) change.current(update.state.doc.toString());
            if (update.docChanged || update.selectionSet || update.focusChanged) cursor.current?.(update.state.selection.main.head);
          }),
        ],
      }),
    });
    view.current = editor;
    let lastReplacement = rendered; // it is in the first text already
    const stop = effect(() => {
      const next = props.replacement.value;
      if (next === lastReplacement) return;
      lastReplacement = next;
      untracked(() => {
        const { doc } = editor.state;
        if (doc.toString() === next.text) return;
        // One undo reverts the replacement alone, and not what was typed before it.
        editor.dispatch({ changes: { from: 0, to: doc.length, insert: next.text }, annotations: [programChange.of(true), isolateHistory.of("full")] });
      });
    });
    return () => {
      stop();
      editor.destroy();
    };
  }, []);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const end = editor.state.doc.length;
    editor.dispatch(setDiagnostics(editor.state, props.findings.map((finding) => ({ ...finding, from: Math.min(finding.from, end), to: Math.min(finding.to, end) }))));
  }, [props.findings, props.value]);
  return (
    <div class="editor">
      <div ref={host} />
      {props.findings.length > 0 && (
        <ul class="findings" aria-label={text("studio.findings", { of: props.label })}>
          {props.findings.slice(0, 20).map((finding) => (
            <li class={finding.severity}>
              <button
                type="button" class="link"
                onClick={() => {
                  view.current?.dispatch({ selection: { anchor: finding.from, head: finding.to }, scrollIntoView: true });
                  view.current?.focus();
                }}
              >
                {text("studio.line", { line: lineOf(props.value, finding.from) })}
              </button>{" "}
              {finding.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
