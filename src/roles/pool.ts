// `curtail pool status`: the state of the code pools, through the admin API.
import * as z from 'zod'
import { callAdminApi } from '../clients/admin-client.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { jsonFlag } from '../process/command-line.ts'
import { defineRole } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const poolsShape = z.array(
  z.object({
    pool: z.string(),
    level: z.number(),
    low_water: z.number().nullable(),
    target: z.number().nullable(),
    claim_rate: z.number(),
    seconds_to_empty: z.number().nullable(),
  }),
)

/** `pool status`. */
export const role = defineRole({
  name: 'pool',
  about: 'status shows how many codes each pool contains, and how long they last.',
  commands: {
    status: {
      about: 'shows how many codes each pool contains, and how long they last at the measured rate',
      flags: jsonFlag,
    },
  },
  settings: clientSettings,
  run: async ({ config, args }) => {
    const target = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }
    const request = { method: 'GET', path: '/admin/pools' }
    const pools = await callAdminApi(target, request, poolsShape)
    process.stdout.write(args.flags.json ? `${JSON.stringify(pools)}\n` : renderPools(pools))
    return { exitCode: 0 }
  },
})

function renderPools(pools: z.output<typeof poolsShape>): string {
  const rows = pools.map((pool) => [
    pool.pool,
    String(pool.level),
    pool.low_water === null ? 'not set' : String(pool.low_water),
    pool.target === null ? 'not set' : String(pool.target),
    pool.claim_rate.toFixed(1),
    pool.seconds_to_empty === null ? 'not in use' : `${String(pool.seconds_to_empty)} s`,
  ])
  return renderTable(['POOL', 'LEVEL', 'LOW WATER', 'TARGET', 'CODES/S', 'EMPTY IN'], rows)
}
