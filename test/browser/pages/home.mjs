// Stories of the first page.
import assert from "node:assert/strict";
import { admin, api, assertAccessible, createAccessKey, createUserWithKey, newFolder, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, requestsOf, signIn, signOut } from "../driver.mjs";

const configureAudit = async (context, audit) => {
  const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json");
  assert.equal(answer.status(), 200, await answer.text());
};

export const stories = {
  async "the first page says what needs somebody"() {
    const { context, page, problems } = await openWindow();
    for (const [name, spec] of Object.entries({ "soon-over": { ttl: 2 * 86_400, displayName: "Nightly" }, "switched-off": { disabled: true }, "long-lived": {} })) {
      assert.equal((await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name }, spec })).status(), 201);
    }
    // Keys that are made to end soon ask for nothing.
    await createAccessKey(context, "of-an-hour", { ttl: 3600 });
    await createAccessKey(context, "of-a-day", { ttl: 86_400 });
    assert.equal((await requestAsAdmin(context, "POST", "namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", { spec: {} })).status(), 201);
    const kubeconfigKey = (await (await requestAsAdmin(context, "GET", "ownedaccesskeys")).json()).items.find(({ spec }) => spec.type === "Kubeconfig").metadata.name;
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    const part = (name) => page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });
    await part("Access keys that expire within 7 days").getByRole("link", { name: "soon-over" }).waitFor();
    await part("Access keys that no longer work").getByText("Disabled by an admin").waitFor();
    for (const name of ["long-lived", "of-an-hour", "of-a-day", kubeconfigKey]) assert.equal(await page.getByRole("link", { name, exact: true }).count(), 0, name);
    // The line below the tasks has the key, and the table behind it leads there.
    const line = page.getByRole("figure");
    assert.equal(await line.locator("figcaption").getByText("Access keys").count(), 1);
    // Tasks are first, and what is no task comes after them.
    const headings = await page.locator("main h2, main figcaption").allTextContents();
    const places = ["Access keys that expire", "Access keys that no longer", "Virtual clusters", "What ends"].map((begin) => headings.findIndex((heading) => heading.startsWith(begin)));
    assert.ok(places.every((place, i) => place >= 0 && (i === 0 || place > places[i - 1])), `${headings}`);
    await line.getByRole("img", { name: /^What ends in the next 90 days, by day: .*\d access keys/ }).waitFor();
    await pressWithKeyboard(page, line.getByText("As a table"));
    await line.getByRole("link", { name: "soon-over" }).waitFor();
    await page.keyboard.press("Enter");
    // Each line has the button that settles it.
    await page.getByRole("button", { name: "Extend soon-over" }).click();
    await page.getByRole("dialog").getByLabel("No expiration").waitFor();
    assert.equal(await page.getByRole("dialog").getByLabel("1 day").count(), 0);
    await page.getByRole("dialog").getByLabel("30 days").check();
    await page.getByRole("dialog").getByRole("button", { name: "Change expiration" }).click();
    await page.getByRole("link", { name: "soon-over" }).waitFor({ state: "detached" });
    await part("Access keys that no longer work").getByRole("link", { name: "switched-off" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).waitFor();
    await page.goto(`${origin}/console/home`);
    await pressWithKeyboard(page, page.getByRole("button", { name: "Delete switched-off" }));
    await page.getByRole("dialog").getByRole("textbox").waitFor();
    await page.keyboard.type("switched-off");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "switched-off" }).waitFor({ state: "detached" });
    for (const name of ["soon-over", "long-lived", "of-an-hour", "of-a-day", kubeconfigKey]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a signer that ends soon is on the line of the first page, and is a task"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    // The end is sooner than the end of the signer of the stories.
    let end = "";
    await page.route("**/virtualclusterinstances?**", async (route) => {
      if (route.request().url().includes("watch=true")) return route.fallback();
      const response = await route.fetch({ headers: { ...route.request().headers(), authorization: `Bearer ${admin}` } });
      const table = await response.json();
      for (const { cells, object } of table.rows) {
        cells[table.columnDefinitions.findIndex(({ name }) => name === "Signer")] = "CA, ends in 3d";
        end = object.status.signerNotAfter;
        object.status.signerNotAfter = new Date(Date.now() + 3.5 * 86_400_000).toISOString();
      }
      await route.fulfill({ response, json: table });
    });
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Virtual clusters whose signer ends within 30 days" }));
    assert.ok(Date.parse(end) > Date.now(), end);
    const task = page.locator("section", { has: page.getByRole("heading", { name: "Virtual clusters whose signer ends within 30 days" }) });
    await task.getByText("in 3 days").waitFor();
    assert.equal(await page.getByText("All well").count(), 0);
    await page.getByRole("img", { name: /What ends in the next 90 days, by day: .*1 signers/ }).waitFor();
    await assertAccessible(page, "the first page with what ends");
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/home-signer.png` });
    // In the list, "Ready" is not all that is said.
    await page.goto(`${origin}/console/clusters`);
    await page.locator(".chip.warning", { hasText: "CA, ends in 3d" }).waitFor();
    await page.goBack();
    await task.waitFor();
    await page.unrouteAll({ behavior: "wait" });
    await pressWithKeyboard(page, task.getByRole("link", { name: "p-shop/dev" }));
    await page.getByRole("dialog").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the requests of the last 30 days are below the tasks, which do not wait for them"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await configureAudit(context, { enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS });
    // One request that is permitted, and one that is refused.
    const headers = { Authorization: `Bearer ${await createAccessKey(context, "counted", { user: "counted" })}`, Cookie: "" };
    assert.equal((await context.request.get(`${api}/ownedaccesskeys`, { headers })).status(), 200);
    assert.equal((await context.request.delete(`${api}/ownedaccesskeys/counted-absent`, { headers })).status(), 404);
    // The log is written a moment after the answer.
    for (let found = 0; found < 2;) found = (await (await context.request.get(`${api}/auditevents?limit=500&fieldSelector=accessKey=counted,resource=ownedaccesskeys`, { headers: { Authorization: `Bearer ${admin}`, Cookie: "" } })).json()).items.length;
    let release;
    const held = new Promise((done) => { release = done; });
    const asked = [];
    await page.route(/auditevents\?.*includeObject=Metadata/, async (route) => {
      asked.push(new URL(route.request().url()).searchParams.get("fieldSelector"));
      await held;
      await route.fallback();
    });
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    const picture = page.getByRole("figure").filter({ hasText: "Requests by" });
    while (asked.length === 0) await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
    assert.equal(await picture.count(), 0);
    assert.match(asked[0], /^after=/);
    release();
    await picture.getByRole("img", { name: /^Requests by day: .*\d+ permitted, [1-9]\d* refused/ }).waitFor();
    await page.getByText(/requests of the last 30 days that you may see/).waitFor();
    if (pictureFolder) {
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const width of [390, 1280, 2560]) {
          await page.setViewportSize({ width, height: 900 });
          await picture.scrollIntoViewIfNeeded();
          await page.screenshot({ path: `${pictureFolder}/home-requests-${colorScheme}-${width}.png`, fullPage: true });
        }
      }
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 1200, height: 800 });
    }
    await assertAccessible(page, "the first page with requests");
    // The table behind it, with the keyboard, and the way to the events.
    await pressWithKeyboard(page, picture.getByText("As a table"));
    await picture.getByRole("row").nth(1).waitFor();
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open in the audit" }));
    await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
    assert.deepEqual(Object.fromEntries(new URL(page.url()).searchParams), { show: "all", last: "30d" });
    await configureAudit(context, null);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "of many requests, the first page reads the last ones, and says so"() {
    const { context, page, problems } = await openWindow();
    await configureAudit(context, { enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS });
    const asked = [];
    await page.route(/auditevents\?.*includeObject=Metadata/, (route) => {
      const page = asked.push(new URL(route.request().url()).searchParams.get("continue"));
      const creationTimestamp = new Date(Date.now() - page * 60_000).toISOString();
      return route.fulfill({ contentType: "application/json", body: JSON.stringify({
        kind: "Table", metadata: { continue: `page-${page}` }, columnDefinitions: [{ name: "Name" }, { name: "Code" }],
        rows: Array.from({ length: 500 }, (_, i) => ({ cells: [`${page}-${i}`, i === 0 ? 403 : i === 1 ? null : 200], object: { metadata: { name: `${page}-${i}`, creationTimestamp } } })),
      }) });
    });
    await signIn(page, admin, "/console/home", page.getByText(/^Of the last 1,000 requests that you may see, back to /));
    // All of them are of the last two minutes, and are in one or two bars.
    const name = await page.getByRole("img", { name: /^Requests by 5 minutes/ }).getAttribute("aria-label");
    const sum = (word) => [...name.matchAll(new RegExp(`(\\d+) ${word}`, "g"))].reduce((all, [, count]) => all + Number(count), 0);
    assert.deepEqual([sum("permitted"), sum("refused")], [998, 2]);
    assert.deepEqual(asked, [null, "page-1"]);
    await configureAudit(context, null);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "without a store of the audit, or the right to read it, there is no picture of requests"() {
    const { context, page, problems } = await openWindow();
    const asked = [];
    page.on("response", (response) => { if (response.url().includes("/auditevents")) asked.push(response.status()); });
    // Who may read the configuration knows that the audit is off.
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    const reads = requestsOf(page);
    await reads.calm();
    assert.deepEqual(asked, []);
    await signOut(page);
    // Others ask once, and those whose scope does not permit it do not.
    for (const [name, scope, answers] of [["blind", undefined, [501]], ["narrow-blind", { roles: [] }, []]]) {
      const key = await createAccessKey(context, name, { user: "blind", ...(scope && { scope }) });
      await Promise.all([
        signIn(page, key, "/console/home", page.getByRole("heading", { name: "Hello, blind" })),
        answers.length > 0 && page.waitForResponse((response) => response.url().includes("/auditevents")),
      ]);
      await page.getByText("Loading …").waitFor({ state: "detached" });
      await reads.calm();
      assert.deepEqual([asked, await page.getByRole("figure").count(), await page.getByRole("alert").count()], [answers, 0, 0], name);
      asked.length = 0;
      await signOut(page);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "admins of a new platform see the steps of the first hour until all are done"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    // The steps stand above the tasks, and move none of them.
    const card = page.locator("section", { has: page.getByRole("heading", { name: "The first hour" }) });
    assert.equal(await card.count(), 1);
    const stepsThatAre = async (state) => (await card.getByRole("listitem").filter({ hasText: state }).getByRole("link").allTextContents());
    const open = ["Set up a place to sign in", "Make two people admins", "Replace the first admin key: it never ends", "Switch on the audit"];
    assert.deepEqual((await stepsThatAre("To do")).filter((label) => !label.includes("project")), open);
    assert.ok((await stepsThatAre("Done")).includes("Register the first virtual cluster"));
    assert.equal(await page.getByText("All well").count(), 0);
    await assertAccessible(page, "the steps of the first hour");
    if (pictureFolder) {
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const width of [390, 1280]) {
          await page.setViewportSize({ width, height: 800 });
          await page.screenshot({ path: `${pictureFolder}/home-first-hour-${colorScheme}-${width}.png` });
        }
      }
      await page.setViewportSize({ width: 1200, height: 800 });
    }
    // A step leads to where it is done.
    await pressWithKeyboard(page, card.getByRole("link", { name: "Replace the first admin key" }));
    await page.getByRole("dialog").getByRole("heading", { name: "admin", exact: true }).waitFor();
    // What is done is no step, and the list goes.
    for (const name of ["first", "second"]) await requestAsAdmin(context, "POST", "users", { metadata: { name: `${name}-admin` }, spec: { clusterRoles: [{ name: "platform-admin" }] } });
    await requestAsAdmin(context, "POST", "projects", { metadata: { name: "first-hour" }, spec: {} });
    const change = (pattern, edit) => page.route(pattern, async (route) => {
      const response = await route.fetch({ headers: { ...route.request().headers(), authorization: `Bearer ${admin}` } });
      const json = await response.json();
      edit(json);
      await route.fulfill({ response, json });
    });
    await change(/\/config\/config$/, ({ status }) => { status.auth = { ...status.auth, oidc: { issuerURL: "https://id.example.com" } }; status.audit = { enabled: true }; });
    await page.goto(`${origin}/console/home`);
    await card.getByRole("listitem").filter({ hasText: "To do" }).first().waitFor();
    assert.deepEqual(await stepsThatAre("To do"), ["Replace the first admin key: it never ends"]);
    await change(/ownedaccesskeys\?/, ({ rows }) => { for (const { object } of rows) delete object.spec.groups; });
    await page.goto(`${origin}/console/home`);
    await page.getByText("All well: nothing here needs you.").waitFor();
    assert.equal(await card.count(), 0);
    // Once there are two admins and a project, they are read again a day later.
    const asked = [];
    page.on("request", (request) => { if (/\/(users|projects)\?/.test(request.url())) asked.push(request.url()); });
    await page.reload();
    await page.getByText("All well: nothing here needs you.").waitFor();
    assert.deepEqual(asked, []);
    await page.evaluate(() => localStorage.setItem("firsthour.found", String(Date.now() - 86_400_000)));
    await page.reload();
    await page.getByText("All well: nothing here needs you.").waitFor();
    assert.equal(asked.length, 2);
    await page.unrouteAll({ behavior: "wait" });
    for (const path of ["users/first-admin", "users/second-admin", "projects/first-hour"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a person with nothing to do is told that all is well"() {
    const { context, page, problems } = await openWindow();
    const key = await createAccessKey(context, "of-calm", { user: "calm" });
    await signIn(page, key, "/console/home", page.getByText("All well: nothing here needs you."));
    assert.equal(await page.getByRole("heading", { name: "Access keys that expire within 7 days" }).count(), 0);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/of-calm");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a person is greeted by their display name, and the menu has their name as well"() {
    const { context, page, problems } = await openWindow();
    const key = await createUserWithKey(context, "ben");
    await requestAsAdmin(context, "PATCH", "users/ben", { spec: { displayName: "Ben Stone" } }, "application/merge-patch+json");
    await signIn(page, key, "/console/home", page.getByRole("heading", { name: "Hello, Ben Stone" }));
    await page.getByRole("button", { name: "Ben Stone" }).click();
    assert.deepEqual(await page.locator("#person .whole").allTextContents(), ["Ben Stone", "ben"]);
    for (const path of ["ownedaccesskeys/ben-key", "users/ben"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a state is one line beside the longest name, at every width"() {
    const { context, page, problems } = await openWindow();
    const name = "l".repeat(63);
    const answer = await requestAsAdmin(context, "POST", "namespaces/p-shop/virtualclusterinstances", { metadata: { name }, spec: {} });
    assert.equal(answer.status(), 201, await answer.text());
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: `Kubeconfig for p-shop/${name}` }));
    const line = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: `p-shop/${name}` }) });
    await line.getByText("No endpoint yet").waitFor();
    for (const width of [390, 768, 1280, 2560]) {
      await page.setViewportSize({ width, height: 800 });
      const [lines, inside] = await line.locator(".word").evaluate((word) => {
        const range = document.createRange();
        range.selectNodeContents(word);
        const card = word.closest("section").getBoundingClientRect();
        return [new Set([...range.getClientRects()].map(({ top }) => top)).size, word.closest("li").scrollWidth <= card.width];
      });
      assert.deepEqual([lines, inside], [1, true], `at ${width} px`);
      if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/home-long-name-${width}.png` });
    }
    await page.setViewportSize({ width: 1200, height: 800 });
    await page.goto(`${origin}/console/clusters?name=p-shop/${name}`);
    for (const chip of [page.getByRole("dialog").locator(".chip"), page.getByRole("table").locator(".chip")]) await chip.and(page.locator(".off")).filter({ hasText: "No endpoint yet" }).waitFor();
    await requestAsAdmin(context, "DELETE", `namespaces/p-shop/virtualclusterinstances/${name}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a part that fails does not hide the others"() {
    const { context, page, problems } = await openWindow();
    await page.route("**/config/config/history", (route) => route.fulfill({
      status: 503, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code: 503, message: "no history now" }),
    }));
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    await page.getByRole("alert").getByText("no history now").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
};
