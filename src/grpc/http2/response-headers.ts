// Encodes the field blocks (HPACK) of gRPC responses. The fields of successful calls are always the
// same: the first response adds them to the client's dynamic table, unless that is smaller than the
// default, and each later response takes one byte per field.

const CONTENT_TYPE = 'application/grpc'
/** The encoded field `:status: 200`, and indices of names, from HPACK's static table. */
const STATUS_200 = 0x88
const STATUS_NAME = 8
const CONTENT_TYPE_NAME = 31
/** A dynamic table size update to 0, which clears the table. */
const CLEAR_TABLE = Buffer.from([0x20])
const DEFAULT_TABLE_BYTES = 4096

const plainHeaders = Buffer.concat([
  Buffer.from([STATUS_200]),
  indexedName(CONTENT_TYPE_NAME, CONTENT_TYPE),
])
const plainTrailers = literal('grpc-status', '0')
/** Adds the content type to the client's table. */
const firstHeaders = Buffer.concat([
  Buffer.from([STATUS_200, 0x40 | CONTENT_TYPE_NAME]),
  encodeString(CONTENT_TYPE),
])
/** Adds the status to the client's table. */
const firstTrailers = Buffer.concat([
  Buffer.from([0x40]),
  encodeString('grpc-status'),
  encodeString('0'),
])
/** The encoded newest field of the dynamic table; the next number is the field before it. */
const NEWEST_INDEX = 0x80 | 62
/** Used while the table contains only the content type. */
const secondHeaders = Buffer.from([STATUS_200, NEWEST_INDEX])
const indexedHeaders = Buffer.from([STATUS_200, NEWEST_INDEX + 1])
const indexedTrailers = Buffer.from([NEWEST_INDEX])

/** Encodes the blocks of one connection, which must be sent in the order of the calls. */
export class ResponseHeaders {
  private fieldsIndexed = 0
  private usesNoTable = false
  private mustClearTable = false

  /** Applies the client's SETTINGS_HEADER_TABLE_SIZE. */
  setHeaderTableSize(bytes: number): void {
    if (bytes >= DEFAULT_TABLE_BYTES || this.usesNoTable) return
    this.usesNoTable = true
    this.mustClearTable = true
  }

  /** Status 200 and the content type. */
  headers(): Buffer {
    if (this.usesNoTable) return this.withTableUpdate(plainHeaders)
    if (this.fieldsIndexed === 2) return indexedHeaders
    if (this.fieldsIndexed === 1) return secondHeaders
    this.fieldsIndexed = 1
    return firstHeaders
  }

  /** The trailers of a successful call. */
  trailers(): Buffer {
    if (this.usesNoTable) return this.withTableUpdate(plainTrailers)
    if (this.fieldsIndexed === 2) return indexedTrailers
    this.fieldsIndexed = 2
    return firstTrailers
  }

  /** A plain HTTP response without a body. */
  status(code: number): Buffer {
    return this.withTableUpdate(indexedName(STATUS_NAME, String(code)))
  }

  /** Literal fields, after status 200 and the content type if they are the first block. */
  fields(fields: readonly (readonly [name: string, value: string])[], isFirst: boolean): Buffer {
    const written = fields.map(([name, value]) => literal(name, value))
    return this.withTableUpdate(Buffer.concat(isFirst ? [plainHeaders, ...written] : written))
  }

  private withTableUpdate(block: Buffer): Buffer {
    if (!this.mustClearTable) return block
    this.mustClearTable = false
    return Buffer.concat([CLEAR_TABLE, block])
  }
}

/** A literal field without indexing, with an indexed name. */
function indexedName(name: number, value: string): Buffer {
  return Buffer.concat([encodeInteger(name, 4), encodeString(value)])
}

/** A literal field without indexing. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), encodeString(name), encodeString(value)])
}

function encodeString(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([encodeInteger(bytes.length, 7), bytes])
}

/** An integer with a prefix of `bits` bits (RFC 7541 §5.1). */
function encodeInteger(value: number, bits: number): Buffer {
  const mask = 2 ** bits - 1
  if (value < mask) return Buffer.from([value])
  const bytes = [mask]
  let rest = value - mask
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  bytes.push(rest)
  return Buffer.from(bytes)
}
