// JSON Schemas shared by values of the chart; values.yaml refers to them by name. The schema of a
// single value is in values.yaml.

/** A JSON Schema (draft 7) or subschema. */
export type Schema = Readonly<Record<string, unknown>>

const stringMap: Schema = { type: 'object', additionalProperties: { type: 'string' } }
/** A quantity of Kubernetes, without exponents and without units below a thousandth. */
const quantity: Schema = {
  type: ['string', 'number'],
  minimum: 0,
  pattern: '^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[mkMGTPE])?$',
}
const quantities: Schema = { type: 'object', additionalProperties: quantity }
const optionalPercent: Schema = { type: ['integer', 'null'], minimum: 1, maximum: 100 }
const pollSeconds: Schema = { type: 'integer', minimum: 1, maximum: 86_400 }
const replicas: Schema = { type: 'integer', minimum: 1, maximum: 1000 }
const namespace: Schema = { type: 'string', pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }
const poolName: Schema = { type: 'string', pattern: '^[A-Za-z0-9_./-]{1,128}$' }

/** The shapes by name; `pod` is added from `podDefaults` of values.yaml. */
export const valueShapes: Readonly<Record<string, Schema>> = {
  references: {
    type: 'array',
    items: closed({ name: { type: 'string', minLength: 1 } }, ['name']),
  },
  objectName: { type: 'string', maxLength: 63, pattern: '^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$' },
  secretKey: { type: 'string', pattern: '^[A-Za-z0-9._-]+$' },
  optionalSecretKey: { type: 'string', pattern: '^[A-Za-z0-9._-]*$' },
  stringMap,
  imageRepository: { type: 'string', pattern: '^[a-z0-9][A-Za-z0-9._:/-]*$' },
  imageTag: { type: 'string', pattern: '^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$' },
  imageDigest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
  pullPolicy: { type: 'string', enum: ['IfNotPresent', 'Always', 'Never'] },
  port: { type: 'integer', minimum: 1, maximum: 65_535 },
  seconds: { type: 'string', pattern: '^([1-9][0-9]{0,4}|0[.][0-9]{1,3})s$' },
  rate: { type: 'integer', minimum: 1, maximum: 1_000_000 },
  optionalRate: { type: ['integer', 'null'], minimum: 1, maximum: 1_000_000 },
  optionalFlag: { type: ['boolean', 'null'] },
  quantity,
  resources: closed({ requests: quantities, limits: quantities, claims: { type: 'array' } }),
  autoscaling: closed({
    enabled: { type: 'boolean' },
    minReplicas: replicas,
    maxReplicas: replicas,
    targetCpuPercent: optionalPercent,
    targetMemoryPercent: optionalPercent,
    metrics: { type: 'array', items: { type: 'object', required: ['type'] } },
    behavior: { type: 'object' },
    annotations: stringMap,
    keda: closed({
      enabled: { type: 'boolean' },
      triggers: { type: 'array', items: { type: 'object', required: ['type'] } },
      pollingInterval: pollSeconds,
      fallback: { type: 'object' },
    }),
  }),
  poolName,
  pools: {
    type: 'array',
    maxItems: 64,
    items: closed(
      {
        name: poolName,
        target: { type: 'integer', minimum: 1, maximum: 100_000_000 },
        lowWater: { type: 'integer', minimum: 1000, maximum: 50_000_000 },
        headroomHours: { type: 'integer', minimum: 1, maximum: 8760 },
        schedule: { type: 'string', pattern: '^(@[a-z]+|[^ ]+( [^ ]+){4})$' },
      },
      ['name', 'target'],
    ),
  },
  domains: {
    type: 'array',
    maxItems: 999,
    items: closed(
      {
        domain: { type: 'string', minLength: 1, maxLength: 253 },
        namespaces: { type: 'array', minItems: 1, maxItems: 100, items: namespace },
        below: closed(
          {
            key: { type: 'string', minLength: 1, maxLength: 256 },
            value: { type: 'string', minLength: 1, maxLength: 512 },
          },
          ['key', 'value'],
        ),
        apiKeys: { type: 'boolean' },
        bytes: { type: 'integer', minimum: 1000, maximum: 3_670_016 },
      },
      ['domain', 'namespaces'],
    ),
  },
  renderMode: { type: 'string', enum: ['skipIfMissing', 'failIfMissing', 'alwaysRender'] },
}

/** An object schema without additional properties. */
export function closed(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
): Schema {
  const requirement = required.length > 0 ? { required } : {}
  return { type: 'object', additionalProperties: false, properties, ...requirement }
}
