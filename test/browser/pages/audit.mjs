// Stories of the audit.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { admin, api, assertAccessible, createAccessKey, focus, newFolder, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, saveDownload, signIn, signInWithKeyboard, tabTo } from "../driver.mjs";

/** One of the three choices: Changes, All or Refused. */
const choice = (page, name) => page.locator(".segments label", { hasText: name });
const configureAudit = async (context, audit) => {
  const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json");
  assert.equal(answer.status(), 200, await answer.text());
};
const withStore = () => ({ enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS });
/** How many requests the bars count: those that were permitted, and those that were refused. */
async function countedInBars(bars) {
  const labels = await bars.evaluateAll((all) => all.map((one) => one.ariaLabel));
  const sum = (word) => labels.reduce((all, label) => all + Number(label.match(new RegExp(`(\\d+) ${word}`))[1]), 0);
  return [sum("permitted"), sum("refused")];
}
/** Makes a key that lists teams and is refused a deletion, and returns it. */
async function makeBusyKey(context, name) {
  const key = await createAccessKey(context, name, { user: "admin", groups: ["platform:admins"] });
  const headers = { Authorization: `Bearer ${key}`, Cookie: "" };
  assert.equal((await context.request.get(`${api}/teams`, { headers })).status(), 200);
  assert.equal((await context.request.delete(`${api}/ownedaccesskeys/${name}-absent`, { headers })).status(), 404);
  return key;
}

