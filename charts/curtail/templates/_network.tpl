{{/* NetworkPolicy rules for Cassandra and the API server, and the namespaces that the controller watches. */}}

{{/* The rule that allows egress to Cassandra. */}}
{{- define "curtail.cassandraEgress" -}}
{{- if eq .Values.cassandra.mode "bundled" -}}
- to:
    {{- include "curtail.peers" (list . "cassandra") | trim | nindent 4 }}
  ports:
    {{- include "curtail.tcpPorts" (list 9042) | trim | nindent 4 }}
{{- else -}}
- ports:
    {{- include "curtail.tcpPorts" (list (include "curtail.cassandraPort" .)) | trim | nindent 4 }}
{{- end -}}
{{- end -}}

{{/* The rule that allows egress to the API server. */}}
{{- define "curtail.apiServerEgress" -}}
- ports:
    {{- include "curtail.tcpPorts" .Values.networkPolicy.apiServerPorts | trim | nindent 4 }}
  {{- with .Values.networkPolicy.apiServerTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* (root): the namespaces whose CodePools the controller reconciles, the release's first; as a JSON list. */}}
{{- define "curtail.watchedNamespaces" -}}
{{- prepend .Values.controller.watchNamespaces (include "curtail.namespace" .) | toJson -}}
{{- end -}}
