import { effect, signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { session } from "./api";

/** A link that the configuration adds. The server has checked where it leads. */
export interface Button {
  text: string;
  link: string;
  icon?: string;
  top?: boolean;
  end?: boolean;
}

/** What the configuration says about the look of the page. The policy of the page permits these addresses, and no others. */
interface Look {
  logo?: string;
  smallLogo?: string;
  styles?: string[];
  buttons?: Button[];
  legal?: boolean;
}

export const look: Look = JSON.parse(document.querySelector<HTMLMetaElement>('meta[name="settings"]')?.content ?? "{}") as Look;

/** Whether the address asks for the page without style sheets of others. */
export const plain = new URLSearchParams(location.search).has("plain");

/** How many parts of the page show a secret, or ask for one. */
const secrets = signal(0);

/** While a part of the page shows a secret or asks for one, style sheets of others are off: they could hide what is there, or show something else. */
export function useSecret(shown = true): void {
  useLayoutEffect(() => {
    if (!shown) return;
    secrets.value++;
    return () => { secrets.value--; };
  }, [shown]);
}

/** Loads the style sheets of the configuration while somebody is signed in, unless the address says ?plain. */
export function loadStyles(): void {
  if (plain) return;
  const links = (look.styles ?? []).map((address) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = address;
    link.referrerPolicy = "no-referrer";
    return link;
  });
  effect(() => {
    if (session.value === "in" && secrets.value === 0) document.head.append(...links);
    else for (const link of links) link.remove();
  });
}
