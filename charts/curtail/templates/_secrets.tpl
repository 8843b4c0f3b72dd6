{{/* The Secrets that the chart creates once, and whether a cluster is available to look them up. */}}

{{- define "curtail.adminSecret" -}}
{{ default (printf "%s-admin" (include "curtail.fullname" .)) .Values.admin.existingSecret }}
{{- end -}}

{{- define "curtail.codeSecret" -}}
{{ default (printf "%s-code-secret" (include "curtail.fullname" .)) .Values.pools.codeSecret.existingSecret }}
{{- end -}}

{{/*
`true` if a cluster is reachable. Without one no random value is rendered, as each rendering would
generate another secret. A namespace that does not exist yet has no ServiceAccount, so that a
namespace that always exists is looked up too.
*/}}
{{- define "curtail.hasCluster" -}}
{{- if lookup "v1" "ServiceAccount" (include "curtail.namespace" .) "default" -}}
true
{{- else if lookup "v1" "Namespace" "" "default" -}}
true
{{- end -}}
{{- end -}}
