// Stories of what all forms do: a mistake is said at its field, in words of people, and the buttons stay in sight.
import assert from "node:assert/strict";
import { admin, assertAccessible, createUserWithKey, focus, openWindow, origin, pressWithKeyboard, requestAsAdmin, signIn, signInWithKeyboard, tabTo } from "../driver.mjs";

const isFocused = (page, element) => page.waitForFunction((it) => it === document.activeElement, element);
/** What a field says is wrong with it, as who does not see it is told. */
const said = (field) => field.evaluate((it) => it.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id).textContent.trim()).filter(Boolean).join(" "));
/** The paths of what a page writes. */
function writesOf(page) {
  const sent = [];
  page.on("request", (request) => { if (request.method() !== "GET" && /v1\/(ownedaccesskeys|directclusterendpointtokens|trustrules)/.test(request.url())) sent.push(request.url()); });
  return sent;
}

export const stories = {
  async "a name that is taken is said at its field until the field is changed, with the keyboard alone"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    for (const [path, spec] of [["projects", {}], ["users", {}], ["teams", {}], ["ownedaccesskeys", {}]]) await requestAsAdmin(context, "POST", path, { metadata: { name: "form-taken" }, spec });
    await requestAsAdmin(context, "POST", "namespaces/p-form-taken/virtualclusterinstances", { metadata: { name: "form-taken" }, spec: {} });
    await signInWithKeyboard(page, admin, "/console/keys");
    const dialog = page.getByRole("dialog");
    const name = dialog.getByLabel("Name", { exact: true });
    for (const [path, button, before = []] of [
      ["keys", "New key"], ["projects", "New project"], ["people", "New user"], ["teams", "New team"], ["clusters", "Register a virtual cluster", [["Project", "form-taken"]]],
    ]) {
      await page.goto(`${origin}/console/${path}`);
      await pressWithKeyboard(page, page.getByRole("button", { name: button }));
      for (const [label, value] of [...before, ["Name", "form-taken"]]) {
        await tabTo(page, dialog.getByLabel(label, { exact: true }));
        await page.keyboard.type(value);
      }
      await page.keyboard.press("Enter");
      await dialog.getByText("This name is taken. Choose another name.").waitFor();
      await isFocused(page, await name.elementHandle());
      assert.equal(await name.getAttribute("aria-invalid"), "true", path);
      assert.match(await said(name), /^This name is taken/, path);
      assert.ok(await dialog.getByText("This name is taken").evaluate((it) => {
        const { top, bottom } = it.getBoundingClientRect(), fields = it.closest(".fields").getBoundingClientRect();
        return top >= fields.top && bottom <= fields.bottom;
      }), `${path}: it is not in sight`);
      await page.keyboard.type("2");
      await dialog.getByText("This name is taken").waitFor({ state: "detached" });
      assert.equal(await name.getAttribute("aria-invalid"), "false", path);
      assert.equal(await dialog.getByRole("alert").count(), 0, path);
      await page.keyboard.press("Escape");
      await pressWithKeyboard(page, dialog.getByRole("button", { name: "Discard" }));
      await dialog.waitFor({ state: "detached" });
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a field says what is right, and the words of the API are below it"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "form-ana" }, spec: {} });
    await signIn(page, admin, "/console/projects");
    await page.getByRole("button", { name: "New project" }).click();
    const dialog = page.getByRole("dialog");
    const field = (name) => dialog.getByLabel(name, { exact: true });
    await field("Name").fill("Not A Name");
    await field("Description").fill("x".repeat(5000));
    for (const i of [1, 2, 3]) {
      await dialog.getByRole("button", { name: "Add a member" }).click();
      await field(`Name, member ${i}`).fill(i === 3 ? "Not A Name" : "form-ana");
    }
    await dialog.getByRole("button", { name: "Create project" }).click();
    await dialog.getByRole("alert").getByText("Correct the marked fields.").waitFor();
    // Of two rules that it breaks, the stricter one is said.
    assert.equal(await said(field("Name")), "Use lowercase letters, digits and hyphens. Begin and end with a letter or a digit.");
    assert.match(await said(field("Description")), /^Use at most [\d,]+ bytes/);
    assert.equal(await said(field("Name, member 2")), "This is there twice.");
    assert.match(await said(field("Name, member 3")), /^Use lowercase letters/);
    await isFocused(page, await field("Name").elementHandle());
    // The words of the API can be read, with the path of the field.
    const raw = dialog.getByText("a lowercase RFC 1123 subdomain").first();
    assert.ok(!(await raw.isVisible()));
    await pressWithKeyboard(page, dialog.getByText("What the API says").first());
    await raw.waitFor();
    await dialog.locator("details[open] code").getByText("metadata.name").first().waitFor();
    await assertAccessible(page, "a form that is refused");
    // One field is corrected: the others stay marked. Without a member, the next ones have other numbers, so that none is marked.
    await field("Name").fill("form-shop");
    assert.equal(await said(field("Name")), "");
    assert.equal(await said(field("Name, member 2")), "This is there twice.");
    await dialog.getByRole("button", { name: "Remove, member 2" }).click();
    assert.doesNotMatch(await said(field("Name, member 2")), /twice|lowercase/);
    assert.match(await said(field("Description")), /^Use at most/);
    await field("Description").fill("");
    assert.equal(await dialog.getByRole("alert").count(), 0);
    await dialog.getByRole("button", { name: "Create project" }).click();
    assert.match(await (await field("Name, member 2").elementHandle()).evaluate((it) => new Promise((done) => {
      const look = () => (it.getAttribute("aria-invalid") === "true" ? done(document.getElementById(it.getAttribute("aria-describedby")).textContent) : requestAnimationFrame(look));
      look();
    })), /Use lowercase letters/);
    // Of several names in a field, the wrong one is named.
    await page.goto(`${origin}/console/teams`);
    await page.getByRole("button", { name: "New team" }).click();
    await field("Name").fill("form-web");
    await field("Members").fill("form-ana, Wrong.");
    await dialog.getByRole("button", { name: "Create team" }).click();
    await dialog.getByText("Wrong.: Use lowercase letters").waitFor();
    await isFocused(page, await field("Members").elementHandle());
    // A choice that is refused has the focus, and a field in a closed part is opened.
    await page.goto(`${origin}/console/trustrules`);
    await page.getByRole("button", { name: "New trust rule" }).click();
    const more = dialog.locator("details", { hasText: "Audience, age and certificate authority" });
    await field("Name").fill("form-rule");
    await field("Value, condition 1").fill("345");
    await field("Name of the team or user").fill("form-web");
    await field("A scope in YAML").check();
    await field("Scope").fill("roles:\n- role: absent\n  colour: red");
    await more.locator("summary").first().click();
    await field("Maximum age of a token, in seconds").fill("7200");
    await more.locator("summary").first().click();
    await dialog.getByRole("button", { name: "Create trust rule" }).click();
    await dialog.getByText("There is no such field.").waitFor();
    assert.equal(await said(field("Scope")).then((text) => text.split(" The fields")[0]), "roles[0].colour There is no such field.");
    await isFocused(page, await field("Scope").elementHandle());
    await field("Scope").fill("roles:\n- role: absent");
    await dialog.getByRole("button", { name: "Create trust rule" }).click();
    await dialog.getByText(/^roles\[0\]\.role Use .+ or .+\.$/).waitFor();
    await field("Scope").fill("{}");
    await dialog.getByRole("button", { name: "Create trust rule" }).click();
    await isFocused(page, await field("Maximum age of a token, in seconds").elementHandle());
    assert.match(await said(field("Maximum age of a token, in seconds")), /3600/);
    // What no field shows has its path, and is in sight.
    await page.route("**/trustrules?fieldValidation=Strict", (route) => route.fulfill({ status: 422, contentType: "application/json", body: JSON.stringify({
      kind: "Status", code: 422, message: "wrong", details: { causes: [{ reason: "FieldValueRequired", field: "spec.elsewhere", message: "Required value" }] },
    }) }), { times: 1 });
    await dialog.getByRole("button", { name: "Create trust rule" }).click();
    const box = dialog.getByRole("alert").getByText("spec.elsewhere");
    await box.waitFor();
    await page.waitForFunction((it) => {
      const { top, bottom } = it.getBoundingClientRect(), fields = it.closest(".fields").getBoundingClientRect();
      return top >= fields.top && bottom <= fields.bottom;
    }, await box.elementHandle());
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the buttons of a long form stay in sight and cover no field, also on a phone, with the keyboard alone"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await signInWithKeyboard(page, admin, "/console/keys");
    const dialog = page.getByRole("dialog");
    for (const [path, open, button] of [["keys", "New key", "Create key"], ["trustrules", "New trust rule", "Create trust rule"], ["clusters", "Register a virtual cluster", "Register"]]) {
      for (const [width, height] of [[1280, 800], [390, 844]]) {
        const about = `${path} at ${width}`;
        await page.setViewportSize({ width, height });
        await page.goto(`${origin}/console/${path}`);
        await pressWithKeyboard(page, page.getByRole("button", { name: open }));
        const submit = dialog.getByRole("button", { name: button, exact: true });
        await submit.waitFor();
        for (const each of [submit, dialog.getByRole("button", { name: "Cancel" })]) {
          const { y, height: own } = await each.boundingBox();
          assert.ok(y >= 0 && y + own <= height, `${about}: a button is out of sight`);
        }
        assert.ok(await dialog.evaluate((it) => it.scrollWidth <= it.clientWidth), `${about}: it scrolls sideways`);
        // Whatever the tab key reaches, up to the button, is in sight above the buttons.
        let steps = 0;
        for (; !(await submit.evaluate((it) => it === document.activeElement)); steps++) {
          assert.ok(steps < 100, about);
          const hidden = await dialog.evaluate((it) => {
            const element = document.activeElement, buttons = it.querySelector(".fields + .buttons");
            if (buttons.contains(element) || !it.contains(element)) return "";
            const { top, bottom, height } = element.getBoundingClientRect(), above = buttons.getBoundingClientRect().top;
            const title = it.querySelector(".head").getBoundingClientRect().bottom;
            return top >= title - 1 && (bottom <= above + 1 || height > above - title) ? "" : `${element.outerHTML.slice(0, 200)} at ${top} to ${bottom}, between ${title} and ${above}`;
          });
          assert.equal(hidden, "", `${about}: ${hidden} is out of sight`);
          await page.keyboard.press("Tab");
        }
        assert.ok(steps > 8, about);
      }
    }
    // On a low screen all of it scrolls, and the button is reached.
    await page.setViewportSize({ width: 640, height: 320 });
    await page.goto(`${origin}/console/keys`);
    await pressWithKeyboard(page, page.getByRole("button", { name: "New key" }));
    await tabTo(page, dialog.getByRole("button", { name: "Create key" }));
    await page.waitForFunction((it) => it.getBoundingClientRect().bottom <= innerHeight, await dialog.getByRole("button", { name: "Create key" }).elementHandle());
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a scope in YAML that cannot be read is refused at its line, and is not sent"() {
    const { context, page, problems } = await openWindow();
    const sent = writesOf(page);
    await signIn(page);
    const dialog = page.getByRole("dialog");
    const scope = dialog.getByLabel("Scope", { exact: true });
    for (const [path, open, button] of [["keys", "New key", "Create key"], ["tokens", "New token", "Issue token"], ["trustrules", "New trust rule", "Create trust rule"]]) {
      await page.goto(`${origin}/console/${path}`);
      await page.getByRole("button", { name: open }).click();
      if (path === "trustrules") {
        for (const [label, value] of [["Name", "form-yaml"], ["Value, condition 1", "345"], ["Name of the team or user", "web"]]) await dialog.getByLabel(label, { exact: true }).fill(value);
      }
      await dialog.getByLabel("A scope in YAML").check();
      for (const [yaml, says] of [["roles:\n- role: platformCLI\n projects: [shop]", /^Line 3: /], ["roles: [", /^Line 1: /], ["roles:\n- role: a\nroles: []", /^Line 3: /], ["", /^This is no scope/], ["shop", /^This is no scope/]]) {
        await scope.fill(yaml);
        assert.equal(await scope.getAttribute("aria-invalid"), "false");
        await dialog.getByRole("button", { name: button }).click();
        await page.waitForFunction((it) => it.getAttribute("aria-invalid") === "true" && it === document.activeElement, await scope.elementHandle());
        assert.match(await said(scope), says, `${path}: ${yaml}`);
      }
      assert.deepEqual(sent, [], path);
    }
    // With the keyboard, the text is corrected where the focus is.
    await page.goto(`${origin}/console/keys`);
    await pressWithKeyboard(page, page.getByRole("button", { name: "New key" }));
    await dialog.getByLabel("A scope in YAML").check();
    await focus(scope);
    await page.keyboard.press("Control+a");
    await page.keyboard.type("roles: [");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Create key" }));
    await isFocused(page, await scope.elementHandle());
    await page.keyboard.press("Control+a");
    await page.keyboard.type("roles: [{role: platformCLI}]");
    assert.equal(await scope.getAttribute("aria-invalid"), "false");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Create key" }));
    await page.getByRole("button", { name: "I have saved it" }).waitFor();
    assert.equal(sent.length, 1);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a form says that a name does not exist to who sees all names, and creates the object all the same"() {
    const { context, page, problems } = await openWindow();
    const key = await createUserWithKey(context, "form-eve");
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "form-own" }, spec: { users: ["form-eve"] } });
    await signInWithKeyboard(page, admin, "/console/teams");
    const dialog = page.getByRole("dialog");
    const field = (name) => dialog.getByLabel(name, { exact: true });
    const warnings = () => dialog.locator(".absent").allTextContents().then((all) => all.filter(Boolean));
    const waitUntilOffered = (name) => dialog.locator(`datalist option[value$="${name}"]`).first().waitFor({ state: "attached" });
    // Several names, with the keyboard: it is said when the field is left, and not while it is typed.
    await pressWithKeyboard(page, page.getByRole("button", { name: "New team" }));
    await tabTo(page, field("Name"));
    await page.keyboard.type("form-crew");
    await tabTo(page, field("Members"));
    await waitUntilOffered("form-eve");
    await page.keyboard.type("form-eve, form-adam");
    assert.deepEqual(await warnings(), []);
    await page.keyboard.press("Tab");
    await dialog.getByText("No user is named form-adam.", { exact: true }).waitFor();
    assert.deepEqual(await warnings(), ["No user is named form-adam."]);
    assert.match(await said(field("Members")), /No user is named form-adam\.$/);
    await assertAccessible(page, "a form with a name that does not exist");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Open form-crew" }).waitFor();
    // Owner, project and virtual cluster of a key. What exists is not warned of, and what is made meanwhile is found.
    await page.goto(`${origin}/console/keys`);
    await page.getByRole("button", { name: "New key" }).click();
    await field("A team").check();
    await focus(field("Name of the team or user"));
    await waitUntilOffered("form-own");
    await field("Name of the team or user").fill("form-own");
    await field("One virtual cluster").check();
    await focus(field("Project"));
    await page.waitForFunction(() => document.querySelector("dialog .absent"));
    assert.deepEqual(await warnings(), []);
    await field("Name of the team or user").fill("form-late");
    // The line that appears does not push away what is being clicked.
    await field("Everything in one project").check();
    await dialog.getByText("No team is named form-late.").waitFor();
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "form-late" }, spec: {} });
    await focus(field("Name of the team or user"));
    await waitUntilOffered("form-late");
    await focus(field("Description"));
    assert.deepEqual(await warnings(), []);
    // A list of which there is more says nothing of what is not in it.
    await page.route(/\/v1\/users\?/, (route) => route.fulfill({ json: { kind: "Table", rows: [{ cells: ["form-eve"], object: { metadata: { name: "form-eve" } } }], metadata: { continue: "more" } } }));
    await field("A user").check();
    await focus(field("Name of the team or user"));
    await waitUntilOffered("form-eve");
    await field("Name of the team or user").fill("form-adam");
    await focus(field("Description"));
    assert.deepEqual(await warnings(), []);
    await page.unroute(/\/v1\/users\?/);
    // Nor does who sees some of them: the team may exist.
    await context.clearCookies();
    await signIn(page, key);
    await page.getByRole("button", { name: "New key" }).click();
    await field("A team").check();
    await focus(field("Name of the team or user"));
    await waitUntilOffered("form-own");
    await field("Name of the team or user").fill("form-late");
    await focus(field("Description"));
    assert.deepEqual(await warnings(), []);
    assert.deepEqual(problems, []);
    await context.close();
  },
};
