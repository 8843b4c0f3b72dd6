// A call of ShouldRateLimit: parses the request, decides, and encodes the response. Every error
// results in a response, which omits the cause of a defect. Independent of transports.
import { type DecideLimits, LimitRequestError } from '../limits/verdict.ts'
import { readRequest } from './read-request.ts'
import type { UnaryResponse } from './http2/status-codes.ts'
import { writeVerdict } from './write-verdict.ts'

/** The status codes of responses. */
type CallCode = 'OK' | 'INVALID_ARGUMENT' | 'INTERNAL'

/** The response of a call. */
type CallResponse = UnaryResponse & { readonly code: CallCode }

/** The dependencies of the call handler. */
export interface CallDeps {
  readonly decide: DecideLimits
  /** Called for every completed call. */
  readonly onCall: (call: { readonly seconds: number; readonly code: CallCode }) => void
  /** Called with every internal error: a defect of the limiter. */
  readonly onDefect: (error: unknown) => void
}

/** Longer messages for the client are truncated. */
const DETAILS_CHARACTERS_MAX = 1000

/** Creates the handler of calls, which never rejects. */
export function createCallHandler(deps: CallDeps): (message: Buffer) => Promise<CallResponse> {
  return async (message) => {
    const startedMs = performance.now()
    const response = await handleCall(deps, message)
    deps.onCall({ seconds: (performance.now() - startedMs) / 1000, code: response.code })
    return response
  }
}

async function handleCall({ decide, onDefect }: CallDeps, message: Buffer): Promise<CallResponse> {
  try {
    return { code: 'OK', message: writeVerdict(await decide(readRequest(message))) }
  } catch (error) {
    if (error instanceof LimitRequestError) {
      return { code: 'INVALID_ARGUMENT', details: detailsOf(error) }
    }
    onDefect(error)
    return { code: 'INTERNAL', details: 'the limiter cannot decide the call' }
  }
}

/** The truncated message; a lone surrogate, such as half of a truncated pair, becomes U+FFFD. */
function detailsOf(error: LimitRequestError): string {
  return error.message.slice(0, DETAILS_CHARACTERS_MAX).toWellFormed()
}
