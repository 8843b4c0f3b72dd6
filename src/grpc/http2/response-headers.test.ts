// The encoded response headers: lengths at the bounds of HPACK's integers, and the client's table.
import { describe, expect, test } from '@jest/globals'
import { HpackDecoder } from './hpack-decoder.ts'
import { ResponseHeaders } from './response-headers.ts'

function openClient() {
  const hpack = new HpackDecoder()
  const responses = new ResponseHeaders()
  const read = (block: Buffer) =>
    hpack.decode(block, 1_000_000)?.map(({ name, value }) => [name, value])
  return { responses, read }
}
const ok = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
]
const end = [['grpc-status', '0']]

test.each([0, 1, 126, 127, 128, 254, 255, 256, 16_510, 16_511, 16_512])(
  'a value of %d bytes is encoded',
  (length) => {
    const { responses, read } = openClient()
    const fields = [['grpc-message', 'x'.repeat(length)]] as const
    expect(read(responses.fields(fields, false))).toEqual(fields)
  },
)

test('each block uses the fields that earlier blocks have indexed', () => {
  const { responses, read } = openClient()
  const first = [responses.headers(), responses.headers(), responses.trailers()]
  const later = [responses.headers(), responses.trailers(), responses.headers()]
  expect([...first, ...later].map(read)).toEqual([ok, ok, end, ok, end, ok])
  expect(first.map(({ length }) => length)).toEqual([19, 2, 15])
  expect(later.map(({ length }) => length)).toEqual([2, 1, 2])
})

describe('with a header table of', () => {
  const TABLE_UPDATE = 0x20

  test.each([4096, 65_536])('%d bytes, the fields are indexed', (bytes) => {
    const { responses, read } = openClient()
    responses.setHeaderTableSize(bytes)
    expect([responses.headers(), responses.trailers()].map(read)).toEqual([ok, end])
    expect([responses.headers().length, responses.trailers().length]).toEqual([2, 1])
  })

  test.each([0, 4095])(
    '%d bytes, the fields are not indexed, and the table is cleared',
    (bytes) => {
      const { responses, read } = openClient()
      responses.setHeaderTableSize(bytes)
      const blocks = [responses.headers(), responses.trailers(), responses.headers()]
      expect(blocks.map(read)).toEqual([ok, end, ok])
      expect(blocks.map(([first]) => first === TABLE_UPDATE)).toEqual([true, false, false])
      expect(blocks[2]?.length).toBeGreaterThan(2)
    },
  )

  test('a smaller and then the default size, the table is cleared only once', () => {
    const { responses } = openClient()
    const first = () => responses.status(415)[0]
    for (const bytes of [100, 50]) responses.setHeaderTableSize(bytes)
    expect([first(), first()]).toEqual([TABLE_UPDATE, 0x08])
    for (const bytes of [100, 4096]) responses.setHeaderTableSize(bytes)
    expect(first()).toBe(0x08)
    expect(responses.headers().length).toBeGreaterThan(2)
  })

  test.each(['status', 'fields', 'trailers'] as const)('0 bytes, %s clears the table', (kind) => {
    const { responses, read } = openClient()
    responses.setHeaderTableSize(0)
    const encode = {
      status: () => responses.status(404),
      fields: () => responses.fields([['a', 'b']], true),
      trailers: () => responses.trailers(),
    }
    const block = encode[kind]()
    expect(block[0]).toBe(TABLE_UPDATE)
    expect(read(block)).toEqual(
      { status: [[':status', '404']], fields: [...ok, ['a', 'b']], trailers: end }[kind],
    )
  })
})
