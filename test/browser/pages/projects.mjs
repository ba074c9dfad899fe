// Stories of projects.
import assert from "node:assert/strict";
import { admin, requestAsAdmin, openWindow, createUserWithKey, origin, pressWithKeyboard, accessReviews, signIn, tabTo, signInWithKeyboard } from "../driver.mjs";

export const stories = {
  async "a project is made, its members get roles, it is changed and deleted, and nobody sees a button that they may not use"() {
    const { context, page, problems } = await openWindow();
    const anaKey = await createUserWithKey(context, "ana-of-store");
    const viewerKey = await createUserWithKey(context, "viewer-of-store");
    const made = await requestAsAdmin(context, "POST", "namespaces/p-store/virtualclusterinstances", { metadata: { name: "till" }, spec: {} });
    assert.equal(made.status(), 201, await made.text());
    await signIn(page, admin, "/console/projects");
    await page.getByText("There are no projects").waitFor();
    await page.getByRole("button", { name: "New project" }).click();
    const dialog = page.getByRole("dialog");
    const field = (name) => dialog.getByLabel(name, { exact: true });
    // What is wrong is said at its field, all at once, and nothing typed is lost.
    await field("Name").fill("Not A Name");
    await field("A team").check();
    await field("Name of the team or user").fill("No Team");
    for (const [i, [name, kind, role]] of [["ana-of-store", "User", "admin"], ["ana-of-store", "User", "view"], ["viewer-of-store", "User", "view"]].entries()) {
      await dialog.getByRole("button", { name: "Add a member" }).click();
      await field(`Name, member ${i + 1}`).fill(name);
      await field(`Type, member ${i + 1}`).selectOption(kind);
      await field(`Role, member ${i + 1}`).selectOption(role);
    }
    await dialog.getByRole("button", { name: "Create project" }).click();
    await dialog.getByRole("alert").getByText("Correct the marked fields.").waitFor();
    for (const name of ["Name", "Name of the team or user", "Name, member 2"]) {
      assert.equal(await field(name).getAttribute("aria-invalid"), "true", name);
      assert.notEqual(await dialog.locator(`[id="${await field(name).getAttribute("aria-describedby")}"]`).textContent(), "", name);
    }
    assert.ok(await field("Name").evaluate((it) => it === document.activeElement), "the first field that is wrong is not focused");
    await field("Name").fill("store");
    await field("No owner").check();
    await dialog.getByRole("button", { name: "Remove, member 2" }).click();
    assert.equal(await field("Name, member 2").inputValue(), "viewer-of-store");
    await dialog.getByRole("button", { name: "Create project" }).click();
    await page.getByText("Project store is created.").waitFor();
    const spec = async () => (await (await requestAsAdmin(context, "GET", "projects/store")).json()).spec;
    assert.deepEqual((await spec()).members, [{ kind: "User", name: "ana-of-store", role: "admin" }, { kind: "User", name: "viewer-of-store", role: "view" }]);
    // Who may see it sees no button that they may not use. Its virtual clusters are shown.
    const other = await openWindow();
    const refused = [];
    other.page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    const decided = accessReviews(other.page, 3);
    await signIn(other.page, viewerKey, "/console/projects?name=store", other.page.getByRole("dialog"));
    await decided;
    await other.page.getByRole("dialog").getByRole("link", { name: "till" }).waitFor();
    await other.page.getByRole("dialog").getByText("View: sees its virtual clusters").waitFor();
    assert.deepEqual(await other.page.getByRole("button", { name: /^(New project|Change|Delete)/ }).allTextContents(), []);
    await other.page.getByText("kubectl get project store -o yaml").waitFor();
    // Nor do they see a tab that refuses them: they learn why there is no kubeconfig.
    await other.page.getByRole("dialog").getByRole("link", { name: "till" }).click();
    await other.page.getByText("Ask an admin of the project store for the role that gets kubeconfigs.").waitFor();
    assert.deepEqual([await other.page.getByRole("tab", { name: "Who can reach it" }).count(), await other.page.getByRole("button", { name: "Kubeconfig" }).count()], [0, 0]);
    // An admin of the project changes it. What somebody else has changed meanwhile is not overwritten, and nothing typed is lost.
    await other.context.clearCookies();
    await signIn(other.page, anaKey, "/console/projects?name=store", other.page.getByRole("dialog"));
    const own = other.page.getByRole("dialog");
    assert.equal(await other.page.getByRole("button", { name: "New project" }).count(), 0);
    await own.getByText("kubectl edit project store").waitFor();
    await own.getByRole("link", { name: "till" }).click();
    await other.page.getByRole("tab", { name: "Who can reach it" }).click();
    await own.getByRole("figure").getByText("ana-of-store").first().waitFor();
    await other.page.goto(`${origin}/console/projects?name=store`);
    await own.getByRole("button", { name: "Change …" }).click();
    await own.getByLabel("Display name").fill("Store of Ana");
    assert.equal((await requestAsAdmin(context, "PATCH", "projects/store", { spec: { description: "by somebody else" } }, "application/merge-patch+json")).status(), 200);
    await own.getByRole("button", { name: "Save" }).click();
    await own.getByRole("alert").waitFor();
    assert.equal(await own.getByLabel("Display name").inputValue(), "Store of Ana");
    assert.deepEqual([(await spec()).displayName ?? "", (await spec()).description], ["", "by somebody else"]);
    await own.getByRole("button", { name: "Cancel" }).click();
    await own.getByText("by somebody else").waitFor();
    await own.getByRole("button", { name: "Change …" }).click();
    await own.getByLabel("Display name").fill("Store of Ana");
    await own.getByLabel("Role, member 2", { exact: true }).selectOption("use");
    await own.getByRole("button", { name: "Save" }).click();
    await other.page.getByText("store is changed.").waitFor();
    await own.getByText("Use: gets kubeconfigs of its virtual clusters").waitFor();
    const after = await spec();
    assert.deepEqual([after.displayName, after.description, after.members[1]], ["Store of Ana", "by somebody else", { kind: "User", name: "viewer-of-store", role: "use" }]);
    assert.deepEqual(refused, []);
    assert.deepEqual(other.problems, []);
    await other.context.close();
    // A project with virtual clusters stays, and the dialog says so before and after.
    await page.getByRole("link", { name: "Open store" }).click();
    await dialog.getByRole("link", { name: "till" }).waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("The project still has virtual clusters.").waitFor();
    await field("Type store to delete it").fill("store");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("alert").getByText("still has virtual cluster instances").waitFor();
    await requestAsAdmin(context, "DELETE", "namespaces/p-store/virtualclusterinstances/till");
    await dialog.getByRole("button", { name: "Back" }).click();
    await dialog.getByRole("button", { name: "Close" }).click();
    // One without is deleted. It asks for the name.
    await page.getByRole("link", { name: "Open store" }).click();
    await dialog.getByText("There are none.").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("Members lose their roles").waitFor();
    assert.equal(await dialog.getByText("The project still has virtual clusters.").count(), 0);
    const remove = dialog.getByRole("button", { name: "Delete" });
    assert.ok(await remove.isDisabled());
    await field("Type store to delete it").fill("store");
    await remove.click();
    await page.getByText("store is deleted.").waitFor();
    assert.equal((await requestAsAdmin(context, "GET", "projects/store")).status(), 404);
    for (const name of ["ana-of-store", "viewer-of-store"]) {
      for (const path of [`ownedaccesskeys/${name}-key`, `users/${name}`]) await requestAsAdmin(context, "DELETE", path);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a project with the keyboard alone"() {
    const { context, page, problems } = await openWindow();
    await signInWithKeyboard(page, admin, "/console/projects");
    await pressWithKeyboard(page, page.getByRole("button", { name: "New project" }));
    const dialog = page.getByRole("dialog");
    const type = async (name, text) => {
      await tabTo(page, dialog.getByLabel(name, { exact: true }));
      await page.keyboard.press("Control+a");
      await page.keyboard.type(text);
    };
    await type("Name", "typed-project");
    await type("Description", "Typed, and not clicked");
    await tabTo(page, dialog.getByLabel("No owner"));
    await page.keyboard.press("ArrowDown");
    await type("Name of the team or user", "typers");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Add a member" }));
    await type("Name, member 1", "bea");
    await tabTo(page, dialog.getByLabel("Role, member 1", { exact: true }));
    await page.keyboard.press("ArrowDown");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Create project" }));
    await page.getByText("Project typed-project is created.").waitFor();
    const { spec } = await (await requestAsAdmin(context, "GET", "projects/typed-project")).json();
    assert.deepEqual(spec, { description: "Typed, and not clicked", owner: { team: "typers" }, members: [{ kind: "User", name: "bea", role: "view" }] });
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open typed-project" }));
    await dialog.getByText("team typers").waitFor();
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Change …" }));
    // A user becomes the owner in place of a team.
    await tabTo(page, dialog.getByLabel("A team"));
    await page.keyboard.press("ArrowDown");
    await type("Name of the team or user", "bea");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Remove, member 1" }));
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Save" }));
    await page.getByText("typed-project is changed.").waitFor();
    assert.deepEqual((await (await requestAsAdmin(context, "GET", "projects/typed-project")).json()).spec.owner, { user: "bea" });
    await dialog.getByText("Nobody but its owner and admins.").waitFor();
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Delete" }));
    await type("Type typed-project to delete it", "typed-project");
    await page.keyboard.press("Enter");
    await page.getByText("typed-project is deleted.").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
};
