// Our image laid out as a container sees it, without a runtime: its layers one over the other, the
// root read-only, no network of its own, and the image's user. Needs root.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildImage } from '../../k8s/image/build.ts'
import type { ImageConfig } from '../../k8s/image/archive.ts'

const run = promisify(execFile)
const TAR_MS_MAX = 120_000

/** An image whose files can be looked at, and whose programs can be run. */
export interface ImageRoot {
  readonly folder: string
  readonly config: ImageConfig
  readonly archiveBytes: Buffer
  readonly layerBytes: { readonly baseBytes: number; readonly appBytes: number }
  /** Starts the entry point with these arguments; /tmp alone can be written to. */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): ChildProcess
  close(): Promise<void>
}

/** Mounts what a runtime would, and becomes the image's user. */
const ENTER = [
  'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
  'root=$1; user=$2; shift 2',
  'mount --bind "$root" "$root" && mount -o remount,bind,ro "$root"',
  'mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"',
  'mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc"',
  'exec chroot --userspec="$user" "$root" "$@"',
].join('\n')

/** Builds the image and lays it out. Throws why it cannot. */
export async function openImage(): Promise<ImageRoot> {
  const work = await mkdtemp(join(tmpdir(), 'curtail-image-test-'))
  const archive = join(work, 'image.tar')
  const layerBytes = await buildImage({ names: ['localhost/curtail:test'], path: archive })
  const options = { timeout: TAR_MS_MAX }
  await run('tar', ['-xf', archive, '-C', work], options)
  const read = async (name: string) =>
    JSON.parse(await readFile(join(work, name), 'utf8')) as unknown
  const [manifest] = (await read('manifest.json')) as { Layers: string[] }[]
  const { config } = (await read('config.json')) as { config: ImageConfig }
  const folder = join(work, 'root')
  await mkdir(folder)
  for (const layer of manifest?.Layers ?? []) {
    await run('tar', ['-xpf', join(work, layer), '-C', folder], options)
  }
  // Runtimes make these where an image has none.
  for (const place of ['dev', 'proc']) await mkdir(join(folder, place))
  const archiveBytes = await readFile(archive)
  const variables = (config.Env ?? []).map((one) => one.split(/=(.*)/s).slice(0, 2))
  return {
    folder,
    config,
    archiveBytes,
    layerBytes,
    start(args, env = {}) {
      const program = [folder, config.User, ...config.Entrypoint, ...args]
      // Each of these becomes the next one: signals reach the program.
      const inside = ['--mount', '/bin/sh', '-euc', ENTER, 'sh']
      return spawn('/usr/bin/unshare', [...inside, ...program], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...(Object.fromEntries(variables) as Record<string, string>), ...env },
      })
    },
    close: () => rm(work, { recursive: true, force: true }),
  }
}
