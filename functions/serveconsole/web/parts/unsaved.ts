import { useEffect } from "preact/hooks";

/** Has the browser ask before the page is left, while what somebody typed is nowhere else. */
export function useUnsaved(typed: boolean): void {
  useEffect(() => {
    if (!typed) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [typed]);
}
