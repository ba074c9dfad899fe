// Stories of tokens for connected clusters.
import assert from "node:assert/strict";
import { admin, requestAsAdmin, openWindow, pressWithKeyboard, signIn, signInWithKeyboard, tabTo } from "../driver.mjs";

export const stories = {
  async "a token is issued, its claims are shown, and it is revoked"() {
    const { context, page, problems } = await openWindow();
    await signIn(page, admin, "/console/tokens");
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Everything in one project").check();
    await page.getByLabel("Project", { exact: true }).fill("shop");
    await page.getByLabel("10 minutes").check();
    await page.getByRole("button", { name: "Issue token" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Issuer (iss)").waitFor();
    // A scope is words, wherever it stands. Its source is below it.
    await dialog.getByRole("listitem").filter({ hasText: /^Project shop$/ }).waitFor();
    await dialog.getByRole("button", { name: "Show" }).click();
    const token = (await page.locator(".secret code").textContent()).trim();
    await dialog.getByRole("button", { name: "I have saved it" }).click();
    assert.ok(!(await page.evaluate(() => document.documentElement.outerHTML)).includes(token), "the page has kept the token");
    const review = async () => (await (await requestAsAdmin(context, "POST", "../../authentication.k8s.io/v1/tokenreviews", {
      apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token },
    })).json()).status.authenticated;
    assert.equal(await review(), true);
    await page.getByRole("link", { name: /^Open / }).first().click();
    await dialog.getByRole("listitem").filter({ hasText: /^Project shop$/ }).waitFor();
    await dialog.getByText("The scope in YAML").click();
    await dialog.getByText("- project: shop").waitFor();
    await dialog.getByRole("button", { name: "Revoke" }).click();
    await page.getByText("There are no tokens that you may see.").waitFor();
    assert.notEqual(await review(), true);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a token with the keyboard alone"() {
    const { context, page, problems } = await openWindow();
    await signInWithKeyboard(page, admin, "/console/tokens");
    await pressWithKeyboard(page, page.getByRole("button", { name: "New token" }));
    const dialog = page.getByRole("dialog");
    // Two presses of Enter issue nothing: the narrowest scope has the focus, and needs a name.
    await dialog.waitFor();
    assert.ok(await dialog.getByLabel("One virtual cluster").evaluate((it) => it === document.activeElement && it.checked));
    await page.keyboard.press("Enter");
    assert.ok(await dialog.getByLabel("Project", { exact: true }).evaluate((it) => it.matches(":invalid")));
    await tabTo(page, dialog.getByLabel("One virtual cluster"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.ok(await dialog.getByLabel("Everything that I may do").isChecked());
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Issue token" }));
    await dialog.getByText("Issuer (iss)").waitFor();
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "I have saved it" }));
    const [{ metadata: { name } }] = (await (await requestAsAdmin(context, "GET", "directclusterendpointtokens")).json()).items;
    await pressWithKeyboard(page, page.getByRole("link", { name: `Open ${name}` }));
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Revoke" }));
    await page.getByRole("link", { name: `Open ${name}` }).waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
};
