// Builds a release: the image for each architecture, the charts, their bills of materials, the
// provenance, checksums, notes and signatures. One commit gives the same bytes on every machine,
// except for signatures, which ECDSA makes with random numbers.
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { addImage } from '../image/archive.ts'
import {
  type Architecture,
  architectures,
  type BasePackages,
  readBasePackages,
} from '../image/base-packages.ts'
import { buildLayers } from '../image/build.ts'
import { root } from '../image/bundle.ts'
import {
  addBlob,
  addJson,
  compressLayer,
  type Descriptor,
  mediaTypes,
} from '../image/oci-layout.ts'
import { renderChartSbom } from './chart-sbom.ts'
import { readMaterials } from './materials.ts'
import { packChart, type ReleasedImage } from './pack-chart.ts'
import { packStandalone } from './pack-standalone.ts'
import { releaseNotes } from './release-notes.ts'
import {
  createRepository,
  type Repository,
  signArtefact,
  type Statement,
  writeTags,
} from './repository.ts'
import type { SigningKey } from './signing-key.ts'
import { charts, checkUnchanged, readSource, type Source } from './source.ts'
import { describeBuild, renderStatement, statementTypes, type Subject } from './statements.ts'

const chartTypes = {
  config: 'application/vnd.cncf.helm.config.v1+json',
  layer: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
} as const

const stopSignals = ['SIGINT', 'SIGTERM'] as const

/** What to release, and where. */
export interface ReleaseOptions {
  readonly version: string
  /** Host and path of the repositories, such as `registry.example.com/team`. */
  readonly registry: string
  /** The folder to write, which must not exist. */
  readonly folder: string
  /** Without a key nothing is signed. */
  readonly key?: SigningKey | undefined
}

/** An artefact of the release, and its bill of materials if it has one. */
interface Artefact {
  readonly repository: Repository
  readonly digest: string
  readonly sbom?: string
  /** Of one architecture of the image. */
  readonly platform?: string
}

/** Builds the release; resolves with the names and digests of its artefacts, one a line. */
export async function writeRelease(options: ReleaseOptions): Promise<string> {
  const source = await readSource(options.version)
  const notes = releaseNotes(await readFile(join(root, 'CHANGELOG.md'), 'utf8'), source.version)
  await mkdir(dirname(options.folder), { recursive: true })
  const folder = await mkdtemp(`${options.folder}-`)
  const abort = (signal: NodeJS.Signals) => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(signal === 'SIGINT' ? 130 : 143)
  }
  for (const signal of stopSignals) process.once(signal, abort)
  try {
    await writeFile(join(folder, 'notes.md'), notes)
    const digests = await writeContents(folder, source, options)
    await checkUnchanged(source, folder)
    await chmod(folder, 0o755)
    await rename(folder, options.folder)
    return digests
  } catch (error) {
    await rm(folder, { recursive: true })
    throw error
  } finally {
    for (const signal of stopSignals) process.off(signal, abort)
  }
}

/** Writes the layouts, and the files to publish beside them, whose base names are unique. */
async function writeContents(
  folder: string,
  source: Source,
  { registry, key }: ReleaseOptions,
): Promise<string> {
  for (const name of ['oci', 'files']) await mkdir(join(folder, name))
  const files = join(folder, 'files')
  const packages = await readBasePackages()
  const image = await writeImageIndex(folder, source, { registry, packages, architectures })
  const released = { repository: image[0].repository.name, digest: image[0].digest }
  const artefacts = [...image, ...(await writeCharts(folder, registry, released))]
  await packStandalone(files, source.version, released)
  const digests = artefacts.map((artefact) => listNames(artefact, source.version)).join('')
  await writeFile(join(files, 'digests.txt'), digests)
  const packed = (await readdir(files)).filter((name) => name.endsWith('.tgz')).sort()
  const subjects = [...artefacts.map(subjectOf), ...(await digestFiles(files, packed))]
  const build = describeBuild(source, registry, await readMaterials(packages))
  const provenance = renderStatement(subjects, statementTypes.provenance, build)
  await writeFile(join(files, 'provenance.json'), provenance)
  for (const artefact of artefacts) await attest(artefact, provenance, key)
  for (const { repository } of artefacts) await writeTags(repository)
  await writeChecksums(files, key)
  return digests
}

/** The lines of an artefact in digests.txt; that of one architecture has the tag of the image. */
function listNames({ repository, digest, platform }: Artefact, version: string): string {
  const { name, tags } = repository
  if (platform !== undefined) return `${digest}  ${name}:${version}  ${platform}\n`
  const tagged = [...tags].filter(([, descriptor]) => descriptor.digest === digest)
  return tagged.map(([tag]) => `${digest}  ${name}:${tag}\n`).join('')
}

