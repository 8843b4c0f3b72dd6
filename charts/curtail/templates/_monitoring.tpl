{{/* (list root kind renderMode): whether an object of Prometheus Operator's is rendered; else empty. */}}
{{- define "curtail.isMonitored" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $isKnown := $root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind) -}}
{{- if or $isKnown (eq (index . 2) "alwaysRender") -}}
true
{{- else if eq (index . 2) "failIfMissing" -}}
{{- fail (printf "\n\nThis cluster knows no %s of monitoring.coreos.com/v1, and its renderMode is failIfMissing: install Prometheus Operator's CRDs first, or set skipIfMissing or alwaysRender\n" $kind) -}}
{{- end -}}
{{- end -}}

{{/* (list root path): an endpoint that is scraped. */}}
{{- define "curtail.metricsEndpoint" -}}
- port: metrics
  path: {{ index . 1 }}
  interval: {{ (index . 0).Values.monitoring.monitor.interval }}
{{- end -}}

{{/* Where each component tells its metrics, as YAML. */}}
{{- define "curtail.metricsPaths" -}}
edge: /stats/prometheus
ratelimit: /metrics
create: /metrics
redirect: /metrics
{{- if eq .Values.pools.mode "controller" }}
controller: /metrics
{{- end }}
{{- end -}}
