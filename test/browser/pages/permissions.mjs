// Stories of the buttons that a session is shown: the API permits what each of them does.
import assert from "node:assert/strict";
import { admin, requestAsAdmin, createAccessKey, openWindow, createUserWithKey, accessReviews, signIn } from "../driver.mjs";

/** Buttons that write nothing, and leave the page as it is. */
const harmless = /^(Close|Cancel|Search|Back|Copy|Copy the name|Copied|Download|Show|Hide|Sign out|Menu|Keyboard shortcuts|Try again|Resume|Show more|Show events|More filters|.*: \d+ permitted, \d+ refused|Export .*|Discard .*|Confirm|Remove, condition .*|Add a condition)$/;

/** Walks over all pages as somebody: each button that is shown writes something that the API permits, in a dry run, and no request is answered with 403. */
async function pressEveryButton(key, expectedPages, expectedWrites) {
  const { context, page, problems } = await openWindow();
  page.setDefaultTimeout(10_000);
  const refused = [], written = new Set(), pending = new Set();
  let writes = 0;
  const note = (status, what) => { if (status === 401 || status === 403 || status === 404) refused.push(`${status} ${what}`); };
  page.on("request", (request) => { if (!request.url().includes("watch=true")) pending.add(request); });
  for (const over of ["requestfinished", "requestfailed"]) page.on(over, (request) => pending.delete(request));
  page.on("response", (response) => { if ([403, 429, 503].includes(response.status())) refused.push(`${response.status()} ${response.request().method()} ${response.url()}`); });
  await signIn(page, key, "/console/home", page.getByRole("heading", { name: /^Hello/ }));
  await page.route(/\/apis\/management\.platform\.sh\//, async (route) => {
    const request = route.request();
    if (request.method() === "GET" || /\/(selves|scopepreviews|syncpatchevaluations)(\?|$)/.test(request.url())) return route.fallback();
    const url = new URL(request.url());
    const dry = url.searchParams.has("dryRun");
    url.searchParams.set("dryRun", "All");
    // It is sent by the test, with the same access key as that of the session.
    // The options of a delete are in its body, and count instead of those in the address.
    const postData = request.method() === "DELETE" ? JSON.stringify({ ...request.postDataJSON(), dryRun: ["All"] }) : undefined;
    const response = await route.fetch({ url: url.href, postData, headers: { "content-type": request.headers()["content-type"], authorization: `Bearer ${key}` } });
    const [resource] = url.pathname.split("/v1/").slice(1);
    note(response.status(), `${request.method()} ${resource}: ${await response.text()}`);
    if (dry) return route.fulfill({ response });
    writes++;
    const [kind, , sub] = resource.replace(/^namespaces\/[^/]+\//, "").split("/");
    written.add(`${request.method()} ${sub ? `${kind}/${sub}` : kind}`);
    return route.abort();
  });
  // A request has ended before the page has read the answer.
  await page.addInitScript(() => {
    const { fetch } = globalThis;
    globalThis.unread = 0;
    const whileUnread = async (reading) => {
      globalThis.unread++;
      try {
        return await reading;
      } finally {
        setTimeout(() => globalThis.unread--);
      }
    };
    globalThis.fetch = (...request) => whileUnread(fetch(...request));
    const { json } = Response.prototype;
    Response.prototype.json = function read() { return whileUnread(json.call(this)); };
  });
  /** Waits until nothing is asked for, and what came is shown. */
  const settled = async () => {
    for (let calm = 0; calm < 3;) {
      const quiet = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(globalThis.unread === 0 && !document.querySelector(".skeleton"))))));
      calm = quiet && pending.size === 0 ? calm + 1 : 0;
    }
  };
  const top = async () => ((await page.locator("dialog[open]").count()) > 0 ? page.locator("dialog[open]").last() : page.locator("main"));
  /** The names of the buttons that are shown, and may write. */
  const buttons = async () => {
    const names = await (await top()).locator("button:visible:not([role=tab])").evaluateAll((all) => all.filter((one) => one.ariaLabel || !one.classList.contains("link")).map((one) => (one.ariaLabel ?? one.textContent).trim()));
    return [...new Set(names)].filter((name) => !harmless.test(name));
  };
  /** Fills what a form requires. */
  const fill = async () => {
    for (const input of await (await top()).locator("input:visible:not([type=checkbox], [type=radio], [type=search], [type=file])").all()) {
      if (await input.inputValue() !== "") continue;
      const [label, type, required] = await input.evaluate((it) => [it.ariaLabel ?? it.labels?.[0]?.textContent ?? "", it.type, it.required]);
      const named = label.match(/^Type (\S+) to delete (it|them)/)?.[1];
      if (named || required) await input.fill(named ?? (type === "url" ? "https://other.example.com" : type === "password" ? "nine-violet-kettles-hum" : "walked"));
    }
  };
  const act = async (name) => {
    const before = writes;
    await fill();
    await (await top()).getByRole("button", { name, exact: true }).first().click().catch((failure) => assert.fail(`${name} on ${page.url()}: ${failure.message}`));
    await settled();
    // A dialog asks what to do, or whether to do it.
    for (let left = 3; writes === before && left > 0; left--) {
      await fill();
      await (await top()).locator("button:is(.primary, .danger):visible:not(.quietly):enabled").filter({ hasNotText: /^Close$/ }).first().click()
        .catch(async (failure) => assert.fail(`${name} on ${page.url()}: ${failure.message}\n${await (await top()).textContent()}`));
      await settled();
    }
    assert.ok(writes > before, `${name} on ${page.url()} writes nothing`);
  };
  const visit = async (address, prepare = async () => {}) => {
    const arrive = async () => {
      await page.goto(address);
      await page.locator("main h1").waitFor();
      await settled();
      await prepare();
    };
    await arrive();
    const shown = await buttons();
    const rows = await page.locator('main a[aria-label^="Open "]').evaluateAll((all) => all.map((one) => one.ariaLabel.slice(5)));
    for (const name of shown) {
      await act(name);
      await arrive();
    }
    return rows;
  };
  const pages = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").evaluateAll((all) => all.map((one) => one.href));
  for (const address of pages) {
    // The studio writes nothing, and what was found is in its own stories.
    if (/\/(studio|found)$/.test(address)) continue;
    const editor = page.getByRole("textbox", { name: "Configuration" });
    const boxes = page.getByRole("checkbox", { name: "Select all that are shown" });
    const rows = await visit(address, async () => {
      if (await boxes.isVisible()) {
        await boxes.check();
        await settled();
      }
      if (!address.endsWith("/config") || !expectedWrites.includes("PUT config")) return;
      await editor.and(page.locator("[contenteditable=true]")).focus();
      await page.keyboard.press("Control+Home");
      await page.keyboard.insertText("platformHost: walk.example.com\n");
      await settled();
    });
    if (address.endsWith("/audit")) continue;
    const row = rows.at(-1);
    if (row) await visit(`${address}?${new URLSearchParams({ name: address.endsWith("/clusters") ? `p-shop/${row}` : row })}`);
  }
  assert.deepEqual(refused, []);
  assert.deepEqual(pages.map((one) => one.split("/").at(-1)).sort(), [...expectedPages].sort());
  assert.deepEqual([...written].filter((one) => expectedWrites.includes(one)).sort(), [...expectedWrites].sort());
  assert.deepEqual(problems, []);
  await context.close();
}

