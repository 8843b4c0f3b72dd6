// A fence that allows writes to the API server only while leading. It is checked right before each
// call, so a process that stalled longer than the Lease cannot write.
import type { KubeApi } from './api.ts'
import { KubeError } from './kube-error.ts'

/** `api`; its writes are rejected unless `mayWrite()` returns true. */
export function fence(mayWrite: () => boolean, api: KubeApi): KubeApi {
  return {
    lines: api.lines,
    call(call) {
      if (call.method === 'GET' || mayWrite()) return api.call(call)
      const message = 'not leading: another may write'
      return Promise.reject(new KubeError(message, { status: 0, reason: 'NotLeading' }))
    },
  }
}
