// SPDX-License-Identifier: Apache-2.0
// Compares examples/kubernetes with the schemas of Kubernetes: values by its JSON schemas, names by its types, where a
// field that there is not is an error. node check.mjs DIRECTORY: a line for each fault, and status 1.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import YAML from "yaml";
import { DaemonSet } from "kubernetes-models/apps/v1/DaemonSet";
import { Pod } from "kubernetes-models/v1/Pod";

const directory = process.argv[2];
const read = (name) => YAML.parse(readFileSync(join(directory, name), "utf8"));

// Makes what kubectl debug makes of a custom profile: a container of a pod that runs.
function debugged(container) {
  const more = { name: "debugger", image: "registry.example/cairn-heap:0.2.0", targetContainerName: "app", ...container };
  const spec = { containers: [{ name: "app", image: "registry.example/app:1" }], ephemeralContainers: [more] };
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "app" }, spec };
}

const manifests = [
  ["sidecar.yaml", Pod, "v1/Pod", "Pod", read("sidecar.yaml")],
  ["daemonset.yaml", DaemonSet, "apps/v1/DaemonSet", "DaemonSet", read("daemonset.yaml")],
  ["ephemeral.yaml", Pod, "v1/Pod", "Pod", debugged(read("ephemeral.yaml"))],
];

const faults = [];
for (const [name, Model, , , manifest] of manifests) {
  try {
    new Model(manifest).validate();
  } catch (problem) {
    faults.push(`${name}: ${problem.message}`);
  }
}

function checkNames(name, from, kind, manifest, place) {
  const path = join(place, `${name}.ts`);
  writeFileSync(path, `import type { I${kind} } from "kubernetes-models/${from}";\n` +
    `export const manifest: I${kind} = ${JSON.stringify(manifest)};\n`);
  const options = { noEmit: true, strict: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ESNext };
  for (const found of ts.getPreEmitDiagnostics(ts.createProgram([path], options)))
    faults.push(`${name}: ${ts.flattenDiagnosticMessageText(found.messageText, " ").slice(0, 300)}`);
}
const place = mkdtempSync(join(import.meta.dirname, "names-"));
for (const [name, , from, kind, manifest] of manifests) checkNames(name, from, kind, manifest, place);
rmSync(place, { recursive: true });

for (const fault of faults) console.log(fault);
process.exit(faults.length ? 1 : 0);
