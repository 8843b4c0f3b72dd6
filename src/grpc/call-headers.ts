// Parses the headers of a call: its method, message encoding, timeout and trace. Pure.
import type { HeaderField } from './http2/hpack-decoder.ts'
import type { CallFault } from './http2/status-codes.ts'

/** The supported message encodings. */
export const encodings = ['identity', 'gzip', 'deflate'] as const

/** A message encoding. */
export type Encoding = (typeof encodings)[number]

/** The parsed headers. */
export interface CallHeaders {
  readonly path: string
  readonly encoding: Encoding
  /** Undefined: no timeout. */
  readonly timeoutMs: number | undefined
  /** The header as received. */
  readonly traceparent: string | undefined
}

/** Why the call is rejected: malformed HTTP/2, not gRPC, or a gRPC call with an error status. */
export type HeaderFault =
  | { readonly kind: 'malformed' }
  | { readonly kind: 'http'; readonly status: 415 }
  | { readonly kind: 'grpc'; readonly fault: CallFault }

const CONTENT_TYPE = 'application/grpc'
const timeoutPattern = /^(\d{1,8})([HMSmun])$/
const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
}

const malformed: HeaderFault = { kind: 'malformed' }
const invalidTimeout = grpcFault(
  'INTERNAL',
  'grpc-timeout must be 1 to 8 digits and a unit: H, M, S, m, u or n',
)
const notPost = grpcFault('UNIMPLEMENTED', 'the request method must be POST')
const metadataTooLarge = grpcFault('RESOURCE_EXHAUSTED', 'the metadata must have at most 16 KiB')
const unsupportedEncoding = grpcFault(
  'UNIMPLEMENTED',
  'grpc-encoding must be identity, gzip or deflate',
)

function grpcFault(code: CallFault['code'], details: string): HeaderFault {
  return { kind: 'grpc', fault: { code, details } }
}

class RawHeaders {
  method: string | undefined
  scheme: string | undefined
  path: string | undefined
  type: string | undefined
  encoding: string | undefined
  timeout: string | undefined
  traceparent: string | undefined
}

/** Parses the fields of a call; `fields` is undefined if they exceed the size limit. */
export function parseCallHeaders(
  fields: readonly HeaderField[] | undefined,
): CallHeaders | HeaderFault {
  if (fields === undefined) return metadataTooLarge
  const headers = collect(fields)
  if (headers?.path === undefined || headers.method === undefined || headers.scheme === undefined) {
    return malformed
  }
  if (!isGrpc(headers.type ?? '')) return { kind: 'http', status: 415 }
  if (headers.method !== 'POST') return notPost
  const encoding = encodings.find((one) => one === (headers.encoding ?? 'identity'))
  if (encoding === undefined) return unsupportedEncoding
  const timeoutMs = headers.timeout === undefined ? undefined : timeoutMsOf(headers.timeout)
  if (timeoutMs !== undefined && Number.isNaN(timeoutMs)) return invalidTimeout
  return { path: headers.path, encoding, timeoutMs, traceparent: headers.traceparent }
}

/** The relevant fields; `undefined` if HTTP/2 forbids any of them or their order (RFC 9113 §8). */
function collect(fields: readonly HeaderField[]): RawHeaders | undefined {
  const headers = new RawHeaders()
  let mayBePseudo = true
  for (const { name, value, isValid } of fields) {
    if (!isValid) return undefined
    if (!name.startsWith(':')) mayBePseudo = false
    else if (!mayBePseudo || !takePseudoHeader(headers, name, value)) return undefined
    if (!mayBePseudo && !takeHeader(headers, name, value)) return undefined
  }
  return headers
}

function takePseudoHeader(headers: RawHeaders, name: string, value: string): boolean {
  if (name === ':authority') return true
  const key = name === ':path' ? 'path' : name === ':method' ? 'method' : 'scheme'
  if (headers[key] !== undefined || value === '' || (key === 'scheme' && name !== ':scheme')) {
    return false
  }
  headers[key] = value
  return true
}

function takeHeader(headers: RawHeaders, name: string, value: string): boolean {
  switch (name) {
    case 'content-type':
      headers.type = value
      return true
    case 'grpc-encoding':
      headers.encoding = value
      return true
    case 'grpc-timeout':
      headers.timeout = value
      return true
    case 'traceparent':
      headers.traceparent = value
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

/** NaN if the timeout is invalid. */
function timeoutMsOf(timeout: string): number {
  const [, digits, unit = ''] = timeoutPattern.exec(timeout) ?? []
  return Number(digits) * (unitMs[unit] ?? NaN)
}
