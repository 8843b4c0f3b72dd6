// Settings of the controller for RateLimitPolicies; without ADS_PORT it does not watch them.
import * as z from 'zod'
import { type ConfigOf, dependentSettings, type Setting } from '../../config/config.ts'
import { optionalString } from '../../config/settings.ts'
import type { DomainGrant } from '../../policies/policy.ts'
import { findTlsProblems, type TlsFiles } from '../../process/tls-files.ts'
import { NAME_PATTERN } from '../settings.ts'
import { parseGrants } from './parse-grants.ts'

/** Settings of RateLimitPolicies. */
export const policySettings = {
  ADS_PORT: {
    about: 'port on which the leader sends the rules of RateLimitPolicies to limiters, by xDS',
    allowed: 'an integer from 0 to 65535',
    fallback: 'unset: RateLimitPolicies are not watched',
    schema: z
      .string()
      .regex(/^\d{1,5}$/)
      .transform(Number)
      .pipe(z.int().max(65_535))
      .optional(),
  },
  RATELIMIT_DOMAINS: optionalString(
    'which namespaces may write RateLimitPolicies for which domain; required with ADS_PORT',
  ),
  ADS_TLS_CERT: optionalString('PEM file of the certificate of ADS_PORT; without it, plaintext'),
  ADS_TLS_KEY: optionalString('PEM file of the key of ADS_TLS_CERT'),
  ADS_TLS_CLIENT_CA: optionalString('PEM file of the CA certificates that verify limiters'),
  ADS_VERSION_SECRET: {
    about: 'name of a Secret in the namespace of the pod, in which the leader stores the rules',
    allowed: 'up to 63 lower-case letters, digits and -',
    fallback: 'unset: the rules are not stored',
    schema: z.string().regex(NAME_PATTERN).optional(),
  },
} as const satisfies Readonly<Record<string, Setting<unknown>>>

type PolicyConfig = ConfigOf<typeof policySettings>

/** What the settings configure. */
export interface PolicyOptions {
  readonly port: number
  readonly tls: TlsFiles | undefined
  readonly grants: readonly DomainGrant[]
  /** The name of the Secret that contains the newest version; `undefined`: none. */
  readonly secret: string | undefined
}

/** The options; `undefined` if RateLimitPolicies are not watched. */
export function policyOptionsOf(config: PolicyConfig): PolicyOptions | undefined {
  const { ADS_PORT: port, RATELIMIT_DOMAINS: domains } = config
  if (port === undefined || domains === undefined) return undefined
  const { ADS_TLS_CERT: certificate, ADS_TLS_KEY: key, ADS_TLS_CLIENT_CA: authorities } = config
  const tls = certificate === undefined ? undefined : { certificate, key, authorities }
  const { grants } = parseGrants(domains)
  return { port, tls, grants, secret: config.ADS_VERSION_SECRET }
}

/** The checks of settings that depend on each other. */
export const policyDependentSettings = [dependentSettings(policySettings, problemsOf)]

function problemsOf(config: PolicyConfig): string[] {
  const { ADS_PORT: port, RATELIMIT_DOMAINS: domains } = config
  const { ADS_TLS_CERT: certificate, ADS_TLS_KEY: key, ADS_TLS_CLIENT_CA: authority } = config
  const problems = domains === undefined ? [] : [...parseGrants(domains).problems]
  if ((port === undefined) !== (domains === undefined))
    problems.push('ADS_PORT and RATELIMIT_DOMAINS require each other: set both, or neither')
  if ((certificate === undefined) !== (key === undefined))
    problems.push('ADS_TLS_CERT and ADS_TLS_KEY require each other: set both, or neither')
  if (authority !== undefined && certificate === undefined)
    problems.push('ADS_TLS_CLIENT_CA requires ADS_TLS_CERT and ADS_TLS_KEY')
  if (config.ADS_VERSION_SECRET !== undefined && port === undefined)
    problems.push('ADS_VERSION_SECRET requires ADS_PORT and RATELIMIT_DOMAINS')
  if (port === undefined) return problems // the files are not used
  const files = findTlsProblems({
    certificate: ['ADS_TLS_CERT', certificate],
    key: ['ADS_TLS_KEY', key],
    authorities: ['ADS_TLS_CLIENT_CA', authority],
  })
  return [...problems, ...files]
}
