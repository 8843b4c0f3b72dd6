// Loads a list of blocked targets in this process, and measures its memory and its lookups.
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BlockedTargets } from '../../src/links/blocked-targets.ts'
import {
  createBlockedTargetsLoader,
  THREAD_BYTES_MIN,
} from '../../src/resolve/blocked/load-blocked-targets.ts'
import { residentMbOf } from './process-figures.ts'
import { medianOf } from './report.ts'
import { blockedHost, ENTRIES } from './sample-entries.ts'

/** The figures of a list. */
export interface ListFigures {
  readonly loadMs: number
  /** The growth of the process by the list, without the memory of its first thread. */
  readonly residentMb: number
  /** CPU time of one lookup in ns, by the kind of target. */
  readonly lookupNs: Readonly<Record<keyof typeof targets, number>>
}

const LOOKUPS = 2_000_000
/** Different targets of a series of lookups, so that they are not all in the caches of the core. */
const TARGETS = 100_000
/** After this time, the memory of the thread is free. */
const SETTLE_MS = 1000

/** The targets of each series of lookups. */
const targets = {
  same: () => 'https://www.example.com/some/path?page=1',
  others: (i: number) => `https://www.shop${i}.example.org/some/path/${i}?page=1`,
  blocked: (i: number) => `https://www.${blockedHost(i)}/some/path`,
} as const

/** A load of the list at a path. */
interface Request {
  readonly path: string
  readonly repetitions: number
}

async function measure({ path, repetitions }: Request): Promise<ListFigures> {
  const loader = createBlockedTargetsLoader()
  // The first thread of a process takes memory once, also without a list.
  await writeFile(`${path}.empty`, '#'.repeat(THREAD_BYTES_MIN))
  await loader.load([`${path}.empty`])
  await sleep(SETTLE_MS)
  const beforeMb = residentMbOf(process.pid).anonymousMb
  const startMs = performance.now()
  const { value: list, entries } = await loader.load([path])
  const loadMs = performance.now() - startMs
  if (list === undefined || entries !== ENTRIES) throw new Error(`the list has ${entries} entries`)
  await sleep(SETTLE_MS)
  const residentMb = residentMbOf(process.pid).anonymousMb - beforeMb
  const lookupNs = (name: keyof typeof targets) => {
    const series = Array.from({ length: TARGETS }, (_, i) => asRead(targets[name](i)))
    const expected = name === 'blocked' ? TARGETS : 0
    if (series.filter((target) => list.has(target)).length !== expected) {
      throw new Error(`the list does not block as expected: ${name}`)
    }
    return medianOf(Array.from({ length: repetitions }, () => nsOf(list, series)))
  }
  return {
    loadMs,
    residentMb,
    lookupNs: {
      same: lookupNs('same'),
      others: lookupNs('others'),
      blocked: lookupNs('blocked'),
    },
  }
}

/** The target as a store returns it: the result of a concatenation would be slower to read. */
function asRead(target: string): string {
  return Buffer.from(target).toString('latin1')
}

/** The CPU time of a lookup, in ns. */
function nsOf(list: BlockedTargets, series: readonly string[]): number {
  const before = process.cpuUsage()
  for (let i = 0; i < LOOKUPS; i++) list.has(series[i % TARGETS] ?? '')
  return (process.cpuUsage(before).user * 1000) / LOOKUPS
}

process.on('message', (request: Request) => {
  void measure(request).then((figures) => process.send?.(figures))
})
