// The redirect pods look up codes in memory, then in the shared cache, then in the store. They do
// not write to the store, and load neither the pages nor the code that creates links.
import { createLinkFinder } from '../resolve/find-link.ts'
import {
  type BlockedChecks,
  blockedTargetsFiles,
  openBlockedTargets,
} from '../resolve/blocked/open-blocked-targets.ts'
import {
  blockedStatusSetting,
  blockedTargetsSetting,
  staleSecondsSetting,
} from '../resolve/settings.ts'
import { createAdminApp } from '../http/admin/app.ts'
import { noLimits } from '../http/limit-requests.ts'
import { openService, type Service } from '../http/open-service.ts'
import { createRedirectApp } from '../http/redirect/app.ts'
import { createRedirectFastPath } from '../http/redirect/get-code.ts'
import * as http from '../http/settings.ts'
import type { ConfigOf } from '../config/config.ts'
import { pause } from '../resilience/deadline.ts'
import { defineRole } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { retryUntilStopped } from '../resilience/retry-until-deadline.ts'
import {
  linkStoreDependentSettings,
  linkStoreSettings,
  openLinkStores,
} from '../stores/open-link-stores.ts'

const settings = {
  BASE_URL: http.publicBaseSetting,
  OWN_HOSTS: http.ownHostsSetting,
  PORT: http.publicPortSetting,
  ADMIN_PORT: http.adminPortSetting,
  REDIRECT_STATUS: http.redirectStatusSetting,
  STALE_SECONDS: staleSecondsSetting,
  BLOCKED_TARGETS: blockedTargetsSetting,
  BLOCKED_STATUS: blockedStatusSetting,
  ...linkStoreSettings,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

/** After this time the process is ready even if neither store nor cache has responded. */
const READY_MS_MAX = 60_000
/** A code that cannot exist: looked up to probe the store. */
const PROBE_CODE = '----------'

/** `redirect`. */
export const role = defineRole({
  name: 'redirect',
  about:
    'Redirects GET and HEAD requests for /{code}. Looks up links in its memory, in the cache at\n' +
    'REDIS_URL, and in Cassandra. While cache and Cassandra are both unavailable, it still\n' +
    'redirects the links that it has served within STALE_SECONDS.',
  settings,
  dependent: [...linkStoreDependentSettings, http.distinctPorts],
  files: [blockedTargetsFiles],
  run: async ({ config }) => {
    const service = await openService({
      role: 'redirect',
      config,
      dependencies: ['store', 'cache'],
    })
    serve(config, service, await openBlockedTargets(config.BLOCKED_TARGETS, service))
    return { stop: service.stop }
  },
})

function serve(config: Config, service: Service, blocked: BlockedChecks): void {
  const { log, metrics, health, publicHttp, adminHttp, signal } = service
  const { BASE_URL: baseUrl } = config
  const { cache, links } = openLinkStores(config, service)
  const finder = createLinkFinder({
    links,
    cache,
    nowMs: Date.now,
    metrics,
    isOnlyWriter: false,
    staleMs: config.STALE_SECONDS * 1000,
  })
  const fastPath = createRedirectFastPath({
    finder,
    limits: noLimits, // the edge applies them
    nowMs: Date.now,
    metrics,
    log,
    baseUrl,
    redirectStatus: config.REDIRECT_STATUS,
    isBlocked: blocked.redirectCheck(),
    blockedStatus: config.BLOCKED_STATUS,
    servedPaths: new Set(),
  })
  publicHttp.attach({ baseUrl, app: createRedirectApp({ log, baseUrl }), fastPath })
  adminHttp.attach({
    baseUrl,
    app: createAdminApp({ health, metrics, log, baseUrl, token: undefined }),
  })
  const firstReply = Promise.race([
    retryUntilStopped({ signal }, () => links.find(PROBE_CODE)),
    retryUntilStopped({ signal }, () => cache.probe()),
    pause(READY_MS_MAX, signal),
  ])
  service.readyAfter(firstReply)
}