function subjectOf({ repository, digest, platform }: Artefact): Subject {
  const name = platform === undefined ? repository.name : `${repository.name} ${platform}`
  return { name, digest: { sha256: digest.replace('sha256:', '') } }
}

/** The repository of an image, and what it is built for and from. */
interface ImageOptions {
  readonly registry: string
  readonly packages: BasePackages
  readonly architectures: readonly Architecture[]
}

/**
 * Builds the image in the folders `oci` and `files`, which must exist; the index is the first
 * artefact, and the others are its architectures.
 */
export async function writeImageIndex(
  folder: string,
  source: Source,
  { registry, packages, architectures }: ImageOptions,
): Promise<readonly [Artefact, ...Artefact[]]> {
  const repository = await createRepository(join(folder, 'oci'), registry, 'curtail')
  const manifests: Descriptor[] = []
  const artefacts: Artefact[] = []
  for (const architecture of architectures) {
    const work = await mkdtemp(join(folder, 'work-'))
    const image = await buildLayers(work, { architecture, packages })
    const blobs = await Promise.all(
      image.layers.map((layer) => compressLayer(repository.folder, layer)),
    )
    const described = { ...image, created: source.created }
    const { manifest } = await addImage(repository.folder, described, blobs)
    const path = join(work, 'top/app/sbom.json')
    await copyFile(path, join(folder, 'files', `curtail-${architecture}.cdx.json`))
    manifests.push(manifest)
    const sbom = await readFile(path, 'utf8')
    const platform = `linux/${architecture}`
    artefacts.push({ repository, digest: manifest.digest, sbom, platform })
    await rm(work, { recursive: true })
  }
  const annotations = {
    'org.opencontainers.image.created': source.created,
    'org.opencontainers.image.revision': source.commit,
    'org.opencontainers.image.version': source.version,
  }
  const index = await addJson(repository.folder, mediaTypes.index, { manifests, annotations })
  repository.tags.set(source.version, index)
  return [{ repository, digest: index.digest }, ...artefacts]
}

async function writeCharts(
  folder: string,
  registry: string,
  image: ReleasedImage,
): Promise<readonly Artefact[]> {
  const artefacts: Artefact[] = []
  for (const name of charts) {
    const { path, facts, values } = await packChart(join(folder, 'files'), name, image)
    const repository = await createRepository(join(folder, 'oci'), registry, `charts/${name}`)
    const config = await addBlob(repository.folder, chartTypes.config, JSON.stringify(facts))
    const layer = await addBlob(repository.folder, chartTypes.layer, await readFile(path))
    const annotations = {
      'org.opencontainers.image.description': facts.description,
      'org.opencontainers.image.title': name,
      'org.opencontainers.image.version': facts.version,
    }
    const content = { config, layers: [layer], annotations }
    const manifest = await addJson(repository.folder, mediaTypes.manifest, content)
    repository.tags.set(facts.version, manifest)
    const sbom = renderChartSbom(facts, values)
    await writeFile(join(folder, 'files', `chart-${name}.cdx.json`), sbom)
    artefacts.push({ repository, digest: manifest.digest, sbom })
  }
  return artefacts
}

/** Signs an artefact, its provenance and its bill of materials. */
async function attest(artefact: Artefact, provenance: string, key?: SigningKey): Promise<void> {
  if (key === undefined) return
  const { repository, digest, sbom } = artefact
  const statements: Statement[] = [
    { statement: provenance, predicateType: statementTypes.provenance },
  ]
  if (sbom !== undefined) {
    const predicateType = statementTypes.bom
    const bom = JSON.parse(sbom) as object
    statements.push({
      statement: renderStatement([subjectOf(artefact)], predicateType, bom),
      predicateType,
    })
  }
  await signArtefact(repository, digest, { key, statements })
}

function digestFiles(folder: string, names: readonly string[]): Promise<readonly Subject[]> {
  return Promise.all(
    names.map(async (name) => {
      const bytes = await readFile(join(folder, name))
      return { name, digest: { sha256: createHash('sha256').update(bytes).digest('hex') } }
    }),
  )
}

/** Writes and signs SHA256SUMS, of all files in the folder. */
async function writeChecksums(folder: string, key?: SigningKey): Promise<void> {
  const found = await digestFiles(folder, (await readdir(folder)).sort())
  const sums = found.map(({ name, digest }) => `${digest.sha256}  ${name}\n`).join('')
  await writeFile(join(folder, 'SHA256SUMS'), sums)
  if (key !== undefined) await writeFile(join(folder, 'SHA256SUMS.sig'), key.sign(sums))
}
