import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** The number of the page's own way back in the history that is under way, or 0. Until it has ended, the page pushes no entry. */
export const wayBack = { current: 0 };
let ways = 0;

/** Goes back over entries of the history. The way ends after the listeners of popstate that were there before. */
export function goBack(entries: number): void {
  const way = wayBack.current = ++ways;
  addEventListener("popstate", () => { if (wayBack.current === way) wayBack.current = 0; }, { once: true });
  history.go(-entries);
}

/**
 * Has the browser ask before the page is left while it has something unsaved. With a function, Back stays on the page as well, and runs it: an
 * entry of the history stands for what is unsaved.
 */
export function useUnsaved(unsaved: boolean, stayed?: () => void): void {
  const onStay = useRef(stayed);
  onStay.current = stayed;
  // Not after the next frame: the browser asks for just as long as the page shows that something is unsaved.
  useLayoutEffect(() => {
    if (!unsaved) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [unsaved]);
  useEffect(() => {
    if (!unsaved) return;
    const mark = Math.random();
    const isHere = () => history.state?.unsaved === mark;
    let pushed = false;
    const follow = () => {
      if (!pushed && !wayBack.current) {
        pushed = true;
        history.pushState({ ...history.state, depth: (history.state?.depth ?? 0) + 1, unsaved: mark }, "");
      } else if (pushed && !isHere() && !wayBack.current) {
        history.go(1);
        onStay.current?.();
      }
    };
    if (onStay.current) {
      addEventListener("popstate", follow);
      follow();
    }
    return () => {
      removeEventListener("popstate", follow);
      // The address may go further back in the same rendering.
      queueMicrotask(() => { if (isHere() && !wayBack.current) goBack(1); });
    };
  }, [unsaved]);
}
