// Runs the commands of README.md that install on a cluster, as printed, in a shell whose kubeconfig
// sets the namespace. Only the image values, which README.md leaves open, are filled in.
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustRun, pathWithHelm } from './cluster.ts'
import { requiredVariable } from './kube-api.ts'
import { DEFINITIONS_NAMESPACE, ownValues, RELEASE } from './release.ts'

/** README.md's placeholder for the operator's own images. */
const IMAGE_PLACEHOLDER = '--set image.repository=…'

/** Installs both charts; resolves to each command's stdout. Throws at the first that fails. */
export async function installByReadme(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile('README.md', 'utf8')
  const commands = [...text.matchAll(/`((?:helm|kubectl) [^`]+)`/g)].map(
    ([, command = '']) => command,
  )
  const folder = await mkdtemp(join(tmpdir(), 'curtail-readme-'))
  try {
    const config = join(folder, 'config')
    const kubeconfig = `--kubeconfig=${config}`
    await copyFile(requiredVariable('KUBECONFIG'), config)
    await mustRun('kubectl', [
      'config',
      'set-context',
      '--current',
      `--namespace=${RELEASE}`,
      kubeconfig,
    ])
    const path = await pathWithHelm()
    const outputs = new Map<string, string>()
    for (const command of commands) {
      const namespace = command.includes('-crds')
        ? `export HELM_NAMESPACE=${DEFINITIONS_NAMESPACE}`
        : ''
      const filled = command.replace(IMAGE_PLACEHOLDER, ownValues.join(' '))
      const script = ['set -e', `export KUBECONFIG=${config} PATH=${path}`, namespace, filled].join(
        '\n',
      )
      outputs.set(command, await mustRun('sh', ['-c', script]))
    }
    return outputs
  } finally {
    await rm(folder, { recursive: true })
  }
}
