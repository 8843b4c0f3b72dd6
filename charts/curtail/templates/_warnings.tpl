{{/* Warnings of NOTES.txt: values that work, but are not for production. */}}
{{- define "curtail.warnings" -}}
{{- $v := .Values -}}
{{- $warnings := list -}}
{{- if hasPrefix "http://localhost" $v.baseUrl -}}
{{- $warnings = append $warnings (printf "baseUrl is %s: short links only work through kubectl port-forward." $v.baseUrl) -}}
{{- end -}}
{{- if and (hasPrefix "http://" $v.baseUrl) $v.edge.tls.enabled -}}
{{- $warnings = append $warnings (printf "baseUrl is %s, but edge.tls.enabled is true: short links use HTTP without TLS." $v.baseUrl) -}}
{{- end -}}
{{- if and (hasPrefix "http://" $v.baseUrl) ($v.edge.gateway).enabled (include "curtail.ingressSecret" (list . "gateway")) -}}
{{- $warnings = append $warnings (printf "baseUrl is %s, but edge.gateway has a certificate: it redirects every short link to HTTPS." $v.baseUrl) -}}
{{- end -}}
{{- if eq $v.cassandra.mode "bundled" -}}
{{- $reason := ternary "A single node stores all links" "Its nodes are small, and have no authentication" (eq (int $v.cassandra.bundled.replicas) 1) -}}
{{- $warnings = append $warnings (printf "cassandra.mode is bundled: for trials only. %s; see values-production.yaml." $reason) -}}
{{- end -}}
{{- if and (ne $v.edge.service.type "ClusterIP") (eq $v.edge.service.externalTrafficPolicy "Cluster") (not $v.edge.proxyProtocol) (eq (int $v.edge.trustedHops) 0) -}}
{{- $warnings = append $warnings "edge.service.externalTrafficPolicy is Cluster, and neither trustedHops nor proxyProtocol is set: all clients may have the same address, and share one limit." -}}
{{- end -}}
{{- if gt (int $v.edge.trustedHops) 0 -}}
{{- $warnings = append $warnings (printf "edge.trustedHops is %d: a client that bypasses these proxies can choose its own address. Set networkPolicy.clients, so that only the proxies reach the edge." (int $v.edge.trustedHops)) -}}
{{- end -}}
{{- if $v.edge.failClosed -}}
{{- $warnings = append $warnings "edge.failClosed is true: the edge rejects requests with 503 while no rate-limit pod responds." -}}
{{- end -}}
{{- if and (eq $v.pools.mode "off") (not $v.pools.codeSecret.existingSecret) -}}
{{- $warnings = append $warnings "pools.mode is off: creates fail until you run `refill` for the pool." -}}
{{- end -}}
{{- $shared := include "curtail.sharedWarnings" (list . (list "cache" "counters") (list "edge" "ratelimit" "create" "redirect")) -}}
{{- include "curtail.renderWarnings" (concat $warnings (fromJsonArray $shared)) -}}
{{- end -}}
