// `npm run release`: two clones of a commit give the same release. sigstore's library verifies it
// from a registry, and Helm reads the charts from there. Requires root, for mounts.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { architectures } from '../../../k8s/image/base-packages.ts'
import { root } from '../../../k8s/image/bundle.ts'
import { findHelm, helmMajors } from '../../dependencies/helm.ts'
import { findKubernetes } from '../../dependencies/kubernetes.ts'
import { findReleaseTools } from '../../dependencies/release-tools.ts'
import { cloneCheckout, git, release } from '../../kit/chart/release-clone.ts'
import { ofKind } from '../../kit/gitops-health.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const TEST_MS_MAX = 900_000
const FIND_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const COMMAND_MS_MAX = 120_000
const REGISTRY = 'registry.example.com/team'
const TAG = 'org.opencontainers.image.ref.name'

interface Report {
  readonly registry?: string
  readonly artefacts: readonly {
    readonly repository: string
    readonly digest: string
    readonly predicates: readonly string[]
    readonly machine?: string
  }[]
  readonly errors: readonly string[]
}

/** The entry point of a layout. */
interface Index {
  readonly manifests: readonly {
    readonly digest: string
    readonly annotations: Readonly<Record<string, string>>
  }[]
}

let folder: string
let version: string
let signed: string
let kubectl: string
const verifiers: ChildProcess[] = []

/** The contents of a file of a release; of an entry point, without the tags of signatures. */
async function readComparable(path: string): Promise<string> {
  const text = await readFile(path, 'latin1')
  if (!path.endsWith('/index.json')) return text
  const index = JSON.parse(text) as Index
  const manifests = index.manifests.filter(
    ({ annotations }) => !annotations[TAG]?.startsWith('sha256-'),
  )
  return JSON.stringify({ ...index, manifests })
}

/** The arguments of `npm run release`. */
function releaseOf(...args: readonly string[]): readonly string[] {
  return [version, '--registry', REGISTRY, ...args]
}

async function createKey(name: string): Promise<string> {
  const path = join(folder, name)
  const options = { timeout: COMMAND_MS_MAX }
  const generate = ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', path]
  await run('openssl', generate, options)
  await run('openssl', ['ec', '-in', path, '-pubout', '-out', `${path}.pub`], options)
  return path
}

/** Starts the verification of a release; its registry is open until stdin is closed. */
async function verify(released: string, key: string): Promise<[Report, ChildProcess]> {
  const program = join(await findReleaseTools(), 'release-tools')
  const child = spawn(program, [released, `${key}.pub`, REGISTRY], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  verifiers.push(child)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const exited = once(child, 'close')
  const printed = new Promise((resolve) => {
    child.stdout.on('data', () => {
      if (output.includes('\n')) resolve(undefined)
    })
  })
  await withinDeadline('the report', Promise.race([printed, exited]), COMMAND_MS_MAX)
  return [JSON.parse(output) as Report, child]
}

/** The errors of a verification that must fail. */
async function errorsOf(released: string, key: string): Promise<readonly string[]> {
  const [report, child] = await verify(released, key)
  child.stdin?.end()
  return report.errors
}

beforeAll(async () => {
  kubectl = join(await findKubernetes((line) => process.stdout.write(`${line}\n`)), 'kubectl')
}, FIND_MS_MAX)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-release-test-'))
  const text = await readFile(join(root, 'package.json'), 'utf8')
  version = (JSON.parse(text) as { version: string }).version
  await findReleaseTools()
  await cloneCheckout(join(folder, 'first'), version)
  // Its parent is missing.
  signed = join(folder, 'out', 'signed')
  const output = await release(
    join(folder, 'first'),
    { umask: '022', env: { TZ: 'UTC', LC_ALL: 'C' } },
    ...releaseOf('--out', signed, '--key', await createKey('key')),
  )
  expect(output).toContain(`${signed}: signed\n`)
}, TEST_MS_MAX)

