// Parses the query `domain=D&descriptor=k=v,k=v` of operators' requests.
import type { IncomingMessage } from 'node:http'
import type { Descriptor } from '../../limits/descriptor.ts'
import { DESCRIPTOR_SYNTAX, parseDescriptor } from '../../limits/parse-descriptor.ts'

/** Parses the query of a request. `fault` is the error in one sentence. */
export function parseDescriptorQuery({
  url = '',
}: Pick<IncomingMessage, 'url'>): { domain: string; descriptor: Descriptor } | { fault: string } {
  const { searchParams } = new URL(url, 'http://localhost')
  const domain = searchParams.get('domain') ?? ''
  const descriptor = parseDescriptor(searchParams.get('descriptor') ?? '')
  if (domain === '') return { fault: 'domain must not be empty' }
  if (descriptor === undefined) return { fault: `descriptor must be ${DESCRIPTOR_SYNTAX}` }
  return { domain, descriptor }
}
