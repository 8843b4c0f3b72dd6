// The CRDs of the chart curtail-crds as strict schemas for kubeconform.
import { writeCrdSchemas } from '../../dependencies/crd-schemas.ts'

const CRDS = ['codepools', 'ratelimitpolicies']

/**
 * Writes the schemas to the paths that `schemaLocation` (kubernetes-schemas.ts) sets for `folder`.
 */
export async function writeCustomSchemas(folder: string): Promise<void> {
  for (const crd of CRDS) await writeCrdSchemas(`charts/curtail-crds/templates/${crd}.yaml`, folder)
}
