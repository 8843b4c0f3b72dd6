// Redirects of codes that neither the process nor Redis has cached: Redis is queried, Cassandra is
// read, Redis is filled. Compared with bare node:http and the same read through the driver, in
// turns on one core.
import { startRole } from '../../test/kit/processes/role-process.ts'
import { KEYSPACE, startCassandraSetup } from './cassandra-setup.ts'
import type { ColdFloorTask } from './cold-floor.ts'
import { compare } from './compare.ts'
import type { Load } from './drive.ts'
import { filledCode, fillLinks } from './fill-links.ts'
import { startFloor } from './floor-process.ts'
import { redirectLoad, sampleResponse } from './redirect-load.ts'
import { moveToGeneratorCore, onServerCore } from './pinning.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

/** The design sets no goal; below this ratio a cold code costs more than two reads. */
const GOAL = 0.5
/** More than the service can resolve, because each code is cold only once. */
const LINKS_PER_SECOND = 8000
const WARM_UP_SECONDS = 4

/** Runs the benchmark. */
export async function benchCold(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const stops: (() => Promise<void>)[] = []
  try {
    const { cassandra, env } = await startCassandraSetup(stops, { codes: 0 })
    const { contactPoints, port, localDc } = cassandra
    const spans = options.repetitions * options.seconds
    const count = LINKS_PER_SECOND * (spans + WARM_UP_SECONDS)
    await fillLinks({ contactPoints, port, localDc, count, log: options.log })
    const codes = Array.from({ length: count }, (_, i) => filledCode(i))
    const ours = await startRole({ role: 'redirect', wrapper: onServerCore, env })
    stops.unshift(() => ours.stop())
    const floor = startFloor('cold-floor.ts')
    stops.unshift(() => floor.stop())
    const ourPort = Number(ours.ready['port'])
    const sample = await sampleResponse(`http://127.0.0.1:${ourPort}/${codes[0] ?? ''}`)
    const task: ColdFloorTask = { ...sample, contactPoints, port, localDc, keyspace: KEYSPACE }
    const reply = (await floor.request(task)) as { port: number }
    return await compare({
      bench: 'cold',
      goal: GOAL,
      floor: { name: 'node:http + read', pid: floor.pid, load: coldLoad(reply.port, codes) },
      ours: { name: 'redirect', pid: ours.pid, load: coldLoad(ourPort, codes) },
      options,
      conditions: { ...conditions, links: count, 'Cassandra nodes': 1 },
    })
  } finally {
    for (const stop of stops) await stop()
  }
}

/** A load that requests each code once over all its spans. */
export function coldLoad(
  port: number,
  codes: readonly string[],
  expectedStatuses: readonly number[] = [302],
): Omit<Load, 'msMax'> {
  const load = redirectLoad(port, codes)
  let sent = 0
  return {
    ...load,
    expectedStatuses,
    request: () => {
      sent++
      return load.request()
    },
    get requestsMax() {
      return Math.max(0, codes.length - 1 - sent)
    },
  }
}
