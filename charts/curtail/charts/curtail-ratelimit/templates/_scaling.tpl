{{/* What a workload has besides its pods. Each template is empty if the object does not apply. */}}

{{/* (list root component): its HorizontalPodAutoscaler, or its ScaledObject, from which KEDA creates one. */}}
{{- define "curtail.autoscaler" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $scaling := (index $root.Values $component).autoscaling -}}
{{- $hasKeda := ($scaling.keda).enabled -}}
{{- if $scaling.enabled }}
---
apiVersion: {{ ternary "keda.sh/v1alpha1" "autoscaling/v2" (default false $hasKeda) }}
kind: {{ ternary "ScaledObject" "HorizontalPodAutoscaler" (default false $hasKeda) }}
metadata:
  {{- include "curtail.metadata" (list $root $component $component (default dict $scaling.annotations)) | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "curtail.fullname" $root }}-{{ $component }}
  {{- if $hasKeda }}
  {{- include "curtail.scaledObject" $scaling | nindent 2 }}
  {{- else }}
  minReplicas: {{ $scaling.minReplicas | int }}
  maxReplicas: {{ $scaling.maxReplicas | int }}
  metrics:
    {{- range $name, $percent := include "curtail.scalingTargets" $scaling | fromYaml }}
    - type: Resource
      resource:
        name: {{ $name }}
        target:
          type: Utilization
          averageUtilization: {{ $percent | int }}
    {{- end }}
    {{- with $scaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* (autoscaling): the average utilization of each resource that is a target, as YAML. */}}
{{- define "curtail.scalingTargets" -}}
{{- with .targetCpuPercent }}
cpu: {{ . | int }}
{{- end }}
{{- with .targetMemoryPercent }}
memory: {{ . | int }}
{{- end }}
{{- end -}}

{{/* (autoscaling): the specification of a ScaledObject after its target. */}}
{{- define "curtail.scaledObject" -}}
minReplicaCount: {{ .minReplicas | int }}
maxReplicaCount: {{ .maxReplicas | int }}
{{- with .keda.pollingInterval }}
pollingInterval: {{ . | int }}
{{- end }}
{{- with .keda.fallback }}
fallback:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .behavior }}
advanced:
  horizontalPodAutoscalerConfig:
    behavior:
      {{- toYaml . | nindent 6 }}
{{- end }}
triggers:
  {{- range $name, $percent := include "curtail.scalingTargets" . | fromYaml }}
  - type: {{ $name }}
    metricType: Utilization
    metadata: { value: {{ $percent | int | quote }} }
  {{- end }}
  {{- with .keda.triggers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* (list root component): the errors in its autoscaling. */}}
{{- define "curtail.scalingFaults" -}}
{{- $name := index . 1 -}}
{{- $scaling := (index (index . 0).Values $name).autoscaling -}}
{{- $faults := list -}}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- $faults = append $faults (printf "%s.autoscaling.minReplicas must not be above %s.autoscaling.maxReplicas, %d" $name $name (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- if and ($scaling.keda).enabled (not $scaling.enabled) -}}
{{- $faults = append $faults (printf "%s.autoscaling.enabled must be true if %s.autoscaling.keda.enabled is true" $name $name) -}}
{{- end -}}
{{- if and ($scaling.keda).enabled $scaling.metrics -}}
{{- $faults = append $faults (printf "%s.autoscaling.metrics must be empty if %s.autoscaling.keda.enabled is true: KEDA has triggers" $name $name) -}}
{{- end -}}
{{- if and ($scaling.keda).enabled $scaling.keda.fallback -}}
{{- $others := list -}}
{{- range $scaling.keda.triggers -}}
{{- if not (has .type (list "cpu" "memory")) }}{{ $others = append $others .type }}{{ end -}}
{{- end -}}
{{- if not $others -}}
{{- $faults = append $faults (printf "%s.autoscaling.keda.fallback must be empty if all triggers are targets for CPU or memory: KEDA rejects it" $name) -}}
{{- end -}}
{{- end -}}
{{- $more := ternary ($scaling.keda).triggers $scaling.metrics (default false ($scaling.keda).enabled) -}}
{{- if and $scaling.enabled (not (or $scaling.targetCpuPercent $scaling.targetMemoryPercent $more)) -}}
{{- $faults = append $faults (printf "%s.autoscaling must have a target for CPU or memory, a metric, or a trigger" $name) -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}

{{/* (list root component): its PodDisruptionBudget. */}}
{{- define "curtail.podDisruptionBudget" -}}
{{- $root := index . 0 -}}
{{- $budget := $root.Values.podDisruptionBudget -}}
{{- $workload := index $root.Values (index . 1) -}}
{{- $max := ternary ($budget.maxUnavailable | quote) ($budget.maxUnavailable | int) (kindIs "string" $budget.maxUnavailable) -}}
{{- /* The replicas of a link are on up to three nodes, and a quorum of them must be available. */ -}}
{{- if hasKey $workload "bundled" }}{{ $workload = $workload.bundled }}{{ $max = 1 }}{{ end -}}
{{- $replicas := include "curtail.replicasMin" (list $workload) | int -}}
{{- if and $budget.enabled (gt $replicas 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "curtail.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ $max }}
  # A pod that is not ready serves no client: it must not block the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "curtail.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}
