// Writes blocks of header fields (HPACK) for answers of gRPC. Those of a call that went well are
// same each time: they stand in the client's table after the first, where it keeps one of the usual
// size, and cost a byte each from then on.

const CONTENT_TYPE = 'application/grpc'
/** Numbers of fields and names that HPACK knows. */
const STATUS_200 = 0x88
const STATUS_NAME = 8
const CONTENT_TYPE_NAME = 31
/** Says that the table is empty from now on. */
const EMPTY_TABLE = Buffer.from([0x20])
const TABLE_BYTES_USUAL = 4096

const plainHeaders = Buffer.concat([
  Buffer.from([STATUS_200]),
  named(CONTENT_TYPE_NAME, CONTENT_TYPE),
])
const plainTrailers = literal('grpc-status', '0')
/** Adds the content type to the client's table. */
const firstHeaders = Buffer.concat([
  Buffer.from([STATUS_200, 0x40 | CONTENT_TYPE_NAME]),
  text(CONTENT_TYPE),
])
/** Adds the status to the client's table. */
const firstTrailers = Buffer.concat([Buffer.from([0x40]), text('grpc-status'), text('0')])
/** The place of the newest field in the table, and of the one before. */
const NEWEST = 0x80 | 62
const secondHeaders = Buffer.from([STATUS_200, NEWEST])
const laterHeaders = Buffer.from([STATUS_200, NEWEST + 1])
const laterTrailers = Buffer.from([NEWEST])

/** The blocks of one connection; to be sent in the order in which they are asked for. */
export class AnswerHeaders {
  private fieldsKept = 0
  private isPlain = false
  private mustEmptyTable = false

  /** The client's table holds so many bytes. */
  limitTable(bytes: number): void {
    if (bytes >= TABLE_BYTES_USUAL || this.isPlain) return
    this.isPlain = true
    this.mustEmptyTable = true
  }

  /** Status 200 and the content type. */
  headers(): Buffer {
    if (this.isPlain) return this.emptied(plainHeaders)
    if (this.fieldsKept === 2) return laterHeaders
    if (this.fieldsKept === 1) return secondHeaders
    this.fieldsKept = 1
    return firstHeaders
  }

  /** The end of a call that went well. */
  trailers(): Buffer {
    if (this.isPlain) return this.emptied(plainTrailers)
    if (this.fieldsKept === 2) return laterTrailers
    this.fieldsKept = 2
    return firstTrailers
  }

  /** An answer of HTTP that is none of gRPC, without a body. */
  status(code: number): Buffer {
    return this.emptied(named(STATUS_NAME, String(code)))
  }

  /** Fields as they are, after status 200 and the content type where nothing was sent before. */
  fields(fields: readonly (readonly [name: string, value: string])[], isFirst: boolean): Buffer {
    const written = fields.map(([name, value]) => literal(name, value))
    return this.emptied(Buffer.concat(isFirst ? [plainHeaders, ...written] : written))
  }

  private emptied(block: Buffer): Buffer {
    if (!this.mustEmptyTable) return block
    this.mustEmptyTable = false
    return Buffer.concat([EMPTY_TABLE, block])
  }
}

/** A field that is not to be kept, its name by its number. */
function named(name: number, value: string): Buffer {
  return Buffer.concat([number(name, 4), text(value)])
}

/** A field that is not to be kept. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([number(bytes.length, 7), bytes])
}

/** A number whose first bits are the last `bits` of a byte. */
function number(value: number, bits: number): Buffer {
  const mask = 2 ** bits - 1
  if (value < mask) return Buffer.from([value])
  const bytes = [mask]
  let rest = value - mask
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  bytes.push(rest)
  return Buffer.from(bytes)
}