export const stories = {
  async "no button is shown that the session may not use"() {
    const { context, page, problems } = await openWindow();
    // Every key may make keys that may do as little.
    const made = await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "reader" }, spec: { scope: { roles: [{ role: "platformCLI" }] } } });
    const { spec: { key } } = await made.json();
    const refused = [];
    page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    await signIn(page, key, "/console/keys");
    const decided = accessReviews(page, 2);
    await page.getByRole("link", { name: "Open admin", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("tab", { name: "About", exact: true }).waitFor();
    await decided;
    assert.deepEqual(await page.getByRole("button", { name: /^(Disable|Enable|Delete)$/ }).allTextContents(), []);
    await page.keyboard.press("Escape");
    for (const name of await page.getByRole("navigation").getByRole("link").allTextContents()) {
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await page.locator("h1").waitFor();
    }
    // A session of one virtual cluster gets its kubeconfig, and one of a project lists its virtual clusters.
    const narrow = await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "narrow" }, spec: { scope: { virtualClusters: [{ project: "shop", virtualCluster: "dev" }] } } });
    const other = await openWindow();
    other.page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    await signIn(other.page, (await narrow.json()).spec.key, "/console/home", other.page.getByRole("heading", { name: "Hello, admin" }));
    await other.page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).waitFor();
    const shop = await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "shop" }, spec: { scope: { projects: [{ project: "shop" }] } } });
    await other.context.clearCookies();
    await signIn(other.page, (await shop.json()).spec.key, "/console/clusters");
    await other.page.getByRole("link", { name: "Open dev" }).waitFor();
    assert.deepEqual(refused, []);
    for (const name of ["reader", "narrow", "shop"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    assert.deepEqual(problems, []);
    await other.context.close();
    await context.close();
  },
};

