// Parses spans from OTLP JSON, and renders the path of each in its trace.

/** A received span. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly id: string
  /** Empty for the root span of a trace. */
  readonly parentId: string
  /** The service that created it. */
  readonly service: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'other'
  /** Integers are strings, as in OTLP JSON. */
  readonly attributes: Readonly<Record<string, string>>
  readonly isError: boolean
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind?: number
  readonly attributes?: readonly Attribute[]
  readonly status?: { readonly code?: number }
}

interface Otlp {
  readonly resourceSpans?: readonly {
    readonly resource: { readonly attributes?: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

const kinds: Readonly<Record<number, ReceivedSpan['kind']>> = {
  1: 'internal',
  2: 'server',
  3: 'client',
}
const ERROR = 2

/** Parses the spans of one OTLP export request. */
export function readSpans(text: string): ReceivedSpan[] {
  const { resourceSpans = [] } = JSON.parse(text) as Otlp
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = attributesOf(resource.attributes)['service.name'] ?? ''
    const spans = scopeSpans.flatMap((scope) => scope.spans)
    return spans.map((span) => ({
      traceId: span.traceId,
      id: span.spanId,
      parentId: span.parentSpanId ?? '',
      service,
      name: span.name,
      kind: kinds[span.kind ?? 0] ?? 'other',
      attributes: attributesOf(span.attributes),
      isError: span.status?.code === ERROR,
    }))
  })
}

function attributesOf(attributes: readonly Attribute[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, renderValue(value)]))
}

function renderValue(value: Attribute['value']): string {
  const [one] = Object.values(value)
  return typeof one === 'string' ? one : JSON.stringify(one ?? null)
}

/** The path from the root span to this one, such as `edge: ingress > create: POST /`. */
export function pathTo(span: ReceivedSpan, trace: readonly ReceivedSpan[]): string {
  const own = `${span.service.replace('curtail-', '')}: ${span.name}`
  if (span.parentId === '') return own
  const parent = trace.find(({ id }) => id === span.parentId)
  return `${parent === undefined ? '(no parent)' : pathTo(parent, trace)} > ${own}`
}
