// Blocked targets: the time to load a list of a million entries, its memory and its lookups; and
// redirects from memory of one standalone process, whose list has a million entries and none in
// turns, because two processes differ by more than the entries cost. The cost of an empty list is
// not measured.
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitFor } from '../../test/kit/wait-for.ts'
import type { ListFigures } from './blocked-list.ts'
import { compare } from './compare.ts'
import { createLinks } from './create-links.ts'
import { startFloor } from './floor-process.ts'
import { startLimited } from './limited-standalone.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { redirectLoad } from './redirect-load.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'
import { ENTRIES, entryOf } from './sample-entries.ts'

const GOAL_MB = 60
const GOAL_NS = 500
/** Of requests per CPU-second with the entries, to those without. */
const GOAL = 0.99
const LINKS = 100
const LOAD_MS_MAX = 60_000

/** Runs the benchmark. */
export async function benchBlocked(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options), entries: ENTRIES }
  const folder = await mkdtemp(join(tmpdir(), 'curtail-bench-'))
  try {
    const path = join(folder, 'blocked-targets.txt')
    await writeFile(path, Array.from({ length: ENTRIES }, (_, i) => `${entryOf(i)}\n`).join(''))
    const figures = await measureList(path, options)
    const report = await compareRedirects(path, options, conditions)
    return {
      ...report,
      verdict: [...verdictOf(figures), ...report.verdict],
      figures: { list: figures, redirects: report.figures },
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function measureList(path: string, { repetitions, log }: BenchOptions): Promise<ListFigures> {
  const list = startFloor('blocked-list.ts')
  try {
    const figures = (await list.request({ path, repetitions })) as ListFigures
    log(JSON.stringify(figures))
    return figures
  } finally {
    await list.stop()
  }
}

async function compareRedirects(
  path: string,
  options: BenchOptions,
  conditions: Report['conditions'],
): Promise<Report> {
  const active = `${path}.active`
  await writeFile(active, '')
  const server = await startLimited({ BLOCKED_TARGETS: active })
  try {
    const { pid, port, adminUrl } = server
    const load = redirectLoad(port, await createLinks({ port, links: LINKS }))
    const isActive = async (entries: number) => {
      const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
      return metrics.includes(`curtail_list_entries{list="blocked-targets"} ${entries}\n`)
    }
    let written = 0
    const prepare = async (entries: number) => {
      if (entries === written) return
      await writeFile(`${active}.new`, entries === 0 ? '' : await readFile(path))
      await rename(`${active}.new`, active)
      await waitFor('the list', () => isActive(entries), LOAD_MS_MAX)
      written = entries
    }
    return await compare({
      bench: 'blocked',
      goal: GOAL,
      floor: { name: 'without entries', pid, load, prepare: () => prepare(0) },
      ours: { name: 'with entries', pid, load, prepare: () => prepare(ENTRIES) },
      options,
      conditions: { ...conditions, links: LINKS },
    })
  } finally {
    await server.stop()
  }
}

function verdictOf({ loadMs, residentMb, lookupNs }: ListFigures): string[] {
  const resultOf = (figure: number, goal: number) => (figure < goal ? 'reached' : 'NOT reached')
  const ns = lookupNs.others
  return [
    `Loading the list took ${loadMs.toFixed(0)} ms, in a thread`,
    `Resident memory of the list: ${residentMb.toFixed(0)} MB (10⁶ bytes); ` +
      `goal less than ${GOAL_MB} MB: ${resultOf(residentMb, GOAL_MB)}`,
    `CPU time of a lookup: the same target ${lookupNs.same.toFixed(0)} ns; ` +
      `others, blocked ${lookupNs.blocked.toFixed(0)} ns, not blocked ${ns.toFixed(0)} ns; ` +
      `goal less than ${GOAL_NS} ns: ${resultOf(ns, GOAL_NS)}`,
  ]
}
