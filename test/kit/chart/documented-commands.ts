// The commands in the runbooks and the manual that change a release, and the values of their
// placeholders in tests. Runs nothing.
import { readdir, readFile } from 'node:fs/promises'
import { scriptsOf, spansOf } from '../runbook-commands.ts'
import { chartFolder } from './chart-render.ts'

const docs = new URL('../../../docs/', import.meta.url)

/** Commands that change no object of a release. */
const READING = /^\w+ -n \$NS (describe|exec|get|history|list|logs|port-forward|top|wait)\b/
const ROLLOUT_STATUS = 'kubectl -n $NS rollout status '

/** Commands that cannot run: no pods, Jobs and volume claims exist without a node. */
const notRun: readonly string[] = [
  'kubectl -n $NS create job refill-now --from=cronjob/$R-r-default',
  'kubectl -n $NS delete job refill-now',
  'kubectl -n $NS delete pod POD',
  'kubectl -n $NS edit pvc data-POD',
  // Allowed only if an autoscaler scales; the next upgrade fails otherwise.
  'kubectl -n $NS scale deploy/$R-redirect --replicas=1',
]

const isWriting = (line: string) =>
  /^(helm|kubectl) -n \$NS /.test(line) &&
  !(READING.test(line) || line.startsWith(ROLLOUT_STATUS) || notRun.includes(line))

/** The commands that write, in blocks and in sentences, each once. */
export async function writingCommands(): Promise<readonly string[]> {
  const runbooks = (await readdir(new URL('runbooks/', docs))).map((name) => `runbooks/${name}`)
  const lines = [...runbooks.sort(), 'operations.md'].map(async (name) => {
    const page = { name, text: await readFile(new URL(name, docs), 'utf8') }
    return [...scriptsOf(page), ...spansOf(page)]
  })
  return [...new Set((await Promise.all(lines)).flat().filter(isWriting))]
}

/** The files that the commands read, with their contents; besides a certificate and its key. */
export const inputFiles = {
  ...{ 'pools.yaml': '{}\n', 'namespaces.yaml': '{}\n', 'values.yaml': '{}\n', FILE: 'key' },
  ...{ 'blocked-targets.txt': '# a corrected list\n', 'api-keys.ndjson': '# a corrected list\n' },
}

/** A command for a release. */
export function fillCommand(line: string, release: string): string {
  const isRestored = line.includes('code-secret --dry-run')
  const isNew = /codeSecret|code-secret$/.test(line)
  const secret = isRestored ? 'curtail-code-secret' : isNew ? 'code' : 'tls'
  return line
    .replace(/\$R\b/g, `${release}-curtail`)
    .replace(/\bRELEASE\b/g, release)
    .replace(/\bCHART\b/g, chartFolder)
    .replace(/\bREVISION\b/g, '1')
    .replace(/\bCOUNT\b/g, '4')
    .replace(/\bMEBIBYTES\b/g, '800')
    .replace(/\bMEMORY\b/g, '128mb')
    .replace(/\bLIMIT\b/g, '1Gi')
    .replace(/\bSECRET\b/g, `${release}-${secret}`)
    .replace(/\bcurtail-code\b(?!-)/g, `${release}-restored`)
    .replace(/\bload-test-key\b/g, `${release}-load-test-key`)
}
