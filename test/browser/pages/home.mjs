// Stories of the first page.
import assert from "node:assert/strict";
import { admin, assertAccessible, createAccessKey, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, signIn } from "../driver.mjs";

export const stories = {
  async "the first page says what needs somebody"() {
    const { context, page, problems } = await openWindow();
    for (const [name, spec] of Object.entries({ "soon-over": { ttl: 86_400, displayName: "Nightly" }, "switched-off": { disabled: true }, "long-lived": {} })) {
      assert.equal((await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name }, spec })).status(), 201);
    }
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    const part = (name) => page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });
    await part("Access keys that expire within 7 days").getByRole("link", { name: "soon-over" }).waitFor();
    await part("Access keys that no longer work").getByText("Disabled by an admin").waitFor();
    assert.equal(await page.getByRole("link", { name: "long-lived" }).count(), 0);
    // The line on top has the key, and the table behind it leads there.
    const line = page.getByRole("figure");
    await line.getByRole("img", { name: /^What ends in the next 90 days, by day: .*\d access keys/ }).waitFor();
    await pressWithKeyboard(page, line.getByText("As a table"));
    await line.getByRole("link", { name: "soon-over" }).waitFor();
    await page.keyboard.press("Enter");
    // Each line has the button that settles it.
    await page.getByRole("button", { name: "Extend soon-over" }).click();
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
    for (const name of ["soon-over", "long-lived"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a signer that ends soon is on the line of the first page, and is a task"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    // The end is sooner than the end of the signer of the stories.
    let end = "";
    await page.route("**/virtualclusterinstances?**", async (route) => {
      const response = await route.fetch({ headers: { ...route.request().headers(), authorization: `Bearer ${admin}` } });
      const table = await response.json();
      for (const { object } of table.rows) {
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
    await page.unrouteAll({ behavior: "wait" });
    await pressWithKeyboard(page, task.getByRole("link", { name: "p-shop/dev" }));
    await page.getByRole("dialog").waitFor();
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
