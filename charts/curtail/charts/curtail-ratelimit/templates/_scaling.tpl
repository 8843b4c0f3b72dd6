{{/* What a workload has besides its pods. Each template is empty if the object does not apply. */}}

{{/* (list root component): its HorizontalPodAutoscaler. */}}
{{- define "curtail.horizontalPodAutoscaler" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $scaling := (index $root.Values $component).autoscaling -}}
{{- if $scaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "curtail.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "curtail.fullname" $root }}-{{ $component }}
  minReplicas: {{ $scaling.minReplicas | int }}
  maxReplicas: {{ $scaling.maxReplicas | int }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ $scaling.targetCpuPercent | int }}
{{- end }}
{{- end -}}

{{/* (list root component): its PodDisruptionBudget. */}}
{{- define "curtail.podDisruptionBudget" -}}
{{- $root := index . 0 -}}
{{- $budget := $root.Values.podDisruptionBudget -}}
{{- $replicas := include "curtail.replicasMin" (list (index $root.Values (index . 1))) | int -}}
{{- if and $budget.enabled (gt $replicas 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "curtail.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ $budget.maxUnavailable | int }}
  # A pod that is not ready serves no client: it must not block the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "curtail.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* (list root component): its ServiceAccount. */}}
{{- define "curtail.serviceAccount" }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "curtail.metadata" (list (index . 0) (index . 1) (index . 1) (index . 0).Values.serviceAccountAnnotations) | nindent 2 }}
automountServiceAccountToken: false
{{- end -}}
