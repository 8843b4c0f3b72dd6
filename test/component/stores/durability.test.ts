// A 201 means stored: `kill -9` loses no acknowledged link (short form of `npm run storm -- kill`),
// and the real process syncs the write-ahead log between the commit of a link and its 201.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import {
  findStrace,
  parseTrace,
  straceArguments,
  type SystemCall,
} from '../../dependencies/strace.ts'
import { killRounds } from '../../soak/kill.ts'
import { createLinkRequest } from '../../kit/http/client.ts'
import { openConnection } from '../../kit/http/raw-http.ts'
import { newSeed } from '../../kit/random.ts'
import { startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 120_000
const INSTALL_MS_MAX = 600_000
const ROUNDS = 3
const SEQUENTIAL = 10
const CONCURRENT = 24
const GROUPS = 5

test(
  'kill -9 with 64 creates in flight loses no acknowledged link',
  async () => {
    const seed = newSeed()
    process.stdout.write(`kill, seed ${String(seed)}\n`)
    const sum = await killRounds({ rounds: ROUNDS, seed, log: () => undefined })
    expect(sum.kills).toBe(ROUNDS)
    expect(sum.checked).toBe(sum.acknowledged + sum.unacknowledged)
    process.stdout.write(`kill: ${JSON.stringify(sum)}\n`)
  },
  TEST_MS_MAX,
)

const isWal = (call: SystemCall) => call.file.endsWith('/curtail.db-wal')
const isSync = ({ name }: SystemCall) => name === 'fsync' || name === 'fdatasync'

/** The last page of a commit follows a frame header that contains the database's size. */
function commitsOf(calls: readonly SystemCall[]): SystemCall[] {
  const writes = calls.filter((call) => isWal(call) && call.name === 'pwrite64')
  return writes.filter((_, i) => {
    const header = writes[i - 1]
    return header?.bytes.length === 24 && header.bytes.readUInt32BE(4) > 0
  })
}

/** The system calls behind each 201; a target occurs only in the row of its link. */
function acknowledgements(calls: readonly SystemCall[]) {
  const commits = commitsOf(calls)
  const syncs = calls.filter((call) => isWal(call) && isSync(call) && call.result === 0)
  const created = calls.filter(({ file, bytes }) => {
    return file.startsWith('socket:') && bytes.includes('HTTP/1.1 201')
  })
  return created.flatMap((response) =>
    [...response.bytes.toString('latin1').matchAll(/Location: \S+\/(\S+)\r\n/g)].map(
      ([, alias]) => {
        const row = calls.find((call) => isWal(call) && call.bytes.includes(targetOf(alias ?? '')))
        const commit = commits.find(({ endLine }) => row !== undefined && endLine >= row.endLine)
        const sync = syncs.find(
          ({ startLine }) => commit !== undefined && startLine > commit.endLine,
        )
        return { alias, row, commit, sync, response }
      },
    ),
  )
}

const targetOf = (alias: string) => `https://example.com/target-of-${alias}.`

/** Creates links sequentially, then in concurrent groups; returns their aliases. */
async function createLinks(port: number): Promise<string[]> {
  const aliases: string[] = []
  const connections = await Promise.all(
    Array.from({ length: CONCURRENT }, () => openConnection(port)),
  )
  const create = async (count: number, hasKey: boolean) => {
    const group = aliases.length.toString(36).padEnd(6, '-')
    const responses = await Promise.all(
      connections.slice(0, count).map((connection, i) => {
        const alias = `a${group}${i.toString(36)}`
        aliases.push(alias)
        const headers = hasKey ? { 'Idempotency-Key': `key-${alias}` } : {}
        const body = { long_url: targetOf(alias), custom_alias: alias }
        return connection.exchange(createLinkRequest(body, headers))
      }),
    )
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201]))
  }
  for (let i = 0; i < SEQUENTIAL; i++) await create(1, i % 2 === 0)
  for (let i = 0; i < GROUPS; i++) await create(CONCURRENT, i % 2 === 0)
  for (const connection of connections) connection.close()
  return aliases
}

test(
  'a sync of the log lies between the commit of each link and its 201',
  async () => {
    await findStrace()
    const folder = await mkdtemp(join(tmpdir(), 'curtail-strace-'))
    const file = join(folder, 'trace')
    try {
      const names = ['fsync', 'fdatasync', 'pwrite64', 'write', 'writev', 'sendto', 'sendmsg']
      const service = await startStandalone({ wrapper: straceArguments(file, names) })
      const aliases = await createLinks(service.port)
      await service.stop()
      const exit = new RegExp(`^${String(service.pid)} +\\+\\+\\+ exited with 0`, 'm')
      await waitFor('the trace to be complete', async () => exit.test(await readFile(file, 'utf8')))
      const acknowledged = acknowledgements(parseTrace(await readFile(file, 'utf8')))
      expect(acknowledged.map(({ alias }) => alias).sort()).toEqual(aliases.sort())
      for (const { alias, row, commit, sync, response } of acknowledged) {
        const order = [
          row?.endLine,
          commit?.endLine,
          sync?.startLine,
          sync?.endLine,
          response.startLine,
        ]
        expect([alias, order]).toEqual([alias, order.map(() => expect.any(Number))])
        expect([alias, ...order]).toEqual([
          alias,
          ...[...order].sort((a, b) => Number(a) - Number(b)),
        ])
        expect(Number(sync?.endLine)).toBeLessThan(response.startLine)
      }
      // The test is meaningful only if some links shared a commit.
      expect(new Set(acknowledged.map(({ commit }) => commit?.endLine)).size).toBeLessThan(
        aliases.length,
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  TEST_MS_MAX + INSTALL_MS_MAX,
)
