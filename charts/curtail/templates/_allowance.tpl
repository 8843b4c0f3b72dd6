{{/* The allowance: redirects of each client that every edge pod admits without a call to the limiter. */}}

{{/*
(root): the settings and the limiter's share of the redirect rule, as YAML; with `burst: 0` if it is off.
The same arithmetic as splitRule in envoy/allowance.ts. Values of earlier releases have no edge.allowance.
*/}}
{{- define "curtail.allowance" -}}
{{- $edge := .Values.edge -}}
{{- $limits := include "curtail.limits" . | fromYaml -}}
{{- $given := mergeOverwrite (dict "enabled" false "burst" 5 "perMinute" 12) (deepCopy (default dict $edge.allowance)) -}}
{{- $burst := ternary (int $given.burst) 0 $given.enabled -}}
{{- $perMinute := int $given.perMinute -}}
{{- /* A rollout adds one pod. Each listener has its own buckets. */}}
{{- $pods := add 1 (ternary (int $edge.autoscaling.maxReplicas) (int $edge.replicas) $edge.autoscaling.enabled) -}}
{{- $buckets := mul $pods (ternary 2 1 $edge.tls.enabled) -}}
{{- $perSecond := div (add (mul $buckets $perMinute) 59) 60 -}}
{{- $limiterBurst := sub (int $limits.redirectBurst) (mul $buckets $burst) -}}
{{- $limiterPerSecond := sub (int $limits.redirectPerSecond) (ternary $perSecond 0 $given.enabled) -}}
burst: {{ $burst }}
perMinute: {{ $perMinute }}
perSecond: {{ ternary (div (add $perMinute 59) 60) 0 $given.enabled }}
buckets: {{ $buckets }}
limiterBurst: {{ $limiterBurst }}
limiterPerSecond: {{ $limiterPerSecond }}
remaining: {{ min $limiterBurst $limiterPerSecond }}
{{- end -}}

{{/* (root): the limits of the limiter, as YAML: those of "curtail.limits", less the allowances. */}}
{{- define "curtail.limiterLimits" -}}
{{- $allowance := include "curtail.allowance" . | fromYaml -}}
{{- $shares := dict "redirectBurst" $allowance.limiterBurst "redirectPerSecond" $allowance.limiterPerSecond -}}
{{- range $name, $limit := mergeOverwrite (include "curtail.limits" . | fromYaml) $shares }}
{{ $name }}: {{ $limit | int }}
{{- end -}}
{{- end -}}

{{/* (root): the errors in the allowance, as a JSON list. */}}
{{- define "curtail.allowanceFaults" -}}
{{- $faults := list -}}
{{- $allowance := include "curtail.allowance" . | fromYaml -}}
{{- if gt (int $allowance.burst) 0 -}}
{{- if not (include "curtail.hasShippedLimits" .) -}}
{{- $faults = append $faults "edge.allowance.enabled must be false if ratelimit.rules, ratelimit.existingRules or ratelimit.xds.server is set: the chart cannot lower their limit of redirects" -}}
{{- end -}}
{{- if or (lt (int $allowance.limiterBurst) 1) (lt (int $allowance.limiterPerSecond) 1) -}}
{{- $limits := include "curtail.limits" . | fromYaml -}}
{{- $faults = append $faults (printf "edge.allowance leaves nothing for the limiter: %d allowances (of each listener of each edge pod) of %d and %d per minute use up ratelimit.limits.redirectBurst %d or redirectPerSecond %d" (int $allowance.buckets) (int $allowance.burst) (int $allowance.perMinute) (int $limits.redirectBurst) (int $limits.redirectPerSecond)) -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}
