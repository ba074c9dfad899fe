import { useRef } from "preact/hooks";
import { send } from "../api";
import { asRefusal } from "./problem";

/**
 * Returns a function that creates a credential once, however often the same content is sent: a response that was lost is repeated by
 * the API. An attempt is over when the API has refused it.
 */
export function useIdempotentPost(): (path: string, body: string, mediaType?: string) => Promise<Response> {
  const attempt = useRef({ body: "", name: "" });
  return async (path, body, mediaType) => {
    if (attempt.current.body !== body) attempt.current = { body, name: crypto.randomUUID() };
    const options = { method: "POST", body, mediaType };
    try {
      return await send(path, { ...options, headers: { "Idempotency-Key": attempt.current.name } });
    } catch (failure) {
      const { code, retryAfter } = asRefusal(failure);
      // A platform without an encryption key stores no responses, and refuses to be asked to.
      if (code === 400) return send(path, options);
      const beingServed = code === 409 && retryAfter > 0;
      if (code >= 400 && code < 500 && !beingServed) attempt.current = { body: "", name: "" };
      throw failure;
    }
  };
}
