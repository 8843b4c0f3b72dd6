// The container of envoyproxy/ratelimit in the Deployment that Envoy Gateway renders, and rules and
// calls in the shape that it generates.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

interface Container {
  readonly command: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number }
  readonly readinessProbe: { readonly httpGet: { readonly path: string } }
}

interface Deployment {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly [Container] } }
  }
}

const path = new URL('envoy-gateway-deployment.yaml', import.meta.url)
const deployment = parse(readFileSync(path, 'utf8')) as Deployment
const [container] = deployment.spec.template.spec.containers

/** How the container starts. */
export const envoyGatewayContainer = {
  command: container.command,
  env: Object.fromEntries(container.env.map(({ name, value }) => [name, value])),
  /** As `uid:gid`. */
  user: `${container.securityContext.runAsUser}:${container.securityContext.runAsGroup}`,
  healthPath: container.readinessProbe.httpGet.path,
}

/** The settings that Envoy Gateway adds if tracing is enabled; without the collector. */
export const envoyGatewayTracing = {
  TRACING_ENABLED: 'true',
  TRACING_SERVICE_NAME: 'envoy-ratelimit',
  TRACING_SERVICE_NAMESPACE: 'envoy-gateway-system',
  TRACING_SERVICE_INSTANCE_ID: 'envoy-ratelimit-5d8f9-x2x7k',
  TRACING_SAMPLING_RATE: '1.0',
}

const domain = 'default/eg/http'
const route = 'httproute/default/shop/rule/0/match/0/shop_example'
const match = 'rule-0-match-0'
const limit = { unit: 'HOUR', requestsPerUnit: 1 }

/** A resource of Envoy Gateway: one request per hour to a route. */
export const gatewayConfig = {
  name: domain,
  domain,
  descriptors: [
    {
      key: route,
      value: route,
      descriptors: [{ key: match, value: match, rateLimit: limit }],
    },
  ],
}

/** A call for a request to that route. */
export const gatewayRequest = {
  domain,
  descriptors: [{ entries: [route, match].map((key) => ({ key, value: key })) }],
}

/** The labels of that rule's metrics. */
export const gatewayLabels = `domain="${domain}",key1="${route}_${route}",key2="${match}_${match}"`
