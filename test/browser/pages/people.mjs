// Stories of users and teams.
import assert from "node:assert/strict";
import { admin, api, requestAsAdmin, openWindow, pressWithKeyboard, accessReviews, signIn, signInWithKeyboard } from "../driver.mjs";

export const stories = {
  async "a user is made, joins a team, is disabled, signed out and deleted"() {
    const { context, page, problems } = await openWindow();
    await signIn(page, admin, "/console/people");
    await page.getByRole("button", { name: "New user" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("Not A Name");
    await dialog.getByRole("button", { name: "Create user" }).click();
    await dialog.getByText("Use lowercase letters").waitFor();
    await dialog.getByLabel("Name", { exact: true }).fill("bea");
    await dialog.getByLabel("Display name").fill("Bea");
    await dialog.getByRole("button", { name: "Create user" }).click();
    await page.getByText("User bea is created.").waitFor();
    const key = (await (await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "bea-laptop" }, spec: { user: "bea" } })).json()).spec.key;
    const asked = async () => (await context.request.post(`${api}/selves`, { headers: { Authorization: `Bearer ${key}`, Cookie: "" }, data: {} })).status();
    assert.equal(await asked(), 201);
    // Bea sees her own user, and no button that she may not use.
    const other = await openWindow();
    const refused = [];
    other.page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    const decided = accessReviews(other.page, 4);
    await signIn(other.page, key, "/console/people?name=bea", other.page.getByRole("dialog"));
    await decided;
    await other.page.getByRole("button", { name: "Sign out everywhere" }).waitFor();
    // She changes her display name, and nothing else.
    const own = other.page.getByRole("dialog");
    await own.getByRole("button", { name: "Change …" }).click();
    assert.deepEqual([await own.getByLabel("Display name").inputValue(), await own.locator("input").count()], ["Bea", 1]);
    await own.getByLabel("Display name").fill("Bea Stone");
    await own.getByRole("button", { name: "Save" }).click();
    await other.page.getByText("bea is changed.").waitFor();
    assert.deepEqual(await other.page.getByRole("button", { name: /^(New user|Disable|Delete)\b/ }).allTextContents(), []);
    assert.deepEqual(refused, []);
    assert.deepEqual(other.problems, []);
    await other.context.close();
    // An admin changes the rest. What is wrong is said at its field.
    await page.getByRole("link", { name: "Open bea" }).click();
    await dialog.getByText("Bea Stone").waitFor();
    await dialog.getByRole("button", { name: "Change …" }).click();
    await dialog.getByLabel("Email").fill("bea@example.com");
    await dialog.getByLabel("Groups").fill("platform:own");
    await dialog.getByLabel("Platform auditor").check();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").getByText("Correct the marked fields.").waitFor();
    assert.equal(await dialog.getByLabel("Groups").getAttribute("aria-invalid"), "true");
    await dialog.getByLabel("Groups").fill("qa, ops");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("bea is changed.").waitFor();
    const { spec } = await (await requestAsAdmin(context, "GET", "users/bea")).json();
    assert.deepEqual([spec.displayName, spec.email, spec.groups, spec.clusterRoles], ["Bea Stone", "bea@example.com", ["qa", "ops"], [{ name: "platform-auditor" }]]);
    await page.keyboard.press("Escape");
    // She joins a team.
    await page.getByRole("link", { name: "Teams" }).click();
    await page.getByRole("button", { name: "New team" }).click();
    await dialog.getByLabel("Name", { exact: true }).fill("web");
    await dialog.getByRole("button", { name: "Create team" }).click();
    await page.getByRole("link", { name: "Open web" }).click();
    await dialog.getByLabel("Name of a user").fill("bea");
    await dialog.getByRole("button", { name: "Add" }).click();
    await dialog.getByRole("link", { name: "bea" }).click();
    await dialog.getByText("web").waitFor();
    await dialog.getByText("1 access key").waitFor();
    // She is disabled, enabled, and signed out: each time the API refuses her key.
    await dialog.getByRole("button", { name: "Disable" }).click();
    await dialog.getByText("1 access key").waitFor();
    await dialog.getByRole("button", { name: "Disable", exact: true }).click();
    await page.getByText("bea is disabled.").waitFor();
    assert.equal(await asked(), 401);
    await dialog.getByRole("button", { name: "Enable" }).click();
    await page.getByText("bea is enabled.").waitFor();
    assert.equal(await asked(), 201);
    await dialog.getByRole("button", { name: "Sign out everywhere" }).click();
    await dialog.getByRole("button", { name: "Sign out everywhere", exact: true }).click();
    await page.getByText("bea is signed out everywhere.").waitFor();
    assert.equal(await asked(), 401);
    // A password is set, and left nowhere.
    await dialog.getByRole("button", { name: "Set password" }).click();
    await dialog.getByLabel("New password").fill("password1234");
    await dialog.getByRole("button", { name: "Set password" }).click();
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
    const word = "nine-violet-kettles-hum";
    await dialog.getByLabel("New password").fill(word);
    await dialog.getByRole("button", { name: "Set password" }).click();
    await page.getByText("The password of bea is set.").waitFor();
    await dialog.getByText("with a password").waitFor();
    assert.ok(!(await page.evaluate(() => document.documentElement.outerHTML)).includes(word), "the page has kept the password");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByLabel("Type bea to delete it").fill("bea");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("bea is deleted.").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "people and teams with the keyboard alone"() {
    const { context, page, problems } = await openWindow();
    await signInWithKeyboard(page, admin, "/console/teams");
    const press = (locator) => pressWithKeyboard(page, locator);
    const dialog = page.getByRole("dialog");
    await press(page.getByRole("button", { name: "New team" }));
    await dialog.getByLabel("Name", { exact: true }).waitFor();
    await page.keyboard.type("typed-team");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.type("ana, ben");
    await page.keyboard.press("Enter");
    await press(page.getByRole("link", { name: "Open typed-team" }));
    await press(dialog.getByRole("button", { name: "Remove ben" }));
    await dialog.getByRole("button", { name: "Remove ben" }).waitFor({ state: "detached" });
    await press(dialog.getByRole("button", { name: "Change …" }));
    await dialog.getByLabel("Display name").waitFor();
    await page.keyboard.type("Typed");
    await page.keyboard.press("Tab");
    await page.keyboard.type("qa");
    await page.keyboard.press("Enter");
    await page.getByText("typed-team is changed.").waitFor();
    const { spec } = await (await requestAsAdmin(context, "GET", "teams/typed-team")).json();
    assert.deepEqual([spec.displayName, spec.groups, spec.users], ["Typed", ["qa"], ["ana"]]);
    await press(dialog.getByRole("button", { name: "Delete" }));
    await dialog.getByLabel("Type typed-team to delete it").waitFor();
    await page.keyboard.type("typed-team");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Open typed-team" }).waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
};
