// Draws ranks of links by Zipf's law: a few often, most rarely.

/** Returns a function that draws a rank from 0 to `count` − 1. Allocates `count` × 8 bytes. */
export function drawZipf(given: {
  readonly count: number
  readonly exponent: number
  /** Uniform in [0, 1). */
  readonly random: () => number
}): () => number {
  const { count, exponent, random } = given
  const sums = new Float64Array(count)
  let sum = 0
  for (let rank = 0; rank < count; rank++) {
    sum += (rank + 1) ** -exponent
    sums[rank] = sum
  }
  return () => {
    const drawn = random() * sum
    let low = 0
    let high = count - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] ?? sum) > drawn) high = middle
      else low = middle + 1
    }
    return low
  }
}
