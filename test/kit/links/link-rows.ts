// The rows of a table of links of any size, computed from their numbers, and sums by which two
// tables are compared, regardless of the order of their rows.
import { hash } from 'node:crypto'

/** A row of the table `links`; times in ms since the Unix epoch. */
export interface LinkRecord {
  readonly code: string
  readonly longUrl: string | null
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  readonly creatorId: number | null
  readonly writerId: string
  readonly disabledAtMs: number | null
  readonly deletedAtMs: number | null
}

/** The number of rows, and how many of them are active links to the host EVIL or its subdomains. */
export interface TableSize {
  readonly links: number
  readonly targets: number
}

/** The host whose links are disabled. */
export const EVIL = 'evil.example'

const CREATED_MS = Date.UTC(2026, 0, 31, 12)
const YEAR_MS = 365 * 86_400_000
const evilHosts = [EVIL, `www.${EVIL}`, `a.b.${EVIL}:8443`]
/** Some are similar to the other host, but not below it. */
const otherHosts = ['site.example', `not${EVIL}`, `${EVIL}.net`, 'example.com']

/** Whether the row with this number is one of the targets, which are spread evenly. */
export function isTarget(i: number, { links, targets }: TableSize): boolean {
  return Math.floor((i * targets) / links) !== Math.floor(((i - 1) * targets) / links)
}

/** The code of the row with this number. */
function codeAt(i: number): string {
  return `t${i.toString(36)}`
}

/** The row with this number. */
export function recordAt(i: number, size: TableSize): LinkRecord {
  const isEvil = isTarget(i, size)
  const hosts = isEvil ? evilHosts : otherHosts
  const isDeleted = !isEvil && i % 97 === 0
  return {
    code: codeAt(i),
    longUrl: isDeleted ? null : `https://${hosts[i % hosts.length] ?? ''}/${EVIL}/${i}?q=%7e`,
    createdAtMs: CREATED_MS + i,
    expiresAtMs: i % 10 === 0 ? CREATED_MS + 10 * YEAR_MS + i : null,
    creatorId: i % 3 === 0 ? 1 + (i % 1000) : null,
    writerId: `00000000-0000-4000-8000-${i.toString(16).padStart(12, '0')}`,
    disabledAtMs: !isEvil && i % 89 === 0 ? CREATED_MS + YEAR_MS / 2 : null,
    deletedAtMs: isDeleted ? CREATED_MS + YEAR_MS / 2 : null,
  }
}

/** Whether the row is an active link. */
export function isActive({ disabledAtMs, deletedAtMs }: LinkRecord): boolean {
  return disabledAtMs === null && deletedAtMs === null
}

/** The number of rows, and a checksum of their contents. */
interface RowSum {
  readonly rows: number
  readonly checksum: string
}

/** Sums rows in any order. */
interface RowSummer {
  add(contents: string): void
  result(): RowSum
}

const WORDS = 4

/** Creates a summer: the checksum is the sum of the rows' hashes, in 32-bit words. */
function createRowSummer(): RowSummer {
  const words = new Uint32Array(WORDS)
  let rows = 0
  return {
    add(contents) {
      const digest = hash('md5', contents, 'buffer')
      for (let at = 0; at < WORDS; at++) words[at] = (words[at] ?? 0) + digest.readUInt32LE(4 * at)
      rows++
    },
    result: () => ({ rows, checksum: [...words].map((word) => word.toString(16)).join('-') }),
  }
}

/** The sums of a table: all other rows, and the targets without the column `disabled_at`. */
export interface TableSums {
  readonly others: RowSum
  readonly targets: RowSum
  readonly disabledTargets: number
}

/** Sums the rows of a table. */
export function createTableSummer() {
  const [others, targets] = [createRowSummer(), createRowSummer()]
  let disabledTargets = 0
  return {
    add(record: LinkRecord) {
      // Independent of isTarget: by the URL parser.
      const host = URL.parse(record.longUrl ?? '')?.hostname ?? ''
      const { code, longUrl, createdAtMs, expiresAtMs, creatorId, writerId, deletedAtMs } = record
      const same = [code, longUrl, createdAtMs, expiresAtMs, creatorId, writerId, deletedAtMs]
      if (host === EVIL || host.endsWith(`.${EVIL}`)) {
        targets.add(JSON.stringify(same))
        if (record.disabledAtMs !== null) disabledTargets++
      } else others.add(JSON.stringify([...same, record.disabledAtMs]))
    },
    result: (): TableSums => ({
      others: others.result(),
      targets: targets.result(),
      disabledTargets,
    }),
  }
}
