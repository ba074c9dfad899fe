// Stories of the configuration: its editor, its trial, its history, and a sign-in on trial.
import assert from "node:assert/strict";
import {
  assertAccessible, assertAccessibleIn, admin, requestAsAdmin, focus, setHidden, createAccessKey, openWindow, origin, allowedOrigins, createUserWithKey, pressWithKeyboard, signIn, tabTo, editorText,
  typeFast, signInWithKeyboard,
} from "../driver.mjs";

export const stories = {
  async "a configuration is changed: help, mistakes at their lines, what it would do, a trial, and a rollback"() {
    const { context, page, problems } = await openWindow();
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await signIn(page, admin, "/console/config", editor);
    const type = async (text) => {
      await focus(editor);
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(text);
    };
    const before = await (await requestAsAdmin(context, "GET", "config/config")).json();
    // A field of a later version is described without a change here: the help is that of the API.
    await type("auth:\n  accessKeyMaxTTLSeconds: 7");
    await page.getByRole("complementary", { name: "About this field" }).getByText("maximum lifetime of access keys").waitFor();
    // Everything that is wrong is shown, at its line.
    await type("auth:\n  accessKeyMaxTTLSeconds: -1\naudit:\n  level: 9\nuiSettings:\n  primaryColor: nocolour\n");
    const review = page.getByRole("button", { name: "Review the changes" });
    await review.click();
    const mistakes = page.getByRole("list", { name: "Mistakes in: Configuration" });
    for (const line of [2, 4, 6]) await mistakes.getByRole("button", { name: `Line ${line}`, exact: true }).waitFor();
    await mistakes.getByRole("button", { name: "Line 4", exact: true }).click();
    // What a change would do is said before it is done.
    assert.equal((await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "long-lived" }, spec: { user: "ana" } })).status(), 201);
    const dialog = page.getByRole("dialog");
    await type("platformHost: platform.example.com\nauth:\n  accessKeyMaxTTLSeconds: 86400\n");
    await review.click();
    await dialog.getByText("+ platformHost: platform.example.com").waitFor();
    await dialog.getByRole("list", { name: "What the change would do" }).getByText(/access key/).first().waitFor();
    assert.equal((await (await requestAsAdmin(context, "GET", "config/config")).json()).metadata.resourceVersion, before.metadata.resourceVersion, "a review has written");
    await dialog.getByLabel("Roll the change back unless I confirm it within").selectOption("1 hour");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved as revision/).waitFor();
    await page.getByRole("button", { name: "Confirm" }).click();
    await page.getByText("The change is confirmed and stays in effect.").waitFor();
    await page.getByRole("button", { name: "Confirm" }).waitFor({ state: "detached" });
    assert.equal((await (await requestAsAdmin(context, "GET", "config/config")).json()).status.platformHost, "platform.example.com");
    // The history says who changed what, and a rollback shows what it changes first.
    await page.locator(".revisions summary").first().click();
    await page.getByText("status.platformHost").first().waitFor();
    await page.getByRole("button", { name: /^Roll back to revision/ }).last().click();
    await dialog.getByText("status.auth.accessKeyMaxTTLSeconds").waitFor();
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await page.getByText("Rolled back.").waitFor();
    assert.equal((await (await requestAsAdmin(context, "GET", "config/config")).json()).status.platformHost, undefined);
    // A write of metadata alone makes a revision that the history leaves out. The page says so.
    await requestAsAdmin(context, "PATCH", "config/config", { metadata: { annotations: { "example.com/note": "story" } } }, "application/merge-patch+json");
    await page.reload();
    await page.getByText(/^Revision \d+ changed only metadata, such as who manages a field\. It has the configuration of revision \d+\.$/).waitFor();
    // Somebody else writes while it is typed: nothing is lost, and nothing is overwritten.
    await type("platformHost: typed.example.com\n");
    await requestAsAdmin(context, "PATCH", "config/config", { status: { platformHost: "other.example.com" } }, "application/merge-patch+json");
    await review.click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByRole("button", { name: "Read the configuration again" }).click();
    await dialog.getByText("- platformHost: other.example.com").waitFor();
    await dialog.getByText("+ platformHost: typed.example.com").waitFor();
    await dialog.getByRole("button", { name: "Back" }).click();
    await requestAsAdmin(context, "PATCH", "config/config", { status: { platformHost: null } }, "application/merge-patch+json");
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/long-lived");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a configuration with the keyboard alone, and a secret that stays"() {
    const { context, page, problems } = await openWindow();
    const secret = "s3cret-of-a-story";
    await requestAsAdmin(context, "PATCH", "config/config", { status: { apps: { repositories: [{ name: "story", url: "https://charts.example.com", password: secret }] } } }, "application/merge-patch+json");
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await signInWithKeyboard(page, admin, "/console/config", editor);
    await editor.getByText('password: "***"').waitFor();
    await tabTo(page, editor);
    await page.keyboard.press("Control+Home");
    await page.keyboard.insertText("platformHost: keys.example.com\n");
    await page.keyboard.press("Tab");
    await tabTo(page, page.getByRole("button", { name: "Review the changes" }));
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("+ platformHost: keys.example.com").waitFor();
    await tabTo(page, dialog.getByRole("button", { name: "Save" }));
    await page.keyboard.press("Enter");
    await page.getByText(/^Saved as revision/).waitFor();
    const revealed = await (await requestAsAdmin(context, "GET", "config/config?reveal=true")).json();
    assert.equal(revealed.status.apps.repositories[0].password, secret);
    assert.equal(revealed.status.platformHost, "keys.example.com");
    assert.ok(!(await page.evaluate(() => document.documentElement.outerHTML)).includes(secret));
    await requestAsAdmin(context, "PATCH", "config/config", { status: { apps: null, platformHost: null } }, "application/merge-patch+json");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "typing faster than a slow page draws: the configuration"() {
    const { context, page, problems } = await openWindow();
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await signIn(page, admin, "/console/config", editor);
    const before = await editorText(editor);
    // The page knows what is typed if it knows whether something is.
    const discard = page.getByRole("button", { name: "Discard the changes" });
    await typeFast(page, editor, async () => {
      const shown = await editorText(editor);
      return (await discard.isEnabled()) === (shown !== before) ? shown : "the page holds another text";
    });
    await discard.click();
    assert.equal(await editorText(editor), before);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a sign-in is tried: who would sign in, what refuses them, and nothing is asked for once the dialog is closed or hidden"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    allowedOrigins.add(process.env.ISSUER);
    await context.route("https://fonts.googleapis.com/**", (route) => route.abort());
    const set = async (auth) => {
      const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { auth } }, "application/merge-patch+json");
      assert.equal(answer.status(), 200, await answer.text());
    };
    await set({
      oidc: {
        issuerUrl: process.env.ISSUER, caFile: process.env.ISSUER_CA, clientId: "platform", clientSecret: "hush",
        redirectURI: `${origin}/auth/oidc/callback`, groupsClaim: "grps", scopes: ["profile", "email", "groups"],
      },
      connectors: [{ id: "second", displayName: "Second connector", gitforge1: { clientId: "platform", redirectURI: `${origin}/elsewhere` } }],
    });
    const secrets = [];
    page.on("response", async (response) => {
      if (!response.url().includes("signintrials") || !response.ok()) return;
      const { trial } = (await response.json().catch(() => ({ status: {} }))).status;
      if (trial) secrets.push(trial);
    });
    await signInWithKeyboard(page, admin, "/console/config", page.getByRole("textbox", { name: "Configuration" }));
    const dialog = page.getByRole("dialog");
    const link = dialog.getByRole("link", { name: "Sign in at oidc in a new tab" });
    /** Follows the link, signs in at the provider, and returns to the console. */
    const visit = async () => {
      const [popup] = await Promise.all([context.waitForEvent("page"), pressWithKeyboard(page, link)]);
      await popup.waitForLoadState();
      const login = popup.getByPlaceholder("Enter any login");
      const next = popup.getByRole("button", { name: "Continue" });
      const end = popup.getByRole("heading", { name: "The trial is over" });
      await login.or(next).or(end).first().waitFor();
      if (await login.isVisible()) {
        await login.fill("1001");
        await popup.getByPlaceholder("and password").fill("any");
        await popup.getByRole("button", { name: "Sign-in" }).click();
        await next.or(end).first().waitFor();
      }
      if (await next.isVisible()) await next.click();
      await end.waitFor();
      await assertAccessible(popup, "the end of a trial");
      await popup.close();
    };
    // With the keyboard alone. The claim of the groups is misspelt, so that it does not come.
    await pressWithKeyboard(page, page.getByRole("button", { name: "Try the sign-in at oidc" }));
    await link.waitFor();
    await assertAccessibleIn(["light", "400 %"], page, "sign-in on trial, waiting");
    await visit();
    await dialog.getByText("All checks of the response have passed.").waitFor();
    const facts = dialog.getByRole("definition");
    for (const fact of ['groupsClaim "grps"', "1001", "ana"]) await facts.getByText(fact, { exact: true }).first().waitFor();
    await assertAccessibleIn(["light", "dark", "400 %"], page, "sign-in on trial, passed");
    // The next trial is with the configuration as it is then.
    await set({ oidc: { groupsClaim: "groups", groups: ["nobody"] } });
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Try again" }));
    await visit();
    await dialog.getByText("not_admitted: in none of the required groups").waitFor();
    await assertAccessibleIn(["light"], page, "sign-in on trial, refused");
    await set({ oidc: { groups: null } });
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Try again" }));
    await visit();
    await dialog.getByText("New teams for").waitFor();
    await facts.getByText("dev", { exact: true }).first().waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // What the API says of a connector at which nobody can sign in is shown.
    await page.getByRole("button", { name: "Try the sign-in at second" }).click();
    await dialog.getByRole("alert").getByText("status.auth.connectors[0].gitforge1.redirectURI").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    // Nobody was signed in, and nothing keeps the secrets of the trials.
    const named = async (path) => (await (await requestAsAdmin(context, "GET", path)).json()).items.map(({ metadata }) => metadata.name);
    assert.ok(!(await named("users")).includes("ana") && !(await named("teams")).includes("dev"), "a trial has made somebody");
    const kept = await page.evaluate(() => [document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join("\n"));
    assert.equal(secrets.length, 3);
    for (const secret of secrets) assert.ok(!kept.includes(secret), "the page has kept the secret of a trial");
    // The clock of the page stands still: only what the story lets pass can have asked.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("signintrials")) asked.push(request.postDataJSON().spec); });
    await page.getByRole("button", { name: "Try the sign-in at oidc" }).click();
    await link.waitFor();
    assert.deepEqual(asked, [{ connector: "oidc" }]);
    /** Lets time pass until the page has asked so often. */
    const polled = async (times) => { while (asked.length < times) await page.clock.runFor(2000); };
    await polled(3);
    await setHidden(page, true);
    const hidden = asked.length;
    await page.clock.runFor(60_000);
    assert.equal(asked.length, hidden, "a hidden tab asks");
    await setHidden(page, false);
    await polled(hidden + 1);
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    const closed = asked.length;
    await page.clock.runFor(60_000);
    assert.equal(asked.length, closed, "a dialog that is closed asks");
    assert.ok(asked.slice(1).every(({ trial, connector }) => trial && !connector));
    await set({ oidc: null, connectors: null });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "thirteen mistakes are shown at their lines, and a limit says whose keys it ends"() {
    const { context, page, problems } = await openWindow();
    // Its age is below the limit that it sets.
    const key = await createAccessKey(context, "limiter", { groups: ["platform:admins"] });
    await createUserWithKey(context, "limited");
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await signIn(page, key, "/console/config", editor);
    const type = async (text) => {
      await focus(editor);
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(text);
    };
    // What a low limit ends is named before it is saved.
    await type("auth:\n  accessKeyMaxTTLSeconds: 60\n");
    const review = page.getByRole("button", { name: "Review the changes" });
    await review.click();
    const effects = page.getByRole("dialog").getByRole("list", { name: "What the change would do" });
    await effects.getByText(/the limits on the life of access keys end .*user:limited.*; the keys are .*admin/).waitFor();
    // Others learn nothing of it: nothing is written.
    assert.notEqual((await (await requestAsAdmin(context, "GET", "config/config")).json()).status.auth.accessKeyMaxTTLSeconds, 60);
    await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
    const lines = [
      "auth:", "  accessKeyMaxTTLSeconds: -1", "  loginAccessKeyTTLSeconds: -1", "audit:", "  level: 9", "uiSettings:", "  primaryColor: nocolour", "  accentColor: 7px",
      "  sidebarColor: url(x)", "  logoBackgroundColor: '#12'", "  logoURL: logo", "  smallLogoURL: 'javascript:1'", "  faviconURL: x", "  navBarButtons:",
      "  - text: x", "    position: Middle", "    link: 'javascript:1'", "    icon: x", "",
    ];
    await type(lines.join("\n"));
    await review.click();
    const mistakes = page.getByRole("list", { name: "Mistakes in: Configuration" });
    await mistakes.getByRole("button").first().waitFor();
    const found = (await mistakes.getByRole("button").allTextContents()).map((one) => Number(one.replace("Line ", ""))).sort((a, b) => a - b);
    const wrong = lines.flatMap((line, i) => (/^ +(- )?(?!text|nav)\w+: /.test(line) ? [i + 1] : []));
    assert.equal(wrong.length, 13);
    assert.deepEqual(found, wrong);
    // Who leaves with unsaved changes is asked first.
    const asked = page.waitForEvent("dialog");
    const left = page.getByRole("link", { name: "Home" }).click({ noWaitAfter: true });
    const question = await asked;
    assert.equal(question.type(), "beforeunload");
    await question.dismiss();
    await left;
    await editor.getByText("accessKeyMaxTTLSeconds").waitFor();
    await page.getByRole("button", { name: "Discard the changes" }).click();
    await page.getByRole("link", { name: "Home" }).click();
    await page.getByRole("heading", { name: /^Hello/ }).waitFor();
    for (const path of ["ownedaccesskeys/limiter", "ownedaccesskeys/limited-key", "users/limited"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a change that nobody confirms is taken back, and the page says so"() {
    const { context, page, problems } = await openWindow();
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await signIn(page, admin, "/console/config", editor);
    const before = await (await requestAsAdmin(context, "GET", "config/config")).json();
    await tabTo(page, editor);
    await page.keyboard.press("Control+Home");
    await page.keyboard.insertText("platformHost: tried.example.com\n");
    await pressWithKeyboard(page, page.getByRole("button", { name: "Review the changes" }));
    const dialog = page.getByRole("dialog");
    await dialog.getByText("+ platformHost: tried.example.com").waitFor();
    // A minute is long for a test. It is sent by the test, with the same access key as that of the session.
    await page.route(/config\/config\?fieldValidation/, (route) => route.fetch({
      postData: route.request().postData().replace('"1m"', '"2s"'), headers: { "content-type": "application/json", authorization: `Bearer ${admin}` },
    }).then((response) => route.fulfill({ response })));
    await tabTo(page, dialog.getByLabel("Reason, for the history"));
    await page.keyboard.type("to see what happens");
    await tabTo(page, dialog.getByLabel("Roll the change back unless I confirm it within"));
    // The preview of the choice takes long. It does not hold the change up.
    let answer;
    const saved = new Promise((resolve) => (answer = resolve));
    await page.route(/dryRun=All/, (route) => saved.then(() => route.fulfill({ json: {} })));
    const preview = page.waitForRequest(/dryRun=All/);
    await page.keyboard.press("ArrowDown");
    await preview;
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Save" }));
    await page.getByText(/^The change is rolled back at .* unless it is confirmed\.$/).waitFor();
    answer();
    await page.getByText("The change was not confirmed in time and was rolled back.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Confirm" }).count(), 0);
    assert.equal(await editor.getByText("tried.example.com").count(), 0);
    await page.locator("q", { hasText: "to see what happens" }).waitFor();
    assert.equal((await (await requestAsAdmin(context, "GET", "config/config")).json()).status.platformHost, before.status.platformHost);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a new field of the configuration appears by itself"() {
    const { context, page, problems } = await openWindow();
    /** Answers as a later version of the API does. */
    const later = (path, change) => page.route(path, async (route) => {
      const response = await route.fetch({ headers: { accept: route.request().headers().accept, authorization: `Bearer ${admin}` } });
      const json = await response.json();
      change(json);
      await route.fulfill({ response, json });
    });
    await later("**/openapi/v3/apis/management.platform.sh/v1", ({ components: { schemas } }) => {
      const [, status] = Object.entries(schemas).find(([name]) => name.endsWith(".ConfigStatus"));
      status.properties.shininess = { type: "string", description: "Shininess is how much the platform shines.", enum: ["Dull", "Bright"] };
    });
    await later("**/config/config", (config) => { config.status.shininess = "Bright"; });
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await signIn(page, admin, "/console/config", editor);
    await focus(editor);
    await page.keyboard.press("Control+End");
    await editor.getByText("shininess").click();
    const help = page.getByRole("complementary", { name: "About this field" });
    await help.getByText("how much the platform shines").waitFor();
    await help.getByText("Dull").waitFor();
    await help.getByRole("heading", { name: "shininess", exact: true }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
};
