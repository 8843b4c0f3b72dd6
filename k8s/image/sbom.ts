// Renders bills of materials in CycloneDX. That of the image contains the bundled npm packages,
// Node.js with its bundled libraries, and the Debian packages of the base. Pure.
import { createHash } from 'node:crypto'

/** A package of npm. */
export interface NpmPackage {
  readonly name: string
  readonly version: string
  /** From package.json: an SPDX expression. */
  readonly license: string
  /** From package-lock.json: `sha512-` and base64. */
  readonly integrity?: string | undefined
}

/** A package of Debian. */
export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly architecture: string
}

/** The contents of an image. */
export interface Materials {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly packages: readonly NpmPackage[]
  /** `process.versions` of the image's Node.js. */
  readonly nodeVersions: Readonly<Record<string, string>>
  readonly basePackages: readonly DebianPackage[]
  /** Such as `debian-12`. */
  readonly distribution: string
}

/** A component in a bill of materials. */
export interface Component {
  readonly type: string
  readonly name: string
  readonly version: string
  readonly 'bom-ref': string
  readonly [field: string]: unknown
}

/** Renders the image's bill of materials. The same materials give the same bytes. */
export function renderSbom(materials: Materials): string {
  const { name, version, license, packages, nodeVersions, basePackages } = materials
  const app = component(`pkg:npm/${name}@${version}`, {
    type: 'application',
    name,
    version,
    licenses: [{ expression: license }],
  })
  const npm = packages.map(renderNpm)
  const node = renderNode(nodeVersions)
  const base = basePackages.map((one) => renderDebian(one, materials.distribution))
  return renderBom(app, [...npm, node, ...base])
}

/** Renders the bill of materials of `subject`, which depends on these components. */
export function renderBom(subject: Component, components: readonly Component[]): string {
  const refs = components.map((one) => one['bom-ref'])
  const body = {
    metadata: { component: subject },
    components,
    dependencies: [{ ref: subject['bom-ref'], dependsOn: [...new Set(refs)].sort() }],
  }
  const format = { bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 }
  const document = { ...format, serialNumber: serialOf(body), ...body }
  return `${JSON.stringify(document, undefined, 2)}\n`
}

/** Renders a component, which its package URL identifies. */
export function component(purl: string, given: Omit<Component, 'bom-ref' | 'purl'>): Component {
  const { type, name, version, ...rest } = given
  return { type, name, version, 'bom-ref': purl, purl, ...rest } as Component
}

function renderNpm({ name, version, license, integrity }: NpmPackage): Component {
  const path = name.replace('@', '%40')
  const [, base64] = integrity?.split('sha512-') ?? []
  return component(`pkg:npm/${path}@${version}`, {
    type: 'library',
    name,
    version,
    licenses: [{ expression: license }],
    ...(base64 !== undefined && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') }],
    }),
  })
}

/** Renders Node.js, with the libraries in its binary as components. */
function renderNode({ node = '', ...others }: Readonly<Record<string, string>>): Component {
  const libraries = Object.entries(others).filter(([, version]) => /\d\.\d/.test(version))
  return component(`pkg:github/nodejs/node@v${node}`, {
    type: 'platform',
    name: 'node',
    version: node,
    licenses: [{ expression: 'MIT' }],
    cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:-:*:*:*`,
    components: libraries.map(([name, version]) =>
      component(`pkg:generic/${name}@${version}`, { type: 'library', name, version }),
    ),
  })
}

function renderDebian(given: DebianPackage, distribution: string): Component {
  const { name, version, architecture } = given
  const place = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`
  const purl = `pkg:deb/debian/${place}?arch=${architecture}&distro=${distribution}`
  return component(purl, { type: 'library', name, version })
}

/** A UUID derived from the document's contents. */
function serialOf(body: object): string {
  const hex = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16)
  const fields = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return `urn:uuid:${[...fields, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')}`
}
