// The contents of one repository of a registry, as a folder in the OCI image layout: artefacts with
// tags, and their signatures and attestations, under the tags at which cosign finds them.
import { join } from 'node:path'
import {
  addBlob,
  addJson,
  createLayout,
  type Descriptor,
  mediaTypes,
  writeIndex,
} from '../image/oci-layout.ts'
import type { SigningKey } from './signing-key.ts'
import { envelop, signaturePayload, statementTypes } from './statements.ts'

const TAG = 'org.opencontainers.image.ref.name'

/** A repository that is being written. */
export interface Repository {
  /** Such as `registry.example.com/team/curtail`. */
  readonly name: string
  readonly folder: string
  readonly tags: Map<string, Descriptor>
}

/** Creates a repository in `parent`, at its path without the host of the registry. */
export async function createRepository(
  parent: string,
  registry: string,
  path: string,
): Promise<Repository> {
  const folder = join(parent, path)
  await createLayout(folder)
  return { name: `${registry}/${path}`, folder, tags: new Map() }
}

/** Writes the tags of a repository. */
export async function writeTags({ folder, tags }: Repository): Promise<void> {
  const named = [...tags].sort(([a], [b]) => (a < b ? -1 : 1))
  await writeIndex(
    folder,
    named.map(([tag, descriptor]) => ({ ...descriptor, annotations: { [TAG]: tag } })),
  )
}

/** Signs an artefact, and the statements about it. */
export async function signArtefact(
  repository: Repository,
  digest: string,
  signed: { readonly key: SigningKey; readonly statements: readonly Statement[] },
): Promise<void> {
  const payload = signaturePayload(repository.name, digest)
  const signature = await addBlob(repository.folder, statementTypes.signature, payload)
  const annotations = { 'dev.cosignproject.cosign/signature': signed.key.sign(payload) }
  await attach(repository, `${tagOf(digest)}.sig`, [{ ...signature, annotations }])
  const envelopes: Descriptor[] = []
  for (const { statement, predicateType } of signed.statements) {
    const bytes = envelop(statement, signed.key)
    const envelope = await addBlob(repository.folder, statementTypes.envelope, bytes)
    const about = { 'dev.cosignproject.cosign/signature': '', predicateType }
    envelopes.push({ ...envelope, annotations: about })
  }
  await attach(repository, `${tagOf(digest)}.att`, envelopes)
}

/** An in-toto statement. */
export interface Statement {
  readonly statement: string
  readonly predicateType: string
}

function tagOf(digest: string): string {
  return digest.replace(':', '-')
}

/** Adds a manifest with these layers, in the form that cosign writes. */
async function attach(
  { folder, tags }: Repository,
  tag: string,
  layers: readonly Descriptor[],
): Promise<void> {
  const rootfs = { type: 'layers', diff_ids: layers.map(({ digest }) => digest) }
  const description = JSON.stringify({ architecture: '', os: '', config: {}, rootfs })
  const config = await addBlob(folder, mediaTypes.config, description)
  tags.set(tag, await addJson(folder, mediaTypes.manifest, { config, layers }))
}
