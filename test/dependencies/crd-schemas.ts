// The dependency `crd-schemas`: strict schemas for kubeconform of the custom resources of other
// projects that the chart renders, or that install it. Their source are the CRDs in the Go
// modules of these projects, pinned by version and checksum.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { cachedDependency } from './dependency-cache.ts'
import { runGo } from './go.ts'
import { closeSchema, type Schema } from './kubernetes-schemas.ts'

const FETCH_MS_MAX = 300_000

/** A Go module with CRDs. */
interface Source {
  readonly module: string
  /** The checksum of the module, as in go.sum. */
  readonly sum: string
  readonly folder: string
  readonly files: readonly string[]
}

const SOURCES: readonly Source[] = [
  {
    module: 'sigs.k8s.io/gateway-api@v1.4.0',
    sum: 'h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ=',
    folder: 'config/crd/standard',
    files: ['gateway.networking.k8s.io_gateways', 'gateway.networking.k8s.io_httproutes'],
  },
  {
    module: 'github.com/cert-manager/cert-manager@v1.21.2',
    sum: 'h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=',
    folder: 'deploy/crds',
    files: ['cert-manager.io_certificates'],
  },
  {
    module: 'github.com/kedacore/keda/v2@v2.21.0',
    sum: 'h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=',
    folder: 'config/crd/bases',
    files: ['keda.sh_scaledobjects'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    sum: 'h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=',
    folder: 'example/prometheus-operator-crd',
    files: [
      'monitoring.coreos.com_podmonitors',
      'monitoring.coreos.com_servicemonitors',
      'monitoring.coreos.com_prometheusrules',
    ],
  },
  {
    module: 'github.com/argoproj/argo-cd/v3@v3.5.7',
    sum: 'h1:Xm1BF+I5OgDKUG3SDK49vn2/Y5AMyaNVko+/JT08gj0=',
    folder: 'manifests/crds',
    files: ['application-crd'],
  },
  {
    module: 'github.com/fluxcd/source-controller@v1.9.6',
    sum: 'h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=',
    folder: 'config/crd/bases',
    files: ['gitrepositories', 'ocirepositories'].map((one) => `source.toolkit.fluxcd.io_${one}`),
  },
  {
    module: 'github.com/fluxcd/helm-controller@v1.4.0',
    sum: 'h1:rkm8rmB6Na7eNc4pJOnvtXEaJ19iKluRtayHKjBxcUM=',
    folder: 'config/crd/bases',
    files: ['helm.toolkit.fluxcd.io_helmreleases'],
  },
  {
    module: 'github.com/fluxcd/kustomize-controller@v1.9.6',
    sum: 'h1:XB+G3A0mky0j5uVHZWv4oSlS2RvZBoNIUhstIvY0JKE=',
    folder: 'config/crd/bases',
    files: ['kustomize.toolkit.fluxcd.io_kustomizations'],
  },
]

/** The folder of the schemas, which is created if it does not exist. Throws the reason. */
export async function findCrdSchemas(): Promise<string> {
  const versions = SOURCES.map(({ module }) => module.split('@')[1]).join('-')
  return cachedDependency(`crd-schemas-${versions}`, async (into) => {
    for (const { module, sum, folder, files } of SOURCES) {
      const args = ['mod', 'download', '-json', module]
      const output = await runGo(args, { cwd: tmpdir(), msMax: FETCH_MS_MAX })
      const { Dir, Sum } = JSON.parse(output) as { Dir: string; Sum: string }
      if (Sum !== sum) throw new Error(`The checksum of ${module} is ${Sum}, not ${sum}`)
      for (const file of files) await writeCrdSchemas(join(Dir, folder, `${file}.yaml`), into)
    }
  })
}

interface CrdSpec {
  readonly group: string
  readonly names: { readonly singular: string }
  readonly versions: { name: string; schema: { openAPIV3Schema: Schema } }[]
}

/**
 * Writes the schemas of the CRD in `file` to the paths that `schemaLocation` sets for `folder`: the
 * fields and their bounds, without the CEL rules, which only an API server evaluates.
 */
export async function writeCrdSchemas(file: string, folder: string): Promise<void> {
  const { spec } = parse(await readFile(file, 'utf8')) as { readonly spec: CrdSpec }
  await mkdir(join(folder, spec.group), { recursive: true })
  for (const { name, schema } of spec.versions) {
    const strict = JSON.stringify(closeSchema(schema.openAPIV3Schema))
    await writeFile(join(folder, spec.group, `${spec.names.singular}-${name}.json`), strict)
  }
}
