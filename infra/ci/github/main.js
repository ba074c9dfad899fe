// Signs the job in. All inputs reach the script as variables, and it prints no secret. Source: ADR-0051.
"use strict";

const { spawnSync } = require("node:child_process");
const { appendFileSync, existsSync, mkdtempSync, readFileSync } = require("node:fs");
const { join } = require("node:path");

const folder = mkdtempSync(join(process.env.RUNNER_TEMP, "platform-"));
const input = (name) => (process.env["INPUT_" + name.toUpperCase()] || "").trim();
const variables = {
  PLATFORM_CI_FOLDER: folder,
  PLATFORM_CI_HOST: input("host"),
  PLATFORM_CI_ARCHIVES: input("archives"),
  PLATFORM_CI_VERSION: input("version"),
  PLATFORM_CI_RULE: input("rule"),
  PLATFORM_CI_AUTHORITY: input("certificate-authority"),
  PLATFORM_CI_VIRTUAL_CLUSTER: input("virtual-cluster"),
};
// The step at the end of the job finds the folder, even if this one fails halfway.
appendFileSync(process.env.GITHUB_STATE, `folder=${folder}\n`);

const script = join(__dirname, "..", "job.sh");
const { error, status } = spawnSync("sh", [script, "begin"], { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...variables } });

const secrets = join(folder, "secrets");
if (existsSync(secrets)) {
  for (const secret of readFileSync(secrets, "utf8").split("\n")) {
    if (secret) {
      console.log(`::add-mask::${secret}`);
    }
  }
}
if (error || status !== 0) {
  console.log(`::error::the job is not signed in${error ? `: ${error.code}` : ""}`);
  process.exitCode = 1;
} else {
  const kubeconfig = join(folder, "kubeconfig");
  appendFileSync(process.env.GITHUB_ENV, `KUBECONFIG=${kubeconfig}\n`);
  appendFileSync(process.env.GITHUB_PATH, `${join(folder, "bin")}\n`);
  appendFileSync(process.env.GITHUB_OUTPUT, `kubeconfig=${kubeconfig}\nplatform-kubeconfig=${join(folder, "platform.kubeconfig")}\n`);
}
