// kubectl, helm and node commands for the tests of the test cluster, which run.ts starts. The tests
// run in its network, so that they reach Services and pods at their own addresses.
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { findHelm, type HelmMajor } from '../dependencies/helm.ts'

const run = promisify(execFile)
const RUN_MS_MAX = 15 * 60_000
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

/** A command's exit code and output. */
export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command with `input` on its stdin; resolves also if its exit code is not 0. */
export async function tryRun(
  command: string,
  args: readonly string[],
  input?: string,
): Promise<CommandResult> {
  const running = run(command, args, { timeout: RUN_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX })
  running.child.stdin?.on('error', () => undefined) // the exit code reports the failure
  running.child.stdin?.end(input)
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: unknown) => {
      const { code, stdout = '', stderr = '' } = error as Partial<CommandResult>
      if (typeof code !== 'number') throw error
      return { code, stdout, stderr }
    },
  )
}

/** Runs a command; resolves to its stdout. Throws its output if its exit code is not 0. */
export async function mustRun(
  command: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await tryRun(command, args, input)
  if (code === 0) return stdout
  throw new Error(`${command} ${args.join(' ')} exited with ${code}: ${stderr}${stdout}`)
}

/** A PATH with Helm 4 first, for a shell. */
export async function pathWithHelm(): Promise<string> {
  return `${dirname(await findHelm(4))}:${process.env['PATH'] ?? ''}`
}

/** Runs kubectl; resolves to its stdout. Throws if it fails. */
export function kubectl(...args: readonly string[]): Promise<string> {
  return mustRun('kubectl', args)
}

/** Gets an object, or a list of objects, from the API. */
export async function getObject<T>(...args: readonly string[]): Promise<T> {
  return JSON.parse(await kubectl('get', ...args, '-o', 'json')) as T
}

/** Applies objects (server-side apply). */
export async function applyObjects(...objects: readonly object[]): Promise<void> {
  const text = objects.map((one) => JSON.stringify(one)).join('\n---\n')
  await mustRun('kubectl', ['apply', '--server-side', '-f', '-'], text)
}

/** Runs helm; resolves to its stdout. Throws if it fails. */
export async function helm(major: HelmMajor, ...args: readonly string[]): Promise<string> {
  return mustRun(await findHelm(major), args)
}

/**
 * Creates a namespace that enforces a Pod Security Standard. Waits for its default service account:
 * without it, the API server rejects pods.
 */
export async function createNamespace(
  name: string,
  level: 'privileged' | 'restricted' = 'restricted',
): Promise<void> {
  const labels = {
    'pod-security.kubernetes.io/enforce': level,
    'pod-security.kubernetes.io/enforce-version': 'latest',
    'pod-security.kubernetes.io/warn': level,
  }
  await applyObjects({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  await kubectl('wait', '--for=create', 'serviceaccount/default', `--namespace=${name}`)
}

/** Deletes a namespace with everything in it; run.ts waits for the deletion after the tests. */
export async function deleteNamespace(name: string): Promise<void> {
  await kubectl('delete', 'namespace', name, '--ignore-not-found', '--wait=false')
}

/** Runs a command, such as `ctr`, in the node's network, mount and process namespaces. */
export async function runOnNode(...command: readonly string[]): Promise<string> {
  const pid = process.env['CLUSTER_PID']
  if (pid === undefined) throw new Error('run the cluster tests with npm run test:cluster')
  const inside = ['--target', pid, '--net', '--mount', '--pid', '--', ...command]
  return mustRun('nsenter', inside)
}
