// The documents that cosign and SLSA define: the payload of an image's signature, in-toto
// statements, and their envelopes. Pure.
import type { SigningKey } from './signing-key.ts'
import type { Source } from './source.ts'

/** The types of these documents. */
export const statementTypes = {
  signature: 'application/vnd.dev.cosign.simplesigning.v1+json',
  envelope: 'application/vnd.dsse.envelope.v1+json',
  inToto: 'application/vnd.in-toto+json',
  provenance: 'https://slsa.dev/provenance/v1',
  bom: 'https://cyclonedx.org/bom',
} as const

/** How `npm run release` builds; docs/release.md describes it. */
const BUILD_TYPE = 'https://curtail.dev/build-types/npm-run-release/v1'
const BUILDER = 'https://curtail.dev/builders/npm-run-release/v1'

/** An artefact that a statement is about: an image, a chart or a file. */
export interface Subject {
  readonly name: string
  readonly digest: { readonly sha256: string }
}

/** An input of a build, as SLSA describes it. */
export interface Material {
  readonly uri?: string
  readonly name?: string
  readonly digest: Readonly<Record<string, string>>
}

/** The payload that cosign signs for the artefact `digest` of a repository. */
export function signaturePayload(repository: string, digest: string): string {
  const identity = { 'docker-reference': repository }
  const image = { 'docker-manifest-digest': digest }
  const critical = { identity, image, type: 'cosign container image signature' }
  return JSON.stringify({ critical, optional: null })
}

/** An in-toto statement about these artefacts. */
export function renderStatement(
  subject: readonly Subject[],
  predicateType: string,
  predicate: object,
): string {
  const _type = 'https://in-toto.io/Statement/v1'
  return JSON.stringify({ _type, subject, predicateType, predicate })
}

/** SLSA's description of a release's build. It has no times: equal builds give equal bytes. */
export function describeBuild(
  source: Source,
  registry: string,
  materials: readonly Material[],
): object {
  const { version, commit, created } = source
  return {
    buildDefinition: {
      buildType: BUILD_TYPE,
      externalParameters: { version, registry, sourceDate: created },
      resolvedDependencies: [{ name: 'source', digest: { gitCommit: commit } }, ...materials],
    },
    runDetails: { builder: { id: BUILDER } },
  }
}

/** A statement with its signature: an envelope of DSSE. */
export function envelop(statement: string, key: SigningKey): string {
  const [type, body] = [statementTypes.inToto, Buffer.from(statement)]
  const head = `DSSEv1 ${type.length} ${type} ${body.length} `
  const sig = key.sign(Buffer.concat([Buffer.from(head), body]))
  const payload = body.toString('base64')
  return JSON.stringify({ payloadType: type, payload, signatures: [{ keyid: '', sig }] })
}
