// Redirects from memory, compared with bare node:http that sends the same response, in turns on one
// core. With more than 100 links, all of them are compared with 100 of them, on the same process.
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { compare, type Contender } from './compare.ts'
import { createLinks } from './create-links.ts'
import { startFloor } from './floor-process.ts'
import { redirectLoad, sampleResponse } from './redirect-load.ts'
import { startLimited } from './limited-standalone.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

const GOAL = 0.9
const LINKS = 100
/** Many links may take 1.15 times the CPU time of LINKS. */
const GOAL_MANY = 1 / 1.15
/** Enough to read each link from SQLite, and for V8 to compile hot code. */
const WARM_UP_MS = 3000
const WARM_UP_MS_PER_LINK = 0.1

/** Runs the benchmark, from `clients` addresses that request `links` links in turn. */
export async function benchRedirect(
  options: BenchOptions & { readonly clients?: number; readonly links?: number },
): Promise<Report> {
  const { clients = 1, links = LINKS } = options
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const ours = await startLimited()
  const closing: Stop[] = [() => ours.stop()]
  try {
    const codes = await createLinks({ port: ours.port, links })
    const loadOf = (some: readonly string[]) => redirectLoad(ours.port, some, clients)
    const fewLinks = (): Contender => ({
      name: `${LINKS} links`,
      pid: ours.pid,
      load: loadOf(codes.slice(0, LINKS)),
    })
    const bare = async (): Promise<Contender> => {
      const floor = startFloor('redirect-floor.ts')
      closing.push(() => floor.stop())
      const response = await sampleResponse(`${ours.baseUrl}/${codes[0] ?? ''}`)
      const { port } = (await floor.request(response)) as { port: number }
      return { name: 'node:http', pid: floor.pid, load: redirectLoad(port, codes, clients) }
    }
    return await compare({
      bench: 'redirect',
      ...(links > LINKS
        ? { goal: GOAL_MANY, floor: fewLinks() }
        : { goal: GOAL, floor: await bare() }),
      ours: { name: 'standalone', pid: ours.pid, load: loadOf(codes) },
      options,
      warmUpMs: WARM_UP_MS + links * WARM_UP_MS_PER_LINK,
      conditions: { ...conditions, links, clients },
    })
  } finally {
    await stopInTurn(closing.toReversed())
  }
}
