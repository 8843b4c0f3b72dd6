// Writes folders in the OCI image layout: content-addressed blobs and an index. The same contents
// give the same bytes.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

/** The types of the objects in a layout. */
export const mediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
} as const

/** One layer: a tar file and its identity. */
export interface Layer {
  readonly path: string
  readonly sha256: string
}

/** A reference to an object. */
export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: { readonly architecture: string; readonly os: string }
  readonly annotations?: Readonly<Record<string, string>>
}

/** Adds the files of a layout to `folder`, which must be empty or missing. */
export async function createLayout(folder: string): Promise<void> {
  await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true })
  await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
}

/** The path of an object in a layout. */
export function blobPath(folder: string, digest: string): string {
  return join(folder, 'blobs', ...digest.split(':'))
}

/** Adds an object with these bytes. */
export async function addBlob(
  folder: string,
  mediaType: string,
  bytes: string | Buffer,
): Promise<Descriptor> {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  await writeFile(blobPath(folder, digest), bytes)
  return { mediaType, digest, size: Buffer.byteLength(bytes) }
}

/** Adds an object in JSON. */
export function addJson(folder: string, mediaType: string, value: object): Promise<Descriptor> {
  return addBlob(folder, mediaType, JSON.stringify({ schemaVersion: 2, mediaType, ...value }))
}

/** Adds a layer as a symlink to its file, uncompressed. */
export async function linkLayer(folder: string, layer: Layer): Promise<Descriptor> {
  const digest = `sha256:${layer.sha256}`
  await symlink(layer.path, blobPath(folder, digest))
  return { mediaType: mediaTypes.layer, digest, size: (await stat(layer.path)).size }
}

/** Adds a layer, compressed with gzip. Its header has no time and no name. */
export async function compressLayer(folder: string, layer: Layer): Promise<Descriptor> {
  const path = join(folder, `${layer.sha256}.gz`)
  await pipeline(createReadStream(layer.path), createGzip(), createWriteStream(path))
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  const digest = `sha256:${hash.digest('hex')}`
  const { size } = await stat(path)
  await rename(path, blobPath(folder, digest))
  return { mediaType: `${mediaTypes.layer}+gzip`, digest, size }
}

/** Writes the entry point of a layout; tags and names are annotations of `manifests`. */
export async function writeIndex(folder: string, manifests: readonly Descriptor[]): Promise<void> {
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests }
  await writeFile(join(folder, 'index.json'), JSON.stringify(index))
}
