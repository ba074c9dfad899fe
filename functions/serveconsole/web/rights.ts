import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, group, Refusal } from "./api";
import { isAdmin, isAuditor } from "./person";

/** A set of requests that the session permits. */
interface Rule {
  verbs: string[];
  group?: string;
  resource?: string;
  names?: string[];
}

/** What the session permits in all namespaces. Null: unknown. */
export const rules = signal<Rule[] | null>(null);

/** Why the permissions of the session are unknown. */
export const rightsProblem = signal<Refusal | null>(null);

/** Reads the permissions of the session from the API. */
export async function readRights(): Promise<void> {
  rightsProblem.value = null;
  try {
    const body = JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "ScopePreview" });
    const answer = await ask<{ status: { rules?: Rule[] } }>(`${group}/scopepreviews`, { method: "POST", probing: true, body });
    rules.value = answer.status.rules ?? [];
  } catch (failure) {
    rules.value = null;
    rightsProblem.value = failure instanceof Refusal ? failure : new Refusal(0, "");
  }
}

/** Reports whether the session permits a verb on some object of a resource. While the permissions are unknown, it does not. */
export function may(verb: string, resource: string): boolean {
  // The rules come from the scope. To callers who are no admins, the API shows an empty list of trust rules.
  if (resource === "trustrules" && !isAdmin() && !(isAuditor() && ["get", "list", "watch"].includes(verb))) return false;
  return (rules.value ?? []).some((rule) => rule.group === "management.platform.sh" && rule.resource === resource && rule.verbs.includes(verb));
}

/** A request for one object. */
export interface AccessRequest {
  verb: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

/** Asks the API whether a request is permitted. The API decides with the code that decides the request itself. */
export async function isPermitted(request: AccessRequest): Promise<boolean> {
  const body = JSON.stringify({
    apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { group: "management.platform.sh", ...request } },
  });
  const answer = await ask<{ status: { allowed: boolean } }>("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { method: "POST", body });
  return answer.status.allowed;
}

/** Returns whether requests for an object are permitted, and asks again when the object changes. Without an answer, a request is not permitted. Undefined: not known yet. */
export function usePermitted(requests: AccessRequest[], version: string | undefined): (boolean | undefined)[] {
  // Answers about another object are not used.
  const answers = useSignal<{ key: string; allowed: boolean[] }>({ key: "", allowed: [] });
  const key = JSON.stringify(requests);
  useEffect(() => {
    let current = true;
    if (version === undefined) return;
    void Promise.all(requests.map((request) => isPermitted(request).catch(() => false))).then((allowed) => {
      if (current) answers.value = { key, allowed };
    });
    return () => { current = false; };
  }, [key, version]);
  return requests.map((_, i) => (answers.value.key === key ? answers.value.allowed[i] : undefined));
}

/** A question about one of several objects. Of names it, and version differs when the object has changed. */
interface AccessQuestion {
  object: string;
  version: string;
  question: AccessRequest;
}

/**
 * Asks about requests for several objects, four at a time, and again about those that change. Returns the answer to a question, which is that of the
 * earlier version until the new one is known: a button does not go away meanwhile. Undefined: it is not known yet, or could not be found out.
 */
export function usePermittedEach(questions: AccessQuestion[]): (object: string) => boolean | undefined {
  const session = rules.value;
  const answers = useSignal({ session, decisions: new Map<string, { version: string; allowed: boolean }>() });
  const decisions = answers.value.session === session ? answers.value.decisions : new Map<string, { version: string; allowed: boolean }>();
  useEffect(() => {
    let current = true;
    const pending = questions.filter(({ object, version }) => decisions.get(object)?.version !== version);
    const next = async () => {
      for (let question = pending.shift(); question && current; question = pending.shift()) {
        const allowed = await isPermitted(question.question).catch(() => undefined);
        if (allowed !== undefined) decisions.set(question.object, { version: question.version, allowed });
      }
    };
    // All answers are shown at once, so that buttons do not appear one by one.
    if (pending.length > 0) void Promise.all([next(), next(), next(), next()]).then(() => { if (current) answers.value = { session, decisions }; });
    return () => { current = false; };
  }, [session, questions.map(({ object, version }) => `${object} ${version}`).join("\n")]);
  return (object) => decisions.get(object)?.allowed;
}
