{{/* (list root kind renderMode): `true` if objects of this kind of Prometheus Operator are rendered, else empty. */}}
{{- define "curtail.isMonitored" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $isInstalled := $root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind) -}}
{{- if or $isInstalled (eq (index . 2) "alwaysRender") -}}
true
{{- else if eq (index . 2) "failIfMissing" -}}
{{- fail (printf "\n\nThis cluster has no kind %s in monitoring.coreos.com/v1, and its renderMode is failIfMissing: install Prometheus Operator's CRDs first, or set skipIfMissing or alwaysRender\n" $kind) -}}
{{- end -}}
{{- end -}}

{{/* (list root path): an endpoint that Prometheus scrapes. */}}
{{- define "curtail.metricsEndpoint" -}}
- port: metrics
  path: {{ index . 1 }}
  interval: {{ (index . 0).Values.monitoring.monitor.interval }}
{{- end -}}

{{/* The metrics path of each component, as YAML. */}}
{{- define "curtail.metricsPaths" -}}
edge: /stats/prometheus
ratelimit: /metrics
create: /metrics
redirect: /metrics
{{- if eq .Values.pools.mode "controller" }}
controller: /metrics
{{- end }}
{{- end -}}
