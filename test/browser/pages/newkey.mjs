// Stories of the form of a new access key: whose key it is, when it ends, the names that it offers, and what fills it in.
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
    await requestAsAdmin(context, "POST", "namespaces/p-list-shop/virtualclusterinstances", { metadata: { name: "list-dev" }, spec: {} });
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
      await project.fill("list-shop");
      assert.deepEqual(await offered(page, page.getByLabel("Virtual cluster", { exact: true }), "list-dev"), ["list-dev"]);
      await focus(project);
      assert.deepEqual(asked, ["projects", "namespaces/p-list-shop/virtualclusterinstances"], path);
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
  async "a link fills in the form, and creates nothing"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "link-web" }, spec: {} });
    const created = [];
    page.on("request", (request) => { if (request.method() === "POST" && request.url().includes("/ownedaccesskeys")) created.push(request.url()); });
    await signIn(page);
    const query = new URLSearchParams({ displayName: "Nightly build", description: "From the handbook", team: "link-web", scope: "virtualcluster:shop/dev", ttl: "2h", ttlAfterLastActivity: "true" });
    await page.goto(`${origin}/console/keys?new&${query}`);
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("note").getByText("A link has filled in this form.").waitFor();
    const values = async (names) => Promise.all(names.map((name) => dialog.getByLabel(name, { exact: true }).inputValue()));
    assert.deepEqual(await values(["What is it for?", "Description", "Name of the team or user", "Project", "Virtual cluster"]), ["Nightly build", "From the handbook", "link-web", "shop", "dev"]);
    for (const name of ["A team", "One virtual cluster", "2 hours", "Count the lifetime from the last use"]) assert.ok(await dialog.getByLabel(name, { exact: true }).isChecked(), name);
    await takePictures(page, "new-key-link");
    await assertAccessible(page, "a form that a link has filled in");
    assert.deepEqual(created, []);
    await dialog.getByLabel("Name", { exact: true }).fill("from-link");
    await finish(page);
    const { displayName, description, team, scope, ttl, ttlAfterLastActivity } = await stored(context, "from-link");
    assert.deepEqual([displayName, description, team, ttl, ttlAfterLastActivity], ["Nightly build", "From the handbook", "link-web", 7200, true]);
    assert.deepEqual(scope, { virtualClusters: [{ project: "shop", virtualCluster: "dev" }] });
    assert.equal(new URL(page.url()).search, "");
    // A form without fields says nothing of a link.
    await page.getByRole("button", { name: "New key" }).click();
    await dialog.getByLabel("Name", { exact: true }).waitFor();
    assert.equal(await dialog.getByRole("note").count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "what a link has wrong stands at its field"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const dialog = page.getByRole("dialog");
    const field = (name) => dialog.locator(".field").filter({ has: page.getByLabel(name, { exact: true }) });
    const group = (name) => dialog.getByRole("group", { name });
    for (const [query, place, says] of [
      [{ ttl: "soon" }, group("Lifetime"), "use seconds, or a number with s, m, h or d"], [{ scope: "everything" }, group("What it may do"), "use read, nothing, all, project:NAME"], [{ scope: "[1]" }, group("What it may do"), "use read"],
      [{ team: "a", user: "b" }, group("As whom it acts"), "a key has one owner"], [{ displayName: "x".repeat(300) }, field("What is it for?"), "more than 256 bytes"], [{ ttlAfterLastActivity: "maybe" }, group("Lifetime"), "use true or false"],
    ]) {
      await page.goto(`${origin}/console/keys?new&${new URLSearchParams(query)}`);
      await place.locator(".wrong").getByText(says).waitFor();
      assert.equal(await dialog.locator(".wrong p").count(), 1);
    }
    // A field has the focus, and what is right of the rest is there.
    await page.goto(`${origin}/console/keys?new=yes&team=a&user=b&scope=nothing&ttl=3600`);
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
    assert.ok(await dialog.getByLabel("Only ask who it is").isChecked());
    assert.ok(await dialog.getByLabel("1 hour", { exact: true }).isChecked());
    // A session that creates keys for itself alone says so.
    const key = await createUserWithKey(context, "link-member");
    await context.clearCookies();
    await signIn(page, key);
    await page.goto(`${origin}/console/keys?new&user=admin`);
    await dialog.getByText("the link names admin, for whom you cannot create keys").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key is replaced: one like it is made, and the old one ends after a time of grace"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await createAccessKey(context, "replace-a", { displayName: "Nightly", scope: { projects: [{ project: "shop" }] } });
    await createAccessKey(context, "replace-b", { ttl: 7200 });
    const dialog = page.getByRole("dialog");
    const grace = (name) => dialog.getByRole("group", { name: `Let ${name} end in` }).getByRole("button");
    const remaining = async (name) => {
      const { status } = await (await requestAsAdmin(context, "GET", `ownedaccesskeys/${name}`)).json();
      return (Date.parse(status.expirationTimestamp) - Date.now()) / 1000;
    };
    await signIn(page, admin, "/console/keys?name=replace-a", dialog.getByRole("button", { name: "Disable" }));
    await page.getByRole("link", { name: "Make one like this" }).click();
    await dialog.getByLabel("Name", { exact: true }).fill("replace-a2");
    await page.getByRole("button", { name: "Create key" }).click();
    await grace("replace-a").first().waitFor();
    await takePictures(page, "key-replaced");
    await assertAccessible(page, "a key that replaces another one");
    await grace("replace-a").filter({ hasText: "1 day" }).click();
    await dialog.getByText(/^replace-a works until /).waitFor();
    const left = await remaining("replace-a");
    assert.ok(left > 85_000 && left < 86_500, `${left}`);
    await page.getByRole("button", { name: "I have saved it" }).click();
    assert.deepEqual((await stored(context, "replace-a2")).scope, { projects: [{ project: "shop" }] });
    // With the keyboard. A key that ends soon is not made to live longer.
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open replace-b" }));
    await pressWithKeyboard(page, page.getByRole("link", { name: "Make one like this" }));
    await tabTo(page, page.getByRole("dialog", { name: "New key" }).getByLabel("Name", { exact: true }));
    await page.keyboard.type("replace-b2");
    await page.keyboard.press("Enter");
    await grace("replace-b").first().waitFor();
    assert.deepEqual(await grace("replace-b").allTextContents(), ["1 hour"]);
    await pressWithKeyboard(page, grace("replace-b"));
    await dialog.getByText(/^replace-b works until /).waitFor();
    assert.ok((await remaining("replace-b")) < 3700);
    await pressWithKeyboard(page, page.getByRole("button", { name: "I have saved it" }));
    // A new key that is like none replaces none.
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).waitFor();
    assert.equal(await dialog.getByRole("group").count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key like another one has its owner, groups, scope, description and lifetime"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "like-ana" }, spec: {} });
    const scope = { roles: [{ role: "platformCLI", projects: ["shop"] }], readOnly: true };
    await createAccessKey(context, "like-me", { user: "like-ana", displayName: "Reads", description: "For the board", groups: ["board"], ttl: 604_800, scope });
    await createAccessKey(context, "like-own", { ttl: 0 });
    await signIn(page, admin, "/console/keys?name=like-me", page.getByRole("dialog", { name: "like-me" }).getByRole("button", { name: "Disable" }));
    const dialog = page.getByRole("dialog", { name: "New key" });
    await page.getByRole("link", { name: "Make one like this" }).click();
    await dialog.getByRole("note").getByText("filled in from the key like-me").waitFor();
    await dialog.getByLabel("Name", { exact: true }).fill("like-copy");
    await finish(page);
    const { type, ...copy } = await stored(context, "like-copy");
    const { type: sameType, ...original } = await stored(context, "like-me");
    assert.deepEqual([copy, type], [original, sameType]);
    // With the keyboard, and back to the key.
    await page.getByRole("link", { name: "Open like-own" }).click();
    await pressWithKeyboard(page, page.getByRole("link", { name: "Make one like this" }));
    await dialog.getByRole("note").waitFor();
    assert.ok(await dialog.getByLabel("Yourself").isChecked());
    assert.ok(await dialog.getByLabel("No expiration").isChecked());
    assert.ok(await dialog.getByLabel("Everything that I may do").isChecked());
    await page.goBack();
    await page.getByRole("dialog", { name: "like-own" }).waitFor();
    // It has an address of its own.
    const href = await page.getByRole("link", { name: "Make one like this" }).getAttribute("href");
    await page.goto(`${origin}/console/keys${href}`);
    await dialog.getByRole("note").getByText("A link has filled in this form.").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a secret that is shown once stays until it is kept: a key, a token and a kubeconfig"() {
    const { context, page, problems } = await openWindow();
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const dialog = page.getByRole("dialog");
    const saved = dialog.getByRole("button", { name: "I have saved it" });
    const warning = dialog.getByRole("alert").getByText("You have not saved it.");
    /** Whether the browser would ask before the page is left. */
    const asks = () => page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
    const create = {
      async keys() {
        await page.getByRole("button", { name: "New key" }).click();
        await dialog.getByLabel("Name", { exact: true }).fill("once");
        await page.getByRole("button", { name: "Create key" }).click();
      },
      async tokens() {
        await page.getByRole("button", { name: "New token" }).click();
        await dialog.getByLabel("Everything that I may do").check();
        await page.getByRole("button", { name: "Issue token" }).click();
      },
      async clusters() {
        await page.getByRole("link", { name: "Open dev" }).click();
        await dialog.getByRole("button", { name: "Kubeconfig" }).click();
        await page.getByRole("button", { name: "Create kubeconfig" }).click();
      },
    };
    await signIn(page);
    for (const [path, run] of Object.entries(create)) {
      await page.goto(`${origin}/console/${path}`);
      await run();
      await saved.waitFor();
      await page.waitForFunction(() => history.state?.unsaved);
      const { href } = new URL(page.url());
      assert.equal(await asks(), true, path);
      await page.goBack();
      await warning.waitFor();
      await page.waitForFunction(() => history.state?.unsaved);
      for (let times = 2; times > 0; times--) await page.keyboard.press("Escape");
      assert.equal(await saved.count(), 1, `${path} after Escape`);
      await page.goBack();
      await page.waitForFunction(() => history.state?.unsaved);
      assert.equal(await saved.count(), 1, path);
      assert.equal(page.url(), href);
      await assertAccessible(page, `a secret of ${path}`);
      await pressWithKeyboard(page, dialog.getByRole("button", { name: "Copy", exact: true }).first());
      await warning.waitFor({ state: "detached" });
      assert.equal(await asks(), false, path);
      assert.ok((await page.evaluate(() => navigator.clipboard.readText())).length > 40, path);
      await page.keyboard.press("Escape");
      await saved.waitFor({ state: "detached" });
    }
    // Back leads to where the person was before.
    await page.goto(`${origin}/console/home`);
    await page.goto(`${origin}/console/keys`);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("button", { name: "Create key" }).click();
    await saved.click();
    await page.waitForFunction(() => !history.state?.unsaved && !history.state?.depth);
    await page.goBack();
    assert.equal(new URL(page.url()).pathname, "/console/home");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
