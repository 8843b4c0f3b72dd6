{{/* The shipped limits of the edge, as RateLimitPolicies, as a rules file, and in Envoy. */}}

{{/* (root): the effective limits, as YAML; the defaults apply to values of earlier releases too. */}}
{{- define "curtail.limits" -}}
{{- $limits := dict "createTotalPerSecond" 400 "createTotalBurst" 1000 "createPerSecond" 2 "createBurst" 20 -}}
{{- $limits = merge $limits (dict "redirectPerSecond" 200 "redirectBurst" 500) -}}
{{- $limits = merge $limits (dict "reportPerHour" 12 "reportBurst" 10) -}}
{{- $limits = merge $limits (dict "unknownIpv4PerMinute" 300 "unknownIpv6PerMinute" 60) -}}
{{- range $name, $value := .Values.ratelimit.limits -}}
{{- if $value }}{{ $_ := set $limits $name $value }}{{ end -}}
{{- end -}}
{{- range $name, $value := $limits }}
{{ $name }}: {{ $value | int }}
{{- end -}}
{{- end -}}

{{/* (root): the specifications of the policies by name, as YAML. */}}
{{- define "curtail.policies" -}}
{{- $limits := include "curtail.limiterLimits" . | fromYaml -}}
creates:
  match: [{ key: route, value: create }]
  limits:
    - { name: creates, algorithm: TokenBucket, requests: {{ $limits.createTotalPerSecond | int }}, window: 1s, burst: {{ $limits.createTotalBurst | int }} }
creates-per-client:
  match: [{ key: route, value: create }, { key: client }]
  limits:
    - { name: creates-per-client, algorithm: TokenBucket, requests: {{ $limits.createPerSecond | int }}, window: 1s, burst: {{ $limits.createBurst | int }} }
reports-per-client:
  match: [{ key: route, value: report }, { key: client }]
  limits:
    - { name: reports-per-client, algorithm: TokenBucket, requests: {{ $limits.reportPerHour | int }}, window: 1h, burst: {{ $limits.reportBurst | int }} }
redirects-per-client:
  match: [{ key: route, value: redirect }, { key: client }]
  limits:
    - { name: redirects-per-client, algorithm: TokenBucket, requests: {{ $limits.redirectPerSecond | int }}, window: 1s, burst: {{ $limits.redirectBurst | int }} }
unknown-codes-per-ipv4-client:
  match: [{ key: route, value: unknown }, { key: family, value: ipv4 }, { key: client }]
  limits:
    - { name: unknown-codes-per-ipv4-client, algorithm: SlidingWindowCounter, requests: {{ $limits.unknownIpv4PerMinute | int }}, window: 1m }
unknown-codes-per-ipv6-client:
  match: [{ key: route, value: unknown }, { key: family, value: ipv6 }, { key: client }]
  limits:
    - { name: unknown-codes-per-ipv6-client, algorithm: SlidingWindowCounter, requests: {{ $limits.unknownIpv6PerMinute | int }}, window: 1m }
{{- end -}}

{{/* (root): the rules file with the same limits: the file of the edge, with the numbers replaced. */}}
{{- define "curtail.shippedRules" -}}
{{- $rules := .Files.Get "files/rate-limits.yaml" -}}
{{- range $name, $policy := include "curtail.policies" . | fromYaml -}}
{{- $limit := first $policy.limits -}}
{{- $fields := printf `(name: %s\n(?: +(?:algorithm|unit|requests_per_unit): .*\n)*? +` $name -}}
{{- $rules = regexReplaceAll (print $fields `requests_per_unit: )\d+`) $rules (printf "${1}%d" (int $limit.requests)) -}}
{{- with $limit.burst -}}
{{- $rules = regexReplaceAll (print $fields `burst: )\d+`) $rules (printf "${1}%d" (int .)) -}}
{{- end -}}
{{- end -}}
{{- $rules -}}
{{- end -}}

{{/* `true` if the limiters receive their rules from RateLimitPolicies, else empty. */}}
{{- define "curtail.usesPolicies" -}}
{{- if ne (toString (.Values.ratelimit.policies).enabled) "false" -}}
{{- if and (eq .Values.pools.mode "controller") (include "curtail.hasShippedLimits" .) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* `true` if the values set no other source of rules, else empty. */}}
{{- define "curtail.hasShippedLimits" -}}
{{- $limiter := .Values.ratelimit -}}
{{- if not (or $limiter.rules $limiter.existingRules ($limiter.xds).server) -}}
true
{{- end -}}
{{- end -}}

{{/* (root): the grants of domains to namespaces, the first one for the release's policies, as JSON. */}}
{{- define "curtail.domainGrants" -}}
{{- $own := dict "domain" "edge" "namespaces" (list (include "curtail.namespace" .)) -}}
{{- prepend (default list .Values.ratelimit.domains) $own | toJson -}}
{{- end -}}