/** The stories that take long. */
export const longStories = {};

/** Who walks: a key of each persona, the pages that they see, and some of what they may write. */
const personas = {
  "the platform engineer": [async () => admin,
    ["home", "keys", "clusters", "tokens", "studio", "found", "projects", "people", "teams", "trustrules", "audit", "config"],
    ["POST ownedaccesskeys", "PATCH ownedaccesskeys", "DELETE ownedaccesskeys", "POST virtualclusterinstances", "PATCH virtualclusterinstances", "DELETE virtualclusterinstances", "POST virtualclusterinstances/kubeconfig", "POST projects", "PATCH projects", "DELETE projects", "POST users", "POST users/signout", "POST teams", "PATCH teams", "POST trustrules", "PATCH trustrules", "PUT config"]],
  "the CI author": [(context) => createAccessKey(context, "walker", { scope: { projects: [{ project: "shop" }] } }),
    ["home", "clusters", "found"], ["PATCH virtualclusterinstances", "DELETE virtualclusterinstances", "POST virtualclusterinstances/kubeconfig"]],
  "a developer": [(context) => createUserWithKey(context, "dev"),
    ["home", "keys", "clusters", "tokens", "studio", "found", "projects", "people", "teams", "audit", "config"], ["POST ownedaccesskeys", "DELETE ownedaccesskeys", "POST directclusterendpointtokens", "POST virtualclusterinstances", "PATCH projects", "DELETE projects", "POST users/signout"]],
  "a tenant admin": [(context) => createAccessKey(context, "walker", {
    groups: ["platform:admins"], scope: { projects: [{ project: "shop" }], rules: [{ verbs: ["create"], resources: [{ group: "management.platform.sh", resources: ["syncpatchevaluations"] }] }] },
  }), ["home", "clusters", "studio", "found"], ["POST virtualclusterinstances", "PATCH virtualclusterinstances", "POST virtualclusterinstances/kubeconfig"]],
  "an auditor": [(context) => createAccessKey(context, "walker", { groups: ["platform:admins"], scope: { rules: [{ verbs: ["get", "list", "watch"] }] } }),
    ["home", "keys", "clusters", "tokens", "found", "projects", "people", "teams", "trustrules", "audit", "config"], ["POST ownedaccesskeys"]],
};
/** Who walks in each check. The walks of the others are for check-deep. */
const inEachCheck = ["the CI author", "a developer"];
for (const [persona, [keyOf, pages, writes]] of Object.entries(personas)) {
  const target = inEachCheck.includes(persona) ? stories : longStories;
  target[`no button that is shown is refused: ${persona}`] = async () => {
    const { context } = await openWindow();
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "walked-user" }, spec: {} });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "walked-team" }, spec: { users: ["walked-user"] } });
    await requestAsAdmin(context, "POST", "trustrules", { metadata: { name: "walked-rule" }, spec: {
      issuer: "https://ci.example.com", match: [{ claim: "sub", is: "x" }], owner: { team: "walked-team" }, scope: {},
    } });
    await requestAsAdmin(context, "POST", "directclusterendpointtokens", { metadata: { name: "walked-token" }, spec: {} });
    await requestAsAdmin(context, "POST", "projects", { metadata: { name: "walked-project" }, spec: { members: [{ kind: "User", name: "dev", role: "admin" }] } });
    await pressEveryButton(await keyOf(context), pages, writes);
    for (const path of ["ownedaccesskeys/walker", "ownedaccesskeys/dev-key", "users/dev", "trustrules/walked-rule", "projects/walked-project", "teams/walked-team", "users/walked-user", "directclusterendpointtokens/walked-token"]) {
      await requestAsAdmin(context, "DELETE", path);
    }
    await context.close();
  };
}
