// Writes container images as files, without a daemon or a registry: reproducible layers, and
// archives for `docker load`, `podman load` and `ctr images import`.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import {
  addBlob,
  addJson,
  blobPath,
  createLayout,
  type Descriptor,
  type Layer,
  linkLayer,
  mediaTypes,
  writeIndex,
} from './oci-layout.ts'

const run = promisify(execFile)
const TAR_MS_MAX = 300_000
/** Flags of GNU tar: sorted names, no times, numeric owners. */
const REPRODUCIBLE = ['--sort=name', '--mtime=@0', '--numeric-owner', '--owner=0', '--group=0']
const EPOCH = '1970-01-01T00:00:00Z'

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
  await writeTar({ folder, name: '.', path }, modes)
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { path, sha256: hash.digest('hex') }
}

/** Writes `name` in `folder` to a tar file at `path`; the same contents give the same bytes. */
export async function writeTar(
  given: { readonly folder: string; readonly name: string; readonly path: string },
  flags: readonly string[] = [],
): Promise<void> {
  const { folder, name, path } = given
  const args = [...REPRODUCIBLE, '--format=gnu', ...flags, '-C', folder, '-cf', path, name]
  const env = { ...process.env, TAR_OPTIONS: undefined }
  await run('tar', args, { timeout: TAR_MS_MAX, env })
}

/** A container image for one architecture. */
export interface Image {
  readonly architecture: 'amd64' | 'arm64'
  readonly config: ImageConfig
  /** Lowest first. */
  readonly layers: readonly Layer[]
}

/** Adds the config and the manifest of an image to a layout, which contains its layers. */
export async function addImage(
  folder: string,
  image: Image & { readonly created?: string },
  blobs: readonly Descriptor[],
): Promise<{ readonly manifest: Descriptor; readonly config: Descriptor }> {
  const { architecture, layers, created = EPOCH } = image
  const rootfs = { type: 'layers', diff_ids: layers.map(({ sha256 }) => `sha256:${sha256}`) }
  const description = { architecture, os: 'linux', created, config: image.config, rootfs }
  const config = await addBlob(folder, mediaTypes.config, JSON.stringify(description))
  const manifest = await addJson(folder, mediaTypes.manifest, { config, layers: blobs })
  return { manifest: { ...manifest, platform: { architecture, os: 'linux' } }, config }
}

/**
 * Writes the archive of an image at `path`: an OCI layout, with the manifest that Docker reads.
 * `names` are such as `localhost/curtail:test`; without a host, containerd prefixes docker.io.
 */
export async function writeImage(
  image: Image,
  names: readonly string[],
  path: string,
): Promise<void> {
  const folder = await mkdtemp(`${path}-`)
  try {
    await createLayout(folder)
    const blobs = await Promise.all(image.layers.map((layer) => linkLayer(folder, layer)))
    const { manifest, config } = await addImage(folder, image, blobs)
    const named = names.map((name) => ({
      ...manifest,
      annotations: { 'io.containerd.image.name': name },
    }))
    await writeIndex(folder, named)
    const place = (digest: string) => relative(folder, blobPath(folder, digest))
    const Layers = blobs.map(({ digest }) => place(digest))
    const docker = [{ Config: place(config.digest), RepoTags: names, Layers }]
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(docker))
    await writeTar({ folder, name: '.', path }, ['--dereference'])
  } finally {
    await rm(folder, { recursive: true })
  }
}
