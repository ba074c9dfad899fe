// Ends the access key of the job. The runner starts it at the end of the job, also after a step that failed. Source: ADR-0051.
"use strict";

const { spawnSync } = require("node:child_process");
const { join } = require("node:path");

const folder = process.env.STATE_folder;
if (folder) {
  const script = join(__dirname, "..", "job.sh");
  const { status } = spawnSync("sh", [script, "end"], { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, PLATFORM_CI_FOLDER: folder } });
  process.exitCode = status === 0 ? 0 : 1;
}
