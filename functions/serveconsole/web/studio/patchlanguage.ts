import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { yamlLanguage } from "@codemirror/lang-yaml";
import { LanguageSupport } from "@codemirror/language";
import type { EditorState, Extension } from "@codemirror/state";
import { hoverTooltip, keymap } from "@codemirror/view";
import { parseMixed } from "@lezer/common";
import { parser } from "@lezer/javascript";
import { complete, explain, expressionFields } from "./language";

const expressionParser = parser.configure({ top: "SingleExpression" });

/** YAML whose expressions are coloured as JavaScript. */
const withExpressions = new LanguageSupport(yamlLanguage.configure({
  wrap: parseMixed((node, input) => {
    if (node.name !== "Literal" && node.name !== "QuotedLiteral" && node.name !== "BlockLiteralContent") return null;
    let pair = node.node.parent;
    while (pair && pair.name !== "Pair" && pair.to - pair.from < 20_000) pair = pair.parent;
    const key = pair?.name === "Pair" ? pair.getChild("Key") : null;
    if (!key || node.from < key.to || !expressionFields.includes(input.read(key.from, key.to))) return null;
    if (node.name !== "QuotedLiteral") return { parser: expressionParser };
    return node.to - node.from < 3 ? null : { parser: expressionParser, overlay: [{ from: node.from + 1, to: node.to - 1 }] };
  }),
}));
/** The editor's support for patches: colours, completion and help. Values are those that expressions will see. */
export function patchLanguage(values: () => Record<string, string>): Extension {
  const textOf = (state: EditorState) => state.doc.toString();
  return [
    withExpressions,
    autocompletion({
      // The enter key writes a new line, unless a person has chosen something.
      selectOnOpen: false, icons: false, aboveCursor: false,
      override: [(context: CompletionContext): CompletionResult | null => complete(textOf(context.state), context.pos, context.explicit, values())],
    }),
    keymap.of(completionKeymap),
    hoverTooltip((view, position) => {
      const found = explain(textOf(view.state), position);
      if (!found) return null;
      return {
        pos: found.from, end: found.to, above: true,
        create() {
          const dom = document.createElement("div");
          dom.className = "cm-help";
          const name = dom.appendChild(document.createElement("strong"));
          name.textContent = found.term.signature;
          dom.append(`: ${found.term.help}`);
          const value = values()[found.term.name];
          if (value !== undefined) dom.append(` = ${value}`);
          return { dom };
        },
      };
    }),
  ];
}
