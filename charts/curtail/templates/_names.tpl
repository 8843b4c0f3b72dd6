{{/* Names, labels and images. Each takes the root, or a list of the root and what it is about. */}}

{{- define "curtail.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $wanted := default $full .Values.fullnameOverride -}}
{{- if gt (len $wanted) 28 -}}
{{ trunc 21 $wanted | trimSuffix "-" }}-{{ sha256sum $wanted | trunc 6 }}
{{- else -}}
{{ $wanted }}
{{- end -}}
{{- end -}}

{{/* (list root component): the labels that select a component's pods. */}}
{{- define "curtail.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* (list root component): every label of an object. */}}
{{- define "curtail.labels" -}}
{{- $root := index . 0 -}}
{{ include "curtail.selectorLabels" . }}
app.kubernetes.io/part-of: curtail
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list root component [suffix [annotations [labels [namespace]]]]): the metadata of an object. */}}
{{- define "curtail.metadata" -}}
{{- $root := index . 0 -}}
{{- $suffix := index . 1 -}}
{{- if gt (len .) 2 }}{{ $suffix = index . 2 }}{{ end -}}
{{- $annotations := deepCopy $root.Values.commonAnnotations -}}
{{- if gt (len .) 3 }}{{ $annotations = mergeOverwrite $annotations (index . 3) }}{{ end -}}
{{- $namespace := $root.Release.Namespace -}}
{{- if gt (len .) 5 }}{{ $namespace = index . 5 }}{{ end -}}
name: {{ include "curtail.fullname" $root }}-{{ $suffix }}
namespace: {{ $namespace }}
labels:
  {{- include "curtail.labels" (list $root (index . 1)) | nindent 2 }}
  {{- if gt (len .) 4 }}
  {{- with index . 4 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (list root image): the reference of an image; global.imageRegistry replaces its registry. */}}
{{- define "curtail.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $repository := $image.repository -}}
{{- with $root.Values.global.imageRegistry -}}
{{- $parts := splitList "/" $image.repository -}}
{{- $first := first $parts -}}
{{- if and (gt (len $parts) 1) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- $repository = join "/" (rest $parts) -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ default $root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* (list root image): image and imagePullPolicy of a container. */}}
{{- define "curtail.containerImage" -}}
image: {{ include "curtail.image" . }}
imagePullPolicy: {{ (index . 1).pullPolicy }}
{{- end -}}

{{/* (list root component): the name of a Service as every pod can resolve it, without look-ups in vain. */}}
{{- define "curtail.host" -}}
{{- $root := index . 0 -}}
{{ include "curtail.fullname" $root }}-{{ index . 1 }}.{{ $root.Release.Namespace }}.svc.{{ $root.Values.clusterDomain }}
{{- end -}}

{{/* (root): the namespaces whose CodePools the controller keeps, ours first; as YAML below `all`. */}}
{{- define "curtail.watchedNamespaces" -}}
all:
  {{- prepend .Values.controller.watchNamespaces .Release.Namespace | toYaml | nindent 2 }}
{{- end -}}

{{/* (list workload): how few pods a workload may have. */}}
{{- define "curtail.replicasMin" -}}
{{- $workload := index . 0 -}}
{{- $scaling := default dict $workload.autoscaling -}}
{{ ternary $scaling.minReplicas $workload.replicas (default false $scaling.enabled) | int }}
{{- end -}}

{{/* How many pods a workload may have at once: (list workload). */}}
{{- define "curtail.replicasMax" -}}
{{- $workload := index . 0 -}}
{{ ternary $workload.autoscaling.maxReplicas $workload.replicas $workload.autoscaling.enabled | int }}
{{- end -}}
