// The commands of README.md that install on a cluster, run as printed by a shell whose tools know
// the namespace, as an operator's would; only the values that it leaves open are filled in.
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustRun, pathWithHelm } from './cluster.ts'
import { environment } from './kube.ts'
import { DEFINITIONS_NAMESPACE, ownValues, RELEASE } from './release.ts'

/** What stands for the reader's own images. */
const LEFT_OPEN = '--set image.repository=…'

/** Runs them all, on a cluster without them; what each printed. Throws at the first that fails. */
export async function installByReadme(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile('README.md', 'utf8')
  const commands = [...text.matchAll(/`((?:helm|kubectl) [^`]+)`/g)].map(
    ([, command = '']) => command,
  )
  const folder = await mkdtemp(join(tmpdir(), 'curtail-readme-'))
  try {
    const config = join(folder, 'config')
    const at = `--kubeconfig=${config}`
    await copyFile(environment('KUBECONFIG'), config)
    await mustRun('kubectl', ['config', 'set-context', '--current', `--namespace=${RELEASE}`, at])
    const path = await pathWithHelm()
    const printed = new Map<string, string>()
    for (const command of commands) {
      const into = command.includes('-crds') ? `export HELM_NAMESPACE=${DEFINITIONS_NAMESPACE}` : ''
      const filled = command.replace(LEFT_OPEN, ownValues.join(' '))
      const script = ['set -e', `export KUBECONFIG=${config} PATH=${path}`, into, filled].join('\n')
      printed.set(command, await mustRun('sh', ['-c', script]))
    }
    return printed
  } finally {
    await rm(folder, { recursive: true })
  }
}
