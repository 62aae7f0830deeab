{{- define "switchyard.name" -}}
{{- if contains "switchyard" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-switchyard{{ end -}}
{{- end -}}

{{- define "switchyard.selector" -}}
app.kubernetes.io/name: switchyard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "switchyard.labels" -}}
{{ include "switchyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "switchyard.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}

{{- define "switchyard.image" -}}
{{- $tag := .Values.image.tag | default (printf "%s%s" .Chart.AppVersion (gt (int .Values.gpus) 0 | ternary "-cuda" "")) -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
