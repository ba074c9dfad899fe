// Stories of the audit.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { assertAccessible, admin, api, requestAsAdmin, saveDownload, focus, createAccessKey, openWindow, origin, pictureFolder, pressWithKeyboard, signIn, tabTo, signInWithKeyboard } from "../driver.mjs";

export const stories = {
  async "the audit says who was refused what, by filters, and by the keyboard alone"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 1240, height: 800 }, reducedMotion: "reduce" });
    const configure = async (audit) => {
      const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json");
      assert.equal(answer.status(), 200, await answer.text());
    };
    await signIn(page, admin, "/console/audit", page.getByText("set audit.enabled and audit.dataStoreEndpoint"));
    await configure({ enabled: true, level: 2, path: mkdtempSync(`${tmpdir()}/console-`), dataStoreEndpoint: process.env.EVENTS });
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
    await page.getByLabel("Name of the object").fill("audited");
    await until(1);
    assert.match(await rows.nth(1).textContent(), /admin\s*create\s*ownedaccesskeys\/audited\s*201/);
    await page.getByText("--field-selector name=audited").waitFor();
    await page.getByLabel("Name of the object").fill("nobodys");
    await page.getByLabel("Only refused").check();
    await until(1);
    assert.match(page.url(), /object=nobodys&refused=yes/);
    const lines = readFileSync(await saveDownload(page, () => page.getByRole("button", { name: "Export as JSON lines" }).click()), "utf8").trim().split("\n");
    assert.deepEqual(lines.map((one) => JSON.parse(one)).map(({ kind, verb, responseStatus }) => [kind, verb, responseStatus.code]), [["Event", "delete", 404]]);
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
    const refusal = refusals.getByRole("listitem").filter({ hasText: "delete teams/others" });
    do {
      await page.goto(`${origin}/console/home`);
      await refusals.waitFor();
    } while ((await refusal.count()) === 0);
    assert.match(await refusal.textContent(), /aud/);
    await assertAccessible(page, "the home page with a request that was refused");
    await refusal.getByRole("link").click();
    await page.getByRole("dialog").getByText("403 Forbidden").waitFor();
    await page.keyboard.press("Escape");
    assert.equal(await page.getByLabel("Code").inputValue(), "403");
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
  async "an auditor reads with the keyboard alone, and can change nothing"() {
    const { context, page, problems } = await openWindow();
    const configure = async (audit) => assert.equal((await requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json")).status(), 200);
    await configure({ enabled: true, level: 2, path: mkdtempSync(`${tmpdir()}/console-`), dataStoreEndpoint: process.env.EVENTS });
    const scope = { rules: [{ verbs: ["get", "list", "watch"] }] };
    const key = await createAccessKey(context, "auditor", { groups: ["platform:admins"], scope });
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/never-made");
    const refused = [];
    page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    await signInWithKeyboard(page, key, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    await pressWithKeyboard(page, page.getByRole("link", { name: "Audit", exact: true }));
    const name = page.getByLabel("Name of the object");
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
