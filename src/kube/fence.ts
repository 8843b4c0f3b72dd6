// A fence around the API server: rejects writes unless this replica leads. Checked before each
// call, so a process that stalled longer than the Lease starts no further write.
import type { KubeApi } from './api.ts'
import { KubeError } from './kube-error.ts'

/** `api`; its writes are rejected unless `mayWrite()` returns true. */
export function fence(mayWrite: () => boolean, api: KubeApi): KubeApi {
  return {
    lines: api.lines,
    call(call) {
      if (call.method === 'GET' || mayWrite()) return api.call(call)
      const message = 'not leading: write rejected'
      return Promise.reject(new KubeError(message, { status: 0, reason: 'NotLeading' }))
    },
  }
}
