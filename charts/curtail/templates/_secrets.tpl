{{/* Secrets that are made once, and whether there is a cluster to look for them in. */}}

{{- define "curtail.adminSecret" -}}
{{ default (printf "%s-admin" (include "curtail.fullname" .)) .Values.admin.existingSecret }}
{{- end -}}

{{- define "curtail.codeSecret" -}}
{{ default (printf "%s-code-secret" (include "curtail.fullname" .)) .Values.pools.codeSecret.existingSecret }}
{{- end -}}

{{/*
Whether this is rendered for a cluster that answers. Without one nothing random may be rendered, or
each rendering would make another secret. A namespace that is yet to be made has no account, which is
why a namespace that is always there is looked for too.
*/}}
{{- define "curtail.hasCluster" -}}
{{- if lookup "v1" "ServiceAccount" .Release.Namespace "default" -}}
true
{{- else if lookup "v1" "Namespace" "" "default" -}}
true
{{- end -}}
{{- end -}}
