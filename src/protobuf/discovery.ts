// The messages of Envoy's discovery API (xDS, state of the world) that clients and servers of
// aggregated discovery send and receive. Does not decode the resources.
import { WireReader } from './wire-reader.ts'
import { STRUCT_FIELDS, ENTRY_KEY, ENTRY_VALUE, VALUE_STRING } from './struct-tags.ts'
import { DELIMITED, tagOf, VARINT } from './wire-types.ts'
import { WireWriter } from './wire-writer.ts'

/** The path of the method of aggregated discovery, state of the world. */
export const ADS_METHOD =
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'

/** The identifier that the controller's server sends in its responses. */
export const CONTROL_PLANE = 'curtail'

/** The type of the request with which a limiter informs the controller that it stops. */
export const LEAVE_TYPE_URL = 'type.googleapis.com/curtail.dev.v1alpha1.Leave'

/** A resource: a google.protobuf.Any. */
interface AnyResource {
  readonly typeUrl: string
  /** The serialized message; shares the memory of the response. */
  readonly bytes: Buffer
}

/** A DiscoveryResponse. */
export interface DiscoveryResponse {
  readonly version: string
  readonly nonce: string
  readonly typeUrl: string
  readonly resources: readonly AnyResource[]
  /** The identifier of the server; empty: it sends none. */
  readonly controlPlane: string
  /** The serialized response itself. */
  readonly message: Buffer
}

/** A response to send. */
export interface WrittenResponse {
  readonly version: string
  readonly nonce: string
  /** The type of the resources. */
  readonly typeUrl: string
  readonly resources: readonly Uint8Array[]
  /** The identifier of the server. @default none */
  readonly controlPlane?: string
}

/** The process that sends requests. */
interface DiscoveryNode {
  readonly id: string
  readonly metadata: ReadonlyMap<string, string>
  readonly userAgentName: string
  readonly userAgentVersion: string
}

/** A DiscoveryRequest: for the resources of a type, or a report to the controller. */
export interface DiscoveryRequest {
  /** Only in the first request of a stream. */
  readonly node: DiscoveryNode | undefined
  /** The version of the active resources; empty: none. */
  readonly version: string
  readonly typeUrl: string
  /** The names of the resources, or the entries of a report. @default all resources */
  readonly resourceNames?: readonly string[]
  /** The nonce of the response to accept or reject; empty in a first request and in a report. */
  readonly nonce: string
  /** Why the response is rejected; `undefined`: it is accepted. */
  readonly error: string | undefined
}

/** A request as a server reads it: `error` may be empty, and `node` is the id of the node. */
export interface ReceivedRequest extends Omit<DiscoveryRequest, 'node'> {
  readonly node: string
  readonly resourceNames: readonly string[]
}

const VERSION = tagOf(1, DELIMITED)
const RESPONSE_RESOURCES = tagOf(2, DELIMITED)
const RESPONSE_TYPE = tagOf(4, DELIMITED)
const RESPONSE_NONCE = tagOf(5, DELIMITED)
const RESPONSE_CONTROL_PLANE = tagOf(6, DELIMITED)
const CONTROL_PLANE_IDENTIFIER = tagOf(1, DELIMITED)
const ANY_TYPE = tagOf(1, DELIMITED)
const ANY_VALUE = tagOf(2, DELIMITED)
const REQUEST_NODE = tagOf(2, DELIMITED)
const REQUEST_NAMES = tagOf(3, DELIMITED)
const REQUEST_TYPE = tagOf(4, DELIMITED)
const REQUEST_NONCE = tagOf(5, DELIMITED)
const REQUEST_ERROR = tagOf(6, DELIMITED)
const NODE_ID = tagOf(1, DELIMITED)
const NODE_METADATA = tagOf(3, DELIMITED)
const NODE_USER_AGENT = tagOf(6, DELIMITED)
const NODE_USER_AGENT_VERSION = tagOf(7, DELIMITED)
const STATUS_CODE = tagOf(1, VARINT)
const STATUS_MESSAGE = tagOf(2, DELIMITED)
const INVALID_ARGUMENT = 3

/** Maximum number of resources of a version; the caller rejects versions with more. */
export const RESOURCES_MAX = 10_000

