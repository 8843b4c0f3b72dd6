// HPACK: the examples of RFC 7541, blocks encoded by nghttp2, and arbitrary bytes.
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { Duplex } from 'node:stream'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ResponseHeaders } from './response-headers.ts'
import { FrameReader } from './frame-reader.ts'
import { frameTypes } from './frames.ts'
import { HpackDecoder } from './hpack-decoder.ts'
import { ProtocolError } from './protocol-error.ts'

const LIST_BYTES_MAX = 16_384
const decoder = () => {
  const hpack = new HpackDecoder()
  return (block: Buffer) =>
    hpack.decode(block, LIST_BYTES_MAX)?.map(({ name, value }) => [name, value])
}
const hex = (digits: string) => Buffer.from(digits.replaceAll(' ', ''), 'hex')

describe('the examples of RFC 7541 are decoded', () => {
  const first = [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
  ]
  const third = [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ]

  test('C.3: requests without Huffman coding', () => {
    const read = decoder()
    expect(read(hex('828684410f7777772e6578616d706c652e636f6d'))).toEqual(first)
    expect(read(hex('828684be58086e6f2d6361636865'))).toEqual([
      ...first,
      ['cache-control', 'no-cache'],
    ])
    expect(read(hex('828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565'))).toEqual(third)
  })

  test('C.4: requests with Huffman coding', () => {
    const read = decoder()
    expect(read(hex('828684418cf1e3c2e5f23a6ba0ab90f4ff'))).toEqual(first)
    expect(read(hex('828684be5886a8eb10649cbf'))).toHaveLength(5)
    expect(read(hex('828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf'))).toEqual(third)
  })

  test('C.2: fields that are not indexed', () => {
    const read = decoder()
    expect(read(hex('040c2f73616d706c652f70617468'))).toEqual([[':path', '/sample/path']])
    expect(read(hex('100870617373776f726406736563726574'))).toEqual([['password', 'secret']])
    expect(() => read(hex('be'))).toThrow('invalid index of a header field')
  })
})

/** The blocks that nghttp2 encodes for these requests on one connection. */
async function blocksOf(requests: readonly Record<string, string>[]): Promise<Buffer[]> {
  const encoded: Buffer[] = []
  const pipe = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      encoded.push(chunk)
      done()
    },
  })
  const session = connectHttp2('http://localhost', { createConnection: () => pipe })
  session.on('error', () => undefined)
  await once(session, 'connect')
  for (const headers of requests) {
    const stream = session.request(headers, { endStream: true })
    stream.on('error', () => undefined)
  }
  const blocks: Buffer[] = []
  const collect = () => {
    blocks.length = 0
    const reader = new FrameReader()
    reader.add(Buffer.concat(encoded))
    reader.read(({ type, payload }) => {
      if (type === frameTypes.headers) blocks.push(Buffer.from(payload))
      return true
    })
  }
  while (blocks.length < requests.length) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  session.destroy()
  return blocks
}

test('blocks of nghttp2 are decoded: all bytes, with and without Huffman code', async () => {
  const visible = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('')
  const high = Array.from({ length: 128 }, (_, i) => String.fromCharCode(128 + i)).join('')
  const requests = Array.from({ length: 60 }, (_, i) => ({
    ':method': 'POST',
    ':path': `/p${i}`,
    'x-visible': `a${visible}${'e'.repeat(200)}`,
    'x-high': `a${high}b`,
    'x-byte': `e${'i'.repeat(100)}${String.fromCharCode(128 + i)}e`,
    [`x-${i}`]: 'q'.repeat(i * 10),
  }))
  const read = decoder()
  const blocks = await blocksOf(requests)
  for (const [i, block] of blocks.entries()) {
    const fields: unknown = Object.fromEntries(read(block) ?? [])
    expect(fields).toMatchObject(requests[i] ?? {})
  }
})

