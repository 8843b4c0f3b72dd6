// Reads what the headers of a call say: which method, how its messages are packed, how long its
// caller waits, and of which trace it is. Pure.
import type { HeaderField } from './http2/hpack-decoder.ts'
import type { CallFault } from './http2/status-codes.ts'

/** How messages may be packed. */
export const packings = ['identity', 'gzip', 'deflate'] as const

/** One of them. */
export type Packing = (typeof packings)[number]

/** What the headers say. */
export interface CallHead {
  readonly path: string
  readonly packing: Packing
  /** Undefined: the caller waits for ever. */
  readonly timeoutMs: number | undefined
  /** Of which trace the call is, as the caller wrote it. */
  readonly traceparent: string | undefined
}

/** Why there is no call: it breaks HTTP/2, is none of gRPC, or cannot be done. */
export type HeadFault =
  | { readonly kind: 'malformed' }
  | { readonly kind: 'http'; readonly status: 415 }
  | { readonly kind: 'grpc'; readonly fault: CallFault }

const CONTENT_TYPE = 'application/grpc'
const timeoutForm = /^(\d{1,8})([HMSmun])$/
const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
}

const malformed: HeadFault = { kind: 'malformed' }
const noTimeout = refused(
  'INTERNAL',
  'grpc-timeout must be 1 to 8 digits and a unit of H M S m u n',
)
const noPost = refused('UNIMPLEMENTED', 'a method is called by POST')
const tooLong = refused('RESOURCE_EXHAUSTED', 'the metadata may have at most 16 KiB')
const noPacking = refused('UNIMPLEMENTED', 'messages may be packed by identity, gzip or deflate')

function refused(code: CallFault['code'], details: string): HeadFault {
  return { kind: 'grpc', fault: { code, details } }
}

interface Found {
  method: string | undefined
  scheme: string | undefined
  path: string | undefined
  type: string | undefined
  packing: string | undefined
  timeout: string | undefined
  traceparent: string | undefined
}

/** Parses the fields of a call; undefined: there were too many. */
export function parseCallHead(fields: readonly HeaderField[] | undefined): CallHead | HeadFault {
  if (fields === undefined) return tooLong
  const found = collect(fields)
  if (found?.path === undefined || found.method === undefined || found.scheme === undefined) {
    return malformed
  }
  if (!isGrpc(found.type ?? '')) return { kind: 'http', status: 415 }
  if (found.method !== 'POST') return noPost
  const packing = packings.find((one) => one === (found.packing ?? 'identity'))
  if (packing === undefined) return noPacking
  const timeoutMs = found.timeout === undefined ? undefined : timeoutMsOf(found.timeout)
  if (timeoutMs !== undefined && Number.isNaN(timeoutMs)) return noTimeout
  return { path: found.path, packing, timeoutMs, traceparent: found.traceparent }
}

/** The fields that matter; undefined where there are some that HTTP/2 forbids (RFC 9113 §8). */
function collect(fields: readonly HeaderField[]): Found | undefined {
  const found: Found = {
    method: undefined,
    scheme: undefined,
    path: undefined,
    type: undefined,
    packing: undefined,
    timeout: undefined,
    traceparent: undefined,
  }
  let mayBePseudo = true
  for (const { name, value, isValid } of fields) {
    if (!isValid) return undefined
    if (!name.startsWith(':')) mayBePseudo = false
    else if (!mayBePseudo || !takePseudo(found, name, value)) return undefined
    if (!mayBePseudo && !takeUsual(found, name, value)) return undefined
  }
  return found
}

function takePseudo(found: Found, name: string, value: string): boolean {
  if (name === ':authority') return true
  const key = name === ':path' ? 'path' : name === ':method' ? 'method' : 'scheme'
  if (found[key] !== undefined || value === '' || (key === 'scheme' && name !== ':scheme')) {
    return false
  }
  found[key] = value
  return true
}

function takeUsual(found: Found, name: string, value: string): boolean {
  switch (name) {
    case 'content-type':
      found.type = value
      return true
    case 'grpc-encoding':
      found.packing = value
      return true
    case 'grpc-timeout':
      found.timeout = value
      return true
    case 'traceparent':
      found.traceparent = value
      return true
    case 'te':
      return value === 'trailers'
    case 'connection':
    case 'keep-alive':
    case 'proxy-connection':
    case 'transfer-encoding':
    case 'upgrade':
      return false
    default:
      return true
  }
}

function isGrpc(type: string): boolean {
  if (!type.startsWith(CONTENT_TYPE)) return false
  const next = type.charAt(CONTENT_TYPE.length)
  return next === '' || next === '+' || next === ';'
}

/** NaN where it is none. */
function timeoutMsOf(timeout: string): number {
  const [, digits, unit = ''] = timeoutForm.exec(timeout) ?? []
  return Number(digits) * (unitMs[unit] ?? NaN)
}
