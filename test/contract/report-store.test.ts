// Runs the contract on every store of reports.
import { jest } from '@jest/globals'
import { dayOf, receivedAtMs } from '../../src/links/report.ts'
import { createCassandraReportStore } from '../../src/stores/cassandra/report-store.ts'
import { createSqliteReportStore } from '../../src/stores/sqlite/report-store.ts'
import { createMemoryReportStore } from '../kit/stores/memory-report-store.ts'
import { openStatements, SETUP_MS_MAX } from './open-cassandra.ts'
import { openSqlite } from './open-sqlite.ts'
import {
  defineReportStoreTests,
  PER_DAY_MAX,
  type ReportStoreCase,
  START_MS,
} from './report-store.ts'

function fakeClock() {
  let nowMs = START_MS
  return {
    nowMs: () => nowMs,
    setNowMs: (to: number) => {
      nowMs = to
    },
  }
}

const stores: readonly ReportStoreCase[] = [
  {
    name: 'memory',
    open() {
      const { nowMs, setNowMs } = fakeClock()
      const reports = createMemoryReportStore(nowMs, PER_DAY_MAX)
      return Promise.resolve({ reports, setNowMs, close: () => Promise.resolve() })
    },
  },
  {
    name: 'sqlite',
    async open() {
      const { nowMs, setNowMs } = fakeClock()
      const { db, close } = await openSqlite()
      const reports = createSqliteReportStore(db, nowMs, PER_DAY_MAX)
      return { reports, setNowMs, swept: reports, close }
    },
  },
  {
    name: 'cassandra',
    async open() {
      const { nowMs, setNowMs } = fakeClock()
      const { cassandra, close } = await openStatements('reports_contract')
      const reports = createCassandraReportStore(cassandra, nowMs, PER_DAY_MAX)
      const cql = 'SELECT TTL(short_code) AS seconds FROM reports WHERE day = ? AND id = ?'
      return {
        reports,
        setNowMs,
        async secondsLeft({ id }) {
          const [row] = await cassandra.execute('page-read', cql, [dayOf(receivedAtMs(id)), id])
          return Number(row?.['seconds'])
        },
        close,
      }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineReportStoreTests)
