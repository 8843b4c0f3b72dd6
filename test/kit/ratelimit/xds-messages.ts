// Messages of an xDS server, serialized by protobufjs from the field numbers of the published
// protos, so that tests do not use Curtail's codec.
import { fromJSON } from '@grpc/proto-loader'

/** A RateLimitConfig. */
export interface ConfigMessage {
  readonly name?: string
  readonly domain?: string
  readonly descriptors?: readonly DescriptorMessage[]
}

/** A RateLimitDescriptor. */
export interface DescriptorMessage {
  readonly key?: string
  readonly value?: string
  readonly rateLimit?: {
    /** A name such as SECOND, or a number. */
    readonly unit?: string | number
    readonly requestsPerUnit?: number
    readonly unlimited?: boolean
    readonly name?: string
    readonly replaces?: readonly { readonly name?: string }[]
  }
  readonly descriptors?: readonly DescriptorMessage[]
  readonly shadowMode?: boolean
  readonly detailedMetric?: boolean
  readonly quotaMode?: boolean
  readonly metadata?: { readonly fields: Readonly<Record<string, object>> }
}

/** A DiscoveryRequest. */
export interface DiscoveryRequestMessage {
  readonly versionInfo: string
  readonly node: {
    readonly id: string
    readonly metadata: object | null
    readonly userAgentName: string
    readonly userAgentVersion: string
  } | null
  /** Absent: none. */
  readonly resourceNames?: readonly string[]
  readonly typeUrl: string
  readonly responseNonce: string
  readonly errorDetail: { readonly code: number; readonly message: string } | null
}

/** The type of the resources. */
export const CONFIG_TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig'

const one = (type: string, id: number) => ({ type, id })
const many = (type: string, id: number) => ({ rule: 'repeated', type, id })
const mapOf = (type: string, id: number) => ({ keyType: 'string', type, id })
const kinds = ['nullValue', 'numberValue', 'stringValue', 'boolValue', 'structValue', 'listValue']

const messages = fromJSON(
  {
    nested: {
      Any: { fields: { typeUrl: one('string', 1), value: one('bytes', 2) } },
      Status: { fields: { code: one('int32', 1), message: one('string', 2) } },
      Struct: { fields: { fields: mapOf('Value', 1) } },
      ListValue: { fields: { values: many('Value', 1) } },
      Value: {
        oneofs: { kind: { oneof: kinds } },
        fields: {
          nullValue: one('int32', 1),
          numberValue: one('double', 2),
          stringValue: one('string', 3),
          boolValue: one('bool', 4),
          structValue: one('Struct', 5),
          listValue: one('ListValue', 6),
        },
      },
      Unit: {
        values: { UNKNOWN: 0, SECOND: 1, MINUTE: 2, HOUR: 3, DAY: 4, MONTH: 5, YEAR: 6, WEEK: 7 },
      },
      Replace: { fields: { name: one('string', 1) } },
      Policy: {
        fields: {
          unit: one('Unit', 1),
          requestsPerUnit: one('uint32', 2),
          unlimited: one('bool', 3),
          name: one('string', 4),
          replaces: many('Replace', 5),
        },
      },
      Descriptor: {
        fields: {
          key: one('string', 1),
          value: one('string', 2),
          rateLimit: one('Policy', 3),
          descriptors: many('Descriptor', 4),
          shadowMode: one('bool', 5),
          detailedMetric: one('bool', 6),
          quotaMode: one('bool', 7),
          metadata: one('Struct', 8),
        },
      },
      Config: {
        fields: {
          name: one('string', 1),
          domain: one('string', 2),
          descriptors: many('Descriptor', 3),
        },
      },
      Node: {
        fields: {
          id: one('string', 1),
          metadata: one('Struct', 3),
          userAgentName: one('string', 6),
          userAgentVersion: one('string', 7),
        },
      },
      Request: {
        fields: {
          versionInfo: one('string', 1),
          node: one('Node', 2),
          resourceNames: many('string', 3),
          typeUrl: one('string', 4),
          responseNonce: one('string', 5),
          errorDetail: one('Status', 6),
        },
      },
      Response: {
        fields: {
          versionInfo: one('string', 1),
          resources: many('Any', 2),
          typeUrl: one('string', 4),
          nonce: one('string', 5),
          controlPlane: one('ControlPlane', 6),
        },
      },
      ControlPlane: { fields: { identifier: one('string', 1) } },
    },
  },
  { enums: String, defaults: true },
) as unknown as Readonly<Record<string, Codec>>

interface Codec {
  serialize(message: object): Buffer
  deserialize(bytes: Buffer): object
}

function codecOf(name: string): Codec {
  const codec = messages[name]
  if (codec === undefined) throw new Error(`no message ${name}`)
  return codec
}

/** A serialized RateLimitConfig. */
export function configBytes(config: ConfigMessage): Buffer {
  return codecOf('Config').serialize(config)
}

/** A serialized DiscoveryResponse. */
export function responseBytes(response: {
  readonly versionInfo: string
  readonly nonce: string
  readonly typeUrl: string
  readonly controlPlane?: { readonly identifier: string } | null
  readonly resources: readonly { readonly typeUrl: string; readonly value: Buffer }[]
}): Buffer {
  return codecOf('Response').serialize(response)
}

/** Parses a DiscoveryResponse. */
export function parseResponse(bytes: Buffer): object {
  return codecOf('Response').deserialize(bytes)
}

/** Parses a DiscoveryRequest. */
export function parseRequest(bytes: Buffer): DiscoveryRequestMessage {
  return codecOf('Request').deserialize(bytes) as DiscoveryRequestMessage
}

/** A Struct, or another value, from JSON. */
export function structOf(json: Readonly<Record<string, unknown>>): {
  fields: Record<string, object>
} {
  const entries = Object.entries(json).map(([name, value]) => [name, valueOf(value)] as const)
  return { fields: Object.fromEntries(entries) }
}

function valueOf(json: unknown): object {
  if (json === null) return { nullValue: 0 }
  if (typeof json === 'number') return { numberValue: json }
  if (typeof json === 'string') return { stringValue: json }
  if (typeof json === 'boolean') return { boolValue: json }
  if (Array.isArray(json)) return { listValue: { values: json.map(valueOf) } }
  return { structValue: structOf(json as Record<string, unknown>) }
}
