// The incidents of the runbook test that concern operator lists.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kubectl } from './cluster.ts'
import { command, type Incident } from './incident.ts'
import { FULL_NAME, RELEASE } from './release.ts'

const VALID = 'evil.example\n'
const FILE = 'blocked-targets.txt'

/** Writes the list of blocked targets. */
async function writeList(content: string): Promise<void> {
  const configMap = ['configmap', `${FULL_NAME}-blocked-targets`, '--namespace', RELEASE]
  const patch = JSON.stringify({ data: { [FILE]: content } })
  await kubectl('patch', ...configMap, '--type=merge', '-p', patch)
}

/** Incidents of operator lists. */
export const listIncidents: readonly Incident[] = [
  {
    title: 'a line of the blocked targets is damaged',
    alerts: ['CurtailListNotApplied'],
    breakRelease: async ({ runner }) => {
      await writeFile(join(runner.folder, FILE), VALID) // as the operator corrects it
      await writeList(`${VALID}*.other.example\n`)
      return () => writeList('')
    },
    remedy: [
      command(
        'kubectl -n $NS create configmap $R-blocked-targets --from-file=blocked-targets.txt' +
          ' --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts -f -',
      ),
    ],
  },
]
