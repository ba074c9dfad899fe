// Stories of trust rules.
import assert from "node:assert/strict";
import { admin, assertAccessible, createAccessKey, createUserWithKey, openWindow, pressWithKeyboard, requestAsAdmin, signIn, signInWithKeyboard, tabTo } from "../driver.mjs";

export const stories = {
  async "a trust rule for CI jobs is made from a template, refused at its fields, disabled and deleted"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "deployers" }, spec: {} });
    await signIn(page, admin, "/console/trustrules");
    await page.getByText("There are no trust rules").waitFor();
    await page.getByRole("button", { name: "New trust rule" }).click();
    const dialog = page.getByRole("dialog");
    const field = (name) => dialog.getByLabel(name, { exact: true });
    // Each template has the claims of its system.
    for (const [name, issuer, claim] of [["GitLab CI", "https://gitlab.com", "project_id"], ["Kubernetes", "", "sub"], ["SPIFFE and others", "", "sub"], ["GitHub Actions", "https://token.actions.githubusercontent.com", "repository_id"]]) {
      await field(name).check();
      assert.equal(await field("Issuer").inputValue(), issuer);
      assert.equal(await field("Claim, condition 1").inputValue(), claim);
    }
    // What is wrong is said at its field, all at once, and nothing typed is lost.
    await field("Name").fill("Not A Name");
    await field("Value, condition 1").fill("34*");
    await dialog.getByRole("button", { name: "Remove, condition 2" }).click();
    await field("Name of the team or user").fill("deployers");
    await field("Project").fill("shop");
    await field("Virtual cluster").fill("dev");
    await dialog.getByText("Audience, age and certificate authority").click();
    await field("Maximum age of a token, in seconds").fill("7200");
    await field("Certificate authority of the issuer, in PEM").fill("none");
    await dialog.getByRole("button", { name: "Create trust rule" }).click();
    await dialog.getByRole("alert").getByText("Correct the marked fields.").waitFor();
    for (const [name, says] of [["Name", "lowercase"], ["Value, condition 1", "no wildcards"], ["Maximum age of a token, in seconds", "3600"], ["Certificate authority of the issuer, in PEM", "PEM"]]) {
      assert.equal(await field(name).getAttribute("aria-invalid"), "true", name);
      const why = await dialog.locator(`[id="${await field(name).getAttribute("aria-describedby")}"]`).textContent();
      assert.ok(why.includes(says), `${name}: ${why}`);
    }
    assert.ok(await field("Name").evaluate((it) => it === document.activeElement), "the first field that is wrong is not focused");
    await field("Name").fill("deploy-shop");
    await field("Value, condition 1").fill("345");
    await field("Maximum age of a token, in seconds").fill("");
    await field("Certificate authority of the issuer, in PEM").fill("");
    await dialog.getByRole("button", { name: "Create trust rule" }).click();
    // The platform warns that each branch would do.
    await page.getByText("deploy-shop is in effect.").waitFor();
    await page.getByText("each branch and each pull request").waitFor();
    const rule = async () => (await (await requestAsAdmin(context, "GET", "trustrules/deploy-shop")).json()).spec;
    assert.deepEqual((({ issuer, match, owner, scope, ttl }) => ({ issuer, match, owner, scope, ttl }))(await rule()), {
      issuer: "https://token.actions.githubusercontent.com", match: [{ claim: "repository_id", is: "345" }], owner: { team: "deployers" },
      scope: { virtualClusters: [{ project: "shop", virtualCluster: "dev" }] }, ttl: 600,
    });
    await page.getByRole("link", { name: "Open deploy-shop" }).click();
    await dialog.getByRole("link", { name: "team deployers" }).waitFor();
    // Lifetimes and the scope are words, here and in the list.
    assert.deepEqual(await dialog.locator("dd").filter({ hasText: /^10 minutes$/ }).count(), 2);
    await dialog.getByRole("listitem").filter({ hasText: /^Virtual cluster dev in shop$/ }).waitFor();
    await page.locator("tbody td").filter({ hasText: /^10 minutes$/ }).waitFor();
    await dialog.getByRole("button", { name: "Disable" }).click();
    await dialog.getByRole("button", { name: "Enable" }).waitFor();
    assert.equal((await rule()).disabled, true);
    await dialog.getByRole("button", { name: "Delete" }).click();
    await field("Type deploy-shop to delete it").fill("deploy-shop");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("deploy-shop is deleted.").waitFor();
    await requestAsAdmin(context, "DELETE", "teams/deployers");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "who may not see trust rules is told so, and an auditor sees them without a button"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "trustrules", { metadata: { name: "seen" }, spec: { issuer: "https://ci.example.com", match: [{ claim: "sub", is: "x" }], owner: { user: "admin" }, scope: {} } });
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "inspector" }, spec: { clusterRoles: [{ name: "platform-auditor" }] } });
    const keys = [await createUserWithKey(context, "visitor"), await createAccessKey(context, "narrow-visitor", { user: "visitor", scope: { projects: [{ project: "shop" }] } })];
    for (const [i, path] of ["trustrules", "config"].entries()) {
      await signIn(page, keys[i], `/console/${path}`, page.getByText(/^You may not see (trust rules|configuration)\./));
      assert.equal(await page.getByText("There are no trust rules").count(), 0);
      await assertAccessible(page, `${path} that may not be seen`);
      await context.clearCookies();
    }
    await signIn(page, await createAccessKey(context, "inspector-key", { user: "inspector" }), "/console/home", page.getByRole("heading", { name: "Hello, inspector" }));
    await pressWithKeyboard(page, page.getByRole("navigation").getByRole("link", { name: "Trust rules" }));
    await page.getByRole("link", { name: "Open seen" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "New trust rule" }).count(), 0);
    for (const path of ["trustrules/seen", "ownedaccesskeys/visitor-key", "ownedaccesskeys/narrow-visitor", "ownedaccesskeys/inspector-key", "users/visitor", "users/inspector"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a trust rule with the keyboard alone"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "deployers" }, spec: {} });
    await signInWithKeyboard(page, admin, "/console/trustrules");
    await pressWithKeyboard(page, page.getByRole("button", { name: "New trust rule" }));
    const dialog = page.getByRole("dialog");
    const type = async (name, text) => {
      await tabTo(page, dialog.getByLabel(name, { exact: true }));
      await page.keyboard.press("Control+a");
      await page.keyboard.type(text);
    };
    await tabTo(page, dialog.getByLabel("GitHub Actions"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await type("Name", "from-a-cluster");
    await type("Issuer", "https://kubernetes.example.com");
    await type("Value, condition 1", "system:serviceaccount:ci:deployer");
    await type("Name of the team or user", "deployers");
    await type("Project", "shop");
    await type("Virtual cluster", "dev");
    await page.keyboard.press("Enter");
    await page.getByText("from-a-cluster is in effect.").waitFor();
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open from-a-cluster" }));
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Delete" }));
    await type("Type from-a-cluster to delete it", "from-a-cluster");
    await page.keyboard.press("Enter");
    await page.getByText("from-a-cluster is deleted.").waitFor();
    await requestAsAdmin(context, "DELETE", "teams/deployers");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
