// Stories of a tab that sleeps: nobody looks at it, or the computer is closed, while sessions end and objects change.
import assert from "node:assert/strict";
import { admin, createAccessKey, openWindow, origin, requestAsAdmin, requestsOf, setHidden, signIn } from "../driver.mjs";

/** Opens the access keys with a key that is made for it. Its streams are open and bring nothing until deaf is false, like a connection that is gone. */
async function openSleeper(name, spec = {}) {
  const window = await openWindow();
  const { context, page } = window;
  const key = await createAccessKey(context, name, { user: "admin", groups: ["platform:admins"], ...spec });
  await createAccessKey(context, `${name}-old`, {});
  await page.addInitScript(() => {
    const { fetch } = globalThis;
    globalThis.deaf = true;
    globalThis.fetch = async (...request) => {
      const response = await fetch(...request);
      return globalThis.deaf && response.ok && String(request[0]).includes("watch=true") ? new Response(new ReadableStream(), response) : response;
    };
  });
  await page.clock.install();
  await signIn(page, key);
  await page.getByText("Live", { exact: true }).waitFor();
  const reads = requestsOf(page);
  /** The requests for the list since it was last asked. */
  const listed = () => {
    const all = reads.begun.splice(0).filter((one) => /^GET .*ownedaccesskeys\?/.test(one));
    return [all.filter((one) => !one.includes("watch=true")).length, all.filter((one) => one.includes("watch=true")).length];
  };
  const link = (suffix) => page.getByRole("link", { name: `Open ${name}-${suffix}`, exact: true });
  /** What others do while the tab sleeps. */
  const change = async () => {
    assert.equal((await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}-old`)).status(), 200);
    await createAccessKey(context, `${name}-new`, {});
    await page.evaluate(() => { globalThis.deaf = false; });
  };
  const assertAwake = async (about) => {
    await link("new").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await reads.watched();
    await reads.calm();
    assert.equal(await link("old").count(), 0, about);
    assert.deepEqual([listed(), reads.streams()], [[1, 1], 1], `${about}: the requests for the list`);
  };
  return { ...window, name, key, reads, listed, link, change, assertAwake };
}

export const stories = {
  async "a tab that wakes up after an hour is right at once: hidden, frozen, and on a computer that was closed"() {
    for (const kind of ["hidden", "frozen", "closed"]) {
      const { context, page, problems, reads, listed, link, change, assertAwake } = await openSleeper(`slept-${kind}`);
      await link("old").waitFor();
      const session = await context.newCDPSession(page);
      if (kind !== "closed") {
        await setHidden(page, true);
        await page.getByText("Paused", { exact: true }).waitFor();
      }
      if (kind === "frozen") await session.send("Page.setWebLifecycleState", { state: "frozen" });
      await reads.calm();
      listed();
      await change();
      if (kind === "frozen") await session.send("Page.setWebLifecycleState", { state: "active" });
      await page.clock.fastForward("01:00:00");
      if (kind !== "closed") {
        assert.deepEqual(listed(), [0, 0], `${kind}: nobody looks`);
        assert.equal(await link("old").count(), 1);
        await setHidden(page, false);
      }
      await assertAwake(kind);
      // Nothing follows by itself.
      await page.clock.runFor(30_000);
      assert.deepEqual([listed(), reads.streams()], [[0, 0], 1], `${kind}: half a minute later`);
      assert.deepEqual(problems, []);
      await context.close();
    }
  },
  async "a session that has ended or was renewed while the tab slept: the sign-in keeps what was typed, or is not needed"() {
    const { context, page, problems, name, reads, listed, change, assertAwake } = await openSleeper("slept-ended");
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("What is it for?").fill("typed before");
    await setHidden(page, true);
    await change();
    await requestAsAdmin(context, "PATCH", `ownedaccesskeys/${name}`, { spec: { disabled: true } }, "application/merge-patch+json");
    await page.clock.fastForward("01:00:00");
    await reads.calm();
    listed();
    await setHidden(page, false);
    await page.getByText("Your session has ended.").waitFor();
    await page.clock.runFor(120_000);
    assert.equal(await page.getByText("Live", { exact: true }).count(), 0, "a list of a session that has ended is live");
    assert.deepEqual(listed(), [1, 0], "requests without a session");
    await page.getByLabel("Access key", { exact: true }).fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Access key", { exact: true }).waitFor({ state: "detached" });
    await page.clock.runFor(1000);
    await assertAwake("after the sign-in");
    assert.equal(await page.getByLabel("What is it for?").inputValue(), "typed before");
    // Another tab signs in with another key, and the first one ends: the sleeping tab goes on without a question.
    const second = await createAccessKey(context, `${name}-second`, { user: "admin", groups: ["platform:admins"] });
    await setHidden(page, true);
    const other = await context.newPage();
    await other.goto(`${origin}/console/home?signin`);
    await other.getByLabel("Access key", { exact: true }).fill(second);
    await Promise.all([page.waitForResponse((response) => response.url().includes("/scopepreviews")), other.getByRole("button", { name: "Sign in" }).click()]);
    await page.clock.fastForward("01:00:00");
    await reads.calm();
    listed();
    await setHidden(page, false);
    await assertAwake("after a sign-in in another tab");
    assert.equal(await page.getByText("Your session has ended.").count(), 0);
    assert.equal(await page.getByLabel("What is it for?").inputValue(), "typed before");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "times are right at once when a tab wakes up: the end of the session"() {
    for (const kind of ["hidden", "closed"]) {
      const { context, page, problems, reads } = await openSleeper(`slept-times-${kind}`, { ttl: 7200 });
      assert.equal(await page.getByText("Your session ends at").count(), 0);
      if (kind === "hidden") await setHidden(page, true);
      await reads.calm();
      // No timer runs on but those that are due.
      await page.clock.pauseAt(new Date(Date.now() + 60_000));
      await page.clock.fastForward(116 * 60_000);
      if (kind === "hidden") await setHidden(page, false);
      await page.getByText(/Your session ends at .* \(in \d min\.\)/).first().waitFor();
      await page.clock.resume();
      assert.deepEqual(problems, []);
      await context.close();
    }
  },
};
