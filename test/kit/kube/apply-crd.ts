// Applies a CRD to a real API server, and waits until it serves the kind.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { APPLY, type KubeApi } from '../../../src/kube/api.ts'
import { waitFor } from '../wait-for.ts'

/** A CRD; only the fields that we read. */
export interface Crd {
  readonly metadata: { readonly name: string }
}

/** The CRD of CodePools. */
export const CODE_POOLS_CRD = readCrd('codepools')
/** The CRD of RateLimitPolicies. */
export const RATE_LIMIT_POLICIES_CRD = readCrd('ratelimitpolicies')

function readCrd(plural: string): Crd {
  return parse(readFileSync(`charts/curtail-crds/templates/${plural}.yaml`, 'utf8')) as Crd
}

/** Applies a CRD; resolves once it is established. */
export async function applyCrd(api: KubeApi, crd: Crd): Promise<void> {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`
  await api.call({ method: 'PATCH', path, body: crd, ...APPLY })
  await waitFor('the CRD to be established', async () => {
    const { status } = (await api.call({ method: 'GET', path })) as {
      status?: { conditions?: { type: string; status: string }[] }
    }
    const isEstablished = ({ type, status: value }: { type: string; status: string }) =>
      type === 'Established' && value === 'True'
    return status?.conditions?.some(isEstablished) === true
  })
}
