// Reads QR codes of the versions 1 to 3 with error correction M, by ISO/IEC 18004: one block of
// bytes, without the correction of errors.

/** Whether each module is dark, by row and column, without the quiet zone. */
export type QrModules = readonly (readonly boolean[])[]

const masks: readonly ((row: number, column: number) => boolean)[] = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (_row, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => (Math.floor(row / 2) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
]
const BYTE_MODE = 4

/** The string of the code. Throws if it is not of this kind. */
export function readQr(modules: QrModules): string {
  const version = (modules.length - 17) / 4
  if (![1, 2, 3].includes(version)) throw new Error(`${modules.length} modules`)
  const format = numberOf(modules[8]?.slice(0, 5) ?? []) ^ 0b10101
  if (format >> 3 !== 0) throw new Error('not of error correction M')
  const mask = masks[format & 0b111]
  const bits = dataModules(modules.length).map(([row, column]) => {
    return (modules[row]?.[column] === true) !== mask?.(row, column)
  })
  if (numberOf(bits.slice(0, 4)) !== BYTE_MODE) throw new Error('not of bytes')
  const length = numberOf(bits.slice(4, 12))
  const bytes = Array.from({ length }, (_, at) => numberOf(bits.slice(12 + 8 * at, 20 + 8 * at)))
  return Buffer.from(bytes).toString('latin1')
}

function numberOf(bits: readonly boolean[]): number {
  return bits.reduce((value, bit) => value * 2 + Number(bit), 0)
}

/** The places of the data: pairs of columns from the right, upwards and downwards in turn. */
function dataModules(size: number): [number, number][] {
  const places: [number, number][] = []
  let isUpward = true
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right-- // the column of the timing pattern
    for (let step = 0; step < size; step++) {
      const row = isUpward ? size - 1 - step : step
      for (const column of [right, right - 1]) {
        if (!isFunctionModule(size, row, column)) places.push([row, column])
      }
    }
    isUpward = !isUpward
  }
  return places
}

function isFunctionModule(size: number, row: number, column: number): boolean {
  const [isTop, isBottom] = [row < 9, row >= size - 8]
  const [isLeft, isRight] = [column < 9, column >= size - 8]
  const isFinder = (isTop && (isLeft || isRight)) || (isBottom && isLeft)
  const isAligned = (at: number) => Math.abs(at - (size - 7)) <= 2
  const isAlignment = size > 21 && isAligned(row) && isAligned(column)
  return isFinder || isAlignment || row === 6 || column === 6
}