export const stories = {
  async "an audit without a store says what it lacks, and leads those to the configuration who may change it"() {
    const { context, page, problems } = await openWindow();
    await signIn(page, admin, "/console/audit", page.getByText("the audit needs a data store"));
    assert.equal(await page.getByRole("alert").count(), 0);
    await assertAccessible(page, "the audit without a store");
    await pressWithKeyboard(page, page.getByRole("link", { name: "Set it in the configuration" }));
    await page.getByRole("heading", { level: 1, name: "Configuration" }).waitFor();
    await context.clearCookies();
    await signIn(page, await createAccessKey(context, "of-nobody", { user: "nobody-special" }), "/console/audit", page.getByText("the audit needs a data store"));
    assert.equal(await page.getByRole("link", { name: "Set it in the configuration" }).count(), 0);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/of-nobody");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the audit of a key that was found: from all its requests to one change, person and time"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
    await configureAudit(context, withStore());
    const key = await makeBusyKey(context, "traced");
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    await page.goto(`${origin}/console/found`);
    await page.getByLabel("The key or token that was found").fill(key);
    await page.getByRole("button", { name: "Whose is it?" }).click();
    await page.getByRole("link", { name: "What it did, in the audit" }).click();
    const rows = page.locator(".events tbody tr");
    const until = async (count) => {
      while ((await rows.count()) !== count) await Promise.all([page.waitForResponse((response) => response.url().includes("/auditevents?")), page.getByRole("button", { name: "Show events" }).click()]);
    };
    // All requests of the key, and no others.
    await page.getByRole("button", { name: "Remove the filter Access key: traced" }).waitFor();
    await until(2);
    assert.match(page.url(), /show=all&key=traced/);
    assert.deepEqual((await rows.locator(".what").allTextContents()).map((one) => one.trim()), ["Delete access key traced-absentdelete ownedaccesskeys/traced-absent", "List teamslist teams"]);
    // When comes first, and says the whole time; the name of the event does not.
    assert.match(await rows.first().locator("th").textContent(), /^[A-Z][a-z]{2} \d+, \d{4}, \d+:\d{2}:\d{2}/);
    const bars = page.getByRole("toolbar", { name: /^Requests by/ }).getByRole("button");
    assert.deepEqual(await countedInBars(bars), [1, 1]);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await assertAccessible(page, `the audit of a key at ${width}`);
      if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/audit-key-${width}.png` });
      const { y, height } = await rows.first().boundingBox();
      assert.ok(y + height < 844, `at ${width}, the first event ends at ${y + height}`);
      assert.ok(height < 60, `at ${width}, a row is ${height} high`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    // Only changes, only refused ones, and all again.
    await choice(page, "Changes").click();
    await until(1);
    await choice(page, "Refused").click();
    await page.waitForURL(/show=refused/);
    await until(1);
    await choice(page, "All").click();
    await until(2);
    // A bar narrows the time, and the chip of the time takes that back.
    const [permitted, refused] = await countedInBars(bars.last());
    await bars.last().click();
    await page.waitForURL(/from=.*&to=/);
    await until(permitted + refused);
    await page.getByRole("button", { name: /^Remove the filter Time/ }).click();
    await until(2);
    // From an event to its object, and to its person.
    await rows.first().locator(".what").click();
    await page.getByRole("dialog").getByRole("button", { name: "Only these: ownedaccesskeys/traced-absent" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await until(1);
    await page.getByRole("button", { name: "Remove the filter Resource: ownedaccesskeys" }).waitFor();
    await page.getByRole("button", { name: "Remove the filter Access key: traced" }).click();
    await page.getByRole("button", { name: "Remove the filter Access key: traced" }).waitFor({ state: "detached" });
    await rows.first().getByRole("link").click();
    await page.getByRole("dialog").getByRole("button", { name: "Only these: admin" }).click();
    await page.waitForURL((url) => url.search === "?show=all&user=admin&object=traced-absent&resource=ownedaccesskeys");
    await configureAudit(context, null);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/traced");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key and a virtual cluster show their requests by day, and lead to them in the audit"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await configureAudit(context, withStore());
    await makeBusyKey(context, "watched");
    assert.equal((await requestAsAdmin(context, "POST", "namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", { spec: {} })).status(), 201);
    const panel = page.getByRole("tabpanel", { name: "Events" });
    // What was requested a moment ago may not be written yet.
    const covered = panel.locator("p[role=status]");
    const until = async (pattern) => {
      while (!pattern.test(await covered.textContent())) await page.reload();
    };
    await signIn(page, admin, "/console/keys?name=watched&tab=events", covered);
    await until(/^2 requests of the last 30 days/);
    const bars = panel.getByRole("figure", { name: /^Requests by day/ });
    await bars.getByText("As a table").click();
    assert.deepEqual((await bars.getByRole("row").last().getByRole("cell").allTextContents()).slice(-2), ["1", "1"]);
    assert.deepEqual((await panel.locator(".rows li > span").allTextContents()).map((one) => one.replace(/ admin$/, "")).filter((one) => /teams|watched/.test(one)), ["Delete access key watched-absent", "List teams"]);
    await assertAccessible(page, "the events of a key");
    await panel.getByRole("link", { name: "Open in the audit" }).click();
    await page.getByRole("button", { name: "Remove the filter Access key: watched" }).waitFor();
    await page.goto(`${origin}/console/clusters?name=p-shop/dev&tab=events`);
    await until(/^[1-9]\d* requests of the last 30 days/);
    await panel.getByText(/^Create a kubeconfig|kubeconfig/).first().waitFor();
    await pressWithKeyboard(page, panel.getByRole("link", { name: "Open in the audit" }));
    await page.getByRole("button", { name: "Remove the filter Object: dev" }).waitFor();
    await configureAudit(context, null);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/watched");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the audit is narrowed by the keyboard alone"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 1280, height: 800 } });
    await configureAudit(context, withStore());
    await makeBusyKey(context, "typed");
    await signInWithKeyboard(page, admin, "/console/audit", page.locator(".events"));
    const rows = page.locator(".events tbody tr");
    const field = page.getByLabel("Access key", { exact: true });
    await tabTo(page, field);
    await page.keyboard.type("typed");
    const until = async (count) => {
      do await Promise.all([page.waitForResponse((response) => response.url().includes("/auditevents?")), page.keyboard.press("Enter")]);
      while ((await rows.count()) !== count);
    };
    // The first view has the changes alone.
    await until(1);
    // The arrow keys choose, and what is typed counts.
    await tabTo(page, page.getByRole("radio", { name: "Changes" }));
    await page.keyboard.press("ArrowRight");
    await tabTo(page, field);
    await until(2);
    // The tab key reaches one bar, and the arrow keys the others.
    const bars = page.getByRole("toolbar", { name: /^Requests by/ }).getByRole("button");
    await tabTo(page, bars.last());
    await page.keyboard.press("Home");
    const counted = await countedInBars(bars.first());
    await page.keyboard.press("Enter");
    await page.waitForURL(/from=.*&to=/);
    const time = page.getByRole("button", { name: /^Remove the filter Time/ });
    await time.waitFor();
    assert.equal(await time.evaluate((it) => it === document.activeElement), true);
    await page.waitForFunction((count) => document.querySelectorAll(".events tbody tr").length === count, counted[0] + counted[1]);
    await page.keyboard.press("Enter");
    await time.waitFor({ state: "detached" });
    await page.waitForFunction(() => document.querySelectorAll(".events tbody tr").length === 2);
    // The further filters are behind a button.
    await pressWithKeyboard(page, page.getByRole("button", { name: "More filters" }));
    await tabTo(page, page.getByLabel("Verb", { exact: true }));
    await page.keyboard.type("list");
    await until(1);
    await pressWithKeyboard(page, rows.first().getByRole("link"));
    await pressWithKeyboard(page, page.getByRole("dialog").getByRole("button", { name: "Only these: typed" }));
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Remove the filter Verb: list" }).waitFor();
    await configureAudit(context, null);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/typed");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the audit says who was refused what, by filters, and by the keyboard alone"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 1240, height: 800 }, reducedMotion: "reduce" });
    const configure = async (audit) => {
      const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json");
      assert.equal(answer.status(), 200, await answer.text());
    };
    await signIn(page, admin, "/console/audit", page.getByText("the audit needs a data store"));
    await configure({ enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS });
    const spec = { user: "aud", scope: { roles: [{ role: "platformCLI" }] } };
    const { spec: { key: audited } } = await (await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "audited" }, spec })).json();
    const refused = await context.request.delete(`${api}/ownedaccesskeys/nobodys`, { headers: { Authorization: `Bearer ${admin}`, Cookie: "" } });
    assert.equal(refused.status(), 404);
    const rows = page.getByRole("table").getByRole("row");
    const show = page.getByRole("button", { name: "Show events" });
    // The log is written a moment after the answer.
    const until = async (count) => {
      for (;;) {
        await Promise.all([page.waitForResponse((response) => response.url().includes("/auditevents?")), show.click()]);
        if ((await rows.count()) === count + 1) return;
      }
    };
    await page.getByLabel("Object", { exact: true }).fill("audited");
    await until(1);
    assert.match(await rows.nth(1).textContent(), /admin.*Create access key audited.*create ownedaccesskeys\/audited.*Permitted.*201/);
    await page.getByText("--field-selector 'name=audited,verb!=get,").waitFor();
    await page.getByLabel("Object", { exact: true }).fill("nobodys");
    await choice(page, "Refused").click();
    await until(1);
    assert.match(page.url(), /show=refused&object=nobodys/);
    const lines = readFileSync(await saveDownload(page, () => page.getByRole("button", { name: "Export as JSON lines" }).click()), "utf8").trim().split("\n");
    assert.deepEqual(lines.map((one) => JSON.parse(one)).map(({ kind, verb, responseStatus }) => [kind, verb, responseStatus.code]), [["Event", "delete", 404]]);
    // Names are exact: the fields offer them, and a display name finds nothing, which the page explains.
    await focus(page.getByLabel("Access key", { exact: true }));
    await page.locator("datalist option[value=audited]").waitFor({ state: "attached" });
    await page.getByLabel("Who", { exact: true }).fill("Ana Martínez");
    await page.getByRole("button", { name: "Show events" }).click();
    await page.getByText("Names must match exactly").waitFor();
    await page.getByRole("button", { name: "Remove the filter Who: Ana Martínez" }).click();
    await page.getByText("Names must match exactly").waitFor({ state: "detached" });
    // The keyboard alone: the address has the filters, and the event says what the caller may do now.
    await page.reload();
    await focus(rows.nth(1).getByRole("link"));
    await page.keyboard.press("Enter");
    await focus(page.getByText("What you may do now"));
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").locator(".decision").waitFor();
    assert.match(await page.getByRole("dialog").locator("pre").last().textContent(), /"code": 404/);
    await assertAccessible(page, "an event");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1240, 768, 320]) {
        await page.setViewportSize({ width, height: 800 });
        await assertAccessible(page, `the audit at ${width}, ${colorScheme}`);
        if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/audit-${width}-${colorScheme}.png` });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `at ${width} the page is ${wide} too wide`);
      }
    }
    // The home page lists what no scope permitted, and leads to the event.
    const forbidden = await context.request.delete(`${api}/teams/others`, { headers: { Authorization: `Bearer ${audited}`, Cookie: "" } });
    assert.equal(forbidden.status(), 403);
    const refusals = page.locator("section").filter({ has: page.getByRole("heading", { name: "Requests without permission in the last 24 hours" }) });
    const refusal = refusals.getByRole("listitem").filter({ hasText: "Delete team others" });
    do {
      await page.goto(`${origin}/console/home`);
      await refusals.waitFor();
    } while ((await refusal.count()) === 0);
    assert.match(await refusal.textContent(), /aud/);
    await assertAccessible(page, "the home page with a request that was refused");
    await refusal.getByRole("link").click();
    await page.getByRole("dialog").getByText("403 Forbidden").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Remove the filter Status code: 403" }).waitFor();
    await configure(null);
    // An audit that cannot be read is not asked for: the request would be an error in the log of the platform.
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("/auditevents")) asked.push(request.url()); });
    await page.goto(`${origin}/console/home`);
    await page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).waitFor();
    assert.deepEqual([await refusals.count(), asked], [0, []]);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/audited");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "of a long name in a request, the middle is cut"() {
    const { context, page, problems } = await openWindow();
    const name = `${"x".repeat(200)}-the-end`;
    const stageTimestamp = new Date().toISOString();
    await page.route(/auditevents\?/, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({
      kind: "Table", metadata: {}, columnDefinitions: [],
      rows: [{ cells: [], object: { metadata: { name: "long", creationTimestamp: stageTimestamp }, status: {
        verb: "delete", requestURI: `/apis/management.platform.sh/v1/virtualclusterinstances/${name}`, stageTimestamp, user: { username: "ana" },
        objectRef: { resource: "virtualclusterinstances", namespace: "p-shop", name }, responseStatus: { code: 200 },
      } } }],
    }) }));
    await signIn(page, admin, "/console/audit", page.locator(".what"));
    const cell = page.locator(".what");
    assert.equal(await cell.textContent(), `Delete virtual cluster ${name} in p-shopdelete virtualclusterinstances/${name}`);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      const ends = await cell.locator(".name > :last-child").evaluateAll((all) => all.filter((end) => end.checkVisibility()).map((end) => {
        const [{ left, right }, area] = [end.getBoundingClientRect(), end.closest("td").getBoundingClientRect()];
        return [end.textContent, left >= area.left && right <= area.right];
      }));
      assert.deepEqual(ends, Array(width > 960 ? 2 : 1).fill(["xxxx-the-end", true]), `at ${width}`);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "an auditor reads with the keyboard alone, and can change nothing"() {
    const { context, page, problems } = await openWindow();
    const configure = async (audit) => assert.equal((await requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json")).status(), 200);
    await configure({ enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS });
    const scope = { rules: [{ verbs: ["get", "list", "watch"] }] };
    const key = await createAccessKey(context, "auditor", { groups: ["platform:admins"], scope });
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/never-made");
    const refused = [];
    page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    await signInWithKeyboard(page, key, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    await pressWithKeyboard(page, page.getByRole("link", { name: "Audit", exact: true }));
    const name = page.getByLabel("Object", { exact: true });
    await tabTo(page, name);
    await page.keyboard.type("never-made");
    const rows = page.getByRole("table").getByRole("row");
    // The log is written a moment after the answer.
    do await Promise.all([page.waitForResponse((response) => response.url().includes("/auditevents?")), page.keyboard.press("Enter")]);
    while ((await rows.count()) < 2);
    await pressWithKeyboard(page, rows.nth(1).getByRole("link"));
    await page.getByRole("dialog").getByText("404 NotFound").waitFor();
    await page.keyboard.press("Escape");
    await tabTo(page, page.getByRole("button", { name: "Export as JSON lines" }));
    const lines = readFileSync(await saveDownload(page, () => page.keyboard.press("Enter")), "utf8").trim().split("\n").map((one) => JSON.parse(one));
    assert.ok(lines.length > 0 && lines.every(({ objectRef }) => objectRef.name === "never-made"));
    for (const [link, button] of [["Projects", /^New/], ["People", /^New/], ["Trust rules", /^New/], ["Configuration", /^(Review|Roll back)/]]) {
      await pressWithKeyboard(page, page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: link, exact: true }));
      await page.getByRole("heading", { level: 1, name: link }).waitFor();
      await page.getByRole("table").or(page.getByRole("heading", { name: "History" })).first().waitFor();
      assert.deepEqual(await page.getByRole("button", { name: button }).allTextContents(), [], link);
    }
    assert.deepEqual(refused, []);
    await configure(null);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/auditor");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
