// Which server receives reports, and when. Time is simulated.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { CONTROL_PLANE, readDiscoveryRequest } from '../../protobuf/discovery.ts'
import { createReportSender } from './send-reports.ts'

let pending: string[]
let sent: string[]
beforeEach(() => {
  jest.useFakeTimers()
  pending = ['a=1']
  sent = []
})
afterEach(() => {
  jest.useRealTimers()
})

const open = () => createReportSender({ typeUrl: 'type/reports', take: () => pending.splice(0) })
const sendOn = (stream: number) => (message: Buffer) => {
  const { typeUrl, resourceNames } = readDiscoveryRequest(message)
  sent.push(`${stream}: ${typeUrl} ${resourceNames.join()}`)
}

test('a report is sent soon, and the next one a minute later, even on another stream', () => {
  const sender = open()
  sender.onResponse(CONTROL_PLANE, sendOn(1))
  jest.advanceTimersByTime(1000)
  expect(sent).toEqual(['1: type/reports a=1'])
  pending.push('a=2', 'b=3')
  sender.onClose()
  sender.onResponse(CONTROL_PLANE, sendOn(2))
  sender.onResponse(CONTROL_PLANE, sendOn(2))
  jest.advanceTimersByTime(59_000)
  expect(sent).toHaveLength(1)
  jest.advanceTimersByTime(1000)
  expect(sent.slice(1)).toEqual(['2: type/reports a=2,b=3'])
  jest.advanceTimersByTime(600_000)
  expect(sent).toHaveLength(2)
  sender.onClose()
  expect(jest.getTimerCount()).toBe(0)
})

test('a server that does not identify itself as the controller receives no report', () => {
  const sender = open()
  for (const controlPlane of ['', 'envoy-gateway']) sender.onResponse(controlPlane, sendOn(1))
  expect(jest.getTimerCount()).toBe(0)
  jest.advanceTimersByTime(600_000)
  expect([sent, pending]).toEqual([[], ['a=1']])
})
