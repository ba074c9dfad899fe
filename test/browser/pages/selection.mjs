// Stories of several access keys that are selected, and of what is done with them at once.
import assert from "node:assert/strict";
import { assertAccessible, admin, api, requestAsAdmin, setHidden, createAccessKey, openWindow, createUserWithKey, pressWithKeyboard, signIn, tabTo, signInWithKeyboard } from "../driver.mjs";

/** The page of the access keys whose names begin with many-: its boxes, the buttons beside the filter, and what exists. */
async function manyKeys(context, page, key = admin, enter = signIn) {
  await enter(page, key, "/console/keys?filter=many-");
  const names = async () => (await (await requestAsAdmin(context, "GET", "ownedaccesskeys")).json()).items.filter(({ metadata: { name } }) => name.startsWith("many-"));
  return {
    box: (name) => page.getByRole("checkbox", { name: `Select ${name}`, exact: true }),
    all: page.getByRole("checkbox", { name: "Select all that are shown" }),
    bar: (name) => page.locator(".tools > button").getByText(name, { exact: true }),
    dialog: page.getByRole("dialog"),
    left: async () => (await names()).map(({ metadata: { name } }) => name),
    disabled: async () => (await names()).filter(({ spec }) => spec.disabled).map(({ metadata: { name } }) => name),
    said: (text) => page.getByRole("status").getByText(text, { exact: true }).waitFor(),
    partly: () => page.getByRole("checkbox", { name: "Select all that are shown" }).evaluate((it) => it.indeterminate),
    clean: async () => { for (const { metadata: { name } } of await names()) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`); },
  };
}

export const stories = {
  async "several keys are selected, whatever happens to the list"() {
    const { context, page, problems } = await openWindow();
    for (const name of ["many-a", "many-b", "many-c", "many-d"]) await createAccessKey(context, name, {});
    const { box, all, bar, said, partly, clean } = await manyKeys(context, page);
    assert.equal(await bar(/^(Disable|Delete)$/).count(), 0, "nothing is selected");
    for (const target of [box("many-a"), all]) {
      const { width, height } = await target.locator("xpath=..").boundingBox();
      assert.ok(width >= 24 && height >= 24, `a target of ${width} x ${height}`);
    }
    // However narrow the window is, a box keeps off the border of the table, and is in the middle of its row.
    for (const width of [1200, 390]) {
      await page.setViewportSize({ width, height: 800 });
      const [table, row, own] = [await page.locator(".table").boundingBox(), await page.getByRole("row").filter({ has: box("many-a") }).boundingBox(), await box("many-a").boundingBox()];
      assert.ok(own.x - table.x >= 8, `at ${width}, ${own.x - table.x} pixels from the border`);
      assert.ok(Math.abs(own.y + own.height / 2 - row.y - row.height / 2) <= 3, `at ${width}, the box is at ${own.y}, the row at ${row.y}`);
    }
    await page.setViewportSize({ width: 1200, height: 800 });
    await box("many-a").check();
    await said("1 selected");
    assert.ok(await partly());
    await bar("Disable").waitFor();
    await bar("Delete").waitFor();
    await all.click();
    await said("4 selected");
    assert.ok(!(await partly()) && await all.isChecked());
    await all.uncheck();
    await bar("Delete").waitFor({ state: "detached" });
    assert.equal(await box("many-a").isChecked(), false);
    // The filter and the order change what is shown, and not what is selected.
    await all.check();
    const filter = page.getByRole("searchbox");
    await filter.fill("many-a");
    await said("4 selected, 3 not shown");
    await all.uncheck();
    await said("3 selected, 3 not shown");
    await filter.fill("many-");
    for (let order = 0; order < 2; order++) await page.getByRole("columnheader", { name: "Name", exact: true }).getByRole("button").click();
    await said("3 selected");
    assert.deepEqual([await box("many-a").isChecked(), await box("many-d").isChecked()], [false, true]);
    // What others do: a key that is gone is not selected, a new one neither, and one that is changed still is.
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/many-d");
    await said("2 selected");
    await createAccessKey(context, "many-d", {});
    // Whether a key that is changed may still be deleted is asked again. The button does not go away meanwhile.
    const again = page.waitForRequest(/selfsubjectaccessreviews/);
    let answer;
    await page.route(/selfsubjectaccessreviews/, (route) => new Promise((done) => { answer = done; }).then(() => route.fallback()), { times: 1 });
    await requestAsAdmin(context, "PATCH", "ownedaccesskeys/many-c", { spec: { displayName: "Changed" } }, "application/merge-patch+json");
    await page.getByText("Changed", { exact: true }).waitFor();
    await again;
    assert.equal(await bar("Delete").count(), 1);
    answer();
    await box("many-d").waitFor();
    assert.deepEqual([await box("many-c").isChecked(), await box("many-d").isChecked()], [true, false]);
    await said("2 selected");
    // A key that is away for a while is selected no more when it comes back.
    const read = async () => { for (const hidden of [true, false]) await setHidden(page, hidden); };
    await page.route(/ownedaccesskeys\?(?!.*watch=)/, async (route) => {
      const response = await route.fetch({ headers: { accept: route.request().headers().accept, authorization: `Bearer ${admin}` } });
      const { rows, ...table } = await response.json();
      await route.fulfill({ response, json: { ...table, rows: rows.filter(({ object }) => object.metadata.name !== "many-b") } });
    }, { times: 1 });
    await read();
    await said("1 selected");
    await read();
    await box("many-b").waitFor();
    assert.deepEqual([await box("many-b").isChecked(), await box("many-c").isChecked()], [false, true]);
    // A page that the browser has kept for those who come back.
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true })));
    await bar("Delete").waitFor({ state: "detached" });
    await clean();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "several keys are disabled and deleted at once, and each has its outcome"() {
    const { context, page, problems } = await openWindow();
    for (const name of ["many-a", "many-b", "many-c", "many-d", "many-e"]) await createAccessKey(context, name, {});
    const parent = await createAccessKey(context, "many-parent", { ttl: 86_400 });
    const child = await context.request.post(`${api}/ownedaccesskeys`, { headers: { Authorization: `Bearer ${parent}`, Cookie: "" }, data: { metadata: { name: "made-by-parent" }, spec: {} } });
    assert.equal(child.status(), 201, await child.text());
    const { box, all, bar, dialog, left, disabled, said, clean } = await manyKeys(context, page);
    await box("many-a").check();
    await box("many-parent").check();
    await bar("Disable").click();
    await dialog.getByRole("heading", { name: "Disable 2 keys?" }).waitFor();
    // A key that is in use is told apart from keys that are not, in each line and in sum.
    const lineOf = (name) => dialog.getByRole("listitem").filter({ has: page.getByText(name, { exact: true }) });
    await lineOf("many-a").getByText("Never used.").waitFor();
    await lineOf("many-parent").getByText(/^Last used /).waitFor();
    await dialog.getByText("Used in the last 24 hours: 1 key.").waitFor();
    await dialog.getByText("Never used: 1 key.").waitFor();
    await dialog.getByRole("listitem").filter({ hasText: "many-parent" }).getByText("These stop working with it:").waitFor();
    await dialog.getByText("1 access key: made-by-parent").waitFor();
    assert.equal(await dialog.getByText("These stop working with it:").count(), 1);
    await dialog.getByRole("button", { name: "Disable" }).click();
    await said("Disabled: 2 keys.");
    assert.deepEqual([await disabled(), await box("many-a").isChecked()], [["many-a", "many-parent"], false]);
    // What is disabled already is left as it is.
    await box("many-a").check();
    await bar("Delete").waitFor();
    assert.equal(await bar("Disable").count(), 0);
    await all.click();
    // The filter finds the name of its maker as well.
    await box("made-by-parent").uncheck();
    await said("6 selected");
    await bar("Disable").click();
    await dialog.getByRole("heading", { name: "Disable 4 keys?" }).waitFor();
    await dialog.getByText("Already disabled: many-a, many-parent.").waitFor();
    await dialog.getByRole("button", { name: "Back" }).click();
    // One is refused, one fails, one is another key by now, one is gone, and two are deleted.
    const refuse = (name, code, message) => page.route(`**/ownedaccesskeys/${name}*`, (route) => route.request().method() === "DELETE" ? route.fulfill({
      status: code, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code, message }),
    }) : route.fallback());
    await refuse("many-b", 403, "nobody deletes this one");
    await refuse("many-c", 500, "the state is away");
    await bar("Delete").click();
    await dialog.getByRole("heading", { name: "Delete 6 keys?" }).waitFor();
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/many-d");
    await createAccessKey(context, "many-d", {});
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/many-e");
    const typed = page.getByLabel("Type 6 to delete them");
    await typed.fill("5");
    assert.ok(await dialog.getByRole("button", { name: "Delete" }).isDisabled());
    await typed.fill("6");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("Deleted: 3 keys.").waitFor();
    const failed = await dialog.getByRole("alert").getByRole("listitem").allTextContents();
    assert.deepEqual(failed.slice(0, 2), ["many-b: nobody deletes this one", "many-c: the state is away"]);
    assert.match(failed[2], /^many-d: .*Precondition failed/);
    assert.equal(failed.length, 3);
    await assertAccessible(page, "the outcome of several keys");
    await dialog.getByRole("button", { name: "Close" }).click();
    // What failed is still selected. The new key of the name is there, and nobody has selected it.
    await said("2 selected");
    assert.deepEqual([await left(), await box("many-b").isChecked(), await box("many-d").isChecked()], [["many-b", "many-c", "many-d"], true, false]);
    // It is tried again. The number is asked for, and the name of one.
    await page.unroute("**/ownedaccesskeys/many-b*");
    await box("many-c").uncheck();
    await bar("Delete").click();
    await page.getByLabel("Type many-b to delete it").fill("many-b");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await said("Deleted: 1 key.");
    // It is stopped while an answer is on its way: what comes after it is left as it is, and selected.
    await box("many-c").check();
    await box("many-d").check();
    let answer;
    await page.unroute("**/ownedaccesskeys/many-c*");
    await page.route("**/ownedaccesskeys/many-c*", (route) => { answer = () => route.continue(); }, { times: 1 });
    const asked = page.waitForRequest((request) => request.method() === "PATCH");
    await bar("Disable").click();
    await dialog.getByRole("button", { name: "Disable" }).click();
    await asked;
    await dialog.getByText("1 of 2 …").waitFor();
    await dialog.getByRole("button", { name: "Stop" }).click();
    await answer();
    await dialog.waitFor({ state: "detached" });
    await said("1 selected");
    assert.deepEqual([await disabled(), await box("many-d").isChecked()], [["many-c"], true]);
    // A new key with the name of one that is shown is not disabled.
    await bar("Disable").click();
    await dialog.getByRole("heading", { name: "Disable many-d?" }).waitFor();
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/many-d");
    await createAccessKey(context, "many-d", {});
    await dialog.getByRole("button", { name: "Disable" }).click();
    await dialog.getByRole("alert").getByText("many-d").waitFor();
    assert.deepEqual(await disabled(), ["many-c"]);
    await dialog.getByRole("button", { name: "Close" }).click();
    await clean();
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/made-by-parent");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "several keys with the keyboard alone, of which one fails"() {
    const { context, page, problems } = await openWindow();
    for (const name of ["many-a", "many-b", "many-c"]) await createAccessKey(context, name, {});
    const { box, all, bar, dialog, left, said, clean } = await manyKeys(context, page, admin, signInWithKeyboard);
    await tabTo(page, all);
    await page.keyboard.press("Space");
    await said("3 selected");
    await tabTo(page, box("many-b"));
    await page.keyboard.press("Space");
    await said("2 selected");
    await bar("Disable").waitFor();
    await pressWithKeyboard(page, bar("Disable"));
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Disable" }));
    await said("Disabled: 2 keys.");
    await tabTo(page, all);
    await page.keyboard.press("Space");
    await said("3 selected");
    await page.route("**/ownedaccesskeys/many-b*", (route) => route.request().method() === "DELETE" ? route.abort() : route.fallback());
    await bar("Delete").waitFor();
    await pressWithKeyboard(page, bar("Delete"));
    await tabTo(page, page.getByLabel("Type 3 to delete them"));
    await page.keyboard.type("3");
    await page.keyboard.press("Enter");
    await dialog.getByText("Deleted: 2 keys.").waitFor();
    assert.deepEqual(await dialog.getByRole("alert").getByRole("listitem").allTextContents(), ["many-b: The platform cannot be reached. Check your connection and try again."]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await said("1 selected");
    assert.deepEqual([await left(), await box("many-b").isChecked()], [["many-b"], true]);
    await clean();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a session that ends between several keys loses none of them, and its own key is the last"() {
    const { context, page, problems } = await openWindow();
    for (const name of ["many-a", "many-b", "many-d"]) await createAccessKey(context, name, {});
    const key = await createAccessKey(context, "many-c", { ttl: 86_400 });
    const { all, bar, dialog, left, said, clean } = await manyKeys(context, page, key);
    const answers = [];
    page.on("response", (response) => { if (response.request().method() === "DELETE") answers.push(`${response.status()} ${new URL(response.url()).pathname.split("/").at(-1)}`); });
    // The key of the session is disabled after the first of the four is deleted.
    await page.route("**/ownedaccesskeys/many-b*", async (route) => {
      if (route.request().method() === "DELETE") await requestAsAdmin(context, "PATCH", "ownedaccesskeys/many-c", { spec: { disabled: true } }, "application/merge-patch+json");
      await route.continue();
    }, { times: 1 });
    await all.check();
    await bar("Delete").click();
    await dialog.getByText("This is the key of your session. You will be signed out.").waitFor();
    await page.getByLabel("Type 4 to delete them").fill("4");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("Your session has ended.").waitFor();
    await page.getByLabel("Access key", { exact: true }).fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    // Nobody presses anything again.
    await said("Deleted: 4 keys.");
    assert.deepEqual(answers, ["200 many-a", "401 many-b", "200 many-b", "200 many-d", "200 many-c"]);
    assert.deepEqual(await left(), []);
    await clean();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "several keys are offered to nobody whom the API would refuse"() {
    const { context, page, problems } = await openWindow();
    const narrow = { rules: [{ verbs: ["get", "list", "watch", "patch", "delete"], resources: [{ group: "management.platform.sh", resources: ["ownedaccesskeys"] }] }] };
    const key = await createUserWithKey(context, "many", { scope: narrow });
    await createAccessKey(context, "many-wide", { user: "many" });
    await createAccessKey(context, "many-alike", { user: "many", scope: narrow });
    const refused = [];
    page.on("response", (response) => { if (response.status() === 403 && response.request().method() !== "GET") refused.push(`${response.request().method()} ${response.url()}`); });
    const { box, all, bar, dialog, said, clean } = await manyKeys(context, page, key);
    // A session with a scope changes no key that may do more, and deletes it.
    await box("many-wide").check();
    await bar("Delete").waitFor();
    assert.equal(await bar("Disable").count(), 0);
    await box("many-alike").check();
    await bar("Disable").click();
    await dialog.getByRole("heading", { name: "Disable many-alike?" }).waitFor();
    await dialog.getByText("You may not change: many-wide.").waitFor();
    await dialog.getByRole("button", { name: "Disable" }).click();
    await said("1 selected");
    await bar("Delete").click();
    await page.getByLabel("Type many-wide to delete it").fill("many-wide");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await said("Deleted: 1 key.");
    await box("many-wide").waitFor({ state: "detached" });
    // Who may do neither has no boxes.
    const auditor = await createAccessKey(context, "many-auditor", { groups: ["platform:admins"], scope: { rules: [{ verbs: ["get", "list", "watch"] }] } });
    const other = await openWindow();
    await signIn(other.page, auditor, "/console/keys?filter=many-");
    await other.page.getByRole("link", { name: "Open many-alike" }).waitFor();
    assert.deepEqual([await other.page.getByRole("checkbox").count(), await all.count()], [0, 1]);
    await other.context.close();
    assert.deepEqual(refused, []);
    await clean();
    await requestAsAdmin(context, "DELETE", "users/many");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
