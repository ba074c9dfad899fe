// Stories that hold on every page: what it requests, what it takes, what it says of a refusal, and what it keeps.
import assert from "node:assert/strict";
import { admin, requestAsAdmin, browser, focus, newFolder, setHidden, recordFigure, openWindow, origin, requestsOf, serveManyKeys, signIn, isAsset } from "../driver.mjs";

/**
 * Does something in a page and counts what the page does for it: the calls of functions in its scripts, and the elements that get their
 * style and their place. Milliseconds depend on the machine and on its other work, these counts do not. Also returns the longest task of
 * the page, in milliseconds of the processor.
 */
async function workOf(page, action) {
  const session = await page.context().newCDPSession(page);
  await session.send("Profiler.enable");
  await session.send("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await browser.startTracing(page, { categories: ["-*", "devtools.timeline", "toplevel", "__metadata"] });
  await action();
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const { result } = await session.send("Profiler.takePreciseCoverage");
  await session.detach();
  const sum = (name, count) => traceEvents.reduce((total, event) => total + (event.name === name ? count(event.args) ?? 0 : 0), 0);
  const main = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter(({ name, ph, pid, tid, tdur }) => ph === "X" && name.endsWith("RunTask") && tdur !== undefined && main.has(`${pid} ${tid}`));
  const scripts = result.filter(({ url }) => url.startsWith(`${origin}/`));
  assert.ok(tasks.length > 10 && scripts.length > 0, `the page had ${tasks.length} tasks and ${scripts.length} scripts`);
  return {
    calls: scripts.flatMap(({ functions }) => functions).reduce((total, { ranges: [whole] }) => total + whole.count, 0),
    styled: sum("UpdateLayoutTree", ({ elementCount }) => elementCount),
    placed: sum("Layout", ({ beginData }) => beginData?.totalObjects),
    longest: Math.max(...tasks.map(({ tdur }) => tdur)) / 1000,
  };
}

/** Compares the work of a page with the most that it may do. */
function assertWork(about, { longest, ...counted }, most) {
  recordFigure(`${about}: ${Object.entries(counted).map(([what, count]) => `${count} ${what}`).join(", ")}; the longest task takes ${longest.toFixed(1)} ms`);
  for (const [what, count] of Object.entries(counted)) assert.ok(count > 0 && count <= most[what], `${about}: ${count} ${what}, at most ${most[what]}`);
}

/** The pages whose lists are watched. */
const lists = ["keys", "clusters", "tokens", "projects", "people", "teams", "trustrules"];

export const stories = {
  async "a lost answer to a request for a credential is repeated, and makes one"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const names = async (resource) => (await (await requestAsAdmin(context, "GET", resource)).json()).items.map(({ metadata: { name } }) => name);
    const attempts = [];
    /** Handles the next POST whose path matches. The page lists and watches the same path. */
    const nextPost = (path, handle) => {
      let handled = false;
      return page.route(path, (route) => {
        if (handled || route.request().method() !== "POST") return route.fallback();
        handled = true;
        return handle(route);
      });
    };
    /** Lets the API serve the next POST whose path matches, and loses its answer. */
    const lose = (path) => nextPost(path, async (route) => {
      // It is sent by the test, with the same access key as that of the session.
      const { accept, "content-type": type, "idempotency-key": attempt } = route.request().headers();
      const response = await route.fetch({ headers: { accept, "content-type": type, "idempotency-key": attempt, authorization: `Bearer ${admin}` } });
      attempts.push(response.status());
      await route.abort();
    });
    const once = async (resource, button, kept) => {
      const before = await names(resource);
      await page.getByRole("button", { name: button }).click();
      await page.getByRole("alert").getByText("cannot be reached").waitFor();
      assert.equal(attempts.pop(), 201);
      await page.getByRole("button", { name: button }).click();
      await page.getByRole("button", { name: kept }).click();
      const made = (await names(resource)).filter((name) => !before.includes(name));
      assert.equal(made.length, 1, `${button} has made ${made}`);
      await requestAsAdmin(context, "DELETE", `${resource}/${made[0]}`);
    };
    // The platform chooses the name: without the name of the attempt there would be two keys.
    await page.getByRole("button", { name: "New key" }).click();
    await lose("**/ownedaccesskeys?*");
    await once("ownedaccesskeys", "Create key", "I have saved it");
    // What was changed since is another request. A platform that cannot store responses makes it all the same.
    await page.getByRole("button", { name: "New key" }).click();
    await lose("**/ownedaccesskeys?*");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("alert").getByText("cannot be reached").waitFor();
    assert.equal(attempts.pop(), 201);
    await page.getByLabel("Name", { exact: true }).fill("changed");
    await nextPost("**/ownedaccesskeys?*", (route) => route.fulfill({
      status: 400, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code: 400, message: "leave out the header" }),
    }));
    const sent = page.waitForRequest((request) => request.method() === "POST" && !request.headers()["idempotency-key"] && request.url().includes("/ownedaccesskeys?"));
    await page.getByRole("button", { name: "Create key" }).click();
    await sent;
    await page.getByRole("button", { name: "I have saved it" }).click();
    for (const name of (await names("ownedaccesskeys")).filter((name) => name === "changed" || name.startsWith("key-"))) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    await page.goto(`${origin}/console/tokens`);
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Everything that I may do").check();
    await lose("**/directclusterendpointtokens?*");
    await once("directclusterendpointtokens", "Issue token", "I have saved it");
    await page.goto(`${origin}/console/home`);
    await page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).click();
    await lose("**/kubeconfig");
    await once("ownedaccesskeys", "Create kubeconfig", "I have saved it");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "what was shown once is nowhere in the browser: a key, a token and a kubeconfig"() {
    const { context, page } = await openWindow();
    const logged = [];
    page.on("console", (message) => logged.push(message.text()));
    await signIn(page);
    const session = await context.newCDPSession(page);
    let snapshot = "";
    session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => { snapshot += chunk; });
    /** Whether a text is in the memory of the page. A snapshot has the first 1,000 characters of a text. */
    const holds = async (text) => {
      snapshot = "";
      await session.send("HeapProfiler.collectGarbage");
      await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
      return snapshot.includes(JSON.stringify(text.slice(0, 500)).slice(1, -1));
    };
    const once = async (path, ask, secretOf) => {
      await page.goto(`${origin}/console/${path}`);
      const answer = page.waitForResponse((response) => response.request().method() === "POST" && response.status() === 201 && /ownedaccesskeys\?|endpointtokens|kubeconfig$/.test(response.url()));
      await ask();
      const secret = secretOf(await (await answer).json());
      await page.getByRole("button", { name: "Show" }).click();
      assert.ok(await holds(secret), `the search finds nothing: ${path}`);
      await page.getByRole("button", { name: "I have saved it" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      // The collector decides when: the search is repeated.
      for (let left = 20; await holds(secret); left--) {
        assert.ok(left > 0, `the page keeps what was shown once: ${path}`);
        await page.waitForTimeout(250);
      }
      const kept = await page.evaluate(async () => JSON.stringify([
        document.documentElement.outerHTML, { ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys(), document.cookie, location.href, document.title, history.state,
      ]));
      const inside = secret.match(/token: (\S+)/)?.[1] ?? secret;
      assert.ok(![kept, ...logged].some((one) => one.includes(inside) || one.includes(admin)), `something is kept: ${path}`);
      assert.deepEqual(await page.evaluate(async () => [await indexedDB.databases(), await caches.keys()]), [[], []]);
    };
    await once("keys", async () => {
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("button", { name: "Create key" }).click();
    }, ({ spec: { key } }) => key);
    await once("tokens", async () => {
      await page.getByRole("button", { name: "New token" }).click();
      await page.getByLabel("Everything that I may do").check();
      await page.getByRole("button", { name: "Issue token" }).click();
    }, ({ status: { token } }) => token);
    await once("home", async () => {
      await page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).click();
      await page.getByRole("button", { name: "Create kubeconfig" }).click();
    }, ({ status: { kubeConfig } }) => kubeConfig);
    for (const { metadata: { name, labels } } of (await (await requestAsAdmin(context, "GET", "ownedaccesskeys")).json()).items) {
      if (labels?.["management.platform.sh/virtualclusterinstance"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    }
    await context.close();
  },
  async "every refusal is shown in plain words, and nothing typed is lost"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("after-refusals");
    const refusals = {
      403: [{ message: "you may not" }, "you may not"], 409: [{ message: "it exists" }, "it exists"],
      422: [{ message: "wrong", details: { causes: [{ field: "spec.ttl", message: "too long" }] } }, "too long"],
      429: [{ message: "slowly", details: { retryAfterSeconds: 7 } }, "Try again in 7 s."],
      503: [{ message: "not now", details: { retryAfterSeconds: 1 } }, "not now"],
    };
    for (const [code, [status, says]] of Object.entries(refusals)) {
      await page.route("**/ownedaccesskeys?fieldValidation=Strict", (route) => route.fulfill({
        status: Number(code), contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code: Number(code), ...status }),
      }), { times: 1 });
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByText(says).waitFor();
      await page.getByRole("dialog").getByRole("alert").waitFor();
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "after-refusals");
    }
    // A gateway that answers with a page of its own, and no network at all.
    await page.route("**/ownedaccesskeys?fieldValidation=Strict", (route) => route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad</h1>" }), { times: 1 });
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog").getByRole("alert").getByText("502").waitFor();
    await page.route("**/ownedaccesskeys?fieldValidation=Strict", (route) => route.abort(), { times: 1 });
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog").getByRole("alert").getByText("cannot be reached").waitFor();
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a page that the API refuses says so, on every page"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const refusals = {
      403: ["you may not read this", ""], 409: ["somebody else was faster", ""], 422: ["this is wrong", ""], 429: ["slowly", "Try again in 7 s."], 503: ["not now", "Try again in 7 s."],
    };
    await Promise.all(Object.entries(refusals).map(async ([code, [message, hint]]) => {
      const page = await context.newPage();
      page.on("pageerror", (failure) => problems.push(failure.message));
      await page.route(/\/apis\/(?!management.platform.sh\/v1\/selves)/, (route) => route.fulfill({
        status: Number(code), contentType: "application/json",
        body: JSON.stringify({ kind: "Status", apiVersion: "v1", code: Number(code), message, details: hint ? { retryAfterSeconds: 7 } : {} }),
      }));
      for (const path of ["home", "keys", "clusters", "tokens", "projects", "people", "teams", "config"]) {
        await page.goto(`${origin}/console/${path}`);
        await page.getByRole("alert").getByText(message).waitFor();
        if (hint) await page.getByRole("alert").getByText(/Try again in \d s\./).waitFor();
        assert.equal(await page.getByRole("button", { name: /^New / }).count(), 0, "a button of a session whose rights are not known");
      }
      await page.close();
    }));
    // No network at all.
    await page.route(/\/apis\/(?!management.platform.sh\/v1\/selves)/, (route) => route.abort());
    await page.goto(`${origin}/console/clusters`);
    await page.getByRole("alert").getByText("cannot be reached").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "nothing is requested while the tab is hidden"() {
    const { context, page } = await openWindow();
    await signIn(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.clock.install();
    const asked = [];
    page.on("request", (request) => { if (!isAsset(request)) asked.push(request.url()); });
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.getByText("Paused", { exact: true }).waitFor();
    await page.clock.runFor(60_000);
    assert.deepEqual(asked, []);
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: false, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.getByText("Live", { exact: true }).waitFor();
    assert.ok(asked.length > 0);
    await context.close();
  },
  async "a page of an earlier version is loaded again, once"() {
    const { context, page } = await openWindow();
    await signIn(page);
    let loads = 0;
    await page.route("**/assets/studio-*.js", (route) => route.fulfill({ status: 404, body: "{}" }));
    page.on("request", (request) => { if (request.isNavigationRequest()) loads++; });
    await page.getByRole("link", { name: "Patch studio" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(loads, 2);
    await page.unroute("**/assets/studio-*.js");
    // A page whose script is there after one more load shows no mistake.
    await page.route("**/assets/tokens-*.js", (route) => route.fulfill({ status: 404, body: "{}" }), { times: 1 });
    await page.goto(`${origin}/console/tokens`);
    await page.getByRole("button", { name: "New token" }).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.goto(`${origin}/console/studio`);
    await page.getByRole("textbox", { name: "Configuration" }).waitFor();
    await context.close();
  },
  async "a tab that is hidden, or that nobody has used for six minutes, costs nothing: every page"() {
    const { context, page, problems } = await openWindow();
    await page.clock.install();
    await signIn(page);
    const { begun, streams, calm, watched } = requestsOf(page);
    const ready = (name) => ({
      home: page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }), studio: page.getByText("Evaluated.", { exact: true }), audit: page.getByText("the audit needs a data store"),
      config: page.getByRole("button", { name: "Discard the changes" }),
    })[name] ?? page.getByText("Live", { exact: true });
    for (const name of [...lists, "home", "studio", "audit", "config"]) {
      await page.goto(`${origin}/console/${name}`);
      const live = lists.includes(name);
      await ready(name).first().waitFor();
      await page.clock.runFor(1000);
      await calm();
      if (live) {
        await watched();
        assert.equal(streams(), 1, `${name}: more than one stream`);
      }
      await page.clock.runFor(6 * 60_000);
      if (live) await page.getByText("Paused", { exact: true }).waitFor();
      assert.equal(streams(), 0, `${name}: a stream of a page that nobody uses`);
      begun.length = 0;
      await page.clock.runFor(60_000);
      assert.deepEqual(begun, [], `${name}, unused`);
      await page.keyboard.press("Shift");
      if (live) await page.getByText("Live", { exact: true }).waitFor();
      await page.clock.runFor(1000);
      await calm();
      await setHidden(page, true);
      if (live) await page.getByText("Paused", { exact: true }).waitFor();
      begun.length = 0;
      await page.clock.runFor(60_000);
      assert.deepEqual([begun, streams()], [[], 0], `${name}, hidden`);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the first row costs few requests, and 500 rows are drawn at once"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const asked = [];
    page.on("request", (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname.split("/").at(-1)}`));
    const size = 500;
    await page.route(/ownedaccesskeys\?(?!.*watch=)/, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({
      kind: "Table", metadata: { resourceVersion: "1" },
      columnDefinitions: ["Name", "Display Name", "Owner", "Type", "Expires", "Last Activity", "Age"].map((name) => ({ name, description: name, priority: 0 })),
      rows: Array.from({ length: size }, (_, i) => ({
        cells: [`key-${i}`, "Deploys the shop", "user:ana", "User", "in 3d", "never", "2d"],
        object: { metadata: { name: `key-${i}`, uid: `${i}`, creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { user: "ana", type: "User" }, status: { expirationTimestamp: "2036-01-01T00:00:00Z" } },
      })),
    }) }));
    await page.route(/ownedaccesskeys\?.*watch=/, () => {}); // a watch without an event
    const session = await context.newCDPSession(page);
    await session.send("Network.clearBrowserCache");
    // The page before asks for scripts after its rows. On a busy machine it would do so during the load.
    await page.goto("about:blank");
    asked.length = 0;
    await page.goto(`${origin}/console/keys`);
    await page.getByText(`${size} keys`, { exact: true }).waitFor();
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    recordFigure(`the first paint is ${Math.round(paint)} ms after the start, without a cache`);
    // Each request is a call of a function. Browsers keep the assets.
    const before = asked.slice(0, asked.indexOf("GET ownedaccesskeys") + 1);
    const assets = before.filter((one) => /\.(js|css|svg)$/.test(one));
    assert.deepEqual(before.filter((one) => !assets.includes(one)).sort(), ["GET keys", "GET ownedaccesskeys", "POST scopepreviews", "POST selves"]);
    assert.deepEqual(assets.map((one) => one.split(".").at(-1)).sort(), ["css", "js"], `assets before the first row: ${assets}`);
    recordFigure(`${before.length} requests before the first row: ${before.join(", ")}`);
    const filter = page.getByRole("searchbox");
    await filter.fill("no such key");
    await page.getByText("Nothing matches the filter.").waitFor();
    const drawn = await workOf(page, async () => {
      await filter.fill("");
      await page.getByText(`${size} keys`, { exact: true }).waitFor();
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    });
    assertWork(`${size} rows`, drawn, { calls: 60_000, styled: 1500, placed: 4000 });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "five thousand rows: a key press, an order and a scroll are as much work as the rows that are drawn"() {
    const { context, page, problems } = await openWindow();
    const size = 5000;
    await page.route(/ownedaccesskeys\?(?!.*watch=)/, (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("continue") ?? 0);
      const left = size - from - 500;
      return route.fulfill({ contentType: "application/json", body: JSON.stringify({
        kind: "Table", metadata: { resourceVersion: "1", ...(left > 0 ? { continue: String(from + 500), remainingItemCount: left } : {}) },
        columnDefinitions: ["Name", "Display Name", "Owner", "Type", "Expires", "Last Activity", "Age", "Disabled", "Scope"].map((name) => ({ name, description: name, priority: 0 })),
        rows: Array.from({ length: 500 }, (_, i) => ({
          cells: [`key-${from + i}`, `Deploys shop ${(from + i) % 7}`, "user:ana", "User", "in 3d", "never", "2d", false, "project:shop"],
          object: { metadata: { name: `key-${from + i}`, uid: `${from + i}`, creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { user: "ana", type: "User" }, status: { expirationTimestamp: `203${(from + i) % 10}-01-01T00:00:00Z` } },
        })),
      }) });
    });
    await page.route(/ownedaccesskeys\?.*watch=/, () => {}); // a watch without an event
    await signIn(page, admin, "/console/keys?sort=Name");
    await page.getByText("5,000 keys", { exact: true }).waitFor();
    const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const filter = page.getByRole("searchbox");
    await filter.fill("key-4");
    await page.getByText(/^1,\d+ of 5,000 keys$/).waitFor();
    const most = { calls: 60_000, styled: 2000, placed: 4000 };
    assertWork("one key press in the filter of 5,000 rows", await workOf(page, async () => {
      await page.keyboard.press("4");
      await page.getByText(/^1\d\d of 5,000 keys$|^\d+ of 5,000 keys$/).first().waitFor();
      await frames();
    }), most);
    await filter.fill("");
    await page.getByText("5,000 keys", { exact: true }).waitFor();
    // An order compares each row with some others.
    assertWork("one sort of 5,000 rows", await workOf(page, async () => {
      await page.getByRole("columnheader", { name: "Expires" }).getByRole("button").click();
      await frames();
    }), { ...most, calls: 300_000 });
    assertWork("one scroll of 5,000 rows", await workOf(page, async () => {
      await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight / 2));
      await frames();
      await frames();
    }), most);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "five thousand keys and ten thousand events: few requests, true counts, and few rows are drawn"() {
    const { context, page, problems } = await openWindow();
    const [keys, events] = [5000, 10_000];
    const configureAudit = (audit) => requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json");
    assert.equal((await configureAudit({ enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS })).status(), 200);
    await serveManyKeys(page, keys);
    // An event every four minutes, the newest first: all are of the last 28 days, and each tenth is refused.
    const newest = Date.now();
    const eventOf = (i) => {
      const time = new Date(newest - i * 240_000).toISOString();
      return {
        cells: [`event-${i}`, i % 10 === 0 ? 403 : 200],
        object: { metadata: { name: `event-${i}`, uid: `event-${i}`, creationTimestamp: time }, status: {
          verb: "create", requestURI: "/x", stageTimestamp: time, user: { username: "ana" }, objectRef: { resource: "ownedaccesskeys", name: `made-${i}` }, responseStatus: { code: i % 10 === 0 ? 403 : 200 },
        } },
      };
    };
    const asked = [];
    await page.route(/auditevents\?/, (route) => {
      const query = new URL(route.request().url()).searchParams;
      const [from, limit] = [Number(query.get("continue") ?? 0), Number(query.get("limit"))];
      asked.push(limit);
      const rows = Array.from({ length: Math.min(limit, events - from) }, (_, i) => eventOf(from + i));
      const metadata = from + limit < events ? { continue: String(from + limit) } : {};
      return route.fulfill({ contentType: "application/json", body: JSON.stringify({ kind: "Table", metadata, columnDefinitions: [{ name: "Name" }, { name: "Code" }], rows }) });
    });
    const drawn = (selector) => page.locator(selector).count();
    const counted = async (figure) => {
      const name = await figure.getByRole("img").getAttribute("aria-label");
      return ["permitted", "refused"].map((word) => [...name.matchAll(new RegExp(`(\\d+) ${word}`, "g"))].reduce((sum, [, count]) => sum + Number(count), 0));
    };
    // Home reads a bounded part of both, and says so.
    await signIn(page, admin, "/console/home", page.getByText(/^Of the last 1,000 requests that you may see, back to /));
    await page.getByText("reads only the first 500 access keys").waitFor();
    assert.deepEqual(asked.splice(0).sort(), [50, 500, 500]);
    assert.deepEqual(await counted(page.getByRole("figure").filter({ hasText: "Requests by" })), [900, 100]);
    assert.ok(await drawn("main li") <= 40, "Home draws too many lines");
    // The audit reads what is asked for.
    await page.goto(`${origin}/console/audit?show=all`);
    for (let pages = 1; pages <= 4; pages++) {
      await page.getByText(`${100 * pages} entries, back to`).waitFor();
      assert.deepEqual([asked.splice(0), await drawn(".events tbody tr")], [[100], 100 * pages]);
      await page.getByRole("button", { name: "Show more" }).click();
    }
    await page.getByText("500 entries, back to").waitFor();
    asked.length = 0;
    // The events of a key, over the list of all keys.
    await page.goto(`${origin}/console/keys?sort=Name&name=key-0007&tab=events`);
    const panel = page.getByRole("tabpanel", { name: "Events" });
    const older = panel.getByRole("button", { name: "Read older requests" });
    for (let read = 2000; read < events; read += 2000) {
      if (read > 2000) await older.click();
      await panel.getByText(`${read.toLocaleString("en")} requests that you may see, back to`).waitFor();
      assert.deepEqual(asked.splice(0), [500, 500, 500, 500], `after ${read}`);
    }
    const last = await workOf(page, async () => {
      await older.click();
      await panel.getByText("10,000 requests of the last 30 days").waitFor();
    });
    recordFigure(`the last 2,000 of 10,000 events of a key: ${last.calls} calls, ${last.styled} styled, ${last.placed} placed; the longest task takes ${last.longest.toFixed(1)} ms`);
    assert.deepEqual(asked.splice(0), [500, 500, 500, 500]);
    assert.deepEqual(await counted(panel), [9000, 1000]);
    assert.deepEqual([await drawn(".activity .rows li"), await drawn(".activity .plot > span") <= 31], [10, true]);
    await page.keyboard.press("Escape");
    await page.getByText("5,000 keys", { exact: true }).waitFor();
    assert.ok(await drawn("tbody tr") <= 102, "the list draws too many rows");
    assert.equal((await configureAudit(null)).status(), 200);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a page does little when it loads"() {
    const { context, page } = await openWindow();
    await signIn(page);
    for (const [name, ready] of [["home", () => page.getByRole("button", { name: "Kubeconfig for p-shop/dev" })], ["keys", () => page.getByRole("table")]]) {
      const loaded = await workOf(page, async () => {
        await page.goto(`${origin}/console/${name}`);
        await ready().waitFor();
      });
      // Home draws a card for each kind of task that there is.
      assertWork(name, loaded, { calls: name === "home" ? 15_000 : 12_000, styled: 500, placed: 800 });
    }
    await context.close();
  },
  async "an old tab keeps what was typed, and does its work, after an upgrade"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    // The scripts of a sheet and a form come after the rows.
    await page.getByRole("link", { name: "Open admin" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("old-tab");
    await page.getByLabel("A scope in YAML").check();
    await page.waitForFunction(() => performance.getEntriesByType("resource").some(({ name }) => name.includes("/assets/documents-")));
    // The scripts of the old version are gone. What is open needs none of them.
    const gone = [];
    await page.route("**/assets/*.js", (route) => {
      gone.push(route.request().url());
      return route.fulfill({ status: 404, contentType: "application/json", body: "{}" });
    });
    await page.getByText("This permits").click();
    await page.getByText("Permitted in this namespace").waitFor();
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "old-tab");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("link", { name: "Open old-tab" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
    assert.deepEqual(gone, []);
    await page.unrouteAll();
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await page.goto(`${origin}/console/studio`);
    await focus(editor);
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("- path: spec.nodeName\n  expression: '\"old-\" + value'\n");
    await page.route("**/assets/*.js", (route) => {
      gone.push(route.request().url());
      return route.fulfill({ status: 404, contentType: "application/json", body: "{}" });
    });
    await focus(page.getByRole("textbox", { name: "Object in the tenant cluster" }));
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("kind: Pod\napiVersion: v1\nspec: {nodeName: tab}\n");
    await page.getByText("old-tab").first().waitFor();
    await page.getByRole("button", { name: "Share by link" }).click();
    await page.getByRole("dialog").getByLabel("Link", { exact: true }).waitFor();
    assert.deepEqual(gone, []);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/old-tab");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "what somebody else has changed meanwhile is not overwritten: a team and a trust rule"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "shared" }, spec: { users: ["ana", "ben"] } });
    await requestAsAdmin(context, "POST", "trustrules", { metadata: { name: "shared" }, spec: { issuer: "https://ci.example.com", match: [{ claim: "sub", is: "x" }], owner: { team: "shared" }, scope: {} } });
    await page.route(/watch=true/, () => {}); // the page shows what was there
    await signIn(page, admin, "/console/teams");
    for (const [path, button, fields, kept] of [["teams", "Remove ben", { users: ["ana", "ben", "cleo"] }, "users"], ["trustrules", "Disable", { description: "by somebody else" }, "description"]]) {
      await page.goto(`${origin}/console/${path}?name=shared`);
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: button }).waitFor();
      assert.equal((await requestAsAdmin(context, "PATCH", `${path}/shared`, { spec: fields }, "application/merge-patch+json")).status(), 200);
      const answered = page.waitForResponse((response) => response.request().method() === "PATCH");
      await dialog.getByRole("button", { name: button }).click();
      assert.equal((await answered).status(), 409, path);
      await dialog.getByRole("alert").waitFor();
      const { spec } = await (await requestAsAdmin(context, "GET", `${path}/shared`)).json();
      assert.deepEqual([spec[kept], spec.disabled ?? false], [fields[kept], false], path);
    }
    for (const path of ["trustrules/shared", "teams/shared"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
};
