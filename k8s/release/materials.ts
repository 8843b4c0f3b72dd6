// The inputs of a release beside the commit: the packages of the image's base.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { architectures, type BasePackages, nodePackages } from '../image/base-packages.ts'
import { root } from '../image/bundle.ts'
import type { Material } from './statements.ts'

/** Lists them with their checksums. package-lock.json contains those of the npm packages. */
export async function readMaterials({ node, debian }: BasePackages): Promise<readonly Material[]> {
  const text = await readFile(join(root, 'package-lock.json'))
  const sha256 = createHash('sha256').update(text).digest('hex')
  const fromNpm = architectures.map((architecture) => {
    const base64 = node.integrity[architecture].replace('sha512-', '')
    return {
      uri: `pkg:npm/${nodePackages[architecture]}@${node.version}`,
      digest: { sha512: Buffer.from(base64, 'base64').toString('hex') },
    }
  })
  const fromDebian = debian.flatMap(({ name, version, sha256: sums }) =>
    Object.entries(sums).map(([architecture, sum]) => {
      const place = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`
      return { uri: `pkg:deb/debian/${place}?arch=${architecture}`, digest: { sha256: sum } }
    }),
  )
  return [{ name: 'package-lock.json', digest: { sha256 } }, ...fromNpm, ...fromDebian]
}
