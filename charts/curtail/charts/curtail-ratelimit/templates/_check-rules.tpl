{{/* A hook that checks the operator's rules, with the program that will load them, before Helm changes anything. */}}
{{- define "curtail.checkRules" -}}
{{- if .Values.ratelimit.rules }}
{{- $hook := dict "helm.sh/hook" "pre-install,pre-upgrade" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
{{- $command := list 128 "ratelimit-check" "/etc/curtail/rules/rate-limits.yaml" }}
{{- with include "curtail.requiredDomain" . }}{{ $command = concat $command (list "--domain" .) }}{{ end }}
{{- include "curtail.serviceAccount" (list . "check-rules" (include "curtail.namespace" .) (mergeOverwrite (deepCopy $hook) (dict "helm.sh/hook-weight" "-1"))) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "curtail.metadata" (list . "check-rules" "check-rules" (mergeOverwrite (deepCopy $hook) (dict "helm.sh/hook-weight" "-1"))) | nindent 2 }}
data:
  rate-limits.yaml: |
    {{- .Values.ratelimit.rules | trim | nindent 4 }}
---
apiVersion: batch/v1
kind: Job
metadata:
  # A failed Job is kept for an hour so that its log can be read; Helm 4 prints the log.
  {{- include "curtail.metadata" (list . "check-rules" "check-rules" (mergeOverwrite (deepCopy $hook) (dict "helm.sh/hook-output-log-policy" "hook-failed"))) | nindent 2 }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: 240
  ttlSecondsAfterFinished: 3600
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - { type: DisruptionTarget, status: "True" }
  template:
    metadata:
      {{- include "curtail.podMetadata" (list . "check-rules" .Values.ratelimit.pod) | nindent 6 }}
    spec:
      {{- include "curtail.podSpec" (list . "check-rules" .Values.ratelimit.pod 65532) | nindent 6 }}
      restartPolicy: Never
      containers:
        - name: check-rules
          {{- include "curtail.containerImage" (list . .Values.image) | nindent 10 }}
          {{- include "curtail.command" $command | nindent 10 }}
          {{- include "curtail.containerSecurity" (list . .Values.ratelimit.pod) | nindent 10 }}
          resources:
            {{- toYaml (default .Values.ratelimit .Values.migrate).resources | nindent 12 }}
          volumeMounts:
            - { name: rules, mountPath: /etc/curtail/rules, readOnly: true }
      volumes:
        - name: rules
          configMap:
            name: {{ include "curtail.fullname" . }}-check-rules
{{- if .Values.networkPolicy.enabled }}
---
{{ include "curtail.networkPolicyHeader" (list . "check-rules") }}
  ingress: []
  egress: []
{{- end }}
{{- end }}
{{- end -}}
