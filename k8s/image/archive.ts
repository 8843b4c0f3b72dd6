// Writes container images as files, without a daemon or a registry: reproducible layers, and
// archives for `docker load`, `podman load` and `ctr images import`.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const TAR_MS_MAX = 300_000
/** Flags of GNU tar: sorted names, no times, numeric owners. */
const REPRODUCIBLE = ['--sort=name', '--mtime=@0', '--numeric-owner', '--owner=0', '--group=0']
const EPOCH = '1970-01-01T00:00:00Z'

/** One layer: a tar file and its identity. */
export interface Layer {
  readonly path: string
  readonly sha256: string
}

/** How containers of an image start; names are those of the image specification. */
export interface ImageConfig {
  readonly Entrypoint: readonly string[]
  readonly User: string
  readonly WorkingDir?: string
  readonly Env?: readonly string[]
  readonly ExposedPorts?: Readonly<Record<string, object>>
  readonly Labels?: Readonly<Record<string, string>>
}

/** Writes a folder as a layer to `path`; `mode` changes the mode of all files, such as `go=rX`. */
export async function writeLayer(folder: string, path: string, mode?: string): Promise<Layer> {
  const modes = mode === undefined ? [] : [`--mode=${mode}`]
  const args = [...REPRODUCIBLE, '--format=gnu', ...modes, '-C', folder, '-cf', path, '.']
  await run('tar', args, { timeout: TAR_MS_MAX })
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { path, sha256: hash.digest('hex') }
}

/** The contents of an archive. */
export interface Image {
  /** Such as `localhost/curtail:test`; without a host, containerd prefixes docker.io. */
  readonly names: readonly string[]
  readonly architecture: 'amd64' | 'arm64'
  readonly config: ImageConfig
  /** Lowest first. */
  readonly layers: readonly Layer[]
}

/** Writes the archive of an image at `path`. */
export async function writeImage(image: Image, path: string): Promise<void> {
  const { names, architecture, config, layers } = image
  const rootfs = { type: 'layers', diff_ids: layers.map(({ sha256 }) => `sha256:${sha256}`) }
  const description = { architecture, os: 'linux', created: EPOCH, config, rootfs }
  const files = layers.map(({ sha256 }) => `${sha256}.tar`)
  const manifest = [{ Config: 'config.json', RepoTags: names, Layers: files }]
  const folder = await mkdtemp(`${path}-`)
  try {
    await writeFile(join(folder, 'config.json'), JSON.stringify(description))
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest))
    for (const layer of layers) await symlink(layer.path, join(folder, `${layer.sha256}.tar`))
    const args = [...REPRODUCIBLE, '--dereference', '-C', folder, '-cf', path, '.']
    await run('tar', args, { timeout: TAR_MS_MAX })
  } finally {
    await rm(folder, { recursive: true })
  }
}
