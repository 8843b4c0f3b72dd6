// The dependency `crd-schemas`: strict schemas for kubeconform of the custom resources of other
// projects that the chart renders. Their source are the CRDs in the projects' Go modules, pinned by
// version and checksum.
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