describe('malformed blocks', () => {
  const broken: Record<string, string> = {
    'index 0': '80',
    'an index beyond the table': 'c0',
    'a truncated integer': 'ff',
    'an integer that is too large': 'ffffffffff7f',
    'an unbounded integer': 'ff80808080808080808080',
    'a string beyond its block': '0001610561',
    'a missing string': '000161',
    'Huffman padding of zeros': '0001618118',
    'too much Huffman padding': '0001618207ff',
    'Huffman code with EOS': '00016184ffffffff',
    'a table size update beyond the limit': '3fe21f',
    'a table size update after a field': '8220',
  }
  test.each(Object.entries(broken))('%s is rejected', (_, bytes) => {
    expect(() => decoder()(hex(bytes))).toThrow(ProtocolError)
  })
})

test('a table is shrunk, cleared and reused', () => {
  const read = decoder()
  read(hex('4001610162'))
  expect(read(hex('be'))).toEqual([['a', 'b']])
  expect(() => read(hex('20be'))).toThrow('invalid index of a header field')
  expect(read(hex('3fe11f4001630164'))).toEqual([['c', 'd']])
  expect(read(hex('be'))).toEqual([['c', 'd']])
})

test('a header list that is too large is dropped, but updates the table', () => {
  const hpack = new HpackDecoder()
  const kept = Buffer.concat([hex('4001617f9d0f'), Buffer.alloc(2076, 'x')])
  const bomb = Buffer.concat([kept, Buffer.alloc(20_000, 0xbe)])
  expect(hpack.decode(bomb, LIST_BYTES_MAX)).toBeUndefined()
  expect(hpack.decode(hex('be'), LIST_BYTES_MAX)).toMatchObject([{ name: 'a' }])
})

test('names and values that HTTP/2 does not allow are invalid', () => {
  const valid = (name: string, value: string) => {
    const block = Buffer.concat([
      Buffer.from([0, name.length]),
      Buffer.from(name, 'latin1'),
      Buffer.from([value.length]),
      Buffer.from(value, 'latin1'),
    ])
    return new HpackDecoder().decode(block, LIST_BYTES_MAX)?.[0]?.isValid
  }
  expect(['x-a', ':path', 'a_b'].map((name) => valid(name, 'v \xff'))).toEqual([true, true, true])
  expect(['', 'X', 'a b', 'a:', '\xe9'].map((name) => valid(name, 'v'))).not.toContain(true)
  expect([' v', 'v\t', 'a\nb', 'a\0'].map((value) => valid('a', value))).not.toContain(true)
  expect(valid('a', '')).toBe(true)
})

test('arbitrary bytes are decoded or rejected', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 }), (blocks) => {
      const hpack = new HpackDecoder()
      try {
        for (const block of blocks) hpack.decode(Buffer.from(block), LIST_BYTES_MAX)
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
      }
    }),
    { numRuns: 2000 },
  )
})

describe('response headers', () => {
  const ok = [
    [':status', '200'],
    ['content-type', 'application/grpc'],
  ]
  const end = [['grpc-status', '0']]

  test('take one or two bytes after the first response, in any order of calls', () => {
    const read = decoder()
    const responses = new ResponseHeaders()
    const blocks = ['headers', 'headers', 'trailers', 'headers', 'trailers'] as const
    const encoded = blocks.map((block) => responses[block]())
    expect(encoded.map(read)).toEqual([ok, ok, end, ok, end])
    expect(encoded.slice(3).map(({ length }) => length)).toEqual([2, 1])
  })

  test('do not use a table that the client limits', () => {
    const read = decoder()
    const responses = new ResponseHeaders()
    expect(read(responses.headers())).toEqual(ok)
    responses.setHeaderTableSize(100)
    const next = responses.headers()
    expect(next[0]).toBe(0x20)
    expect([read(next), read(responses.trailers()), read(responses.headers())]).toEqual([
      ok,
      end,
      ok,
    ])
  })

  test('encode faults of any length, and HTTP statuses', () => {
    const read = decoder()
    const responses = new ResponseHeaders()
    const fields = [['grpc-message', 'x'.repeat(5000)]] as const
    expect(read(responses.fields(fields, true))).toEqual([...ok, ...fields])
    expect(read(responses.fields(fields, false))).toEqual(fields)
    expect(read(responses.status(415))).toEqual([[':status', '415']])
  })
})
