{{/*
The operator lists: API keys in Secrets, and blocked targets in ConfigMaps. Pods mount them as folders
of files. A changed list restarts no pod: the controller makes the kubelet update the files.
*/}}

{{/* (root): the names of the Secrets with API keys, the chart's own first, as a JSON list. */}}
{{- define "curtail.apiKeySecrets" -}}
{{- $own := printf "%s-api-keys" (include "curtail.fullname" .) -}}
{{- prepend (default list (.Values.apiKeys).extraSecrets) $own | uniq | toJson -}}
{{- end -}}

{{/* (root): the names of the ConfigMaps with blocked targets, the chart's own first, as a JSON list. */}}
{{- define "curtail.blockedTargetMaps" -}}
{{- $own := printf "%s-blocked-targets" (include "curtail.fullname" .) -}}
{{- prepend (default list (.Values.blockedTargets).extraConfigMaps) $own | uniq | toJson -}}
{{- end -}}

{{- define "curtail.apiKeysEnv" -}}
- { name: API_KEYS, value: /etc/curtail/api-keys }
- { name: API_KEY_REQUIRED, value: {{ default false (.Values.apiKeys).required | quote }} }
{{- end -}}

{{- define "curtail.blockedTargetsEnv" -}}
- { name: BLOCKED_TARGETS, value: /etc/curtail/blocked-targets }
{{- end -}}

{{/* Not by subPath: the kubelet replaces the whole folder when an object changes. */}}
{{- define "curtail.apiKeysMounts" -}}
- { name: api-keys, mountPath: /etc/curtail/api-keys, readOnly: true }
{{- end -}}

{{- define "curtail.blockedTargetsMounts" -}}
- { name: blocked-targets, mountPath: /etc/curtail/blocked-targets, readOnly: true }
{{- end -}}

{{/* A missing object or data key is an empty list. */}}
{{- define "curtail.apiKeysVolumes" -}}
- name: api-keys
  projected:
    defaultMode: 0440
    sources:
      {{- range include "curtail.apiKeySecrets" . | fromJsonArray }}
      - secret:
          name: {{ . | quote }}
          optional: true
          items:
            - { key: api-keys.ndjson, path: {{ printf "%s.ndjson" . | quote }} }
      {{- end }}
{{- end -}}

{{- define "curtail.blockedTargetsVolumes" -}}
- name: blocked-targets
  projected:
    defaultMode: 0440
    sources:
      {{- range include "curtail.blockedTargetMaps" . | fromJsonArray }}
      - configMap:
          name: {{ . | quote }}
          optional: true
          items:
            - { key: blocked-targets.txt, path: {{ printf "%s.txt" . | quote }} }
      {{- end }}
{{- end -}}

{{/* (root): the label selector of the pods that mount the lists. */}}
{{- define "curtail.listPodsSelector" -}}
app.kubernetes.io/name={{ include "curtail.name" . }},app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component in (create,redirect)
{{- end -}}
