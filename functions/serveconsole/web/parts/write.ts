import { useSignal } from "@preact/signals";
import { send, type Meta, type Refusal } from "../api";
import { asRefusal } from "./problem";

/** Creates an object below a path: an object, or its text in YAML. A field that the API does not know is refused. */
export function createObject(path: string, object: object | string): Promise<Response> {
  const yaml = typeof object === "string";
  return send(`${path}?fieldValidation=Strict`, { method: "POST", body: yaml ? object : JSON.stringify(object), mediaType: yaml ? "application/yaml" : undefined });
}

/**
 * Changes fields of the object with a name. With metadata.uid in the patch, an object that has taken the name since stays as it is, and with
 * metadata.resourceVersion, so does an object that somebody else has changed since: the API refuses the patch.
 */
export function patchObject(path: string, name: string, patch: object): Promise<Response> {
  return send(`${path}/${encodeURIComponent(name)}?fieldValidation=Strict`, {
    method: "PATCH", mediaType: "application/merge-patch+json", body: JSON.stringify(patch),
  });
}

/** Deletes the object with a UID. If a new object has the name, the API refuses the request. */
export function deleteObject(path: string, { name, uid }: Pick<Meta, "name" | "uid">): Promise<Response> {
  return send(`${path}/${encodeURIComponent(name)}`, {
    method: "DELETE", body: JSON.stringify({ kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid } }),
  });
}

/** The writes of a form or a dialog: whether one is under way, the refusal of the last one, and functions that write. */
export type Write = ReturnType<typeof useWrite>;

/** Returns functions that write objects below a path. Accepted runs when the API has accepted the write. A form may begin with a refusal. */
export function useWrite(path: string, first: Refusal | null = null) {
  const problem = useSignal<Refusal | null>(first);
  const busy = useSignal(false);
  async function run<T>(request: () => Promise<T>, accepted: (answer: T) => unknown): Promise<void> {
    busy.value = true;
    problem.value = null;
    try {
      await accepted(await request());
    } catch (failure) {
      problem.value = asRefusal(failure);
    } finally {
      busy.value = false;
    }
  }
  return {
    problem, busy, run,
    create: (object: object | string, accepted: (answer: Response) => unknown) => run(() => createObject(path, object), accepted),
    patch: (name: string, patch: object, accepted: (answer: Response) => unknown) => run(() => patchObject(path, name, patch), accepted),
    remove: (object: Pick<Meta, "name" | "uid">, accepted: () => unknown) => run(() => deleteObject(path, object), accepted),
    /** Creates a subresource of an object. */
    post: (name: string, subresource: string, spec: object, accepted: () => unknown) =>
      run(() => send(`${path}/${encodeURIComponent(name)}/${subresource}`, { method: "POST", body: JSON.stringify(spec) }), accepted),
  };
}
