{{/* The metrics path of each component besides the rate limiter, as YAML. */}}
{{- define "curtail.metricsPaths" -}}
edge: /stats/prometheus
create: /metrics
redirect: /metrics
{{- if eq .Values.pools.mode "controller" }}
controller: /metrics
{{- end }}
{{- end -}}