afterAll(async () => {
  for (const child of verifiers) child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

test(
  'two clones give the same bytes, signed or not',
  async () => {
    const second = join(folder, 'second')
    await git(folder, 'clone', '--quiet', join(folder, 'first'), second)
    const env = { TZ: 'Asia/Tokyo', LC_ALL: 'C.UTF-8', TAR_OPTIONS: '--exclude=*.css' }
    const unsigned = join(folder, 'unsigned')
    const output = await release(second, { umask: '077', env }, ...releaseOf('--out', unsigned))
    expect(output).toContain('not signed: no --key')
    const found = await readdir(unsigned, { recursive: true, withFileTypes: true })
    const paths = found
      .filter((entry) => entry.isFile())
      .map((entry) => relative(unsigned, join(entry.parentPath, entry.name)))
    const differing: string[] = []
    for (const path of paths) {
      const [one, two] = [join(signed, path), join(unsigned, path)].map(readComparable)
      if ((await one) !== (await two)) differing.push(path)
    }
    expect(differing).toEqual([])
    expect(paths).toContain('files/SHA256SUMS')
    await rm(unsigned, { recursive: true })
  },
  TEST_MS_MAX,
)

test(
  'signatures, bills of materials and provenance verify, and Helm reads the charts',
  async () => {
    const [report, child] = await verify(signed, join(folder, 'key'))
    expect(report.errors).toEqual([])
    const provenance = 'https://slsa.dev/provenance/v1'
    const both = [provenance, 'https://cyclonedx.org/bom']
    expect(
      report.artefacts.map(({ repository, predicates, machine }) => [
        repository,
        predicates,
        machine,
      ]),
    ).toEqual([
      ['charts/curtail', both, undefined],
      ['charts/curtail-crds', both, undefined],
      ['charts/curtail-ratelimit', both, undefined],
      ['curtail', [provenance], undefined],
      ['curtail', both, 'amd64 EM_X86_64'],
      ['curtail', both, 'arm64 EM_AARCH64'],
    ])
    const digests = await readFile(join(signed, 'files/digests.txt'), 'utf8')
    const lines = digests.trimEnd().split('\n')
    const digest = lines[0]?.split('  ')[0] ?? ''
    const name = `${REGISTRY}/curtail:${version}`
    expect(lines.map((line) => line.replace(/^sha256:\w{64} {2}/, ''))).toEqual([
      name,
      ...architectures.map((architecture) => `${name}  linux/${architecture}`),
      ...['curtail', 'curtail-crds', 'curtail-ratelimit'].map(
        (chart) => `${REGISTRY}/charts/${chart}:${version}`,
      ),
    ])
    const json = await readFile(join(signed, 'files/provenance.json'), 'utf8')
    const { subject } = JSON.parse(json) as { subject: readonly { name: string }[] }
    expect(new Set(subject.map(({ name }) => name)).size).toBe(lines.length + 4)
    // The command of docs/release.md.
    await run('sha256sum', ['--check', '--strict', '--ignore-missing', 'SHA256SUMS'], {
      cwd: join(signed, 'files'),
      timeout: COMMAND_MS_MAX,
    })
    const reference = `image: "${REGISTRY}/curtail@${digest}"`
    for (const major of helmMajors) {
      const helm = await findHelm(major)
      for (const chart of ['curtail', 'curtail-ratelimit', 'curtail-crds']) {
        const from = `oci://${report.registry ?? ''}/charts/${chart}`
        const args = ['template', 'shop', from, '--version', version, '--plain-http']
        const { stdout } = await run(helm, args, { timeout: COMMAND_MS_MAX })
        const kind = chart === 'curtail-crds' ? 'CustomResourceDefinition' : 'Deployment'
        expect(stdout).toContain(`kind: ${kind}`)
        if (kind === 'Deployment') expect(stdout).toContain(reference)
        const packed = join(signed, 'files', `${chart}-${version}.tgz`)
        const facts = await run(helm, ['show', 'chart', packed], { timeout: COMMAND_MS_MAX })
        expect(parse(facts.stdout)).toMatchObject({ name: chart, version })
      }
    }
    child.stdin?.end()
  },
  TEST_MS_MAX,
)

test(
  'the released manifests name the image by its digest, and docs/gitops.md names the charts',
  async () => {
    const [digest = ''] = (await readFile(join(signed, 'files/digests.txt'), 'utf8')).split('  ')
    const archive = join(signed, 'files', `curtail-standalone-${version}.tgz`)
    const options = { cwd: join(folder, 'standalone'), timeout: COMMAND_MS_MAX }
    await mkdir(options.cwd)
    await run('tar', ['-xzf', archive], options)
    const { stdout } = await run(kubectl, ['kustomize', 'k8s/standalone'], options)
    const images = [...stdout.matchAll(/image: (.*)/g)].map(([, image]) => image)
    expect(images).toEqual([`${REGISTRY}/curtail:${version}@${digest}`])
    const source = ofKind('Application')[0]?.spec?.source
    const { url, layerSelector } = ofKind('OCIRepository')[0]?.spec ?? {}
    const mediaType = layerSelector?.mediaType
    const chart = `${REGISTRY}/charts/curtail`
    expect([`${source?.repoURL}/${source?.chart}`, url]).toEqual([chart, `oci://${chart}`])
    const layout = join(signed, 'oci/charts/curtail')
    const readJson = async (path: string) =>
      JSON.parse(await readFile(join(layout, path), 'utf8')) as unknown
    const index = (await readJson('index.json')) as Index
    const tagged = index.manifests.find(({ annotations }) => annotations[TAG] === version)
    const blob = `blobs/${tagged?.digest.replace(':', '/') ?? ''}`
    expect(await readJson(blob)).toMatchObject({ layers: [{ mediaType }] })
  },
  TEST_MS_MAX,
)

test(
  'a flipped byte and another key fail',
  async () => {
    const flip = async (path: string, run: () => Promise<void>) => {
      const bytes = await readFile(path)
      const flipped = Buffer.from(bytes)
      const at = bytes.length >> 1
      flipped[at] = (bytes[at] ?? 0) ^ 1
      await writeFile(path, flipped)
      try {
        await run()
      } finally {
        await writeFile(path, bytes)
      }
    }
    const key = join(folder, 'key')
    for (const path of [`curtail-${version}.tgz`, 'provenance.json', 'curtail-arm64.cdx.json']) {
      await flip(join(signed, 'files', path), async () => {
        expect(await errorsOf(signed, key)).toContain(`${path} does not match SHA256SUMS`)
      })
    }
    await flip(join(signed, 'files/SHA256SUMS'), async () => {
      expect(await errorsOf(signed, key)).toContainEqual(
        expect.stringContaining('SHA256SUMS: invalid signature'),
      )
    })
    const blobs = join(signed, 'oci/curtail/blobs/sha256')
    const [blob = ''] = await readdir(blobs)
    await flip(join(blobs, blob), async () => {
      expect(await errorsOf(signed, key)).toEqual([`a blob does not match its digest: ${blob}`])
    })
    const errors = await errorsOf(signed, await createKey('other'))
    for (const kind of ['signature', 'attestation']) {
      expect(errors.filter((one) => one.startsWith(`${kind} of `))).toHaveLength(4)
    }
  },
  TEST_MS_MAX,
)

test(
  'a checkout with other files than its commit cannot be released',
  async () => {
    const clone = join(folder, 'first')
    await writeFile(join(clone, 'README.md'), 'changed')
    await writeFile(join(clone, 'src/web/ignored.log'), '')
    const out = releaseOf('--out', join(folder, 'changed'))
    const list = ' M README.md\n!! src/web/ignored.log\n'
    await expect(release(clone, { umask: '022' }, ...out)).rejects.toMatchObject({
      stderr: expect.stringContaining(`commit or remove these files first\n${list}`),
    })
  },
  TEST_MS_MAX,
)
