import { batch, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asRefusal, type Refusal } from "../shared";

/**
 * Reads something in steps. A step gets what was read before it, or null at the beginning, and returns all of it. It ends the step that is under way. A step
 * that fails leaves what was read before it.
 */
export function useReading<T>(step: (last: T | null, signal: AbortSignal) => Promise<T | null>) {
  const busy = useSignal(false);
  const reading = useSignal<T | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const current = useRef<AbortController | null>(null);
  async function read(last: T | null) {
    current.current?.abort();
    const { signal } = (current.current = new AbortController());
    busy.value = true;
    let next = last;
    let refusal: Refusal | null = null;
    try {
      next = await step(last, signal);
    } catch (failure) {
      refusal = asRefusal(failure);
    }
    if (signal.aborted) return;
    batch(() => {
      reading.value = next;
      problem.value = refusal;
      busy.value = false;
    });
  }
  useEffect(() => () => current.current?.abort(), []);
  return { busy, reading, problem, read };
}
