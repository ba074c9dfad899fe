// Stories of the pages of the sign-in, which the platform serves without scripts.
import assert from "node:assert/strict";
import { assertAccessibleIn, requestAsAdmin, inAllLooks, openWindow, origin, pressWithKeyboard, tabTo } from "../driver.mjs";

export const { stories, longStories } = inAllLooks("the pages of the sign-in and their refusals are accessible", async (looks) => {
  const { context, page } = await openWindow({ reducedMotion: "reduce" });
  const patch = async (status) => {
    const answer = await requestAsAdmin(context, "PATCH", "config/config", { status }, "application/merge-patch+json");
    assert.equal(answer.status(), 200, await answer.text());
  };
  // The look of the configuration is on these pages as well.
  const usual = { platformHost: new URL(origin).host, uiSettings: { primaryColor: "#ffd54f", legalTemplate: "<p>Terms of use</p>" } };
  await patch(usual);
  await requestAsAdmin(context, "POST", "users", { metadata: { name: "signer" }, spec: {} });
  const word = "nine-violet-kettles-hum";
  const set = await requestAsAdmin(context, "POST", "users/signer/password", { spec: { password: word } });
  assert.equal(set.status(), 201, await set.text());
  const heading = (name) => page.getByRole("heading", { name, exact: true });
  // Each page is looked at once, and in one look if it differs from an earlier one by its words alone.
  const looked = new Set();
  const seen = async (title, about = title, says, look = looks) => {
    await heading(title).waitFor();
    if (says) await page.getByText(says).waitFor();
    assert.equal(await page.title(), title);
    if (!looked.has(about)) await assertAccessibleIn(look, page, `sign-in, ${about}`);
    looked.add(about);
  };
  const refused = (about, says) => seen("This did not work", about, says, looked.has("not started here") ? looks.slice(0, 1) : looks);
  const of = (changes = {}) => new URLSearchParams({
    response_type: "code", client_id: "platform-cli", redirect_uri: "http://127.0.0.1:4711/callback", state: "of-this-story",
    code_challenge: "a".repeat(43), code_challenge_method: "S256", ...changes,
  });
  const enter = async (name, password) => {
    await tabTo(page, page.getByLabel("User name"));
    await page.keyboard.press("Control+a");
    await page.keyboard.type(name);
    await tabTo(page, page.getByLabel("Password"));
    await page.keyboard.press("Control+a");
    await page.keyboard.type(password);
    await page.keyboard.press("Enter");
  };
  // With a password, by the keyboard alone: a wrong one, the right one, and the question.
  await page.goto(`${origin}/auth/password/login?${of()}`);
  await seen("Sign in", "password", "with your password");
  // Axe waits long for the frame of the notice, which lets no script in.
  await patch({ uiSettings: { legalTemplate: null } });
  await enter("signer", "violet-Anchor-93-tundra");
  await seen("Sign in", "wrong password", "The user name or the password is wrong.");
  await enter("signer", word);
  await seen("Sign in on this computer?", "confirmation");
  // With the code of a device.
  const codes = async () => (await (await context.request.post(`${origin}/auth/device/code`, { form: {
    client_id: "platform-cli", code_challenge: "a".repeat(43), code_challenge_method: "S256", hostname: "build-7",
  } })).json()).user_code;
  for (const [decision, end] of [["Deny", "You have refused"], ["Allow", "You are signed in"]]) {
    await page.goto(`${origin}/auth/device`);
    await seen("Sign in on another device", "device code");
    await tabTo(page, page.getByLabel("Code"));
    await page.keyboard.type("BBBB-BBBB");
    await page.keyboard.press("Enter");
    await seen("Sign in on another device", "wrong device code", "The code is unknown");
    await tabTo(page, page.getByLabel("Code"));
    await page.keyboard.type(await codes());
    await page.keyboard.press("Enter");
    await page.getByText("to see which device asks").waitFor();
    await seen("Sign in on another device", "ways to sign in");
    await pressWithKeyboard(page, page.getByRole("link", { name: "Sign in: Password" }));
    await page.getByLabel("User name").waitFor();
    await enter("signer", word);
    await seen("Sign in on another device?", "confirmation of a device", "build-7");
    await pressWithKeyboard(page, page.getByRole("button", { name: decision }));
    await seen(end);
  }
  // Refusals: each class that people get.
  await page.goto(`${origin}/auth/confirm?id=absent`);
  await refused("not started here", "was not started in this browser");
  await page.goto(`${origin}/auth/confirm?id=a&id=b`);
  await refused("bad request", "the parameter id is given more than once");
  await page.goto(`${origin}/auth/absent/login?${of()}`);
  await refused("unknown connector");
  await page.goto(`${origin}/auth/password/login?${of({ redirect_uri: "https://evil.example/" })}`);
  await refused("wrong program");
  await page.goto(`${origin}/auth/password/login?${of()}`);
  for (let left = 12; left > 0 && !(await heading("This did not work").isVisible()); left--) {
    await Promise.all([page.waitForEvent("load"), enter("nobody-of-this-story", word)]);
  }
  await refused("too many attempts", "too many wrong passwords");
  const foreign = await context.request.post(`${origin}/auth/confirm`, { headers: { "Sec-Fetch-Site": "cross-site", Origin: "https://evil.example", Accept: "text/html" }, form: { id: "a" } });
  assert.equal(foreign.status(), 403);
  await page.route("**/auth/confirm?shown", (route) => route.fulfill({ response: foreign }));
  await page.goto(`${origin}/auth/confirm?shown`);
  await refused("the form of another site", "the form is that of another site");
  // With a token of a cluster manager, which cannot be reached.
  await patch({ auth: { clustermanager: { host: "127.0.0.1:1" } } });
  await page.goto(`${origin}/auth/clustermanager/login?${of()}`);
  await seen("Sign in", "token", "Enter your API token");
  await tabTo(page, page.getByLabel("API token"));
  await page.keyboard.type("token-story:nothing");
  await page.keyboard.press("Enter");
  await refused("provider out of reach", "the provider cannot be reached");
  await page.goto(`${origin}/auth/clustermanager/login?${of()}`);
  await tabTo(page, page.getByLabel("API token"));
  await page.keyboard.type("no token");
  await page.keyboard.press("Enter");
  await refused("refused by the provider", "the provider did not sign you in");
  await page.goto(`${origin}/auth/clustermanager/logout`);
  await seen("The provider has no sign-out");
  await patch({ auth: { clustermanager: null } });
  await patch({ platformHost: null });
  await page.goto(`${origin}/auth/device`);
  await refused("misconfigured", "the sign-in is not set up correctly");
  await patch({ uiSettings: null });
  await requestAsAdmin(context, "DELETE", "users/signer");
  await context.close();
});
