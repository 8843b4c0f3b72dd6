// The notes that Helm prints after an installation, and the commands in them. Contains no
// expectation.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findHelm } from '../../dependencies/helm.ts'
import type { ChartCase } from './chart-cases.ts'
import { chartFolder, type KubeObject, parseObjects, someImage } from './chart-render.ts'

const run = promisify(execFile)
const RENDER_MS_MAX = 20_000
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024
const COMMAND = /^(kubectl|helm|curl|[A-Z_]+=)/

/** The notes of an installation, and the objects that it creates, including hooks. */
export interface Installation {
  readonly notes: string
  readonly objects: readonly KubeObject[]
}

interface DryRun {
  readonly info: { readonly notes: string }
  readonly manifest: string
  readonly hooks?: readonly { readonly manifest: string }[]
}

/** Renders the release `shop` in the namespace `store`, without a cluster: Helm 4 only. */
export async function renderInstallation({
  chart,
  values,
  files,
}: ChartCase): Promise<Installation> {
  const folder = chart ?? chartFolder
  const flags = (files ?? []).flatMap((file) => ['--values', `${folder}/${file}`])
  const args = ['install', 'shop', folder, '--namespace', 'store', '--dry-run=client', ...flags]
  const given = ['--set-json', JSON.stringify({ image: someImage, ...values }), '--output', 'json']
  const bounds = { timeout: RENDER_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
  const { stdout } = await run(await findHelm(4), [...args, ...given], bounds)
  const { info, manifest, hooks = [] } = JSON.parse(stdout) as DryRun
  const manifests = [manifest, ...hooks.map((hook) => hook.manifest)]
  return { notes: info.notes, objects: manifests.flatMap(parseObjects) }
}

/** The indented lines of notes, without the items of lists. */
function indentedLines(notes: string): readonly string[] {
  return notes.split('\n').flatMap((line) => /^ {2}([^\s-].*)$/.exec(line)?.[1] ?? [])
}

/** The commands of notes, in order. */
export function commandsOf(notes: string): readonly string[] {
  return indentedLines(notes).filter((line) => COMMAND.test(line))
}

/** The other indented lines, such as addresses. */
export function valuesOf(notes: string): readonly string[] {
  return indentedLines(notes).filter((line) => !COMMAND.test(line))
}
