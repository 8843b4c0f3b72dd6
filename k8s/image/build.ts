// `npm run image [-- FILE]`: builds the image for amd64 from the checkout, without a daemon or a
// registry, as one file for `docker load`, `podman load` or `ctr images import`.
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { writeApp } from './app.ts'
import { type Image, type ImageConfig, writeImage, writeLayer } from './archive.ts'
import { installedNode, nonroot, writeBase } from './base-layer.ts'
import { type Architecture, type BasePackages, findAvailablePackages } from './base-packages.ts'
import { type Rewrite, root } from './bundle.ts'

const MEBIBYTE = 1024 * 1024
/** The programs in k8s/image/bin; the Dockerfile copies the same. */
const PROGRAMS = ['curtail', 'ratelimit']

/** The environment of the image; the Dockerfile sets the same. */
export const imageEnvironment = {
  PATH: '/nodejs/bin:/bin',
  NODE_ENV: 'production',
  NODE_OPTIONS: '--disable-warning=ExperimentalWarning --max-semi-space-size=8',
} as const

/** Builds the image at `path` with all `names`; resolves to the sizes of its layers. */
export async function buildImage(given: {
  readonly names: readonly string[]
  readonly path: string
  readonly rewrite?: Rewrite
}): Promise<{ readonly baseBytes: number; readonly appBytes: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-image-'))
  try {
    const packages = await findAvailablePackages(['amd64'])
    const image = await buildLayers(folder, { architecture: 'amd64', packages }, given.rewrite)
    await writeImage(image, given.names, resolve(given.path))
    const sizes = await Promise.all(image.layers.map(({ path }) => stat(path)))
    const [baseBytes = 0, appBytes = 0] = sizes.map(({ size }) => size)
    return { baseBytes, appBytes }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Builds the layers of the image for one architecture in `folder`, which must exist. */
export async function buildLayers(
  folder: string,
  on: { readonly architecture: Architecture; readonly packages: BasePackages },
  rewrite?: Rewrite,
): Promise<Image> {
  const { architecture, packages } = on
  process.umask(0o022)
  const [base, top] = [join(folder, 'base'), join(folder, 'top')]
  const app = join(top, 'app')
  await mkdir(base)
  await mkdir(app, { recursive: true })
  await writeBase(base, architecture, packages)
  // The versions in Node.js are the same for each architecture.
  await writeApp(app, { folder: base, node: join(installedNode, 'bin/node') }, rewrite)
  await addPrograms(top)
  const lower = await writeLayer(base, join(folder, 'base.tar'))
  // Independent of the umask of the checkout.
  const upper = await writeLayer(top, join(folder, 'app.tar'), 'u=rwX,go=rX')
  return { architecture, config: await describeConfig(), layers: [lower, upper] }
}

/** Adds the programs in /bin, executable files whatever their mode in the checkout is. */
async function addPrograms(top: string): Promise<void> {
  await mkdir(join(top, 'bin'))
  for (const name of PROGRAMS) {
    const program = join(top, 'bin', name)
    await copyFile(join(root, 'k8s/image/bin', name), program)
    await chmod(program, 0o755)
  }
}

async function readFacts() {
  const facts = z.object({ version: z.string(), license: z.string(), description: z.string() })
  return facts.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
}

async function describeConfig(): Promise<ImageConfig> {
  const { version, license, description } = await readFacts()
  const user = String(nonroot.id)
  return {
    Entrypoint: ['/nodejs/bin/node', '/app/main.js'],
    User: `${user}:${user}`,
    WorkingDir: '/app',
    Env: Object.entries(imageEnvironment).map(([name, value]) => `${name}=${value}`),
    Labels: {
      'org.opencontainers.image.title': 'curtail',
      'org.opencontainers.image.description': description,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': license,
    },
  }
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { name: { type: 'string', multiple: true } },
  })
  const path = positionals[0] ?? 'curtail-image.tar'
  const names = values.name ?? [`localhost/curtail:${(await readFacts()).version}`]
  const { baseBytes, appBytes } = await buildImage({ names, path })
  const [base, app] = [baseBytes, appBytes].map((bytes) => (bytes / MEBIBYTE).toFixed(1))
  process.stdout.write(`${path}: ${names.join(', ')}; base ${base} MiB, app ${app} MiB\n`)
}

if (import.meta.main) await main()