/** Parses a response: at most RESOURCES_MAX + 1 resources. Throws WireError if it is malformed. */
export function readDiscoveryResponse(message: Buffer): DiscoveryResponse {
  const reader = new WireReader(message, 'DiscoveryResponse', false)
  const resources: AnyResource[] = []
  let [version, nonce, typeUrl, controlPlane] = ['', '', '', '']
  while (reader.at < reader.length) {
    const tag = reader.tag()
    if (tag === VERSION) version = reader.string()
    else if (tag === RESPONSE_CONTROL_PLANE)
      controlPlane = readString(reader, CONTROL_PLANE_IDENTIFIER)
    else if (tag === RESPONSE_TYPE) typeUrl = reader.string()
    else if (tag === RESPONSE_NONCE) nonce = reader.string()
    else if (tag === RESPONSE_RESOURCES && resources.length <= RESOURCES_MAX) {
      resources.push(readAny(reader))
    } else reader.skip(tag)
  }
  return { version, nonce, typeUrl, resources, controlPlane, message }
}

function readAny(reader: WireReader): AnyResource {
  const end = reader.endOfField()
  let typeUrl = ''
  let bytes: Buffer = Buffer.alloc(0)
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === ANY_TYPE) typeUrl = reader.string()
    else if (tag === ANY_VALUE) bytes = reader.delimited()
    else reader.skip(tag)
  }
  reader.finish(end)
  return { typeUrl, bytes }
}

/** Serializes a request. */
export function writeDiscoveryRequest(request: DiscoveryRequest): Buffer {
  const { node, version, resourceNames = [], typeUrl, nonce, error } = request
  const writer = new WireWriter()
  writer.start()
  if (version !== '') writer.string(VERSION, version)
  if (node !== undefined) writeNode(writer, node)
  for (const name of resourceNames) writer.string(REQUEST_NAMES, name)
  writer.string(REQUEST_TYPE, typeUrl)
  if (nonce !== '') writer.string(REQUEST_NONCE, nonce)
  if (error !== undefined) {
    const status = writer.open(REQUEST_ERROR)
    writer.number(STATUS_CODE, INVALID_ARGUMENT)
    writer.string(STATUS_MESSAGE, error)
    writer.close(status)
  }
  return writer.finish()
}

function writeNode(writer: WireWriter, node: DiscoveryNode): void {
  const opened = writer.open(REQUEST_NODE)
  writer.string(NODE_ID, node.id)
  if (node.metadata.size > 0) {
    const struct = writer.open(NODE_METADATA)
    for (const [key, text] of node.metadata) {
      const entry = writer.open(STRUCT_FIELDS)
      writer.string(ENTRY_KEY, key)
      const value = writer.open(ENTRY_VALUE)
      writer.string(VALUE_STRING, text)
      writer.close(value)
      writer.close(entry)
    }
    writer.close(struct)
  }
  writer.string(NODE_USER_AGENT, node.userAgentName)
  writer.string(NODE_USER_AGENT_VERSION, node.userAgentVersion)
  writer.close(opened)
}

/** Parses a request. Throws WireError if it is malformed. */
export function readDiscoveryRequest(message: Buffer): ReceivedRequest {
  const reader = new WireReader(message, 'DiscoveryRequest', false)
  let [node, version, typeUrl, nonce] = ['', '', '', '']
  const resourceNames: string[] = []
  let error: string | undefined
  while (reader.at < reader.length) {
    const tag = reader.tag()
    if (tag === VERSION) version = reader.string()
    else if (tag === REQUEST_NODE) node = readString(reader, NODE_ID)
    else if (tag === REQUEST_NAMES) resourceNames.push(reader.string())
    else if (tag === REQUEST_TYPE) typeUrl = reader.string()
    else if (tag === REQUEST_NONCE) nonce = reader.string()
    else if (tag === REQUEST_ERROR) error = readString(reader, STATUS_MESSAGE)
    else reader.skip(tag)
  }
  return { node, version, resourceNames, typeUrl, nonce, error }
}

/** The string field `wanted` of a nested message; empty if it is absent. */
function readString(reader: WireReader, wanted: number): string {
  const end = reader.endOfField()
  let value = ''
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === wanted) value = reader.string()
    else reader.skip(tag)
  }
  reader.finish(end)
  return value
}

/** Serializes a response. The nonce is last: a client that knows it has read the response. */
export function writeDiscoveryResponse(response: WrittenResponse): Buffer {
  const { version, nonce, typeUrl, resources, controlPlane = '' } = response
  const writer = new WireWriter()
  writer.start()
  writer.string(VERSION, version)
  for (const resource of resources) {
    const any = writer.open(RESPONSE_RESOURCES)
    writer.string(ANY_TYPE, typeUrl)
    writer.delimited(ANY_VALUE, resource)
    writer.close(any)
  }
  writer.string(RESPONSE_TYPE, typeUrl)
  if (controlPlane !== '') {
    const opened = writer.open(RESPONSE_CONTROL_PLANE)
    writer.string(CONTROL_PLANE_IDENTIFIER, controlPlane)
    writer.close(opened)
  }
  writer.string(RESPONSE_NONCE, nonce)
  return writer.finish()
}
