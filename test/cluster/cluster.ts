// The test cluster as its tests see it: they run in its network, so that Services and pods answer
// at their own addresses. Started by run.ts; here are only words for what is asked of it.
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { findHelm, type HelmMajor } from '../parts/helm.ts'

const run = promisify(execFile)
const RUN_MS_MAX = 15 * 60_000
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

/** What a command printed, and how it ended. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command to its end, whatever that is; `input` is given to it. */
export async function tryRun(
  command: string,
  args: readonly string[],
  input?: string,
): Promise<Ran> {
  const running = run(command, args, { timeout: RUN_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX })
  running.child.stdin?.end(input)
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: unknown) => {
      const { code, stdout = '', stderr = '' } = error as Partial<Ran>
      if (typeof code !== 'number') throw error
      return { code, stdout, stderr }
    },
  )
}

/** Runs a command that must end well; resolves to what it printed. Throws its words. */
export async function mustRun(
  command: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await tryRun(command, args, input)
  if (code === 0) return stdout
  throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`)
}

/** Where a shell finds `helm`, of version 4, and all that we find. */
export async function pathWithHelm(): Promise<string> {
  return `${dirname(await findHelm(4))}:${process.env['PATH'] ?? ''}`
}

/** kubectl, which must end well. */
export function kubectl(...args: readonly string[]): Promise<string> {
  return mustRun('kubectl', args)
}

/** An object, or list of objects, of the API as kubectl shows it. */
export async function getObject<T>(...args: readonly string[]): Promise<T> {
  return JSON.parse(await kubectl('get', ...args, '-o', 'json')) as T
}

/** Applies objects. */
export async function applyObjects(...objects: readonly object[]): Promise<void> {
  const text = objects.map((one) => JSON.stringify(one)).join('\n---\n')
  await mustRun('kubectl', ['apply', '--server-side', '-f', '-'], text)
}

/** helm, which must end well. */
export async function helm(major: HelmMajor, ...args: readonly string[]): Promise<string> {
  return mustRun(await findHelm(major), args)
}

/** Makes a namespace in which only pods of the restricted kind may be. */
export async function makeNamespace(name: string): Promise<void> {
  const labels = {
    'pod-security.kubernetes.io/enforce': 'restricted',
    'pod-security.kubernetes.io/enforce-version': 'latest',
    'pod-security.kubernetes.io/warn': 'restricted',
  }
  await applyObjects({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
}

/** Deletes a namespace with all that is in it, and waits until it is gone. */
export async function deleteNamespace(name: string): Promise<void> {
  const wait = ['--ignore-not-found', '--timeout=180s']
  await kubectl('delete', 'namespace', name, ...wait)
}

/** Runs a command in the node's mounts and processes too, such as `ctr`. */
export async function onNode(...command: readonly string[]): Promise<string> {
  const pid = process.env['CLUSTER_PID']
  if (pid === undefined) throw new Error('the tests of the cluster run by npm run test:cluster')
  const inside = ['--target', pid, '--net', '--mount', '--pid', '--', ...command]
  return mustRun('nsenter', inside)
}
