// A call of ShouldRateLimit: bytes in, decision, bytes out. Whatever goes wrong is an answer too:
// the caller's fault with its sentence, a defect of ours without a word of it. Knows no transport.
import { type DecideLimits, LimitRequestError } from '../limits/verdict.ts'
import { readRequest } from './read-request.ts'
import type { UnaryAnswer } from './http2/status-codes.ts'
import { writeVerdict } from './write-verdict.ts'

/** Names of the codes of gRPC that a call ends with. */
type CallCode = 'OK' | 'INVALID_ARGUMENT' | 'INTERNAL'

/** What a call is answered. */
type CallAnswer = UnaryAnswer & { readonly code: CallCode }

/** What answering calls needs. */
export interface CallDeps {
  readonly decide: DecideLimits
  /** Told of every call once it is answered. */
  readonly onCall: (call: { readonly seconds: number; readonly code: CallCode }) => void
  /** Told of every error that is not the caller's. */
  readonly onDefect: (error: unknown) => void
}

/** A sentence for the caller is cut here. */
const DETAILS_CHARACTERS_MAX = 1000

/** Makes what answers calls; it never throws. */
export function answerCalls(deps: CallDeps): (message: Buffer) => Promise<CallAnswer> {
  return async (message) => {
    const begunMs = performance.now()
    const answer = await answerCall(deps, message)
    deps.onCall({ seconds: (performance.now() - begunMs) / 1000, code: answer.code })
    return answer
  }
}

async function answerCall({ decide, onDefect }: CallDeps, message: Buffer): Promise<CallAnswer> {
  try {
    return { code: 'OK', message: writeVerdict(await decide(readRequest(message))) }
  } catch (error) {
    if (error instanceof LimitRequestError) {
      return { code: 'INVALID_ARGUMENT', details: detailsOf(error) }
    }
    onDefect(error)
    return { code: 'INTERNAL', details: 'the limits could not be decided' }
  }
}

/** A half of a character would end the process where gRPC writes it. */
function detailsOf(error: LimitRequestError): string {
  return error.message.slice(0, DETAILS_CHARACTERS_MAX).toWellFormed()
}
