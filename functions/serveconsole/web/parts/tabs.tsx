import type { Signal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Command, Dialog, Problem, type Refusal, Warnings } from "../shared";

/** A tab: its name in the address, its title, and what it shows. */
interface Tab {
  name: string;
  title: string;
  content: () => ComponentChildren;
}

/** Tabs, of which one is chosen. Chosen is its name; without one, it is the first. The arrow keys, Home and End go from tab to tab. */
function Tabs({ label, tabs, chosen }: { label: string; tabs: Tab[]; chosen: Signal<string> }) {
  const id = useId();
  const bar = useRef<HTMLDivElement>(null);
  const found = tabs.findIndex(({ name }) => name === chosen.value);
  const current = Math.max(0, found);
  const choose = (index: number) => { chosen.value = index === 0 ? "" : tabs[index]!.name; };
  const onKeyDown = (event: KeyboardEvent) => {
    const forward = getComputedStyle(bar.current!).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const backward = forward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const next = { [forward]: (current + 1) % tabs.length, [backward]: (current + tabs.length - 1) % tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    choose(next);
    bar.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <>
      <div ref={bar} class="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map(({ name, title }, i) => (
          <button
            type="button" role="tab" id={`${id}-${name}`} aria-selected={i === current} aria-controls={i === current ? `${id}-panel` : undefined}
            tabIndex={i === current ? 0 : -1} onClick={() => choose(i)}
          >
            {title}
          </button>
        ))}
      </div>
      <div key={tabs[current]!.name} class="tabpanel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tabs[current]!.name}`} tabIndex={0}>
        {tabs[current]!.content()}
      </div>
    </>
  );
}

/** The sheet that shows an object in tabs, with the kubectl command and the buttons of permitted actions. Over is the dialog over it, if one is open. */
export function TabbedSheet(props: {
  title: string; label: string; tabs: Tab[]; chosen: Signal<string>; command: string; problem?: Refusal | null; warnings?: string[]; close: () => void; children: ComponentChildren; over?: ComponentChildren;
}) {
  const { title, label, tabs, chosen, command, problem = null, warnings = [], close, children, over } = props;
  const sheet = (
    <Dialog key={title} title={title} close={close} sheet covered={Boolean(over)}>
      <Tabs label={label} tabs={tabs} chosen={chosen} />
      <Command command={command} />
      <Problem refusal={problem} />
      <Warnings warnings={warnings} />
      <div class="buttons">{children}</div>
    </Dialog>
  );
  return <>{sheet}{over}</>;
}
