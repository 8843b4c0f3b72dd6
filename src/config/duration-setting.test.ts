// Durations are parsed as in Go.
import { expect, test } from '@jest/globals'
import { durationSetting, parseDuration } from './duration-setting.ts'

test.each([
  ['0', 0],
  ['24h', 86_400_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1500],
  ['.5s', 500],
  ['5.s', 5000],
  ['300ms', 300],
  ['2us', 0.002],
  ['2µs', 0.002],
  ['1m1ms1ns', 60_001.000_001],
  ['-1m', -60_000],
  ['+1m', 60_000],
])('%s is parsed', (duration, ms) => {
  expect(parseDuration(duration)).toBeCloseTo(ms, 9)
})

test.each(['', '5', '1.5', 's', '1 h', '1h ', '1d', '1h30', '--1s', '1h-30m', '.s', '1e3s', '١s'])(
  '%j is not a duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined()
  },
)

test('a setting enforces its bounds and has its default when absent', () => {
  const { schema } = durationSetting('a time', { min: '1s', max: '1h', fallback: '10s' })
  const parse = (value: string | undefined) => schema.safeParse(value).data
  expect(['1s', '1h', undefined].map(parse)).toEqual([1000, 3_600_000, 10_000])
  expect(['999ms', '61m', '0', 'soon'].map(parse)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})
