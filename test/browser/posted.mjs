// A sign-in whose provider posts its answer from its own site, in a real browser. posted_test.go starts it with the address of a runner, the
// file of an admin key, the path of the browser, and the provider.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { chromium } from "playwright-core";

const [origin, keyFile, executablePath, issuer, caData] = process.argv.slice(2);
const admin = readFileSync(keyFile, "utf8").trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const window = () => browser.newContext({ ignoreHTTPSErrors: true });
// The provider is another site than the platform: its host has another name.
const provider = issuer.replace("127.0.0.1", "localhost");
assert.notEqual(new URL(provider).hostname, new URL(origin).hostname);

const context = await window();
const set = await context.request.fetch(`${origin}/kubernetes/management/apis/management.platform.sh/v1/config/config`, {
  method: "PATCH", headers: { Authorization: `Bearer ${admin}`, "Content-Type": "application/merge-patch+json" },
  data: JSON.stringify({ status: { auth: { saml: {
    redirectURI: `${origin}/auth/saml/callback`, ssoURL: `${provider}/sso`, ssoIssuer: issuer, caData, usernameAttr: "name", emailAttr: "mail", groupsAttr: "groups",
  } } } }),
});
assert.equal(set.status(), 200, await set.text());

// A program waits for its code, as `platform login` does.
const answers = [];
const program = http.createServer((request, response) => {
  const asked = new URL(request.url, "http://127.0.0.1");
  // The browser asks for an icon as well.
  if (asked.pathname === "/callback") answers.push(asked);
  response.end("You can close this page.");
});
await new Promise((listening) => program.listen(0, "127.0.0.1", listening));
const redirect = `http://127.0.0.1:${program.address().port}/callback`;
const verifier = randomBytes(32).toString("base64url");
const begin = `${origin}/auth/saml/login?${new URLSearchParams({
  response_type: "code", client_id: "platform-cli", redirect_uri: redirect, state: "state-of-the-program",
  code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256",
})}`;

/** Signs in at the page of the provider, and returns the requests of the page from then on. */
async function atProvider(page) {
  const requests = [];
  page.on("request", (request) => requests.push(request));
  await page.locator("input[name=login]").fill("ana");
  await page.locator("input[name=login]").press("Enter");
  await page.waitForURL((at) => at.origin === origin);
  return requests;
}

// The form of the provider's site brings no cookie. The answer is a redirect to a GET, which brings it.
const page = await context.newPage();
await page.goto(begin);
assert.equal(new URL(page.url()).origin, provider);
const cookies = (await context.cookies(origin)).filter(({ name }) => name.startsWith("__Host-signin-"));
assert.deepEqual(cookies.map(({ sameSite, secure, httpOnly, path }) => ({ sameSite, secure, httpOnly, path })), [
  { sameSite: "Lax", secure: true, httpOnly: true, path: "/" },
]);
const requests = await atProvider(page);
await page.getByRole("button", { name: "Allow" }).waitFor();
const posted = requests.find((request) => request.method() === "POST" && request.url() === `${origin}/auth/saml/callback`);
const headers = await posted.allHeaders();
assert.equal(headers["sec-fetch-site"], "cross-site");
assert.equal(headers.cookie, undefined, "the form of another site has brought a cookie");
const redirected = await posted.response();
assert.equal(redirected.status(), 303);
const resumed = requests.find((request) => request.redirectedFrom() === posted);
assert.equal(resumed.method(), "GET");
assert.equal(resumed.url(), (await redirected.allHeaders()).location);
assert.ok(resumed.url().startsWith(`${origin}/auth/resume?id=`), resumed.url());
assert.equal((await resumed.allHeaders()).cookie, `${cookies[0].name}=${cookies[0].value}`);
assert.ok((await page.locator("body").innerText()).includes("ana"));
await page.getByRole("button", { name: "Allow" }).click();
await page.getByText("You can close this page.").waitFor();
const [answer] = answers;
assert.equal(answer.searchParams.get("state"), "state-of-the-program");
assert.equal(answer.searchParams.get("iss"), origin);
const token = await context.request.post(`${origin}/auth/token`, { form: {
  grant_type: "authorization_code", client_id: "platform-cli", code: answer.searchParams.get("code"), code_verifier: verifier, redirect_uri: redirect,
} });
const key = await token.json();
assert.equal(token.status(), 200, JSON.stringify(key));
assert.match(key.access_token, /^pak_/);
assert.equal(key.user, "ana");

// An attacker begins, and has the browser of somebody else post the answer. That browser has no cookie of the attempt, and nobody is signed in.
const attacker = await (await window()).newPage();
await attacker.goto(begin);
const victim = await (await window()).newPage();
await victim.goto(attacker.url());
const [form] = (await atProvider(victim)).filter((request) => request.method() === "POST" && request.url().startsWith(origin));
assert.equal((await form.response()).status(), 303);
assert.ok(victim.url().startsWith(`${origin}/auth/resume?id=`), victim.url());
await victim.getByText("was not started in this browser").waitFor();
assert.equal(await victim.getByRole("button").count(), 0);
assert.equal(answers.length, 1);

await browser.close();
process.exit(0);
