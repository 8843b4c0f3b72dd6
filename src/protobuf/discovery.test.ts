// The messages of xDS equal those of protobufjs, and malformed bytes result in a WireError.
import { expect, test } from '@jest/globals'
import {
  parseRequest,
  parseResponse,
  responseBytes,
  structOf,
} from '../../test/kit/ratelimit/xds-messages.ts'
import {
  type DiscoveryRequest,
  readDiscoveryRequest,
  readDiscoveryResponse,
  writeDiscoveryRequest,
  writeDiscoveryResponse,
} from './discovery.ts'
import { WireError } from './wire-reader.ts'

const request = { version: '', typeUrl: 'type/T', nonce: '', error: undefined }

test('a first request contains the node', () => {
  const metadata = new Map([
    ['team', 'edge'],
    ['long', 'x'.repeat(300)],
  ])
  const node = { id: 'n1', metadata, userAgentName: 'curtail', userAgentVersion: '1.0.0' }
  expect(parseRequest(writeDiscoveryRequest({ ...request, node }))).toEqual({
    versionInfo: '',
    node: {
      id: 'n1',
      metadata: structOf(Object.fromEntries(metadata)),
      userAgentName: 'curtail',
      userAgentVersion: '1.0.0',
    },
    resourceNames: [],
    typeUrl: 'type/T',
    responseNonce: '',
    errorDetail: null,
  })
})

test('a later request contains the version, the nonce and the error', () => {
  const error = 'é'.repeat(500)
  const resourceNames = ['a', 'b'.repeat(200)]
  const about = { ...request, node: undefined, resourceNames }
  const later = writeDiscoveryRequest({ ...about, version: 'v1', nonce: 'n2', error })
  expect(parseRequest(later)).toEqual({
    versionInfo: 'v1',
    node: null,
    resourceNames,
    typeUrl: 'type/T',
    responseNonce: 'n2',
    errorDetail: { code: 3, message: error },
  })
})

const response = {
  versionInfo: 'v7',
  nonce: 'n7',
  typeUrl: 'type/T',
  resources: [
    { typeUrl: 'type/A', value: Buffer.from('a') },
    { typeUrl: 'type/B', value: Buffer.alloc(5000, 'b') },
  ],
}

test('a response is parsed', () => {
  const message = responseBytes({ ...response, controlPlane: { identifier: 'c' } })
  const read = readDiscoveryResponse(message)
  const about = { version: 'v7', nonce: 'n7', typeUrl: 'type/T', controlPlane: 'c' }
  expect(read).toMatchObject({ ...about, message })
  expect(readDiscoveryResponse(responseBytes(response)).controlPlane).toBe('')
  expect(read.resources.map(({ typeUrl, bytes }) => [typeUrl, bytes.length])).toEqual([
    ['type/A', 1],
    ['type/B', 5000],
  ])
})

test('a response cut within a field is malformed', () => {
  const resources = response.resources.slice(0, 1)
  const message = responseBytes({ ...response, resources })
  // The ends of version, resources and type, where a cut leaves a shorter, valid message.
  const ends = [4, message.length - 12, message.length - 4]
  for (let length = 1; length < message.length; length += 1) {
    const read = () => readDiscoveryResponse(message.subarray(0, length))
    if (ends.includes(length)) expect(read).not.toThrow()
    else expect(read).toThrow(WireError)
  }
})

test('at most 10,001 resources are read, so that the caller can reject more', () => {
  const resources = Array.from({ length: 10_005 }, () => ({ typeUrl: '', value: Buffer.alloc(0) }))
  const read = readDiscoveryResponse(responseBytes({ ...response, resources }))
  expect(read).toMatchObject({ version: 'v7', nonce: 'n7', typeUrl: 'type/T' })
  expect(read.resources).toHaveLength(10_001)
})

test('a server reads the id of the node, and an error even if it is empty', () => {
  const node = { id: 'n1', metadata: new Map(), userAgentName: 'u', userAgentVersion: '1' }
  const read = (given: Partial<DiscoveryRequest>) =>
    readDiscoveryRequest(writeDiscoveryRequest({ ...request, node: undefined, ...given }))
  const resourceNames = ['a', '']
  expect(read({ node, resourceNames })).toEqual({ ...request, resourceNames, node: 'n1' })
  expect(read({ version: 'v1', nonce: 'n2', error: '' })).toEqual({
    ...request,
    node: '',
    resourceNames: [],
    version: 'v1',
    nonce: 'n2',
    error: '',
  })
})

test('a request cut within a field is malformed', () => {
  const later = { ...request, node: undefined, version: 'v1', nonce: 'n2', error: 'fault' }
  const message = writeDiscoveryRequest(later)
  const ends = [4, 12, 16] // of version, type and nonce
  for (let length = 1; length < message.length; length += 1) {
    const read = () => readDiscoveryRequest(message.subarray(0, length))
    if (ends.includes(length)) expect(read).not.toThrow()
    else expect(read).toThrow(WireError)
  }
})

test('a server writes a response', () => {
  const resources = [Buffer.from('a'), Buffer.alloc(5000, 'b')]
  const { versionInfo: version, nonce, typeUrl } = response
  const given = { version, nonce, typeUrl, resources }
  const parsed = { ...response, resources: resources.map((value) => ({ typeUrl, value })) }
  expect(parseResponse(writeDiscoveryResponse(given))).toEqual({ ...parsed, controlPlane: null })
  expect(parseResponse(writeDiscoveryResponse({ ...given, controlPlane: 'c' }))).toEqual({
    ...parsed,
    controlPlane: { identifier: 'c' },
  })
})
