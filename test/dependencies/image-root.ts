// The root file system of Curtail's image, without a container runtime: its merged layers, mounted
// read-only, with the user of the image and the network of the host. Requires root.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildImage } from '../../k8s/image/build.ts'
import type { ImageConfig } from '../../k8s/image/archive.ts'

const run = promisify(execFile)
const TAR_MS_MAX = 120_000

/** What a pod may set for its container, in addition to arguments and environment. */
interface ContainerOptions {
  /** Replaces the entry point. */
  readonly command?: readonly string[]
  /** Replaces the user of the image, such as `65534:65534`. */
  readonly user?: string
  /** Folders of the host by their absolute path in the container, which cannot write to them. */
  readonly volumes?: Readonly<Record<string, string>>
  /** Whether /tmp is writable. @default true */
  readonly hasTmp?: boolean
}

/** An image with readable files, whose programs can be run. */
export interface ImageRoot {
  readonly folder: string
  readonly config: ImageConfig
  readonly layerBytes: { readonly baseBytes: number; readonly appBytes: number }
  /** Starts the entry point with these arguments; at most /tmp is writable. */
  start(
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
    container?: ContainerOptions,
  ): ChildProcess
  close(): Promise<void>
}

/** Mounts the file systems that a runtime mounts, and switches to the user of the image. */
const ENTER = [
  'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
  'root=$1; user=$2; tmp=$3; shift 3',
  'mount --bind "$root" "$root" && mount -o remount,bind,ro "$root"',
  '! $tmp || mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"',
  'mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc"',
  'while [ "$1" != -- ]; do',
  '  mount --bind "$1" "$root$2" && mount -o remount,bind,ro "$root$2"; shift 2',
  'done; shift',
  'exec chroot --userspec="$user" "$root" "$@"',
].join('\n')

/** Builds the image and extracts its layers. Throws the reason if that fails. */
export async function openImage(): Promise<ImageRoot> {
  const work = await mkdtemp(join(tmpdir(), 'curtail-image-test-'))
  const archive = join(work, 'image.tar')
  const layerBytes = await buildImage({ names: ['localhost/curtail:test'], path: archive })
  const options = { timeout: TAR_MS_MAX }
  await run('tar', ['-xf', archive, '-C', work], options)
  const read = async (name: string) =>
    JSON.parse(await readFile(join(work, name), 'utf8')) as unknown
  const [manifest] = (await read('manifest.json')) as [{ Config: string; Layers: string[] }]
  const { config } = (await read(manifest.Config)) as { config: ImageConfig }
  const folder = join(work, 'root')
  await mkdir(folder)
  for (const layer of manifest.Layers) {
    await run('tar', ['-xpf', join(work, layer), '-C', folder], options)
  }
  // Runtimes create these folders if an image does not contain them.
  for (const name of ['dev', 'proc']) await mkdir(join(folder, name))
  const variables = (config.Env ?? []).map((one) => one.split(/=(.*)/s).slice(0, 2))
  return {
    folder,
    config,
    layerBytes,
    start(args, env = {}, container = {}) {
      const { command = config.Entrypoint, user = config.User, hasTmp = true } = container
      const mounts = Object.entries(container.volumes ?? {})
      // Like /dev and /proc.
      for (const [place] of mounts) mkdirSync(join(folder, place), { recursive: true })
      const sources = mounts.flatMap(([place, source]) => [source, place])
      const program = [folder, user, String(hasTmp), ...sources, '--', ...command, ...args]
      // Each program replaces itself with the next one, so that signals reach the last.
      const inside = ['--mount', '/bin/sh', '-euc', ENTER, 'sh']
      return spawn('/usr/bin/unshare', [...inside, ...program], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...(Object.fromEntries(variables) as Record<string, string>), ...env },
      })
    },
    close: () => rm(work, { recursive: true, force: true }),
  }
}
