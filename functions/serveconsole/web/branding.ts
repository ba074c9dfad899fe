import { effect, signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { session } from "./api";

/** A link of the configuration. The server has checked its address. */
export interface NavigationLink {
  text: string;
  link: string;
  icon?: string;
  top?: boolean;
  end?: boolean;
}

/** The look of the configuration. The policy of the page permits these addresses and no others. */
interface Branding {
  logo?: string;
  smallLogo?: string;
  styles?: string[];
  buttons?: NavigationLink[];
  legal?: boolean;
}

export const branding: Branding = JSON.parse(document.querySelector<HTMLMetaElement>('meta[name="settings"]')?.content ?? "{}") as Branding;

/** Whether the address has ?plain: then the style sheets of the configuration are not loaded. */
export const withoutStyles = new URLSearchParams(location.search).has("plain");

/** How many parts of the page show a secret or ask for one. */
const secrets = signal(0);

/** Turns the style sheets of the configuration off while a part of the page shows a secret or asks for one: they could hide or replace it. */
export function useSecret(visible = true): void {
  useLayoutEffect(() => {
    if (!visible) return;
    secrets.value++;
    return () => { secrets.value--; };
  }, [visible]);
}

/** Loads the style sheets of the configuration while there is a session, unless the address has ?plain. */
export function loadStyles(): void {
  if (withoutStyles) return;
  const links = (branding.styles ?? []).map((address) => {
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
