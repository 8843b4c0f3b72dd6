// A chart that depends on this chart, and the operator lists of a release, for tests of upgrades.
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chartFolder, someImage } from './chart-render.ts'
import { type HelmShell, NAMESPACE } from './helm-shell.ts'

/** Creates a chart `parent` with this chart; returns the command that upgrades its release. */
export async function createParent(folder: string): Promise<(isEnabled: boolean) => string> {
  const path = join(folder, 'parent')
  await cp(chartFolder, join(path, 'charts', 'curtail'), { recursive: true })
  const dependency = { name: 'curtail', version: '*', condition: 'links.enabled' }
  const chart = { apiVersion: 'v2', name: 'parent', version: '1.0.0', dependencies: [dependency] }
  await writeFile(join(path, 'Chart.yaml'), JSON.stringify(chart))
  return (isEnabled) =>
    `helm upgrade parent ./parent -n ${NAMESPACE} --install --set links.enabled=${isEnabled} ` +
    `--set curtail.image.repository=${someImage.repository}`
}

/** Writes into the operator lists of a release; returns a function that reads them. */
export async function fillLists(
  run: HelmShell['shOrThrow'],
  release: string,
): Promise<() => Promise<readonly string[]>> {
  const objects = [
    ['secret', 'api-keys', '{"data":{"api-keys.ndjson":"a2V5cw=="}}'],
    ['configmap', 'blocked-targets', '{"data":{"blocked-targets.txt":"evil.example"}}'],
  ] as const
  const at = (kind: string, name: string) => `${kind} ${release}-curtail-${name} -n ${NAMESPACE}`
  for (const [kind, name, patch] of objects)
    await run(`kubectl patch ${at(kind, name)} --type=merge -p '${patch}'`)
  const read = ([kind, name]: readonly string[]) =>
    run(`kubectl get ${at(kind ?? '', name ?? '')} -o jsonpath='{.data}'`)
  return () => Promise.all(objects.map(read))
}
