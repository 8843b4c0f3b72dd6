// Names, namespaces and other strings that consist of digits: without quotes, they would be numbers
// in the manifests, which the API server rejects.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { findHelm } from '../../dependencies/helm.ts'
import {
  chartFolder,
  type KubeObject,
  limiterFolder,
  parseObjects,
} from '../../kit/chart/chart-render.ts'

const run = promisify(execFile)
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024
const DIGITS = '12' // YAML 1.1 reads even 12:12, an image with a tag, as a number
const LETTERS = 'ab'

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-chart-strings-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly definitions?: Readonly<Record<string, Schema>>
}

/** A value with `string` wherever the schema allows both DIGITS and LETTERS. */
function fill(schema: Schema, string: string, root: Schema): unknown {
  const { $ref, type, pattern = '', properties, additionalProperties, items } = schema
  const inner = (one: Schema) => fill(one, string, root)
  if ($ref !== undefined) return inner(root.definitions?.[$ref.split('/').at(-1) ?? ''] ?? {})
  if (type === 'string') {
    const isFree = schema.enum === undefined
    const accepts = [DIGITS, LETTERS].every((one) => new RegExp(pattern).test(one))
    return isFree && accepts ? string : undefined
  }
  if (properties !== undefined) {
    const entries = Object.entries(properties).map(([name, one]) => [name, inner(one)] as const)
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
  }
  if (items !== undefined) {
    const item = inner(items)
    return item === undefined ? undefined : [item]
  }
  return typeof additionalProperties === 'object'
    ? { [string]: inner(additionalProperties) }
    : undefined
}

type Values = Record<string, unknown>

/** Sets the value at a path such as `edge.tls.enabled`; `undefined`: its default. */
function setValue(values: Values, path: string, value: unknown): void {
  const names = path.split('.')
  const last = names.pop() ?? ''
  let parent = values
  for (const name of names) parent = (parent[name] ??= {}) as Values
  parent[last] = value
}

/** Values that have to match one another; `STRING` stands for the digits or letters. */
const limiterValues = {
  'ratelimit.rules': undefined,
  'counters.external.url': undefined,
  'podDefaults.serviceAccount.create': false,
}
const usualValues = {
  ...limiterValues,
  'pools.list': [{ name: 'STRING', target: 5000 }],
  'edge.trustedHops': 1,
  'edge.tls.enabled': true,
  'edge.service.type': 'LoadBalancer',
  'edge.service.loadBalancerSourceRanges': undefined,
  'loadTest.enabled': true,
  'monitoring.monitor.enabled': true,
  'monitoring.monitor.renderMode': 'alwaysRender',
  'monitoring.rules.enabled': true,
  'monitoring.rules.renderMode': 'alwaysRender',
  'monitoring.dashboards.enabled': true,
}

const cases: Readonly<Record<string, { chart?: string; values: Values }>> = {
  'bundled stores and policies': {
    values: {
      ...usualValues,
      'ratelimit.existingRules': undefined,
      'global.imageRegistry': undefined,
      'cassandra.auth.existingSecret': undefined,
      'controller.watchNamespaces': undefined,
      'controller.admissionPolicy.enabled': true,
    },
  },
  'external stores and rules in a ConfigMap': {
    values: {
      ...usualValues,
      namespaceOverride: undefined, // controller.watchNamespaces must not name it
      'ratelimit.domains': undefined,
      'cassandra.mode': 'external',
      'cassandra.tls.enabled': true,
      'cassandra.tls.clientCertificate': true,
      'cache.mode': 'external',
      'counters.mode': 'external',
    },
  },
  'K8ssandra and CronJobs': {
    values: {
      ...usualValues,
      'ratelimit.domains': undefined,
      'ratelimit.existingRules': undefined,
      'controller.watchNamespaces': undefined,
      'pools.mode': 'cron',
      'cassandra.mode': 'k8ssandra',
    },
  },
  'the rate limiter alone': { chart: limiterFolder, values: limiterValues },
}

async function render(name: string, string: string): Promise<readonly KubeObject[]> {
  const { chart = chartFolder, values: overrides = {} } = cases[name] ?? {}
  const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8')) as Schema
  const values = fill(schema, string, schema) as Values
  for (const [path, value] of Object.entries(overrides)) setValue(values, path, value)
  const file = join(folder, `${string}.json`)
  await writeFile(file, JSON.stringify(values).replaceAll('STRING', string))
  const args = ['template', string, chart, '--namespace', `3${string}`, '--values', file]
  const { stdout } = await run(await findHelm(4), args, { maxBuffer: OUTPUT_BYTES_MAX })
  return parseObjects(stdout)
}

/** The places in `value` that are no strings; those in YAML files of ConfigMaps too. */
function notStrings(value: unknown, path: string, string: string): readonly string[] {
  if (typeof value === 'string')
    return path.endsWith('.yaml') ? notStrings(parse(value), `${path}:`, string) : []
  if (typeof value !== 'object' || value === null || value instanceof Date) return [path]
  return Object.entries(value).flatMap(([key, inner]) =>
    notStrings(inner, `${path} ${key === string ? 'STRING' : key}`, string),
  )
}

test.each(Object.keys(cases))('digits are strings: %s', async (name) => {
  const [digits = [], letters = []] = await Promise.all(
    [DIGITS, LETTERS].map(async (string) => {
      const objects = await render(name, string)
      return objects.flatMap((object) => notStrings(object, object.kind, string)).sort()
    }),
  )
  expect(digits).toEqual(letters)
  expect(letters.length).toBeGreaterThan(30)
})
