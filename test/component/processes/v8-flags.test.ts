// A service changes a flag of V8, but only after its start: V8 rejects compiled modules that were
// written with other flags.
import { expect, test } from '@jest/globals'
import { startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 120_000

/** A module that, on SIGUSR2, reports whether the flags have changed since it was loaded. */
const probe = `data:text/javascript,${encodeURIComponent(`
import { cachedDataVersionTag } from 'node:v8'
const atLoad = cachedDataVersionTag()
process.on('SIGUSR2', () => {
  process.stderr.write('changed: ' + (cachedDataVersionTag() !== atLoad))
})`)}`
const NODE_OPTIONS = `--import=${probe}`

test(
  'a service changes the flags of V8 after its start',
  async () => {
    const service = await startStandalone({ env: { NODE_OPTIONS } })
    try {
      let output = ''
      service.child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
      await waitFor('changed flags', () => {
        service.child.kill('SIGUSR2')
        return output.includes('changed: true')
      })
      expect(output).toContain('changed: true')
    } finally {
      await service.stop()
    }
  },
  TEST_MS_MAX,
)
