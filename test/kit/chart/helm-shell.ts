// Shell commands with kubectl and Helm on an API server, in a temporary folder. Contains no
// expectation.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { goMemory } from '../../dependencies/go.ts'
import { findHelm, type HelmMajor } from '../../dependencies/helm.ts'
import type { KubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { chartFolder, someImage } from './chart-render.ts'

const COMMAND_MS_MAX = 60_000
const runFile = promisify(execFile)

/** The namespace of the releases. */
export const NAMESPACE = 'store'

/** The command in README.md that installs the CRDs. */
export const INSTALL_CRDS =
  'helm install curtail-crds charts/curtail-crds -n curtail-system --create-namespace'

/** The exit code of a command, and what it printed. */
interface Result {
  readonly code: number
  readonly output: string
}

/** A shell; its commands run with Helm 4 unless a line is run with another major version. */
export interface HelmShell {
  /** The working folder of the commands. */
  readonly folder: string
  readonly sh: (line: string, major?: HelmMajor) => Promise<Result>
  /** Returns the output. Throws it if the command fails. */
  readonly shOrThrow: (line: string, major?: HelmMajor) => Promise<string>
  /** The code secret of a release, in base64; empty if it does not exist. */
  readonly secretOf: (release: string) => Promise<string>
  readonly close: () => Promise<void>
}

/** Opens a shell on a cluster with the namespace and the CRDs. */
export async function openHelmShell(server: KubeApiserver): Promise<HelmShell> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-upgrade-'))
  const sh: HelmShell['sh'] = async (line, major = 4) => {
    const found = [server.programs, dirname(await findHelm(major)), process.env['PATH'] ?? '']
    const env = {
      ...{ PATH: found.join(':'), HOME: folder },
      ...{ KUBECONFIG: server.kubeconfig, NS: NAMESPACE },
      ...goMemory,
      // Helm 3 sends at most 5 requests/s by default, after a burst.
      ...{ HELM_QPS: '1000', HELM_BURST_LIMIT: '1000' },
    }
    const options = { cwd: folder, env, timeout: COMMAND_MS_MAX }
    return runFile('sh', ['-ec', line], options).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      (error: unknown) => {
        const failure = error as { code: number } & Record<string, string>
        const { code, stdout = '', stderr = '' } = failure
        return { code, output: `${stdout}${stderr}` }
      },
    )
  }
  const shOrThrow: HelmShell['shOrThrow'] = async (line, major) => {
    const { code, output } = await sh(line, major)
    if (code !== 0) throw new Error(`${line} exited with ${code}: ${output}`)
    return output
  }
  const close = () => rm(folder, { recursive: true })
  try {
    await shOrThrow(`kubectl create namespace ${NAMESPACE}`)
    await shOrThrow(`ln -s ${dirname(chartFolder)} charts`)
    await shOrThrow(INSTALL_CRDS)
  } catch (error) {
    await close()
    throw error
  }
  return {
    ...{ folder, sh, shOrThrow, close },
    secretOf: (release) =>
      shOrThrow(
        `kubectl -n ${NAMESPACE} get secret ${release}-curtail-code-secret --ignore-not-found ` +
          `-o jsonpath='{.data.secret}'`,
      ),
  }
}

/** Helm 3 needs two seconds to validate what the API server validates as well. */
export const UNVALIDATED = '--disable-openapi-validation'

/** The Helm command for a release with the default values and `more`. */
export const helm = (command: 'install' | 'upgrade', release: string, more = '') =>
  `helm ${command} ${release} ${chartFolder} -n ${NAMESPACE} ${UNVALIDATED} ` +
  `--set image.repository=${someImage.repository} ${more}`
