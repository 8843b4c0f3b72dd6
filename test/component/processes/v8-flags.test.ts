// A service switches off an optimization of V8 (src/process/v8-workarounds.ts).
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
  'a service changes the flags of V8',
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
