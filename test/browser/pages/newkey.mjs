// Stories of the form of a new access key: whose key it is, when it ends, and the names that it offers.
import assert from "node:assert/strict";
import { admin, assertAccessible, createAccessKey, createUserWithKey, focus, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, signIn, tabTo } from "../driver.mjs";

const owner = (page) => page.getByRole("group", { name: "As whom it acts" });
/** The names that an input offers, once there is one of them. */
async function offered(page, input, name) {
  await focus(input);
  const list = page.locator(`datalist[id="${await input.getAttribute("list")}"]`);
  await list.locator(`option[value="${name}"]`).waitFor({ state: "attached" });
  return list.locator("option").evaluateAll((all) => all.map((one) => one.value));
}
/** What the API has stored as a key. */
const stored = async (context, name) => (await (await requestAsAdmin(context, "GET", `ownedaccesskeys/${name}`)).json()).spec;
async function finish(page) {
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "I have saved it" }).click();
}
/** Takes a picture of the form in each look, if there is a folder for it. */
async function takePictures(page, about) {
  if (!pictureFolder) return;
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of [390, 1280, 2560]) {
      await page.setViewportSize({ width, height: 1300 });
      await page.screenshot({ path: `${pictureFolder}/${about}-${colorScheme}-${width}.png` });
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1200, height: 800 });
}

export const stories = {
  async "a key is for a team or for somebody else, has a description, and ends at a date"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce", timezoneId: "Asia/Kolkata" });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "new-web" }, spec: { displayName: "The web team" } });
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "new-ana" }, spec: {} });
    await signIn(page);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("of-team");
    await page.getByLabel("Description").fill("Deploys the shop.\nAsk Ana.");
    await owner(page).getByLabel("A team").check();
    const name = page.getByLabel("Name of the team or user");
    assert.ok(!(await offered(page, name, "new-web")).includes("new-ana"));
    await name.fill("new-web");
    await page.getByLabel("Until a date").check();
    const end = page.getByLabel("Expires", { exact: true });
    // A date that is over is refused by the browser.
    await end.fill("2020-01-01T12:00");
    await page.getByRole("button", { name: "Create key" }).click();
    assert.equal(await end.evaluate((it) => it.validity.rangeUnderflow), true);
    const year = new Date().getUTCFullYear() + 2;
    await end.fill(`${year}-03-01T05:30`);
    await takePictures(page, "new-key-team");
    await assertAccessible(page, "a key of a team");
    await finish(page);
    const { metadata, spec, status } = await (await requestAsAdmin(context, "GET", "ownedaccesskeys/of-team")).json();
    assert.deepEqual([spec.team, spec.user, spec.description, spec.ttlAfterLastActivity], ["new-web", undefined, "Deploys the shop.\nAsk Ana.", undefined]);
    // In Kolkata it is five and a half hours later.
    const late = Date.parse(status.expirationTimestamp) - Date.parse(`${year}-03-01T00:00:00Z`);
    assert.ok(late <= 0 && late > -600_000, `${metadata.creationTimestamp} ${status.expirationTimestamp}`);
    // With the keyboard: the first key of a new user.
    await pressWithKeyboard(page, page.getByRole("button", { name: "New key" }));
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.type("of-user");
    await tabTo(page, owner(page).getByLabel("Yourself"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await offered(page, name, "new-ana");
    await page.keyboard.type("new-ana");
    await page.keyboard.press("Enter");
    await pressWithKeyboard(page, page.getByRole("button", { name: "I have saved it" }));
    assert.equal((await stored(context, "of-user")).user, "new-ana");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the form offers the owners for whom the session may create keys"() {
    const { context, page, problems } = await openWindow();
    const key = await createUserWithKey(context, "new-member");
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "new-own" }, spec: { users: ["new-member"] } });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "new-foreign" }, spec: {} });
    await signIn(page, key);
    await page.getByRole("button", { name: "New key" }).click();
    assert.deepEqual(await owner(page).getByRole("radio").evaluateAll((all) => all.map((one) => one.labels[0].textContent)), ["Yourself", "A team"]);
    await owner(page).getByLabel("A team").check();
    assert.deepEqual(await offered(page, page.getByLabel("Name of the team or user"), "new-own"), ["new-own"]);
    // What the API refuses stands at the field, which has the focus.
    await page.getByLabel("Name of the team or user").fill("new-foreign");
    await page.getByRole("button", { name: "Create key" }).click();
    await owner(page).getByText("spec.team").waitFor();
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
    await page.getByLabel("Name of the team or user").fill("new-own");
    await page.getByLabel("Name", { exact: true }).fill("of-own-team");
    await finish(page);
    assert.equal((await stored(context, "of-own-team")).team, "new-own");
    // A key with a scope makes keys that act as its owner alone.
    const narrow = await createAccessKey(context, "new-narrow", { scope: { roles: [{ role: "platformCLI" }] } });
    await context.clearCookies();
    await signIn(page, narrow);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).waitFor();
    assert.equal(await owner(page).count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "forms offer the names of projects, virtual clusters, teams and users, which they read once"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "list-ana" }, spec: {} });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "list-web" }, spec: {} });
    await requestAsAdmin(context, "POST", "projects", { metadata: { name: "list-shop" }, spec: {} });
    await signIn(page);
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("includeObject=Metadata")) asked.push(new URL(request.url()).pathname.split("/v1/")[1]); });
    for (const [path, button] of [["keys", "New key"], ["tokens", "New token"], ["trustrules", "New trust rule"]]) {
      await page.goto(`${origin}/console/${path}`);
      await page.getByRole("button", { name: button }).click();
      await page.getByLabel("One virtual cluster").check();
      asked.length = 0;
      const project = page.getByLabel("Project", { exact: true });
      assert.ok((await offered(page, project, "list-shop")).includes("list-shop"));
      await project.fill("shop");
      assert.deepEqual(await offered(page, page.getByLabel("Virtual cluster", { exact: true }), "dev"), ["dev"]);
      await focus(project);
      assert.deepEqual(asked, ["projects", "namespaces/p-shop/virtualclusterinstances"], path);
    }
    assert.ok((await offered(page, page.getByLabel("Name of the team or user"), "list-web")).includes("list-web"));
    // Several names: the last of them is completed.
    await page.goto(`${origin}/console/teams`);
    await page.getByRole("button", { name: "New team" }).click();
    const members = page.getByLabel("Members");
    assert.ok((await offered(page, members, "list-ana")).includes("list-ana"));
    await members.fill("somebody, list");
    assert.ok((await offered(page, members, "somebody, list-ana")).every((name) => name.startsWith("somebody, ")));
    await page.goto(`${origin}/console/teams?name=list-web`);
    assert.ok((await offered(page, page.getByLabel("Name of a user"), "list-ana")).includes("list-ana"));
    assert.deepEqual(problems, []);
    await context.close();
  },
};