{{/* (root): the namespaces whose policies the controller compiles, as a JSON list. */}}
{{- define "curtail.policyNamespaces" -}}
{{- $namespaces := list -}}
{{- if include "curtail.usesPolicies" . -}}
{{- range include "curtail.domainGrants" . | fromJsonArray }}{{ $namespaces = concat $namespaces .namespaces }}{{ end -}}
{{- end -}}
{{- uniq $namespaces | toJson -}}
{{- end -}}

{{/* (root): how many bytes of rules the policies of all these namespaces may have: the sum of sharesOf in src/policies/shares.ts. */}}
{{- define "curtail.policyBytes" -}}
{{- $shares := dict -}}
{{- range $grant := include "curtail.domainGrants" . | fromJsonArray -}}
{{- range $grant.namespaces }}{{ $_ := set $shares . (max (int $grant.bytes) (get $shares . | int)) }}{{ end -}}
{{- end -}}
{{- $sum := 0 -}}
{{- range $shares }}{{ $sum = add $sum (default 36700 .) }}{{ end -}}
{{- $sum -}}
{{- end -}}

{{/* The Secret with the last version of the rules, which the controller writes. */}}
{{- define "curtail.versionSecret" -}}
{{ include "curtail.fullname" . }}-ratelimit-version
{{- end -}}

{{/* Environment of limiters that receive the rules from the controller. */}}
{{- define "curtail.policiesEnv" }}
- { name: CONFIG_TYPE, value: GRPC_XDS_SOTW }
- { name: CONFIG_GRPC_XDS_SERVER_URL, value: "{{ include "curtail.host" (list . "controller") }}:18000" }
- name: CONFIG_GRPC_XDS_NODE_ID
  valueFrom:
    fieldRef: { fieldPath: metadata.name }
# Only the leader of the controller listens: limiters retry until they reach it.
- { name: CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL, value: 500ms }
- { name: XDS_CLIENT_BACKOFF_INITIAL_INTERVAL, value: 500ms }
- { name: XDS_CLIENT_BACKOFF_MAX_INTERVAL, value: 5s }
- { name: XDS_FALLBACK_VERSION, value: /etc/curtail/xds-version/version.pb.gz }
{{- end -}}

{{/* (root): the local limits of Envoy, as YAML: those of the values, else the shipped limits. */}}
{{- define "curtail.localLimits" -}}
{{- $given := .Values.edge.localLimits -}}
{{- range $name, $limit := include "curtail.limits" . | fromYaml -}}
{{- if not (hasPrefix "unknown" $name) }}
{{ $name }}: {{ get $given $name | default $limit | int }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (root): the errors in the limits, as a JSON list. */}}
{{- define "curtail.limitFaults" -}}
{{- $limiter := .Values.ratelimit -}}
{{- $faults := list -}}
{{- if eq (toString ($limiter.policies).enabled) "true" -}}
{{- if not (include "curtail.hasShippedLimits" .) -}}
{{- $faults = append $faults "ratelimit.rules, ratelimit.existingRules and ratelimit.xds.server must be empty if ratelimit.policies.enabled is true" -}}
{{- end -}}
{{- if ne .Values.pools.mode "controller" -}}
{{- $faults = append $faults (printf "pools.mode must be controller if ratelimit.policies.enabled is true: without the controller, no rules are sent; it is %s" .Values.pools.mode) -}}
{{- end -}}
{{- end -}}
{{- if and $limiter.domains (not (include "curtail.usesPolicies" .)) -}}
{{- $faults = append $faults "ratelimit.domains must be empty if the rules do not come from RateLimitPolicies (see ratelimit.policies.enabled)" -}}
{{- end -}}
{{- if gt (include "curtail.policyNamespaces" . | fromJsonArray | len) 100 -}}
{{- $faults = append $faults "ratelimit.domains must name at most 100 namespaces, with that of the release" -}}
{{- else if gt (include "curtail.policyBytes" . | int) 3670016 -}}
{{- $faults = append $faults (printf "ratelimit.domains must give its namespaces, with that of the release, at most 3670016 bytes of rules; they have %s: lower some bytes, 36700 by default" (include "curtail.policyBytes" .)) -}}
{{- end -}}
{{- if include "curtail.hasShippedLimits" . -}}
{{- $local := include "curtail.localLimits" . | fromYaml -}}
{{- range $name, $limit := include "curtail.limits" . | fromYaml -}}
{{- if and (hasKey $local $name) (lt (get $local $name | int) (int $limit)) -}}
{{- $faults = append $faults (printf "edge.localLimits.%s must be null or at least %d, as ratelimit.limits.%s: it is %d" $name (int $limit) $name (get $local $name | int)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}
