// Stories of somebody who finds a credential.
import assert from "node:assert/strict";
import { admin, api, assertAccessible, createAccessKey, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, signIn, signInWithKeyboard, tabTo } from "../driver.mjs";

const field = (page) => page.getByLabel("The key or token that was found");
/** The answer of the API to a key. */
const statusOf = async (context, key) => (await context.request.get(`${api}/teams`, { headers: { Authorization: `Bearer ${key}`, Cookie: "" } })).status();

export const stories = {
  async "a key that was found is looked at without a use, and ended with what was made with it"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const leaked = await createAccessKey(context, "leaked", { user: "admin", displayName: "Nightly build", groups: ["platform:admins"], ttl: 3600 });
    const make = async (bearer, name) => {
      const made = await context.request.post(`${api}/ownedaccesskeys`, {
        headers: { Authorization: `Bearer ${bearer}`, Cookie: "" }, data: { metadata: { name }, spec: { user: "admin", ttl: 600 } },
      });
      assert.equal(made.status(), 201, await made.text());
      return (await made.json()).spec.key;
    };
    const child = await make(leaked, "leaked-child");
    const endless = await createAccessKey(context, "endless", { user: "admin" });
    await make(endless, "endless-child");
    const activity = async () => (await (await requestAsAdmin(context, "GET", "ownedaccesskeys/leaked")).json()).status.lastActivity;
    const before = await activity();
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    await page.goto(`${origin}/console/found`);
    await page.waitForFunction(() => document.activeElement?.id === "found-credential");
    await field(page).fill(`  ${leaked}\n`);
    await page.getByRole("button", { name: "Whose is it?" }).click();
    assert.equal(await page.getByRole("link", { name: "admin" }).getAttribute("href"), "/console/people?name=admin");
    await page.getByText("Nightly build").waitFor();
    const part = (title) => page.getByRole("heading", { name: title }).locator("xpath=following-sibling::ul[1]");
    await part("Ends with it").getByRole("link", { name: "leaked-child" }).waitFor();
    assert.equal(await activity(), before);
    assert.equal(await page.getByRole("link", { name: "leaked", exact: true }).getAttribute("href"), "/console/keys?name=leaked");
    assert.equal(await page.getByText("This is the key of your session").count(), 0);
    await assertAccessible(page, "a key that was found");
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/found.png` });
    await page.getByRole("button", { name: "End it now" }).click();
    await page.getByText("Access key leaked of admin is ended.").waitFor();
    assert.deepEqual([await statusOf(context, leaked), await statusOf(context, child), await field(page).inputValue()], [401, 401, ""]);
    await field(page).fill(leaked);
    await page.getByRole("button", { name: "End it now" }).click();
    await page.getByText("it had ended before").waitFor();
    // A key without scope and end leaves what was made with it.
    await field(page).fill(endless);
    await page.getByRole("button", { name: "Whose is it?" }).click();
    await part("Made with it, and goes on working").getByRole("link", { name: "endless-child" }).waitFor();
    for (const name of ["endless", "endless-child"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    // What is no key: nothing, a password, too much, a key that has ended, a token, the key of the session.
    for (const [typed, answer] of [
      ["", "Paste the key or the token first"], ["x".repeat(1_000_000), "longer than any access key"], ["hunter2", "invalid bearer token"], [leaked, "no access key that works"],
      [`e30.${Buffer.from('{"sub":"ana","exp":1795727381}').toString("base64url")}.x`, "ana"], [admin, "This is the key of your session"],
    ]) {
      await field(page).fill(typed);
      await page.getByRole("button", { name: "Whose is it?" }).click();
      await page.getByText(answer).first().waitFor();
      if (typed === "") assert.deepEqual([await field(page).getAttribute("aria-invalid"), await page.evaluate(() => document.activeElement.id)], ["true", "found-credential"]);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key that was found is ended without a session, by the keyboard alone"() {
    const { context, page, problems } = await openWindow();
    const leaked = await createAccessKey(context, "leaked-too", { user: "admin" });
    await page.goto(`${origin}/console/keys`);
    await pressWithKeyboard(page, page.getByRole("link", { name: "Found a key?" }).last());
    await tabTo(page, field(page));
    await page.keyboard.insertText(leaked);
    await page.keyboard.press("Enter");
    await page.getByText("it is refused from now on").waitFor();
    assert.equal(await statusOf(context, leaked), 401);
    assert.equal(await page.getByRole("button", { name: "Whose is it?" }).count(), 0);
    await assertAccessible(page, "a key that was found, without a session");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "somebody who may not see a key that they found learns whose it is"() {
    const { context, page, problems } = await openWindow();
    const leaked = await createAccessKey(context, "of-admin", { user: "admin" });
    const own = await createAccessKey(context, "finder", { user: "finder" });
    await signInWithKeyboard(page, own, "/console/home", page.getByRole("heading", { name: "Hello, finder" }));
    await pressWithKeyboard(page, page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Found a key?" }));
    await tabTo(page, field(page));
    await page.keyboard.insertText(leaked);
    await page.keyboard.press("Enter");
    await page.getByText("You may not see the object of this key").waitFor();
    await page.getByTitle("user:admin", { exact: true }).waitFor();
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/of-admin");
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/finder");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
