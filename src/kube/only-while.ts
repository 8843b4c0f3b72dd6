// An API server that is written to only while a condition holds: who no longer leads is refused
// here, right before the call, also where the process has slept past its time.
import type { KubeApi } from './api.ts'
import { KubeError } from './kube-error.ts'

/** `api`, whose writes are refused where `holds` says no. */
export function onlyWhile(holds: () => boolean, api: KubeApi): KubeApi {
  return {
    lines: api.lines,
    call(call) {
      if (call.method === 'GET' || holds()) return api.call(call)
      const message = 'not leading: another may write'
      return Promise.reject(new KubeError(message, { status: 0, reason: 'NotLeading' }))
    },
  }
}
