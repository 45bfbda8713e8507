{{- define "maniple.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "maniple.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "maniple.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "maniple.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* The prefix of what is not in a namespace: releases of one name in two namespaces must not share a role. */}}
{{- define "maniple.clusterPrefix" -}}
{{- printf "%s:%s" (include "maniple.fullname" .) .Release.Namespace }}
{{- end }}

{{- define "maniple.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "maniple.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "maniple.selector" -}}
app.kubernetes.io/name: {{ include "maniple.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "maniple.labels" -}}
{{ include "maniple.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "maniple.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* Pods of the webhook are none of the scheduler's: its service, budget and policy must not select them. */}}
{{- define "maniple.admissionSelector" -}}
app.kubernetes.io/name: {{ include "maniple.name" . }}-admission
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "maniple.admissionLabels" -}}
{{ include "maniple.admissionSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
